"""The rules of arguments, for arrays of every backend: axes, dtypes, initial values, results that do not exist."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple, Sequence

import numpy as np

from . import _core
from ._arrays import COMPLEX, DTYPE, FLOATS, PART, as_host_array, type_of

AxisError: type[Exception] = getattr(np, "exceptions", np).AxisError

#: Operators whose result is an element.
CHOICES = ("min", "max", "and", "or", "xor")
#: Operators whose result is a number that is computed, and may have another type than the elements.
NUMBERS = ("sum", "prod", "mean", "var", "std", "norm1", "norm2", "norminf", "sumsq", "dot")
#: Those of them that are built on exact sums, so that the value can be rounded to any floating type.
ROUNDED = ("sum", "mean", "var", "std", "norm1", "norm2", "sumsq", "dot")
#: Operators whose elements are converted to dtype= first: a product is rounded at every step, and the greatest magnitude once.
CONVERTED = ("prod", "norminf")
#: Operators that have no value without elements.
NO_IDENTITY = ("min", "max", "argmin", "argmax")
#: Operators that only test whether an element is 0.
TRUTHS = ("nonzero", "any", "all", "count")
_INDICES = ("argmin", "argmax", "count", "nans", "nonzero")
_OF_ELEMENTS = (*CHOICES, "user")
_OF_COMPLEX = ("sum", "mean", "prod", "norm2", "sumsq", "var", "std", "any", "all", "nonzero")
#: Of complex elements, the operators that reduce each part alone; all others reduce both parts together.
OF_PARTS = ("sum", "mean")
#: Of complex elements, the operators that take both parts as two arrays.
OF_TWO = ("var", "std")


def way_of(op: str) -> str:
    """Returns the way in which as_reals() makes real elements of complex ones for an operator."""
    return "parts" if op in OF_PARTS else "two" if op in OF_TWO else "pairs"


class Call(NamedTuple):
    """The arguments of a reduction besides its problem and its array."""

    axes: tuple[int, ...]
    keepdims: bool = False
    mask: Any = None  # a result of the backend's mask()
    out: Any = None
    wanted: str | None = None  # the type that results are converted to, if it is not the problem's
    device: str | None = None
    progress: bool = False
    is_repeatable: bool = True  # a further call like it only has to launch the same reduction
    means: Any = None  # a result of the backend's means(): the numbers that variances are about


@functools.lru_cache(maxsize=512)
def problem(ops: tuple[str, ...], kind: str, out: str | None = None, fast: bool = False, ddof: float = 0.0,
            is_complex: bool = False) -> _core.Problem:
    """A problem of operators by name; `bool` is reduced as an i8. `is_complex`: `kind` is the type of elements' parts."""
    return _core.Problem(ops, "i8" if kind == "bool" else kind, out, fast, ddof, None, is_complex)


@functools.lru_cache(maxsize=1024)
def values_of(p: _core.Problem) -> tuple[tuple[str, str], ...]:
    """The operator and the type of each of a problem's values."""
    return tuple(p.values())


def shown_type(op: str, kind: str, element: str) -> str:
    """The type that a value of the engine's `kind` has in Python."""
    if op in _INDICES:
        return "i64"
    return "bool" if op in ("any", "all") or (element == "bool" and op in _OF_ELEMENTS) else kind


# ---- Axes ------------------------------------------------------------------------------------------------------------


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Returns the axes that an argument axis= means, each from 0 to ndim - 1. Errors are NumPy's."""
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


def bits_of(axes: Sequence[int]) -> int:
    return sum(1 << a for a in axes)


def kept_shape(shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The shape of results whose reduced axes have length 1."""
    return tuple([1 if d in axes else n for d, n in enumerate(shape)])


def result_shape(shape: Sequence[int], axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    return kept_shape(shape, axes) if keepdims else tuple([n for d, n in enumerate(shape) if d not in axes])


# ---- Operators -------------------------------------------------------------------------------------------------------


def real(name: str, value: Any) -> float:
    """Returns an argument that is a number as a float; `name` is for the error."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} is a number, not {value!r}")
    return float(value)


def ddof_of(ddof: float, correction: Any) -> float:
    if correction is None:
        return real("ddof=", ddof)
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return real("correction=", correction)


