"""Variances about a mean that is given, and of complex numbers, by their definition in fractions: on the host and on all
devices, whole, in parts, with one mean or one for each result, and by states."""

import os
from fractions import Fraction

import numpy as np
import pytest

import conftest
import oracle
import shapes as t
import tally
from drawn import is_slow, types_on
from test_shapes import elements

SEED = int(os.environ.get("TALLY_SEED", "1"))
OPENED = {"host": None}


@pytest.fixture(params=["host", "cpu:threads=2", *conftest.SPECS])
def place(request):
    """The text of a device that is open."""
    if request.param not in OPENED:
        try:
            OPENED[request.param] = t.open_device(request.param)
        except t.Failed as failed:
            assert failed.status == "EDEVICE", failed
            pytest.skip(str(failed))
    return request.param


def exact(type, part):
    """Elements as integers and the exponent of 2 that they are times; None where one is not finite."""
    values = part.tolist() if type in t.INTS else oracle.to_f64(type, part.view(t.BITS[t.SIZE[type]])).tolist()
    return whole_numbers(values)


def whole_numbers(values):
    if not all(map(np.isfinite, values)):
        return None
    ratios = [v.as_integer_ratio() for v in values]
    down = max([d.bit_length() - 1 for _, d in ratios], default=0)
    return [v << down - d.bit_length() + 1 for v, d in ratios], -down


def distances(part, mean):
    """The sum of squared distances of elements from a mean, or, for None, from their own."""
    values, unit = part
    if mean is None:
        n, total = len(values), sum(values)
        return Fraction(sum((n * v - total) ** 2 for v in values), n * n << -2 * unit)
    (m,), other = whole_numbers([mean])
    low = min(unit, other)
    return Fraction(sum(((v << unit - low) - (m << other - low)) ** 2 for v in values), 1 << -2 * low)


def expected(problem, parts, mean):
    """The bits of each value of one result, of parts (real, imaginary) of its elements."""
    n, ddof, parts = len(parts[0]), Fraction(problem.c.ddof), [exact(problem.type, p) for p in parts]
    about = [None, None] if mean is None else [complex(mean).real, complex(mean).imag]
    ops = [problem.op] + [t.OPS[o - 1] for o in problem.c.also if o]
    if n == 0 or n <= ddof or None in parts or any(m is not None and not np.isfinite(m) for m in about[:len(parts)]):
        return [oracle.NAN[out] for out in problem.types]
    total = sum(map(distances, parts, about)) / (n - ddof)
    return [(oracle.round_root if op == "std" else oracle.round_ratio)(out, total.numerator, total.denominator)
            for op, out in zip(ops, problem.types)]


def drawn_means(rng, type, count, kind):
    """Means as doubles: near the elements, or anything that a double is."""
    means = rng.standard_normal(count) if kind != "huge" else np.ldexp(rng.standard_normal(count), rng.integers(-1074, 1023, count))
    means[rng.random(count) < 0.2] = 0.0
    if kind == "special":
        means[rng.random(count) < 0.3] = rng.choice([np.nan, np.inf, -np.inf])
    return means


def problems(rng, type, is_complex):
    """Problems without a mean: each is asked about one, and about many."""
    floats = [f for f in t.FLOATS if f != type]
    return [dict(op="var", type=type, is_complex=is_complex, ddof=float(rng.choice([0, 1, 0.5, 2.0]))),
            dict(op="std", type=type, is_complex=is_complex, out=str(rng.choice(floats))),
            dict(op="var", type=type, is_complex=is_complex, also=["std"], ddof=1)]


def complex_kinds(type):
    return [False, True] if type in t.FLOATS else [False]


@pytest.mark.parametrize("type", t.TYPES)
def test_parts(place, type):
    rng = np.random.default_rng([SEED, t.TYPES.index(type), 1])
    if type not in types_on(place):
        pytest.skip("another run has this type there")
    sizes = (3, 2, 4) if is_slow(place) else (4, 3, 5)
    for is_complex in complex_kinds(type):
        for kind in ["tame", "huge", "special"][:2 if is_slow(place) else 3]:
            x, y = elements(type, sizes, rng, kind), elements(type, sizes, rng, kind) if is_complex else None
            mask = (rng.random(sizes) < 0.8).view(np.uint8) if rng.random() < 0.5 else None
            made = problems(rng, type, is_complex)
            for axes in [(1,), (0, 2), (0, 1, 2), (2,)]:
                check_axes(place, made[rng.integers(len(made))], x, y, mask, axes, rng, kind)


def check_axes(place, asked, x, y, mask, axes, rng, kind):
    rows = [t.parts_of_axes(a, axes) for a in (x, y) if a is not None]
    there = np.ones_like(rows[0], bool) if mask is None else t.parts_of_axes(mask, axes).astype(bool)
    count, parts = len(rows[0]), len(rows)
    means = drawn_means(rng, asked["type"], count * parts, kind).reshape(count, parts)
    one = complex(*drawn_means(rng, asked["type"], 2, "tame").tolist())
    for given in ("none", "one", "each"):
        if given == "none" and parts == 1:
            continue
        problem = t.Problem(**asked, about=one if given == "one" else None)
        shape = t.axes_shape(x, axes, y, mask)
        if given == "each":
            shape.means = t.address(means)
        got = t.run(problem, shape, x, y, count, OPENED[place])
        for i in range(count):
            mean = {"none": None, "one": one, "each": complex(*means[i])}[given]
            want = expected(problem, [r[i][there[i]] for r in rows], mean)
            assert [int(g[i]) for g in got] == want, (SEED, place, asked, axes, given, i, mean)


