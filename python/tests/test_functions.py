"""Every function over shapes, strides, types and axes: exact ones against fractions, the rest against NumPy."""

import itertools
import math

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import tally
from exact import answer, deviation

INTS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]


@st.composite
def arrays(draw, dtypes, least=0, finite=True):
    """Arrays of up to four dimensions, as views with steps, turned, transposed, byte-swapped, unaligned, broadcast."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=least, max_side=6))
    if dtype.kind == "f":
        width = 8 * dtype.itemsize
        elements = st.floats(width=width, allow_nan=not finite, allow_infinity=not finite)
    elif dtype.kind == "c":
        elements = st.complex_numbers(allow_nan=False, allow_infinity=False, width=8 * dtype.itemsize)
    else:
        elements = None
    x = draw(hnp.arrays(dtype, shape, elements=elements))
    way = draw(st.sampled_from("plain steps turned swapped unaligned fortran wide record readonly".split()))
    if way == "steps":
        big = np.empty([2 * n for n in x.shape], dtype)
        big[tuple(slice(None, None, 2) for _ in x.shape)] = x
        x = big[tuple(slice(None, None, 2) for _ in x.shape)]
    elif way == "turned":
        x = x[tuple(slice(None, None, -1) for _ in x.shape)]
    elif way == "swapped":
        x = x.astype(dtype.newbyteorder())
    elif way == "unaligned":
        raw = np.empty(x.nbytes + 1, np.uint8)
        copy = raw[1:].view(dtype).reshape(x.shape)
        copy[...] = x
        x = copy
    elif way == "fortran":
        x = np.asfortranarray(x)
    elif way == "wide" and x.ndim:
        x = np.broadcast_to(x[:1], (3, *x.shape[1:])) if x.shape[0] else x
    elif way == "record":
        records = np.zeros(x.shape, [("pad", "u1"), ("v", dtype)])
        records["v"] = x
        x = records["v"]
    elif way == "readonly":
        x.setflags(write=False)
    return x


@st.composite
def axes(draw, ndim):
    if ndim == 0:
        return None
    kind = draw(st.sampled_from(["none", "one", "many"]))
    if kind == "none":
        return None
    chosen = draw(st.lists(st.integers(0, ndim - 1), unique=True, max_size=ndim))
    chosen = [a - ndim if draw(st.booleans()) else a for a in chosen]
    return tuple(chosen) if kind == "many" or not chosen else chosen[0]


def split(x, axis):
    """The elements of each result, and the shape of results."""
    if axis is None:
        axis = tuple(range(x.ndim))
    axis = tuple(a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,)))
    kept = [d for d in range(x.ndim) if d not in axis]
    moved = x.transpose([*kept, *sorted(axis)])
    shape = tuple(x.shape[d] for d in kept)
    return shape, [moved[at].reshape(-1) for at in np.ndindex(shape)]


def same(a, b):
    """The same bits, NaNs alike."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
    if a.dtype.kind in "fc":
        nan = np.isnan(a)
        assert (nan == np.isnan(b)).all()
        a, b = np.where(nan, 0, a), np.where(nan, 0, b)
    assert a.tobytes() == b.tobytes(), (a, b)


@pytest.mark.filterwarnings("ignore:Mean of empty:RuntimeWarning", "ignore:Degrees of freedom:RuntimeWarning")
@given(st.data(), st.sampled_from(["sum", "mean", "var", "std", "norm", "sumsq"]))
def test_exact(data, op):
    x = data.draw(arrays(FLOATS))
    axis = data.draw(axes(x.ndim))
    shape, parts = split(x, axis)
    more = {}
    if op in ("var", "std"):
        ddof = data.draw(st.sampled_from([0, 1, 0.5, 3]))
        more = {data.draw(st.sampled_from(["ddof", "correction"])): ddof}
    dtype = np.dtype(data.draw(st.sampled_from([None, "f2", "f4", "f8"])) or x.dtype.newbyteorder("="))
    got = getattr(tally, op)(x, axis=axis, dtype=None if dtype == x.dtype else dtype, **more)
    want = np.array([np.nan if (v := answer(op, p, dtype, ddof=sum(more.values()))) is None else v for p in parts],
                    dtype).reshape(shape)
    got = np.asarray(got)
    zero = (want == 0) & (got == 0)  # the sign of a zero is tested below
    same(np.where(zero, dtype.type(0), got), np.where(zero, dtype.type(0), want))


