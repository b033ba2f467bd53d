"""The public functions and their documentation. _reduce.py does what they ask for.

`_bind` puts a fast call (ext/fast.c) in front of each.
"""

from __future__ import annotations

import inspect
import operator
from typing import Any, Callable

import numpy as np

from . import _core, _reduce
from ._arguments import ddof_of
from ._arrays import DTYPE, FLOATS, PART
from ._gpu import accept_others
from ._reduce import as_array, reduce_one, reduce_several
from ._results import Description, MinMax

PUBLIC: dict[str, Callable[..., Any]] = {}

_COMMON = {
    "axis": """axis : None, int or tuple of ints, optional
    Which axes to reduce; all of them by default. Negative ones count from the last.""",
    "dtype": """dtype : dtype, optional
    What the exact value is rounded to, once. (NumPy converts the elements first.)""",
    "out": """out : array, optional
    Where to put the result; it is returned. NumPy's, or a tensor of PyTorch's; of an array on a GPU one of its library's.""",
    "keepdims": """keepdims : bool, optional
    Whether reduced axes stay, with length 1.""",
    "initial": """initial : number, optional
    One more element, of the elements' type, in front of each result's.""",
    "where": """where : array of bool, optional
    Which elements are there; broadcast to the array's shape.""",
    "ddof": """ddof : float, optional
    The squares are divided by n - ddof; 0 is the population, 1 a sample.""",
    "correction": """correction : float, optional
    The Array API's name for `ddof`.""",
    "mean": """mean : array_like, optional
    Numbers that the variance is about, each taken as exact, of the shape that the mean has with keepdims=True, or
    broadcast to it. (The exact mean costs no pass here: leave it alone unless another one is meant.)""",
    "fast": """fast : bool, optional
    Plain, unordered additions: no promise on the bits.""",
    "device": """device : str, optional
    Where to work: "cpu" (the default), "cpu:threads=1", "cuda:0", "opencl:0".""",
    "progress": """progress : bool, optional
    Whether a long call says on a terminal how far it has come.""",
}


_ONE = """axis : None or int, optional
    Which axis to reduce; all elements, as they follow in C order, by default."""
_AXIS = {"argmin": _ONE, "argmax": _ONE, "vecdot": """axis : int, optional
    The axis of both arrays along which vectors lie; the last one by default."""}
_RETURNS = {
    "": """number or array
    Of the array's own library, and on the device where that lies.""",
    "minmax": """MinMax
    Two numbers or arrays: `min` and `max`.""",
    "describe": """Description
    Numbers or arrays: `count`, `nans`, `min`, `max`, `argmin`, `argmax`, `sum`, `mean`, `std`.""",
}


