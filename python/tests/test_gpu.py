"""Arrays that lie on a GPU: the bits of the same array in the host's memory, on the library's own stream, as arrays of
that library. With PyTorch and CuPy where there is a device; else with stand-ins over the double of CUDA's driver, by

    LD_LIBRARY_PATH=build/tests/cuda_double/lib python -m pytest python/tests/test_gpu.py
"""

import ctypes
import functools
import inspect
import sys
import types

import numpy as np
import pytest

import tally
from tally import _gpu, _repeated
import gpu_libraries
from gpu_libraries import BFLOAT16, find

FUNCTIONS = ("sum", "mean", "var", "std", "min", "max", "argmin", "argmax", "any", "all", "count_nonzero", "norm", "sumsq",
             "prod")


@pytest.fixture(params=["cupy", "torch"])
def gpu(request, monkeypatch):
    library = find(request.param, monkeypatch)
    if library is None:
        pytest.skip("no CUDA device, nor its double")
    caches = (_gpu._backend.cache_clear, _repeated.clear_cache)
    for clear in caches:
        clear()
    yield library
    for clear in caches:
        clear()


def same(gpu, got, want):
    """One result, or several, have the bits, dtype and shape of the host's."""
    if isinstance(want, tuple):
        assert type(got) is type(want) and len(got) == len(want)
        for a, b in zip(got, want):
            same(gpu, a, b)
        return
    got, want = np.asarray(gpu.back(got)), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    assert got.tobytes() == want.tobytes(), (got, want)


def numbers(rng, shape, dtype):
    """Small numbers, and zeros; products fit."""
    return np.ascontiguousarray(rng.choice([-2, -1, 0, 1, 1, 1, 2, 3], size=shape) * 0.75 if np.dtype(dtype).kind == "f"
                                else rng.integers(0, 2, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "bf16", "i4", "u1", "i8", "u2", "?"])
def test_whole_arrays(gpu, rng, dtype):
    if dtype == "bf16":
        dtype = BFLOAT16 or pytest.skip("no ml_dtypes")
    x = (rng.standard_normal(700) * 9).astype(np.float32).astype(dtype) if dtype != "?" else rng.random(700) < 0.5
    there = gpu.there(x)
    for op in FUNCTIONS:
        if op == "prod" and x.dtype.kind in "iu":
            continue  # does not fit
        for _ in range(2):  # what is asked again goes a shorter way
            same(gpu, getattr(tally, op)(there), getattr(tally, op)(x))
    if dtype != "?":
        same(gpu, tally.dot(there, there), tally.dot(x, x))
    if x.dtype.kind in "iub":
        for op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            same(gpu, getattr(tally, op)(there), getattr(tally, op)(x))
    same(gpu, tally.minmax(there), tally.minmax(x))
    same(gpu, tally.norm(there, 1), tally.norm(x, 1))
    same(gpu, tally.norm(there, float("inf")), tally.norm(x, float("inf")))
    if x.dtype.kind == "f":
        same(gpu, tally.describe(there), tally.describe(x))
        same(gpu, tally.reduce("count,mean,std", there), tally.reduce("count,mean,std", x))


def test_the_shorter_way_is_for_what_lies_side_by_side(gpu, rng):
    x = numbers(rng, (20, 10), "f4")
    there = gpu.there(x)
    for a, b in ((there, x), (there, x), (gpu.transpose(there, (1, 0)), x.T), (gpu.there(numbers(rng, (40, 10), "f4")), None)):
        if b is None:  # as many elements as before, from every second row
            a, b = a[::2], gpu.back(a)[::2]
        for op in ("argmax", "prod", "sum"):
            same(gpu, getattr(tally, op)(a), getattr(tally, op)(b))
            for axis in (0, -1, 0, -1):  # the second time as it was remembered for that shape and layout
                same(gpu, getattr(tally, op)(a, axis), getattr(tally, op)(b, axis))
                same(gpu, getattr(tally, op)(a, axis=axis), getattr(tally, op)(b, axis=axis))
    same(gpu, tally.norm(gpu.there(x[0]), 1), tally.norm(x[0], 1))  # (which is no axis)
    for _ in range(3):
        with pytest.raises(np.exceptions.AxisError):
            tally.sum(gpu.there(x), axis=2)


def test_results_that_are_made_together(gpu, rng):
    """Each has memory of its own: more of them than are made at once, of two operators and types, all kept."""
    x = [numbers(rng, 50, dtype) for dtype in ("f4", "i4") for _ in range(40)]
    there = [gpu.there(a) for a in x]
    got = [getattr(tally, op)(a) for a in there for op in ("sum", "mean", "argmax")]
    for value, (a, op) in zip(got, ((a, op) for a in x for op in ("sum", "mean", "argmax"))):
        same(gpu, value, getattr(tally, op)(a))


def test_results_that_are_made_alone(gpu, rng, monkeypatch):
    """As large ones are: each by itself, in a workspace that grows from one shape to the next."""
    monkeypatch.setattr(_repeated, "_SMALL_ROOM", 0)
    for rows in (3, 300, 700):
        x = [numbers(rng, (rows, 70), "f4") for _ in range(5)]
        for op, axis in (("sum", 1), ("max", 0), ("argmax", 1), ("sum", None)):
            got = [getattr(tally, op)(gpu.there(a), axis=axis) for a in x for _ in range(3)]
            for value, a in zip(got, (a for a in x for _ in range(3))):
                same(gpu, value, getattr(tally, op)(a, axis=axis))