@given(st.data(), st.sampled_from(["sum", "prod", "sumsq"]))
def test_integers(data, op):
    x = data.draw(arrays([*INTS, "?"]))
    axis = data.draw(axes(x.ndim))
    shape, parts = split(x, axis)
    wide = np.dtype("u8" if x.dtype.kind == "u" else "i8")
    values = [{"sum": sum, "prod": math.prod, "sumsq": lambda p: sum(v * v for v in p)}[op]([int(v) for v in p]) for p in parts]
    limits = np.iinfo(wide)
    if any(not limits.min <= v <= limits.max for v in values):
        with pytest.raises(OverflowError):
            getattr(tally, op)(x, axis=axis)
    else:
        same(getattr(tally, op)(x, axis=axis), np.array(values, wide).reshape(shape))


@given(st.data(), st.sampled_from(["mean", "var", "std", "norm"]))
def test_statistics_of_integers(data, op):
    x = data.draw(arrays([*INTS, "?"], least=1))
    axis = data.draw(axes(x.ndim))
    shape, parts = split(x, axis)
    same(getattr(tally, op)(x, axis=axis), np.array([answer(op, p, "f8") for p in parts], "f8").reshape(shape))


LIKE_NUMPY = {"min": np.min, "max": np.max, "argmin": np.argmin, "argmax": np.argmax, "any": np.any, "all": np.all,
              "count_nonzero": np.count_nonzero, "bitwise_and": np.bitwise_and.reduce,
              "bitwise_or": np.bitwise_or.reduce, "bitwise_xor": np.bitwise_xor.reduce}


@given(st.data(), st.sampled_from(list(LIKE_NUMPY)), st.booleans())
def test_like_numpy(data, op, keepdims):
    bits = op.startswith("bitwise")
    x = data.draw(arrays([*INTS, "?"] if bits else [*INTS, *FLOATS, "?"], least=1, finite=False))
    axis = data.draw(axes(x.ndim))
    if op.startswith("arg") and isinstance(axis, tuple):
        axis = axis[0] if axis else None
    plain = np.array(x, x.dtype.newbyteorder("="))
    got, want = getattr(tally, op)(x, axis=axis, keepdims=keepdims), LIKE_NUMPY[op](plain, axis=axis, keepdims=keepdims)
    if op in ("min", "max"):  # NumPy's zeros have either sign
        got, want = np.asarray(got), np.asarray(want, x.dtype.newbyteorder("="))
        got, want = np.where(got == 0, got * 0, got), np.where(want == 0, want * 0, want)
        if got.dtype.kind == "f":
            got, want = np.abs(got) * np.where(np.isnan(got), 1, np.sign(got)), np.abs(want) * np.where(np.isnan(want), 1, np.sign(want))
            same(got.astype("f8"), want.astype("f8"))
            return
    if op.startswith("arg") and x.dtype.kind == "f" and not np.isnan(plain).any():
        got, want = np.take_along_axis(plain.reshape(-1) if axis is None else plain,
                                       np.asarray(got).reshape(-1) if axis is None else np.asarray(got) if keepdims else np.expand_dims(got, axis), axis or 0), \
            np.take_along_axis(plain.reshape(-1) if axis is None else plain,
                               np.asarray(want).reshape(-1) if axis is None else np.asarray(want) if keepdims else np.expand_dims(want, axis), axis or 0)
        assert (got == want).all()  # of equal zeros, -0.0 is less
        return
    assert np.array_equal(got, want) and np.shape(got) == np.shape(want), (got, want)