def _public(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a function public under its name, with a docstring in NumPy's form. `text`: the summary, what else there
    is to say, and examples behind a line ">>>"; the parameters are added from `_COMMON`."""

    def bind(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__ = function.__qualname__ = function.__name__.rstrip("_")
        head, _, examples = inspect.cleandoc(text).partition("\n>>> ")
        lines = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name in ("x", "a", "b", "x1", "x2"):
                lines.append(f"{parameter.name} : array_like\n    NumPy's array, or any other library's: in the host's "
                             "memory, or PyTorch's, CuPy's or JAX's on a CUDA device.")
            elif parameter.name in _COMMON:
                lines.append(_AXIS.get(name, _COMMON["axis"]) if parameter.name == "axis" else _COMMON[parameter.name])
        plain = inspect.Signature([p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()])
        doc = f"{name}{plain}\n--\n\n{head.rstrip()}\n\nParameters\n----------\n" + "\n".join(lines)
        doc += f"\n\nReturns\n-------\n{_RETURNS.get(name, _RETURNS[''])}"
        if examples:
            doc += f"\n\nExamples\n--------\n>>> {examples}"
        entered = accept_others(function, name)
        if name == "describe":  # which has no fast call
            entered.__doc__, entered.__module__ = doc.partition("--\n\n")[2], "tally"
        PUBLIC[name] = entered if name == "describe" else _core._bind(name, entered, doc + "\n")
        return function

    return bind


# ---- The functions ---------------------------------------------------------------------------------------------------


@_public("""The sum of elements: exact, then rounded once.

Integers are added up exactly; a sum that does not fit 64 bits is an OverflowError.

>>> tally.sum([1e16, 1.0, -1e16])
np.float64(1.0)
""")
def sum_(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, fast: bool = False, device: str | None = None, progress: bool = False) -> Any:
    return reduce_one("sum", x, axis, dtype=dtype, out=out, keepdims=keepdims, initial=initial, where=where, fast=fast,
                      device=device, progress=progress)


@_public("""The product of elements.

Integers exactly; floats over one tree whose shape depends on their number alone, so that the bits are the same
everywhere. `dtype` is what the elements are converted to before they are multiplied.

>>> tally.prod([2, 3, 7])
np.int64(42)
""")
def prod(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None, progress: bool = False) -> Any:
    return reduce_one("prod", x, axis, dtype=dtype, out=out, keepdims=keepdims, initial=initial, where=where, device=device,
                      progress=progress)


@_public("""The least element. A NaN in is a NaN out; -0.0 is below 0.0.

>>> tally.min([[3, 1], [2, 5]], axis=0)
array([2, 1])
""")
def min_(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None, progress: bool = False) -> Any:
    return reduce_one("min", x, axis, out=out, keepdims=keepdims, initial=initial, where=where, device=device, progress=progress)


@_public("""The greatest element. A NaN in is a NaN out; 0.0 is above -0.0.

>>> tally.max([[3, 1], [2, 5]], axis=1)
array([3, 5])
""")
def max_(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None, progress: bool = False) -> Any:
    return reduce_one("max", x, axis, out=out, keepdims=keepdims, initial=initial, where=where, device=device, progress=progress)


@_public("""The least and the greatest element, in one pass.

>>> tally.minmax([3, 1, 2]).max
np.int64(3)
""")
def minmax(x: Any, axis: Any = None, keepdims: bool = False, *, device: str | None = None) -> Any:
    return reduce_several(("minmax",), x, axis, keepdims, device, MinMax)


@_public("""The index of the least element: the first one, or that of the first NaN.

>>> tally.argmin([3.0, 1.0, 1.0])
np.int64(1)
""")
def argmin(x: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False, device: str | None = None) -> Any:
    return reduce_one("argmin", x, None if axis is None else operator.index(axis), out=out, keepdims=keepdims, device=device)


@_public("""The index of the greatest element: the first one, or that of the first NaN.

>>> tally.argmax([[3, 1], [2, 5]], axis=0)
array([0, 1])
""")
def argmax(x: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False, device: str | None = None) -> Any:
    return reduce_one("argmax", x, None if axis is None else operator.index(axis), out=out, keepdims=keepdims, device=device)


@_public("""The mean of elements: the exact quotient, rounded once. NaN for none.

>>> tally.mean([0.1] * 3)
np.float64(0.1)
""")
def mean(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None, fast: bool = False, device: str | None = None, progress: bool = False) -> Any:
    return reduce_one("mean", x, axis, dtype=dtype, out=out, keepdims=keepdims, where=where, fast=fast, device=device,
                      progress=progress)


@_public("""The variance of elements: the exact value, rounded once. NaN for no more than `ddof` elements.

>>> tally.var([1e9, 1e9 + 1, 1e9 + 2], ddof=1)
np.float64(1.0)
""")
def var(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: Any = None, device: str | None = None, progress: bool = False) -> Any:
    return reduce_one("var", x, axis, dtype=dtype, out=out, keepdims=keepdims, where=where, ddof=ddof_of(ddof, correction),
                      mean=mean, device=device, progress=progress)


@_public("""The standard deviation of elements: the square root of the exact variance, rounded once.

>>> tally.std([1e16, 1e16, 1e16 + 4])
np.float64(1.8856180831641267)
""")
def std(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: Any = None, device: str | None = None, progress: bool = False) -> Any:
    return reduce_one("std", x, axis, dtype=dtype, out=out, keepdims=keepdims, where=where, ddof=ddof_of(ddof, correction),
                      mean=mean, device=device, progress=progress)


@_public("""The norm of elements as a vector: rounded once, without overflow or underflow on the way.

`ord` is 2 (or None) for the root of the squares' sum, 1 for the sum of magnitudes, inf for the greatest of them. With an `ord`
the norm of two axes is a matrix's in NumPy, and an error here. Norms of integers are float64 if no `dtype` is given.

>>> tally.norm([3 * 2.0**600, 4 * 2.0**600]) == 5 * 2.0**600
np.True_
""")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, *, dtype: Any = None, device: str | None = None, progress: bool = False) -> Any:
    t = as_array(x, device)
    op, dtype = norm_of(ord, axis, len(t.shape), dtype, t.type)
    return reduce_one(op, t, axis, dtype=dtype, keepdims=keepdims, device=device, progress=progress)


def norm_of(ord: Any, axis: Any, ndim: int, dtype: Any, kind: str) -> tuple[str, Any]:
    """Returns the operator of a norm of elements of a type, and the dtype of its result; for integers that is NumPy's. An order and
    two axes is an error, as NumPy's result would be a matrix norm; so is an order and more axes, as in NumPy."""
    ops: dict[Any, str] = {None: "norm2", 2: "norm2", 1: "norm1", float("inf"): "norminf"}
    if not (ord is None or isinstance(ord, (int, float, np.number))) or ord not in ops:
        raise ValueError(f"Invalid norm order {ord!r} for vectors: 1, 2 and inf are here")
    dims = ndim if axis is None else len(axis) if isinstance(axis, tuple) else 1
    if ord is not None and dims > 1:
        raise ValueError(f"the norm of order {ord} of {dims} axes is NumPy's norm of a matrix, which tally has not: give axis= for "
                         "vectors' norms, or x.ravel() for that of all elements")
    is_integer = kind not in FLOATS and kind not in PART
    return ops[ord], DTYPE["f64"] if is_integer and dtype is None and ops[ord] != "norm2" else dtype


@_public("""The sum of squares: exact, then rounded once.

>>> tally.sumsq([1, 2, 3])
np.int64(14)
""")
def sumsq(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None, device: str | None = None, progress: bool = False) -> Any:
    return reduce_one("sumsq", x, axis, dtype=dtype, out=out, keepdims=keepdims, where=where, device=device, progress=progress)


@_public("""How many elements are not zero. A NaN is not zero.

>>> tally.count_nonzero([0, 1, 2, 0])
np.int64(2)
""")
def count_nonzero(x: Any, axis: Any = None, *, keepdims: bool = False, device: str | None = None) -> Any:
    return reduce_one("nonzero", x, axis, keepdims=keepdims, device=device)


@_public("""Whether any element is not zero.

>>> tally.any([0, 0, 3])
np.True_
""")
def any_(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None, device: str | None = None) -> Any:
    return reduce_one("any", x, axis, out=out, keepdims=keepdims, where=where, device=device)


@_public("""Whether no element is zero.

>>> tally.all([1, 2, 0])
np.False_
""")
def all_(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None, device: str | None = None) -> Any:
    return reduce_one("all", x, axis, out=out, keepdims=keepdims, where=where, device=device)


@_public("""The bits that are set in all elements, which are integers or bool.

>>> tally.bitwise_and([7, 6, 12])
np.int64(4)
""")
def bitwise_and(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None) -> Any:
    return reduce_one("and", x, axis, out=out, keepdims=keepdims, initial=initial, where=where, device=device)


@_public("""The bits that are set in at least one element, which are integers or bool.

>>> tally.bitwise_or([1, 4])
np.int64(5)
""")
def bitwise_or(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None) -> Any:
    return reduce_one("or", x, axis, out=out, keepdims=keepdims, initial=initial, where=where, device=device)


@_public("""The bits that are set in an odd number of elements, which are integers or bool.

>>> tally.bitwise_xor([1, 3, 4])
np.int64(6)
""")
def bitwise_xor(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None) -> Any:
    return reduce_one("xor", x, axis, out=out, keepdims=keepdims, initial=initial, where=where, device=device)


# ---- Two arrays ------------------------------------------------------------------------------------------------------


@_public("""The dot product of two arrays: products and their sum exact, then rounded once.

As numpy.dot: of vectors their inner product; of arrays of more dimensions the sums over the last axis of `a` and the
last but one of `b`; by a number products. Integers give 64 bits, or an OverflowError.

>>> tally.dot([1e20, 1.0, -1e20], [1.0, 3.0, 1.0])
np.float64(3.0)
""")
def dot(a: Any, b: Any, out: Any = None, *, dtype: Any = None, device: str | None = None) -> Any:
    return _reduce.dot(a, b, out, dtype, device)


@_public("""The dot products of vectors that lie along an axis, of arrays that are broadcast to each other.

Complex elements of `x1` are conjugated.

>>> tally.vecdot([[1, 2], [3, 4]], [1, 1])
array([3, 7])
""")
def vecdot(x1: Any, x2: Any, axis: int = -1, *, dtype: Any = None, device: str | None = None) -> Any:
    return _reduce.vecdot(x1, x2, axis, dtype, device)


# ---- Several values --------------------------------------------------------------------------------------------------


@_public("""Count, NaNs, extremes and where they are, sum, mean and standard deviation: in one pass.

>>> d = tally.describe([3.0, 1.0, 2.0])
>>> d.count, d.mean, d.argmin
(np.int64(3), np.float64(2.0), np.int64(1))
""")
def describe(x: Any, axis: Any = None, keepdims: bool = False, *, device: str | None = None) -> Description:
    return reduce_several(("describe",), x, axis, keepdims, device, Description)  # type: ignore[no-any-return]
