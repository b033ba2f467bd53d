"""Arrays that lie on a GPU: reduced there, on the caller's stream, without a wait and without a trip to the host.

A library's array is taken by its address, shape and strides; results and the memory to work in are made by that
library, which knows its streams. What only the elements can say - that an exact integer does not fit, that an offset
falls - nobody waits for: the result is then 0, and `tally.checked()` is for who wants to hear of it.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
import struct
import sys
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import numpy as np

from . import _core
from ._arrays import DTYPE, FLOATS, check_torch, dlpack_device, is_torch
from ._gpu_products import products
from ._gpu_variance import is_for_complex, variances
from ._reduce import (NO_IDENTITY, ROUNDED, AxisError, asked_by, axes_of, bits_of, check_extreme, check_guess, check_index,
                      check_initial, filling, lacks, problem, with_initial)

_CUDA = 2
_KINDS = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "int16": "i16",
          "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
          "complex64": "c64", "complex128": "c128"}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_PART = {"c64": "f32", "c128": "f64"}
_SIZE = {kind: dtype.itemsize for kind, dtype in DTYPE.items()}
_MOST_DIMS = 16
_RESULT = 16  # bytes of a tally_result and of a tally_outcome, both with their status at byte 8
_INDEX = ("argmin", "argmax", "count", "nans", "nonzero")
_NEEDS_ORDER = ("argmin", "argmax", "prod", "user")

Strides = tuple[int, ...]


def is_on_gpu(x: Any) -> bool:
    """Whether an array lies in a CUDA device's memory."""
    if isinstance(x, np.ndarray):
        return False
    if is_torch(x):
        return bool(x.is_cuda)
    place = dlpack_device(x)
    return place is not None and place[0] == _CUDA


# ---- Libraries -------------------------------------------------------------------------------------------------------


