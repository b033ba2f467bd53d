"""The backends of arrays that lie on a GPU: PyTorch's and CuPy's, reduced there, on the library's stream, without a wait and
without a trip to the host.

A library's array is known by its address, shape and strides; results and workspace are made by that library, which knows
its streams. Errors that depend on the elements - an exact integer does not fit, an offset falls - are not waited for: the
result is then 0, and `tally.checked()` raises them.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import sys
from typing import Any, Callable, Sequence

import numpy as np

from . import _core
from ._arguments import CHOICES, KINDS, NO_IDENTITY, Call, complex_of, fill_element, name_of, problem, result_shape, \
    shown_type, values_of, way_of
from ._arrays import DTYPE, FLOATS, PART, Layout, Operand, address_of, as_reals, beside_axis, check_narrowed, check_torch, \
    dask_array_of, dlpack_device, is_torch, layouts, wrap_numpy, writable
from ._arrow import Memory
from ._backend import Backend, products
from ._checks import RESULT, check_elements, check_fits, check_statuses, checked, pending
from ._repeated import call_on_tensor, is_whole, note_prepared, plan_whole, prepare_along

_CUDA = 2
_OUTCOME = 256  # bytes in front of a workspace for a tally_outcome: so many that the workspace stays aligned

#: An array of bytes at all addresses from 1 on, never read: a layout is a view of it that has a GPU's addresses.
_SPACE = np.asarray(Memory(1, (1 << 63) - 2, "|u1"))
_LAYOUT_DIMS = 31  # NumPy 1 has 32 dimensions at most, one of them is for the parts of complex numbers

Strides = tuple[int, ...]


def is_on_gpu(x: Any) -> bool:
    """Return whether an array lies in a CUDA device's memory."""
    if isinstance(x, np.ndarray):
        return False
    if is_torch(x):
        return bool(x.is_cuda)
    place = dlpack_device(x)
    return place is not None and place[0] == _CUDA


def as_gpu_array(x: Any, device: str | None = None) -> Operand:
    """Returns a library's array on a GPU as an operand, which is reduced there."""
    if device is not None:
        raise ValueError("an array on a GPU is reduced there: leave device= alone")
    if is_torch(x):
        check_torch(x)
        backend = _backend("torch")
    elif type(x).__module__.partition(".")[0] == "cupy":
        backend = _backend("cupy")
    else:
        raise NotImplementedError(f"arrays of {type(x).__module__} on a GPU are not reduced there: copy it to the host, or "
                                  "hand it to PyTorch or CuPy by DLPack")
    name = backend.name(x)
    if name not in KINDS:
        raise TypeError(f"tally does not reduce {name} on a GPU")
    kind, (address, shape, strides, number) = KINDS[name], backend.layout(x)
    if len(shape) > _LAYOUT_DIMS:
        raise NotImplementedError(f"arrays of more than {_LAYOUT_DIMS} dimensions on a GPU, not {len(shape)}: reshape it")
    layout = np.ndarray(shape, DTYPE[kind], _SPACE, max(0, address - 1), tuple([s * DTYPE[kind].itemsize for s in strides]))
    return Operand(layout, kind, True, wrap_numpy, False, backend, x, number)


def _in_order(t: Operand) -> Operand:
    return t if t.array.flags.c_contiguous else as_gpu_array(t.backend.contiguous(t.there))


# ---- Arrays of dask and JAX ------------------------------------------------------------------------------------------