def has_empty_result(shape: Sequence[int], axes: Sequence[int]) -> bool:
    """Return whether there are results, and none of them has elements."""
    return 0 in shape and any(shape[d] == 0 for d in axes) and all(n > 0 for d, n in enumerate(shape) if d not in axes)


def check_extreme(name: str, shape: Sequence[int], axes: Sequence[int], initial: Any = None, where: Any = None) -> None:
    """Raises NumPy's errors for a minimum or a maximum that may have no elements."""
    if initial is not None:
        return
    if where is not None and where is not True:
        raise ValueError(f"reduction operation '{name}' does not have an identity, so to use a where mask one has to "
                         "specify 'initial'")
    if has_empty_result(shape, axes):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")


def check_operator(op: str, element: str, shape: Sequence[int], axes: Sequence[int], initial: Any, where: Any) -> None:
    """Raises if elements of that type and shape have no such value."""
    if element in PART and op not in _OF_COMPLEX:
        raise TypeError(f"tally has no {op} of complex numbers; reduce their parts, x.real and x.imag")
    if op in ("and", "or", "xor") and element in FLOATS:
        raise TypeError(f"tally.bitwise_{op} is not supported for {name_of(element)} elements; a view has their bits")
    if op in ("min", "max"):
        check_extreme(f"{op}imum", shape, axes, initial, where)
    if op in ("argmin", "argmax") and has_empty_result(shape, axes):
        raise ValueError(f"attempt to get {op} of an empty sequence")


def has_too_few(op: str, shape: Sequence[int], axes: Sequence[int], ddof: float) -> bool:
    """Return whether a mean or a variance of all elements has too few of them. Such a result is NaN."""
    return op in ("mean", "var", "std") and math.prod([shape[d] for d in axes]) <= (ddof if op != "mean" else 0)


# ---- Types -----------------------------------------------------------------------------------------------------------


def name_of(kind: str) -> str:
    """The name of a type's dtype."""
    return "bfloat16" if kind == "bf16" else DTYPE[kind].name


#: The types by the names of their dtypes.
KINDS = {name_of(kind): kind for kind in DTYPE}


def complex_of(kind: str) -> str:
    """The complex type whose parts have a floating type, or the narrowest that holds them."""
    return COMPLEX.get(kind, "c64")


#: The types by texts that mean a type: its dtype's name; or tally.h's own, but for "i8" and "u8", which have 8 bytes with NumPy.
_TEXTS = {**{kind: kind for kind in DTYPE if kind not in ("i8", "u8")}, **KINDS}


def kind_of(dtype: Any) -> str | None:
    """Returns the type for a dtype of NumPy's or PyTorch's, or a text such as "f4", "float32" or "f32"; None for None."""
    if dtype is None:
        return None
    text = dtype if isinstance(dtype, (str, np.dtype, type)) else str(dtype)
    if isinstance(text, str) and text.removeprefix("torch.") in _TEXTS:
        return _TEXTS[text.removeprefix("torch.")]
    return type_of(np.dtype(dtype))


#: Ranks of types: each holds the numbers of lower ranks. f16 and bf16 do not hold each other's.
_DIGITS = {"f16": 1, "bf16": 1, "f32": 2, "c64": 2, "f64": 3, "c128": 3}


def result_kind(op: str, dtype: Any, out: str | None, element: str) -> str | None:
    """The type that the exact value is rounded to, once: that of `out` if it holds less than the result's type, else dtype=."""
    kind = kind_of(dtype)
    if op not in ROUNDED or out not in _DIGITS or (element in PART and op in OF_PARTS and out not in PART):
        return kind  # (a complex result in a real out= is refused when it is written)
    if kind is None and element not in _DIGITS and op in ("sum", "sumsq", "norm1", "dot"):
        return out  # (an exact integer is rounded to out= at once)
    if kind is not None and kind not in _DIGITS:
        return kind
    result = kind or (element if element in _DIGITS else "f64")
    return kind if _DIGITS[result] <= _DIGITS[out] and (result, out) not in (("bf16", "f16"), ("f16", "bf16")) else out