def test_calls_that_are_asked_again(gpu, rng):
    """Other elements, and another mask, of the same shape; the same arguments but for one."""
    shape = (6, 5, 4)
    f8 = getattr(gpu.module, "float64", np.float64)
    for op in (*FUNCTIONS, "minmax"):
        function = getattr(tally, op)
        for axis in (None, -1 if op.startswith("arg") else ((0, 2), (0, 1, 2))[rng.integers(2)]):
            for more in (set(), {"dtype"}, {"where"}, {"ddof"}):
                if not more <= set(inspect.signature(function).parameters):
                    continue
                keepdims = bool(rng.integers(2))
                for _ in range(3):
                    x, mask = numbers(rng, shape, "f4"), rng.random(shape) < 0.7
                    mask[0, 0, 0] = mask[:, 0, 0] = mask[0, :, 0] = mask[:, :, 0] = True
                    here = {"dtype": np.float64, "where": mask, "ddof": 1}
                    there = {"dtype": f8, "where": gpu.there(mask), "ddof": 1}
                    if op in ("min", "max") and "where" in more:
                        here["initial"] = there["initial"] = -9
                        more = {"where", "initial"}
                    same(gpu, function(gpu.there(x), axis=axis, keepdims=keepdims, **{k: there[k] for k in more}),
                         function(x, axis=axis, keepdims=keepdims, **{k: here[k] for k in more}))
    for _ in range(3):
        x, y = numbers(rng, shape, "f4"), numbers(rng, shape, "f4")
        for axis in (0, -1):
            same(gpu, tally.vecdot(gpu.there(x), gpu.there(y), axis=axis), tally.vecdot(x, y, axis=axis))
        same(gpu, tally.dot(gpu.there(x[0, 0]), gpu.there(y[0, 0])), tally.dot(x[0, 0], y[0, 0]))
        for wrong in (1.0, (0, 1.0), 3, (0, 0)):
            tally.sum(gpu.there(x), axis=(0, 1)), tally.sum(gpu.there(x), axis=1)
            with pytest.raises((TypeError, ValueError)):
                tally.sum(gpu.there(x), axis=wrong)
        with pytest.raises(TypeError):
            tally.sum(gpu.there(x), where=mask)
    for _ in range(3):
        with pytest.warns(RuntimeWarning):
            tally.var(gpu.there(x[0, 0, :1]), ddof=1)
    if gpu.name == "torch":
        assert 0 < _gpu._core._cached_calls() <= 256 and len(_repeated._results) <= _repeated._MOST_RESULTS


@pytest.fixture(params=["table", "methods"])
def by_python(gpu, request, monkeypatch):
    """A list that grows by one with each call that goes the general way, by Python: of tensors that DLPack's table of functions
    describes, or their own methods."""
    calls = []
    if gpu.name != "torch" or request.param == "methods" and gpu.is_real:
        pytest.skip("calls on this library's arrays are not cached, or tensors have the table")
    if request.param == "methods":
        monkeypatch.delattr(gpu.module.Tensor, "__dlpack_c_exchange_api__")
    library = _gpu._backend("torch")
    general = functools.partial(_repeated.call_on_tensor, library)
    _gpu._core._tensor_type(gpu.module.Tensor, lambda *arguments, **named: calls.append(1) or general(*arguments, **named),
                            library.stream)
    yield calls
    _gpu._core._tensor_type(gpu.module.Tensor, general, library.stream)


def test_a_call_into_a_graph_goes_by_python(gpu, rng, by_python, monkeypatch):
    """Its result must come from the library's memory for graphs, not from results that wait."""
    x = numbers(rng, (40, 30), "f4")
    if gpu.is_real:
        there, graph = gpu.there(x), gpu.module.cuda.CUDAGraph()
        for _ in range(20):
            tally.sum(there, axis=1)
        before = len(by_python)
        with gpu.module.cuda.graph(graph):
            got = [tally.sum(there, axis=1) for _ in range(20)]
        graph.replay()
    else:
        driver = gpu_libraries.the_driver()
        there = gpu.there(x)
        for _ in range(20):
            tally.sum(there, axis=1)
        before, mode = len(by_python), ctypes.c_int(2)
        monkeypatch.setattr(gpu_libraries.Memory, "__del__", lambda self: None)  # (which would wait)
        driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        driver.cu.tally_cuda_double_capture(driver.stream, True)
        got = [tally.sum(there, axis=1) for _ in range(20)]
        driver.cu.tally_cuda_double_capture(driver.stream, False)
        driver.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    assert len(by_python) == before + 20
    for value in got:
        same(gpu, value, tally.sum(x, axis=1))


def test_calls_that_are_made_again_go_no_way_by_python(gpu, rng, by_python):
    x, y, mask = numbers(rng, (40, 30), "f4"), numbers(rng, (40, 30), "f4"), rng.random((40, 30)) < 0.5
    f8, f8_there = np.float64, getattr(gpu.module, "float64", np.float64)
    calls = [lambda x, y, mask, f8: tally.sum(x), lambda x, y, mask, f8: tally.sum(x, axis=0),
             lambda x, y, mask, f8: tally.var(x, axis=(0, 1), ddof=1), lambda x, y, mask, f8: tally.mean(x, 1, keepdims=True),
             lambda x, y, mask, f8: tally.sum(x, dtype=f8), lambda x, y, mask, f8: tally.max(x, 1, where=mask, initial=9),
             lambda x, y, mask, f8: tally.sum(x, where=mask), lambda x, y, mask, f8: tally.vecdot(x, y),
             lambda x, y, mask, f8: tally.argmax(x, axis=1), lambda x, y, mask, f8: tally.all(x, axis=0),
             lambda x, y, mask, f8: tally.minmax(x), lambda x, y, mask, f8: tally.minmax(x, axis=0, keepdims=True),
             lambda x, y, mask, f8: tally.sum(x, axis=tuple([0, 1])), lambda x, y, mask, f8: tally.var(x, axis=1, ddof=float("1.5"))]
    for call in calls:
        for _ in range(4):  # other elements of the same layout
            x, y, mask = rng.permutation(x), rng.permutation(y), rng.permutation(mask)
            there = gpu.there(x), gpu.there(y), gpu.there(mask), f8_there
            before = len(by_python)
            same(gpu, call(*there), call(x, y, mask, f8))
        assert (len(by_python) > before) == (call is calls[5])  # (another element, initial=, is another launch)
    wide = gpu.there(x)
    columns = gpu.transpose(wide, (1, 0))
    for _ in range(3):
        same(gpu, tally.sum(columns, axis=0), tally.sum(x.T, axis=0))
        same(gpu, tally.sum(wide, axis=0), tally.sum(x, axis=0))
    with pytest.raises(TypeError):
        tally.sum(there[0], axis=(0, 1.0))  # (which equals (0, 1))
    before = len(by_python)
    with tally.checked():
        same(gpu, tally.sum(wide, axis=0), tally.sum(x, axis=0))
    assert len(by_python) == before + 1
    if not gpu.is_real:
        wide.negated = True
        with pytest.raises(TypeError, match="negated"):
            tally.sum(wide, axis=0)
    for tensor in there[:2]:  # of calls that have been made without gradients
        for call in (lambda: tally.vecdot(*there[:2]), lambda: tally.State("dot", "f4").update(*there[:2])):
            call()
            tensor.requires_grad = True
            with pytest.raises(TypeError, match="detach"):
                call()
            tensor.requires_grad = False


