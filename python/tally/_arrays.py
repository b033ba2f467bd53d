"""Arrays of any library in the host's memory, read where they lie; and results, of the type of that library.

`as_host_array()` is the one gate through which arrays enter. An array that is more than its numbers - it has a mask, missing
values, a unit, or is not computed yet - raises there, so that no result can lose it.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, NamedTuple

import numpy as np

from . import _arrow, _core

#: NumPy's dtype for each type of tally.h, and for complex elements. (A bf16 is its 16 bits.)
DTYPE: dict[str, np.dtype[Any]] = {
    "i8": np.dtype("i1"), "i16": np.dtype("i2"), "i32": np.dtype("i4"), "i64": np.dtype("i8"),
    "u8": np.dtype("u1"), "u16": np.dtype("u2"), "u32": np.dtype("u4"), "u64": np.dtype("u8"),
    "f16": np.dtype("f2"), "bf16": np.dtype("u2"), "f32": np.dtype("f4"), "f64": np.dtype("f8"),
    "bool": np.dtype("?"), "c64": np.dtype("c8"), "c128": np.dtype("c16"),
}
_TYPE = {(d.kind, d.itemsize): name for name, d in DTYPE.items() if name != "bf16"}
FLOATS = ("f16", "bf16", "f32", "f64")
#: The type of the two parts of complex elements, which the engine reads as pairs of reals; and the other way round.
PART = {"c64": "f32", "c128": "f64"}
COMPLEX = {part: kind for kind, part in PART.items()}
MOST_DIMS = 16  # of the engine


Layout = np.ndarray[Any, Any]  # NumPy's array; or one that has a GPU's addresses, whose elements are never read here
Layouts = tuple[Layout, Layout | None, Layout | None]  # x, y and the mask, of one shape


class Operand(NamedTuple):
    """An array that is reduced where it lies, or a view of one."""

    array: Layout
    type: str  # as which the engine reads the elements: one of DTYPE, "c64" or "c128"
    is_direct: bool  # the engine can read them where they lie
    wrap: Callable[[Any, str], Any]  # (NumPy's array or number, its type) -> the result, of the array's library; not for GPUs
    is_conjugated: bool = False  # each element stands for its conjugate
    backend: Any = None  # a Gpu; None: the host's memory
    there: Any = None  # on a GPU: the library's own array
    number: int = 0  # on a GPU: the device's
    labelled: Any = None  # the object of pandas or xarray that has labels beside these elements

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def address(self) -> int:
        """The address of the element whose indices are all 0; 0 if there are no elements."""
        return address_of(self.array)

    @property
    def spec(self) -> str:
        """The GPU that it is on."""
        return f"cuda:{self.number}"

    def as_type(self, kind: str) -> Operand:
        """The same elements as another type, to which blocks are converted when they are read; on a GPU, a copy."""
        if kind == self.type:
            return self
        if self.backend is not None:
            return self.backend.as_type(self, kind)  # type: ignore[no-any-return]
        if "bf16" in (kind, self.type):
            raise TypeError("elements are not converted to bfloat16 or from it, as for an initial value or another product: "
                            "convert them first")
        return self._replace(type=kind, is_direct=False)

    def conjugate(self) -> Operand:
        if self.backend is not None:
            return self.backend.conjugated(self)  # type: ignore[no-any-return]
        if self.is_direct and self.array.size < 1 << 16:
            return self._replace(array=np.conj(self.array))
        return self._replace(is_conjugated=True, is_direct=False)

    def moved(self, axis: int) -> Operand:
        """With an axis behind all others."""
        is_last = axis in (-1, self.array.ndim - 1)
        return self if is_last else self._replace(array=np.moveaxis(self.array, axis, -1))

    def expanded(self, at: int, count: int) -> Operand:
        """With so many dimensions of length 1 in front of dimension `at`."""
        return self if count == 0 else self._replace(array=self.array[(slice(None),) * at + (None,) * count])

    def broadcast(self, shape: tuple[int, ...], what: str) -> Operand:
        if shape == self.array.shape:
            return self
        try:
            return self._replace(array=np.broadcast_to(self.array, shape))
        except ValueError:
            raise ValueError(f"{what} of shape {self.shape} is not broadcast to {shape}") from None


def address_of(array: Layout | None) -> int:
    return int(array.__array_interface__["data"][0]) if array is not None and array.size else 0


def pairs(array: Layout, is_swapped: bool = False) -> Layout:
    """Complex elements as real ones, with a last dimension of the two parts, the imaginary one first if `is_swapped`."""
    both = array[..., None].view(array.real.dtype)
    return both[..., ::-1] if is_swapped else both


def layouts(x: Operand, y: Operand | None, mask: Operand | None) -> Layouts:
    return x.array, None if y is None else y.array, None if mask is None else mask.array


def as_reals(way: str, arrays: Layouts, axes: tuple[int, ...], is_swapped: bool = False) -> tuple[Layouts, tuple[int, ...]]:
    """Returns complex elements as views of reals, and the axes, for the engine. `way`: "two" makes two arrays, one of each part.
    "pairs" and "parts" add a dimension for the two parts, which "pairs" reduces, too; "parts" keeps it in the results."""
    x, y, mask = arrays
    if way == "two":
        return (x.real, x.imag, mask), axes
    if way:
        axes = axes if way == "parts" else (*axes, x.ndim)
        x, y = pairs(x), None if y is None else pairs(y, is_swapped)
        mask = None if mask is None else np.broadcast_to(mask[..., None], x.shape)
    return (x, y, mask), axes


def check_labels(a: Operand, b: Operand, *axes: tuple[int, int]) -> None:
    """Refuses arrays of pandas or xarray whose labels differ along axes of both, by default the last ones and those before."""
    if a.labelled is None or b.labelled is None:
        return
    left, right = ([(d, getattr(x, "indexes", {}).get(d)) for d in x.dims] if _library(x) == "xarray" else
                   [(None, x.index), (None, x.columns)] if x.ndim == 2 else [(None, x.index)] for x in (a.labelled, b.labelled))
    for i, j in axes or [(-d, -d) for d in range(1, 1 + min(len(left), len(right)))]:
        (name, index), (other_name, other) = left[i], right[j]
        differ = None not in (name, other_name) and name != other_name
        if a.shape[i] == b.shape[j] and (differ or not (index is None or other is None or index.equals(other))):
            raise ValueError("the arrays have other labels, and elements are paired by their places: align the arrays first, or "
                             "give x.to_numpy()")


def beside_axis(mask: Layout | None, x: Layout, axis: int) -> Layout | None:
    """Returns a mask of one axis, broadcast to x's shape."""
    if mask is None or x.ndim == 1:
        return mask
    return np.broadcast_to(np.expand_dims(mask, tuple(range(1, x.ndim - axis))), x.shape)


