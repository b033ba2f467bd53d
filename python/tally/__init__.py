"""Parallel reduction with the right answer and the same bits on every machine.

>>> import numpy, tally
>>> x = numpy.array([1e16, 1.0, -1e16, 1.0])
>>> float(numpy.sum(x)), float(tally.sum(x))
(1.0, 2.0)

Functions have NumPy's names, arguments and meaning; docs/python.md says where they differ.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from . import _core
from ._checks import checked
from ._functions import PUBLIC as _PUBLIC
from ._operators import Operator
from ._parts import group, reduce, segment
from ._results import Description, MinMax
from ._states import Groups, State

__version__: str = _core.version
devices = _core.devices

globals().update(_PUBLIC)
__all__ = sorted([*_PUBLIC, "Description", "Groups", "MinMax", "Operator", "State", "checked", "devices", "group", "reduce",
                  "segment"])


def __dir__() -> list[str]:
    return [*__all__, "__version__", *["dask"] * (importlib.util.find_spec("dask") is not None), "mpi"]


def __getattr__(name: str) -> Any:
    if name not in ("dask", "mpi"):  # which are imported only where they are asked for
        raise AttributeError(f"module 'tally' has no attribute {name!r}")
    try:
        return importlib.import_module(f"tally.{name}")
    except ImportError as error:
        raise AttributeError(f"tally.{name} is not here: {error}") from error


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext tally`: the magic %%tally_kernel (tally.notebook)."""
    from . import notebook
    notebook.load_ipython_extension(shell)
