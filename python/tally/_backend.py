"""The common part of the backends of the host's memory (_host.py) and of GPUs (_gpu.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._arguments import kept_shape, name_of
from ._arrays import PART, Operand, check_labels


class Backend:
    """A backend: the methods that _reduce.py calls, made of a library's functions."""

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...  # the library's functions

    def mask(self, where: Any, t: Operand) -> Operand | None:
        """where= as an array of bool, broadcast to the elements' shape; None for all of them."""
        if where is None or where is True:
            return None
        mask: Operand = self.beside(where, t, "where=")
        check_labels(t, mask)
        if mask.type != "bool":
            raise TypeError(f"where= is an array of bool, not of {name_of(mask.type)}")
        return mask.broadcast(t.shape, "where=")

    def means(self, mean: Any, t: Operand, axes: tuple[int, ...]) -> Any:
        """mean= as doubles, or complex numbers of doubles, one for each result, reduced axes with length 1."""
        about, shape = self.beside(mean, t, "mean="), kept_shape(t.shape, axes)
        check_labels(t, about)
        if about.type in PART and t.type not in PART:
            raise TypeError(f"mean= is of floats, or of complex numbers as the elements are, not of {name_of(about.type)}")
        try:
            about.broadcast(shape, "mean=")
        except ValueError:
            raise ValueError(f"mean= has shape {about.shape}, the mean with keepdims=True {shape}") from None
        return self.doubles(about, shape, "c128" if t.type in PART else "f64")


def products(library: Any, real: Any, imaginary: Any, mask: Any) -> tuple[Any, Any]:
    """Returns the real and the imaginary parts of the products of rows of complex numbers, one row for each result. Neighbours are
    multiplied, then neighbours of these products, until one is left. Each product and sum of reals is rounded by itself, so the
    bits are the same on every machine. `library` has the functions on arrays; `mask` is False for elements that are left out."""
    present = None
    if mask is not None:  # elements that are not left out come first, in their order
        present = library.cast(mask, "int64").sum(1).reshape(-1, 1)
        order = library.argsort(library.cast(mask, "uint8") ^ 1)
        real, imaginary = library.take_along(real, order, 1), library.take_along(imaginary, order, 1)
        one = library.arange(real.shape[1], real).reshape(1, -1) < present
        real, imaginary = library.where(one, real, 1), library.where(one, imaginary, 0)
    while real.shape[1] > 1:
        n = real.shape[1]
        a, b, c, d = real[:, :n - 1:2], imaginary[:, :n - 1:2], real[:, 1::2], imaginary[:, 1::2]
        r, i = a * c - b * d, a * d + b * c
        if present is not None:  # a last one without a neighbour stays as it is
            both = library.arange(r.shape[1], real).reshape(1, -1) * 2 + 1 < present
            r, i = library.where(both, r, a), library.where(both, i, b)
            present = (present + 1) >> 1
        rest = n // 2 * 2
        real, imaginary = (r, i) if rest == n else (library.join([r, real[:, rest:]]), library.join([i, imaginary[:, rest:]]))
    return tuple(library.where(part == part, part, float("nan")) for part in (real[:, 0], imaginary[:, 0]))