def type_of(dtype: np.dtype[Any]) -> str:
    """The type of tally.h that a dtype is, in whichever byte order; TypeError where there is none."""
    name = _TYPE.get((dtype.kind, dtype.itemsize))
    if name is not None:
        return name
    if dtype.name == "bfloat16":
        return "bf16"
    if dtype.kind == "O":
        raise TypeError("tally does not reduce arrays of Python objects; give them a dtype, such as x.astype(float)")
    if dtype.names is not None:
        raise TypeError("tally does not reduce structures: give one field, such as x['a']")
    if dtype.kind in "mM":
        raise TypeError(f"tally does not reduce {dtype}; numpy.asarray(x).view('i8') has its numbers, with NaT as -2**63")
    if dtype.char in "gG":
        raise TypeError(f"tally does not reduce {dtype}: no elements wider than float64 or complex128")
    raise TypeError(f"tally does not reduce arrays of {dtype}")


def wrap_numpy(result: Any, kind: str) -> Any:
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
    parts = 2 if array.dtype.kind == "c" else 1
    size = array.dtype.itemsize // parts
    return (array.dtype.isnative and array.ndim < MOST_DIMS + 2 - parts and
            (array.flags.c_contiguous or all(s % size == 0 for s, n in zip(array.strides, array.shape) if n > 1)))


def has_other_bytes(array: np.ndarray[Any, Any]) -> bool:
    """Return whether some bool is a byte other than 0 and 1, as in a view of other elements: it counts as True."""
    return array.dtype == np.bool_ and array.size > 0 and bool(array.view(np.uint8).max() > 1)