def test_rows_that_are_left_in_memory_that_is_used_again(gpu, rng):
    """Rows whose sums two doubles do not hold, here and there, between calls without any: nothing is cleared between."""
    tame = numbers(rng, (300, 70), "f4")
    for axis in (0, 1):
        for i in range(8):
            x = tame.copy()
            for k in rng.integers(60, size=i % 3):
                x[k] *= np.exp2(rng.integers(-90, 90, 70)).astype("f4")
                x[:, k] *= np.exp2(rng.integers(-30, 30, 300)).astype("f4")
            there = gpu.there(x)
            for op in ("sum", "mean", "var"):
                same(gpu, getattr(tally, op)(there, axis=axis), getattr(tally, op)(x, axis=axis))


def test_more_calls_than_the_cache_holds(gpu, rng):
    for n in (*range(1, 300), *range(1, 12)):
        x = numbers(rng, n, "f4")
        same(gpu, tally.sum(gpu.there(x)), tally.sum(x))
        assert _gpu._core._cached_calls() <= 256
    assert (_gpu._core._cached_calls() > 200) == (gpu.name == "torch")


LAYOUTS = {
    "rows": lambda gpu, x: (x, gpu.there(x)),
    "transposed": lambda gpu, x: (x.transpose(2, 0, 1), gpu.transpose(gpu.there(x), (2, 0, 1))),
    "sliced": lambda gpu, x: (x[1:, ::2, 1:-1], gpu.there(x)[1:, ::2, 1:-1]),
    "broadcast": lambda gpu, x: (np.broadcast_to(x[:, :1], x.shape), gpu.broadcast(gpu.there(x)[:, :1], x.shape)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "i2"])
def test_axes(gpu, rng, layout, dtype):
    x, there = LAYOUTS[layout](gpu, numbers(rng, (3, 8, 5), dtype))
    for op in FUNCTIONS:
        for axis in (None, 0, -1, 1) if op.startswith("arg") else (None, 0, -1, (0, 2), (1, -1)):
            keepdims = bool(rng.integers(2))
            same(gpu, getattr(tally, op)(there, axis=axis, keepdims=keepdims),
                 getattr(tally, op)(x, axis=axis, keepdims=keepdims))
    same(gpu, tally.minmax(there, axis=1), tally.minmax(x, axis=1))
    same(gpu, tally.describe(there, axis=0), tally.describe(x, axis=0))


def test_negative_strides(gpu, rng):
    if gpu.name == "torch":
        pytest.skip("PyTorch has none")
    x = numbers(rng, (5, 6), "f8")
    same(gpu, tally.var(gpu.there(x)[::-1, ::-2], axis=0), tally.var(x[::-1, ::-2], axis=0))
    same(gpu, tally.argmin(gpu.there(x)[::-1, ::-2]), tally.argmin(x[::-1, ::-2]))


@pytest.mark.filterwarnings("ignore:Mean of empty:RuntimeWarning", "ignore:Degrees of freedom:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["f8", "i2"])
def test_where_initial_and_out(gpu, rng, dtype):
    x = numbers(rng, (6, 7), dtype)
    mask = rng.random((6, 7)) < 0.6
    there, where = gpu.there(x), gpu.there(mask)
    for op in ("sum", "mean", "var", "any", "all", "prod", "sumsq"):
        for axis in (None, 0, 1):
            same(gpu, getattr(tally, op)(there, axis=axis, where=where), getattr(tally, op)(x, axis=axis, where=mask))
    same(gpu, tally.sum(there, axis=1, where=where[0]), tally.sum(x, axis=1, where=mask[0]))
    same(gpu, tally.sum(there, axis=1, where=where[:, :1]), tally.sum(x, axis=1, where=mask[:, :1]))
    for op in ("min", "max"):
        same(gpu, getattr(tally, op)(there, axis=0, where=where, initial=1),
             getattr(tally, op)(x, axis=0, where=mask, initial=1))
        same(gpu, getattr(tally, op)(there, initial=100), getattr(tally, op)(x, initial=100))
    for op, initial in (("sum", 3), ("prod", -2), ("sum", 2.0**-40 if dtype == "f8" else 70_000)):
        for axis in (None, 0, 1, (0, 1)):
            same(gpu, getattr(tally, op)(there, axis=axis, initial=initial, where=where, keepdims=axis == 0),
                 getattr(tally, op)(x, axis=axis, initial=initial, where=mask, keepdims=axis == 0))
            same(gpu, getattr(tally, op)(gpu.transpose(there, (1, 0)), axis=axis, initial=initial),
                 getattr(tally, op)(x.T, axis=axis, initial=initial))
    if dtype == "f8":  # what an f32 cannot hold is not rounded first
        same(gpu, tally.sum(gpu.there(x.astype("f4")), axis=1, initial=0.1), tally.sum(x.astype("f4"), axis=1, initial=0.1))
    same(gpu, tally.sum(there[:0], axis=0, initial=5), tally.sum(x[:0], axis=0, initial=5))
    same(gpu, tally.sum(there[:0], axis=1, initial=5), tally.sum(x[:0], axis=1, initial=5))
    want = tally.mean(x, axis=0)
    out = gpu.there(np.zeros(7, "f8"))
    assert tally.mean(there, axis=0, out=out) is out
    same(gpu, out, want.astype("f8"))
    with pytest.raises(ValueError):
        tally.mean(there, axis=1, out=out)
    with pytest.raises(TypeError, match="same_kind"):
        tally.mean(there, axis=0, out=gpu.there(np.zeros(7, "i8")))
    with pytest.raises(TypeError):
        tally.mean(there, axis=0, out=np.zeros(7))


@pytest.mark.filterwarnings("ignore:Mean of empty:RuntimeWarning", "ignore:Degrees of freedom:RuntimeWarning")
@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (3, 0), (1,) * 20])
def test_small_shapes(gpu, shape):
    x = np.full(shape, 2.5, "f4")
    there = gpu.there(x)
    for op in ("sum", "mean", "std", "any", "prod", "max", "argmin"):
        for axis in (None, *([0, -1] if shape else [])):
            try:
                want = getattr(tally, op)(x, axis=axis)
            except ValueError as error:
                with pytest.raises(ValueError) as mine:
                    getattr(tally, op)(there, axis=axis)
                assert str(mine.value) == str(error)
            else:
                same(gpu, getattr(tally, op)(there, axis=axis), want)