class _Torch:
    """What PyTorch calls things."""

    def __init__(self) -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]
        self.torch = torch
        self.stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", self._stream)
        #: Whether what is put on the stream goes into a graph, which may run beside the stream later.
        self.is_capturing: Callable[[], bool] = getattr(torch._C, "_cuda_isCurrentStreamCapturing",
                                                        torch.cuda.is_current_stream_capturing)
        _core._tensor_type(torch.Tensor, _call_on_tensor, self.stream)

    def take(self, x: Any) -> tuple[int, Strides, Strides, int]:
        if x.is_neg() or x.is_conj():
            raise TypeError("a lazily conjugated or negated tensor has no memory of its own: x.resolve_conj().resolve_neg()")
        return x.data_ptr(), tuple(x.shape), x.stride(), x.device.index

    def name(self, x: Any) -> str:
        return str(x.dtype)[6:]

    def _stream(self, number: int) -> int:
        return int(self.torch.cuda.current_stream(number).cuda_stream)

    def wait(self, number: int) -> None:
        self.torch.cuda.current_stream(number).synchronize()

    def results(self, count: int, shape: Strides, room: int, name: str, number: int) -> list[tuple[Any, int]]:
        """Tensors of a shape, in `room` bytes each, and their addresses. One that is written later is no news to
        what autograd has kept of another (`data`)."""
        with self.torch.inference_mode(False):
            memory = self.empty((count, room // _SIZE[_KINDS[name]]), name, number)
            address = self.address(memory)
            each = memory[:, :math.prod(shape)].reshape(count, *shape).unbind()
            return [(result.data, address + room * i) for i, result in enumerate(each)]

    def empty(self, shape: Sequence[int], name: str, number: int) -> Any:
        return self.torch.empty(shape, dtype=getattr(self.torch, name), device=self.torch.device("cuda", number))

    def zeros(self, shape: Sequence[int], name: str, number: int) -> Any:
        return self.torch.zeros(shape, dtype=getattr(self.torch, name), device=self.torch.device("cuda", number))

    def address(self, x: Any) -> int:
        return int(x.data_ptr())

    def view(self, x: Any, name: str) -> Any:
        return x.view(getattr(self.torch, name))

    def move(self, x: Any, a: int, b: int) -> Any:
        return self.torch.moveaxis(x, a, b)

    def in_order(self, x: Any) -> Any:
        return x.contiguous()

    def beside(self, x: Any, number: Any) -> Any:
        return self.torch.stack([x, self.torch.full_like(x, number)])

    def rows(self, x: Any, shape: Strides, order: Sequence[int], rows: int, length: int) -> Any:
        return self.torch.broadcast_to(x, shape).permute(*order).reshape(rows, length)

    def behind(self, number: Any, x: Any, name: str) -> Any:
        dtype = getattr(self.torch, name)
        return self.join([self.torch.full((x.shape[0], 1), number, dtype=dtype, device=x.device), x.to(dtype)], 1)

    def join(self, xs: Sequence[Any], axis: int = 0) -> Any:
        return self.torch.cat(xs, axis) if len(xs) > 1 else xs[0]

    def stack(self, xs: Sequence[Any], axis: int) -> Any:
        return self.torch.stack(xs, axis)

    def where(self, mask: Any, x: Any, y: Any) -> Any:
        return self.torch.where(mask, x, y)

    def cast(self, x: Any, name: str) -> Any:
        return x.to(getattr(self.torch, name))

    def complex(self, real: Any, imaginary: Any) -> Any:
        return self.torch.complex(real, imaginary)

    def conjugate(self, x: Any) -> Any:
        return x.conj().resolve_conj()

    def zeros_beside(self, x: Any, shape: Sequence[int]) -> Any:
        return self.torch.zeros(shape, dtype=x.dtype, device=x.device)

    def numbers(self, n: int, number: int) -> Any:
        return self.torch.arange(n, device=self.torch.device("cuda", number))

    def number_of(self, x: Any) -> int:
        return int(x.get_device())

    def order_of(self, x: Any) -> Any:
        return self.torch.argsort(x, dim=1, stable=True)

    def along(self, x: Any, order: Any) -> Any:
        return self.torch.take_along_dim(x, order, 1)

    def put(self, out: Any, x: Any) -> None:
        out.copy_(x)

    def to_host(self, x: Any) -> bytes:
        return bytes(x.cpu().numpy().tobytes())

    def convert(self) -> str:
        return "x.to(...)"

    def bring(self, number: int) -> str:
        return f"torch.as_tensor(a, device='cuda:{number}') brings it there"


class _CuPy:
    """What CuPy calls things."""

    def __init__(self) -> None:
        import cupy  # type: ignore[import-not-found, unused-ignore]
        self.cupy = cupy

    def take(self, x: Any) -> tuple[int, Strides, Strides, int]:
        size = x.dtype.itemsize
        if any(s % size for s, n in zip(x.strides, x.shape) if n > 1):
            raise TypeError("strides that are no multiples of an element: cupy.ascontiguousarray(x)")
        return x.data.ptr, x.shape, tuple(s // size for s in x.strides), x.device.id

    def name(self, x: Any) -> str:
        return str(x.dtype)

    def stream(self, number: int) -> int:
        with self.cupy.cuda.Device(number):
            return int(self.cupy.cuda.get_current_stream().ptr)

    def wait(self, number: int) -> None:
        with self.cupy.cuda.Device(number):
            self.cupy.cuda.get_current_stream().synchronize()

    def empty(self, shape: Sequence[int], name: str, number: int) -> Any:
        with self.cupy.cuda.Device(number):
            return self.cupy.empty(shape, dtype=name)

    def zeros(self, shape: Sequence[int], name: str, number: int) -> Any:
        with self.cupy.cuda.Device(number):
            return self.cupy.zeros(shape, name)

    def address(self, x: Any) -> int:
        return int(x.data.ptr)

    def view(self, x: Any, name: str) -> Any:
        return x.view(name)

    def move(self, x: Any, a: int, b: int) -> Any:
        return self.cupy.moveaxis(x, a, b)

    def in_order(self, x: Any) -> Any:
        return self.cupy.ascontiguousarray(x)

    def beside(self, x: Any, number: Any) -> Any:
        return self.cupy.stack([x, self.cupy.full_like(x, number)])

    def rows(self, x: Any, shape: Strides, order: Sequence[int], rows: int, length: int) -> Any:
        return self.cupy.broadcast_to(x, shape).transpose(*order).reshape(rows, length)

    def behind(self, number: Any, x: Any, name: str) -> Any:
        with x.device:
            return self.join([self.cupy.full((x.shape[0], 1), number, dtype=name), x.astype(name)], 1)

    def join(self, xs: Sequence[Any], axis: int = 0) -> Any:
        return self.cupy.concatenate(xs, axis) if len(xs) > 1 else xs[0]

    def stack(self, xs: Sequence[Any], axis: int) -> Any:
        return self.cupy.stack(xs, axis)

    def where(self, mask: Any, x: Any, y: Any) -> Any:
        return self.cupy.where(mask, x, y if hasattr(y, "shape") else x.dtype.type(y))

    def cast(self, x: Any, name: str) -> Any:
        return x.astype(name)

    def complex(self, real: Any, imaginary: Any) -> Any:
        with real.device:
            value = self.cupy.empty(real.shape, "complex64" if str(real.dtype) == "float32" else "complex128")
        value.real, value.imag = real, imaginary
        return value

    def conjugate(self, x: Any) -> Any:
        return self.cupy.conj(x)

    def zeros_beside(self, x: Any, shape: Sequence[int]) -> Any:
        with x.device:
            return self.cupy.zeros(shape, x.dtype)

    def numbers(self, n: int, number: int) -> Any:
        with self.cupy.cuda.Device(number):
            return self.cupy.arange(n, dtype="int64")

    def number_of(self, x: Any) -> int:
        return int(x.device.id)

    def order_of(self, x: Any) -> Any:
        return self.cupy.argsort(x, axis=1, kind="stable")

    def along(self, x: Any, order: Any) -> Any:
        return self.cupy.take_along_axis(x, order, 1)

    def put(self, out: Any, x: Any) -> None:
        out[...] = x

    def to_host(self, x: Any) -> bytes:
        return bytes(x.get().tobytes())

    def convert(self) -> str:
        return "x.astype(...)"

    def bring(self, number: int) -> str:
        return f"cupy.asarray(a) brings it there (within cupy.cuda.Device({number}))"


@functools.lru_cache(maxsize=None)
def _library(name: str) -> Any:
    return {"torch": _Torch, "cupy": _CuPy}[name]()


class GpuArray(NamedTuple):
    """An array on a GPU that has been taken."""

    library: Any
    type: str  # of an element: one of _KINDS
    address: int
    shape: tuple[int, ...]
    strides: Strides  # in elements
    number: int  # the device's
    array: Any

    @property
    def spec(self) -> str:
        return f"cuda:{self.number}"

    def is_contiguous(self) -> bool:
        return self.strides_suit(self.shape, range(len(self.shape)))

    def is_dense(self) -> bool:
        """Whether the elements fill their memory, in whichever order of the dimensions."""
        return self.strides_suit(self.shape, sorted(range(len(self.shape)), key=lambda d: -self.strides[d]))

    def strides_suit(self, shape: tuple[int, ...], order: Sequence[int]) -> bool:
        step = 1
        for d in reversed(order):
            if shape[d] != 1 and self.strides[d] != step:
                return False
            step *= shape[d]
        return True


def take(x: Any) -> GpuArray:
    """An array on a GPU, taken."""
    if is_torch(x):
        check_torch(x)
        library = _library("torch")
    elif type(x).__module__.partition(".")[0] == "cupy":
        library = _library("cupy")
    else:
        raise NotImplementedError(f"arrays of {type(x).__module__} on a GPU are not reduced there: copy it to the host, or "
                                  "hand it to PyTorch or CuPy by DLPack")
    name = library.name(x)
    if name not in _KINDS:
        raise TypeError(f"tally does not reduce {name} on a GPU")
    address, shape, strides, number = library.take(x)
    return GpuArray(library, _KINDS[name], address, shape, strides, number, x)


def _take_beside(x: Any, t: GpuArray, what: str) -> GpuArray:
    """A further array, which must be of the same library and on the same device."""
    taken = take(x) if is_on_gpu(x) else None
    if taken is None or taken.library is not t.library or taken.number != t.number:
        raise TypeError(f"{what} lies elsewhere than the array on {t.spec}, and nothing is copied between devices unasked: "
                        f"{t.library.bring(t.number)}")
    return taken


def _accept_jax(call: Callable[..., Any]) -> Callable[..., Any]:
    """Lets a call take JAX's arrays, too: they go by DLPack to CuPy or PyTorch and come back so. JAX does not say which
    stream it works on, and may use an array's memory again as soon as nobody on the host has it: the call waits."""

    @functools.wraps(call)
    def passing(*arguments: Any, **more: Any) -> Any:
        if "jax" not in sys.modules or not any(_is_jax(a) for a in (*arguments, *more.values())):
            return call(*arguments, **more)
        import jax  # type: ignore[import-not-found, unused-ignore]
        name = "torch" if "torch" in sys.modules or not _is_here("cupy") else "cupy"
        try:
            library = _library(name)
        except ImportError:
            raise NotImplementedError("arrays of JAX on a GPU are reduced through CuPy or PyTorch, and neither is "
                                      "here") from None
        module = getattr(library, name)

        def over(a: Any) -> Any:
            return module.from_dlpack(a) if _is_jax(a) else a

        if more.get("out") is not None:
            raise TypeError("JAX's arrays are never written: leave out= alone")
        with checked():
            result = call(*(over(a) for a in arguments), **{k: over(v) for k, v in more.items()})
        if isinstance(result, list):
            return [jax.dlpack.from_dlpack(value) for value in result]
        if isinstance(result, tuple):
            return type(result)(*map(jax.dlpack.from_dlpack, result))
        return jax.dlpack.from_dlpack(result)

    return passing


def _is_here(name: str) -> bool:
    import importlib.util
    return importlib.util.find_spec(name) is not None


def _is_jax(a: Any) -> bool:
    return type(a).__module__.partition(".")[0] in ("jax", "jaxlib") and is_on_gpu(a)


# ---- What only the elements can say ----------------------------------------------------------------------------------


class _Watched(NamedTuple):
    library: Any
    memory: Any  # whose bytes are _RESULT for each of `what`, or one outcome
    what: tuple[tuple[str, str], ...]
    is_outcome: bool

    def check(self) -> None:
        for i, (op, kind) in enumerate(self.what):
            data = self.library.to_host(self.memory[_RESULT * i:_RESULT * (i + 1)])
            at, status, value = struct.unpack("=Qii", data)
            if status == 0:
                continue
            if not self.is_outcome:
                raise (ValueError(f"attempt to get {op} of an empty sequence") if kind == "u64" else
                       OverflowError(f"the exact {op} does not fit {kind}"))
            if value < 0:
                raise ValueError(f"offset or id {at} is out of order or out of bounds; the results mean nothing")
            op, kind = self.what[value]
            raise (ValueError(f"result {at} has no elements, so there is no {op}") if kind == "u64" else
                   OverflowError(f"result {at}: the exact {op} does not fit {kind}"))


class _Fitted(NamedTuple):
    library: Any
    fits: Any  # whether each integer fits what it was brought to
    text: str

    def check(self) -> None:
        if not all(self.library.to_host(self.fits)):
            raise OverflowError(self.text)


_watch: contextvars.ContextVar[list[Any] | None] = contextvars.ContextVar("tally_watch", default=None)


@contextlib.contextmanager
def checked() -> Iterator[None]:
    """A with statement behind which calls on GPU arrays are known to have been right.

    A call on an array on a GPU does not wait, so it cannot raise what only the elements say: that an exact integer does
    not fit its type, that a segment has no least element, that an offset falls or an id lies outside. Such a result is
    0. At the end of this statement everything that was asked in it is waited for, and the first such error is raised.

    Examples
    --------
    >>> with tally.checked():
    ...     total = tally.sum([1, 2, 3])
    """
    watched: list[Any] = []  # of what has a check()
    token = _watch.set(watched)
    _core._defer_checks(1)
    try:
        yield
    finally:
        _core._defer_checks(-1)
        _watch.reset(token)
    for w in watched:
        w.check()


# ---- One reduction ---------------------------------------------------------------------------------------------------


def _result_name(op: str, kind: str, element: str) -> str:
    """The dtype's name of a value."""
    if op in _INDEX:
        return "int64"
    if op in ("any", "all") or (element == "bool" and op in ("min", "max", "and", "or", "xor", "user")):
        return "bool"
    return _NAMES[kind]


class _Plan(NamedTuple):
    """How a value of a whole array is asked for: found once for each operator, type, length and device."""

    problem: _core.Problem
    what: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    size: int


@functools.lru_cache(maxsize=1024)
def _plan(p: _core.Problem, element: str, n: int, spec: str) -> _Plan:
    what = _values_of(p)
    return _Plan(p, what, tuple(_result_name(op, kind, element) for op, kind in what), p.workspace(n, spec))


class _Prepared(NamedTuple):
    """A reduction that can be launched again, to a new tensor: for tensors of the same types, shapes, strides and device."""

    library: Any
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
    """Results that wait to be written by calls on one stream, each with its address and that of its workspace."""

    def __init__(self, p: _Prepared):
        self.p = p
        self.waiting: list[tuple[Any, int, Any, int]] = []
        #: Such calls share one workspace, which is cleared once. Others get results and workspace of their own.
        self.is_shared = p.room <= _MOST_ROOM and p.size <= _MOST_WORK
        self.work: Any = None

    def refill(self) -> None:
        p, library = self.p, self.p.library
        if self.work is None or not self.is_shared:
            self.work = (library.zeros if self.is_shared else library.empty)((p.size,), "uint8", p.number)
        work, at = self.work, library.address(self.work)
        if not self.is_shared:
            self.work = None
        count = min(_AT_ONCE, _MOST_ROOM // p.room) if self.is_shared else 1
        values = library.results(count * p.values, p.shape, p.room // p.values, p.name, p.number)
        for i in range(0, len(values), p.values):
            value, address = values[i]
            gathered = value if p.gather is None else p.gather(*(v for v, _ in values[i:i + p.values]))
            self.waiting.append((gathered, address, work, at))


#: (device, stream, bytes of workspace, result's dtype, shape and room, what gathers values) -> results for such calls.
_results: dict[tuple[Any, ...], _Results] = {}
_MOST_RESULTS = 32
_MOST_WORK = 1 << 22  # bytes of a shared workspace
_AT_ONCE = 64  # results that are made together, or fewer: the last of them that is alive keeps them all, ...
_MOST_ROOM = 1 << 18  # ... which are so many bytes together at most


def clear_cache() -> None:
    """Empties the cache of calls, and frees what was kept for them."""
    _results.clear()
    _core._clear_calls()


class _Call:
    """A call on PyTorch's tensors that is made the general way."""

    def __init__(self, x: Any, more: tuple[Any, ...]) -> None:
        self.x, self.more = x, more
        self.value: Any = None  # of the last reduction, and ...
        self.prepared: _Prepared | None = None  # ... how that is launched again

    def has(self, t: GpuArray | None) -> bool:
        return t is None or any(a is t.array for a in self.more)


_call: contextvars.ContextVar[_Call | None] = contextvars.ContextVar("tally_call", default=None)


def _call_on_tensor(function: Callable[..., Any], names: tuple[str, ...] | None, x: Any, *more: Any) -> Any:
    """Returns function(x, *more), the last of whose arguments have names, for a tensor of PyTorch's; and adds the call to the
    cache (ext/call_cache.c)."""
    first = len(more) - len(names or ())
    positional, named = more[:first], dict(zip(names or (), more[first:]))
    if not x.is_cuda or _watch.get() is not None or (library := _library("torch")).is_capturing():
        return function(x, *positional, **named)
    call = _Call(x, more)
    token = _call.set(call)
    try:
        value = function(x, *positional, **named)
    finally:
        _call.reset(token)
    p = call.prepared
    if p is not None and value is call.value:
        key = (p.number, library.stream(p.number), p.size, p.name, p.shape, p.room, p.gather)
        if key not in _results and len(_results) >= _MOST_RESULTS:
            clear_cache()
        results = _results.setdefault(key, _Results(p))
        _core._cache_call(function, names, (x, *more), p.prepared, library.is_capturing, results.waiting, results.refill,
                          results.is_shared, p.has_mask)
    return value


def _prepare(p: _core.Problem, t: GpuArray, axes: tuple[int, ...], y: GpuArray | None, y_strides: Strides | None,
             mask: GpuArray | None, value: Any, gather: Callable[..., Any] | None = None) -> None:
    """Notes how a reduction that has just been made is launched again: to one value for each result, or to several of one
    dtype that are gathered."""
    call = _call.get()
    if call is None or call.x is not t.array or not (call.has(y) and call.has(mask)) or 0 in t.shape:
        return
    name, *others = (_result_name(*what, t.type) for what in _values_of(p))
    if any(other != name for other in others) or None not in (y, mask):
        return
    call.value = value
    shape = tuple((value if gather is None else value[0]).shape)
    if _is_whole(p, t, axes, y, y_strides, mask):
        room = _RESULT
        prepared, size = p.prepare(math.prod(t.shape), t.spec, room)
    else:
        bits, lengths, x, ys, masks = _squeezed(t, axes, y_strides,
                                                None if mask is None else _strides_to(mask, t.shape, "where="))
        room = -(-math.prod(shape) * _SIZE[_KINDS[name]] // _RESULT) * _RESULT
        prepared, size = p.prepare((lengths, x, ys, masks, bits, None), t.spec, room)
    values = 1 + len(others)
    call.prepared = _Prepared(t.library, t.number, prepared, size, name, shape, room * values, values, gather, mask is not None)


@functools.lru_cache(maxsize=1024)
def _values_of(p: _core.Problem) -> tuple[tuple[str, str], ...]:
    return tuple(p.values())


def _whole(p: _core.Problem, t: GpuArray, y: GpuArray | None) -> list[Any]:
    """The values of all elements, as arrays of no dimensions."""
    library, number = t.library, t.number
    n = math.prod(t.shape)
    plan = _plan(p, t.type, n, t.spec)
    work = library.empty((plan.size,), "uint8", number)
    stream = library.stream(number)
    if len(plan.names) == 1:
        name = plan.names[0]
        results = library.empty((_RESULT // _SIZE[_KINDS[name]],), name, number)
        values = [results[0]]
    else:
        results = library.empty((_RESULT * len(plan.names),), "uint8", number)
        values = [library.view(results[_RESULT * i:_RESULT * (i + 1)], name)[0] for i, name in enumerate(plan.names)]
    p.enqueue(t.address, 0 if y is None else y.address, n, library.address(work), plan.size, stream,
              library.address(results), t.spec)
    watch = _watch.get()
    if watch is not None:
        watch.append(_Watched(library, library.view(results, "uint8"), plan.what, False))
    return values


def _squeezed(t: GpuArray, axes: tuple[int, ...], *others: Any) -> tuple[Any, ...]:
    """Shapes and strides without the dimensions of length 1 where there are too many for the engine."""
    keep = [d for d, n in enumerate(t.shape) if n != 1] if len(t.shape) > _MOST_DIMS else list(range(len(t.shape)))
    if len(keep) > _MOST_DIMS:
        raise NotImplementedError(f"arrays on a GPU have at most {_MOST_DIMS} dimensions longer than 1")
    pick = [None if s is None else tuple(s[d] for d in keep) for s in (t.shape, t.strides, *others)]
    return (bits_of(tuple(i for i, d in enumerate(keep) if d in axes)), *pick)


def _in_parts(p: _core.Problem, t: GpuArray, cut: str, shape: tuple[Any, ...], y: int, mask: int,
              outs: Sequence[Any]) -> None:
    library = t.library
    memory = None

    def allocate(size: int) -> int:
        nonlocal memory
        # (Of minmax nothing can go wrong, and nothing is written of it.)
        memory = (library.empty if watch is None else library.zeros)((size,), "uint8", t.number)
        return int(library.address(memory))

    watch = _watch.get()
    p.enqueue_parts(cut, shape, t.address, y, mask, tuple(library.address(o) for o in outs), library.stream(t.number),
                    allocate, watch is not None, t.spec)
    if watch is not None:
        watch.append(_Watched(library, memory, _values_of(p), True))


def _strides_to(t: GpuArray, shape: tuple[int, ...], what: str) -> Strides:
    """Strides by which an array is broadcast to a shape."""
    more = len(shape) - len(t.shape)
    if more < 0 or any(a not in (1, b) for a, b in zip(t.shape, shape[max(0, more):])):
        raise ValueError(f"{what} of shape {tuple(t.shape)} is not broadcast to {tuple(shape)}")
    return (0,) * more + tuple(0 if a == 1 != b else s for a, b, s in zip(t.shape, shape[more:], t.strides))


def _mask(where: Any, t: GpuArray) -> GpuArray | None:
    if where is None or where is True:
        return None
    mask = _take_beside(where, t, "where=")
    if mask.type != "bool":
        raise TypeError(f"where= is an array of bool, not of {_NAMES[mask.type]}")
    return mask


def _is_whole(p: _core.Problem, t: GpuArray, axes: tuple[int, ...], y: GpuArray | None, y_strides: Strides | None,
              where: GpuArray | None) -> bool:
    """Whether the one result is of elements that lie side by side, in an order that will do."""
    if len(axes) != len(t.shape) or where is not None:
        return False
    flat = t.is_contiguous() or (not any(op in _NEEDS_ORDER for op, _ in _values_of(p)) and t.is_dense())
    return flat and (y is None or (y_strides == t.strides and y.shape == t.shape))


def _along(p: _core.Problem, t: GpuArray, axes: tuple[int, ...], y: GpuArray | None, y_strides: Strides | None,
           where: GpuArray | None, keepdims: bool, complex_kind: str | None = None) -> list[Any]:
    """The values along axes, as new arrays. complex_kind: the last dimension, which is kept, is a complex result's two
    parts."""
    what = _values_of(p)
    library = t.library
    shape = t.shape
    if complex_kind is None and _is_whole(p, t, axes, y, y_strides, where):
        values = _whole(p, t, y)
        return [v.reshape((1,) * len(shape)) for v in values] if keepdims and shape else values
    out_shape = [1 if d in axes else n for d, n in enumerate(shape)]
    names = [_result_name(op, kind, t.type) for op, kind in what]
    if complex_kind is not None:
        out_shape, names = out_shape[:-1], [_NAMES[complex_kind]]
    kept = out_shape if keepdims else [n for d, n in enumerate(out_shape) if d not in axes]
    outs = [library.empty(tuple(kept), name, t.number) for name in names]
    bits, lengths, x, ys, masks = _squeezed(t, axes, y_strides,
                                            None if where is None else _strides_to(where, shape, "where="))
    _in_parts(p, t, "axes", (lengths, x, ys, masks, bits, None), 0 if y is None else y.address,
              0 if where is None else where.address, outs)
    return outs


def _name_of(dtype: Any) -> str:
    text = str(dtype)
    return text[6:] if text.startswith("torch.") else np.dtype(dtype).name


def _rounded(op: str, t: GpuArray, dtype: Any) -> tuple[str | None, str | None]:
    """What dtype= comes to: the problem's result type, and the type that its result is brought to, an integer one or a
    complex one; errors as for arrays of the host."""
    if dtype is None:
        return None, None
    name = _name_of(dtype)
    kind = _KINDS.get(name, "")
    if kind == "bool":
        raise TypeError(f"a {op} is no bool; tally.any and tally.all are")
    if kind in FLOATS:
        return kind, None
    if kind in _PART:
        return _PART[kind], None if t.type in _PART else kind
    if kind == "" or t.type in FLOATS or t.type in _PART or op in ("mean", "var", "std", "norm2"):
        raise TypeError(f"the exact {op} of {_NAMES[t.type]} elements is rounded to a floating dtype, not {name}")
    return None, kind


def _fitted(op: str, value: Any, t: GpuArray, kind: str | None) -> Any:
    """Exact integers of 64 bits as another type, where those that do not fit it are 0; reals as complex numbers."""
    library = t.library
    if kind is None or _KINDS[library.name(value)] == kind:
        return value
    if kind in _PART:
        return library.cast(value, _NAMES[kind])
    if kind in FLOATS:
        return library.cast(value, _NAMES[kind])
    limits = np.iinfo(DTYPE[kind])
    least = 0 if _KINDS[library.name(value)] == "u64" else int(limits.min)
    number = library.view(value, "int64")
    fits = (number >= least) & (number <= min(int(limits.max), (1 << 63) - 1))
    watch = _watch.get()
    if watch is not None:
        watch.append(_Fitted(library, fits, f"the exact {op} does not fit {_NAMES[kind]}"))
    return library.cast(library.where(fits, number, 0), _NAMES[kind])


def _asked(op: str, dtype: Any, out: Any, element: str) -> Any:
    """asked_by() of an array on a GPU."""
    if out is None:
        return dtype
    if isinstance(out, tuple):
        (out,) = out
    kind = take(out).type if is_on_gpu(out) else ""
    if op not in ROUNDED or kind in ("", "bf16") or (kind not in FLOATS and kind not in _PART):
        return dtype
    like = np.empty((), _NAMES[kind])
    asked = asked_by(op, None if dtype is None else _name_of(dtype), like, element)
    return _NAMES[kind] if asked is like.dtype else dtype


def _into(out: Any, value: Any, t: GpuArray, op: str) -> Any:
    """Puts a result where the caller wants it."""
    if isinstance(out, tuple):
        (out,) = out
    place = _take_beside(out, t, "out=")
    if tuple(out.shape) != tuple(value.shape):
        raise ValueError(f"out= has shape {tuple(out.shape)}, the result {tuple(value.shape)}")
    from_, to = _KINDS[t.library.name(value)], place.type

    def rank(kind: str) -> int:
        return 0 if kind == "bool" else 1 if kind[0] == "u" else 2 if kind[0] == "i" else 3 if kind in FLOATS else 4

    if from_ != to and rank(from_) > rank(to):
        raise TypeError(f"cannot cast the result from {_NAMES[from_]} to {_NAMES[to]} with casting rule 'same_kind'")
    t.library.put(out, _fitted(op, value, t, to) if rank(to) in (1, 2) and from_ in ("i64", "u64") else
                  _fitted(op, t.library.cast(value, "int64"), t, to) if rank(to) in (1, 2) and rank(from_) in (1, 2) else value)
    return out


def _pairs(t: GpuArray) -> GpuArray:
    """Complex elements as real ones, with one dimension more."""
    return t._replace(type=_PART[t.type], shape=(*t.shape, 2), strides=(*(2 * s for s in t.strides), 1))


def _complex(op: str, t: GpuArray, axes: tuple[int, ...], dtype: Any, where: GpuArray | None, keepdims: bool, fast: bool,
             initial: Any) -> Any:
    pairs = _pairs(t)
    last = len(t.shape)
    mask = None if where is None else where._replace(shape=(*where.shape, 1), strides=(*where.strides, 0))
    if op in ("sum", "mean", "prod"):
        wanted = t.type if dtype is None else _KINDS.get(_name_of(dtype), "")
        if wanted not in _PART:
            raise TypeError(f"a {op} of complex numbers is no {dtype}")
        if op == "prod":
            return _complex_product(t, axes, wanted, where, keepdims, initial)
        if initial is not None:
            return _with_initial(op, t, axes, wanted, where, keepdims, initial, fast)
        return _along(problem((op,), pairs.type, _PART[wanted], fast), pairs, axes, None, None, mask, keepdims, wanted)[0]
    if op in ("norm2", "sumsq", "any"):
        # |z|^2 is the sum of both parts' squares: one more axis, which is reduced, too.
        p = problem((op,), pairs.type, None if op == "any" else _rounded(op, pairs, dtype)[0])
        value = _along(p, pairs, (*axes, last), None, None, mask, keepdims)[0]
        return value.reshape(tuple(value.shape)[:-1]) if keepdims else value
    if op in ("all", "nonzero"):
        truths = take(t.array != 0)
        return _along(problem((op,), truths.type), truths, axes, None, None, where, keepdims)[0]
    raise TypeError(f"tally has no {op} of complex numbers; reduce x.real and x.imag")


class _Rows(NamedTuple):
    """An array as rows: the reduced elements of each result side by side."""

    t: GpuArray
    kept: list[int]
    order: list[int]
    sizes: tuple[int, int]
    shape: tuple[int, ...]  # of the results, without and ...
    whole: tuple[int, ...]  # ... with the reduced axes

    def of(self, x: Any) -> Any:
        """An array that is broadcast to the shape, as rows."""
        return self.t.library.rows(x, tuple(self.t.shape), self.order, *self.sizes) if self.t.shape else x.reshape(1, 1)

    def back(self, value: Any, keepdims: bool) -> Any:
        return value.reshape(self.whole if keepdims else self.shape)


def _as_rows(t: GpuArray, axes: tuple[int, ...]) -> _Rows:
    shape = t.shape
    kept = [d for d in range(len(shape)) if d not in axes]
    return _Rows(t, kept, [*kept, *sorted(axes)], (math.prod(shape[d] for d in kept), math.prod(shape[d] for d in axes)),
                 tuple(shape[d] for d in kept), tuple(1 if d in axes else n for d, n in enumerate(shape)))


def _complex_product(t: GpuArray, axes: tuple[int, ...], wanted: str, where: GpuArray | None, keepdims: bool, initial: Any) -> Any:
    library, form = t.library, _as_rows(t, axes)
    rows, mask = library.cast(form.of(t.array), _NAMES[wanted]), None if where is None else form.of(where.array)
    if initial is not None:
        rows = library.behind(complex(initial), rows, _NAMES[wanted])
        mask = None if mask is None else library.behind(True, mask, "bool")
    if rows.shape[1] == 0:
        rows = library.behind(1, rows, _NAMES[wanted])
        mask = None
    return form.back(library.complex(*products(library, rows.real, rows.imag, mask)), keepdims)


def _variance(op: str, t: GpuArray, axes: tuple[int, ...], dtype: Any, where: GpuArray | None, ddof: float, mean: Any,
              keepdims: bool) -> Any:
    """Variances of complex numbers, or about a mean that is given."""
    library, form = t.library, _as_rows(t, axes)
    is_complex = t.type in _PART
    part = _PART.get(t.type, t.type)
    rounded, _ = _rounded(op, t._replace(type=part), dtype)
    out = rounded or (part if part in FLOATS else "f64")
    rows = form.of(t.array)
    means = None
    if mean is not None:
        about = _take_beside(mean, t, "mean=")
        more = len(form.whole) - len(about.shape)
        if more < 0 or any(a not in (1, b) for a, b in zip(about.shape, form.whole[more:])):
            raise ValueError(f"mean= has shape {tuple(about.shape)}, the mean with keepdims=True {form.whole}")
        if about.type in ("i64", "u64") or (about.type in _PART and not is_complex):
            raise TypeError(f"mean= is of floats or complex numbers as the elements are, not of {_NAMES[about.type]}")
        flat = library.rows(mean, form.whole, range(len(form.whole)), 1, form.sizes[0])[0]
        both = (flat.real, flat.imag) if about.type in _PART else (flat, flat * 0) if is_complex else (flat,)
        means = [library.in_order(library.cast(m, "float64")) for m in both]
    elif not is_for_complex(form.sizes[1], ddof):
        raise NotImplementedError(f"the {op} of complex numbers on a GPU has a ddof of whole sixteenths, and at most 2^31 "
                                  "elements a result (2^29 where it is no integer)")
    if 0 in form.sizes:
        return form.back(library.empty((form.sizes[0],), _NAMES[out], t.number) * math.nan, keepdims)
    mask = None if where is None else form.of(where.array)
    if part not in FLOATS:  # bits, as far as a mask is concerned
        rows = library.view(rows, f"int{8 * _SIZE[part]}")
    value = variances(op, (rows.real, rows.imag) if is_complex else (rows,), "i8" if part == "bool" else part, mask, means,
                      library=library, number=t.number, out=out, name=_NAMES[out], ddof=ddof)
    return form.back(value, keepdims)


def _check_device(device: str | None) -> None:
    if device is not None:
        raise ValueError("an array on a GPU is reduced there: leave device= alone")


@_accept_jax
def values(make: Callable[[str, str | None], _core.Problem], label: str, x: Any, axis: Any, dtype: Any = None,
           keepdims: bool = False, where: Any = None, device: str | None = None, out: Any = None,
           gather: Callable[..., Any] | None = None) -> Any:
    """The values of any problem, as a list or gathered: make(element type, result type) is it. `out` is for one value."""
    _check_device(device)
    t = take(x)
    axes = axes_of(axis, len(t.shape))
    if t.type in _PART:
        raise TypeError("complex numbers are reduced by tally.sum, mean, norm, sumsq, dot and vecdot; or by their parts")
    dtype = _asked(label, dtype, out, t.type)
    rounded, wanted = _rounded(label, t, dtype)
    p = make(t.type, rounded)
    what = p.values()
    lone = next((op for op, _ in what if op in NO_IDENTITY), None)
    if lone is not None and where is None and lacks(t.shape, axes):
        raise ValueError(f"a result of no elements has no {lone}")
    if where is not None and any(op in ("argmin", "argmax") for op, _ in what):
        raise TypeError("argmin and argmax take no where=")
    if out is not None and len(what) > 1:
        raise ValueError("out= is for one value")
    if len(what) == 1 and label in ("argmin", "argmax"):
        check_index(label, t.shape, axes)
    mask = _mask(where, t)
    results = _along(p, t, axes, None, None, mask, keepdims)
    if lone is not None and mask is not None:
        counts = _along(problem(("count",), t.type), t, axes, None, None, mask, keepdims)[0]
        results = _without_nothing(tuple(what), results, counts, t, None)
    if wanted is not None:
        results[0] = _fitted(label, results[0], t, wanted)
    if out is not None:
        results = [_into(out, results[0], t, label)]
    if gather is None:
        return results
    value = gather(*results)
    if where is wanted is None:
        _prepare(p, t, axes, None, None, None, value, gather)
    return value


@_accept_jax
def reduce(op: str, x: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any, ddof: float,
           fast: bool, device: str | None, mean: Any = None) -> Any:
    """One operator's values along axes, as an array on the same GPU."""
    _check_device(device)
    t = take(x)
    axes = axes_of(axis, len(t.shape))
    if op in ("min", "max"):
        check_extreme(f"{op}imum", t.shape, axes, initial, where)
    elif op in ("argmin", "argmax"):
        check_index(op, t.shape, axes)
    elif op in ("and", "or", "xor") and t.type in FLOATS:
        raise TypeError(f"tally.bitwise_{op} is not supported for {_NAMES[t.type]} elements; a view has their bits")
    mask = _mask(where, t)
    initial = None if initial is np._NoValue else initial
    if initial is not None and op in ("min", "max", "and", "or", "xor") and t.type in DTYPE:
        initial = check_initial(t.type, initial)
    dtype = _asked(op, dtype, out, t.type)
    if op in ("var", "std") and (mean is not None or t.type in _PART):
        value = _variance(op, t, axes, dtype, mask, ddof, mean, keepdims)
    elif t.type in _PART:
        value = _complex(op, t, axes, dtype, mask, keepdims, fast, initial)
    else:
        rounded, wanted = (None, "f64") if op == "norminf" and dtype is not None else _rounded(op, t, dtype)
        if op == "prod" and rounded not in (None, t.type):  # rounded at every step
            t, rounded = _cast(t, rounded), None
        if initial is not None and op in ("sum", "prod"):
            value = _with_initial(op, t, axes, rounded, mask, keepdims, initial, fast)
        else:
            p = problem((op,), t.type, None if op == "prod" else rounded, fast, ddof)
            value = _along(p, t, axes, None, None, mask, keepdims)[0]
            if initial is wanted is out is None and math.prod(t.shape[d] for d in axes) > ddof:  # (else there is a warning)
                _prepare(p, t, axes, None, None, mask, value)
            if initial is not None:
                both = take(t.library.beside(value, initial))
                value = _along(p, both, (0,), None, None, None, False)[0]
        value = _fitted(op, value, t, wanted)
    return value if out is None else _into(out, value, t, op)


def _cast(t: GpuArray, kind: str) -> GpuArray:
    """A copy whose elements are of another type."""
    return t if t.type == kind else take(t.library.cast(t.array, _NAMES[kind]))


def _with_initial(op: str, t: GpuArray, axes: tuple[int, ...], rounded: str | None, where: GpuArray | None, keepdims: bool,
                  initial: Any, fast: bool) -> Any:
    """Sums and products with one more element in front of each result's: of a copy, in rows. `rounded`: the result's
    type; of complex numbers a complex one."""
    library, form = t.library, _as_rows(t, axes)
    if t.type in _PART:
        value = np.complex128(initial)
        element = t.type if t.type == "c128" or np.complex64(value) == value else "c128"
    else:
        element, rounded, initial = with_initial(op, t.type, rounded, initial)

    def rows(x: Any, first: Any, name: str) -> GpuArray:
        return take(library.behind(first, form.of(x), name))

    mask = None if where is None else rows(where.array, True, "bool")
    elements = rows(t.array, initial, _NAMES[element])
    if element in _PART:
        return form.back(_complex(op, elements, (1,), _NAMES[rounded or t.type], mask, False, fast, None), keepdims)
    return form.back(_along(problem((op,), element, rounded, fast), elements, (1,), None, None, mask, False)[0], keepdims)


_Layout = Callable[[GpuArray, GpuArray], tuple[tuple[int, ...], Strides, Strides]]


def _products(a: GpuArray, b: GpuArray, layout: _Layout, dtype: Any, out: Any, conjugate: bool) -> Any:
    """Sums of products along the last of some dimensions, by which two arrays are read: layout(a, b) is their shape and
    the strides of both. `conjugate`: complex elements of the first one."""
    dtype = _asked("dot", dtype, out, a.type)
    rounded, wanted = _rounded("dot", a, dtype)
    p = problem(("dot",), _PART.get(a.type, a.type), rounded)

    def part(left: GpuArray, right: GpuArray, swapped: bool) -> Any:
        """Of complex elements: a sum of left.real right.real + left.imag right.imag, or with the right one's parts swapped."""
        shape, x, y = layout(left, right)
        left, right = left._replace(shape=shape, strides=x), right._replace(shape=shape, strides=y)
        axes: tuple[int, ...] = (len(shape) - 1,)
        if a.type in _PART:
            left, right, axes = _pairs(left), _pairs(right), (*axes, len(shape))
        if swapped:
            right = right._replace(address=right.address + _SIZE[right.type], strides=(*right.strides[:-1], -1))
        value = _along(p, left, axes, right, right.strides, None, False)[0]
        if wanted is out is None and a.type not in _PART:
            _prepare(p, left, axes, right, right.strides, None, value)
        return value

    def conjugated(t: GpuArray) -> GpuArray:
        copy = take(t.library.conjugate(t.array))
        return copy if len(t.shape) == len(copy.shape) else copy._replace(shape=t.shape, strides=(*copy.strides, 1))

    if a.type not in _PART:
        value = _fitted("dot", part(a, b, False), a, wanted)
    elif conjugate:
        value = a.library.complex(part(a, b, False), part(conjugated(a), b, True))
    else:
        value = a.library.complex(part(a, conjugated(b), False), part(a, b, True))
    return value if out is None else _into(out, value, a, "dot")


def _two(a: Any, b: Any, device: str | None) -> tuple[GpuArray, GpuArray]:
    _check_device(device)
    if is_on_gpu(a):
        left = take(a)
        right = _take_beside(b, left, "the second array")
    else:
        right = take(b)
        left = _take_beside(a, right, "the first array")
    if left.type == right.type:
        return left, right
    if "bf16" in (left.type, right.type):
        raise TypeError(f"bfloat16 goes with bfloat16 only: convert the other, {left.library.convert()}")
    kind = _KINDS[np.result_type(_NAMES[left.type], _NAMES[right.type]).name]
    for each in (left, right):
        if each.type in ("i64", "u64") and kind not in ("i64", "u64") and not _holds("f64", each):
            raise TypeError(f"{_NAMES[each.type]} elements beyond 2^53, which {_NAMES[kind]} does not hold exactly: convert them, "
                            f"{left.library.convert()}")
    return _cast(left, kind), _cast(right, kind)


def _moved(s: tuple[int, ...], a: int) -> tuple[int, ...]:
    """The a-th one behind all others."""
    a %= len(s)
    return (*s[:a], *s[a + 1:], s[a])


def _broadcast(x: GpuArray, y: GpuArray) -> tuple[tuple[int, ...], Strides, Strides]:
    shape = np.broadcast_shapes(x.shape, y.shape)
    return shape, _strides_to(x, shape, "the array"), _strides_to(y, shape, "the array")


@_accept_jax
def dot(a: Any, b: Any, out: Any, dtype: Any, device: str | None) -> Any:
    """numpy.dot of two arrays on one GPU."""
    left, right = _two(a, b, device)
    if () in (left.shape, right.shape):  # by a number: products, rounded once
        left, right = (t._replace(shape=(*t.shape, 1), strides=(*t.strides, 1)) for t in (left, right))
        return _products(left, right, _broadcast, dtype, out, False)
    second = max(0, len(right.shape) - 2)
    if left.shape[-1] != right.shape[second]:
        raise ValueError(f"shapes {tuple(left.shape)} and {tuple(right.shape)} not aligned: {left.shape[-1]} (dim "
                         f"{len(left.shape) - 1}) != {right.shape[second]} (dim {second})")

    def layout(x: GpuArray, y: GpuArray) -> tuple[tuple[int, ...], Strides, Strides]:
        rest, steps = _moved(y.shape, second), _moved(y.strides, second)
        return ((*x.shape[:-1], *rest[:-1], x.shape[-1]), (*x.strides[:-1], *(0,) * (len(rest) - 1), x.strides[-1]),
                (0,) * (len(x.shape) - 1) + steps)

    return _products(left, right, layout, dtype, out, False)


@_accept_jax
def vecdot(a: Any, b: Any, axis: int, dtype: Any, device: str | None) -> Any:
    """Dot products along an axis of two arrays on one GPU."""
    left, right = _two(a, b, device)
    if () in (left.shape, right.shape):
        raise ValueError("tally.vecdot wants vectors, not numbers")
    dims = min(len(left.shape), len(right.shape))
    if not -dims <= axis < (0 if len(left.shape) != len(right.shape) else dims):
        raise AxisError(axis, dims)
    if left.shape[axis] != right.shape[axis]:
        raise ValueError(f"the vectors have {left.shape[axis]} and {right.shape[axis]} elements")

    def layout(x: GpuArray, y: GpuArray) -> tuple[tuple[int, ...], Strides, Strides]:
        return _broadcast(*(t._replace(shape=_moved(t.shape, axis), strides=_moved(t.strides, axis)) for t in (x, y)))

    return _products(left, right, layout, dtype, None, True)


# ---- States ----------------------------------------------------------------------------------------------------------


def _holds(kind: str, a: GpuArray) -> bool:
    """Whether a type holds all elements of an array; those of 64-bit integers are looked at, which is waited for."""
    if not np.can_cast(DTYPE[a.type], DTYPE[kind], "safe"):
        return False
    if a.type not in ("i64", "u64") or kind in ("i64", "u64") or 0 in a.shape:
        return True
    ends = [_along(problem((op,), a.type), a, tuple(range(len(a.shape))), None, None, None, False)[0] for op in ("min", "max")]
    low, high = (int.from_bytes(a.library.to_host(end), sys.byteorder, signed=a.type == "i64") for end in ends)
    return -2**53 <= low and high <= 2**53


def feed(state: _core.State, kind: str, x: Any, y: Any) -> None:
    """Feeds a state an array's elements in C order, brought to a type that holds them exactly; waits for it."""
    t = take(x)
    both: tuple[GpuArray, ...] = (t,) if y is None else (t, _take_beside(y, t, "the second array"))
    if any(a.shape != t.shape for a in both):
        raise ValueError(f"the arrays have shapes {tuple(t.shape)} and {tuple(both[1].shape)}")
    kept = []
    for a in both:
        if a.type not in DTYPE or a.type != kind and ("bf16" in (a.type, kind) or not _holds(kind, a)):
            raise TypeError(f"a state of {kind} is not fed {_NAMES[a.type]} elements, which it cannot hold exactly")
        a = _cast(a, kind)
        kept.append(a if a.is_contiguous() else take(t.library.in_order(a.array)))
    t.library.wait(t.number)  # the state works on a stream of its own
    state.feed_resident(kept[0].address, 0 if y is None else kept[1].address, math.prod(t.shape), t.spec)


# ---- Segments and groups ---------------------------------------------------------------------------------------------


def _beside(a: Any, t: GpuArray, what: str) -> GpuArray:
    """An array of one dimension and side by side, on the same GPU, that says where parts are."""
    taken = _take_beside(a, t, f"the array of {what}")
    if len(taken.shape) != 1 or taken.type in FLOATS or taken.type in _PART:
        raise TypeError(f"{what} are an array of integers of one dimension")
    return taken if taken.is_contiguous() else take(t.library.in_order(a))


def _by_rows(p: _core.Problem, t: GpuArray, axis: int, count: int, cut: str, shape: tuple[Any, ...], mask: int,
             is_filled: bool = False) -> list[Any]:
    """Segments or groups along an axis: one reduction for each of the rows that lie along it. `is_filled`: nobody is told that
    an index of nothing is none."""
    if is_filled:
        token = _watch.set(None)
        try:
            return _by_rows(p, t, axis, count, cut, shape, mask)
        finally:
            _watch.reset(token)
    library = t.library
    rows = t if axis == len(t.shape) - 1 and t.is_contiguous() else take(library.in_order(library.move(t.array, axis, -1)))
    n = rows.shape[-1]
    outer = rows.shape[:-1]
    names = [_result_name(op, kind, t.type) for op, kind in p.values()]
    outs = [library.empty((math.prod(outer), count), name, t.number) for name in names]
    size = _SIZE[t.type]
    for i in range(math.prod(outer)):
        _in_parts(p, rows._replace(address=rows.address + i * n * size), cut, shape, 0, mask, [o[i] for o in outs])
    return [library.move(o.reshape((*outer, count)), -1, axis) for o in outs]


def _axis(t: GpuArray, axis: int) -> int:
    if t.type in _PART:
        raise TypeError("complex numbers have no segments and groups here; reduce their parts")
    if not t.shape:
        raise ValueError("segments and groups are of an array, not of a number")
    return axes_of(axis, len(t.shape))[0]


class _Lacking(NamedTuple):
    library: Any
    has: Any  # whether each result has elements
    op: str

    def check(self) -> None:
        there = self.library.to_host(self.has)
        if not all(there):
            raise ValueError(f"result {there.index(0)} has no elements, so there is no {self.op}")


def _without_nothing(what: tuple[tuple[str, str], ...], results: list[Any], counts: Any, t: GpuArray, fill: Any) -> list[Any]:
    """Put `fill`, or 0, where a result of no elements has no value. `counts` is how many elements each result has, in an array
    that is broadcast to the results."""
    library, has = t.library, counts >= 1
    watch = _watch.get()
    if fill is None and watch is not None:
        watch.append(_Lacking(library, has, next(op for op, _ in what if op in NO_IDENTITY)))
    shown = []
    for (op, kind), result in zip(what, results):
        if op in NO_IDENTITY:
            name = library.name(result)
            other = np.zeros((), DTYPE[kind]) if fill is None else filling(fill, op, kind)
            if name[0] == "u":  # (which not every library chooses from)
                signed = library.where(has, library.view(result, name[1:]), other.view(name[1:]).item())
                result = library.view(signed, name)
            else:
                number = other.view(np.int64).item() if op in ("argmin", "argmax") else other.item()
                result = library.where(has, result, bool(number) if name == "bool" else number)
        shown.append(result)
    return shown


@_accept_jax
def segment(make: Callable[[str, str | None], _core.Problem], label: str, x: Any, offsets: Any, axis: int, dtype: Any,
            fill: Any, device: str | None) -> list[Any]:
    """tally.segment's values, on the same GPU."""
    _check_device(device)
    t = take(x)
    a = _axis(t, axis)
    rounded, wanted = _rounded(label, t, dtype)
    p = make(t.type, rounded)

    def fitted(results: list[Any]) -> list[Any]:
        return results if wanted is None else [_fitted(label, results[0], t, wanted), *results[1:]]

    if isinstance(offsets, (int, np.integer)):
        count, n = int(offsets), t.shape[a]
        if count <= 0 or n % count:
            raise ValueError(f"{n} elements are not {count} segments of one length")
        cut = t._replace(shape=(*t.shape[:a], count, n // count, *t.shape[a + 1:]),
                         strides=(*t.strides[:a], n // count * t.strides[a], t.strides[a], *t.strides[a + 1:]))
        results = _along(p, cut, (a + 1,), None, None, None, False)
        if n == 0:
            results = _without_nothing(_values_of(p), results, t.library.zeros((1,), "int64", t.number), t, fill)
        return fitted(results)
    places = _beside(offsets, t, "offsets")
    if places.shape[0] == 0 or places.type not in ("i32", "i64"):
        raise TypeError("offsets are int32 or int64, and one more than there are segments")
    count = places.shape[0] - 1
    shape = (t.shape[a], count, places.address, _SIZE[places.type])
    results = _by_rows(p, t, a, count, "segments", shape, 0, fill is not None)
    if count > 0 and any(op in NO_IDENTITY for op, _ in _values_of(p)):
        counts = (places.array[1:] - places.array[:-1]).reshape(count, *(1,) * (len(t.shape) - 1 - a))
        results = _without_nothing(_values_of(p), results, counts, t, fill)
    return fitted(results)


def _groups_in(ids: GpuArray) -> int:
    """One more than the greatest id. The shape of results hangs on it, so this is waited for."""
    if ids.shape[0] == 0:
        return 0
    greatest = ids.library.to_host(_whole(problem(("max",), ids.type), ids, None)[0])
    return max(0, int.from_bytes(greatest, sys.byteorder, signed=ids.type[0] == "i") + 1)


@_accept_jax
def group(make: Callable[[str, str | None], _core.Problem], label: str, x: Any, ids: Any, groups: int | None, axis: int,
          dtype: Any, where: Any, skip_outside: bool, sorted: bool, fill: Any, device: str | None) -> list[Any]:
    """tally.group's values, on the same GPU."""
    _check_device(device)
    t = take(x)
    a = _axis(t, axis)
    rounded, wanted = _rounded(label, t, dtype)
    p = make(t.type, rounded)
    numbers = _beside(ids, t, "ids")
    if numbers.shape[0] != t.shape[a]:
        raise ValueError(f"{t.shape[a]} elements, but {numbers.shape[0]} ids")
    if groups is None:
        groups = _groups_in(numbers)
        check_guess(groups, t.shape[a], math.prod(t.shape) // max(1, t.shape[a]) * sum(_SIZE[out] for _, out in p.values()))
    mask = _mask(where, t)
    if mask is not None:
        if tuple(mask.shape) != (t.shape[a],):
            raise ValueError("where= is an array of bool of one dimension, as long as the axis")
        mask = mask if mask.is_contiguous() else take(t.library.in_order(where))
    kind = "u8" if numbers.type == "bool" else numbers.type
    shape = (t.shape[a], int(groups), numbers.address, kind, bool(skip_outside), bool(sorted))
    at = 0 if mask is None else mask.address
    results = _by_rows(p, t, a, int(groups), "groups", shape, at, fill is not None)
    if groups > 0 and any(op in NO_IDENTITY for op, _ in _values_of(p)):
        counts = _by_rows(problem(("count",), numbers.type), numbers, 0, int(groups), "groups", shape, at)[0]
        results = _without_nothing(_values_of(p), results, counts.reshape(int(groups), *(1,) * (len(t.shape) - 1 - a)), t, fill)
    return results if wanted is None else [_fitted(label, results[0], t, wanted), *results[1:]]
