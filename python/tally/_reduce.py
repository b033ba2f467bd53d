"""One reduction of an array, or of the products of two, whatever backend the array is of.

Here arguments get their meaning (_arguments.py has the rules), and a problem is made of them. A backend reduces: Host
(_host.py), or Torch or CuPy (_gpu.py). Each has

    beside, mask, means        a further array; where= and mean= as its arrays (_backend.py)
    check_out, check_held      out= and its type; refuses integers that a type does not hold
    along                      the values of a problem along axes
    one, several, deliver      these as the caller sees them, in out= if that is given
    from_parts, complex_product    complex numbers of two parts; their products
    offsets, segments, ids, greatest_id, groups    reductions by part

and arrays are Operands (_arrays.py), which have a type, a shape, and other views of themselves.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any, Callable

import numpy as np

from ._arguments import CONVERTED, NUMBERS, OF_TWO, AxisError, Call, axes_of, check_extreme, check_initial, check_operator, \
    complex_initial, has_too_few, name_of, problem, result_kind, rounded_to, with_initial
from ._arrays import DTYPE, PART, Operand, as_host_array, check_labels, type_of, wrap_numpy
from ._gpu import as_gpu_array, is_on_gpu
from ._host import HOST


def backend_of(t: Operand) -> Any:
    return t.backend or HOST


def as_array(x: Any, device: str | None) -> Any:
    """An array of the host, or of a GPU, where it is reduced."""
    if isinstance(x, np.ndarray):
        return as_host_array(x)
    if isinstance(x, Operand):
        return x
    return as_gpu_array(x, device) if is_on_gpu(x) else as_host_array(x)


def check_keepdims(keepdims: Any) -> None:
    if not isinstance(keepdims, (bool, np.bool_)):
        operator.index(keepdims)


def reduce_one(op: str, x: Any, axis: Any, *, dtype: Any = None, out: Any = None, keepdims: bool = False, initial: Any = None,
               where: Any = None, ddof: float = 0.0, mean: Any = None, fast: bool = False, device: str | None = None,
               progress: bool = False) -> Any:
    """The only value of an operator by name. Warnings point at the line three calls up, the user's."""
    t = as_array(x, device)
    backend, element, shape = backend_of(t), t.type, t.shape
    axes = axes_of(axis, len(shape))
    if initial is np._NoValue:
        initial = None
    if mean is np._NoValue:
        mean = None
    if type(keepdims) is not bool:
        check_keepdims(keepdims)
    check_operator(op, element, shape, axes, initial, where)
    mask = None if where is None else backend.mask(where, t)
    out, out_kind = (None, None) if out is None else backend.check_out(out, t)
    if op in ("argmin", "argmax") and isinstance(out, np.ndarray) and out.dtype.kind not in "iu":
        raise TypeError(f"cannot cast indices from int64 to {out.dtype!r}")
    is_few = has_too_few(op, shape, axes, ddof)
    kind = result_kind(op, dtype, out_kind, element) if op in NUMBERS and not dtype is out_kind is None else None
    means = None if mean is None or op not in OF_TWO else backend.means(mean, t, axes)
    call = Call(axes, keepdims, mask, out, None, device, progress, not is_few, means)
    if element in PART:
        value = _complex(op, t, call, kind, initial, fast, ddof)
    elif op in NUMBERS:
        rounded, wanted = (None, None) if kind is None else rounded_to(op, element, kind)
        if initial is not None or op in CONVERTED:
            element, rounded, initial = with_initial(op, element, rounded, initial)
            t = t.as_type(element)
        if wanted is not None:
            call = call._replace(wanted=wanted)
        value = backend.one(problem((op,), element, rounded, fast, ddof), t, call, initial=initial)
    else:
        value = backend.one(problem((op,), element), t, call, initial=check_initial(element, initial))
    if op in ("mean", "var", "std"):
        if mask is not None:
            is_few = _has_few_chosen(value, mask, axes, ddof if op != "mean" else 0.0)
        if is_few:
            warnings.warn("Mean of empty slice" if op == "mean" else "Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=4)
    return value


def _has_few_chosen(value: Any, mask: Any, axes: tuple[int, ...], ddof: float) -> bool:
    """Return whether some result has no more than `ddof` elements under a mask of the host's. They are counted only if some result is
    NaN. (A GPU's mask is not waited for.)"""
    if mask.backend is not None:
        return False
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fc" and not np.isnan(value).any():
        return False
    return bool((mask.array.sum(axis=axes) <= ddof).any())


def _complex(op: str, t: Any, call: Call, kind: str | None, initial: Any, fast: bool, ddof: float) -> Any:
    """A value of complex elements. _arguments.OF_PARTS and OF_TWO say how operators read them."""
    backend, part = backend_of(t), PART[t.type]
    if op in ("any", "all", "nonzero"):
        return backend.one(problem((op,), "bool"), t.as_type("bool"), call)
    if op in ("norm2", "sumsq"):
        rounded, wanted = rounded_to(op, part, kind)
        return backend.one(problem((op,), part, rounded), t, call._replace(wanted=wanted))
    if op in OF_TWO:
        return backend.one(problem((op,), part, rounded_to(op, part, kind)[0], False, ddof, True), t, call)
    kind = kind or t.type
    if kind not in PART:
        raise TypeError(f"a {op} of complex numbers is no {name_of(kind)}")
    initial = complex_initial(initial)
    if op == "prod":
        return backend.complex_product(t, call, kind, initial)
    element = t.type if initial is None or complex(np.complex64(initial)) == initial else "c128"
    return backend.one(problem((op,), PART[element], PART[kind], fast), t.as_type(element), call, initial=initial)


# ---- Several values --------------------------------------------------------------------------------------------------


def reduce_several(ops: tuple[str, ...], x: Any, axis: Any, keepdims: bool, device: str | None, gather: Callable[..., Any]) -> Any:
    """Returns the values of operators that need elements (minmax, describe), gathered."""
    t = as_array(x, device)
    shape = t.shape
    axes = axes_of(axis, len(shape))
    if type(keepdims) is not bool:
        check_keepdims(keepdims)
    if t.type in PART:
        raise TypeError(f"tally has no {ops[0]} of complex numbers; reduce their parts, x.real and x.imag")
    check_extreme(ops[0], shape, axes)
    return backend_of(t).several(problem(ops, t.type), t, Call(axes, keepdims, None, None, None, device), gather)


# ---- Two arrays ------------------------------------------------------------------------------------------------------

_Layout = Callable[[Any, Any], tuple[Any, Any]]


def _pair(a: Any, b: Any, device: str | None) -> tuple[Operand, Operand]:
    """Two arrays of one backend, as elements of one type."""
    if is_on_gpu(b) and not is_on_gpu(a):
        right = as_gpu_array(b, device)
        left = right.backend.beside(a, right, "the first array")
    else:
        left = as_array(a, device)
        right = backend_of(left).beside(b, left, "the second array")
    if left.type == right.type:
        return left, right
    backend = backend_of(left)
    if "bf16" in (left.type, right.type):
        raise TypeError(f"bfloat16 goes with bfloat16 only: convert the other{backend.how_to_convert}")
    kind = type_of(np.result_type(DTYPE[left.type], DTYPE[right.type]))
    backend.check_held(kind, left, right)
    return left.as_type(kind), right.as_type(kind)


def _broadcast(x: Operand, y: Operand) -> tuple[Operand, Operand]:
    shape = np.broadcast_shapes(x.shape, y.shape)
    return x.broadcast(shape, "the array"), y.broadcast(shape, "the array")


def _products(a: Any, b: Any, layout: _Layout, dtype: Any, out: Any, is_conjugated: bool, device: str | None) -> Any:
    """Sums of products along the last axis of two arrays, which layout(a, b) brings to one shape. `is_conjugated`: complex
    elements of the first array are conjugated."""
    backend, element = backend_of(a), a.type
    if a.wrap is wrap_numpy:
        a = a._replace(wrap=b.wrap)
    x, y = layout(a, b)
    out, out_kind = backend.check_out(out, a)
    kind = result_kind("dot", dtype, out_kind, element)
    call = Call((len(x.shape) - 1,), out=out, device=device)
    if element not in PART:
        rounded, wanted = rounded_to("dot", element, kind)
        return backend.one(problem(("dot",), element, rounded), x, call._replace(wanted=wanted), y=y)
    kind = kind or element
    if kind not in PART:
        raise TypeError(f"a dot product of complex numbers is no {name_of(kind)}")
    p = problem(("dot",), PART[element], PART[kind])
    # Each part is one exact sum of the products of both parts, real by real and imaginary by imaginary, or crosswise.
    if is_conjugated:
        cx, cy = layout(a.conjugate(), b)
        real, imaginary = backend.along(p, x, call, y=y), backend.along(p, cx, call, y=cy, is_swapped=True)
    else:
        cx, cy = layout(a, b.conjugate())
        real, imaginary = backend.along(p, cx, call, y=cy), backend.along(p, x, call, y=y, is_swapped=True)
    return backend.deliver("dot", backend.from_parts(real[0], imaginary[0]), kind, a, call)


def dot(a: Any, b: Any, out: Any, dtype: Any, device: str | None) -> Any:
    """numpy.dot of two arrays."""
    left, right = _pair(a, b, device)
    if () in (left.shape, right.shape):  # by a number: products, rounded once

        def by_number(x: Any, y: Any) -> tuple[Any, Any]:
            return _broadcast(x.expanded(len(x.shape), 1), y.expanded(len(y.shape), 1))

        return _products(left, right, by_number, dtype, out, False, device)
    second = max(0, len(right.shape) - 2)
    if left.shape[-1] != right.shape[second]:
        raise ValueError(f"shapes {tuple(left.shape)} and {tuple(right.shape)} not aligned: {left.shape[-1]} (dim "
                         f"{len(left.shape) - 1}) != {right.shape[second]} (dim {second})")
    check_labels(left, right, (-1, second))

    def layout(x: Any, y: Any) -> tuple[Any, Any]:
        y = y.moved(second)
        return _broadcast(x.expanded(len(x.shape) - 1, len(y.shape) - 1), y)

    return _products(left, right, layout, dtype, out, False, device)


def vecdot(a: Any, b: Any, axis: Any, dtype: Any, device: str | None) -> Any:
    """Dot products of vectors along an axis of two arrays."""
    left, right = _pair(a, b, device)
    axis, dims = operator.index(axis), min(len(left.shape), len(right.shape))
    if dims == 0:
        raise ValueError("tally.vecdot wants vectors, not numbers")
    if not -dims <= axis < dims:
        raise AxisError(axis, dims)
    if left.shape[axis] != right.shape[axis]:
        raise ValueError(f"the vectors have {left.shape[axis]} and {right.shape[axis]} elements")
    check_labels(left, right, (axis, axis))

    def layout(x: Any, y: Any) -> tuple[Any, Any]:
        return _broadcast(x.moved(axis), y.moved(axis))

    return _products(left, right, layout, dtype, None, True, device)