@given(st.data(), st.sampled_from(["sum", "min", "max", "bitwise_or", "prod"]))
def test_initial_and_where(data, op):
    x = data.draw(arrays(["i2", "i4", "u1"] if op in ("bitwise_or", "prod") else ["i4", "f4", "f8"]))
    axis = data.draw(axes(x.ndim))
    where = data.draw(hnp.arrays(bool, x.shape))
    initial = data.draw(st.integers(0, 100))
    shape, parts = split(x, axis)
    masks = split(where, axis)[1]
    chosen = [[*p[m].tolist(), initial] for p, m in zip(parts, masks)]
    if op == "sum" and x.dtype.kind == "f":
        want = [answer("sum", np.array(c, "f8"), x.dtype.newbyteorder("=")) for c in chosen]
    else:
        from functools import reduce
        want = [{"sum": sum, "min": min, "max": max, "prod": math.prod,
                 "bitwise_or": lambda c: reduce(int.__or__, map(int, c))}[op](c) for c in chosen]
    if op == "prod" and any(not -2**63 <= v < (2**64 if x.dtype.kind == "u" else 2**63) for v in want):
        return
    got = np.asarray(getattr(tally, op)(x, axis=axis, where=where, initial=initial))
    assert got.shape == shape and np.array_equal(got.reshape(-1).astype(object), np.array(want, object)), (got, want)


@given(st.data())
def test_complex(data):
    x = data.draw(arrays(["c8", "c16"], least=1))
    axis = data.draw(axes(x.ndim))
    for op in ("sum", "mean"):
        got = getattr(tally, op)(x, axis=axis)
        same(np.asarray(got).real, np.asarray(getattr(tally, op)(x.real.copy(), axis=axis)))
        same(np.asarray(got).imag, np.asarray(getattr(tally, op)(x.imag.copy(), axis=axis)))
    pair = np.stack([x.real, x.imag], -1)
    same(tally.norm(x), tally.norm(pair))
    assert np.array_equal(tally.count_nonzero(x, axis=axis), np.count_nonzero(x, axis=axis))


@pytest.mark.filterwarnings("ignore:Degrees of freedom:RuntimeWarning")
@given(st.data(), st.sampled_from(["var", "std"]))
def test_variance_of_complex_numbers_and_about_a_mean(data, op):
    x = data.draw(arrays(["c8", "c16", "f4", "f8", "f2", "i2", "u8"]))
    axis = data.draw(axes(x.ndim))
    ddof = data.draw(st.sampled_from([0, 1, 0.5, 3]))
    kind = x.dtype.char.lower() if x.dtype.kind in "fc" else "d"
    dtype = np.dtype(data.draw(st.sampled_from([None, "f2", "f4", "f8"])) or {"f": "f4", "d": "f8", "e": "f2"}[kind])
    shape, parts = split(x, axis)
    numbers = st.floats(-1e6, 1e6, width=32)
    mean, means = None, [None] * len(parts)
    if data.draw(st.booleans()) or x.dtype.kind != "c":
        mean = np.array([complex(data.draw(numbers), data.draw(numbers) if x.dtype.kind == "c" else 0) for _ in parts])
        means = list(mean)
        mean = (mean if x.dtype.kind == "c" else mean.real).reshape(np.any(x, axis=axis, keepdims=True).shape)
    got = np.asarray(getattr(tally, op)(x, axis=axis, ddof=ddof, mean=mean, dtype=dtype))
    want = np.array([np.nan if (v := deviation(op, p, dtype, ddof, m)) is None else v for p, m in zip(parts, means)], dtype)
    same(got, want.reshape(shape))


def test_variance_of_large_and_of_masked_complex_numbers(rng):
    z = (rng.standard_normal((3, 300_000)) + 1j * rng.standard_normal((3, 300_000))) * 10.0 ** rng.integers(-9, 9, (3, 1))
    for axis in (None, 1):
        assert np.allclose(tally.var(z, axis=axis), np.var(z, axis=axis), rtol=1e-12)
    keep = rng.random(z.shape) < 0.01
    same(tally.std(z, axis=1, where=keep, ddof=1), np.array([deviation("std", r[k], "f8", 1) for r, k in zip(z, keep)]))
    for bad in (np.nan, np.inf, complex(0, -np.inf)):
        z[1, 5] = bad
        assert np.isnan(tally.var(z, axis=1)).tolist() == [False, True, False]
    # Next to a tie of f32 by less than any float shows: rounded up, and to even without.
    zero = np.zeros(1)
    for op, a, even in (("var", 1 + 2.0**-12, 1 + 2.0**-11), ("std", 1 + 2.0**-24, 1.0)):
        assert getattr(tally, op)(np.array([complex(a, 2.0**-400)]), mean=zero, dtype="f4") == even + 2.0**-23
        assert getattr(tally, op)(np.array([a + 0j]), mean=zero, dtype="f4") == even
    assert tally.var(np.array([1e308, -1e308]), mean=0.0 * np.ones(1)) == np.inf
    assert tally.std(np.array([1e308, -1e308]), mean=np.zeros(1)) == 1e308
    assert tally.var(np.array([3.0]), mean=np.array([np.nan])).tobytes() == np.float64(np.nan).tobytes()


