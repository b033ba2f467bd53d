"""Reductions by operator's name, by segment and by group."""

from __future__ import annotations

import functools
import inspect
import math
import operator
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _core, _functions as f, _gpu
from ._arrays import DTYPE, FLOATS, Taken, is_odd, lazy, take
from ._operators import Operator
from ._reduce import (BLOCK, NO_IDENTITY, Results, asked_by, axes_of, brought, check_guess, checked_out, contiguous, filling, lacks,
                      mask_of, positions, problem, real, reduce as _reduce, reduce_into, store)
from ._results import Description, MinMax

_MANY_GROUPS = 1 << 20  # from which on, where elements are few, only groups that occur take the engine's memory
_FEW_GROUPS = 1024  # whose states take elements block by block in little longer than a call for all of them takes
_INDEX = ("argmin", "argmax", "count", "nans", "nonzero")
_NAMES = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "norm": "norm2", "count_nonzero": "nonzero"}


def problem_of(op: Any, kind: str, out: str | None = None, fast: bool = False, ddof: float = 0.0) -> _core.Problem:
    """The problem of an Operator, a name, several names, or names with commas between."""
    if isinstance(op, Operator):
        return op.problem("i8" if kind == "bool" else kind)
    return problem(names_of(op), kind, out, fast, ddof)


def _maker(op: Any, fast: bool, ddof: float) -> Callable[[str, str | None], _core.Problem]:
    """What makes the problem, once the elements' type is known."""
    return lambda kind, rounded: problem_of(op, kind, rounded, fast, real("ddof=", ddof))


def _label(op: Any) -> str:
    return repr(op) if isinstance(op, Operator) else ",".join(names_of(op))


def names_of(op: Any) -> tuple[str, ...]:
    if isinstance(op, str):
        op = op.split(",")
    if not isinstance(op, (tuple, list)):
        raise TypeError(f"{op!r} is neither an operator's name nor a tally.Operator")
    names: tuple[Any, ...] = tuple(_NAMES.get(name, name) for name in op)
    if any(not isinstance(name, str) for name in names):
        raise TypeError(f"{op!r} is neither an operator's name nor a tally.Operator")
    return names


def present(op: str, kind: str, array: np.ndarray[Any, Any], element: str) -> tuple[np.ndarray[Any, Any], str]:
    """A result's array with the dtype that the value has in Python."""
    if op in _INDEX:
        return array.view(np.int64), "i64"
    if op in ("any", "all") or (element == "bool" and op in ("min", "max", "and", "or", "xor", "user")):
        return array.view(np.bool_), "bool"
    return array, kind


def several(op: Any, values: list[Any]) -> Any:
    """One value as it is; several as what they are together."""
    if len(values) == 1:
        return values[0]
    names = () if isinstance(op, Operator) else names_of(op)
    if names == ("minmax",):
        return MinMax(*values)
    if names == ("describe",):
        return Description(*values)
    return tuple(values)


def _brought(what: list[tuple[str, str]], t: Taken, arrays: tuple[np.ndarray[Any, Any], ...],
             wanted: Any) -> list[tuple[np.ndarray[Any, Any], str]]:
    """The values as they are shown, and integers among them as the integer type that was asked for."""
    values = []
    for (name, kind), array in zip(what, arrays):
        shown, kind = present(name, kind, array, t.type)
        if wanted is not None and kind in FLOATS and wanted.kind in "iu":
            raise TypeError(f"a {name} is no integer: give a floating dtype")
        values.append((shown if kind == "bool" or wanted is None else brought(shown, wanted, name), kind))
    return values


# ---- Results of nothing ----------------------------------------------------------------------------------------------

