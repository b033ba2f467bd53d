"""One reduction of one array along some axes: directly, or by blocks of bounded size where the engine cannot read
the elements as they lie.

A block is a copy of at most BLOCK bytes: of elements in another byte order or type, of strides that are no multiples
of an element, with an initial value beside them. Results of a block do not depend on other blocks; where one result
alone has more elements than a block holds, they are fed to a state.
"""

from __future__ import annotations

import functools
import math
import operator
import sys
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from . import _core
from ._arrays import DTYPE, FLOATS, Taken, is_odd, plain, take, type_of

BLOCK = 1 << 21
AxisError: type[Exception] = getattr(np, "exceptions", np).AxisError


@functools.lru_cache(maxsize=512)
def problem(ops: tuple[str, ...], kind: str, out: str | None = None, fast: bool = False, ddof: float = 0.0) -> _core.Problem:
    """A problem of operators by name; `bool` is reduced as an i8."""
    return _core.Problem(ops, "i8" if kind == "bool" else kind, out, fast, ddof, None)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that are meant, from 0 on; errors as NumPy's."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, bool):
        raise TypeError("an integer is required for the axis")
    if isinstance(axis, (tuple, list)):
        if isinstance(axis, list):
            raise TypeError("'list' object cannot be interpreted as an integer")
        wanted = [operator.index(a) for a in axis]
    else:
        wanted = [operator.index(axis)]
        if ndim == 0 and wanted[0] in (0, -1):
            return ()
    found = []
    for a in wanted:
        if not -ndim <= a < ndim:
            raise AxisError(a, ndim)
        found.append(a % ndim)
    if len(set(found)) != len(found):
        raise ValueError("duplicate value in 'axis'")
    return tuple(found)


def real(name: str, value: Any) -> float:
    """A number that an argument is, as a float."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} is a number, not {value!r}")
    return float(value)


def check_extreme(name: str, shape: Sequence[int], axes: Sequence[int], initial: Any, where: Any) -> None:
    """NumPy's rule that there is no least of nothing."""
    if initial is not None and initial is not np._NoValue:
        return
    if where is not None and where is not True:
        raise ValueError(f"reduction operation '{name}' does not have an identity, so to use a where mask one has to "
                         "specify 'initial'")
    if lacks(shape, axes):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")


def check_index(op: str, shape: Sequence[int], axes: Sequence[int]) -> None:
    """The same of its index."""
    if lacks(shape, axes):
        raise ValueError(f"attempt to get {op} of an empty sequence")


def lacks(shape: Sequence[int], axes: Sequence[int]) -> bool:
    """Whether there are results, and none of them has elements."""
    return any(shape[d] == 0 for d in axes) and all(n > 0 for d, n in enumerate(shape) if d not in axes)


def check_initial(element: str, initial: Any) -> Any:
    """An initial value that elements of a type can have; None for none."""
    if initial is None or initial is np._NoValue:
        return None
    dtype = DTYPE[element]
    if isinstance(initial, int) and not -1 << 63 <= initial < 1 << 64:  # (for NumPy an object)
        if element not in FLOATS:
            raise OverflowError(f"initial={initial!r} does not fit {dtype}, the elements' type")
        return float(initial)
    value = take(initial).array if not isinstance(initial, (int, float)) else np.asarray(initial)
    if value.ndim != 0:
        raise ValueError("initial= is one number")
    if value.dtype.kind not in "biuf":
        raise TypeError(f"initial= is a real number, not {initial!r}")
    if element not in FLOATS:
        if value.dtype.kind == "f":
            raise TypeError(f"initial={initial!r} is no {dtype}, as the elements are")
        if element != "bool" and not np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max:
            raise OverflowError(f"initial={initial!r} does not fit {dtype}, the elements' type")
    return initial


def with_initial(op: str, kind: str, rounded: str | None, initial: Any) -> tuple[str, str | None, Any]:
    """What the elements of a sum or a product are brought to, the result type, and the initial value: a product is
    rounded at every step, in the result's type; a sum's elements are made wide enough for the initial value."""
    if op == "prod" and rounded is not None:
        kind, rounded = rounded, None
    if initial is None or initial is np._NoValue:
        return kind, rounded, None
    if not isinstance(initial, (int, float)) and take(initial).array.ndim != 0:
        raise ValueError("initial= is one number")
    if isinstance(initial, (int, np.integer)) and kind in FLOATS:
        initial = check_initial("f64", initial)
        if op == "sum" and float(initial) != int(initial):
            raise TypeError(f"initial={initial} is an integer that float64 does not hold: convert it first")
    if kind not in FLOATS and op in ("sum", "prod"):
        kind = "u64" if kind[0] == "u" else "i64"
    elif kind in ("f16", "bf16", "f32") and op != "prod" and \
            (kind == "bf16" or np.asarray(initial, DTYPE[kind]) != np.asarray(initial)):
        kind, rounded = "f64", rounded or kind
    return kind, rounded, check_initial(kind, initial)


