"""The backend of arrays in the host's memory: read where they lie, or by blocks of bounded size where the engine cannot.

A block is a copy of at most BLOCK bytes: of elements in another byte order or type, of strides that are no multiples
of an element, with an initial value beside them. Results of a block do not depend on other blocks; where one result
alone has more elements than a block holds, they are fed to a state.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from . import _core
from ._arguments import CHOICES, NO_IDENTITY, OF_PARTS, TRUTHS, Call, bits_of, complex_of, fill_element, kept_shape, problem, \
    result_shape, shown_type, values_of, way_of
from ._arrays import DTYPE, FLOATS, MOST_DIMS, PART, Operand, as_host_array, as_reals, beside_axis, cast_exactly, float64_holds, \
    from_numpy, has_other_bytes, holds_all, Layouts, pairs, plain, type_of
from ._backend import Backend, products

Array = np.ndarray[Any, Any]
BLOCK = 1 << 21
_BETWEEN_REPORTS = 1 << 23  # elements that are reduced between two reports of progress
_MANY_GROUPS = 1 << 20  # of more groups than this, if elements are few, the engine gets only those that occur
FEW_GROUPS = 1024  # up to so many groups, feeding block by block takes little longer than one call for all elements


# ---- Arrays ----------------------------------------------------------------------------------------------------------


def rows_of(array: Array, axes: Sequence[int]) -> Array:
    """A view whose reduced axes lie behind the others, in their order."""
    if len(axes) == array.ndim:
        return array
    return array.transpose([*(d for d in range(array.ndim) if d not in axes), *sorted(axes)])


def contiguous(array: Array, dtype: np.dtype[Any]) -> Array:
    if dtype == np.bool_ and has_other_bytes(array):
        return np.asarray(np.not_equal(array.view(np.uint8), 0, order="C"))
    return np.asarray(array, dtype, order="C")  # (ascontiguousarray gives a number a dimension)


def copied(array: Array | None, dtype: np.dtype[Any], is_conjugated: bool) -> Any:
    copy = None if array is None else contiguous(array, dtype)
    return copy if copy is None or not is_conjugated else np.conj(copy)


def is_in_order(array: Array) -> bool:
    """Return whether the engine reads a row where it lies."""
    return array.flags.c_contiguous and array.dtype.isnative and not has_other_bytes(array)


def in_order(array: Array) -> Array:
    """Returns ids or a mask as the engine reads them: contiguous, and in native byte order."""
    return contiguous(array, array.dtype.newbyteorder("="))


def chunks(array: Array, most: int, depth: int = -1) -> Iterator[tuple[Any, ...]]:
    """Yields the indices of parts of at most `most` elements, in C order. Parts are larger if cutting only the first `depth`
    dimensions (-1: all) makes no smaller ones. Dimensions of length 1 are never cut."""
    if array.size <= most or array.ndim == 0 or depth == 0:
        yield ()
        return
    length = array.shape[0]
    step = max(1, most // max(1, array.size // length))
    for at in range(0, length, step):
        here = slice(at, at + step) if length > 1 else slice(None)
        if array[here].size <= most:
            yield (here,)
        else:
            for rest in chunks(array[at], most, depth - 1):
                yield (here, *rest)


def indices(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The indices of an array's elements in C order (numpy.ndindex keeps all numbers of each dimension)."""
    if not shape:
        yield ()
        return
    for i in range(shape[0]):
        for rest in indices(shape[1:]):
            yield (i, *rest)


def store(out: Array, what: tuple[str, str], value: Any) -> None:
    """Puts a number into a result; a bf16 as its bits, the index of no elements as -1."""
    op, kind = what
    if value is None and op in ("argmin", "argmax"):
        out.view(np.int64)[...] = -1
    elif value is None:
        raise OverflowError(f"the exact {op} does not fit {kind}")
    elif kind == "bf16":
        out[...] = np.uint16(np.float32(value).view(np.uint32) >> 16)
    else:
        out[...] = value


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], make: Callable[..., Array] = np.empty) -> Array:
    """Makes an array for results; a MemoryError says how many results there are, and how much they need."""
    try:
        return make(shape, dtype)
    except (MemoryError, ValueError):
        size = math.prod(shape) * dtype.itemsize
        raise MemoryError(f"no memory for {math.prod(shape)} results, which need {size / 1e9:.1f} GB") from None