@pytest.mark.parametrize("dtype", ["f4", "i2", "c8"])
def test_a_mean_by_blocks(rng, monkeypatch, dtype):
    """Elements in another byte order, far apart, in many dimensions, and more than a block of them: as those of a copy."""
    x = (rng.standard_normal((6, 50, 4)) * 9 + (1j * rng.standard_normal((6, 50, 4)) if dtype == "c8" else 0)).astype(dtype)
    mean, keep = tally.mean(x, axis=1, keepdims=True).astype("c16" if dtype == "c8" else "f8") + 0.1, rng.random(x.shape) < 0.7
    odd = np.zeros(x.nbytes + 1, np.uint8)[1:].view(dtype).reshape(x.shape)
    odd[...] = x
    many = x.reshape(6, *(1,) * 15, 50, 4)
    for block in (1 << 21, 1 << 8):
        monkeypatch.setattr(tally._host, "BLOCK", block)
        for other in (x.astype(x.dtype.newbyteorder()), odd, np.repeat(x, 2, axis=2)[..., ::2]):
            for axis in (1, (0, 1), None):
                about = mean if axis == 1 else mean[:1] if axis == (0, 1) else mean[:1, :, :1]
                for where in (None, keep):
                    same(tally.std(other, axis=axis, mean=about, where=where, ddof=1), tally.std(x, axis=axis, mean=about, where=where, ddof=1))
        same(tally.var(many, axis=16, mean=mean.reshape(6, *(1,) * 16, 4)), tally.var(x, axis=1, mean=mean).reshape(6, *(1,) * 15, 4))
    same(tally.var(x, axis=1, mean=mean), np.array([[deviation("var", r, "f4" if dtype != "i2" else "f8", 0, m) for r, m in zip(a.T, b)]
                                                    for a, b in zip(x, mean[:, 0])], "f4" if dtype != "i2" else "f8"))


def test_complex_product(rng):
    x = (rng.integers(-1, 2, (3, 40)) + 1j * rng.integers(-1, 2, (3, 40))) * np.exp2(rng.integers(-2, 2, (3, 40)))
    exact = x[:, :20]  # small enough that nothing is rounded
    assert np.array_equal(tally.prod(exact, axis=1), np.prod(exact, axis=1)) and tally.prod(x[0, :0]) == 1
    assert tally.prod(exact[0], initial=2j) == 2j * np.prod(exact[0])
    y = np.exp(1j * rng.standard_normal(200_000))
    assert np.allclose(tally.prod(y), np.prod(y), rtol=1e-9)
    assert tally.prod(y[:131072]) == tally.prod([tally.prod(y[:65536]), tally.prod(y[65536:131072])])
    keep = rng.random(1000) < 0.5
    assert tally.prod(y[:1000], where=keep) == tally.prod(y[:1000][keep])


def test_complex_products(rng):
    x, y = (rng.standard_normal(50) + 1j * rng.standard_normal(50) for _ in "xy")
    for conjugate in (False, True):
        a = x.conj() if conjugate else x
        real = answer_dot([a.real, -a.imag], [y.real, y.imag])
        imaginary = answer_dot([a.real, a.imag], [y.imag, y.real])
        got = tally.vecdot(x, y) if conjugate else tally.dot(x, y)
        assert (got.real, got.imag) == (real, imaginary)


def answer_dot(x, y):
    from fractions import Fraction
    return float(sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(np.ravel(x), np.ravel(y))))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", ">f8"])
