"""Reductions of GPU arrays that are prepared once and launched again and again: how they are prepared, results that are allocated
in advance, and the cache of calls, from which ext/call_cache.c launches a call like an earlier one without any Python code.
"""

from __future__ import annotations

import contextvars
import functools
import math
from typing import Any, Callable, NamedTuple

from . import _core
from ._arguments import Call, KINDS, bits_of, name_of, shown_type, values_of
from ._arrays import DTYPE, FLOATS, MOST_DIMS, PART, Layouts, Operand, layouts
from ._checks import RESULT, pending

_NEEDS_ORDER = ("argmin", "argmax", "prod", "user")
#: Operators on floats for which one row of _ROW_BYTES takes less time than a whole array: one block reduces and rounds it.
_QUICK_AS_ROW = ("mean", "norm2", "var", "std")
_ROW_BYTES = range(1 << 11, (1 << 16) + 1)


@functools.lru_cache(maxsize=1024)
def plan_whole(p: _core.Problem, element: str, n: int, spec: str) -> tuple[Any, int, tuple[str, ...]]:
    """Prepares a reduction of a whole array: returns what launch() takes, the bytes of workspace, and the values' dtypes."""
    prepared, size = p.prepare(n, None, None, 0, None, spec, RESULT)[:2]
    return prepared, size, tuple(name_of(shown_type(op, kind, element)) for op, kind in values_of(p))


def prepare_along(p: _core.Problem, spec: str, axes: tuple[int, ...], arrays: Layouts, parts: tuple[Any, ...] | None,
                  apart: int) -> tuple[Any, int, int, int, int]:
    """Prepares a reduction along axes. It leaves out dimensions of length 1 if there are too many for the engine."""
    x, y, mask = arrays
    if x.ndim > MOST_DIMS:
        lone = tuple(d for d, n in enumerate(x.shape) if n == 1)
        if x.ndim - len(lone) > MOST_DIMS:
            raise NotImplementedError(f"arrays on a GPU have at most {MOST_DIMS} dimensions longer than 1")
        axes = tuple(d - sum(l < d for l in lone) for d in axes if d not in lone)
        x, y, mask = x.squeeze(lone), None if y is None else y.squeeze(lone), None if mask is None else mask.squeeze(lone)
    return p.prepare(x, y, mask, bits_of(axes), parts, spec, apart)


def is_whole(p: _core.Problem, element: str, axes: tuple[int, ...], arrays: Layouts) -> bool:
    """Return whether plan_whole() suits: there is one result, of contiguous elements in an order that the operators allow; and a
    row is not quicker."""
    x, y, mask = arrays
    if mask is not None or any(n != 1 and d not in axes for d, n in enumerate(x.shape)):
        return False
    ops, in_order = [op for op, _ in values_of(p)], x.flags.c_contiguous
    if in_order and element in FLOATS and x.nbytes in _ROW_BYTES and all(op in _QUICK_AS_ROW for op in ops):
        return False
    flat = in_order or (not any(op in _NEEDS_ORDER for op in ops) and
                        x.transpose(sorted(range(x.ndim), key=lambda d: -x.strides[d])).flags.c_contiguous)
    return flat and (y is None or y.strides == x.strides)


# ---- The cache of calls ----------------------------------------------------------------------------------------------


class _Prepared(NamedTuple):
    """A reduction that can be launched again, to a new tensor: for tensors of the same types, shapes, strides and device."""

    backend: Any
    number: int  # the device's
    prepared: Any  # of Problem.prepare()
    size: int  # bytes of workspace
    name: str  # the result's dtype, ...
    shape: tuple[int, ...]  # ... its shape, ...
    room: int  # ... and the bytes of all values
    values: int  # how many values there are, ...
    gather: Callable[..., Any] | None  # ... and what makes one result of several
    has_mask: bool