def _full(shape: tuple[int, ...], value: Any) -> Array:
    """An array of one number; of zeros only what is written takes memory. (It is filled in pieces: Ctrl-C works in between.)"""
    number = np.asarray(value)
    if not any(number.tobytes()):
        return empty(shape, number.dtype, np.zeros)
    array = empty(shape, number.dtype)
    for at in range(0, array.size, 1 << 20):
        array.reshape(-1)[at:at + (1 << 20)] = number
    return array


# ---- Elements that the engine cannot read where they lie -------------------------------------------------------------


def _copies(t: Operand, u: Operand | None, x: Array, y: Array | None) -> tuple[Any, Any]:
    """Returns copies of some of t's and u's elements that the engine can read. 64-bit integers among float64 become two."""
    if t.type == "f64" and y is not None and not {x.dtype.char, y.dtype.char}.isdisjoint("lLqQ"):
        x, y = _exact_pair(x, y)
    return copied(x, DTYPE[t.type], t.is_conjugated), copied(y, DTYPE[t.type], u is not None and u.is_conjugated)


class _Progress:
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


def _along(p: _core.Problem, x: Array, y: Array | None, mask: Array | None, axes: tuple[int, ...], outs: tuple[Array, ...],
           device: str | None, way: str = "", is_swapped: bool = False, means: Array | None = None) -> None:
    """Reduces elements that the engine can read, to `outs`. `way`: how complex elements become real ones (as_reals())."""
    if way:
        (x, y, mask), axes = as_reals(way, (x, y, mask), axes, is_swapped)
    if len(axes) == x.ndim and mask is means is None and x.flags.c_contiguous and (y is None or y.flags.c_contiguous):
        for o, what, value in zip(outs, values_of(p), p.reduce(x, y, device)):
            store(o, what, value)
    else:
        parts = None if means is None else ("means", np.ascontiguousarray(means).view(np.float64))
        p.shaped(x, y, mask, bits_of(axes), parts, outs, device)


def _by_blocks(p: _core.Problem, t: Operand, call: Call, arrays: Layouts, read: Callable[..., Any], initial: Any, way: str,
               is_swapped: bool, is_direct: bool, outs: tuple[Array, ...]) -> None:
    """Reduces block by block. A block has rows, each of the elements of one result; a longer row is fed to a state. `is_direct`:
    the engine reads blocks where they lie, so they are larger, and views; else read(x, y) makes copies that it can read. `outs`
    have one dimension more for pairs."""
    dtype, axes = DTYPE[t.type], call.axes
    most = BLOCK // dtype.itemsize // (1 if arrays[1] is None else 2)
    x, y, mask = rows_of(arrays[0], axes), *(None if a is None else rows_of(a, axes) for a in arrays[1:])
    kept = x.ndim - len(axes)
    first = None if initial is None else np.asarray(initial, dtype).reshape(1)
    more = {"parts": (2,), "pairs": (1,)}.get(way, ())
    progress = _Progress(call.progress, x.size)

    def as_rows(a: Array | None, one: Any) -> Any:
        if a is None:
            return None
        rows = np.ascontiguousarray(a).reshape(math.prod(a.shape[:kept]), math.prod(a.shape[kept:]))
        return rows if first is None else np.concatenate([np.broadcast_to(one, (len(rows), 1)), rows], axis=1)

    def block(x: Array, y: Array | None, mask: Array | None, means: Array | None, outs: tuple[Array, ...]) -> None:
        reduced, size = len(axes), x.size
        if not is_direct:
            reduced = 1
            x, y = read(x, y)
            x, y, mask = as_rows(x, first), as_rows(y, None), as_rows(mask, True)
        shape = (*x.shape[:x.ndim - reduced], *(1,) * reduced, *more)
        results = tuple(np.empty(shape, o.dtype) for o in outs)
        _along(p, x, y, mask, tuple(range(x.ndim - reduced, x.ndim)), results, call.device, way, is_swapped, means)
        for o, r in zip(outs, results):
            o[...] = r.reshape(o.shape)
        progress.add(size)

    def single(x: Array, y: Array | None, mask: Array | None, means: Array | None, outs: tuple[Array, ...]) -> None:
        of_parts = way == "parts"
        states = [_core.State(p if means is None else p.about(means.item())) for _ in range(1 + of_parts)]

        def feed(a: Array, b: Array | None) -> None:
            (a, b, _), _ = as_reals(way, (a, b, None), (), is_swapped)
            b = None if b is None else np.ascontiguousarray(b)
            for i, state in enumerate(states):
                state.feed(np.ascontiguousarray(a[..., i] if of_parts else a), b, call.device)

        if first is not None:
            feed(first, None)
        for at in chunks(x, 8 * most if is_direct else most):
            a, b = read(x[at], None if y is None else y[at])
            if mask is not None:
                a, b = a[mask[at]], None if b is None else b[mask[at]]
            feed(a, b)
            progress.add(x[at].size)
        for i, state in enumerate(states):
            for o, what, value in zip(outs, values_of(p), state.value()):
                store(o[..., i:i + 1] if of_parts else o, what, value)

    largest = _BETWEEN_REPORTS if is_direct else most
    try:
        if x.size <= largest:
            block(x, y, mask, call.means, outs)
            return
        means, outs = None if call.means is None else call.means.squeeze(axes), tuple([o.squeeze(axes) for o in outs])
        for at in chunks(x, largest, kept):
            cut: list[Any] = [None if a is None else a[at] for a in (x, y, mask, means)]
            reduce: Callable[..., None] = block if x[at].size <= largest else single
            reduce(*cut, tuple([o[(*at, ...)] for o in outs]))
    finally:
        progress.end()