def few(shape: Sequence[int], axes: Sequence[int], where: Any, ddof: float, result: np.ndarray[Any, Any] | None) -> bool:
    """Whether some result has no more than `ddof` elements. Such a result is NaN: with a mask, elements are counted only
    where `result` has one."""
    if where is None or where is True:
        return math.prod(shape[d] for d in axes) <= ddof
    if result is not None and not np.isnan(result).any():
        return False
    mask = mask_of(where, tuple(shape))
    assert mask is not None
    return bool((mask.sum(axis=tuple(axes)) <= ddof).any())


def mask_of(where: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any] | None:
    """where= as bytes of the array's shape; None for all of it."""
    if where is None or where is True:
        return None
    mask = where if isinstance(where, bool) else take(where).array
    if not isinstance(mask, bool) and mask.dtype != np.bool_:
        raise TypeError(f"where= is an array of bool, not of {mask.dtype}")
    return np.broadcast_to(mask, shape)


def rows_of(array: np.ndarray[Any, Any], axes: Sequence[int]) -> np.ndarray[Any, Any]:
    """A view whose reduced axes lie behind the others, in their order."""
    kept = [d for d in range(array.ndim) if d not in axes]
    return array.transpose([*kept, *sorted(axes)])


#: What only asks of an element whether it is 0.
_TRUTHS = ("nonzero", "any", "all", "count")
_CHOICES = ("min", "max", "and", "or", "xor")


class Results:
    """Where the values of a problem go: an array each, of the reduced shape with axes of length 1 kept."""

    def __init__(self, p: _core.Problem, shape: Sequence[int], into: np.ndarray[Any, Any] | None = None):
        self.what = p.values()
        self.types = [kind for _, kind in self.what]
        self.arrays = tuple(np.empty(shape, DTYPE[kind]) for kind in self.types) if into is None else (into,)