def rounded_to(op: str, element: str, kind: str | None) -> tuple[str | None, str | None]:
    """Returns the type of a problem's result (None: the natural one), and the integer or complex type that it is converted to."""
    if kind is None:
        return None, None
    if kind == "bool":
        raise TypeError(f"a {op} is no bool; tally.any and tally.all are")
    if kind in PART:
        return PART[kind], kind
    if kind in FLOATS:
        return (None, kind) if op == "norminf" and element not in (*FLOATS, "i64") else (kind, None)
    if element in FLOATS or element in PART:
        raise TypeError(f"the {op} of {name_of(element)} elements is not rounded to {name_of(kind)}: give a floating dtype")
    if op in ("mean", "var", "std", "norm2"):
        raise TypeError(f"a {op} is no integer: give a floating dtype")
    return None, kind


# ---- Initial values --------------------------------------------------------------------------------------------------


def _as_array(number: Any) -> np.ndarray[Any, Any]:
    return np.asarray(number) if number is None or isinstance(number, (int, float)) else as_host_array(number).array


def _number(initial: Any) -> np.ndarray[Any, Any]:
    value = _as_array(initial)
    if value.ndim != 0:
        raise ValueError("initial= is one number")
    return value


def element_of(what: str, number: Any, dtype: np.dtype[Any], are: str) -> np.ndarray[Any, Any]:
    """Returns a number as an array of no dimensions of a dtype that must hold it. `are`: words of the error for what has it."""
    value = _as_array(number)
    if value.ndim != 0 or value.dtype.kind not in ("biu" if dtype.kind in "iu" else "biuf"):
        raise TypeError(f"{what}={number!r} is no {dtype}, as {are}")
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max:
        raise OverflowError(f"{what}={number!r} does not fit {dtype}, as {are}")
    return value.astype(dtype)


def check_initial(element: str, initial: Any) -> Any:
    """Returns an initial value if elements of a type can have it, else raises; None for None."""
    if initial is None:
        return None
    dtype = DTYPE[element]
    if isinstance(initial, int) and not -1 << 63 <= initial < 1 << 64:  # (NumPy makes an object of it)
        if element not in FLOATS:
            raise OverflowError(f"initial={initial!r} does not fit {dtype}, the elements' type")
        return float(initial)
    value = _number(initial)
    if value.dtype.kind not in "biuf":
        raise TypeError(f"initial= is a real number, not {initial!r}")
    if element not in FLOATS:
        if value.dtype.kind == "f":
            raise TypeError(f"initial={initial!r} is no {dtype}, as the elements are")
        if element != "bool" and not np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max:
            raise OverflowError(f"initial={initial!r} does not fit {dtype}, the elements' type")
    return initial


def with_initial(op: str, kind: str, rounded: str | None, initial: Any) -> tuple[str, str | None, Any]:
    """The type that elements are converted to (CONVERTED), the result type, and the initial value. A sum's elements are made wide
    enough for the initial value."""
    if op in CONVERTED and rounded is not None:
        kind, rounded = rounded, None
    if initial is None:
        return kind, rounded, None
    if not isinstance(initial, int):
        _number(initial)
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


def complex_initial(initial: Any) -> complex | None:
    if initial is None:
        return None
    number = as_host_array(initial).array
    if number.ndim != 0 or (number.dtype.kind in "iu" and int(number) != float(number)):
        raise TypeError(f"initial={initial!r} is no number that complex128 holds")
    return complex(number)


# ---- Results of nothing, and of many groups --------------------------------------------------------------------------

_MOST_GUESSED = 1 << 30  # bytes of results; for more, where nearly all groups would be empty, groups= must be given


def fill_element(fill: Any, name: str, kind: str) -> Any:
    """Returns fill_value= as an element of the results' type; raises if it is none."""
    if kind == "bf16":
        raise TypeError("results of bfloat16 have no fill_value=")
    if name in ("argmin", "argmax"):
        return element_of("fill_value", fill, DTYPE["i64"], f"the results of {name} are").view(np.uint64)
    return element_of("fill_value", fill, DTYPE[kind], f"the results of {name} are")


def check_guess(count: int, n: int, size: int) -> None:
    """Refuses to make results for as many groups as a greatest id says, where nearly all have no elements."""
    if count * size > _MOST_GUESSED and count > 64 * n:
        raise MemoryError(f"the greatest id is {count - 1}: results for {count} groups need {count * size / 1e9:.1f} GB, and {n} "
                          "elements fill few of them. numpy.unique(ids, return_inverse=True) numbers the groups that occur; "
                          "groups= says that so many are meant")