def accept_others(function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """Returns a function that hands a dask array x to tally.dask, with the function's name, and all else to `function`; JAX's
    arrays on a GPU through another library."""
    at = list(inspect.signature(function).parameters).index("x") if name == "reduce" else 0

    @functools.wraps(function)
    def entered(*arguments: Any, **more: Any) -> Any:
        if name and "dask" in sys.modules and dask_array_of(arguments[at] if len(arguments) > at else more.get("x")) is not None:
            from . import dask
            return dask.call(name, inspect.signature(function).bind(*arguments, **more))
        if "jax" in sys.modules and any(_is_jax(a) for a in (*arguments, *more.values())):
            return call_by_dlpack(function, arguments, more)
        if "out" in more and is_torch(more["out"]) and not more["out"].is_cuda:
            function(*arguments, **{**more, "out": writable(more["out"])})
            return more["out"]
        return function(*arguments, **more)

    return entered


def call_by_dlpack(call: Callable[..., Any], arguments: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """Makes a call on JAX's arrays: they go by DLPack to CuPy or PyTorch and come back so. JAX does not say which stream it
    works on, and may use an array's memory again as soon as nobody on the host has it: the call waits."""
    import jax  # type: ignore[import-not-found, unused-ignore]
    name = "torch" if "torch" in sys.modules or not _is_here("cupy") else "cupy"
    try:
        backend, module = _backend(name), getattr(_backend(name), name)
    except ImportError:
        raise NotImplementedError("arrays of JAX on a GPU are reduced through CuPy or PyTorch, and neither is here") from None

    def over(a: Any) -> Any:
        return module.from_dlpack(a) if _is_jax(a) else a

    def back(a: Any) -> Any:
        there, dtype = jax.dlpack.from_dlpack(a), backend.name(a)
        if str(getattr(there, "dtype", dtype)) != dtype:
            check_narrowed(np.frombuffer(backend.to_host(a), dtype).reshape(tuple(a.shape)), np.asarray(there), "jax")
        return there

    if more.get("out") is not None:
        raise TypeError("JAX's arrays are never written: leave out= alone")
    with checked():
        result = call(*(over(a) for a in arguments), **{k: over(v) for k, v in more.items()})
    if isinstance(result, tuple):
        values = map(back, result)
        return type(result)(*values) if hasattr(result, "_fields") else tuple(values)
    return back(result)


def _is_here(name: str) -> bool:
    import importlib.util
    return importlib.util.find_spec(name) is not None


def _is_jax(a: Any) -> bool:
    return type(a).__module__.partition(".")[0] in ("jax", "jaxlib") and is_on_gpu(a)


# ---- The backends ----------------------------------------------------------------------------------------------------


class Gpu(Backend):
    """The backends' common part: all that _reduce.py calls, made of the library's functions, which Torch and CuPy name alike."""

    # ---- Functions with the same names in both libraries

    def name(self, x: Any) -> str:
        return str(x.dtype).removeprefix("torch.")

    def view(self, x: Any, name: str) -> Any:
        return x.view(self.dtype(name))

    def empty(self, shape: Sequence[int], name: str, number: int) -> Any:
        return self.made("empty", number, name, shape)

    def zeros(self, shape: Sequence[int], name: str, number: int) -> Any:
        return self.made("zeros", number, name, shape)

    def arange(self, n: int, x: Any) -> Any:
        """Returns the integers from 0 to n - 1, on the device that x is on."""
        return self.made("arange", self.device_of(x), "int64", n)

    def as_rows(self, x: Any, shape: Strides, axes: Sequence[int]) -> Any:
        """Broadcasts an array to a shape, and returns it as rows, each of the elements of one result."""
        if not shape:
            return x.reshape(1, 1)
        kept = [d for d in range(len(shape)) if d not in axes]
        whole = self.module.moveaxis(self.module.broadcast_to(x, shape), (*kept, *sorted(axes)), tuple(range(len(shape))))
        return whole.reshape(math.prod([shape[d] for d in kept]), math.prod([shape[d] for d in axes]))

    def device_of(self, x: Any) -> int:
        return int(self.layout(x)[3])

    def join(self, xs: Sequence[Any]) -> Any:
        with self.on_device_of(xs[0]):
            return self.concatenate(xs, 1)

    def prepend(self, number: Any, x: Any, name: str) -> Any:
        with self.on_device_of(x):
            return self.join([self.made("full", self.device_of(x), name, (x.shape[0], 1), number), self.cast(x, name)])

    def stacked_with(self, x: Any, number: Any) -> Any:
        with self.on_device_of(x):
            return self.module.stack([x, self.module.full_like(x, number)])

    # ---- Arguments

    def as_type(self, t: Operand, kind: str) -> Operand:
        """Returns a copy with elements of another type. It copies t.there, so `t` must not be a view of that."""
        return as_gpu_array(t.there != 0 if t.type in PART and kind == "bool" else self.cast(t.there, name_of(kind)))

    def conjugated(self, t: Operand) -> Operand:
        """Returns a copy of conjugates. It copies t.there, so `t` must not be a view of that."""
        return as_gpu_array(self.conjugate(t.there))

    def check_out(self, out: Any, t: Operand) -> tuple[Any, str | None]:
        """Returns out= and its type. deliver() raises the errors of out=."""
        (out,) = out if isinstance(out, tuple) else (out,)
        return out, as_gpu_array(out).type if is_on_gpu(out) else None

    def beside(self, a: Any, t: Operand, what: str) -> Operand:
        """A further array, which must be of the same library and on the same device."""
        other = as_gpu_array(a) if is_on_gpu(a) else None
        if other is None or other.backend is not self or other.number != t.number:
            raise TypeError(f"{what} lies elsewhere than the array on {t.spec}, and nothing is copied between devices unasked: "
                            f"{self.how_to_bring(t.number)}")
        return other

    def check_held(self, kind: str, *both: Operand) -> None:
        """Refuses integers that a type does not hold."""
        for each in both:
            if each.type in ("i64", "u64") and kind not in ("i64", "u64") and not _holds("f64", each):
                raise TypeError(f"{name_of(each.type)} elements beyond 2^53, which {name_of(kind)} does not hold exactly: convert "
                                f"them{self.how_to_convert}")

    def doubles(self, t: Operand, shape: tuple[int, ...], kind: str) -> Any:
        """mean= as doubles, or complex numbers of doubles, of a shape. (Whether doubles hold integers, only a wait would tell.)"""
        if t.type in ("i64", "u64"):
            raise TypeError(f"mean= is of floats or complex numbers as the elements are, not of {name_of(t.type)}")
        return self.contiguous(self.cast(self.as_rows(t.there, shape, range(len(shape))), name_of(kind)))

    # ---- Reductions

    def launch_whole(self, p: _core.Problem, t: Operand, x: Layout, y: Layout | None = None) -> list[Any]:
        """Returns the values of all elements, as arrays of no dimensions. x: the layout of t's elements, or of their parts."""
        number, (prepared, size, names) = t.number, plan_whole(p, t.type, x.size, t.spec)
        work = self.empty((size,), "uint8", number)
        if len(names) == 1:
            results = self.empty((RESULT // DTYPE[KINDS[names[0]]].itemsize,), names[0], number)
            values = [results[0]]
        else:
            results = self.empty((RESULT * len(names),), "uint8", number)
            values = [self.view(results[RESULT * i:RESULT * (i + 1)], name)[0] for i, name in enumerate(names)]
        _core.launch(prepared, address_of(x), address_of(y), 0, self.address(work), self.stream(number),
                     (self.address(results),), 0)
        checks = pending.get()
        if checks is not None:
            checks.append(functools.partial(check_statuses, self, self.view(results, "uint8"), values_of(p), False))
        return values

    def launch(self, p: _core.Problem, prepared: tuple[Any, int, int, int, int], number: int, outs: Sequence[Any]) -> None:
        """Launches a reduction that Problem.prepare() has returned, to the arrays `outs`."""
        what, size, x, y, mask = prepared
        checks = pending.get()
        # (Zeros: no outcome is written where nothing can go wrong, as for minmax.)
        work = (self.empty if checks is None else self.zeros)((size + _OUTCOME,), "uint8", number)
        at = self.address(work)
        _core.launch(what, x, y, mask, at + _OUTCOME, self.stream(number), tuple([self.address(o) for o in outs]),
                     0 if checks is None else at)
        if checks is not None:
            checks.append(functools.partial(check_statuses, self, work, values_of(p), True))

    def along(self, p: _core.Problem, t: Operand, call: Call, *, y: Operand | None = None, is_swapped: bool = False) -> list[Any]:
        """The values of a problem along axes, as new arrays. `y`: the second array of a dot product, of t's shape;
        `is_swapped`: the real parts of t's elements are multiplied by the imaginary ones of y's, and the reverse."""
        what, shape = values_of(p), t.shape
        way = way_of(what[0][0]) if t.type in PART else ""
        of_parts = way == "parts"
        names = [name_of(complex_of(kind) if of_parts else shown_type(op, kind, t.type)) for op, kind in what]
        arrays, axes = as_reals(way, layouts(t, y, call.mask), call.axes, is_swapped)
        if not of_parts and call.means is None and is_whole(p, t.type, axes, arrays):
            values = self.launch_whole(p, t, *arrays[:2])
            lengths = result_shape(shape, call.axes, call.keepdims)
            return [v.reshape(lengths) for v in values] if lengths else values
        outs = [self.empty(result_shape(shape, call.axes, call.keepdims), name, t.number) for name in names]
        parts = None if call.means is None else ("means", np.atleast_1d(as_gpu_array(call.means).array).view(np.float64))
        self.launch(p, prepare_along(p, t.spec, axes, arrays, parts, 0), t.number, outs)
        return outs

    def one(self, p: _core.Problem, t: Operand, call: Call, *, y: Operand | None = None, initial: Any = None) -> Any:
        """The only value of a problem, as the caller sees it."""
        ((op, _),) = values_of(p)
        if initial is not None and op not in CHOICES:
            # The initial value becomes the first element of each row, in a copy.
            copy, mask = as_gpu_array(self.prepend(initial, self.as_rows(t.there, t.shape, call.axes), name_of(t.type))), call.mask
            if mask is not None:
                mask = as_gpu_array(self.prepend(True, self.as_rows(mask.there, t.shape, call.axes), "bool"))
            value = self.along(p, copy, Call((1,), mask=mask))[0].reshape(result_shape(t.shape, call.axes, call.keepdims))
        else:
            value = self.along(p, t, call, y=y)[0]
            if initial is not None:
                both = as_gpu_array(self.stacked_with(value, initial))
                value = self.along(p, both, Call((0,)))[0]
            elif call.out is call.wanted is call.means is None and call.is_repeatable:
                note_prepared(p, t, call, y, value)
        return self.deliver(op, value, "", t, call)

    def several(self, p: _core.Problem, t: Operand, call: Call, gather: Callable[..., Any]) -> Any:
        """All values of a problem, gathered."""
        results = self.along(p, t, call)
        if call.mask is not None and any(op in NO_IDENTITY for op, _ in values_of(p)):
            counts = self.along(problem(("count",), t.type), t, call)[0]
            results = self._filled(values_of(p), results, counts, t, None)
        value = gather(*(self.deliver(op, result, "", t, call) for (op, _), result in zip(values_of(p), results)))
        if call.mask is call.out is call.wanted is None:
            note_prepared(p, t, call, None, value, gather)
        return value

    def deliver(self, op: str, value: Any, kind: str, t: Operand, call: Call) -> Any:
        """A result as the caller sees it: converted, or in out=."""
        if call.wanted is not None:
            value = self._converted(op, value, call.wanted)
        return value if call.out is None else self._write_out(call.out, value, t, op)

    def _converted(self, op: str, value: Any, kind: str) -> Any:
        """Exact integers of 64 bits as another type, where those that do not fit it are 0; reals as complex numbers."""
        from_ = KINDS[self.name(value)]
        if from_ == kind or from_ == "bool":
            return value
        if kind in PART or kind in FLOATS:
            return self.cast(value, name_of(kind))
        if from_ in FLOATS:
            raise TypeError(f"a {op} is no integer: give a floating dtype")
        limits = np.iinfo(DTYPE[kind])
        least = 0 if from_ == "u64" else int(limits.min)
        number = self.view(value, "int64")
        fits = (number >= least) & (number <= min(int(limits.max), (1 << 63) - 1))
        checks = pending.get()
        if checks is not None:
            checks.append(functools.partial(check_fits, self, fits, f"the exact {op} does not fit {name_of(kind)}"))
        return self.cast(self.where(fits, number, 0), name_of(kind))

    def _write_out(self, out: Any, value: Any, t: Operand, op: str) -> Any:
        place = self.beside(out, t, "out=")
        if tuple(out.shape) != tuple(value.shape):
            raise ValueError(f"out= has shape {tuple(out.shape)}, the result {tuple(value.shape)}")
        from_, to = KINDS[self.name(value)], place.type
        dtype, wanted = (DTYPE["f16" if kind == "bf16" else kind] for kind in (from_, to))
        if not np.can_cast(dtype, wanted, "same_kind"):
            raise TypeError(f"cannot cast the result from {name_of(from_)} to {name_of(to)} with casting rule 'same_kind'")
        if dtype.kind in "iu" and wanted.kind in "iu":
            value = self._converted(op, value if from_ in ("i64", "u64") else self.cast(value, "int64"), to)
        self.write(out, value)
        return out

    # ---- Complex numbers

    def complex_product(self, t: Operand, call: Call, kind: str, initial: complex | None) -> Any:
        name, axes = name_of(kind), call.axes
        rows = self.cast(self.as_rows(t.there, t.shape, axes), name)
        mask = None if call.mask is None else self.as_rows(call.mask.there, t.shape, axes)
        if initial is not None:
            rows = self.prepend(initial, rows, name)
            mask = None if mask is None else self.prepend(True, mask, "bool")
        if rows.shape[1] == 0:
            rows = self.prepend(1, rows, name)
            mask = None
        value = self.from_parts(*products(self, rows.real, rows.imag, mask))
        return self.deliver("prod", value.reshape(result_shape(t.shape, axes, call.keepdims)), kind, t, call)

    # ---- Segments and groups

    def _beside_in_order(self, a: Any, t: Operand, what: str) -> Operand:
        """Returns offsets or ids as a contiguous array of one dimension on t's GPU. `what`: their name, for errors."""
        places = self.beside(a, t, f"the array of {what}")
        if len(places.shape) != 1 or places.type in FLOATS or places.type in PART:
            raise TypeError(f"{what} are an array of integers of one dimension")
        return _in_order(places)

    def offsets(self, offsets: Any, t: Operand) -> tuple[Operand, int]:
        places = self._beside_in_order(offsets, t, "offsets")
        if places.shape[0] == 0 or places.type not in ("i32", "i64"):
            raise TypeError("offsets are int32 or int64, and one more than there are segments")
        return places, places.shape[0] - 1

    def segments(self, p: _core.Problem, t: Operand, axis: int, places: Any, count: int, fill: Any, call: Call) -> list[Any]:
        is_equal = isinstance(places, int)
        parts = ("segments", places if is_equal else places.array)
        results = self._by_parts(p, t, axis, count, parts, None, fill is not None)
        if count > 0 and any(op in NO_IDENTITY for op, _ in values_of(p)) and not (is_equal and t.shape[axis]):
            lengths = self.zeros((count,), "int64", t.number) if is_equal else places.there[1:] - places.there[:-1]
            results = self._filled(values_of(p), results, lengths.reshape(count, *(1,) * (len(t.shape) - 1 - axis)), t, fill)
        return [self.deliver(op, result, "", t, call) for (op, _), result in zip(values_of(p), results)]

    def ids(self, ids: Any, t: Operand) -> Operand:
        return self._beside_in_order(ids, t, "ids")

    def greatest_id(self, ids: Operand) -> int:
        """Returns the greatest id, or -1. It waits for the GPU, as the shape of results depends on that id."""
        if ids.shape[0] == 0:
            return -1
        greatest = self.to_host(self.launch_whole(problem(("max",), ids.type), ids, ids.array)[0])
        return int.from_bytes(greatest, sys.byteorder, signed=ids.type[0] == "i")

    def groups(self, p: _core.Problem, t: Operand, axis: int, ids: Operand, count: int, mask: Operand | None,
               skip_outside: bool, is_sorted: bool, fill: Any, call: Call) -> list[Any]:
        parts = ("groups", ids.array, "u8" if ids.type == "bool" else ids.type, count, skip_outside, is_sorted)
        results = self._by_parts(p, t, axis, count, parts, mask, fill is not None)
        if count > 0 and any(op in NO_IDENTITY for op, _ in values_of(p)):
            counts = self._by_parts(problem(("count",), ids.type), ids, 0, count, parts, mask)[0]
            results = self._filled(values_of(p), results, counts.reshape(count, *(1,) * (len(t.shape) - 1 - axis)), t, fill)
        return [self.deliver(op, result, "", t, call) for (op, _), result in zip(values_of(p), results)]

    def _by_parts(self, p: _core.Problem, t: Operand, axis: int, count: int, parts: tuple[Any, ...], mask: Operand | None,
                  is_filled: bool = False) -> list[Any]:
        """Reduces segments or groups along an axis; the mask is of one dimension, that of the axis. `is_filled`: nothing is
        checked, as results of no elements are filled in later."""
        token = pending.set(None if is_filled else pending.get())
        try:
            lengths = (*t.shape[:axis], count, *t.shape[axis + 1:])
            outs = [self.empty(lengths, name_of(shown_type(op, kind, t.type)), t.number) for op, kind in values_of(p)]
            there = beside_axis(None if mask is None else mask.array, t.array, axis)
            self.launch(p, p.prepare(t.array, None, there, 1 << axis, parts, t.spec, 0), t.number, outs)
            return outs
        finally:
            pending.reset(token)

    def _filled(self, what: Sequence[tuple[str, str]], results: list[Any], counts: Any, t: Operand, fill: Any) -> list[Any]:
        """Put `fill`, or 0, where a result of no elements has no value. `counts` is how many elements each result has, in an
        array that is broadcast to the results."""
        has, checks = counts >= 1, pending.get()
        if fill is None and checks is not None:
            checks.append(functools.partial(check_elements, self, has, next(op for op, _ in what if op in NO_IDENTITY)))
        filled = []
        for (op, kind), result in zip(what, results):
            if op in NO_IDENTITY:
                name = self.name(result)
                other = np.zeros((), DTYPE[kind]) if fill is None else fill_element(fill, op, kind)
                if name[0] == "u":  # (not every library's where() takes unsigned integers)
                    signed = self.where(has, self.view(result, name[1:]), other.view(name[1:]).item())
                    result = self.view(signed, name)
                else:
                    number = other.view(np.int64).item() if op in ("argmin", "argmax") else other.item()
                    result = self.where(has, result, bool(number) if name == "bool" else number)
            filled.append(result)
        return filled


class Torch(Gpu):
    """PyTorch's arrays."""

    how_to_convert, on_device_of = ", x.to(...)", contextlib.nullcontext

    def __init__(self) -> None:
        import torch  # type: ignore[import-not-found, unused-ignore]
        self.module = self.torch = torch
        self.where, self.from_parts, self.concatenate, self.take_along = torch.where, torch.complex, torch.cat, torch.take_along_dim
        self.stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", self._stream)
        #: Returns whether a graph captures the stream; it may run beside the stream later.
        self.is_capturing: Callable[[], bool] = getattr(torch._C, "_cuda_isCurrentStreamCapturing",
                                                        torch.cuda.is_current_stream_capturing)
        _core._tensor_type(torch.Tensor, functools.partial(call_on_tensor, self), self.stream)

    def layout(self, x: Any) -> tuple[int, Strides, Strides, int]:
        if x.is_neg() or x.is_conj():
            raise TypeError("a lazily conjugated or negated tensor has no memory of its own: x.resolve_conj().resolve_neg()")
        return x.data_ptr(), tuple(x.shape), x.stride(), x.device.index

    def _stream(self, number: int) -> int:
        return int(self.torch.cuda.current_stream(number).cuda_stream)

    def synchronize(self, number: int) -> None:
        self.torch.cuda.current_stream(number).synchronize()

    def results(self, count: int, shape: Strides, room: int, name: str, number: int) -> tuple[list[Any], int]:
        """Returns tensors of a shape, in `room` bytes each, and the first one's address. Each has its own version counter:
        autograd, which may have saved one, does not object if another is written."""
        each, most = math.prod(shape), room // DTYPE[KINDS[name]].itemsize
        is_inference = self.torch.is_inference_mode_enabled()
        with self.torch.inference_mode(False) if is_inference else contextlib.nullcontext():
            if shape and each == most:
                memory = self.empty((count * shape[0], *shape[1:]), name, number)
                return self.torch.unsafe_split(memory, shape[0]), self.address(memory)
            memory = self.empty((count, most), name, number)
            return [result.data for result in memory[:, :each].reshape(count, *shape).unbind()], self.address(memory)

    def maker_of_empty(self, shape: Strides, name: str, number: int) -> Callable[[], Any]:
        """Returns a function that makes an empty tensor, in less time than empty() takes."""
        strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
        return functools.partial(self.empty((1,), name, number).new_empty_strided, shape, strides)

    def made(self, how: str, number: int, name: str, *arguments: Any) -> Any:
        return getattr(self.torch, how)(*arguments, dtype=self.dtype(name), device=self.torch.device("cuda", number))

    def address(self, x: Any) -> int:
        return int(x.data_ptr())

    def contiguous(self, x: Any) -> Any:
        return x.contiguous()

    def dtype(self, name: str) -> Any:
        return getattr(self.torch, name)

    def cast(self, x: Any, name: str) -> Any:
        return x.to(self.dtype(name))

    def conjugate(self, x: Any) -> Any:
        return x.conj().resolve_conj()

    def argsort(self, x: Any) -> Any:
        return self.torch.argsort(x, dim=1, stable=True)

    def write(self, out: Any, x: Any) -> None:
        out.copy_(x)

    def to_host(self, x: Any) -> bytes:
        return bytes(x.cpu().numpy().tobytes())

    def how_to_bring(self, number: int) -> str:
        return f"torch.as_tensor(a, device='cuda:{number}') brings it there"


class CuPy(Gpu):
    """CuPy's arrays."""

    how_to_convert = ", x.astype(...)"

    def __init__(self) -> None:
        import cupy  # type: ignore[import-not-found, unused-ignore]
        self.module = self.cupy = cupy
        self.contiguous, self.conjugate, self.concatenate, self.take_along = \
            cupy.ascontiguousarray, cupy.conj, cupy.concatenate, cupy.take_along_axis

    def layout(self, x: Any) -> tuple[int, Strides, Strides, int]:
        size = x.dtype.itemsize
        if any(s % size for s, n in zip(x.strides, x.shape) if n > 1):
            raise TypeError("strides that are no multiples of an element: cupy.ascontiguousarray(x)")
        return x.data.ptr, x.shape, tuple(s // size for s in x.strides), x.device.id

    def on_device_of(self, x: Any) -> Any:
        return x.device

    def stream(self, number: int) -> int:
        with self.cupy.cuda.Device(number):
            return int(self.cupy.cuda.get_current_stream().ptr)

    def synchronize(self, number: int) -> None:
        with self.cupy.cuda.Device(number):
            self.cupy.cuda.get_current_stream().synchronize()

    def made(self, how: str, number: int, name: str, *arguments: Any) -> Any:
        with self.cupy.cuda.Device(number):
            return getattr(self.cupy, how)(*arguments, dtype=name)

    def address(self, x: Any) -> int:
        return int(x.data.ptr)

    def where(self, mask: Any, x: Any, y: Any) -> Any:
        return self.cupy.where(mask, x, y if hasattr(y, "shape") else x.dtype.type(y))

    def dtype(self, name: str) -> Any:
        return name

    def cast(self, x: Any, name: str) -> Any:
        return x.astype(name)

    def from_parts(self, real: Any, imaginary: Any) -> Any:
        value = self.empty(real.shape, "complex64" if str(real.dtype) == "float32" else "complex128", self.device_of(real))
        value.real, value.imag = real, imaginary
        return value

    def argsort(self, x: Any) -> Any:
        return self.cupy.argsort(x, axis=1, kind="stable")

    def write(self, out: Any, x: Any) -> None:
        out[...] = x

    def to_host(self, x: Any) -> bytes:
        return bytes(x.get().tobytes())

    def how_to_bring(self, number: int) -> str:
        return f"cupy.asarray(a) brings it there (within cupy.cuda.Device({number}))"


@functools.lru_cache(maxsize=None)
def _backend(name: str) -> Any:
    return {"torch": Torch, "cupy": CuPy}[name]()


# ---- States ----------------------------------------------------------------------------------------------------------


def _holds(kind: str, a: Operand) -> bool:
    """Return whether a type holds all elements of an array; those of 64-bit integers are looked at, which is waited for."""
    if not np.can_cast(DTYPE[a.type], DTYPE[kind], "safe"):
        return False
    if a.type not in ("i64", "u64") or kind in ("i64", "u64") or 0 in a.shape:
        return True
    both = a.backend.along(problem(("minmax",), a.type), a, Call(tuple(range(len(a.shape)))))
    low, high = (int.from_bytes(a.backend.to_host(end), sys.byteorder, signed=a.type == "i64") for end in both)
    return -2**53 <= low and high <= 2**53


def feed(state: _core.State, kind: str, x: Any, y: Any) -> None:
    """Feeds a state an array's elements in C order, brought to a type that holds them exactly; waits for it."""
    t = as_gpu_array(x)
    both: tuple[Operand, ...] = (t,) if y is None else (t, t.backend.beside(y, t, "the second array"))
    if any(a.shape != t.shape for a in both):
        raise ValueError(f"the arrays have shapes {tuple(t.shape)} and {tuple(both[1].shape)}")
    kept = []
    for a in both:
        if a.type in PART or a.type != kind and ("bf16" in (a.type, kind) or not _holds(kind, a)):
            raise TypeError(f"a state of {kind} is not fed {name_of(a.type)} elements, which it cannot hold exactly")
        kept.append(_in_order(a.as_type(kind)))
    t.backend.synchronize(t.number)  # the state works on a stream of its own
    state.feed_resident(kept[0].address, 0 if y is None else kept[1].address, math.prod(t.shape), t.spec)
