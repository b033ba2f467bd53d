"""Reductions of dask arrays: states of the chunks, merged by dask's own tree reduction.

The bits depend on the elements alone: not on chunks, workers, or the order in which these finish.

>>> import dask.array, numpy, tally.dask
>>> x = dask.array.from_array(numpy.array([1e16, 1.0, -1e16, 1.0]), chunks=2)
>>> float(tally.dask.sum(x).compute())
2.0
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, Callable

import dask.array
import numpy as np

from . import _core
from ._arguments import NO_IDENTITY, axes_of, check_extreme, kept_shape, kind_of, name_of, rounded_to
from ._arrays import DTYPE, PART, as_host_array, cast_exactly, dask_array_of, type_of, wrap_numpy
from ._functions import norm_of
from ._host import cast_results, contiguous, rows_of, shown, store
from ._parts import names_of, problem_of, reduce as _reduce_array
from ._results import MinMax

da: Any = dask.array  # (its own annotations are partly missing)

# A chunk becomes an array of saved states, which are Python's bytes: one for each of the chunk's results.

#: Operators whose states merge only in order; and describe, which has them among its values.
_ORDERED = ("argmin", "argmax", "describe")


def _states(rows_in: Any, axes: tuple[int, ...], state_of: Callable[[Any], _core.State]) -> Any:
    """Returns saved states of an array's results, with reduced axes of length 1. state_of(elements) makes a result's state."""
    rows = rows_of(rows_in, axes)
    states = np.empty(rows.shape[:rows.ndim - len(axes)], object)
    for at in np.ndindex(states.shape):
        states[at] = state_of(rows[at]).save()
    return states.reshape(kept_shape(rows_in.shape, axes))


def _chunk(x: Any, axis: Any, keepdims: bool, *, problem: Callable[[], _core.Problem], kind: str, computing_meta: bool = False) -> Any:
    """The states of a chunk's results: a column of elements becomes bytes."""
    del keepdims
    if computing_meta:  # dask asks for the number of dimensions
        return np.empty((0,) * x.ndim, object)
    p = problem()

    def state_of(column: Any) -> _core.State:
        state = _core.State(p)
        state.feed(_elements(column, kind), None, "cpu")
        return state

    array = as_host_array(x).array
    return _states(array, axes_of(tuple(axis) if isinstance(axis, (list, tuple)) else axis, array.ndim), state_of)


def _elements(column: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any]:
    """Elements of a chunk, which may be of another type than dask was told."""
    return cast_exactly(contiguous(column, column.dtype.newbyteorder("=")), DTYPE[kind])


def _merge(parts: Any, axis: Any, p: _core.Problem) -> Any:
    """Saved states of neighbouring parts, along axes, as one."""
    if isinstance(parts, list):
        parts = da.core._concatenate2(parts, axes=sorted(axis))

    def state_of(saved: Any) -> _core.State:
        state, *others = [_core.State(p, each) for each in np.asarray(saved, object).reshape(-1)] or [_core.State(p)]
        for other in others:
            state.merge(other)
        return state

    return _states(parts, axes_of(tuple(axis), parts.ndim), state_of)


def _combine(parts: Any, axis: Any, keepdims: bool, *, problem: Callable[[], _core.Problem]) -> Any:
    del keepdims
    return _merge(parts, axis, problem())


def _aggregate(parts: Any, axis: Any, keepdims: bool, *, problem: Callable[[], _core.Problem], element: str,
               wanted: str | None) -> Any:
    p = problem()
    merged = _merge(parts, axis, p)
    ((name, type_),) = p.values()
    values = np.empty(merged.shape, DTYPE[type_])
    for at in np.ndindex(merged.shape):
        state = _core.State(p, merged[at])
        if name in NO_IDENTITY and state.count() == 0:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        store(values[(*at, ...)], (name, type_), state.value()[0])
    values, type_ = shown(name, type_, values, element)
    if wanted is not None:
        values = cast_results(values, DTYPE[wanted], name)
    if not keepdims:
        axes = axes_of(tuple(axis), merged.ndim)
        values = values.reshape([n for d, n in enumerate(values.shape) if d not in axes])
    return wrap_numpy(values, type_)


def _whole(x: Any, *, axes: tuple[int, ...], op: str, wanted: Any, ddof: float, keepdims: bool) -> Any:
    return np.asarray(_reduce_array(op, x, axes, dtype=wanted, ddof=ddof, keepdims=keepdims, device="cpu"))


def _checked(x: Any) -> Any:
    """A chunk that is numbers alone."""
    as_host_array(x)
    return x


def _check(x: Any) -> str:
    """The type of an array's elements, if its chunks are numbers alone, as dask knows them."""
    if isinstance(x._meta, np.ma.MaskedArray):
        raise TypeError("a dask array of masked chunks: dask.array.ma.filled(x, ...) gives the masked elements a value, and "
                        "x[~dask.array.ma.getmaskarray(x)] leaves them out")
    return as_host_array(x._meta).type


