"""Reductions by operator's name, by segment and by group."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from . import _core
from ._arguments import CONVERTED, NO_IDENTITY, Call, axes_of, check_guess, has_empty_result, kind_of, problem, real, \
    result_kind, rounded_to, values_of
from ._arrays import DTYPE, PART, check_labels
from ._gpu import accept_others
from ._operators import Operator
from ._reduce import as_array, backend_of, check_keepdims
from ._results import Description, MinMax

_NAMES = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "norm": "norm2", "count_nonzero": "nonzero"}


def problem_of(op: Any, kind: str, out: str | None = None, fast: bool = False, ddof: float = 0.0) -> _core.Problem:
    """The problem of an Operator, a name, several names, or names with commas between."""
    if isinstance(op, Operator):
        if out or fast or ddof:
            raise TypeError("an Operator has results of the elements' type: no other dtype=, no ddof=, no fast=")
        return op.problem("i8" if kind == "bool" else kind)
    return problem(names_of(op), kind, out, fast, ddof)


@functools.lru_cache(maxsize=256)
def _names_in(text: str) -> tuple[str, ...]:
    return tuple(_NAMES.get(name, name) for name in text.split(","))


def names_of(op: Any) -> tuple[str, ...]:
    if isinstance(op, str):
        return _names_in(op)
    if not isinstance(op, (tuple, list)) or any(not isinstance(name, str) for name in op):
        raise TypeError(f"{op!r} is neither an operator's name nor a tally.Operator")
    return _names_in(",".join(op))


def gather(op: Any, *values: Any) -> Any:
    """Returns one value as it is; several as a MinMax, a Description or a tuple."""
    if len(values) == 1:
        return values[0]
    names = () if isinstance(op, Operator) else names_of(op)
    if names == ("minmax",):
        return MinMax(*values)
    if names == ("describe",):
        return Description(*values)
    return values


def _label(op: Any) -> str:
    return repr(op) if isinstance(op, Operator) else ",".join(names_of(op))


def check_one(op: Any) -> Any:
    """Returns an operator of one array; raises for dot."""
    if not isinstance(op, Operator) and "dot" in names_of(op):
        raise TypeError("dot is of two arrays: tally.dot(a, b), tally.vecdot(a, b) or tally.State('dot').update(a, b)")
    return op


def _asked(op: Any, t: Any, kind: str | None, ddof: Any, fast: bool = False) -> tuple[Any, _core.Problem, str | None]:
    """Returns an array as it is reduced, the problem, and the type that integer results become. `kind`: of dtype= or out=."""
    check_one(op)
    rounded, wanted = (None, None) if kind is None else rounded_to(_label(op), t.type, kind)
    if rounded is not None and _label(op) in CONVERTED:
        t, rounded = t.as_type(rounded), None
    return t, problem_of(op, t.type, rounded, fast, real("ddof=", ddof)), wanted


@functools.partial(accept_others, name="reduce")
def reduce(op: Any, x: Any, axis: Any = None, *, dtype: Any = None, out: Any = None, keepdims: bool = False, where: Any = None, ddof: float = 0, fast: bool = False, device: str | None = None, progress: bool = False) -> Any:
    """Reduces by an operator's name, by several, or by an Operator.

    Parameters
    ----------
    op : str, tuple of str or Operator
        "sum", "norm1", "nans", ...; "count,mean,std" for several from one pass; or an operator of yours.
    x : array_like
        NumPy's array, or any other library's: in the host's memory, or PyTorch's, CuPy's or JAX's on a CUDA device.
    axis : None, int or tuple of ints, optional
        Which axes to reduce; all of them by default.
    dtype, out, keepdims, where, ddof, fast, device, progress
        As for the functions of those names.

    Examples
    --------
    >>> tally.reduce("count,mean,std", [1.0, 2.0, 3.0], ddof=1)
    (np.int64(3), np.float64(2.0), np.float64(1.0))
    """
    t = as_array(x, device)
    backend, axes = backend_of(t), axes_of(axis, len(t.shape))
    check_keepdims(keepdims)
    if t.type in PART:
        raise TypeError("complex numbers are reduced by tally.sum, mean, norm, sumsq, dot and vecdot; or by their parts")
    kind = None
    if dtype is not None or out is not None:
        out, out_kind = backend.check_out(out, t)
        kind = result_kind(_label(op), dtype, out_kind, t.type)
    t, p, wanted = _asked(op, t, kind, ddof, fast)
    what = values_of(p)
    if where is not None and any(name in ("argmin", "argmax") for name, _ in what):
        raise TypeError("argmin and argmax take no where=")
    if out is not None and len(what) > 1:
        raise ValueError("out= is for one value")
    mask = None if where is None else backend.mask(where, t)
    lone = next((name for name, _ in what if name in NO_IDENTITY), None)
    if lone is not None and (has_empty_result(t.shape, axes) if mask is None or mask.backend else not mask.array.any(axis=axes).all()):
        raise ValueError(f"a result of no elements has no {lone}")
    call = Call(axes, keepdims, mask, out, wanted, device, progress)
    if len(what) == 1 and (lone is None or mask is None or mask.backend is None):
        return backend.one(p, t, call)
    return backend.several(p, t, call, lambda *values: gather(op, *values))


def _parts_of(op: Any, x: Any, axis: Any, dtype: Any, ddof: Any, device: str | None) -> tuple[Any, int, _core.Problem, Call]:
    """Returns an array, the axis that is cut, and the problem and the Call for its parts."""
    t = as_array(x, device)
    (a,) = axes_of(operator.index(axis), len(t.shape)) or (0,)
    if not t.shape:
        raise ValueError("segments and groups are of an array, not of a number")
    if t.type in PART:
        raise TypeError("complex numbers have no segments and groups here; reduce their parts")
    t, p, wanted = _asked(op, t, kind_of(dtype), ddof)
    return t, a, p, Call((a,), wanted=wanted, device=device)


@accept_others
def segment(op: Any, x: Any, offsets: Any, *, axis: int = -1, dtype: Any = None, ddof: float = 0, fill_value: Any = None, device: str | None = None) -> Any:
    """Reduces segments: result i is of elements offsets[i] to offsets[i + 1] along an axis.

    Parameters
    ----------
    op : str, tuple of str or Operator
        What to reduce by.
    x : array_like
        NumPy's array, or any other library's: in the host's memory, or PyTorch's, CuPy's or JAX's on a CUDA device.
    offsets : array of int, or int
        Where segments begin, and where the last one ends: one more than there are segments. They never fall. A number:
        so many segments of one length.
    axis : int, optional
        The axis that is cut; the last one by default.
    fill_value : number, optional
        What min, max, argmin and argmax are for a segment without elements; else that is an error.
    dtype, ddof, device
        As for `tally.sum` and `tally.var`.

    Examples
    --------
    >>> tally.segment("sum", [1, 2, 3, 4], [0, 1, 1, 4])
    array([1, 0, 9])
    """
    t, a, p, call = _parts_of(op, x, axis, dtype, ddof, device)
    if isinstance(offsets, (int, np.integer)):
        places: Any = int(offsets)
        count, n = places, t.shape[a]
        if count <= 0 or n % count:
            raise ValueError(f"{n} elements are not {count} segments of one length")
    else:
        places, count = backend_of(t).offsets(offsets, t)
    return gather(op, *backend_of(t).segments(p, t, a, places, count, fill_value, call))


@accept_others
def group(op: Any, x: Any, ids: Any, groups: int | None = None, *, axis: int = -1, dtype: Any = None, ddof: float = 0, where: Any = None, skip_outside: bool = False, sorted: bool = False, fill_value: Any = None, device: str | None = None) -> Any:
    """Reduces groups: result g is of the elements whose id is g.

    Parameters
    ----------
    op : str, tuple of str or Operator
        What to reduce by.
    x : array_like
        NumPy's array, or any other library's: in the host's memory, or PyTorch's, CuPy's or JAX's on a CUDA device; a column of a data frame.
    ids : array of int
        For each element along the axis the group that it belongs to, from 0 on.
    groups : int, optional
        How many groups there are; by default one more than the greatest id, unless results would take more than 1 GiB and
        nearly all groups had no elements.
    axis : int, optional
        The axis that is grouped; the last one by default.
    where : array of bool, optional
        Which elements along the axis are there.
    skip_outside : bool, optional
        Whether elements of other ids are left out; else they are an error.
    sorted : bool, optional
        That ids never fall: an error where they do.
    fill_value : number, optional
        What min, max, argmin and argmax are for a group without elements; else that is an error.
    dtype, ddof, device
        As for `tally.sum` and `tally.var`.

    Examples
    --------
    >>> tally.group("mean", [1.0, 2.0, 6.0], [0, 1, 0])
    array([3.5, 2. ])
    """
    t, a, p, call = _parts_of(op, x, axis, dtype, ddof, device)
    backend, n = backend_of(t), t.shape[a]
    numbers = backend.ids(ids, t)
    if groups is not None and operator.index(groups) < 0:
        raise ValueError(f"there are no {groups} groups")
    if numbers.shape[0] != n:
        raise ValueError(f"{n} elements, but {numbers.shape[0]} ids")
    check_labels(t, numbers, (a, 0))
    count = max(0, backend.greatest_id(numbers) + 1) if groups is None else operator.index(groups)
    if groups is None:
        check_guess(count, n, math.prod(t.shape) // max(1, n) * sum(DTYPE[out].itemsize for _, out in values_of(p)))
    mask = None if where is None else backend.mask(where, numbers)
    if mask is not None:
        check_labels(t, mask, (a, 0))
    return gather(op, *backend.groups(p, t, a, numbers, count, mask, bool(skip_outside), bool(sorted), fill_value, call))