# ---- 64-bit integers among floats ------------------------------------------------------------------------------------


def _split(x: Array, y: Array) -> tuple[Array, Array]:
    """Return two float64 arrays with the same exact sums of products along the last axis as x and y.

    An integer of x that float64 does not hold becomes two parts of its sign: an infinity times both has one sign, too. Any other
    integer stays whole, and -0 times 0 fills its second place, which adds nothing.
    """
    held = float64_holds(x)
    low = np.where(held, 0, np.fmod(x, x.dtype.type(2048)))
    high = (x - low).astype(np.float64)
    low = np.where(held, -0.0, low.astype(np.float64))
    y = np.asarray(y, np.float64)
    return np.concatenate([high, low], -1), np.concatenate([y, np.where(held, 0.0, y)], -1)


def _exact_pair(x: Array, y: Array) -> tuple[Array, Array]:
    """Bring two arrays of vectors to float64 without a change of their exact sums of products."""
    dtype = DTYPE["f64"]
    if not holds_all(y, dtype):
        if not holds_all(x, dtype):  # (one of int64, one of uint64)
            low = np.fmod(x, x.dtype.type(2048))
            # Both parts of x are exact; y is repeated beside them, and split below.
            x, y = np.concatenate([(x - low).astype(dtype), low.astype(dtype)], -1), np.concatenate([y, y], -1)
        y, x = _split(np.asarray(y, y.dtype.newbyteorder("=")), x)
    elif not holds_all(x, dtype):
        x, y = _split(np.asarray(x, x.dtype.newbyteorder("=")), y)
    return x, y


# ---- Results ---------------------------------------------------------------------------------------------------------


def cast_results(array: Array, dtype: np.dtype[Any], op: str) -> Array:
    """Convert results to another dtype. An integer that does not fit it is an error; reals may become complex numbers."""
    if array.dtype == dtype:
        return array
    if array.size and dtype.kind in "iu" and array.dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise OverflowError(f"the exact {op} does not fit {dtype}")
    return array.astype(dtype)


def shown(op: str, kind: str, array: Array, element: str) -> tuple[Array, str]:
    """A result's array with the dtype that the value has in Python."""
    to = shown_type(op, kind, element)
    return (array, kind) if to == kind else (array.view(DTYPE[to]), to)


def _shown_as(what: Sequence[tuple[str, str]], element: str, arrays: Sequence[Array], wanted: str | None) -> list[tuple[Array, str]]:
    """The values as they are shown, and integers among them as the integer type that was asked for."""
    values = []
    for (name, kind), array in zip(what, arrays):
        value, kind = shown(name, kind, array, element)
        if wanted is not None and kind != "bool":
            if kind in FLOATS and DTYPE[wanted].kind in "iu":
                raise TypeError(f"a {name} is no integer: give a floating dtype")
            value = cast_results(value, DTYPE[wanted], name)
        values.append((value, kind))
    return values