def reduce(op: str, x: Any, axis: Any = None, *, dtype: Any = None, ddof: float = 0, keepdims: bool = False,
           split_every: Any = None) -> Any:
    """Reduces a dask array by an operator's name, to a dask array.

    Parameters
    ----------
    op : str
        "sum", "mean", "var", "std", "norm2", "sumsq", "min", "max", "nonzero", "any", "and", ... Not argmin and argmax,
        nor floating products, whose states are merged with their neighbours only.
    x : dask.array.Array
        Of any chunks.
    axis, dtype, ddof, keepdims
        As for `tally.reduce`.
    split_every : int, optional
        How many states are merged at a time, as for dask's own reductions.
    """
    if not isinstance(x, da.Array):
        raise TypeError(f"tally.dask reduces dask arrays, not {type(x).__name__}; tally.reduce the others")
    element = _check(x)
    if element != type_of(x.dtype):
        raise TypeError(f"a dask array of {x.dtype}, whose chunks are {x._meta.dtype}")
    names = names_of(op)
    if element in PART or element == "bf16":
        raise TypeError(f"tally.dask does not reduce {x.dtype}")
    kind = "i8" if element == "bool" else element
    if len(names) != 1 or names[0] in _ORDERED or (names[0] == "prod" and x.dtype.kind == "f"):
        raise ValueError(f"{op!r} has no states that dask may merge in any order; one operator of those that have")
    asked = kind_of(dtype)
    if asked is not None and asked in PART:
        raise TypeError(f"the {names[0]} of {x.dtype} elements is not rounded to {name_of(asked)}: give a floating dtype")
    out, wanted = rounded_to(names[0], element, asked)
    if names[0] == "norminf" and out is not None:
        x, element, kind, out = x.astype(DTYPE[out]), out, out, None
    problem = partial(problem_of, names, kind, out, False, float(ddof))  # (a problem itself is not sent)
    ((name, type_),) = problem().values()
    array, _ = shown(name, type_, np.empty((), DTYPE[type_]), element)
    if wanted is not None:
        array = array.astype(DTYPE[wanted])
    axes = axes_of(axis, x.ndim)
    if name in NO_IDENTITY:
        check_extreme(name, x.shape, axes)
    meta = np.empty((0,) * (x.ndim if keepdims else x.ndim - len(axes)), array.dtype)
    if all(len(x.chunks[d]) == 1 for d in axes):  # no result is in two chunks
        x = x.map_blocks(_checked, dtype=x.dtype, meta=x._meta)  # (before dask makes plain arrays of chunks)
        return x.map_blocks(_whole, dtype=array.dtype, chunks=[
            (1,) if d in axes else c for d, c in enumerate(x.chunks) if keepdims or d not in axes],
            drop_axis=[] if keepdims else list(axes), axes=axes, op=op, wanted=dtype, ddof=ddof, keepdims=keepdims, meta=meta)
    return da.reduction(x, partial(_chunk, problem=problem, kind=kind),
                        partial(_aggregate, problem=problem, element=element, wanted=wanted),
                        combine=partial(_combine, problem=problem), axis=axes, keepdims=keepdims, dtype=array.dtype,
                        split_every=split_every, concatenate=False, name=f"tally-{names[0]}", meta=meta)


def sum(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, split_every: Any = None) -> Any:
    """The sum, exact and rounded once."""
    return reduce("sum", x, axis, dtype=dtype, keepdims=keepdims, split_every=split_every)


def mean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, split_every: Any = None) -> Any:
    """The mean: the exact quotient, rounded once."""
    return reduce("mean", x, axis, dtype=dtype, keepdims=keepdims, split_every=split_every)


def var(x: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *,
        split_every: Any = None) -> Any:
    """The variance: the exact value, rounded once."""
    return reduce("var", x, axis, dtype=dtype, ddof=ddof, keepdims=keepdims, split_every=split_every)


def std(x: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False, *,
        split_every: Any = None) -> Any:
    """The standard deviation: the root of the exact variance, rounded once."""
    return reduce("std", x, axis, dtype=dtype, ddof=ddof, keepdims=keepdims, split_every=split_every)


def min(x: Any, axis: Any = None, keepdims: bool = False, *, split_every: Any = None) -> Any:
    """The least element."""
    return reduce("min", x, axis, keepdims=keepdims, split_every=split_every)


def max(x: Any, axis: Any = None, keepdims: bool = False, *, split_every: Any = None) -> Any:
    """The greatest element."""
    return reduce("max", x, axis, keepdims=keepdims, split_every=split_every)


# ---- tally.sum(x), and the like, of a dask array ---------------------------------------------------------------------

_TAKEN = ("x", "op", "axis", "dtype", "keepdims", "ddof", "correction", "ord")


def call(name: str, bound: inspect.BoundArguments) -> Any:
    """Returns the lazy result of tally's function `name` for a dask array; `bound` has the function's arguments."""
    if name in ("argmin", "argmax", "describe", "dot", "vecdot"):
        raise TypeError(f"tally.{name} of a dask array needs x.compute(): its chunks' states are merged with their neighbours only")
    given = bound.arguments
    parameters = bound.signature.parameters
    for argument, value in given.items():
        if argument not in _TAKEN and value is not parameters[argument].default:
            raise TypeError(f"tally.{name} of a dask array is lazy, and has no {argument}=; x.compute() is an array that has")
    x, op = dask_array_of(given["x"]), given.get("op", name)
    axis, keepdims = given.get("axis"), given.get("keepdims", False)
    if name == "minmax":
        return MinMax(reduce("min", x, axis, keepdims=keepdims), reduce("max", x, axis, keepdims=keepdims))
    dtype, ddof = given.get("dtype"), given.get("ddof", 0)
    if given.get("correction") is not None:
        ddof = given["correction"]
    if name == "norm":
        op, dtype = norm_of(given.get("ord"), axis, x.ndim, dtype, type_of(x.dtype))
    return reduce(op, x, axis, dtype=dtype, ddof=ddof, keepdims=keepdims)