class _Results:
    """Tensors that are allocated in advance for results of calls on one stream, each with its address, a workspace and the
    workspace's address. Large tensors are made one at a time, small ones together."""

    def __init__(self, p: _Prepared, stream: int):
        self.p, self.key = p, (p.number, stream)
        self.waiting: list[tuple[Any, int, Any, int]] = []
        self.empty = p.backend.maker_of_empty(p.shape, p.name, p.number)
        #: How many results are made together: each keeps its workspace alive, so with a large workspace only one.
        self.count = max(1, min(_AT_ONCE, _MOST_ROOM // p.room)) if p.size <= _MOST_WORK else 1
        #: (The result of a whole array is a tally_result of RESULT bytes, which do not fit a tensor of one element.)
        self.is_alone = p.values == 1 and p.room > RESULT and (self.count == 1 or p.room > _SMALL_ROOM)

    def source(self) -> tuple[list[Any] | tuple[Any, int], Callable[[], Any]]:
        """Returns `results` and `refill` of _cache_call(): a list and what adds to it; or a workspace and what makes a result."""
        if self.is_alone and self.p.size <= _MOST_WORK:
            return self.workspace(), self.empty
        return self.waiting, self.make_one if self.is_alone else self.make_many

    def workspace(self) -> tuple[Any, int]:
        """Memory of any content and its address. The calls on a stream follow each other, so they share one workspace."""
        shared, size = _workspaces.get(self.key), self.p.size
        if shared is None or shared[2] < size:
            if shared is not None and size <= _MOST_WORK:  # calls may keep older ones: doubled, all have at most twice its bytes
                size = max(size, min(2 * shared[2], _MOST_WORK))
            work = self.p.backend.empty((size,), "uint8", self.p.number)
            shared = work, self.p.backend.address(work), size
            if size <= _MOST_WORK:
                _workspaces[self.key] = shared
        return shared[:2]

    def make_one(self) -> None:
        value = self.empty()
        self.waiting.append((value, value.data_ptr(), *self.workspace()))

    def make_many(self) -> None:
        p = self.p
        work, at = self.workspace()
        values, address = p.backend.results(self.count * p.values, p.shape, p.room // p.values, p.name, p.number)
        if p.gather is not None:
            values = [p.gather(*values[i:i + p.values]) for i in range(0, len(values), p.values)]
        self.waiting.extend([(value, address + p.room * i, work, at) for i, value in enumerate(values)])


#: (device, stream, bytes of workspace, result's dtype, shape and room, what gathers values) -> results for such calls.
_results: dict[tuple[Any, ...], _Results] = {}
#: (device, stream) -> a workspace, its address and its bytes.
_workspaces: dict[tuple[int, int], tuple[Any, int, int]] = {}
_MOST_RESULTS = 32
_MOST_WORK = 1 << 25  # bytes of a shared workspace
_AT_ONCE = 64  # results that are made together, or fewer: the last of them that is alive keeps them all, ...
_MOST_ROOM = 1 << 19  # ... which are so many bytes together at most
_SMALL_ROOM = _MOST_ROOM // 4  # bytes of a result; a larger one is made alone


def clear_cache() -> None:
    """Empties the cache of calls, and frees what was kept for them."""
    _results.clear()
    _workspaces.clear()
    _core._clear_calls()


class _Made:
    """A call on PyTorch's tensors that is made the general way."""

    def __init__(self, x: Any, more: tuple[Any, ...]) -> None:
        self.x, self.more = x, more
        self.value: Any = None  # of the last reduction, and ...
        self.prepared: _Prepared | None = None  # ... how that is launched again

    def has(self, t: Operand | None) -> bool:
        return t is None or any(a is t.there for a in self.more)


_made: contextvars.ContextVar[_Made | None] = contextvars.ContextVar("tally_made", default=None)


def call_on_tensor(backend: Any, function: Callable[..., Any], x: Any, /, *more: Any, **named: Any) -> Any:
    """Returns function(x, *more, **named) for a tensor of PyTorch's, the backend; and adds the call to the cache
    (ext/call_cache.c)."""
    if not x.is_cuda or pending.get() is not None or backend.is_capturing():
        return function(x, *more, **named)
    arguments = (x, *more, *named.values())
    made = _Made(x, arguments[1:])
    token = _made.set(made)
    try:
        value = function(x, *more, **named)
    finally:
        _made.reset(token)
    p = made.prepared
    if p is not None and value is made.value:
        stream = backend.stream(p.number)
        key = (p.number, stream, p.size, p.name, p.shape, p.room, p.gather)
        if key not in _results and len(_results) >= _MOST_RESULTS:
            clear_cache()
        results = _results.setdefault(key, _Results(p, stream))
        _core._cache_call(function, tuple(named) or None, arguments, p.prepared, *results.source(), p.has_mask)
    return value


def note_prepared(p: _core.Problem, t: Operand, call: Call, y: Operand | None, value: Any,
                  gather: Callable[..., Any] | None = None) -> None:
    """Notes how a reduction that has just been made is launched again: to one value for each result, or to several of one
    dtype that are gathered."""
    made, mask = _made.get(), call.mask
    if made is None or made.x is not t.there or not (made.has(y) and made.has(mask)) or 0 in t.shape or t.type in PART:
        return
    name, *others = (name_of(shown_type(*what, t.type)) for what in values_of(p))
    if any(other != name for other in others) or None not in (y, mask):
        return
    made.value = value
    shape = tuple((value if gather is None else value[0]).shape)
    arrays = layouts(t, y, mask)
    if is_whole(p, t.type, call.axes, arrays):
        room = RESULT
        prepared, size, _ = plan_whole(p, t.type, t.array.size, t.spec)
    else:
        room = -(-math.prod(shape) * DTYPE[KINDS[name]].itemsize // RESULT) * RESULT
        prepared, size = prepare_along(p, t.spec, call.axes, arrays, None, room)[:2]
    values = 1 + len(others)
    made.prepared = _Prepared(t.backend, t.number, prepared, size, name, shape, room * values, values, gather, mask is not None)
