"""The public reductions, in Python: what arguments mean, and how results become what was given.

`_bind` puts a fast call (ext/fast.c) in front of each.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import warnings
from typing import Any, Callable

import numpy as np

from . import _core, _gpu
from ._arrays import DTYPE, FLOATS, Taken, exactly, from_numpy, is_exact, is_held, lazy, take, type_of
from ._reduce import (BLOCK, AxisError, asked_by, axes_of, brought, check_cast, check_extreme, check_index, check_initial,
                      checked_out, few, mask_of, pieces, positions, problem, real, reduce, reduce_into, rows_of, with_initial)
from ._results import Description, MinMax
from ._variance import variances

PUBLIC: dict[str, Callable[..., Any]] = {}
_COMPLEX_PART = {"c64": "f32", "c128": "f64"}

_COMMON = {
    "axis": """axis : None, int or tuple of ints, optional
    Which axes to reduce; all of them by default. Negative ones count from the last.""",
    "dtype": """dtype : dtype, optional
    What the exact value is rounded to, once. (NumPy converts the elements first.)""",
    "out": """out : array, optional
    Where to put the result; it is returned.""",
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


_RETURNS = {
    "": """number or array
    Of the array's own library, and on the device where that lies.""",
    "minmax": """MinMax
    Two numbers or arrays: `min` and `max`.""",
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
                lines.append(_COMMON[parameter.name])
        signature = str(inspect.signature(function)).split(" -> ")[0]
        signature = ", ".join(part.partition(": ")[0] + (" = " + part.partition(" = ")[2] if " = " in part else "")
                              for part in _parameters(signature[1:-1])).replace(" = ", "=")
        doc = f"{name}({signature})\n--\n\n{head.rstrip()}\n\nParameters\n----------\n" + "\n".join(lines)
        doc += f"\n\nReturns\n-------\n{_RETURNS.get(name, _RETURNS[''])}"
        if examples:
            doc += f"\n\nExamples\n--------\n>>> {examples}"
        PUBLIC[name] = _core._bind(name, _or_lazily(name, function), doc + "\n")
        return function

    return bind