def contiguous(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype == np.bool_ and is_odd(array):
        return np.asarray(np.not_equal(array.view(np.uint8), 0, order="C"))
    return np.asarray(array, dtype, order="C")  # (ascontiguousarray gives a number a dimension)


def pieces(array: np.ndarray[Any, Any], most: int) -> Iterator[tuple[slice | int, ...]]:
    """Indices of parts of at most `most` elements, which in their order are the array's C order."""
    if array.size <= most:
        yield ()
        return
    if array.ndim == 0 or array.size == 0:
        yield ()
        return
    inner = array.size // array.shape[0]
    step = max(1, most // max(1, inner))
    for at in range(0, array.shape[0], step):
        part = array[at:at + step]
        if part.size <= most:
            yield (slice(at, at + step),)
        else:
            for rest in pieces(array[at], most):
                yield (at, *rest)


def positions(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The indices of an array's elements in C order (numpy.ndindex keeps all numbers of each dimension)."""
    if not shape:
        yield ()
        return
    for i in range(shape[0]):
        for rest in positions(shape[1:]):
            yield (i, *rest)


def store(out: np.ndarray[Any, Any], what: tuple[str, str], value: Any) -> None:
    """Puts a number into a result; a bf16 as its bits, an index that there is not as -1."""
    op, kind = what
    if value is None and op in ("argmin", "argmax"):
        out.view(np.int64)[...] = -1
    elif value is None:
        raise OverflowError(f"the exact {op} does not fit {kind}")
    elif kind == "bf16":
        out[...] = np.uint16(np.float32(value).view(np.uint32) >> 16)
    else:
        out[...] = value


class Blocks:
    """The way by copies of bounded size."""

    def __init__(self, p: _core.Problem, element: str, axes: tuple[int, ...], device: str | None, initial: Any):
        self.p, self.axes, self.device = p, axes, device
        self.element = element
        self.dtype = DTYPE[element] if element != "bool" else np.dtype("?")
        self.most = BLOCK // self.dtype.itemsize
        self.initial = None if initial is None else np.asarray(initial, self.dtype).reshape(1)

    def run(self, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any] | None, mask: np.ndarray[Any, Any] | None,
            outs: tuple[np.ndarray[Any, Any], ...]) -> None:
        if x.size <= self.most:
            self.block(x, y, mask, outs)
            return
        kept = [d for d in range(x.ndim) if d not in self.axes and x.shape[d] > 1]
        if not kept:
            self.single(x, y, mask, outs)
            return
        d = max(kept, key=lambda d: x.shape[d])
        results = x.shape[d]
        step = max(1, self.most // max(1, x.size // results))
        for at in range(0, results, step):
            cut = (slice(None),) * d + (slice(at, at + step),)
            self.run(x[cut], None if y is None else y[cut], None if mask is None else mask[cut],
                     tuple(o[cut] for o in outs))

    def block(self, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any] | None, mask: np.ndarray[Any, Any] | None,
              outs: tuple[np.ndarray[Any, Any], ...]) -> None:
        axes = self.axes
        copies = [contiguous(x, self.dtype), None if y is None else contiguous(y, self.dtype)]
        if self.initial is not None or x.ndim > 16:
            # As rows: the reduced elements of each result side by side, the initial value before them.
            kept = [d for d in range(x.ndim) if d not in axes]
            order = kept + sorted(axes)
            rows = int(np.prod([x.shape[d] for d in kept], dtype=int))
            length = int(np.prod([x.shape[d] for d in axes], dtype=int))

            def as_rows(a: np.ndarray[Any, Any], first: Any) -> np.ndarray[Any, Any]:
                body = a.transpose(order).reshape(rows, length)
                if self.initial is None:
                    return np.ascontiguousarray(body)
                return np.concatenate([np.broadcast_to(first, (rows, 1)), body], axis=1)

            assert self.initial is None or y is None
            copies = [None if c is None else as_rows(c, self.initial) for c in copies]
            if mask is not None:
                mask = as_rows(mask, True)
            results = tuple(np.empty((rows, 1), o.dtype) for o in outs)
            self.p.axes(copies[0], copies[1], mask, 2, results, self.device)
            for o, r in zip(outs, results):
                o[...] = r.reshape(o.shape)
            return
        self.p.axes(copies[0], copies[1], mask, bits_of(axes), outs, self.device)

    def single(self, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any] | None, mask: np.ndarray[Any, Any] | None,
               outs: tuple[np.ndarray[Any, Any], ...]) -> None:
        state = _core.State(self.p)
        if self.initial is not None:
            state.feed(self.initial, None, self.device)
        for at in pieces(x, self.most):
            a = contiguous(x[at], self.dtype)
            b = None if y is None else contiguous(y[at], self.dtype)
            if mask is not None:
                chosen = mask[at]
                a = a[chosen]
                b = None if b is None else b[chosen]
            state.feed(a, b, self.device)
        for o, what, value in zip(outs, self.p.values(), state.value()):
            store(o, what, value)


def bits_of(axes: tuple[int, ...]) -> int:
    bits = 0
    for a in axes:
        bits |= 1 << a
    return bits


class Progress:
    """A line on standard error that says how far a call has come; nothing where that is no terminal."""

    def __init__(self, wanted: bool, total: int):
        self.total, self.done, self.shown = max(1, total), 0, -1
        self.on = wanted and sys.stderr.isatty()

    def add(self, n: int) -> None:
        self.done += n
        percent = 100 * self.done // self.total
        if self.on and percent != self.shown:
            self.shown = percent
            sys.stderr.write(f"\r{percent:3d}%")
            sys.stderr.flush()

    def end(self) -> None:
        if self.on and self.shown >= 0:
            sys.stderr.write("\r    \r")
            sys.stderr.flush()


def _with_progress(p: _core.Problem, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any] | None,
                   mask: np.ndarray[Any, Any] | None, axes: tuple[int, ...], results: Results, device: str | None,
                   blocks: Blocks) -> None:
    """The same in parts that take some hundredths of a second each."""
    progress = Progress(True, x.size)
    most = 1 << 23
    kept = [d for d in range(x.ndim) if d not in axes and x.shape[d] > 1]
    try:
        if not kept:
            blocks.most = min(most, blocks.most * 8)
            state = _core.State(p)
            for at in pieces(x, blocks.most):
                part = contiguous(x[at], blocks.dtype)
                other = None if y is None else contiguous(y[at], blocks.dtype)
                if mask is not None:
                    part, other = part[mask[at]], None if other is None else other[mask[at]]
                state.feed(part, other, device)
                progress.add(x[at].size)
            for o, what, value in zip(results.arrays, results.what, state.value()):
                store(o, what, value)
            return
        d = max(kept, key=lambda d: x.shape[d])
        step = max(1, most // max(1, x.size // x.shape[d]))
        for at_ in range(0, x.shape[d], step):
            cut = (slice(None),) * d + (slice(at_, at_ + step),)
            p.axes(x[cut], None if y is None else y[cut], None if mask is None else mask[cut], bits_of(axes),
                   tuple(o[cut] for o in results.arrays), device)
            progress.add(x[cut].size)
    finally:
        progress.end()


def reduce(p: _core.Problem, t: Taken, axes: tuple[int, ...], *, y: Taken | None = None, where: Any = None,
           initial: Any = None, element: str | None = None, device: str | None = None,
           progress: bool = False, into: np.ndarray[Any, Any] | None = None) -> Results:
    """The values of a problem along axes, in arrays that keep these with length 1. `element`: the type that the
    elements are brought to first, where it is not their own. `into`: the array for the only value."""
    x = t.array
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    results = Results(p, shape, into)
    element = element or t.type
    if initial is not None and element == t.type != "bool" and all(op in _CHOICES for op, _ in p.values()):
        # Of values that are elements themselves the initial one can come last: one more row for each result.
        rest = reduce(p, t, axes, where=where, device=device, progress=progress).arrays[0]
        rows = np.empty((2, rest.size), rest.dtype)
        rows[0], rows[1] = initial, rest.ravel()
        last = np.empty((1, rest.size), rest.dtype)
        p.axes(rows, None, None, 1, (last,), device)
        results.arrays[0][...] = last.reshape(shape)
        return results
    mask = mask_of(where, x.shape)
    other = None if y is None else y.array
    blocks = Blocks(p, element, axes, device, initial)
    direct = t.direct and initial is None and element == t.type and (y is None or (y.direct and y.type == element))
    if direct and element == "bool" and any(op not in _TRUTHS for op, _ in p.values()):
        direct = not is_odd(x) and (other is None or not is_odd(other))
    if progress and direct and x.size > 1 << 23:
        _with_progress(p, x, other, mask, axes, results, device, blocks)
    elif not direct:
        blocks.run(x, other, mask, results.arrays)
    elif (len(axes) == x.ndim and mask is None and x.flags.c_contiguous and
          (other is None or other.flags.c_contiguous)):
        for o, what, value in zip(results.arrays, results.what, p.reduce(x, other, device)):
            store(o, what, value)
    else:
        p.axes(x, other, mask, bits_of(axes), results.arrays, device)
    return results


# ---- Results of nothing, and of many groups --------------------------------------------------------------------------

#: What has no value without elements.
NO_IDENTITY = ("min", "max", "argmin", "argmax")


_MOST_GUESSED = 1 << 30  # bytes of results that a greatest id may ask for, where few groups can occur


def filling(fill: Any, name: str, kind: str) -> Any:
    """fill_value= as an element of results, which it must be."""
    dtype = np.dtype(np.int64) if name in ("argmin", "argmax") else DTYPE[kind]
    value = take(fill).array
    if value.ndim != 0 or kind == "bf16" or value.dtype.kind not in ("biu" if dtype.kind in "iu" else "biuf"):
        raise TypeError(f"fill_value={fill!r} is no {dtype}, as the results of {name} are")
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max:
        raise OverflowError(f"fill_value={fill!r} does not fit {dtype}, the type of {name}")
    return value.astype(dtype).view(np.uint64) if name in ("argmin", "argmax") else value.astype(dtype)


def check_guess(count: int, n: int, size: int) -> None:
    """Refuses to make results for as many groups as a greatest id says, where nearly all have no elements."""
    if count * size > _MOST_GUESSED and count > 64 * n:
        raise MemoryError(f"the greatest id is {count - 1}: results for {count} groups need {count * size / 1e9:.1f} GB, and {n} "
                          "elements fill few of them. numpy.unique(ids, return_inverse=True) numbers the groups that occur; "
                          "groups= says that so many are meant")


# ---- The way out -----------------------------------------------------------------------------------------------------

#: What is built on exact sums, so that the value can be rounded to any floating type.
ROUNDED = ("sum", "mean", "var", "std", "norm1", "norm2", "sumsq", "dot")


def checked_out(out: Any) -> np.ndarray[Any, Any] | None:
    """The array that out= is, or a tuple of it; None for none."""
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if out is None:
        return None
    if not isinstance(out, np.ndarray):
        raise TypeError(f"return arrays must be of ArrayType, not {type(out).__name__}")
    if type(out) is not np.ndarray:
        if isinstance(out, np.ma.MaskedArray):
            raise TypeError("out= is a masked array, whose mask a result would not change: give its data")
        plain(out)
    return out


def asked_by(op: str, dtype: Any, out: np.ndarray[Any, Any] | None, element: str) -> Any:
    """Return the dtype that the exact value is rounded to, once: out='s if it holds less than the result's type, else dtype=."""
    if out is None or op not in ROUNDED or (out.dtype.kind not in "fc" and out.dtype.name != "bfloat16"):
        return dtype
    try:
        kind = type_of(out.dtype)
    except TypeError:  # (longdouble, which holds all results)
        return dtype
    if element in ("c64", "c128") and op in ("sum", "mean") and kind not in ("c64", "c128"):
        return dtype  # (which is refused when the result is written)
    if dtype is None and element not in FLOATS and element[0] != "c" and op in ("sum", "sumsq", "norm1", "dot"):
        return out.dtype  # of an exact integer
    if dtype is not None and np.dtype(dtype).kind not in "fc" and np.dtype(dtype).name != "bfloat16":
        return dtype
    result = type_of(np.dtype(dtype)) if dtype is not None else element if element in FLOATS or element[0] == "c" else "f64"
    return dtype if _DIGITS[result] <= _DIGITS[kind] and (result, kind) not in (("bf16", "f16"), ("f16", "bf16")) else out.dtype


#: Ranks of types: each holds the numbers of lower ranks. f16 and bf16 do not hold each other's.
_DIGITS = {"f16": 1, "bf16": 1, "f32": 2, "c64": 2, "f64": 3, "c128": 3}


def brought(array: np.ndarray[Any, Any], dtype: np.dtype[Any], op: str) -> np.ndarray[Any, Any]:
    """Convert results to another dtype. An integer that does not fit it is an error; reals may become complex numbers."""
    if array.dtype == dtype:
        return array
    if array.size and dtype.kind in "iu" and array.dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise OverflowError(f"the exact {op} does not fit {dtype}")
    return array.astype(dtype)


def check_cast(from_: np.dtype[Any], to: np.dtype[Any]) -> None:
    if not np.can_cast(from_, to, "same_kind"):
        raise TypeError(f"cannot cast the result from {from_!r} to {to!r} with casting rule 'same_kind'")


def _lies_apart(out: np.ndarray[Any, Any], *arrays: Any) -> bool:
    return not any(isinstance(a, np.ndarray) and np.may_share_memory(out, a) for a in arrays)


def reduce_into(p: _core.Problem, t: Taken, axes: tuple[int, ...], out: np.ndarray[Any, Any] | None, keepdims: bool,
                shown: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]], *, y: Taken | None = None, where: Any = None,
                **more: Any) -> tuple[np.ndarray[Any, Any], bool]:
    """The only value of a problem along axes, kept with length 1, as `shown` makes it of the engine's results; and whether it
    is in `out` already. That, or an array of another dtype than the engine's, is written where the results lie if it can be,
    else in blocks. (What cannot be written to so is left to who copies, and says why it cannot.)"""
    x, kind = t.array, p.values()[0][1]
    raw = np.zeros(1, DTYPE[kind])
    like = shown(raw)
    is_view = np.may_share_memory(like, raw)
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    into = None
    if out is None and not is_view:
        into = np.empty(shape, like.dtype)
    elif out is not None and out.flags.writeable and kind != "bf16" and \
            out.shape == (shape if keepdims else tuple(n for d, n in enumerate(x.shape) if d not in axes)) and \
            np.can_cast(like.dtype, out.dtype, "same_kind") and _lies_apart(out, x, where, None if y is None else y.array):
        into = out if keepdims else np.expand_dims(out, axes)
    if into is None or not into.size:
        return shown(reduce(p, t, axes, y=y, where=where, **more).arrays[0]), False
    if into.dtype == like.dtype and is_view and into.flags.aligned and not any(s % raw.itemsize for s in into.strides):
        reduce(p, t, axes, y=y, where=where, **more, into=into.view(raw.dtype))
        return into, out is not None
    mask, d = mask_of(where, x.shape), max(range(x.ndim), key=lambda d: shape[d], default=0)
    results = shape[d] if shape else 1
    step = max(1, BLOCK // raw.itemsize // max(1, into.size // results))
    for at in range(0, results, step):
        cut = (slice(None),) * d + (slice(at, at + step),) if step < results else ()
        part = reduce(p, t._replace(array=x[cut]), axes, y=None if y is None else y._replace(array=y.array[cut]),
                      where=None if mask is None else mask[cut], **more)
        into[cut] = brought(shown(part.arrays[0]), into.dtype, p.values()[0][0])
    return into, out is not None