def from_numpy(array: np.ndarray[Any, Any], wrap: Callable[[Any, str], Any] = wrap_numpy) -> Operand:
    kind = type_of(array.dtype)
    if kind == "bf16":
        array = array.view(array.dtype.newbyteorder("=") if not array.dtype.isnative else array.dtype).view(np.uint16)
    return Operand(array, kind, _is_direct(array), wrap)


def is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _wrap_torch(result: Any, kind: str) -> Any:
    import torch  # type: ignore[import-not-found, unused-ignore]
    array = np.asarray(result)
    if kind == "bf16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def dlpack_device(x: Any) -> tuple[int, int] | None:
    """Return the device of another library's array, by DLPack's numbers: (1, 0) is the host. None if it does not say."""
    if isinstance(x, np.ndarray) or not hasattr(x, "__dlpack_device__"):
        return None
    try:
        kind, number = x.__dlpack_device__()
    except (TypeError, ValueError, BufferError):  # pyarrow's, where DLPack has no such elements
        return None
    return int(kind), int(number)


def check_torch(x: Any) -> None:
    """Refuses a tensor whose gradient a result would lose, and a subclass with a meaning of its own, such as a mask."""
    torch, kind = sys.modules["torch"], type(x)
    own, theirs = (getattr(k, "__torch_function__", None) for k in (kind, torch.Tensor))
    if kind is not torch.Tensor and getattr(own, "__func__", own) is not getattr(theirs, "__func__", theirs) and \
            kind.__module__.partition(".")[2] not in ("nn.parameter", "nn.modules.module"):
        raise TypeError(f"a {kind.__name__} is more than its numbers, and a result would lose what it carries, such as a mask: "
                        "give x.as_subclass(torch.Tensor), or its data")
    if x.requires_grad and torch.is_grad_enabled():
        raise TypeError("a tensor that requires a gradient, which no result has: give x.detach(), or call under torch.no_grad()")


def _capsule(x: Any) -> Any:
    if is_torch(x):
        check_torch(x)
        x = x.detach()
        if x.is_conj() or x.is_neg():
            raise TypeError("a lazily conjugated or negated tensor has no memory of its own: x.resolve_conj().resolve_neg()")
    try:
        return x.__dlpack__(max_version=(1, 1))
    except TypeError:
        return x.__dlpack__()


def check_narrowed(number: np.ndarray[Any, Any], there: np.ndarray[Any, Any], library: str) -> None:
    """Refuses results that a library has silently converted to a narrower type: other integers, and floats rounded once more."""
    if there.dtype == number.dtype or number.dtype.kind in "iu" and np.array_equal(there, number):
        return
    wide = "with jax.config.update('jax_enable_x64', True), or " * (library == "jax") + f"of numpy.asarray(x), it is {number.dtype}"
    if number.dtype.kind in "iu":
        raise OverflowError(f"the exact result does not fit {there.dtype}, which {library} makes of it: {wide}")
    raise TypeError(f"{library} would round the result once more, to {there.dtype}: {wide}, and dtype='f4' rounds once")


def from_dlpack(x: Any) -> Operand:
    """An array of another library in the host's memory, taken by DLPack."""
    try:
        tensor = _core.Tensor(_capsule(x))
        array = np.asarray(memoryview(tensor))  # type: ignore[call-overload, unused-ignore]
    except (BufferError, RuntimeError) as error:
        raise TypeError(f"tally does not read this {type(x).__name__} of {getattr(x, 'dtype', 'unknown elements')}: convert it "
                        f"first ({str(error).splitlines()[0]})") from error
    wrap: Callable[[Any, str], Any] = wrap_numpy
    if is_torch(x):
        wrap = _wrap_torch
    elif hasattr(x, "__array_namespace__"):
        namespace = x.__array_namespace__()

        def wrap(result: Any, kind: str) -> Any:
            number = np.asarray(wrap_numpy(np.asarray(result), kind))
            there = namespace.asarray(number)
            if str(getattr(there, "dtype", number.dtype)).rpartition(".")[2] != number.dtype.name:
                check_narrowed(number, np.asarray(there), getattr(namespace, "__name__", "its library").partition(".")[0])
            return there
    if tensor.is_bfloat():
        return Operand(array, "bf16", _is_direct(array), wrap)
    return from_numpy(array, wrap)