def _or_lazily(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that hands a dask array to tally.dask, and all else to `function`."""

    def entered(*arguments: Any, **more: Any) -> Any:
        if "dask" in sys.modules and lazy(arguments[0] if arguments else more.get("x")) is not None:
            from . import dask
            return dask.call(name, inspect.signature(function).bind(*arguments, **more))
        return function(*arguments, **more)

    return entered


def _parameters(signature: str) -> list[str]:
    """A signature's parameters (no default has a comma in it)."""
    return [part.strip() for part in signature.split(", ")]


# ---- Going out -------------------------------------------------------------------------------------------------------


def _finish(array: np.ndarray[Any, Any], kind: str, t: Taken, axes: tuple[int, ...], keepdims: bool,
            out: np.ndarray[Any, Any] | None, written: bool = False, op: str = "") -> Any:
    """A result, whose reduced axes have length 1, as the caller is to see it. `written`: it is in `out` already."""
    if not isinstance(keepdims, (bool, np.bool_)):
        operator.index(keepdims)
    if written:
        return out
    if not keepdims and axes:
        array = array.reshape([n for d, n in enumerate(array.shape) if d not in axes])
    if out is None:
        return t.give(array, kind)
    if out.shape != array.shape:
        raise ValueError(f"out= has shape {out.shape}, the result {array.shape}")
    if kind == "bf16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if kind != "bf16" or out.dtype.name != "bfloat16":
        check_cast(array.dtype, out.dtype)
    out[...] = brought(array, out.dtype, op)
    return out


def _rounded(op: str, t: Taken, dtype: Any) -> tuple[str | None, np.dtype[Any] | None]:
    """What dtype= comes to: the problem's result type, and what the result is brought to behind it."""
    if dtype is None:
        return None, None
    wanted = np.dtype(dtype)
    kind = type_of(wanted)
    if kind == "bool":
        raise TypeError(f"a {op} is no bool; tally.any and tally.all are")
    if kind in _COMPLEX_PART:
        return _COMPLEX_PART[kind], wanted
    if kind in FLOATS:
        return (None, wanted) if op == "norminf" and t.type not in FLOATS else (kind, None)
    if t.type in FLOATS:
        raise TypeError(f"the {op} of {t.array.dtype} elements is not rounded to {wanted}: give a floating dtype")
    if op in ("mean", "var", "std", "norm2"):
        raise TypeError(f"a {op} is no integer: give a floating dtype")
    return None, wanted


def _ddof(ddof: float, correction: Any) -> float:
    if correction is None:
        return real("ddof=", ddof)
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return real("correction=", correction)


# ---- In between ------------------------------------------------------------------------------------------------------


def _warn_of_few(op: str, ddof: float, shape: tuple[int, ...], axes: tuple[int, ...], where: Any,
                 result: np.ndarray[Any, Any] | None) -> None:
    """NumPy's warning where a mean or a variance has too few elements. `result`: where only a mask says how many there
    are, what they came to."""
    if op in ("mean", "var", "std") and few(shape, axes, where, ddof if op != "mean" else 0.0, result):
        text = "Mean of empty slice" if op == "mean" else "Degrees of freedom <= 0 for slice"
        warnings.warn(text, RuntimeWarning, stacklevel=5)


def _number(op: str, x: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, *, initial: Any = None,
            where: Any = None, ddof: float = 0.0, mean: Any = None, fast: bool = False, device: str | None = None,
            progress: bool = False) -> Any:
    """Operators whose result is a number of its own type: sums, means, variances, norms, products."""
    if mean is np._NoValue:
        mean = None
    if not isinstance(x, Taken) and _gpu.is_on_gpu(x):
        value = _gpu.reduce(op, x, axis, dtype, out, keepdims, initial, where, ddof, fast, device, mean)
        if where is None:
            _warn_of_few(op, ddof, tuple(x.shape), axes_of(axis, len(x.shape)), None, None)
        return value
    t = x if isinstance(x, Taken) else take(x)
    axes = axes_of(axis, t.array.ndim)
    out = checked_out(out)
    dtype = asked_by(op, dtype, out, t.type)
    if op in ("var", "std") and (mean is not None or t.type in _COMPLEX_PART):
        value = _variance(op, t, axes, dtype, where, ddof, mean, device)
        _warn_of_few(op, ddof, t.array.shape, axes, where, value)
        return _finish(value, "f64", t, axes, keepdims, out, op=op)
    if t.type in _COMPLEX_PART:
        value = _complex(op, t, axes, dtype, out, keepdims, where=where, initial=initial, fast=fast, device=device)
        _warn_of_few(op, ddof, t.array.shape, axes, where, np.asarray(value))
        return value
    rounded, wanted = _rounded(op, t, dtype)
    element, rounded, initial = with_initial(op, t.type, rounded, initial)
    if element == "bf16" and (t.type != "bf16" or initial is not None or not t.array.dtype.isnative):
        raise TypeError("elements are not brought to bfloat16, nor have they an initial value: convert them first")
    if t.type == "bf16" and element != "bf16":
        raise TypeError("a bfloat16 array has no initial value beyond its type, and no product of another type")
    p = problem((op,), element, rounded, fast, ddof)
    kind = p.values()[0][1]
    array, written = reduce_into(p, t, axes, out, keepdims, lambda a: a if wanted is None else brought(a, wanted, op), where=where, initial=initial,
                                 element=element, device=device, progress=progress)
    _warn_of_few(op, ddof, t.array.shape, axes, where, None if kind == "bf16" else array)
    return _finish(array, kind, t, axes, keepdims, out, written, op)


def _variance(op: str, t: Taken, axes: tuple[int, ...], dtype: Any, where: Any, ddof: float, mean: Any,
              device: str | None) -> np.ndarray[Any, Any]:
    """Variances of complex numbers, or about a mean that is given, with axes of length 1 kept."""
    x = t.array
    parts = _parts(t) if t.type in _COMPLEX_PART else (t,)
    kind = parts[0].type
    rounded, _ = _rounded(op, parts[0], dtype)
    out = rounded or (kind if kind in FLOATS else "f64")
    if "bf16" in (kind, out):
        raise TypeError(f"a {op} of bfloat16 has no mean=, nor is it of complex numbers")
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    if mean is not None:
        mean = take(mean).array
        try:
            mean = np.broadcast_to(mean, shape)
        except ValueError:
            raise ValueError(f"mean= has shape {mean.shape}, the mean with keepdims=True {shape}") from None
    return variances([p.array for p in parts], "i8" if kind == "bool" else kind, axes, root=op == "std", out=out,
                     mask=mask_of(where, x.shape), ddof=ddof, mean=mean, device=device)


def _parts(t: Taken) -> tuple[Taken, Taken]:
    """The real and the imaginary parts of complex elements, where they lie."""
    array = t.array
    return from_numpy(array.real, t.give), from_numpy(array.imag, t.give)


def _complex(op: str, t: Taken, axes: tuple[int, ...], dtype: Any, out: Any, keepdims: bool, **more: Any) -> Any:
    wanted = np.dtype(dtype) if dtype is not None else None
    if wanted is not None and wanted.kind != "c" and op in ("sum", "mean"):
        raise TypeError(f"a {op} of complex numbers is no {wanted}")
    if op in ("sum", "mean"):
        initial = more.pop("initial")
        rounded = None if wanted is None else _COMPLEX_PART[type_of(wanted)]
        initial = _complex_initial(initial)
        array = np.empty(tuple(1 if d in axes else n for d, n in enumerate(t.array.shape)),
                         wanted or t.array.dtype.newbyteorder("="))
        for part, first, into in zip(_parts(t), (0, 0) if initial is None else (initial.real, initial.imag),
                                     (array.real, array.imag)):
            element, to, first = with_initial(op, part.type, rounded, None if initial is None else first)
            p = problem((op,), element, to, more["fast"])
            reduce_into(p, part, axes, into, True, lambda a: a, where=more["where"], initial=first, element=element,
                        device=more["device"])
        return _finish(array, "complex", t, axes, keepdims, out)
    if op in ("norm2", "sumsq"):
        # |z|^2 is the sum of both parts' squares: one more axis, which is reduced, too.
        base = t.array
        both = (np.stack([base.real, base.imag], -1) if base.size == 0 or base.ndim == 0 else
                np.lib.stride_tricks.as_strided(base.real, (*base.shape, 2), (*base.strides, base.itemsize // 2)))
        inner = from_numpy(both, t.give)
        rounded, _ = _rounded(op, inner, dtype)
        all_axes = (*axes, base.ndim)
        mask = mask_of(more["where"], base.shape)
        r = reduce(problem((op,), inner.type, rounded), inner, all_axes, where=None if mask is None else mask[..., None],
                   device=more["device"])
        return _finish(r.arrays[0].reshape(r.arrays[0].shape[:-1]), r.types[0], t, axes, keepdims, out)
    if op == "prod":
        initial = more["initial"]
        array = _complex_product(t.array, axes, wanted or t.array.dtype.newbyteorder("="), more["where"],
                                 _complex_initial(initial))
        return _finish(array, "complex", t, axes, keepdims, out)
    raise TypeError(f"tally has no {op} of complex numbers; reduce x.real and x.imag")


def _complex_initial(initial: Any) -> complex | None:
    if initial is None or initial is np._NoValue:
        return None
    number = take(initial).array
    if number.ndim != 0 or (number.dtype.kind in "iu" and int(number) != float(number)):
        raise TypeError(f"initial={initial!r} is no number that complex128 holds")
    return complex(number)


def _complex_product(x: np.ndarray[Any, Any], axes: tuple[int, ...], dtype: np.dtype[Any], where: Any,
                     initial: complex | None) -> np.ndarray[Any, Any]:
    """Products of complex numbers: neighbours are multiplied, then neighbours of these, until one is left. Each of the
    two parts is made of products and a sum that are rounded one by one, which is the same on every machine."""
    if type_of(dtype) not in _COMPLEX_PART:
        raise TypeError(f"a product of complex numbers is no {dtype}")
    mask = mask_of(where, x.shape)
    rows = rows_of(x, axes)
    masks = None if mask is None else rows_of(mask, axes)
    out = np.empty(rows.shape[:x.ndim - len(axes)], dtype)
    for at in positions(out.shape):
        tree: list[list[Any]] = []  # whole subtrees of 2^16 elements, joined as neighbours of one size
        last: np.ndarray[Any, Any] = np.empty(0, dtype) if initial is None else np.array([initial], dtype)
        for cut in pieces(rows[at], 1 << 16):
            part = np.asarray(rows[at][cut], dtype).reshape(-1)
            if masks is not None:
                part = part[masks[at][cut].reshape(-1)]
            last = np.concatenate([last, part])
            while last.size >= 1 << 16:
                block, last = last[:1 << 16], last[1 << 16:]
                tree.append([0, _multiply_neighbours(block)])
                while len(tree) > 1 and tree[-1][0] == tree[-2][0]:
                    level, right = tree.pop()
                    tree[-1] = [level + 1, _multiply_neighbours(np.concatenate([tree[-1][1], right]))]
        value = _multiply_neighbours(last)
        for _, left in reversed(tree):
            value = left if last.size == 0 and value.size == 0 else _multiply_neighbours(np.concatenate([left, value]))
        out[at] = value[0] if value.size else 1
    for part in (out.real, out.imag):  # (which NaN comes of a product is a machine's own)
        part[np.isnan(part)] = np.nan
    return out.reshape([1 if d in axes else n for d, n in enumerate(x.shape)])


def _multiply_neighbours(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    while x.size > 1:
        a, b, rest = x[0:x.size // 2 * 2:2], x[1::2], x[x.size // 2 * 2:]
        y = np.empty(a.size, x.dtype)
        with np.errstate(all="ignore"):
            y.real = a.real * b.real - a.imag * b.imag
            y.imag = a.real * b.imag + a.imag * b.real
        x = np.concatenate([y, rest])
    return x


def _element(op: str, x: Any, axis: Any, out: Any, keepdims: bool, *, initial: Any = None, where: Any = None,
             device: str | None = None, progress: bool = False) -> Any:
    """Operators whose result is an element: extremes and bits."""
    if _gpu.is_on_gpu(x):
        return _gpu.reduce(op, x, axis, None, out, keepdims, initial, where, 0.0, False, device)
    t = take(x)
    axes = axes_of(axis, t.array.ndim)
    if t.type in _COMPLEX_PART:
        raise TypeError(f"tally has no {op} of complex numbers: they have no order and no bits; reduce their parts")
    if op in ("and", "or", "xor") and t.type in FLOATS:
        raise TypeError(f"tally.bitwise_{op} is not supported for {t.array.dtype} elements; a view has their bits")
    if op in ("min", "max"):
        check_extreme(f"{op}imum", t.array.shape, axes, initial, where)
    if t.type == "bf16" and initial is not None:
        raise TypeError("a bfloat16 array has no initial value")
    initial = check_initial(t.type, initial)
    out = checked_out(out)
    array, written = reduce_into(problem((op,), t.type), t, axes, out, keepdims, lambda a: _as_elements(a, t), where=where,
                                 initial=initial, device=device, progress=progress)
    return _finish(array, t.type, t, axes, keepdims, out, written, op)


def _as_elements(array: np.ndarray[Any, Any], t: Taken) -> np.ndarray[Any, Any]:
    return array.view(np.bool_) if t.type == "bool" else array


def _index(op: str, x: Any, axis: Any, out: Any, keepdims: bool, device: str | None) -> Any:
    if axis is not None:
        axis = operator.index(axis)
    if _gpu.is_on_gpu(x):
        return _gpu.reduce(op, x, axis, None, out, keepdims, None, None, 0.0, False, device)
    t = take(x)
    axes = axes_of(axis, t.array.ndim)
    if t.type in _COMPLEX_PART:
        raise TypeError(f"tally has no {op} of complex numbers: they have no order")
    check_index(op, t.array.shape, axes)
    out = checked_out(out)
    if out is not None and out.dtype.kind not in "iu":
        raise TypeError(f"cannot cast indices from int64 to {out.dtype!r}")
    array, written = reduce_into(problem((op,), t.type), t, axes, out, keepdims, lambda a: a.view(np.int64), device=device)
    return _finish(array, "i64", t, axes, keepdims, out, written, op)


def _complex_truth(op: str, x: np.ndarray[Any, Any], axes: tuple[int, ...], mask: np.ndarray[Any, Any] | None,
                   device: str | None) -> np.ndarray[Any, Any]:
    """How many complex numbers are not zero, or whether any or all are, with axes of length 1 kept; by blocks, of which
    it is written down what is not zero."""
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    if x.size <= BLOCK:
        r = reduce(problem((op,), "bool"), from_numpy(np.asarray(x != 0)), axes, where=mask, device=device)
        return r.arrays[0].view(np.int64 if op == "nonzero" else np.bool_)
    d = max(range(x.ndim), key=lambda d: x.shape[d])
    step = max(1, BLOCK // (x.size // x.shape[d]))
    out = np.full(shape, op == "all", np.int64 if op == "nonzero" else np.bool_)
    join = {"nonzero": np.add, "any": np.logical_or, "all": np.logical_and}[op]
    for at in range(0, x.shape[d], step):
        cut = (slice(None),) * d + (slice(at, at + step),)
        here = out if d in axes else out[cut]
        join(here, _complex_truth(op, x[cut], axes, None if mask is None else mask[cut], device), out=here)
    return out


def _truth(op: str, x: Any, axis: Any, out: Any, keepdims: bool, where: Any, device: str | None) -> Any:
    if _gpu.is_on_gpu(x):
        return _gpu.reduce(op, x, axis, None, out, keepdims, None, where, 0.0, False, device)
    t = take(x)
    axes = axes_of(axis, t.array.ndim)
    out = checked_out(out)
    if t.type in _COMPLEX_PART:
        value = _complex_truth(op, t.array, axes, mask_of(where, t.array.shape), device)
        return _finish(value, "bool", t, axes, keepdims, out)
    array, written = reduce_into(problem((op,), t.type), t, axes, out, keepdims, lambda a: a.view(np.bool_), where=where,
                                 device=device)
    return _finish(array, "bool", t, axes, keepdims, out, written)


# ---- The functions ---------------------------------------------------------------------------------------------------


@_public("""The sum of elements: exact, then rounded once.

Integers are added up exactly; a sum that does not fit 64 bits is an OverflowError.

>>> tally.sum([1e16, 1.0, -1e16])
np.float64(1.0)
""")
def sum_(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, fast: bool = False, device: str | None = None, progress: bool = False) -> Any:
    return _number("sum", x, axis, dtype, out, keepdims, initial=initial, where=where, fast=fast, device=device,
                   progress=progress)


@_public("""The product of elements.

Integers exactly; floats over one tree whose shape depends on their number alone, so that the bits are the same
everywhere. `dtype` is what the elements are converted to before they are multiplied.

>>> tally.prod([2, 3, 7])
np.int64(42)
""")
def prod(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None, progress: bool = False) -> Any:
    return _number("prod", x, axis, dtype, out, keepdims, initial=initial, where=where, device=device, progress=progress)


@_public("""The least element. A NaN in is a NaN out; -0.0 is below 0.0.

>>> tally.min([[3, 1], [2, 5]], axis=0)
array([2, 1])
""")
def min_(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None, progress: bool = False) -> Any:
    return _element("min", x, axis, out, keepdims, initial=initial, where=where, device=device, progress=progress)


@_public("""The greatest element. A NaN in is a NaN out; 0.0 is above -0.0.

>>> tally.max([[3, 1], [2, 5]], axis=1)
array([3, 5])
""")
def max_(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None, progress: bool = False) -> Any:
    return _element("max", x, axis, out, keepdims, initial=initial, where=where, device=device, progress=progress)


@_public("""The least and the greatest element, in one pass.

>>> tally.minmax([3, 1, 2]).max
np.int64(3)
""")
def minmax(x: Any, axis: Any = None, keepdims: bool = False, *, device: str | None = None) -> Any:
    if _gpu.is_on_gpu(x):
        check_extreme("minmax", x.shape, axes_of(axis, len(x.shape)), None, None)
        return _several(("minmax",), x, axis, keepdims, device, MinMax)
    t = take(x)
    axes = axes_of(axis, t.array.ndim)
    if t.type in _COMPLEX_PART:
        raise TypeError("tally has no minmax of complex numbers: they have no order")
    check_extreme("minmax", t.array.shape, axes, None, None)
    r = reduce(problem(("minmax",), t.type), t, axes, device=device)
    return MinMax(*(_finish(_as_elements(r.arrays[i], t), t.type, t, axes, keepdims, None) for i in (0, 1)))


@_public("""The index of the least element: the first one, or that of the first NaN.

>>> tally.argmin([3.0, 1.0, 1.0])
np.int64(1)
""")
def argmin(x: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False, device: str | None = None) -> Any:
    return _index("argmin", x, axis, out, keepdims, device)


@_public("""The index of the greatest element: the first one, or that of the first NaN.

>>> tally.argmax([[3, 1], [2, 5]], axis=0)
array([0, 1])
""")
def argmax(x: Any, axis: Any = None, out: Any = None, *, keepdims: bool = False, device: str | None = None) -> Any:
    return _index("argmax", x, axis, out, keepdims, device)


@_public("""The mean of elements: the exact quotient, rounded once. NaN for none.

>>> tally.mean([0.1] * 3)
np.float64(0.1)
""")
def mean(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None, fast: bool = False, device: str | None = None, progress: bool = False) -> Any:
    return _number("mean", x, axis, dtype, out, keepdims, where=where, fast=fast, device=device, progress=progress)


@_public("""The variance of elements: the exact value, rounded once. NaN for no more than `ddof` elements.

>>> tally.var([1e9, 1e9 + 1, 1e9 + 2], ddof=1)
np.float64(1.0)
""")
def var(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: Any = None, device: str | None = None, progress: bool = False) -> Any:
    return _number("var", x, axis, dtype, out, keepdims, where=where, ddof=_ddof(ddof, correction), mean=mean,
                   device=device, progress=progress)


@_public("""The standard deviation of elements: the square root of the exact variance, rounded once.

>>> tally.std([1e16, 1e16, 1e16 + 4])
np.float64(1.8856180831641267)
""")
def std(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0, keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: Any = None, device: str | None = None, progress: bool = False) -> Any:
    return _number("std", x, axis, dtype, out, keepdims, where=where, ddof=_ddof(ddof, correction), mean=mean,
                   device=device, progress=progress)


@_public("""The norm of elements as a vector: rounded once, without overflow or underflow on the way.

`ord` is 2 (or None) for the root of the squares' sum, 1 for the sum of magnitudes, inf for the greatest of them. With an `ord`
the norm of two axes is a matrix's in NumPy, and an error here. Norms of integers are float64.

>>> tally.norm([3 * 2.0**600, 4 * 2.0**600]) == 5 * 2.0**600
np.True_
""")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, *, dtype: Any = None, device: str | None = None, progress: bool = False) -> Any:
    there = _gpu.take(x) if _gpu.is_on_gpu(x) else None
    t = None if there else take(x)
    kind, ndim = (there.type, len(there.shape)) if there else (t.type, t.array.ndim) if t else ("", 0)
    op, dtype = norm_of(ord, axis, ndim, dtype, kind)
    return _number(op, x if there else t, axis, dtype, None, keepdims, device=device, progress=progress)


def norm_of(ord: Any, axis: Any, ndim: int, dtype: Any, kind: str) -> tuple[str, Any]:
    """The operator of a norm of elements of a type, and the dtype of its result; of integers that is NumPy's. NumPy's norm of two
    axes, by an order, is a matrix norm, and of more of them none: an error."""
    ops: dict[Any, str] = {None: "norm2", 2: "norm2", 1: "norm1", float("inf"): "norminf"}
    if not (ord is None or isinstance(ord, (int, float, np.number))) or ord not in ops:
        raise ValueError(f"Invalid norm order {ord!r} for vectors: 1, 2 and inf are here")
    if ops[ord] == "norminf" and dtype is not None:
        raise TypeError("the norm by the greatest magnitude has the elements' type")
    dims = ndim if axis is None else len(axis) if isinstance(axis, tuple) else 1
    if ord is not None and dims > 1:
        raise ValueError(f"the norm of order {ord} of {dims} axes is NumPy's norm of a matrix, which tally has not: give axis= for "
                         "vectors' norms, or x.ravel() for that of all elements")
    is_integer = kind not in FLOATS and kind not in _COMPLEX_PART
    return ops[ord], DTYPE["f64"] if is_integer and dtype is None and ops[ord] != "norm2" else dtype


@_public("""The sum of squares: exact, then rounded once.

>>> tally.sumsq([1, 2, 3])
np.int64(14)
""")
def sumsq(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None, device: str | None = None, progress: bool = False) -> Any:
    return _number("sumsq", x, axis, dtype, out, keepdims, where=where, device=device, progress=progress)


@_public("""How many elements are not zero. A NaN is not zero.

>>> tally.count_nonzero([0, 1, 2, 0])
np.int64(2)
""")
def count_nonzero(x: Any, axis: Any = None, *, keepdims: bool = False, device: str | None = None) -> Any:
    if _gpu.is_on_gpu(x):
        return _gpu.reduce("nonzero", x, axis, None, None, keepdims, None, None, 0.0, False, device)
    t = take(x)
    axes = axes_of(axis, t.array.ndim)
    if t.type in _COMPLEX_PART:
        return _finish(_complex_truth("nonzero", t.array, axes, None, device), "i64", t, axes, keepdims, None)
    r = reduce(problem(("nonzero",), t.type), t, axes, device=device)
    return _finish(r.arrays[0].view(np.int64), "i64", t, axes, keepdims, None)


@_public("""Whether any element is not zero.

>>> tally.any([0, 0, 3])
np.True_
""")
def any_(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None, device: str | None = None) -> Any:
    return _truth("any", x, axis, out, keepdims, where, device)


@_public("""Whether no element is zero.

>>> tally.all([1, 2, 0])
np.False_
""")
def all_(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None, device: str | None = None) -> Any:
    return _truth("all", x, axis, out, keepdims, where, device)


@_public("""The bits that are set in all elements, which are integers or bool.

>>> tally.bitwise_and([7, 6, 12])
np.int64(4)
""")
def bitwise_and(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None) -> Any:
    return _element("and", x, axis, out, keepdims, initial=initial, where=where, device=device)


@_public("""The bits that are set in at least one element, which are integers or bool.

>>> tally.bitwise_or([1, 4])
np.int64(5)
""")
def bitwise_or(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None) -> Any:
    return _element("or", x, axis, out, keepdims, initial=initial, where=where, device=device)


@_public("""The bits that are set in an odd number of elements, which are integers or bool.

>>> tally.bitwise_xor([1, 3, 4])
np.int64(6)
""")
def bitwise_xor(x: Any, axis: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None, *, device: str | None = None) -> Any:
    return _element("xor", x, axis, out, keepdims, initial=initial, where=where, device=device)


# ---- Two arrays ------------------------------------------------------------------------------------------------------


def _common(a: Taken, b: Taken) -> tuple[Taken, Taken, str]:
    """Two arrays and the type that both are brought to."""
    if a.type == b.type:
        return a, b, a.type
    if "bf16" in (a.type, b.type):
        raise TypeError("bfloat16 goes with bfloat16 only: convert the other")
    return a, b, type_of(np.result_type(a.array.dtype, b.array.dtype))


def _split(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return two float64 arrays with the same exact sums of products along the last axis as x and y.

    An integer of x that float64 does not hold becomes two parts of its sign: an infinity times both has one sign, too. Any other
    integer stays whole, and -0 times 0 fills its second place, which adds nothing.
    """
    held = is_held(x)
    low = np.where(held, 0, np.fmod(x, x.dtype.type(2048)))
    high = (x - low).astype(np.float64)
    low = np.where(held, -0.0, low.astype(np.float64))
    y = np.asarray(y, np.float64)
    return np.concatenate([high, low], -1), np.concatenate([y, np.where(held, 0.0, y)], -1)


def _exact_pair(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Bring two arrays of vectors to float64 without a change of their exact sums of products."""
    dtype = DTYPE["f64"]
    if not is_exact(y, dtype):
        if not is_exact(x, dtype):  # (one of int64, one of uint64)
            low = np.fmod(x, x.dtype.type(2048))
            # Both parts of x are exact; y is repeated beside them, and split below.
            x, y = np.concatenate([(x - low).astype(dtype), low.astype(dtype)], -1), np.concatenate([y, y], -1)
        y, x = _split(np.asarray(y, y.dtype.newbyteorder("=")), x)
    elif not is_exact(x, dtype):
        x, y = _split(np.asarray(x, x.dtype.newbyteorder("=")), y)
    return x, y


def _products(a: Taken, b: Taken, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], element: str, conjugate: bool,
              dtype: Any, out: Any, device: str | None) -> Any:
    """Sums of products along the last axis of two arrays of one shape."""
    axes = (x.ndim - 1,)
    out = checked_out(out)
    dtype = asked_by("dot", dtype, out, element)
    if element == "f64" and not {a.type, b.type}.isdisjoint(("i64", "u64")):
        x, y = _exact_pair(x, y)
    give = a.give if b.give == from_numpy(np.empty(0)).give else b.give
    if element in _COMPLEX_PART:
        return _finish(_complex_products(x, y, element, conjugate, dtype, device), "complex", a._replace(give=give), axes,
                       False, out)
    rounded, wanted = _rounded("dot", a._replace(type=element), dtype)
    left = _view(a, x)._replace(give=give)
    p = problem(("dot",), element, rounded)
    array, written = reduce_into(p, left, axes, out, False, lambda a: a if wanted is None else brought(a, wanted, "dot"), y=_view(b, y), element=element,
                                 device=device)
    return _finish(array, p.values()[0][1], left, axes, False, out, written, "dot")


def _view(t: Taken, array: np.ndarray[Any, Any]) -> Taken:
    """Another view of what has been taken."""
    if t.type == "bf16":
        return Taken(array, "bf16", from_numpy(array).direct, t.give)
    return from_numpy(array, t.give)


def _complex_products(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], element: str, conjugate: bool, wanted: Any,
                      device: str | None) -> np.ndarray[Any, Any]:
    """Sums of complex products: each part is one exact sum of two products, rounded once."""
    part = _COMPLEX_PART[element]
    rounded = part if wanted is None else _COMPLEX_PART.get(type_of(np.dtype(wanted)))
    if rounded is None:
        raise TypeError(f"a dot product of complex numbers is no {np.dtype(wanted)}")
    dtype, p = DTYPE[part], problem(("dot",), part, rounded)
    out = np.empty((*x.shape[:-1], 1), np.result_type(DTYPE[rounded], np.complex64))
    for at in positions(x.shape[:-1]):
        real, imaginary, less = _core.State(p), _core.State(p), _core.State(p)
        for start in range(0, x.shape[-1], 1 << 16):
            cut = slice(start, start + (1 << 16))
            a, b = x[at][cut], y[at][cut]
            ar, ai = (exactly(v, dtype) for v in (a.real, a.imag))
            br, bi = (exactly(v, dtype) for v in (b.real, b.imag))
            real.feed(ar, br, device)
            (real if conjugate else less).feed(ai, bi, device)
            imaginary.feed(ar, bi, device)
            if conjugate:
                other = _core.State(p)
                other.feed(ai, br, device)
                other.negate()
                imaginary.merge(other)
            else:
                imaginary.feed(ai, br, device)
        if not conjugate:
            less.negate()
            real.merge(less)
        out[(*at, 0)] = complex(real.value()[0], imaginary.value()[0])
    return out


@_public("""The dot product of two arrays: products and their sum exact, then rounded once.

As numpy.dot: of vectors their inner product; of arrays of more dimensions the sums over the last axis of `a` and the
last but one of `b`; by a number products. Integers give 64 bits, or an OverflowError.

>>> tally.dot([1e20, 1.0, -1e20], [1.0, 3.0, 1.0])
np.float64(3.0)
""")
def dot(a: Any, b: Any, out: Any = None, *, dtype: Any = None, device: str | None = None) -> Any:
    if _gpu.is_on_gpu(a) or _gpu.is_on_gpu(b):
        return _gpu.dot(a, b, out, dtype, device)
    left, right, element = _common(take(a), take(b))
    x, y = left.array, right.array
    if x.ndim == 0 or y.ndim == 0:  # by a number: products, rounded once
        x, y = np.broadcast_arrays(x[..., None], y[..., None])
        return _products(left, right, x, y, element, False, dtype, out, device)
    second = y.ndim - 2 if y.ndim > 1 else 0
    if x.shape[-1] != y.shape[second]:
        raise ValueError(f"shapes {x.shape} and {y.shape} not aligned: {x.shape[-1]} (dim {x.ndim - 1}) != "
                         f"{y.shape[second]} (dim {second})")
    y = np.moveaxis(y, second, -1)
    shape = (*x.shape[:-1], *y.shape[:-1], x.shape[-1])
    x = np.broadcast_to(x.reshape((*x.shape[:-1], *(1,) * (y.ndim - 1), x.shape[-1])) if y.ndim > 1 else x, shape)
    y = np.broadcast_to(y, shape)
    return _products(left, right, x, y, element, False, dtype, out, device)


@_public("""The dot products of vectors that lie along an axis, of arrays that are broadcast to each other.

Complex elements of `x1` are conjugated.

>>> tally.vecdot([[1, 2], [3, 4]], [1, 1])
array([3, 7])
""")
def vecdot(x1: Any, x2: Any, axis: int = -1, *, dtype: Any = None, device: str | None = None) -> Any:
    if _gpu.is_on_gpu(x1) or _gpu.is_on_gpu(x2):
        return _gpu.vecdot(x1, x2, axis, dtype, device)
    left, right, element = _common(take(x1), take(x2))
    x, y = left.array, right.array
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError("tally.vecdot wants vectors, not numbers")
    axis = operator.index(axis)
    if not -min(x.ndim, y.ndim) <= axis < (0 if x.ndim != y.ndim else x.ndim):
        raise AxisError(axis, min(x.ndim, y.ndim))
    x, y = np.moveaxis(x, axis, -1), np.moveaxis(y, axis, -1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"the vectors have {x.shape[-1]} and {y.shape[-1]} elements")
    shape = np.broadcast_shapes(x.shape, y.shape)
    return _products(left, right, np.broadcast_to(x, shape), np.broadcast_to(y, shape), element, True, dtype, None,
                     device)


# ---- Several values --------------------------------------------------------------------------------------------------


def _several(ops: tuple[str, ...], x: Any, axis: Any, keepdims: bool, device: str | None,
             gather: Callable[..., Any] | None = None) -> Any:
    """The values of operators of an array on a GPU, as a list or gathered."""
    return _gpu.values(lambda kind, rounded: problem(ops, kind, rounded), ops[0], x, axis, None, keepdims, None, device,
                       gather=gather)


def describe(x: Any, axis: Any = None, keepdims: bool = False, *, device: str | None = None) -> Description:
    """Count, NaNs, extremes and where they are, sum, mean and standard deviation: in one pass.

    Parameters
    ----------
    x : array_like
        NumPy's array, or any other library's: in the host's memory, or PyTorch's, CuPy's or JAX's on a CUDA device.
    axis : None, int or tuple of ints, optional
        Which axes to reduce; all of them by default.
    keepdims : bool, optional
        Whether reduced axes stay, with length 1.
    device : str, optional
        Where to work.

    Returns
    -------
    Description
        Numbers or arrays: `count`, `nans`, `min`, `max`, `argmin`, `argmax`, `sum`, `mean`, `std`.

    Examples
    --------
    >>> d = tally.describe([3.0, 1.0, 2.0])
    >>> d.count, d.mean, d.argmin
    (np.int64(3), np.float64(2.0), np.int64(1))
    """
    if _gpu.is_on_gpu(x):
        check_extreme("describe", x.shape, axes_of(axis, len(x.shape)), None, None)
        return Description(*_several(("describe",), x, axis, keepdims, device))
    t = take(x)
    axes = axes_of(axis, t.array.ndim)
    if t.type in _COMPLEX_PART:
        raise TypeError("tally does not describe complex numbers; reduce their parts")
    check_extreme("describe", t.array.shape, axes, None, None)
    r = reduce(problem(("describe",), t.type), t, axes, device=device)
    values = []
    for (op, kind), array in zip(r.what, r.arrays):
        if op in ("count", "nans", "argmin", "argmax"):
            array, kind = array.view(np.int64), "i64"
        elif op in ("min", "max") and t.type == "bool":
            array, kind = array.view(np.bool_), "bool"
        values.append(_finish(array, kind, t, axes, keepdims, None))
    return Description(*values)


PUBLIC["describe"] = functools.wraps(describe)(_or_lazily("describe", describe))
PUBLIC["describe"].__module__ = "tally"