def test_products(gpu, rng):
    a, b = rng.standard_normal((4, 9)).astype("f4"), rng.standard_normal((9, 5)).astype("f4")
    x, y = gpu.there(a), gpu.there(b)
    same(gpu, tally.dot(x, y), tally.dot(a, b))
    same(gpu, tally.dot(x, y[:, 2]), tally.dot(a, b[:, 2]))
    same(gpu, tally.vecdot(x, x[:1]), tally.vecdot(a, a[:1]))
    same(gpu, tally.vecdot(x, x, axis=0), tally.vecdot(a, a, axis=0))
    same(gpu, tally.dot(x[0], x[1], dtype=np.float64), tally.dot(a[0], a[1], dtype="f8"))
    same(gpu, tally.dot(x, gpu.there(b.astype("f8"))), tally.dot(a, b.astype("f8")))
    same(gpu, tally.dot(gpu.there(np.arange(9)), y), tally.dot(np.arange(9), b))
    for c, d in ((a[0], a[1]), (a[1], a[2]), (a[0], b[:, 0]), (a[0, ::2], a[1, :5]), (b[0], b[1])):  # and what is remembered
        for op in ("dot", "vecdot"):
            same(gpu, getattr(tally, op)(gpu.there(c), gpu.there(d)), getattr(tally, op)(c, d))
            same(gpu, getattr(tally, op)(x[0, ::2], x[1, :5]), getattr(tally, op)(a[0, ::2], a[1, :5]))
    two = np.float32(1.5)
    same(gpu, tally.dot(x, gpu.there(np.asarray(two))), a * two)
    same(gpu, tally.dot(gpu.there(np.asarray(two)), y[::2]), two * b[::2])
    for bad in (lambda: tally.dot(x, b), lambda: tally.dot(a, y)):
        with pytest.raises(TypeError):
            bad()
    with pytest.raises(ValueError, match="not aligned"):
        tally.dot(x, x)


def complexes(rng, shape, dtype="c8"):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex(gpu, rng, dtype):
    x = complexes(rng, (4, 6), dtype)
    x[1, 2] = 0
    there, mask = gpu.there(x), rng.random((4, 6)) < 0.7
    mask[0] = True
    where = gpu.there(mask)
    for op in ("sum", "mean", "sumsq", "norm", "any", "all", "count_nonzero", "var", "std", "prod"):
        for axis in (None, 0, 1):
            for keepdims in (False, True):
                same(gpu, getattr(tally, op)(there, axis=axis, keepdims=keepdims),
                     getattr(tally, op)(x, axis=axis, keepdims=keepdims))
            if op in ("sum", "mean", "any", "all", "var", "std", "prod"):
                same(gpu, getattr(tally, op)(there, axis=axis, where=where), getattr(tally, op)(x, axis=axis, where=mask))
    for op in ("sum", "prod"):
        for initial in (2, 0.5 - 3j, 0.1):
            same(gpu, getattr(tally, op)(there, axis=0, initial=initial), getattr(tally, op)(x, axis=0, initial=initial))
            same(gpu, getattr(tally, op)(there, initial=initial, where=where), getattr(tally, op)(x, initial=initial, where=mask))
        same(gpu, getattr(tally, op)(there, axis=1, dtype="c16"), getattr(tally, op)(x, axis=1, dtype="c16"))
    same(gpu, tally.var(gpu.transpose(there, (1, 0))[::2], axis=0, ddof=1), tally.var(x.T[::2], axis=0, ddof=1))
    for op in ("max", "argmax", "minmax"):
        with pytest.raises(TypeError, match="complex"):
            getattr(tally, op)(there)


def test_complex_products_of_arrays(gpu, rng):
    a, b = complexes(rng, (4, 9)), complexes(rng, (9, 5))
    x, y = gpu.there(a), gpu.there(b)
    same(gpu, tally.dot(x, y), tally.dot(a, b))
    same(gpu, tally.dot(x[:, ::2], y[::2]), tally.dot(a[:, ::2], b[::2]))
    same(gpu, tally.dot(x[0], y[:, 1], dtype="c16"), tally.dot(a[0], b[:, 1], dtype="c16"))
    same(gpu, tally.vecdot(x, x[:1]), tally.vecdot(a, a[:1]))
    same(gpu, tally.vecdot(gpu.transpose(x, (1, 0)), y[:, :4], axis=0), tally.vecdot(a.T, b[:, :4], axis=0))
    same(gpu, tally.dot(x, gpu.there(np.asarray(a[0, 0]))), tally.dot(a, a[0, 0]))
    same(gpu, tally.dot(x[0], gpu.there(b[:, 1].real.copy())), tally.dot(a[0], b[:, 1].real.copy()))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 1000])