def test_dot(rng, dtype):
    for sx, sy in [((5,), (5,)), ((3, 5), (5,)), ((5,), (5, 2)), ((3, 5), (5, 2)), ((2, 3, 5), (4, 5, 2))]:
        x, y = ((rng.standard_normal(s) * 100).astype(dtype) for s in (sx, sy))
        want = np.dot(x.astype("f8"), y.astype("f8"))
        assert np.allclose(tally.dot(x, y), want, rtol=1e-5) and tally.dot(x, y).shape == want.shape
    x, y = (rng.standard_normal((4, 7)) for _ in "xy")
    assert np.array_equal(tally.vecdot(x, y), [answer_dot(a, b) for a, b in zip(x, y)])
    assert np.array_equal(tally.vecdot(x, y, axis=0), [answer_dot(a, b) for a, b in zip(x.T, y.T)])
    assert np.array_equal(tally.vecdot(x, y[0]), [answer_dot(a, y[0]) for a in x])
    assert tally.dot(x[0].astype("f4"), y[0]) == answer_dot(x[0].astype("f4"), y[0])
    with pytest.raises(ValueError, match="not aligned"):
        tally.dot(x, y)
    assert np.array_equal(tally.dot(2.5, x), 2.5 * x) and np.array_equal(tally.dot(x, np.float64(3)), x * 3)
    assert tally.dot(3, 4) == 12 and tally.dot(2j, 3j) == -6
    z = x[:, :3].astype("c8")
    assert tally.dot(z[0], z[1], dtype="c16").dtype == np.complex128
    with pytest.raises(TypeError, match="complex"):
        tally.dot(z[0], z[1], dtype="f8")


@pytest.mark.filterwarnings("ignore:Mean of empty:RuntimeWarning")
@pytest.mark.parametrize("way", ["swapped", "unaligned", "wide", "progress"])
def test_complex_numbers_by_blocks(rng, monkeypatch, way):
    """Of elements that the engine cannot read where they lie: the bits of a copy that it can. Blocks hold 64 elements."""
    x, y = ((rng.standard_normal((5, 300)) + 1j * rng.standard_normal((5, 300))) * np.exp2(rng.integers(-90, 90, (5, 300))) for _ in "xy")
    x[rng.random(x.shape) < 0.3] = 0
    mask, more = rng.random(x.shape) < 0.4, {"progress": True} if way == "progress" else {}

    def other(a):
        if way == "unaligned":
            raw = np.empty(a.nbytes + 1, np.uint8)
            raw[1:].view(a.dtype).reshape(a.shape)[...] = a
            return raw[1:].view(a.dtype).reshape(a.shape)
        return {"swapped": lambda: a.astype(">c16"), "wide": lambda: a.reshape(*a.shape[:1], *(1,) * 15, *a.shape[1:]), "progress": lambda: a}[way]()

    calls = [lambda x, y, m, axis, op=op: getattr(tally, op)(x, axis=axis, **more) for op in ("sum", "mean", "norm", "sumsq")]
    calls += [lambda x, y, m, axis, op=op: getattr(tally, op)(x, axis=axis, where=m) for op in ("sum", "mean", "sumsq", "any", "all", "prod")]
    calls += [lambda x, y, m, axis: tally.count_nonzero(x, axis=axis), lambda x, y, m, axis: tally.prod(x, axis=axis, initial=1j),
              lambda x, y, m, axis: tally.sum(x, axis=axis, initial=3 - 0.1j, where=m), lambda x, y, m, axis: tally.sum(x, axis=axis, dtype="c8"),
              lambda x, y, m, axis: tally.vecdot(x, y, axis=-1 if axis is None else axis), lambda x, y, m, axis: tally.dot(x.reshape(5, 300)[0], y.reshape(5, 300).T),
              lambda x, y, m, axis: tally.sum(x, axis=axis, keepdims=True, out=np.empty(np.any(x, axis, keepdims=True).shape, "c8"))]
    for axis in (None, 0, -1):
        want = [call(x, y, mask, axis) for call in calls]
        with monkeypatch.context() as patch:
            patch.setattr(tally._host, "BLOCK", 1 << 10)
            patch.setattr(tally._host, "_BETWEEN_REPORTS", 64)
            got = [call(other(x), other(y), mask.reshape(other(x).shape), axis) for call in calls]
        for i, (a, b) in enumerate(zip(got, want)):
            assert np.asarray(a).dtype == np.asarray(b).dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes(), (i, axis, a, b)


