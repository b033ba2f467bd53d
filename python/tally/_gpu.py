"""Arrays that lie on a GPU: reduced there, on the caller's stream, without a wait and without a trip to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import dlpack_device, is_torch
from ._reduce import problem

_CUDA = 2


def lies_there(x: Any) -> bool:
    """Whether an array lies in a CUDA device's memory."""
    place = dlpack_device(x)
    return place is not None and place[0] == _CUDA


_TORCH = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "i8", "int16": "i16",
          "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "i8"}
_NAMES = {short: name for name, short in _TORCH.items() if name != "bool"}


class _Torch:
    """What PyTorch calls things."""

    def __init__(self, x: Any):
        import torch  # type: ignore[import-not-found, unused-ignore]
        self.torch, self.x = torch, x

    def address(self, x: Any) -> int:
        return int(x.data_ptr())

    def is_contiguous(self, x: Any) -> bool:
        return bool(x.is_contiguous())

    def element(self, x: Any) -> str:
        return str(x.dtype).partition(".")[2]

    def number(self) -> int:
        return int(self.x.device.index or 0)

    def stream(self) -> int:
        return int(self.torch.cuda.current_stream(self.x.device).cuda_stream)

    def empty(self, size: int) -> Any:
        return self.torch.empty(size, dtype=self.torch.uint8, device=self.x.device)

    def view(self, memory: Any, name: str) -> Any:
        dtype = getattr(self.torch, name)
        return memory[:dtype.itemsize].view(dtype).reshape(())


class _CuPy:
    """What CuPy calls things."""

    def __init__(self, x: Any):
        import cupy  # type: ignore[import-not-found, unused-ignore]
        self.cupy, self.x = cupy, x

    def address(self, x: Any) -> int:
        return int(x.data.ptr)

    def is_contiguous(self, x: Any) -> bool:
        return bool(x.flags.c_contiguous)

    def element(self, x: Any) -> str:
        return str(x.dtype)

    def number(self) -> int:
        return int(self.x.device.id)

    def stream(self) -> int:
        return int(self.cupy.cuda.get_current_stream().ptr)

    def empty(self, size: int) -> Any:
        with self.x.device:
            return self.cupy.empty(size, dtype="u1")

    def view(self, memory: Any, name: str) -> Any:
        size = self.cupy.dtype(name).itemsize
        return memory[:size].view(name).reshape(())


def _library(x: Any) -> Any:
    if is_torch(x):
        return _Torch(x)
    if type(x).__module__.partition(".")[0] == "cupy":
        return _CuPy(x)
    raise NotImplementedError(f"arrays of {type(x).__module__} on a GPU are not reduced there: copy it to the host, or "
                              "hand it to PyTorch or CuPy by DLPack")


def _enqueue(op: str, x: Any, y: Any, dtype: Any, ddof: float, fast: bool) -> Any:
    library = _library(x)
    name = library.element(x)
    if name not in _TORCH:
        raise TypeError(f"tally does not reduce {name} on a GPU")
    for array in (x, y):
        if array is not None and not library.is_contiguous(array):
            raise NotImplementedError("an array on a GPU is reduced where its elements lie side by side: x.contiguous()")
    kind = _TORCH[name]
    out = None
    if dtype is not None:
        wanted = str(dtype)
        out = _TORCH.get(wanted[6:] if wanted.startswith("torch.") else np.dtype(dtype).name)
    if dtype is not None and out not in ("f16", "bf16", "f32", "f64"):
        raise TypeError(f"the exact {op} is rounded to a floating dtype, not {dtype}")
    p = problem((op,), kind, out, fast, ddof)
    device = f"cuda:{library.number()}"
    n = 1
    for length in x.shape:
        n *= int(length)
    size = p.workspace(n, device)
    memory = library.empty(size + 64)  # the library's own allocator, which knows the stream
    results = library.empty(64)
    start = library.address(memory)
    p.enqueue(library.address(x), 0 if y is None else library.address(y), n, start + -start % 16, size,
              library.stream(), library.address(results), device)
    (_, value_kind), = p.values()
    if op in ("argmin", "argmax", "nonzero"):
        result = "int64"
    elif op in ("any", "all") or (name == "bool" and op in ("min", "max", "and", "or", "xor")):
        result = "bool"
    else:
        result = _NAMES[value_kind]
    return library.view(results, result)


def reduce(op: str, x: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any, where: Any, ddof: float,
           fast: bool, device: str | None) -> Any:
    """One value of a whole array on its GPU, as a 0-d array there."""
    if axis is not None or keepdims:
        raise NotImplementedError("arrays on a GPU are reduced whole here, not along axes: copy it to the host")
    if out is not None or initial is not None or where is not None:
        raise NotImplementedError("out=, initial= and where= are for arrays in the host's memory")
    if device is not None:
        raise ValueError("an array on a GPU is reduced there: leave device= alone")
    return _enqueue(op, x, None, dtype, ddof, fast)


def dot(a: Any, b: Any, out: Any, dtype: Any, device: str | None) -> Any:
    """The dot product of two vectors on one GPU."""
    if not (lies_there(a) and lies_there(b)) or type(a) is not type(b) or a.device != b.device:
        raise TypeError("one array lies on a GPU, the other elsewhere; nothing is copied between devices unasked")
    if a.ndim != 1 or a.shape != b.shape or a.dtype != b.dtype:
        raise NotImplementedError("on a GPU, dot is of two vectors of one length and type")
    if out is not None or device is not None:
        raise NotImplementedError("out= and device= are for arrays in the host's memory")
    return _enqueue("dot", a, b, dtype, 0.0, False)
