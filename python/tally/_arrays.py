"""How arrays come in and results go out: any library's memory, as it lies, and that library's type for the result."""

from __future__ import annotations

import sys
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _arrow, _core

#: NumPy's dtype for the values of each type of tally.h. (A bf16 is its 16 bits.)
DTYPE: dict[str, np.dtype[Any]] = {
    "i8": np.dtype("i1"), "i16": np.dtype("i2"), "i32": np.dtype("i4"), "i64": np.dtype("i8"),
    "u8": np.dtype("u1"), "u16": np.dtype("u2"), "u32": np.dtype("u4"), "u64": np.dtype("u8"),
    "f16": np.dtype("f2"), "bf16": np.dtype("u2"), "f32": np.dtype("f4"), "f64": np.dtype("f8"),
    "bool": np.dtype("?"),
}
_TYPE = {(d.kind, d.itemsize): name for name, d in DTYPE.items() if name != "bf16"}
FLOATS = ("f16", "bf16", "f32", "f64")
_MOST_DIMS = 16


class Taken(NamedTuple):
    """An array that has been taken: its memory, what its elements are, how a result becomes its library's."""

    array: np.ndarray[Any, Any]
    type: str  # one of DTYPE, or "c64" or "c128"
    direct: bool  # the engine can read it where it lies
    give: Callable[[Any, str], Any]  # (NumPy's array or number, its type) -> the result


def type_of(dtype: np.dtype[Any]) -> str:
    """The type of tally.h that a dtype is, in whichever byte order; TypeError where there is none."""
    name = _TYPE.get((dtype.kind, dtype.itemsize))
    if name is not None:
        return name
    if dtype.name == "bfloat16":
        return "bf16"
    if dtype.kind == "c" and dtype.itemsize in (8, 16):
        return f"c{8 * dtype.itemsize}"
    if dtype.kind == "O":
        raise TypeError("tally does not reduce arrays of Python objects; give them a dtype, such as x.astype(float)")
    if dtype.kind in "mM":
        raise TypeError(f"tally does not reduce {dtype}; x.view('i8') has its numbers")
    if dtype.kind in "fc":
        raise TypeError(f"tally does not reduce {dtype}: no elements wider than float64 or complex128")
    raise TypeError(f"tally does not reduce arrays of {dtype}")


def _give_numpy(result: Any, kind: str) -> Any:
    if kind == "bf16":
        result = result.view(_bfloat16())
    return result[()] if isinstance(result, np.ndarray) and result.ndim == 0 else result


def _bfloat16() -> Any:
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError("a bfloat16 result needs ml_dtypes, or dtype=numpy.float32 (of a state: out='f32')") from None
    return ml_dtypes.bfloat16


def _is_direct(array: np.ndarray[Any, Any]) -> bool:
    size = array.dtype.itemsize
    return (array.dtype.isnative and array.ndim <= _MOST_DIMS and
            (array.flags.c_contiguous or all(s % size == 0 for s, n in zip(array.strides, array.shape) if n > 1)))


def is_odd(array: np.ndarray[Any, Any]) -> bool:
    """Whether some bool is a byte other than 0 and 1, as in a view of other elements: it counts as True."""
    return array.dtype == np.bool_ and array.size > 0 and bool(array.view(np.uint8).max() > 1)


def from_numpy(array: np.ndarray[Any, Any], give: Callable[[Any, str], Any] = _give_numpy) -> Taken:
    """An ndarray, taken."""
    kind = type_of(array.dtype)
    if kind == "bf16":
        array = array.view(array.dtype.newbyteorder("=") if not array.dtype.isnative else array.dtype).view(np.uint16)
    return Taken(array, kind, _is_direct(array), give)


def is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _give_torch(result: Any, kind: str) -> Any:
    import torch  # type: ignore[import-not-found, unused-ignore]
    array = np.asarray(result)
    if kind == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def dlpack_device(x: Any) -> tuple[int, int] | None:
    """Where an array of another library lies, by DLPack's numbers: (1, 0) is the host. None: it does not say."""
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack_device__"):
        return None
    try:
        kind, number = x.__dlpack_device__()
    except (TypeError, ValueError, BufferError):  # pyarrow's, where DLPack has no such elements
        return None
    return int(kind), int(number)


def _capsule(x: Any) -> Any:
    if is_torch(x):
        x = x.detach()
        if x.is_conj() or x.is_neg():
            raise TypeError("a lazily conjugated or negated tensor has no memory of its own: x.resolve_conj().resolve_neg()")
    try:
        return x.__dlpack__(max_version=(1, 1))
    except TypeError:
        return x.__dlpack__()


def from_dlpack(x: Any) -> Taken:
    """An array of another library in the host's memory, taken by DLPack."""
    tensor = _core.Tensor(_capsule(x))
    code, bits = tensor.info()[2:4]
    array = np.asarray(memoryview(tensor))  # type: ignore[call-overload, unused-ignore]
    give: Callable[[Any, str], Any] = _give_numpy
    if is_torch(x):
        give = _give_torch
    elif hasattr(x, "__array_namespace__"):
        namespace = x.__array_namespace__()

        def give(result: Any, kind: str) -> Any:
            return namespace.asarray(_give_numpy(np.asarray(result), kind))
    if code == 4 and bits == 16:
        return Taken(array, "bf16", _is_direct(array), give)
    return from_numpy(array, give)


def _has_mask(x: Any) -> bool:
    return isinstance(x, np.ma.MaskedArray) and x.mask is not np.ma.nomask


def take(x: Any) -> Taken:
    """Any array, without a copy where it has memory of its own; numbers and lists become NumPy's arrays."""
    if isinstance(x, np.ndarray):
        if _has_mask(x):
            raise TypeError("a masked array: give its data, and where=~numpy.ma.getmaskarray(x)")
        return from_numpy(np.asarray(x))
    if hasattr(x, "__arrow_c_array__"):
        return from_numpy(_arrow.from_array(x))
    place = dlpack_device(x)
    if place is not None:
        if place[0] not in (1, 3, 13):
            raise TypeError("the array lies on a GPU, and nothing is copied between devices unasked: x.cpu() or x.get() brings "
                            "it to the host; alone, by the functions and without device=, it is reduced where it lies")
        return from_dlpack(x)
    if hasattr(x, "__arrow_c_stream__"):
        return from_numpy(_from_column(x))
    return from_numpy(np.asarray(x))


def _from_column(x: Any) -> np.ndarray[Any, Any]:
    """A column of a data frame as NumPy's array of the same memory."""
    library = type(x).__module__.partition(".")[0]
    if library == "polars":
        if x.null_count() > 0:
            raise TypeError("the column has nulls: drop_nulls() or fill_null() first")
        array = x.to_numpy()
    elif not hasattr(x, "__array_ufunc__"):  # (pandas' and xarray's are NumPy's at heart)
        return _arrow.from_stream(x)
    else:
        if not isinstance(getattr(x, "dtype", None), np.dtype) and getattr(x, "hasnans", False):
            raise TypeError("the column has missing values: dropna() or fillna() first")
        array = np.asarray(x)
    if array.dtype.kind == "O":
        raise TypeError("the column has missing values, or no numbers: fill or drop them first")
    return np.asarray(array)


def _publish() -> None:
    """Tells the fast calls which types NumPy's numbers have."""
    from ._results import MinMax
    scalars: list[Any] = [None] * 14
    for i, name in enumerate(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", None, "f32", "f64", "bool"), 1):
        if name:
            scalars[i] = DTYPE[name].type
    _core._numpy(np.ndarray, tuple(scalars), MinMax, np.empty)


_publish()