def test_an_initial_value_of_complex_sums_is_exact():
    x, half = np.ones(1, "c8"), 2.0**-24  # of the last place of 1
    assert tally.sum(x, initial=half) == 1 and tally.sum(x, initial=half + 2.0**-60) == np.float32(1) + np.float32(2.0**-23)
    assert tally.sum(x * 1j, initial=1j * (half + 2.0**-60)).imag == 1 + 2.0**-23


def test_offsets_near_the_end_of_their_type():
    x, n = np.broadcast_to(np.uint8(1), 2**31 - 1), 2**31 - 1
    offsets = np.array([0, n - 1000, n - 500, n], "i4")
    with np.errstate(all="raise"):
        assert list(tally.segment("sum", x, offsets)) == [n - 1000, 500, 500]


def test_segments_and_groups_in_another_type():
    x = np.array([100, 27, 1])
    for got in (tally.segment("sum", x, [0, 2, 3], dtype="i1"), tally.group("sum", x, [0, 0, 1], dtype="i1")):
        assert got.dtype == np.int8 and got.tolist() == [127, 1]
    with pytest.raises(OverflowError, match="does not fit int8"):
        tally.segment("sum", x, 1, dtype="i1")


@given(arrays(INTS + FLOATS + ["?"], least=1), st.data())
def test_segments_and_groups_along_an_axis(x, data):
    """Each result is that of its elements alone, by NumPy's indexing."""
    x = x[None] if x.ndim == 0 else x
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    n = x.shape[axis]
    ids = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    shown = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    cuts = np.sort(np.array(data.draw(st.lists(st.integers(0, n), min_size=2, max_size=4))))
    segments = [np.arange(a, b) for a, b in zip(cuts, cuts[1:])]
    for op, fill in (("mean", {}), ("max", {"fill_value": 1}), ("argmin", {"fill_value": 5}), ("count,any", {})):
        for got, places, begin in (
                (tally.group(op, x, ids, 3, axis=axis, **fill), [np.flatnonzero(ids == g) for g in range(3)], [0] * 3),
                (tally.group(op, x, ids, 3, axis=axis, where=shown, **fill), [np.flatnonzero((ids == g) & shown) for g in range(3)],
                 [0] * 3),
                (tally.segment(op, x, cuts, axis=axis, **fill), segments, cuts)):
            got = np.moveaxis(np.stack(got) if isinstance(got, tuple) else got[None], axis % x.ndim + 1, -1)
            for part, place in enumerate(places):
                if fill and not place.size:
                    want = np.full((1,) + got.shape[1:-1], fill["fill_value"])
                else:
                    want = tally.reduce(op, np.take(x, place, axis), axis)
                    want = np.stack(want) if isinstance(want, tuple) else np.asarray(want)[None]
                    want = place[want] - begin[part] if op == "argmin" else want
                np.testing.assert_array_equal(got[..., part], want)


def test_signs_of_zeros():
    for x, want in (([-0.0], -0.0), ([-0.0, 0.0], 0.0), ([1.0, -1.0], 0.0), ([-0.0] * 40, -0.0)):
        assert str(tally.sum(np.array(x))) == str(want)
        assert str(tally.sum(np.array([x] * 3), axis=1)[1]) == str(want)
    assert str(tally.min(np.array([0.0, -0.0]))) == "-0.0" and str(tally.max(np.array([-0.0, 0.0]))) == "0.0"


def test_not_finite():
    for x, want in (([1, np.inf], np.inf), ([np.inf, -np.inf], np.nan), ([np.nan, 1], np.nan), ([-np.inf], -np.inf)):
        same(tally.sum(np.array(x, "f8")), np.float64(want))
    assert tally.argmax(np.array([1, np.nan, 3])) == 1 and np.isnan(tally.min([1, np.nan]))
    with pytest.warns(RuntimeWarning):
        assert np.isnan(tally.mean(np.array([]))) and np.isnan(tally.var(np.array([1.0]), ddof=1))