def is_nothing(name: str, kind: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return which results have the value that the engine gives for no elements."""
    found: np.ndarray[Any, Any] = array == _nothing(name, kind)
    return found


@functools.lru_cache(maxsize=None)
def _nothing(name: str, kind: str) -> Any:
    if name in ("argmin", "argmax"):
        return np.iinfo(np.uint64).max
    if kind == "bf16":
        return 0x7F80 if name == "min" else 0xFF80
    if kind in FLOATS:
        return np.inf if name == "min" else -np.inf
    return np.iinfo(DTYPE[kind]).max if name == "min" else np.iinfo(DTYPE[kind]).min


def refuse_nothing(what: list[tuple[str, str]], arrays: tuple[np.ndarray[Any, Any], ...],
                   counts: Callable[[], np.ndarray[Any, Any]], fill: Any = None) -> None:
    """Raise where a result of no elements has no value, such as a minimum; or put `fill` there.

    counts() returns how many elements each result has, in an array that is broadcast to the results. It is called only if some
    result has the value that the engine gives for nothing.
    """
    if not any(name in NO_IDENTITY and is_nothing(name, kind, array).any() for (name, kind), array in zip(what, arrays)):
        return
    empty = np.asarray(counts()) == 0
    if not empty.any():
        return
    for (name, kind), array in zip(what, arrays):
        if name not in NO_IDENTITY:
            continue
        if fill is None:
            raise ValueError(f"result {int(np.argmax(empty))} has no elements, so there is no {name}")
        np.copyto(array, filling(fill, name, kind), where=empty)


def _all(op: Any, r: Results, t: Taken, axes: tuple[int, ...], keepdims: bool, wanted: Any) -> Any:
    values = []
    for shown, kind in _brought(r.what, t, r.arrays, wanted):
        values.append(f._finish(shown, kind, t, axes, keepdims, None))
    return several(op, values)


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
    if lazy(x) is not None:
        from . import dask
        return dask.call("reduce", inspect.signature(reduce).bind(op, lazy(x), axis, dtype=dtype, out=out, keepdims=keepdims,
                                                                  where=where, ddof=ddof, fast=fast, device=device, progress=progress))
    if _gpu.is_on_gpu(x):
        return several(op, _gpu.values(_maker(op, fast, ddof), _label(op), x, axis, dtype, keepdims, where, device, out))
    t = take(x)
    axes = axes_of(axis, t.array.ndim)
    if t.type not in DTYPE:
        raise TypeError("complex numbers are reduced by tally.sum, mean, norm, sumsq, dot and vecdot; or by their parts")
    out = checked_out(out)
    names = () if isinstance(op, Operator) else names_of(op)
    if len(names) == 1:
        dtype = asked_by(names[0], dtype, out, t.type)
    rounded, wanted = (None, None) if dtype is None else f._rounded(str(op), t, dtype)
    p = problem_of(op, t.type, rounded, fast, real("ddof=", ddof))
    if where is not None and any(name in ("argmin", "argmax") for name, _ in p.values()):
        raise TypeError("argmin and argmax take no where=")
    if out is not None and len(p.values()) > 1:
        raise ValueError("out= is for one value")
    if any(name in NO_IDENTITY for name, _ in p.values()):
        _check_lengths(p.values(), t.array.shape, axes, where)
    if len(p.values()) == 1:
        def shown(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            return _brought(p.values(), t, (array,), wanted)[0][0]

        (name, kind), = p.values()
        array, written = reduce_into(p, t, axes, out, keepdims, shown, where=where, device=device, progress=progress)
        return f._finish(array, present(name, kind, np.empty(0, DTYPE[kind]), t.type)[1], t, axes, keepdims, out, written, name)
    r = _reduce(p, t, axes, where=where, device=device, progress=progress)
    return _all(op, r, t, axes, keepdims, wanted)


def _check_lengths(what: list[tuple[str, str]], shape: tuple[int, ...], axes: tuple[int, ...], where: Any) -> None:
    """Raise if some result would have no elements and therefore no value."""
    mask = mask_of(where, shape)
    if lacks(shape, axes) if mask is None else not mask.any(axis=axes).all():
        name = next(name for name, _ in what if name in NO_IDENTITY)
        raise ValueError(f"a result of no elements has no {name}")


def _rows(t: Taken, axis: int) -> tuple[np.ndarray[Any, Any], int]:
    """The array with an axis moved behind all others, and where it was."""
    (a,) = axes_of(operator.index(axis), t.array.ndim) or (0,)
    if t.array.ndim == 0:
        raise ValueError("segments and groups are of an array, not of a number")
    if t.type not in DTYPE:
        raise TypeError("complex numbers have no segments and groups here; reduce their parts")
    return np.moveaxis(t.array, a, -1), a


def _row(array: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any]:
    return contiguous(array, DTYPE[kind])


def lies_in_order(array: np.ndarray[Any, Any]) -> bool:
    """Whether the engine reads a row where it lies."""
    return array.flags.c_contiguous and array.dtype.isnative and not is_odd(array)


def _by_rows(op: Any, p: _core.Problem, t: Taken, rows: np.ndarray[Any, Any], a: int, count: int, wanted: Any, call: Any,
             counts: Callable[[], np.ndarray[Any, Any]], fill: Any, among: Occurring | None = None) -> Any:
    """Segments or groups along axis `a`: call(problem, row, results) for each of the rows that lie along it. `among`: the only
    groups with elements, of which the results are."""
    what = p.values()
    if fill is not None and len(what) == 1 and what[0][0] in ("argmin", "argmax"):
        # Of several values an index of nothing is no error.
        p = problem_of((what[0][0], "count"), t.type)
    here = count if among is None else among.found.size
    arrays = [empty((*rows.shape[:-1], here), DTYPE[kind]) for _, kind in p.values()]
    for at in positions(rows.shape[:-1]):
        call(p, rows[at], tuple(array[at] for array in arrays))
    if among is None:
        refuse_nothing(what, tuple(arrays), counts, fill)
    else:
        arrays = _spread(p, what, arrays, among.found, count, t.type, fill)
    values = []
    for shown, kind in _brought(what, t, tuple(arrays[:len(what)]), wanted):
        values.append(t.give(np.moveaxis(shown, -1, a), kind))
    return several(op, values)


def _spread(p: _core.Problem, what: list[tuple[str, str]], arrays: list[np.ndarray[Any, Any]], found: np.ndarray[Any, Any],
            count: int, kind: str, fill: Any) -> list[np.ndarray[Any, Any]]:
    """Return the results of all groups: those of `found` from `arrays`, and for all others the values of nothing."""
    lone = next((name for name, _ in what if name in NO_IDENTITY), None)
    if lone is not None and fill is None:
        missing = int(np.argmax(found[:count] != np.arange(found.size))) if (found != np.arange(found.size)).any() else found.size
        raise ValueError(f"result {missing} has no elements, so there is no {lone}")
    nothing = tuple(np.empty(1, DTYPE[out]) for _, out in p.values())
    row = np.empty(0, DTYPE[kind])
    p.groups(row, None, None, np.empty(0, np.int64), "i64", 1, False, False, nothing, None)
    wide = []
    for (name, out), array, value in zip(what, arrays, nothing):
        all_of_them = _full((*array.shape[:-1], count), filling(fill, name, out) if name in NO_IDENTITY else value[0])
        all_of_them[..., found] = array
        wide.append(all_of_them)
    return wide


def _full(shape: tuple[int, ...], value: Any) -> np.ndarray[Any, Any]:
    """An array of one number; of zeros only what is written takes memory. (In pieces, between which Ctrl-C is heard.)"""
    number = np.asarray(value)
    if not any(number.tobytes()):
        try:
            return np.zeros(shape, number.dtype)
        except (MemoryError, ValueError):
            return empty(shape, number.dtype)  # which says how much there is not
    array = empty(shape, number.dtype)
    flat = array.reshape(-1)
    for at in range(0, flat.size, 1 << 20):
        flat[at:at + (1 << 20)] = number
    return array


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array for results; where there is no memory for it, with words that say what for."""
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError):
        size = math.prod(shape) * dtype.itemsize
        raise MemoryError(f"no memory for {math.prod(shape)} results, which need {size / 1e9:.1f} GB") from None


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
    if _gpu.is_on_gpu(x):
        return several(op, _gpu.segment(_maker(op, False, ddof), _label(op), x, offsets, axis, dtype, fill_value, device))
    t = take(x)
    rounded, wanted = (None, None) if dtype is None else f._rounded(str(op), t, dtype)
    rows, a = _rows(t, axis)
    p = problem_of(op, t.type, rounded, False, real("ddof=", ddof))
    places: Any
    if isinstance(offsets, (int, np.integer)):
        places = count = int(offsets)
        if count <= 0 or rows.shape[-1] % count:
            raise ValueError(f"{rows.shape[-1]} elements are not {count} segments of one length")
    else:
        places = np.asarray(take(offsets).array)
        if places.ndim != 1 or places.size == 0 or places.dtype.kind not in "iu":
            raise TypeError("offsets are an array of integers of one dimension, one more than there are segments")
        if places.dtype.itemsize not in (4, 8) or places.dtype.kind == "u" or not places.dtype.isnative:
            places = places.astype(np.int64)
        places, count = np.ascontiguousarray(places), places.size - 1

    def call(p: _core.Problem, row: np.ndarray[Any, Any], out: tuple[np.ndarray[Any, Any], ...]) -> None:
        if lies_in_order(row) or not _segments_by_blocks(p, row, t.type, places, out, device):
            p.segments(_row(row, t.type), None, None, places, out, device)

    def counts() -> np.ndarray[Any, Any]:
        return np.full(count, rows.shape[-1] // count) if isinstance(places, int) else np.diff(places)

    return _by_rows(op, p, t, rows, a, count, wanted, call, counts, fill_value)


def _segments_by_blocks(p: _core.Problem, row: np.ndarray[Any, Any], kind: str, offsets: Any,
                        outs: tuple[np.ndarray[Any, Any], ...], device: str | None) -> bool:
    """The segments of a row that does not lie in order, of which blocks are copied: as many segments as a block has room for,
    or a part of one that has none. Returns False where offsets are wrong, or a value cannot be had: who reduces a copy of
    the row will say which."""
    if isinstance(offsets, int):
        offsets = np.arange(offsets + 1, dtype=np.int64) * (row.size // offsets)
    if offsets[0] < 0 or offsets[-1] > row.size or (offsets[1:] < offsets[:-1]).any():
        return False
    most, at = BLOCK // DTYPE[kind].itemsize, 0
    try:
        while at < offsets.size - 1:
            start = offsets[at]
            end = max(at + 1, int(np.searchsorted(offsets, start + most, "right")) - 1)
            if offsets[end] - start <= most:
                p.segments(_row(row[start:offsets[end]], kind), None, None, offsets[at:end + 1] - start,
                           tuple(out[at:end] for out in outs), device)
            else:
                state = _core.State(p)
                for first in range(int(start), int(offsets[end]), most):
                    state.feed(_row(row[first:min(first + most, int(offsets[end]))], kind), None, device)
                for out, what, value in zip(outs, p.values(), state.value()):
                    store(out[at:end], what, value)
            at = end
    except (ValueError, OverflowError):
        return False
    return True


def ids_of(ids: Any, groups: int | None) -> tuple[np.ndarray[Any, Any], str, int]:
    """Ids as they lie, their type, and how many groups there are."""
    try:
        taken = take(ids)
    except TypeError as error:
        raise TypeError(f"{error}; numpy.unique(ids, return_inverse=True)[1] makes ids of anything") from None
    array = taken.array
    if array.dtype.kind not in "iub" or taken.type == "bf16":
        raise TypeError(f"ids are integers from 0 on, one an element, not {array.dtype}; "
                        "numpy.unique(ids, return_inverse=True)[1] makes them of anything")
    if array.ndim != 1:
        raise TypeError(f"ids have one dimension, one id for each element along the axis, not {array.ndim}: for elements of all "
                        "dimensions give x.ravel() and ids.ravel()")
    if groups is None:
        groups = max(0, int(take_max(array)) + 1) if array.size else 0
    elif operator.index(groups) < 0:
        raise ValueError(f"there are no {groups} groups")
    kind = "u8" if taken.type == "bool" else taken.type
    return array, kind, operator.index(groups)


class Occurring(NamedTuple):
    """The groups that have elements, among many that have none."""

    found: np.ndarray[Any, Any]  # their ids, in order
    numbers: np.ndarray[Any, Any]  # for each element the place of its group in `found`
    mask: np.ndarray[Any, Any] | None


def occurring(numbers: np.ndarray[Any, Any], count: int, mask: np.ndarray[Any, Any] | None, skip_outside: bool) -> Occurring:
    """Number the groups that occur. An id outside of [0, count) is an error, or its element is masked."""
    inside = (numbers >= 0) & (numbers < count)
    if not skip_outside:
        outside = ~inside if mask is None else ~inside & mask
        if outside.any():
            at = int(outside.argmax())
            raise ValueError(f"id {at} is {numbers[at]}, outside of the {count} groups")
    kept = inside if mask is None else inside & mask
    found = np.unique(numbers[kept])
    places = np.searchsorted(found, numbers)
    places[~kept] = 0
    return Occurring(found, places, None if kept.all() else kept)


def in_order(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Ids, or a mask, as the engine reads them."""
    return contiguous(array, array.dtype.newbyteorder("="))


def groups_by_blocks(groups: _core.Groups, row: np.ndarray[Any, Any], kind: str, mask: np.ndarray[Any, Any] | None,
                     numbers: np.ndarray[Any, Any], ids_kind: str, skip: bool, device: str | None) -> None:
    """Adds the elements of a row to groups; of what does not lie in order blocks are copied."""
    most = BLOCK // DTYPE[kind].itemsize
    for at in range(0, row.size, most):
        cut = slice(at, at + most)
        groups.feed(_row(row[cut], kind), None, None if mask is None else in_order(mask[cut]), in_order(numbers[cut]), ids_kind,
                    skip, device)


def take_max(array: np.ndarray[Any, Any]) -> Any:
    return f.PUBLIC["max"](array)


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
    if _gpu.is_on_gpu(x):
        return several(op, _gpu.group(_maker(op, False, ddof), _label(op), x, ids, groups, axis, dtype, where, skip_outside,
                                      sorted, fill_value, device))
    t = take(x)
    rounded, wanted = (None, None) if dtype is None else f._rounded(str(op), t, dtype)
    rows, a = _rows(t, axis)
    p = problem_of(op, t.type, rounded, False, real("ddof=", ddof))
    numbers, kind, count = ids_of(ids, groups)
    if numbers.size != rows.shape[-1]:
        raise ValueError(f"{rows.shape[-1]} elements, but {numbers.size} ids")
    mask = None
    if where is not None:
        mask = mask_of(where, numbers.shape)
    if groups is None:
        check_guess(count, numbers.size, math.prod(rows.shape[:-1]) * sum(DTYPE[out].itemsize for _, out in p.values()))
    among = None
    if count > _MANY_GROUPS and count > 4 * numbers.size:
        among = occurring(numbers, count, mask, skip_outside)
        numbers, kind, mask = among.numbers, "i64", among.mask
    here = count if among is None else among.found.size

    def call(p: _core.Problem, row: np.ndarray[Any, Any], out: tuple[np.ndarray[Any, Any], ...]) -> None:
        lies = lies_in_order(row) and lies_in_order(numbers) and (mask is None or mask.flags.c_contiguous)
        orders = any(name in ("argmin", "argmax") for name, _ in p.values())  # (all elements at once are sorted for these)
        if (orders or not lies) and not sorted and here <= _FEW_GROUPS and row.nbytes > BLOCK:
            groups = _core.Groups(p, here)
            try:
                groups_by_blocks(groups, row, t.type, mask, numbers, kind, skip_outside, device)
                groups.values(out)
                return
            except (ValueError, OverflowError):  # which the call below raises, too, with the right numbers in its text
                pass
        p.groups(_row(row, t.type), None, None if mask is None else in_order(mask), in_order(numbers), kind, here, skip_outside,
                 sorted, out, device)

    def counts() -> np.ndarray[Any, Any]:
        elements: np.ndarray[Any, Any] = np.empty(here, np.uint64)
        ids = in_order(numbers)
        problem(("count",), kind).groups(ids, None, None if mask is None else in_order(mask), ids, kind, here, skip_outside, False,
                                         (elements,), device)
        return elements

    return _by_rows(op, p, t, rows, a, count, wanted, call, counts, fill_value, among)