def test_products_of_complex_numbers_have_one_tree(gpu, rng, n):
    x = np.exp(1j * rng.standard_normal((3, n)))
    mask = rng.random((3, n)) < 0.5
    same(gpu, tally.prod(gpu.there(x), axis=1), tally.prod(x, axis=1))
    same(gpu, tally.prod(gpu.there(x), axis=1, where=gpu.there(mask)), tally.prod(x, axis=1, where=mask))
    if n == 7:
        x[0, 3], x[1, 2] = np.inf, complex(0, np.nan)
        same(gpu, tally.prod(gpu.there(x), axis=1), tally.prod(x, axis=1))


@pytest.mark.filterwarnings("ignore:Degrees of freedom:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "u1", "i8", "?", "c16"])
def test_variances_about_a_mean(gpu, rng, dtype):
    """Of any size, wild ones and small ones, about means that are near and far."""
    x = rng.standard_normal((5, 40)) * 40
    if dtype in ("f8", "c16"):
        x *= 2.0 ** rng.integers(-500, 500, x.shape)
    x = x + 1j * x[::-1] if dtype == "c16" else x
    x = (np.abs(x) if dtype == "u1" else x).astype(dtype)
    there, mask = gpu.there(x), rng.random(x.shape) < 0.6
    for axis in (None, 0, 1):
        own = np.asarray(tally.mean(x, axis=axis, keepdims=True))
        for mean, ddof in ((own, 0), (own * 0 + 0.1, 1.5), (own.real.astype("f8") * 0 - 2.0**1000, 4)):
            op, hidden = rng.permutation(["var", "std"])  # (a std is the root of what a var is rounded from)
            same(gpu, getattr(tally, op)(there, axis=axis, mean=gpu.there(mean), ddof=ddof),
                 getattr(tally, op)(x, axis=axis, mean=mean, ddof=ddof))
            same(gpu, getattr(tally, hidden)(there, axis=axis, mean=gpu.there(mean), where=gpu.there(mask), keepdims=True),
                 getattr(tally, hidden)(x, axis=axis, mean=mean, where=mask, keepdims=True))
    same(gpu, tally.var(there, axis=1, mean=gpu.there(np.asarray(2.5))), tally.var(x, axis=1, mean=2.5))
    for bad in (np.inf, np.nan):
        mean = gpu.there(np.full((5, 1), bad))
        same(gpu, tally.var(there, axis=1, mean=mean), tally.var(x, axis=1, mean=np.full((5, 1), bad)))
    with pytest.raises(ValueError, match="mean= has shape"):
        tally.var(there, mean=there)
    with pytest.raises(TypeError, match="elsewhere"):
        tally.var(there, mean=np.zeros((1, 1)))


@pytest.mark.filterwarnings("ignore:Degrees of freedom:RuntimeWarning")
def test_variances_of_wild_complex_numbers(gpu, rng):
    x = (complexes(rng, (35, 30), "c16") * 2.0 ** rng.integers(-1000, 1000, (35, 30)))
    x[0, 0], x[1, 1], x[2] = np.nan, complex(0, np.inf), 7 - 2j
    there = gpu.there(x)
    for ddof in (0, 1.5, 30, 29.9375, 0.1):
        op, narrow = rng.permutation(["var", "std"])
        same(gpu, getattr(tally, op)(there, axis=1, ddof=ddof), getattr(tally, op)(x, axis=1, ddof=ddof))
        same(gpu, getattr(tally, narrow)(there, axis=1, ddof=ddof, dtype="f4"), getattr(tally, narrow)(x, axis=1, ddof=ddof, dtype="f4"))
    same(gpu, tally.var(there[:, :0], axis=1), tally.var(x[:, :0], axis=1))
    same(gpu, tally.var(there[:0], axis=1), tally.var(x[:0], axis=1))


def test_integers_as_another_type(gpu):
    x = np.array([[100, 27, 1], [-100, -28, -1]])
    there = gpu.there(x)
    for dtype in ("i1", "i2", "i4", "i8"):
        same(gpu, tally.sum(there[:, :2], axis=1, dtype=dtype), tally.sum(x[:, :2], axis=1, dtype=dtype))
        same(gpu, tally.segment("sum", there[:, :2], 1, dtype=dtype), tally.segment("sum", x[:, :2], 1, dtype=dtype))
        same(gpu, tally.group("sum", there[:, :2], gpu.there(np.array([0, 0])), 1, dtype=dtype),
             tally.group("sum", x[:, :2], [0, 0], 1, dtype=dtype))
        same(gpu, tally.prod(there[0], dtype=dtype if dtype != "i1" else "i2"), np.asarray(2700, dtype if dtype != "i1" else "i2"))
    for dtype in ("u1", "u2"):
        same(gpu, tally.sum(there[0], dtype=dtype), tally.sum(x[0], dtype=dtype))
    for dtype, call in (("int8", lambda: tally.sum(there, axis=1, dtype="i1")), ("uint16", lambda: tally.sum(there, axis=1, dtype="u2")),
                        ("uint64", lambda: tally.reduce("sum", there[1], dtype="u8"))):
        assert 0 in gpu.back(call()).reshape(-1)
        with pytest.raises(OverflowError, match=f"does not fit {dtype}"), tally.checked():
            call()
    with pytest.raises(TypeError, match="no bool"):
        tally.sum(there, dtype="?")


def test_products_in_another_type(gpu, rng):
    x = numbers(rng, (3, 50), "f4")
    for dtype in ("f8", "f2"):
        same(gpu, tally.prod(gpu.there(x), axis=1, dtype=dtype), tally.prod(x, axis=1, dtype=dtype))
        same(gpu, tally.prod(gpu.there(x), dtype=dtype, initial=0.75), tally.prod(x, dtype=dtype, initial=0.75))
    same(gpu, tally.prod(gpu.there(x.astype("i4")), dtype="f4"), tally.prod(x.astype("i4"), dtype="f4"))


def test_out_of_reduce(gpu, rng):
    x = numbers(rng, (3, 50), "f4")
    out = gpu.there(np.zeros(3, "f4"))
    assert tally.reduce("norm1", gpu.there(x), axis=1, out=out) is out
    same(gpu, out, tally.reduce("norm1", x, axis=1))
    with pytest.raises(ValueError, match="one value"):
        tally.reduce("minmax", gpu.there(x), out=out)


def test_segments_and_groups(gpu, rng):
    x = numbers(rng, (3, 40), "f4")
    there = gpu.there(x)
    offsets = np.array([0, 3, 3, 17, 40])
    ids = rng.integers(0, 5, 40)
    mask = rng.random(40) < 0.5
    for op in ("sum", "max", "argmax", "minmax", "count,var"):
        same(gpu, tally.segment(op, there, 8), tally.segment(op, x, 8))
        same(gpu, tally.segment(op, gpu.transpose(there, (1, 0)), 8, axis=0), tally.segment(op, x.T, 8, axis=0))
        fill = {"fill_value": -7} if op in ("max", "argmax", "minmax") else {}
        same(gpu, tally.segment(op, there, gpu.there(offsets), **fill), tally.segment(op, x, offsets, **fill))
        same(gpu, tally.segment(op, there[0], gpu.there(offsets.astype("i4")), **fill), tally.segment(op, x[0], offsets, **fill))
        same(gpu, tally.group(op, there, gpu.there(ids), 6, **fill), tally.group(op, x, ids, 6, **fill))
        same(gpu, tally.group(op, gpu.transpose(there, (1, 0)), gpu.there(ids.astype("u1")), 6, axis=0,
                              where=gpu.there(mask), **fill), tally.group(op, x.T, ids, 6, axis=0, where=mask, **fill))
        if fill:  # of no elements: 0, and an error where that is asked for
            for call in (lambda: tally.segment(op, there, gpu.there(offsets)), lambda: tally.group(op, there, gpu.there(ids), 6)):
                least = call()
                least = gpu.back(least[0] if isinstance(least, tuple) else least)
                assert (least[:, 1 if least.shape[1] == 4 else 5] == 0).all()
                with pytest.raises(ValueError, match="has no elements"), tally.checked():
                    call()
    same(gpu, tally.group("sum", there[0], gpu.there(ids), 3, skip_outside=True),
         tally.group("sum", x[0], ids, 3, skip_outside=True))
    for kind in ("i8", "u1", "i2", "?"):
        some = ids.astype(kind)
        same(gpu, tally.group("sum", there, gpu.there(some)), tally.group("sum", x, some))
    same(gpu, tally.group("sum", there[0, :0], gpu.there(ids[:0])), tally.group("sum", x[0, :0], ids[:0]))
    same(gpu, tally.group("sum", there[0], gpu.there(ids - 9), skip_outside=True),
         tally.group("sum", x[0], ids - 9, skip_outside=True))
    with pytest.raises(TypeError, match="elsewhere"):
        tally.group("sum", there, ids, 5)
    with pytest.raises(TypeError, match="elsewhere"):
        tally.segment("sum", there, offsets)


def test_what_is_not_exact_on_the_way(gpu):
    """What an out= rounds to once, integers that do not fit one, and 64-bit integers among floats."""
    x = gpu.there(np.array([1, 2.0**-24, 2.0**-60]))
    for call in (lambda out: tally.sum(x, out=out), lambda out: tally.reduce("sum", x, out=out),
                 lambda out: tally.dot(x, gpu.there(np.ones(3)), out=out)):
        assert gpu.back(call(gpu.there(np.empty((), "f4")))) == np.float32(1 + 2.0**-23)
    large = gpu.there(np.full(2, 2**31))
    for call in (lambda out: tally.sum(large, out=out), lambda out: tally.max(large, out=out), lambda out: tally.reduce("sum", large, out=out)):
        assert gpu.back(call(gpu.there(np.ones((), "i4")))) == 0
        with pytest.raises(OverflowError, match="int32"), tally.checked():
            call(gpu.there(np.ones((), "i4")))
    odd = gpu.there(np.array([2**53 + 1, -2**53]))
    for call in (lambda: tally.dot(odd, gpu.there(np.ones(2))), lambda: tally.State("sum").update(odd)):
        with pytest.raises(TypeError, match="exactly"):
            call()
    with pytest.raises(OverflowError, match="initial"):
        tally.max(gpu.there(np.ones(2, "i1")), initial=1000)
    for bad in (lambda: tally.describe(odd[:0]), lambda: tally.reduce("min", odd[:0])):
        with pytest.raises(ValueError, match="no"):
            bad()


def test_operators(gpu, rng):
    x = rng.integers(1, 1000003, (3, 1400))  # (more than a leaf of the tree as a whole)
    there = gpu.there(x)
    op = tally.Operator("a * b % 1000003", identity=1, commutative=True)
    try:
        first = tally.reduce(op, there)
    except NotImplementedError as error:
        pytest.skip(str(error))
    same(gpu, first, tally.reduce(op, x))
    same(gpu, tally.reduce(op, there, axis=1), tally.reduce(op, x, axis=1))
    same(gpu, tally.reduce(op, there, axis=0), tally.reduce(op, x, axis=0))
    same(gpu, tally.segment(op, there, 10), tally.segment(op, x, 10))
    with pytest.raises(ValueError):
        tally.reduce(tally.Operator("a +* b", identity=0), there)


def test_what_only_the_elements_say(gpu):
    large = gpu.there(np.full((2, 4), 2**62))
    assert gpu.back(tally.sum(large)) == 0 and gpu.back(tally.sum(large, axis=0)).tolist() == [0] * 4
    for call in (lambda: tally.sum(large), lambda: tally.sum(large, axis=0), lambda: tally.sumsq(large, axis=1)):
        with pytest.raises(OverflowError, match="does not fit i64"), tally.checked():
            call()
    x = gpu.there(np.arange(6.0))
    for offsets in ([0, 4, 2, 6], [0, 7]):
        with pytest.raises(ValueError, match="offset"), tally.checked():
            tally.segment("sum", x, gpu.there(np.array(offsets)))
    with pytest.raises(ValueError, match="id"), tally.checked():
        tally.group("sum", x, gpu.there(np.array([0, 1, 2, 0, 1, 2])), 2)
    with pytest.raises(ValueError, match="no elements"), tally.checked():
        tally.segment("argmin", x, gpu.there(np.array([0, 0, 6])))
    with tally.checked():
        right = tally.sum(x)
    assert gpu.back(right) == 15


def test_memory_that_is_no_memory_of_the_device(gpu):
    x, host = _gpu.as_gpu_array(gpu.there(np.ones(16))), np.ones(16)
    p, results, work = (_gpu.problem(("sum",), "f64"), *(_gpu.as_gpu_array(gpu.there(np.zeros(n))) for n in (2, 1 << 16)))

    def enqueue(address, n):
        prepared, size, *_ = p.prepare(n, None, None, 0, None, x.spec, 16)
        assert size <= 8 << 16
        _gpu._core.launch(prepared, address, 0, 0, work.address, x.backend.stream(0), (results.address,), 0)

    enqueue(x.address + 8, 15)
    with pytest.raises(NotImplementedError, match="not this device"):
        enqueue(host.ctypes.data, 16)
    if not gpu.is_real:  # (a real one's other memory may lie right behind)
        with pytest.raises(NotImplementedError, match="not this device"):
            enqueue(x.address + 8, 1 << 30)


def test_arguments(gpu, rng):
    x = rng.standard_normal((10, 10)).astype("f4")
    there = gpu.there(x)
    same(gpu, tally.sum(there, dtype=np.float64), tally.sum(x, dtype="f8"))
    same(gpu, tally.sum(there, axis=0, dtype=there.dtype), tally.sum(x, axis=0))
    same(gpu, tally.sum(there, axis=0, dtype="c16"), tally.sum(x, axis=0, dtype="c16"))
    same(gpu, tally.var(there, ddof=1, axis=1), tally.var(x, ddof=1, axis=1))
    same(gpu, tally.sum(gpu.there(np.arange(5)), dtype="i8"), tally.sum(np.arange(5)))
    with pytest.warns(RuntimeWarning, match="freedom"):
        same(gpu, tally.std(there, ddof=10, axis=0), np.full(10, np.nan, "f4"))
    for bad, error in ((lambda: tally.sum(there, axis=2), np.exceptions.AxisError),
                       (lambda: tally.sum(there, initial=[1.0]), ValueError),
                       (lambda: tally.sum(gpu.there(np.arange(5)), initial=0.5), TypeError),
                       (lambda: tally.sum(there, device="cpu"), ValueError),
                       (lambda: tally.sum(there, dtype=int), TypeError),
                       (lambda: tally.sum(there, where=np.ones((10, 10), bool)), TypeError),
                       (lambda: tally.sum(there, where=there), TypeError),
                       (lambda: tally.sum(there, where=gpu.there(np.ones(3, bool))), ValueError),
                       (lambda: tally.min(there, where=gpu.there(np.ones(10, bool))), ValueError),
                       (lambda: tally.bitwise_or(there), TypeError),
                       (lambda: tally.reduce("argmin", there, where=gpu.there(np.ones(10, bool))), TypeError),
                       (lambda: tally.argmin(there, where=None), TypeError)):
        with pytest.raises(error):
            bad()


@pytest.mark.parametrize("op", ["sum", "var", "count,mean,std", "any", "argmax", "prod", "xor"])
def test_states(gpu, rng, op):
    """Parts from the host and from the GPU are one array."""
    x = rng.integers(1, 100, (3, 50)).astype("i4" if op == "xor" else "f4")
    state = tally.State(op, x.dtype)
    state.update(x[0]).update(gpu.there(x)[1]).update(gpu.transpose(gpu.there(x), (1, 0))[:, 2])
    assert repr(state.value()) == repr(tally.State(op, x.dtype).update(x).value())
    if op == "sum":
        with pytest.raises(TypeError, match="exactly"):
            state.update(gpu.there(np.ones(3)))
        wide = tally.State("dot", "f8").update(gpu.there(x[0]), gpu.there(x[1]))
        assert wide.value() == tally.dot(x[0], x[1], dtype="f8")


def test_arrays_of_jax_go_by_dlpack(gpu, rng, monkeypatch):
    """By a double of JAX, whose arrays hold the library's: results are JAX's, and a call waits and raises its errors."""
    if gpu.is_real:
        pytest.skip("test_jax is for a device")

    class Held:
        def __init__(self, array):
            self.array = array

        shape, __dlpack_device__ = property(lambda self: self.array.shape), lambda self: (2, 0)

    Held.__module__ = "jaxlib._jax"
    monkeypatch.setitem(sys.modules, "jax", types.SimpleNamespace(dlpack=types.SimpleNamespace(from_dlpack=Held)))
    gpu.module.from_dlpack = lambda a: a.array
    if gpu.name == "cupy":
        monkeypatch.setattr(_gpu, "_is_here", lambda name: name == "cupy")
    x, ids = numbers(rng, (6, 8), "f4"), rng.integers(0, 3, 8)
    there, there_ids = Held(gpu.there(x)), Held(gpu.there(ids))

    def compare(got, want):
        for a, b in zip(got, want) if isinstance(want, tuple) else ((got, want),):
            assert type(a) is Held and type(got) is (type(want) if isinstance(want, tuple) else Held)
            same(gpu, a.array, b)

    for _ in range(2):
        compare(tally.sum(there, axis=0), tally.sum(x, axis=0))
        compare(tally.var(x=there, ddof=1), tally.var(x, ddof=1))
        compare(tally.vecdot(there, there), tally.vecdot(x, x))
        compare(tally.minmax(there, axis=1), tally.minmax(x, axis=1))
        compare(tally.reduce("count,mean", there), tally.reduce("count,mean", x))
        compare(tally.segment("sum", there, 2), tally.segment("sum", x, 2))
        compare(tally.group("max", there, there_ids, 4, fill_value=0), tally.group("max", x, ids, 4, fill_value=0))
    with pytest.raises(TypeError, match="never written"):
        tally.sum(there, out=there)
    with pytest.raises(OverflowError, match="does not fit i64"):
        tally.sum(Held(gpu.there(np.full(4, 2**62))))
    Held.dtype, Held.__array__ = "int32", lambda self, *_, **__: self.array.host().astype("i4")  # JAX without 64 bits
    assert tally.sum(there_ids).array.host() == ids.sum()
    with pytest.raises(OverflowError, match="int32, which jax makes"):
        tally.sum(Held(gpu.there(np.full(4, 2**40))))


# ---- What only a device can show -------------------------------------------------------------------------------------


@pytest.fixture
def torch(gpu):
    if gpu.name != "torch" or not gpu.is_real:
        pytest.skip("needs PyTorch and a device")
    return gpu.module


def test_nothing_waits(torch):
    x = torch.randn(1000, 300, device="cuda")
    c, number = torch.complex(x, x)[:3], torch.ones(300, dtype=torch.int64, device="cuda")
    mask, ids, offsets = x > 0, torch.zeros(300, dtype=torch.int64, device="cuda"), torch.tensor([0, 5, 300], device="cuda")

    def calls():
        return [tally.sum(x), tally.var(x, axis=0), tally.argmax(x, axis=1), tally.mean(x, axis=0, where=mask),
                tally.minmax(x.T, axis=0), tally.min(x, axis=1, initial=0.0), tally.segment("sum", x[0], offsets),
                tally.group("mean", x[:3], ids, 1), tally.dot(x, x[0]), tally.sum(x, out=torch.empty((), device="cuda")),
                tally.var(c, axis=1), tally.std(x, mean=torch.zeros(1, 1, device="cuda")), tally.dot(c[0], c[1]),
                tally.prod(c, axis=1), tally.prod(c, axis=1, where=mask[:3]), tally.sum(c, initial=1j), tally.all(c),
                tally.sum(number, dtype=torch.int32), tally.dot(number, number)]

    calls()  # compiles
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.cuda._sleep(200_000_000)
        calls()
        assert not torch.cuda.current_stream().query()  # all of it still waits for the sleep
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_graphs(torch, gpu):
    x = torch.randn(500, 400, device="cuda")
    zero = torch.zeros(1, 1, device="cuda")
    calls = (lambda: tally.sum(x), lambda: tally.var(x, axis=0), lambda: tally.argmax(x, axis=1), lambda: tally.minmax(x),
             lambda: tally.var(x, mean=zero))
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = [call() for call in calls]
    for _ in range(3):
        x.copy_(torch.randn(500, 400))
        graph.replay()
        for got, call in zip(results, calls):
            host = x.cpu().numpy()
            want = {0: lambda: tally.sum(host), 1: lambda: tally.var(host, axis=0), 2: lambda: tally.argmax(host, axis=1),
                    3: lambda: tally.minmax(host), 4: lambda: tally.var(host, mean=np.zeros((1, 1)))}[calls.index(call)]()
            same(gpu, got, want)


def test_streams(torch, gpu):
    side = torch.cuda.Stream()
    x = torch.ones(1000, 1000, device="cuda")
    for _ in range(2):
        tally.sum(x), tally.sum(x, axis=1)  # compiles, and is remembered
    with torch.cuda.stream(side):
        tally.sum(x), tally.sum(x, axis=1)
        torch.cuda._sleep(200_000_000)
        x = torch.full((1000, 1000), 3.0, device="cuda")
        whole, rows = tally.sum(x), tally.sum(x, axis=1)
        assert not side.query()
    side.synchronize()
    assert whole.item() == 3e6 and rows.tolist() == [3000.0] * 1000


def test_devices(torch):
    x = torch.ones(5, device="cuda")
    with pytest.raises(TypeError, match="elsewhere"):
        tally.dot(x, torch.ones(5))
    with pytest.raises(TypeError, match="elsewhere"):
        tally.sum(x, where=torch.ones(5, dtype=torch.bool))
    if torch.cuda.device_count() > 1:
        other = torch.ones(5, device="cuda:1")
        assert tally.sum(other).device == other.device and tally.sum(other).item() == 5
        with pytest.raises(TypeError, match="elsewhere"):
            tally.dot(x, other)


def test_results_are_tensors_of_their_own(torch):
    """What was made together is written apart: autograd sees no change of one in another; nor are they of inference."""
    x, w = torch.ones(5, device="cuda"), torch.ones((), device="cuda", requires_grad=True)
    tally.sum(x)
    with torch.inference_mode():
        tally.sum(x)
    a, b = tally.sum(x), tally.sum(x)
    loss = w * a
    b += 1
    loss.backward()
    assert w.grad.item() == 5 and b.item() == 6 and a.item() == 5


def test_jax(rng):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    host = rng.standard_normal((50, 60)).astype("f4")
    x = jax.numpy.asarray(host)
    for op in ("sum", "var", "max"):
        for axis in (None, 0, 1):
            got = getattr(tally, op)(x, axis=axis)
            assert isinstance(got, jax.Array) and got.devices() == x.devices()
            assert np.asarray(got).tobytes() == np.asarray(getattr(tally, op)(host, axis=axis)).tobytes()
    assert [int(i) for i in tally.argmax(x, axis=1)] == tally.argmax(host, axis=1).tolist()
    assert isinstance(tally.minmax(x), tuple) and isinstance(tally.minmax(x).max, jax.Array)