def test_nothing():
    for op, want in (("sum", 0.0), ("prod", 1.0), ("sumsq", 0.0), ("norm", 0.0), ("any", False), ("all", True),
                     ("count_nonzero", 0)):
        assert getattr(tally, op)(np.empty(0)) == want
        assert np.array_equal(getattr(tally, op)(np.empty((0, 3)), axis=0), [want] * 3)
        assert getattr(tally, op)(np.empty((0, 3)), axis=1).shape == (0,)


def test_keepdims_out_and_dtype(rng):
    x = rng.standard_normal((3, 4, 5)).astype("f4")
    for axis in (None, 0, (0, 2), ()):
        assert tally.sum(x, axis=axis, keepdims=True).shape == np.sum(x, axis=axis, keepdims=True).shape
    out = np.empty((3, 5))
    assert tally.sum(x, 1, out=out) is out and np.array_equal(out, tally.sum(x, 1))
    out = np.empty((3, 10))[:, ::2]
    assert tally.mean(x, 1, out=out) is out
    assert tally.var([1.0, 3.0], mean=0) == 5 and tally.var(np.eye(2), axis=0, mean=1).tolist() == [0.5, 0.5]
    assert tally.sum(x, dtype="f8") == tally.sum(x.astype("f8")) and tally.sum(x, dtype=complex).dtype == complex
    assert tally.sum(np.array([100, 27], "i1"), dtype="i1").dtype == np.int8
    assert tally.prod(np.array([3e38, 10], "f4"), dtype="f8") == float(np.float32(3e38)) * 10
    assert tally.sum(np.array([1.0]), 0).dtype == np.float64


def test_several_values(rng):
    x = rng.standard_normal((4, 50)).astype("f4")
    low, high = tally.minmax(x, axis=1)
    assert np.array_equal(low, x.min(1)) and np.array_equal(high, x.max(1))
    d = tally.describe(x, axis=1)
    assert np.array_equal(d.argmax, x.argmax(1)) and np.array_equal(d.mean, tally.mean(x, axis=1)) and (d.count == 50).all()
    assert tally.describe(x).std == tally.std(x) and tally.describe(x[:1, :1]).argmin == 0
    count, var = tally.reduce("count,var", x, axis=0, ddof=1)
    assert (count == 4).all() and np.array_equal(var, tally.var(x, axis=0, ddof=1))


def test_every_operator_by_name(rng):
    x = rng.integers(1, 3, (6, 7)).astype("i4")
    for name in "sum prod min max and or xor mean var std norm1 norm2 norminf sumsq argmin argmax count nans nonzero any all".split():
        whole, rows = tally.reduce(name, x), tally.reduce(name, x, axis=1)
        assert rows.shape == (6,) and rows.dtype == whole.dtype, name
        assert np.array_equal(rows, [tally.reduce(name, r) for r in x]), name
    assert tally.norm(x.ravel(), 1) == x.sum() and tally.norm(x.ravel(), np.inf) == x.max()


def test_an_operator_of_ones_own(rng):
    x = rng.integers(1, 1000003, (5, 9000))
    op = tally.Operator("a * b % 1000003", identity=1)
    want = [math.prod(map(int, r)) % 1000003 for r in x]
    assert np.array_equal(tally.reduce(op, x, axis=1), want) and tally.reduce(op, x) == math.prod(want) % 1000003
    assert tally.reduce(op, np.empty(0, int)) == 1
    assert tally.reduce(tally.Operator("fmax(a, b)", identity=-math.inf), [1.0, 5.0, 2.0]) == 5
    saturated = tally.Operator("(a + b < a) != (b < 0) ? (a < 0 ? -2147483647 - 1 : 2147483647) : a + b", identity=0)
    for x, end in ([2**31 - 10, 7, 7, 7], 2**31 - 1), ([-2**31 + 5, -3, -3, -3], -2**31), ([3, -4], -1):
        assert tally.reduce(saturated, np.array(x, "i4")) == end
    with pytest.raises(ValueError, match="does not compile"):
        tally.reduce(tally.Operator("a +* b", identity=0), [1])
    with pytest.raises(TypeError):
        tally.reduce(op, np.ones(3, "f2"))
    with pytest.raises(ValueError, match="one expression"):
        tally.Operator("a; b", identity=0)