class Host(Backend):
    """The backend of arrays in the host's memory."""

    def check_out(self, out: Any, t: Operand) -> tuple[Array | None, str | None]:
        """Returns out=, an array or a tuple of one, as an array, and its type; None for None."""
        if isinstance(out, tuple) and len(out) == 1:
            (out,) = out
        if out is None:
            return None, None
        if not isinstance(out, np.ndarray):
            raise TypeError(f"return arrays must be of ArrayType, not {type(out).__name__}")
        if type(out) is not np.ndarray:
            if isinstance(out, np.ma.MaskedArray):
                raise TypeError("out= is a masked array, whose mask a result would not change: give its data")
            plain(out)
        try:
            return out, type_of(out.dtype)
        except TypeError:  # (longdouble, which holds all results)
            return out, None

    def beside(self, a: Any, t: Operand, what: str) -> Operand:
        """A further array."""
        return as_host_array(a)

    how_to_convert = ""

    def check_held(self, kind: str, *both: Operand) -> None:
        """Does nothing: integers are checked when they are read."""

    def doubles(self, t: Operand, shape: tuple[int, ...], kind: str) -> Array:
        """mean= as doubles, or complex numbers of doubles, of a shape."""
        if t.type == "bf16":
            raise TypeError("mean= is of floats, or of complex numbers as the elements are, not of bfloat16")
        return np.broadcast_to(cast_exactly(t.array, DTYPE[kind]), shape)

    def along(self, p: _core.Problem, t: Operand, call: Call, *, y: Operand | None = None, initial: Any = None,
              is_swapped: bool = False, into: Array | None = None) -> tuple[Array, ...]:
        """The values of a problem, in arrays whose reduced axes have length 1. `y`: the second array of a dot product, of t's
        shape; `is_swapped`: the real parts of t's elements are multiplied by the imaginary ones of y's, and the reverse.
        `into`: the array for the only value."""
        x, other, axes, what = t.array, None if y is None else y.array, call.axes, values_of(p)
        mask = None if call.mask is None else call.mask.array
        way = way_of(what[0][0]) if t.type in PART else ""
        of_parts = way == "parts"
        if into is not None:
            arrays: tuple[Array, ...] = (into,)
        else:
            shape = kept_shape(x.shape, axes)
            arrays = tuple([np.empty(shape, DTYPE[complex_of(kind) if of_parts else kind]) for _, kind in what])
        if initial is not None and t.type == "bf16":
            raise TypeError("a bfloat16 array has no initial value")
        if initial is not None and t.type != "bool" and what[0][0] in CHOICES:
            # The results are elements themselves: the initial value is combined with them at the end, as another row.
            rest = self.along(p, t, call)[0]
            rows, last = np.empty((2, rest.size), rest.dtype), np.empty((1, rest.size), rest.dtype)
            rows[0], rows[1] = initial, rest.ravel()
            p.shaped(rows, None, None, 1, None, (last,), call.device)
            arrays[0][...] = last.reshape(arrays[0].shape)
            return arrays
        is_direct = t.is_direct and initial is None and (y is None or y.is_direct) and x.ndim + (way != "") <= MOST_DIMS
        if is_direct and t.type == "bool" and any([op not in TRUTHS for op, _ in what]):
            is_direct = not has_other_bytes(x)
        outs = arrays if way in ("", "two") else tuple(pairs(a) if of_parts else a[..., None] for a in arrays)
        if is_direct and not (call.progress and x.size > _BETWEEN_REPORTS):
            _along(p, x, other, mask, axes, outs, call.device, way, is_swapped, call.means)
            return arrays
        for a in (x, other) if way and other is not None and not is_direct else ():
            if not holds_all(a, DTYPE[t.type]):
                cast_exactly(a, DTYPE[t.type])  # which raises
        read = functools.partial(_copies, t, y)
        if not is_direct and initial is None and x.ndim + (way != "") <= MOST_DIMS and x.size * DTYPE[t.type].itemsize <= BLOCK:
            _along(p, *read(x, other), mask, axes, outs, call.device, way, is_swapped, call.means)
        else:
            _by_blocks(p, t, call, (x, other, mask), read, initial, way, is_swapped, is_direct, outs)
        return arrays

    def one(self, p: _core.Problem, t: Operand, call: Call, *, y: Operand | None = None, initial: Any = None) -> Any:
        """The only value of a problem, as the caller sees it. The results are written straight to that array, or to out=, if its
        type is theirs, else converted in blocks. (An out= that cannot be written so is left to deliver().)"""
        ((op, raw),) = values_of(p)
        of_parts = t.type in PART and op in OF_PARTS
        kind = complex_of(raw) if of_parts else shown_type(op, raw, t.type)
        out, like, as_shown, into = call.out, DTYPE[call.wanted or kind], DTYPE[kind], None
        x, axes = t.array, call.axes
        if out is None:
            into = None if like == as_shown else np.empty(kept_shape(x.shape, axes), like)
        elif out.flags.writeable and kind != "bf16" and out.shape == result_shape(x.shape, axes, call.keepdims) and \
                np.can_cast(like, out.dtype, "same_kind") and \
                not any(a is not None and np.may_share_memory(out, a.array) for a in (t, call.mask, y)):
            into = out if call.keepdims else np.expand_dims(out, axes)
        if into is None or not into.size:
            (array,) = self.along(p, t, call, y=y, initial=initial)
            return self.deliver(op, array if kind == raw else array.view(as_shown), kind, t, call)
        if into.dtype == like == as_shown and into.flags.aligned and not any(s % as_shown.itemsize for s in into.strides):
            self.along(p, t, call, y=y, initial=initial, into=into if of_parts else into.view(DTYPE[raw]))
        else:
            for cut in chunks(into, BLOCK // as_shown.itemsize):
                other, mask = [None if a is None else a._replace(array=a.array[cut]) for a in (y, call.mask)]
                means = None if call.means is None else call.means[cut]
                part = self.along(p, t._replace(array=x[cut]), call._replace(mask=mask, means=means), y=other, initial=initial)
                value = cast_results(part[0].view(as_shown), like, op)
                into[cut] = cast_results(value, into.dtype, op)
        return out if out is not None else self.deliver(op, into, kind, t, call)

    def several(self, p: _core.Problem, t: Operand, call: Call, gather: Callable[..., Any]) -> Any:
        """All values of a problem, gathered."""
        values = _shown_as(values_of(p), t.type, self.along(p, t, call), call.wanted)
        if call.wanted is not None:
            call = call._replace(wanted=None)
        return gather(*[self.deliver("", array, kind, t, call) for array, kind in values])

    def deliver(self, op: str, array: Array, kind: str, t: Operand, call: Call) -> Any:
        """A result, whose reduced axes have length 1, as the caller sees it: of the array's library, or in out=."""
        axes, out = call.axes, call.out
        if call.wanted is not None:
            array = cast_results(array, DTYPE[call.wanted], op)
        if not call.keepdims and axes:
            array = array.reshape([n for d, n in enumerate(array.shape) if d not in axes])
        if out is None:
            return t.wrap(array, kind)
        if out.shape != array.shape:
            raise ValueError(f"out= has shape {out.shape}, the result {array.shape}")
        if kind == "bf16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        if not (kind == "bf16" and out.dtype.name == "bfloat16") and not np.can_cast(array.dtype, out.dtype, "same_kind"):
            raise TypeError(f"cannot cast the result from {array.dtype!r} to {out.dtype!r} with casting rule 'same_kind'")
        out[...] = cast_results(array, out.dtype, op)
        return out

    # ---- Complex numbers

    def from_parts(self, real: Array, imaginary: Array) -> Array:
        value = np.empty(real.shape, DTYPE[complex_of(str(real.dtype.kind) + str(8 * real.dtype.itemsize))])
        value.real, value.imag = real, imaginary
        return value

    def complex_product(self, t: Operand, call: Call, kind: str, initial: complex | None) -> Any:
        """Products of complex numbers: neighbours are multiplied, then neighbours of these, until one is left."""
        dtype, rows = DTYPE[kind], rows_of(t.array, call.axes)
        masks = None if call.mask is None else rows_of(call.mask.array, call.axes)
        out = np.empty(rows.shape[:t.array.ndim - len(call.axes)], dtype)
        for at in indices(out.shape):
            def elements() -> Iterator[Array]:
                if initial is not None:
                    yield np.array([initial], dtype)
                for cut in chunks(rows[at], _LEAF):
                    part = np.asarray(rows[at][cut], dtype).reshape(-1)
                    yield part if masks is None else part[masks[at][cut].reshape(-1)]

            nodes = [_product(leaf) for leaf in _joined(elements(), _LEAF)]
            while len(nodes) > 1:
                nodes = [_product(leaf) for leaf in _joined(iter(nodes), _LEAF)]
            out[at] = nodes[0][0] if nodes else 1
        return self.deliver("prod", out.reshape(kept_shape(t.shape, call.axes)), kind, t, call)

    # ---- Segments and groups

    def offsets(self, offsets: Any, t: Operand) -> tuple[Array, int]:
        """Return the places where segments begin, and the number of segments."""
        places = np.asarray(as_host_array(offsets).array)
        if places.ndim != 1 or places.size == 0 or places.dtype.kind not in "iu":
            raise TypeError("offsets are an array of integers of one dimension, one more than there are segments")
        if places.dtype.kind == "u" and places.max() > np.iinfo(np.int64).max:
            raise ValueError(f"offset {places.argmax()} is {places.max()}, outside of the {t.shape} elements")
        if places.dtype.itemsize not in (4, 8) or places.dtype.kind == "u" or not places.dtype.isnative:
            places = places.astype(np.int64)
        return np.ascontiguousarray(places), places.size - 1

    def segments(self, p: _core.Problem, t: Operand, axis: int, places: Any, count: int, fill: Any, call: Call) -> list[Any]:
        """The values of segments along an axis: `places` is where they begin, or how many of one length they are."""

        def by_blocks(p: _core.Problem, row: Array, out: tuple[Array, ...]) -> bool:
            lies = t.is_direct and (row.nbytes <= BLOCK or row.flags.c_contiguous)
            return not lies and _segments_by_blocks(p, t._replace(array=row), places, out, call.device)

        def counts() -> Array:
            return np.full(count, t.shape[axis] // count) if isinstance(places, int) else np.diff(places)

        return self._by_parts(p, t, axis, count, call, lambda: ("segments", places), None, by_blocks, counts, fill)

    def ids(self, ids: Any, t: Operand | None) -> Operand:
        try:
            t = as_host_array(ids)
        except TypeError as error:
            raise TypeError(f"{error}; numpy.unique(ids, return_inverse=True)[1] makes ids of anything") from None
        if t.array.dtype.kind not in "iub" or t.type == "bf16":
            raise TypeError(f"ids are integers from 0 on, one an element, not {t.array.dtype}; "
                            "numpy.unique(ids, return_inverse=True)[1] makes them of anything")
        if t.array.ndim != 1:
            raise TypeError(f"ids have one dimension, one id for each element along the axis, not {t.array.ndim}: for elements of all "
                            "dimensions give x.ravel() and ids.ravel()")
        return t

    def greatest_id(self, ids: Operand) -> int:
        if ids.array.size and is_in_order(ids.array):
            return int(problem(("max",), ids.type).reduce(ids.array, None, None)[0])
        return int(self.along(problem(("max",), ids.type), ids, Call((0,)))[0][0]) if ids.array.size else -1

    def groups(self, p: _core.Problem, t: Operand, axis: int, ids: Operand, count: int, where: Operand | None,
               skip_outside: bool, is_sorted: bool, fill: Any, call: Call) -> list[Any]:
        """The values of groups along an axis, by an id for each element."""
        numbers, kind = ids.array, "u8" if ids.type == "bool" else ids.type
        mask = None if where is None else where.array
        if count > _MANY_GROUPS and count > 4 * numbers.size:
            return self._few_of_many_groups(p, t, axis, numbers, count, mask, skip_outside, is_sorted, fill, call)
        ordered = functools.cache(lambda: in_order(numbers))

        def parts(is_sorted: bool = is_sorted, ids: Array | None = None) -> tuple[Any, ...]:
            return "groups", ordered() if ids is None else ids, kind, count, skip_outside, is_sorted

        def by_blocks(p: _core.Problem, row: Array, out: tuple[Array, ...]) -> bool:
            lies = is_in_order(row) and is_in_order(numbers) and (mask is None or mask.flags.c_contiguous)
            orders = any(name in ("argmin", "argmax") for name, _ in values_of(p))  # (a call for all elements sorts them for these)
            if is_sorted or count > FEW_GROUPS or row.nbytes <= BLOCK or (lies and not orders):
                return False
            groups = _core.Groups(p, count)
            try:
                groups_by_blocks(groups, row, t.type, mask, parts(ids=numbers), call.device)
                groups.values(out)
            except (ValueError, OverflowError):  # which a call for all of the row raises, too, with the right numbers in its text
                return False
            return True

        def counts() -> Array:
            elements: Array = np.empty(count, np.uint64)
            problem(("count",), kind).shaped(ordered(), None, mask, 1, parts(False), (elements,), call.device)
            return elements

        return self._by_parts(p, t, axis, count, call, parts, mask, by_blocks, counts, fill)

    def _few_of_many_groups(self, p: _core.Problem, t: Operand, axis: int, numbers: Array, count: int, mask: Array | None,
                            skip_outside: bool, is_sorted: bool, fill: Any, call: Call) -> list[Any]:
        """Does groups() where few groups occur: reduces only these, and one of no elements, whose value all others get."""
        inside = (numbers >= 0) & (numbers < count)
        outside = ~inside if mask is None else ~inside & mask
        if not skip_outside and outside.any():
            at = int(outside.argmax())
            raise ValueError(f"id {at} is {numbers[at]}, outside of the {count} groups")
        kept = inside if mask is None else inside & mask
        found = np.unique(numbers[kept])
        lone = next((name for name, _ in values_of(p) if name in NO_IDENTITY), None)
        if lone is not None and fill is None:
            missing = int(np.argmin(np.append(found, -1) == np.arange(found.size + 1)))
            raise ValueError(f"result {missing} has no elements, so there is no {lone}")
        places = np.searchsorted(found, numbers)
        places[~kept] = 0
        few = self.groups(p, t._replace(wrap=lambda value, kind: (value, kind)), axis, from_numpy(places), found.size + 1,
                          None if kept.all() else from_numpy(kept), False, is_sorted, fill, call)
        results = []
        for value, kind in few:
            value = np.moveaxis(value, axis, -1)
            wide = _full((*value.shape[:-1], count), value.flat[-1] if value.size else np.zeros((), value.dtype))
            wide[..., found] = value[..., :-1]
            results.append(t.wrap(np.moveaxis(wide, -1, axis), kind))
        return results

    def _by_parts(self, p: _core.Problem, t: Operand, axis: int, count: int, call: Call, parts: Callable[[], tuple[Any, ...]],
                  mask: Array | None, by_blocks: Callable[..., bool], counts: Callable[[], Array], fill: Any) -> list[Any]:
        """Segments or groups along an axis: by one call where the engine reads an array of several dimensions as it lies; else row
        by row, by blocks where by_blocks(problem, row, results) is true."""
        what = values_of(p)
        if fill is not None and len(what) == 1 and what[0][0] in ("argmin", "argmax"):
            # (Beside another value, the index of no elements is no error.)
            p = problem((what[0][0], "count"), t.type)
        is_direct = t.is_direct and not (t.type == "bool" and has_other_bytes(t.array))
        shape = (*t.shape[:axis], count, *t.shape[axis + 1:])
        arrays = [empty(shape, DTYPE[kind]) for _, kind in values_of(p)]
        if is_direct and t.array.ndim > 1:
            p.shaped(t.array, None, beside_axis(mask, t.array, axis), 1 << axis, parts(), tuple(arrays), call.device)
        is_last, rows = axis == t.array.ndim - 1, t.moved(axis).array
        if not is_last:
            arrays = [np.moveaxis(array, axis, -1) for array in arrays]
        if not is_direct or t.array.ndim == 1:
            for at in indices(rows.shape[:-1]):
                row, out = rows[at], tuple([array[at] for array in arrays])
                if not by_blocks(p, row, out):
                    p.shaped(row if is_direct else contiguous(row, DTYPE[t.type]), None, mask, 1, parts(), out, call.device)
        check_empty(what, tuple(arrays), counts, fill)
        return [t.wrap(value if is_last else np.moveaxis(value, -1, axis), kind)
                for value, kind in _shown_as(what, t.type, arrays[:len(what)], call.wanted)]


HOST = Host()

# ---- Products of complex numbers -------------------------------------------------------------------------------------

_LEAF = 1 << 16  # elements that are multiplied at once: a whole subtree, as it is a power of two


def _joined(parts: Iterator[Array], size: int) -> Iterator[Array]:
    """Yields the elements of some arrays in arrays of `size` elements, the last one of those that are left."""
    rest: list[Array] = []
    count = 0
    for part in parts:
        if part.size:
            rest.append(part)
            count += part.size
        while count >= size:
            whole = np.concatenate(rest)
            rest, count = [whole[size:]], count - size
            yield whole[:size]
    if count:
        yield np.concatenate(rest)


class _NumPy:
    """The functions of a library that products() calls, by NumPy."""

    join = staticmethod(functools.partial(np.concatenate, axis=1))
    where = staticmethod(np.where)


def _product(x: Array) -> Array:
    with np.errstate(all="ignore"):
        real, imaginary = products(_NumPy, x.real.reshape(1, -1), x.imag.reshape(1, -1), None)
    value = np.empty(1, x.dtype)
    value.real, value.imag = real, imaginary
    return value


# ---- Segments and groups ---------------------------------------------------------------------------------------------


def _segments_by_blocks(p: _core.Problem, t: Operand, offsets: Any, outs: tuple[Array, ...], device: str | None) -> bool:
    """Reduces the segments of a row that the engine cannot read, by copies: as many segments as a block has room for, or one longer
    segment alone. Returns False where offsets are wrong, or a value does not exist: the caller then reduces a copy of the
    whole row, and that raises the error."""
    row, dtype = t.array, DTYPE[t.type]
    if isinstance(offsets, int):
        offsets = np.arange(offsets + 1, dtype=np.int64) * (row.size // offsets)
    if offsets[0] < 0 or offsets[-1] > row.size or (offsets[1:] < offsets[:-1]).any():
        return False
    most, at = BLOCK // dtype.itemsize, 0
    try:
        while at < offsets.size - 1:
            start = offsets[at]
            reach = offsets.dtype.type(min(int(start) + most, int(offsets[-1])))  # (the sum alone may not fit)
            end = max(at + 1, int(np.searchsorted(offsets, reach, "right")) - 1)
            here, there = row[start:offsets[end]], tuple(out[at:end] for out in outs)
            if here.size <= most:
                p.shaped(contiguous(here, dtype), None, None, 1, ("segments", offsets[at:end + 1] - start), there, device)
            else:
                for out, value in zip(there, HOST.along(p, t._replace(array=here), Call((0,), device=device))):
                    out[...] = value
            at = end
    except (ValueError, OverflowError):
        return False
    return True


def groups_by_blocks(groups: _core.Groups, row: Array, kind: str, mask: Array | None, parts: tuple[Any, ...],
                     device: str | None) -> None:
    """Adds the elements of a row to groups, block by block. Blocks that the engine cannot read are copied. `parts`: as for
    Problem.shaped()."""
    cut, numbers, *more = parts
    most = BLOCK // DTYPE[kind].itemsize
    for at in range(0, row.size, most):
        here = slice(at, at + most)
        groups.feed(contiguous(row[here], DTYPE[kind]), None if mask is None else in_order(mask[here]),
                    (cut, in_order(numbers[here]), *more), device)


# ---- Results of nothing ----------------------------------------------------------------------------------------------


def _value_of_nothing(name: str, kind: str) -> Any:
    """Return the engine's value of no elements."""
    if name in ("argmin", "argmax"):
        return np.iinfo(np.uint64).max
    if kind == "bf16":
        return 0x7F80 if name == "min" else 0xFF80
    if kind in FLOATS:
        return np.inf if name == "min" else -np.inf
    return np.iinfo(DTYPE[kind]).max if name == "min" else np.iinfo(DTYPE[kind]).min


def check_empty(what: Sequence[tuple[str, str]], arrays: tuple[Array, ...], counts: Callable[[], Array], fill: Any = None) -> None:
    """Raise where a result of no elements has no value, such as a minimum; or put `fill` there.

    counts() returns how many elements each result has, in an array that is broadcast to the results. It is called only if some
    result has the value that the engine gives for nothing.
    """
    if not any(name in NO_IDENTITY and (array == _value_of_nothing(name, kind)).any() for (name, kind), array in zip(what, arrays)):
        return
    is_empty = np.asarray(counts()) == 0
    if not is_empty.any():
        return
    for (name, kind), array in zip(what, arrays):
        if name not in NO_IDENTITY:
            continue
        if fill is None:
            raise ValueError(f"result {int(np.argmax(is_empty))} has no elements, so there is no {name}")
        np.copyto(array, fill_element(fill, name, kind), where=is_empty)
