"""What the backends of the host's memory (_host.py) and of GPUs (_gpu.py) have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._arguments import kept_shape, name_of
from ._arrays import PART, Operand


class Backend:
    """A backend: what _reduce.py calls, made of a library's functions."""

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...  # the library's functions

    def mask(self, where: Any, t: Operand) -> Operand | None:
        """where= as an array of bool, broadcast to the elements' shape; None for all of them."""
        if where is None or where is True:
            return None
        mask: Operand = self.beside(where, t, "where=")
        if mask.type != "bool":
            raise TypeError(f"where= is an array of bool, not of {name_of(mask.type)}")
        return mask.broadcast(t.shape, "where=")

    def means(self, mean: Any, t: Operand, axes: tuple[int, ...]) -> Any:
        """mean= as doubles, or complex numbers of doubles, one for each result, reduced axes with length 1."""
        about, shape = self.beside(mean, t, "mean="), kept_shape(t.shape, axes)
        if about.type in PART and t.type not in PART:
            raise TypeError(f"mean= is of floats, or of complex numbers as the elements are, not of {name_of(about.type)}")
        try:
            about.broadcast(shape, "mean=")
        except ValueError:
            raise ValueError(f"mean= has shape {about.shape}, the mean with keepdims=True {shape}") from None
        return self.doubles(about, shape, "c128" if t.type in PART else "f64")