def writable(out: Any) -> np.ndarray[Any, Any]:
    """A tensor of PyTorch's in the host's memory as NumPy's array of that memory."""
    t = from_dlpack(out)
    return t.array.view(_bfloat16()) if t.type == "bf16" else t.array


# ---- The gate --------------------------------------------------------------------------------------------------------


#: Methods by which a subclass of ndarray, or another type, says that its arrays are more than their numbers.
_MEANINGS = ("__array_ufunc__", "__array_function__", "__array_finalize__", "__array_wrap__")
_NUMBERS = {bool, int, float, complex, np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32,
            np.uint64, np.longlong, np.ulonglong, np.float16, np.float32, np.float64, np.complex64, np.complex128}
_WIDE = {int, np.int64, np.uint64, np.longlong, np.ulonglong}


def _library(x: Any) -> str:
    """The package that defines an object's type."""
    return type(x).__module__.partition(".")[0]


def dask_array_of(x: Any) -> Any:
    """The dask array that an object is, or that an xarray object holds; None for all others."""
    if type(x) is np.ndarray or "dask" not in sys.modules:
        return None
    if _library(x) == "xarray":
        x = getattr(getattr(x, "variable", x), "_data", None)
    return x if _library(x) == "dask" and hasattr(x, "chunks") and hasattr(x, "map_blocks") else None


def as_host_array(x: Any) -> Operand:
    """Any array, without a copy where it has memory of its own; numbers and lists become NumPy's arrays."""
    kind = type(x)
    if kind is np.ndarray:
        return from_numpy(x)
    if isinstance(x, np.ndarray):
        return from_numpy(plain(x))
    if kind is list or kind is tuple:
        return from_numpy(_from_list(x))
    if kind in _NUMBERS:
        return from_numpy(np.asarray(x))
    by_library = _BY_LIBRARY.get(_library(x))
    if by_library is not None:
        return by_library(x)
    if _stands_alone(kind):
        raise TypeError(f"a {kind.__name__} is more than its numbers, and a result would lose its unit, mask or labels: give "
                        "the numbers alone, as numpy.asarray() or the library's own method has them")
    if hasattr(x, "__arrow_c_array__"):
        return from_numpy(_arrow.from_array(x))
    place = dlpack_device(x)
    if place is not None:
        if place[0] not in (1, 3, 13):
            raise TypeError("the array lies on a GPU, and nothing is copied between devices unasked: x.cpu() or x.get() brings "
                            "it to the host; alone, by the functions and without device=, it is reduced where it lies")
        return from_dlpack(x)
    if hasattr(x, "__arrow_c_stream__"):
        return from_numpy(_arrow.from_stream(x))
    return from_numpy(_from_other(x))