@pytest.mark.parametrize("type", ["f32", "f64", "i64", "u8"])
def test_segments_and_groups(place, type):
    rng = np.random.default_rng([SEED, t.TYPES.index(type), 2])
    if type not in types_on(place):
        pytest.skip("another run has this type there")
    n, count = (60, 5) if is_slow(place) else (400, 11)
    for is_complex in complex_kinds(type):
        x, y = elements(type, n, rng), elements(type, n, rng) if is_complex else None
        problem = t.Problem("var", type, ddof=1, is_complex=is_complex)
        means = drawn_means(rng, type, count * (1 + is_complex), "tame").reshape(count, -1)
        offsets = np.sort(rng.integers(0, n, count + 1))
        ids = rng.integers(0, count, n)
        mask = (rng.random(n) < 0.9).view(np.uint8)
        for shape, of in ((t.segments_shape(n, offsets, mask=mask), [np.arange(offsets[i], offsets[i + 1]) for i in range(count)]),
                          (t.groups_shape(n, ids, count, mask), [np.flatnonzero(ids == i) for i in range(count)])):
            for given in (False, True) if is_complex else (True,):
                shape.means = t.address(means) if given else None
                got = t.run(problem, shape, x, y, count, OPENED[place])[0]
                for i in range(count):
                    at = of[i][mask[of[i]] == 1]
                    want = expected(problem, [a[at] for a in (x, y) if a is not None], complex(*means[i]) if given else None)
                    assert [int(got[i])] == want, (SEED, place, is_complex, given, i)


@pytest.mark.parametrize("type", t.TYPES)
def test_whole_arrays(place, type):
    rng = np.random.default_rng([SEED, t.TYPES.index(type), 3])
    if type not in types_on(place):
        pytest.skip("another run has this type there")
    for n in (0, 1, 2, 40, 1200) if not is_slow(place) else (0, 2, 300):
        for is_complex in complex_kinds(type):
            x, y = elements(type, n, rng, "wild"), elements(type, n, rng, "wild") if is_complex else None
            for about in (0.0, 0.1 + 0.7j, float("nan"), None) if is_complex else (0.0, 0.1, float("inf")):
                problem = t.Problem("std", type, also=["var"], ddof=0.5, about=about, is_complex=is_complex)
                got = [bits for _, bits in t.reduce(problem, x, y, OPENED[place])]
                assert got == expected(problem, [a for a in (x, y) if a is not None], about), (SEED, place, n, about)


@pytest.mark.parametrize("type", ["f16", "f64", "i32"])
def test_states(type):
    """Of a problem with a mean: fed in pieces, merged, saved, as words. Loaded, it has the mean of the problem that is given."""
    rng = np.random.default_rng([SEED, t.TYPES.index(type), 4])
    for is_complex, sign in [(kind, sign) for kind in complex_kinds(type) for sign in ((1, -1) if kind else (1,))]:
        x, y = elements(type, 500, rng), elements(type, 500, rng) if is_complex else None
        if is_complex:  # imaginary parts with a sum of either sign
            y[np.isfinite(y)] = np.copysign(y[np.isfinite(y)], sign)
        raw = [None if a is None else a.view(t.BITS[t.SIZE[type]]) if type in t.FLOATS else a for a in (x, y)]
        asked = dict(ddof=1.0, about=0.3 - 2j if is_complex else 0.3, is_complex=is_complex)
        left, right = tally.State("var", type, **asked), tally.State("var", type, **asked)
        left.feed(raw[0][:200], None if y is None else raw[1][:200])
        right.feed(raw[0][200:], None if y is None else raw[1][200:])
        left.merge(right)
        want = expected(t.Problem("var", type, **asked), [a for a in (x, y) if a is not None], asked["about"])
        assert left.value()[1] == want[0]
        saved = left.save()
        other = dict(asked, about=7.0)
        loaded = tally.State("var", type, **other).load(saved)
        assert loaded.value()[1] == expected(t.Problem("var", type, **other), [a for a in (x, y) if a is not None], 7.0)[0]
        for given in (dict(other, about=None), dict(other, is_complex=type != "i32" and not is_complex)):
            if given != other:
                with pytest.raises(ValueError, match="EFORMAT"):
                    tally.State("var", type, **given).load(saved)
        with pytest.raises(ValueError, match="EFORMAT"):
            left.load(saved, given=False)


def test_what_is_refused():
    for op, type in (("sum", "f32"), ("dot", "f64"), ("var", "i32")):
        with pytest.raises(t.Failed) as failed:
            t.Problem(op, type, is_complex=True)
        assert failed.value.status == "ETYPE"
    x = np.ones(4)
    with pytest.raises(t.Failed) as failed:
        t.reduce(t.Problem("var", "f64", is_complex=True), x)
    assert failed.value.status == "EINVAL" and "complex" in failed.value.line
    with pytest.raises(t.Failed) as failed:
        t.reduce(t.Problem("var", "f64", about=1.0), x, x)
    assert failed.value.status == "EINVAL"
    groups, ids = t.Groups(t.Problem("var", "f64"), 2), np.zeros(4, np.int64)
    shape = t.groups_shape(4, ids, 2)
    shape.means = t.address(x)
    with pytest.raises(t.Failed) as failed:
        t.check(t.lib.tally_groups_feed(groups.handle, None, t.byref(shape), t.c_void_p(t.address(x)), None))
    assert failed.value.status == "EINVAL"


def test_other_values_take_no_notice():
    x = np.array([1.0, 2.0, 6.0])
    both = t.reduce(t.Problem("mean", "f64", also=["var", "max"], about=2.0), x)
    assert [np.uint64(bits).view(np.float64) for _, bits in both] == [3.0, 17 / 3, 6.0]
    assert t.reduce(t.Problem("sum", "f64", about=5.0), x) == t.reduce(t.Problem("sum", "f64"), x)