def test_large_blocks(rng):
    """What is copied in blocks, with results that have more elements than a block, or many of them."""
    x = (rng.standard_normal((3, 700_001)) * 10.0 ** rng.integers(-20, 20, (3, 1))).astype(">f8")
    plain = x.astype("f8")
    for axis in (None, 0, 1):
        for op in ("sum", "var", "min", "prod", "argmax"):
            same(getattr(tally, op)(x, axis=axis), getattr(tally, op)(plain, axis=axis))
    same(tally.sum(x.T, axis=0), tally.sum(plain, axis=1))
    mask = rng.random(x.shape) < 0.5
    same(tally.sum(x, axis=1, where=mask), tally.sum(plain, axis=1, where=mask))
    same(tally.sum(x, where=mask), tally.sum(plain, where=mask))
    same(tally.sum(plain, initial=0.25), tally.sum(np.append(plain, 0.25)))


def test_many_dimensions():
    x = np.arange(2.0**18).reshape((2,) * 18)
    assert tally.sum(x) == x.sum() and np.array_equal(tally.sum(x, axis=(0, 17)), x.sum(axis=(0, 17)))


@pytest.mark.parametrize("op", ["sum", "mean", "var", "min", "argmax", "prod"])
def test_parts_are_reduced_as_the_whole_is(rng, op):
    """Promise 6: a row has the bits of its copy."""
    x = (rng.standard_normal((20, 333)) * 10.0 ** rng.integers(-5, 5, (20, 333))).astype("f4")
    for a, axis in ((x, 1), (x.T, 0), (x[:, ::-1][:, ::-1], 1), (np.asfortranarray(x), -1)):
        same(getattr(tally, op)(a, axis=axis), np.array([getattr(tally, op)(r.copy()) for r in x]))


def test_initial_of_small_integers():
    """It is of the result's type, as NumPy's."""
    for x in (np.array([True, True]), np.array([100, 27], "i1"), np.array([200, 27], "u1"), np.array([3, 4], ">i2")):
        for op, initial in (("sum", 1000), ("prod", 2**20)):
            got, want = getattr(tally, op)(x, initial=initial), getattr(np, op)(x, initial=initial)
            assert got == want and got.dtype == want.dtype


def test_fast_and_devices(rng):
    x = rng.standard_normal(100_000)
    assert math.isclose(tally.sum(x, fast=True), tally.sum(x), rel_tol=1e-9)
    for device in ("cpu", "cpu:threads=1", "cpu:threads=2,isa=baseline"):
        assert tally.sum(x, device=device) == tally.sum(x)
    assert any(d["spec"] == "cpu" for d in tally.devices())
    assert all(itertools.starmap(lambda a, b: a == b, [(tally.sum(x, progress=True), tally.sum(x))]))


@pytest.mark.parametrize("op", ["sum", "mean", "var", "prod", "min", "argmax", "any"])
def test_out(rng, op):
    """Results are written where they belong, of any type and strides; but not over elements that are still to be read."""
    function = getattr(tally, op)
    for shape in ((5,), (3, 4), (2, 3, 70), (4, 300_000)):
        x = rng.standard_normal(shape)
        for axis in (None, 0, -1):
            for keepdims in (False, True):
                want = np.asarray(function(x, axis=axis, keepdims=keepdims))
                for kind in {"argmax": ("i8", "i4"), "any": ("?", "i4", "f8")}.get(op, ("f8", "f4", ">f8", "c16")):
                    out = np.zeros((*want.shape, 2), kind)[..., 0]
                    assert function(x, axis=axis, keepdims=keepdims, out=out) is out
                    assert np.array_equal(out, want.astype(kind))
    y = rng.standard_normal((3, 4))
    want = function(y, axis=0)
    over = y[0] if op not in ("argmax", "any") else y.view("i8")[0] if op == "argmax" else y.view("?")[0, :4]
    assert np.array_equal(function(y, axis=0, out=over), want)