def plain(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array of a subclass as ndarray, if it is no more than its numbers."""
    kind = type(x)
    if isinstance(x, np.ma.MaskedArray):
        type_of(x.dtype)
        if np.ma.is_masked(x):
            raise TypeError("a masked array: give x.data and where=~numpy.ma.getmaskarray(x), or x.compressed(), which has the "
                            "elements that are there")
        if kind is np.ma.MaskedArray:
            return plain(x.data) if type(x.data) is not np.ndarray else x.data
    if kind is np.memmap:
        return np.asarray(x)
    if hasattr(x, "unmasked"):
        raise TypeError(f"a {kind.__name__} has a mask: give x.unmasked and where=~x.mask")
    if any(getattr(kind, name, None) is not getattr(np.ndarray, name) for name in _MEANINGS) or getattr(x, "__dict__", None) \
            or any(vars(c).get("__slots__") for c in kind.__mro__):
        raise TypeError(f"a {kind.__name__} is more than its numbers, and a result would lose what it carries, such as a unit: "
                        "give numpy.asarray(x)")
    return np.asarray(x)


def _stands_alone(kind: type) -> bool:
    """Return whether a type that is no ndarray has a meaning of its own for NumPy's functions, and no way to hand its memory over."""
    return any(callable(getattr(kind, name, None)) for name in _MEANINGS[:2]) and \
        not any(hasattr(kind, name) for name in ("__dlpack__", "__arrow_c_array__", "__arrow_c_stream__"))


def _from_list(x: Any) -> np.ndarray[Any, Any]:
    """A list or a tuple as an array. Each array in it goes through the gate; integers that become floats do so exactly."""
    kinds: set[Any] = set()
    numbers = _listed(x, kinds)
    array = np.asarray(numbers)
    if array.dtype.kind in "fc" and array.dtype.itemsize <= 16 and not kinds.isdisjoint(_WIDE) and (np.abs(array) >= 2**53).any():
        whole = np.array(numbers, object)
        for value, rounded in zip(whole.reshape(-1).tolist(), array.reshape(-1).tolist()):
            if isinstance(value, (int, np.integer)) and int(value) != rounded:
                raise TypeError(f"NumPy makes float64 of these numbers, which does not hold {value}: give numpy.array(x, ...)")
    return array


def _listed(x: Any, kinds: set[Any]) -> Any:
    """Returns a list in which items other than numbers have become lists and ndarrays. Adds the types of its numbers to `kinds`."""
    here = set(map(type, x))
    kinds |= here
    if here <= _NUMBERS:
        return x
    listed: list[Any] = []
    first = None
    for each in x:
        kind = type(each)
        if kind is list or kind is tuple:
            each = _listed(each, kinds)
        elif kind not in _NUMBERS:
            t = as_host_array(each)
            if t.type == "bf16":
                raise TypeError("a list of bfloat16 arrays: convert them first")
            first = first or t
            check_labels(first, t)
            each = t.array
            kinds.add(each.dtype.type)
        listed.append(each)
    return listed


def _from_other(x: Any) -> np.ndarray[Any, Any]:
    """Take an object that NumPy makes an array of: a buffer, or one with __array__."""
    kind = type(x)
    if isinstance(x, (set, frozenset, dict)) or (hasattr(x, "__iter__") and hasattr(x, "__next__")):
        raise TypeError(f"a {kind.__name__} is no array: give list(x), or numpy.fromiter(x, float)")
    array = np.asanyarray(x)
    if type(array) is not np.ndarray:
        return plain(array)
    if hasattr(getattr(x, "mask", None), "dtype"):
        raise TypeError(f"a {kind.__name__} with a mask: give its numbers, and where=")
    carried = [name for name in ("unit", "uncertainty") if getattr(x, name, None) is not None]
    if carried:
        raise TypeError(f"a {kind.__name__} with a {carried[0]}, which a result would lose: give its numbers alone, such as x.data")
    if array.ndim == 0 and array.dtype.kind == "O":
        raise TypeError(f"a {kind.__name__} is no array of numbers; list(x) or numpy.asarray(x, float) may make one")
    return array


def _from_xarray(x: Any) -> Operand:
    if not hasattr(x, "data"):
        raise TypeError(f"a {type(x).__name__} of xarray: give one of its variables")
    return as_host_array(x.data)._replace(labelled=x)


def _from_dask(x: Any) -> Operand:
    raise TypeError("a dask array is not computed yet: tally.dask and the functions of one array reduce it lazily; anything else "
                    "needs x.compute()")


def _from_scipy(x: Any) -> Operand:
    if hasattr(x, "toarray"):
        raise TypeError("a sparse array: x.data has the elements that are stored, x.toarray() all of them")
    return from_numpy(_from_other(x))


def _from_polars(x: Any) -> Operand:
    """A column of polars, without a copy if it is one piece."""
    why = "is not computed yet: x.collect() first" if hasattr(x, "collect") else \
        "is a table: give a column, such as x['a'], or x.to_numpy()" if hasattr(x, "columns") else "is no column"
    if not why.endswith("column") or not hasattr(x, "rechunk"):
        raise TypeError(f"a {type(x).__name__} of polars {why}")
    return from_numpy(_arrow.from_stream(x.rechunk()))


def _numbers_of(dtype: Any) -> np.dtype[Any] | None:
    """The dtype of the numbers in a column of a dtype of pandas; None if it has none."""
    plain = getattr(dtype, "subtype", None) if type(dtype).__name__ == "SparseDtype" else getattr(dtype, "numpy_dtype", dtype)
    return plain if isinstance(plain, np.dtype) and plain.kind in "biufc" else None


def _from_pandas(x: Any) -> Operand:
    """A column, an index, an extension array or a frame of pandas."""
    if not hasattr(x, "isna"):
        raise TypeError(f"a {type(x).__name__} of pandas is no array of numbers; tally.group(op, values, ids) reduces groups, of "
                        "which pandas.factorize() makes ids")
    is_frame = hasattr(x, "columns")
    dtypes = list(x.dtypes) if is_frame else [x.dtype]
    for d in dtypes:
        if d.name == "category":
            raise TypeError("a categorical column: its codes are integers (x.cat.codes, x.codes)")
        if _library(d) not in ("pandas", "numpy"):
            raise TypeError(f"a column of {d} is more than its numbers, and a result would lose what it carries, such as a unit: "
                            "give the numbers alone")
    plain_types = [_numbers_of(d) for d in dtypes]
    for d, numbers in zip(dtypes, plain_types):
        if numbers is None:
            if isinstance(d, np.dtype):
                type_of(d)  # which raises
            raise TypeError(f"a column of {d} is none of numbers: convert it first, such as texts by x.astype(float) and times by "
                            "x.astype('int64')")
    if any(not isinstance(d, np.dtype) for d in dtypes) and np.asarray(x.isna()).any():
        raise TypeError("the column has missing values: dropna() or fillna() first")
    array = x.to_numpy(dtype=np.result_type(*plain_types or [DTYPE["f64"]]))
    if is_frame and array.dtype.kind in "fc":
        for i, d in enumerate(plain_types):
            if d is not None and d.kind in "iu":
                cast_exactly(x.iloc[:, i].to_numpy(dtype=d), array.dtype)
    return from_numpy(array)._replace(labelled=x if hasattr(x, "index") else None)


_BY_LIBRARY: dict[str, Callable[[Any], Operand]] = {
    "dask": _from_dask, "pandas": _from_pandas, "polars": _from_polars, "scipy": _from_scipy, "xarray": _from_xarray}


# ---- From one type to another ----------------------------------------------------------------------------------------


_EXTREMES = {kind: _core.Problem(("minmax",), f"{kind}64") for kind in "iu"}


def holds_all(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype holds each element of an array. (Only integers of 64 bits have to be looked at.)"""
    is_wide = array.dtype.itemsize == 8 and array.dtype.kind in "iu" and dtype.kind in "fc"
    if not is_wide and np.can_cast(array.dtype, dtype, "safe"):
        return True
    if array.dtype.kind not in "iu" or dtype.kind not in "fc" or dtype.itemsize < (8 if dtype.kind == "f" else 16):
        return False
    if array.size == 0:
        return True
    if array.flags.c_contiguous and array.dtype.isnative:
        least, greatest = _EXTREMES[array.dtype.kind].reduce(array, None, None)
    else:
        least, greatest = array.min(), array.max()
    if -2**53 <= least and greatest <= 2**53:
        return True
    flat = array.reshape(-1) if array.flags.c_contiguous else array
    step = max(1, (1 << 18) * flat.shape[0] // flat.size)
    return all(float64_holds(flat[at:at + step]).all() for at in range(0, flat.shape[0], step))


def float64_holds(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of integers of 64 bits, whether float64 holds each."""
    near = x.astype(np.float64)
    inside = near < (2.0**63 if x.dtype.kind == "i" else 2.0**64)  # (beyond, the conversion back has no meaning)
    back: np.ndarray[Any, Any] = np.where(inside, near, 0.0).astype(x.dtype)
    held: np.ndarray[Any, Any] = inside & (back == x)
    return held


def cast_exactly(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Elements brought to a dtype that holds each of them, side by side; TypeError where it does not."""
    if not holds_all(array, dtype):
        raise TypeError(f"{array.dtype} elements, of which {dtype} does not hold some exactly: convert them first, or give integers")
    return np.asarray(array, dtype, order="C")


def _publish() -> None:
    """Gives the fast calls (ext/fast.c) NumPy's types, and arrays to make numbers of these types with."""
    from ._results import MinMax
    names = (None, "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", None, "f32", "f64", "bool")
    scalars = tuple(name and DTYPE[name].type for name in names)
    _core._numpy(np.ndarray, scalars, tuple(name and np.empty((), DTYPE[name]) for name in names), MinMax, np.empty)


_publish()
