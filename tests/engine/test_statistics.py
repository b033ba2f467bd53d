"""Every statistic, of every type, against the oracles: ordinary data, and data made to be hard.

Values are worked out backwards where that is what shows a rounding: a result exactly half-way between two
floats is chosen, and an array built that has exactly that mean, variance, norm or dot; then the same with
one far smaller element that makes it a little more, or less.
"""

import fractions
import math
import statistics
import warnings

import gmpy2
import numpy as np
import pytest

import data
import oracle
import tally
from oracle import ANY_FLOAT
from tally import DTYPE, FLOATS, INTS, LISTS, NOBODY, OPS, STATISTICS, TYPES
from test_reduce import show

F = fractions.Fraction
SINGLE = [op for op in STATISTICS if op not in LISTS]
DDOFS = [0.0, 1.0, 0.5, 1.5, 2.0, 0.1, 1e-300, 5e-324, 2.0 ** -60, 3.0000000000000004, 1e15, 1e300, 1.7e308]


def shown(got):
    return [shown(v) for v in got] if isinstance(got, list) else show(got) if got else got


def check(devices, op, type_, raw, y=None, what="", **kw):
    raw = np.ascontiguousarray(raw)
    want = oracle.statistic(op, type_, raw, y, **{k: v for k, v in kw.items() if k != "fast"})
    if isinstance(want, list):
        want = [None if isinstance(v, str) else v for v in want]
    for device in devices:
        got = tally.reduce_array(device, op, type_, raw, y, **kw)
        if got != want:
            pytest.fail(f"{op} of {len(raw)} {type_} on {device}, {what} {kw}: got {shown(got)}, want "
                        f"{shown(want)}; {raw[:6]} seed={data.SEED}")
    return want


def kinds(type_):
    return list(data.FLOAT_KINDS if type_ in FLOATS else data.INT_KINDS)


def second(g, op, type_, n):
    return data.make(g, str(g.choice(kinds(type_))), type_, n) if op == "dot" else None


# ---- Ordinary and wild data -----------------------------------------------------------------------

@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", STATISTICS)
def test_every_kind(op, type_, devices):
    """Every kind of data, every small length, every result type."""
    g = data.rng(f"statistics {op} {type_}")
    some = [d for d in devices if d.spec != "auto"]
    for kind in kinds(type_):
        for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 100, int(g.integers(100, 1500))]:
            raw, y = data.make(g, kind, type_, n), second(g, op, type_, n)
            outs = [None] + (FLOATS if op in ANY_FLOAT else [])
            for out in outs if n < 4 else [None, outs[int(g.integers(0, len(outs)))]]:
                ddof = float(g.choice(DDOFS[:6])) if op in ("var", "std", "describe") else 0.0
                device = some[int(g.integers(0, len(some)))]
                check([device, NOBODY], op, type_, raw, y, what=kind, out=out, ddof=ddof)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", STATISTICS)
def test_at_every_edge_of_memory(op, type_, devices):
    """Odd lengths at odd places between two forbidden pages, on every device."""
    g = data.rng(f"statistics at edges {op} {type_}")
    arena, other = data.Arena(1 << 16), data.Arena(1 << 16)
    for n in [1, 15, 31, 33, 63, 127, 257, 513, 1025, 2047, 4097]:
        raw, y = data.make(g, str(g.choice(kinds(type_))), type_, n), second(g, op, type_, n)
        want = oracle.statistic(op, type_, raw, y)
        if isinstance(want, list):
            want = [None if isinstance(v, str) else v for v in want]
        offset, offset_y = (int(g.choice([0, 1, 3, 5, 7, ~0, ~1, ~6])) for _ in range(2))
        address = arena.place(raw, offset)
        address_y = None if y is None else other.place(y, offset_y)
        for device in devices:
            got = tally.reduce(device, op, type_, address, n, address_y)
            assert got == want, (op, type_, device, n, offset, shown(got), shown(want), data.SEED)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", STATISTICS)
def test_shared_among_threads(op, type_, devices):
    """Long enough for several threads, with the decisive element anywhere."""
    g = data.rng(f"statistics long {op} {type_}")
    many = [d for d in devices if d.spec and ("threads=3" in d.spec or "threads=8" in d.spec)]
    n = (9 << 17) // tally.SIZE[type_] + 77
    raw = data.floats(type_, g.normal(size=n)) if type_ in FLOATS else data.make(g, "small", type_, n)
    y = None
    if op == "dot":
        y = data.floats(type_, g.normal(size=n)) if type_ in FLOATS else data.make(g, "small", type_, n)
    sums = ["sum", "mean", "var", "std", "norm1", "norm2", "sumsq", "dot", "describe"]
    if op in sums:  # the oracle's long way is for short arrays: here it is done on equal values' counts
        raw = raw[g.integers(0, 300, n)]
        y = None if y is None else y[g.integers(0, 300, n)]
    want = long_answer(op, type_, raw, y)
    for device in many:
        got = tally.reduce_array(device, op, type_, raw, y)
        assert got == want, (op, type_, device, n, shown(got), shown(want), data.SEED)
    if op in ("argmin", "argmax", "minmax", "norminf", "nans", "nonzero", "any", "all", "describe"):
        special = [0, 1, oracle.INF[type_] | 1, oracle.INF[type_] | oracle.SIGN[type_]] \
            if type_ in FLOATS else [0, *oracle.integer_range(type_)]
        base = np.full(n, oracle.ONE.get(type_, 1), DTYPE[type_])
        for value in special:
            raw = base.copy()
            raw[int(g.integers(0, n))] = value
            raw[int(g.integers(0, n))] = value
            want = long_answer(op, type_, raw, None)
            for device in many[:2] + [NOBODY]:
                got = tally.reduce_array(device, op, type_, raw)
                assert got == want, (op, type_, device, hex(value), shown(got), shown(want), data.SEED)


def long_answer(op, type_, raw, y):
    """oracle.statistic() for an array of few different values."""
    if op in LISTS:
        made = [long_answer(each, type_, raw, y) for each in LISTS[op]]
        return [None if isinstance(v, str) else v for v in made]
    if op not in ANY_FLOAT:
        return oracle.statistic(op, type_, raw, y)
    out = oracle.natural_type(op, type_)
    keys, count = np.unique(raw if y is None else np.stack([raw, y]), axis=None if y is None else -1,
                            return_counts=True)
    keys = keys.reshape(-1, len(count))
    each = [oracle.Terms(type_, row).finite for row in keys]
    unit = oracle.Terms(type_, keys[0]).unit
    if any(None in row for row in each):
        assert op in ("sum", "mean", "var", "std")
        if op in ("var", "std"):
            return out, oracle.NAN[out]
        specials = [float(v) for v in oracle.to_f64(type_, keys[0]) if not np.isfinite(v)]
        return out, oracle._float_bits(out, oracle._settle(specials))
    count, n = count.tolist(), len(raw)
    first = sum(c * a for c, a in zip(count, each[0]))
    squares = sum(c * a * b for c, a, b in zip(count, each[0], each[-1]))
    if op in ("sum", "mean"):
        total = None, first, unit, False
        return oracle._sum_value(out, total) if op == "sum" else oracle.quotient(out, total, n)
    if op == "norm1":
        return oracle._sum_value(out, (None, sum(c * abs(a) for c, a in zip(count, each[0])), unit, False))
    if op in ("sumsq", "dot"):
        return oracle._sum_value(out, (None, squares, 2 * unit, False))
    if op == "norm2":
        return out, oracle.round_root(out, squares, 1 << 2 * unit)
    rounded = oracle.round_root if op == "std" else oracle.round_ratio
    return out, rounded(out, n * squares - first * first, n * n << 2 * unit)


@pytest.mark.parametrize("type_", ["f64", "f32", "i32", "i64"])
def test_sixteen_million(type_):
    """2^24 elements, by sums of integers that NumPy does exactly."""
    g = data.rng("sixteen million " + type_)
    n = (1 << 24) + 5
    whole = g.integers(-(1 << 20), 1 << 20, n)
    other = g.integers(-(1 << 20), 1 << 20, n)
    first, squares, products = int(whole.sum()), int((whole * whole).sum()), int((whole * other).sum())
    if type_ in FLOATS:
        scale = -30 if type_ == "f32" else -500
        raw, y = (np.ldexp(v.astype(np.float64), scale) for v in (whole, other))
        raw, y = (v.view(np.uint64) if type_ == "f64" else v.astype(np.float32).view(np.uint32)
                  for v in (raw, y))
    else:
        raw, y, scale = whole.astype(DTYPE[type_]), other.astype(DTYPE[type_]), 0
    out, down = oracle.natural_type("mean", type_), -scale
    device = tally.Device("cpu:threads=3")
    one = {op: tally.reduce_array(device, op, type_, raw) for op in ("mean", "var", "std", "norm2", "sumsq")}
    assert one["mean"] == (out, oracle.round_ratio(out, first, n << down))
    assert one["var"] == (out, oracle.round_ratio(out, n * squares - first ** 2, n * n << 2 * down))
    assert one["std"] == (out, oracle.round_root(out, n * squares - first ** 2, n * n << 2 * down))
    assert one["norm2"] == (out, oracle.round_root(out, squares, 1 << 2 * down))
    dot = tally.reduce_array(device, "dot", type_, raw, y)
    wide = oracle.natural_type("dot", type_)
    if type_ in FLOATS:
        assert one["sumsq"] == (wide, oracle.round_ratio(wide, squares, 1 << 2 * down))
        assert dot == (wide, oracle.round_ratio(wide, products, 1 << 2 * down))
    else:
        assert one["sumsq"] == (wide, squares) and dot == (wide, products & (1 << 64) - 1)
    assert tally.reduce_array(device, "var", type_, raw, ddof=1, out="f64") == \
        ("f64", oracle.round_ratio("f64", n * squares - first ** 2, n * (n - 1) << 2 * down))
    described = tally.reduce_array(device, "describe", type_, raw)
    assert described[6:] == [tally.reduce_array(device, "sum", type_, raw), one["mean"], one["std"]]
    device.close()


# ---- ddof -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("type_", TYPES)
def test_every_ddof(type_, few_devices):
    """Whole, fractional, the smallest there is and huge; and n around it, where the variance ends."""
    g = data.rng("ddof " + type_)
    for n in list(range(0, 8)) + [40, 333]:
        around = [float(n), float(np.nextafter(n, 0)), float(np.nextafter(n, n + 1)), n - 0.25 if n else 0.0]
        raw = data.make(g, str(g.choice(kinds(type_)[:5])), type_, n)
        for ddof in DDOFS + around + g.uniform(0, n + 1, 3).tolist() + [2.0 ** 64, 2.0 ** 95, 2.0 ** 96]:
            out = str(g.choice(FLOATS))
            for op in ("var", "std"):
                device = few_devices[int(g.integers(0, len(few_devices)))]
                check([device], op, type_, raw, ddof=ddof, out=out)
                got = check([device], op, type_, raw, ddof=ddof)
                if n <= ddof:
                    assert got[1] == oracle.NAN[got[0]]


def test_a_ddof_that_is_none():
    raw = np.ones(3, np.uint64)
    for ddof in (-1.0, -5e-324, math.nan, math.inf, -math.inf):
        for op in ("var", "std", "sum", "describe"):
            assert tally.reduce_array(NOBODY, op, "f64", raw, ddof=ddof) == "EINVAL"
    assert tally.reduce_array(NOBODY, "var", "f64", raw, ddof=-0.0) == ("f64", 0)


# ---- Known hard cases -----------------------------------------------------------------------------

def test_textbook_variances(devices):
    two = data.floats("f64", [1e16, 1e16 + 2])
    assert check(devices, "var", "f64", two) == ("f64", 0x3ff0000000000000)
    for n in (2, 3, 4, 10, 1000, 4097):
        for base in (1e16, 1e8, 1e300, 2.0 ** 53, -1e16, 3e-300):
            step = np.spacing(abs(base))
            raw = data.floats("f64", base + step * (np.arange(n) % 2))
            for ddof in (0.0, 1.0):
                for op in ("var", "std"):
                    check(devices[:6], op, "f64", raw, ddof=ddof)
    # integers: 10^16 + {0, 1} themselves
    raw = np.array([10 ** 16, 10 ** 16 + 1], np.int64)
    assert check(devices, "var", "i64", raw)[1] == int(np.float64(0.25).view(np.uint64))
    assert check(devices, "var", "i64", raw, ddof=1.0)[1] == int(np.float64(0.5).view(np.uint64))


@pytest.mark.parametrize("type_", TYPES)
def test_constant_columns_have_no_variance(type_, devices):
    """Exactly +0, whatever the constant: means that are rounded first leave something."""
    g = data.rng("constant " + type_)
    for n in (1, 2, 3, 10, 1000, 4099):
        values = data.finite_bits(g, type_, 6) if type_ in FLOATS else data.make(g, "full", type_, 6)
        values = np.concatenate([values, data.floats(type_, [0.1, 1e4 / 3]) if type_ in FLOATS else
                                 np.array(oracle.integer_range(type_), DTYPE[type_])])
        for value in values:
            raw = np.full(n, value, DTYPE[type_])
            for op in ("var", "std"):
                for ddof in (0.0, 0.5):
                    out = oracle.natural_type(op, type_)
                    device = devices[int(g.integers(0, len(devices)))]
                    assert tally.reduce_array(device, op, type_, raw, ddof=ddof) == (out, 0)
    if type_ == "f64":  # what NumPy says of one of those
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert np.full(10 ** 6, 1e17 / 3).var() != 0


def test_a_mean_is_rounded_once(devices):
    """Not round(round(sum) / n): that is something else in a good part of small cases."""
    g = data.rng("once")
    for type_ in FLOATS:
        real = {"f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64}[type_]
        different = 0
        for _ in range(300):
            n = int(g.integers(3, 12))
            raw = data.floats(type_, g.normal(size=n))
            want = check([devices[int(g.integers(0, len(devices)))]], "mean", type_, raw)
            total = oracle.answer("sum", type_, raw)[1]
            value = oracle.to_f64(type_, np.array([total], DTYPE[type_])).astype(real)
            twice = value / real(n)
            twice = oracle.f32_to("bf16", twice) if type_ == "bf16" else twice.view(DTYPE[type_])
            different += int(twice[0]) != want[1]
        assert different > 3, type_
    # one of them: the sum of three is half-way between 1 and the next, and rounded to 1
    raw = data.floats("f64", [1.0, 2.0 ** -53, 0.0])
    assert oracle.answer("sum", "f64", raw)[1] == oracle.ONE["f64"]
    assert check(devices, "mean", "f64", raw) == ("f64", int(np.float64(1 / 3).view(np.uint64)) + 1)


def test_squares_beyond_the_range(devices):
    """Squares and products past 2^1024 or below 2^-1074, whose sum or root is a number again."""
    def f(values):
        return data.floats("f64", values)
    for values in ([1e200, 1e200], [1.7e308] * 5, [1e308, 1e-308, 1.0], [5e-324], [5e-324] * 3, [1e-200] * 7,
                   [2.0 ** -1074] * 4, [2.0 ** 1023, 2.0 ** 1023], [1e-160, 1e-170, 1e-320], [3e-324, 1e-310],
                   [2.0 ** -538] * 2, [2.0 ** 512], [2.0 ** 511.5] * 3, [1.7976931348623157e308],
                   [1.7976931348623157e308] * 2, [2.0 ** e for e in range(-1074, 1024)],
                   [2.0 ** e for e in range(-1074, -500)]):
        for op in ("norm2", "sumsq", "var", "std", "norm1", "mean"):
            for out in FLOATS:
                check(devices[:5], op, "f64", f(values), out=out)
    for x, y in (([1e200, 1e200, 1.0], [1e200, -1e200, 1.0]), ([1e308] * 4, [1e308, -1e308] * 2),
                 ([5e-324] * 2, [0.5] * 2), ([5e-324, 1.0], [5e-324, 1 + 2.0 ** -52]),
                 ([2.0 ** -540] * 4096, [2.0 ** -546] * 4096), ([2.0 ** -1074] * 33, [2.0 ** -1] * 33),
                 ([2.0 ** -1074] * 2, [2.0 ** -1] * 2), ([2.0 ** -1074], [2.0 ** -1]),
                 ([2.0 ** 1023, 2.0 ** 1023, 1.0], [2.0 ** 1023, -(2.0 ** 1023), 2.0 ** -1074]),
                 ([1.0, 2.0 ** -53, 5e-324], [1.0, 1.0, 5e-324]), ([1.0, 2.0 ** -53, 5e-324], [1.0, 1.0, -5e-324]),
                 ([1.0, -2.0 ** -54, 5e-324], [1.0, 1.0, 5e-324]), ([1.0, -2.0 ** -54, 5e-324], [1, 1, -5e-324]),
                 ([1e-300, -1e-300], [1e-300, 1e-300]), ([1e16, 1.0, -1e16], [1.0, 1.0, 1.0]),
                 ([2.0 ** 1023, 1.0], [2.0, -5e-324]), ([2.0 ** 1023, 2.0 ** 1023], [1.0, 1.0]),
                 ([1.7976931348623157e308, 2.0 ** 970], [1.0, 1.0]),
                 ([1.7976931348623157e308, 2.0 ** 970, 5e-324], [1.0, 1.0, -5e-324])):
        for out in FLOATS:
            check(devices[:5], "dot", "f64", f(x), f(y), out=out)


@pytest.mark.parametrize("type_", FLOATS)
def test_cancelling_dots(type_, few_devices):
    g = data.rng("cancelling " + type_)
    minus = DTYPE[type_](oracle.SIGN[type_])
    for n in (1, 3, 30, 500):
        for kind in ("bits", "normal", "huge", "subnormal", "loguniform"):
            x, y = data.make(g, kind, type_, n), data.make(g, kind, type_, n)
            both_x, both_y = np.concatenate([x, x]), np.concatenate([y, y ^ minus])
            check(few_devices, "dot", type_, both_x, both_y, what=kind)
            assert oracle.sum_of("dot", type_, both_x, both_y)[1] == 0
            for a, b in ((1, 1), (1 | int(minus), 1), (1, oracle.ONE[type_]), data.finite_bits(g, type_, 2)):
                rest_x = np.append(both_x, DTYPE[type_](a))
                rest_y = np.append(both_y, DTYPE[type_](b))
                order = g.permutation(2 * n + 1)
                for out in FLOATS:
                    check(few_devices, "dot", type_, rest_x[order], rest_y[order], what=kind, out=out)


# ---- Ties, built backwards ------------------------------------------------------------------------

def half_ways(g, out):
    """Numbers half-way between two neighbours of a type: (odd integer, exponent of 2). Subnormals and the
    edge of infinity among them."""
    precision, emax, emin = oracle.FORMAT[out]
    yield 1, emin - 2                                               # half the smallest
    yield 3, emin - 2
    yield (1 << precision) - 1, emin - 2                            # the largest subnormal's upper half-way
    yield (1 << precision) + 1, emin - 2
    yield (2 << precision) - 1, emin - 2
    yield (2 << precision) - 1, emax - precision - 1                # half-way to infinity
    yield (2 << precision) - 3, emax - precision - 1
    for _ in range(12):
        odd = int(g.integers(1 << (precision - 1), 1 << precision)) * 2 + 1
        yield odd, int(g.integers(emin - 2, emax - precision))
    for _ in range(12):
        odd = int(g.integers(1 << (precision - 1), 1 << precision)) * 2 + 1
        yield odd, int(g.integers(-precision - 3, 4))


def is_half_way(out, value):
    """Whether an exact value lies half-way between two neighbours (the oracle's own word for it)."""
    here = oracle.round_ratio(out, *(value * (1 - F(1, 1 << 200))).as_integer_ratio())
    there = oracle.round_ratio(out, *(value * (1 + F(1, 1 << 200))).as_integer_ratio())
    return there == here + 1


def shuffled(g, raw, *others):
    order = g.permutation(len(raw))
    return [a[order] for a in (raw, *others)] if others else raw[order]


def as_units(type_, value):
    """An exact value as a multiple of 2^-1074; None where it is none, or out of the type's reach."""
    units = value * (1 << oracle.UNIT)
    if units.denominator != 1 or int(units) % oracle.units_of_bits(type_, 1):
        return None
    return int(units) if abs(int(units)) < oracle.units_of_bits(type_, oracle.INF[type_] - 1) * 2000 else None


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("out", FLOATS)
def test_means_half_way(type_, out, devices):
    g = data.rng(f"means half-way {type_} {out}")
    smallest = oracle.units_of_bits(type_, 1)
    tried = 0
    for odd, exponent in half_ways(g, out):
        wanted = F(odd) * F(2) ** exponent
        assert is_half_way(out, wanted)
        n = int(g.choice([1, 2, 3, 4, 6, 7, 10, 12, 96, 100, 1000, 3000]))
        for n in {n, 2 * n, 64 * n}:
            total = as_units(type_, wanted * n)
            if total is None:
                continue
            for units in (total, total + smallest, total - smallest):
                for sign in (1, -1):
                    raw = data.exactly(g, type_, sign * units, np.zeros(0, DTYPE[type_]))
                    if len(raw) > n:
                        continue
                    raw = shuffled(g, np.concatenate([raw, np.zeros(n - len(raw), DTYPE[type_])]))
                    tried += 1
                    check([devices[int(g.integers(0, len(devices)))], NOBODY], "mean", type_, raw, out=out)
    assert tried or (type_, out) == ("f16", "f64")  # whose sums are too short


def as_squares(g, total, precision):
    """Integers of `precision` bits whose squares add up to `total`."""
    parts = []
    while total:
        part = math.isqrt(total)
        part >>= max(0, part.bit_length() - precision)
        part <<= max(0, math.isqrt(total).bit_length() - precision)
        parts.append(part)
        total -= part * part
    return parts


def scaled(type_, values, exponent):
    """Integers times 2^exponent in a type, or None where one does not fit."""
    raw = []
    for value in values:
        units = as_units(type_, F(value) * F(2) ** exponent)
        if units is None:
            return None
        bits = oracle.round_units_by_integers(type_, units)
        if bits & (oracle.SIGN[type_] - 1) >= oracle.INF[type_] or \
                oracle.units_of_bits(type_, bits) != units:
            return None
        raw.append(bits)
    return np.array(raw, DTYPE[type_])


def neighbours(type_, raw):
    """The array; and with its smallest element, by magnitude, one step further from zero, and nearer."""
    yield raw
    magnitudes = raw & DTYPE[type_](oracle.SIGN[type_] - 1)
    some = np.flatnonzero(magnitudes)
    if not len(some):
        return
    at = some[magnitudes[some].argmin()]
    for step in (1, -1):
        moved = raw.copy()
        moved[at] = int(moved[at]) + step
        if int(moved[at]) & (oracle.SIGN[type_] - 1) < oracle.INF[type_]:
            yield moved


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("out", FLOATS)
def test_squares_half_way(type_, out, devices):
    """sumsq, norm2, var and std that are ties, and a far smaller element beside each."""
    g = data.rng(f"squares half-way {type_} {out}")
    precision = oracle.FORMAT[type_][0]
    tried = dict.fromkeys(("sumsq", "norm2", "var", "std"), 0)
    for odd, exponent in half_ways(g, out):
        for op in tried:
            value, half = F(odd) * F(2) ** exponent, exponent
            integer = odd
            if op in ("norm2", "std"):
                integer *= odd
            else:
                integer <<= half % 2
                half //= 2
            m, ddof = int(g.choice([1, 2, 3, 5, 8, 50])), 0.0
            if op in ("var", "std"):      # pairs of a and -a: the mean is 0; 2 m of them, and a 0 for ddof 1
                integer *= m
                ddof = float(g.integers(0, 2))
            parts = as_squares(g, integer, precision)
            if op in ("var", "std") and len(parts) > m:
                extra = -(-len(parts) // m)   # more elements: m times as many, each worth as much more
                m *= extra
                parts = as_squares(g, integer * extra, precision)
                if len(parts) > m:
                    continue
            raw = scaled(type_, parts, half)
            if raw is None:
                continue
            if op in ("var", "std"):
                raw = np.concatenate([raw, np.zeros(m - len(raw), DTYPE[type_])])
                raw = np.concatenate([raw, raw ^ DTYPE[type_](oracle.SIGN[type_]),
                                      np.zeros(int(ddof), DTYPE[type_])])
            want = oracle.statistic(op, type_, raw, out=out, ddof=ddof)
            assert want[1] == oracle.round_ratio(out, *value.as_integer_ratio()), (op, odd, exponent)
            tried[op] += 1
            tiny = DTYPE[type_](1)
            variants = list(neighbours(type_, raw))
            if op in ("sumsq", "norm2"):
                variants.append(np.append(raw, tiny))       # a square far below the tie
            elif (raw == 0).any():
                variants.append(raw.copy())
                variants[-1][np.flatnonzero(raw == 0)[0]] = tiny
            for variant in variants:
                check([devices[int(g.integers(0, len(devices)))], NOBODY], op, type_, shuffled(g, variant),
                      out=out, ddof=ddof, what=f"{odd} * 2^{exponent}")
    if oracle.FORMAT[type_][0] >= oracle.FORMAT[out][0]:
        assert min(tried.values()) > 5, tried


def test_the_last_of_a_hundred_bits_decides(devices):
    """A sum of squares that two doubles do not hold: its last bit alone says on which side of a tie the variance lies."""
    g = data.rng("the last of a hundred bits")
    for _ in range(40):
        odd = 2 * int(g.integers(1 << 52, 1 << 53)) + 1
        for side in (1, -1):
            total = (odd << 54) + side
            parts = as_squares(g, total, 53)
            m = 1 << (len(parts) - 1).bit_length()
            raw = scaled("f64", parts, int(g.integers(-300, 200)))
            raw = np.concatenate([raw, np.zeros(m - len(raw), np.uint64)])
            raw = np.concatenate([raw, raw ^ np.uint64(oracle.SIGN["f64"])])
            for op in ("var", "std", "norm2"):
                check([devices[int(g.integers(0, len(devices)))], NOBODY], op, "f64", shuffled(g, raw), what=f"{total}")


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("out", FLOATS)
def test_dots_and_norms_half_way(type_, out, devices):
    """A tie, as products with powers of two; the least product there is to either side of it."""
    g = data.rng(f"dots half-way {type_} {out}")
    tried = 0
    for odd, exponent in half_ways(g, out):
        split = int(g.integers(-6, 7))
        units = as_units(type_, F(odd) * F(2) ** (exponent - split))
        if units is None:
            continue
        x = data.exactly(g, type_, units, data.finite_bits(g, type_, 5)[:0])
        y = np.full(len(x), int(data.floats(type_, [2.0 ** split])[0]), DTYPE[type_])
        noise_x, noise_y = data.finite_bits(g, type_, 7), data.finite_bits(g, type_, 7)
        minus = DTYPE[type_](oracle.SIGN[type_])
        x = np.concatenate([x, noise_x, noise_x])
        y = np.concatenate([y, noise_y, noise_y ^ minus])
        tried += 1
        for tail in (0, 1, oracle.SIGN[type_] | 1):
            a, b = shuffled(g, np.append(x, DTYPE[type_](tail)), np.append(y, DTYPE[type_](1)))
            check([devices[int(g.integers(0, len(devices)))], NOBODY], "dot", type_, a, b, out=out)
        units = as_units(type_, F(odd) * F(2) ** exponent)
        if units is not None:
            some = data.exactly(g, type_, units, np.zeros(0, DTYPE[type_]))
            for tail in (0, 1, oracle.SIGN[type_] | 1):
                raw = some ^ np.where(g.random(len(some)) < .5, minus, 0).astype(DTYPE[type_])
                raw = shuffled(g, np.append(raw, DTYPE[type_](tail)))
                check([devices[int(g.integers(0, len(devices)))], NOBODY], "norm1", type_, raw, out=out)
    assert tried or (type_, out) == ("f16", "f64")


# ---- Zeros, NaNs, infinities ----------------------------------------------------------------------

SMALL_SET = ["0", "-0", "1", "-1", "inf", "-inf", "nan", "tiny", "-tiny", "max"]


def named(type_, name):
    minus = oracle.SIGN[type_] if name[0] == "-" else 0
    return minus | {"0": 0, "1": oracle.ONE[type_], "inf": oracle.INF[type_], "nan": oracle.NAN[type_],
                    "tiny": 1, "max": oracle.INF[type_] - 1}[name.lstrip("-")]


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("op", STATISTICS)
def test_all_short_arrays_of_special_values(op, type_, devices):
    g = data.rng(f"specials {op} {type_}")
    bits = [named(type_, name) for name in SMALL_SET]
    arrays = [[a] for a in bits] + [[a, b] for a in bits for b in bits]
    arrays += [[bits[int(i)] for i in g.integers(0, len(bits), 3)] for _ in range(60)]
    for values in arrays:
        raw = np.array(values, DTYPE[type_])
        device = devices[int(g.integers(0, len(devices)))]
        ys = [None] if op != "dot" else \
            [np.array([bits[int(i)] for i in g.integers(0, len(bits), len(raw))], DTYPE[type_])
             for _ in range(3)] + [np.full(len(raw), bits[int(i)], DTYPE[type_]) for i in (0, 1, 4)]
        for y in ys:
            check([device], op, type_, raw, y, out=str(g.choice(FLOATS)) if op in ANY_FLOAT else None,
                  ddof=float(g.choice([0.0, 1.0, 0.5])) if op in ("var", "std") else 0.0)


@pytest.mark.parametrize("type_", FLOATS)
def test_signs_of_zeros(type_, devices):
    """-0 only where every term is -0: and every term of a square or a magnitude is +0."""
    minus, one = oracle.SIGN[type_], oracle.ONE[type_]
    for n in (1, 2, 31, 33, 129, 4097, 70000):
        zeros = np.full(n, minus, DTYPE[type_])
        for op, want in (("sum", minus), ("mean", minus), ("sumsq", 0), ("norm1", 0), ("norm2", 0),
                         ("norminf", 0), ("var", 0), ("std", 0)):
            for device in devices:
                assert tally.reduce_array(device, op, type_, zeros) == (type_, want), (op, n, device)
        for factor, want in ((one, minus), (one | minus, 0), (0, minus), (minus, 0), (1, minus)):
            y = np.full(n, factor, DTYPE[type_])
            for device in devices:
                assert tally.reduce_array(device, "dot", type_, zeros, y) == (type_, want)
                assert tally.reduce_array(device, "dot", type_, y, zeros) == (type_, want)
        for place in {0, n // 2, n - 1}:
            raw = zeros.copy()
            raw[place] = 0
            for op in ("sum", "mean"):
                for device in devices:
                    assert tally.reduce_array(device, op, type_, raw) == (type_, 0)
            for device in devices:
                assert tally.reduce_array(device, "dot", type_, raw, np.full(n, one, DTYPE[type_])) == \
                    (type_, 0)
    # a product or a quotient that rounds to zero keeps its sign
    tiny = np.array([1], DTYPE[type_])
    assert tally.reduce_array(NOBODY, "dot", type_, tiny, tiny | DTYPE[type_](minus)) == (type_, minus)
    three = np.array([1 | minus, 0, 0], DTYPE[type_])
    assert tally.reduce_array(NOBODY, "mean", type_, three) == (type_, minus)


def test_the_first_of_equals(devices):
    """argmin and argmax: the lowest index, of -0 before +0 and the other way, of NaN before all."""
    g = data.rng("first")
    for type_ in TYPES:
        for n in (1, 2, 5, 33, 300, 3000, 20000):
            raw = data.make(g, "small", type_, n) if type_ in INTS else \
                data.floats(type_, g.integers(-3, 4, n).astype(float))
            if type_ in FLOATS:
                raw[raw == 0] = g.choice(np.array([0, oracle.SIGN[type_]], DTYPE[type_]), int((raw == 0).sum()))
                if g.random() < .3:
                    raw[g.integers(0, n, 2)] = oracle.INF[type_] | 3
                if g.random() < .3:
                    raw &= DTYPE[type_](oracle.SIGN[type_])  # only zeros
            for op in ("argmin", "argmax"):
                check([devices[int(i)] for i in g.integers(0, len(devices), 3)], op, type_, raw)
    for type_ in TYPES:  # all equal, at both ends of the type, where a search may start from
        ends = [0, oracle.INF[type_], oracle.INF[type_] | oracle.SIGN[type_], oracle.SIGN[type_]] \
            if type_ in FLOATS else [*oracle.integer_range(type_)]
        for value in ends:
            for n in (1, 40, 5000):
                for op in ("argmin", "argmax"):
                    raw = np.full(n, value, DTYPE[type_])
                    for device in devices:
                        assert tally.reduce_array(device, op, type_, raw) == ("u64", 0)


@pytest.mark.parametrize("type_", TYPES)
def test_one_element_decides_at_every_position(type_, devices):
    g = data.rng("statistics decide " + type_)
    one = oracle.ONE.get(type_, 1)
    for n in (1, 2, 3, 16, 33, 64, 65, 129, 257):
        for place in range(n):
            device = devices[int(g.integers(0, len(devices)))]
            zeros, ones = np.zeros(n, DTYPE[type_]), np.full(n, one, DTYPE[type_])
            zeros[place], ones[place] = one, 0
            for op, raw in (("argmax", zeros), ("argmin", ones), ("nonzero", zeros), ("nonzero", ones),
                            ("any", zeros), ("all", ones), ("norminf", zeros), ("sumsq", zeros),
                            ("norm1", zeros), ("minmax", zeros), ("minmax", ones)):
                check([device], op, type_, raw, what=f"at {place}")
            check([device], "dot", type_, zeros, zeros)
            if type_ in FLOATS:
                ones[place] = oracle.INF[type_] | 1
                for op in ("argmin", "argmax", "nans", "minmax", "norminf", "var", "norm2", "describe"):
                    check([device], op, type_, ones, what=f"NaN at {place}")


# ---- Integers at their ends -----------------------------------------------------------------------

@pytest.mark.parametrize("type_", INTS)
def test_integers_at_their_ends(type_, devices):
    g = data.rng("ends " + type_)
    low, high = oracle.integer_range(type_)
    wide = integer_wide(type_)
    for values in ([low], [high], [low, high], [low] * 3, [high] * 5, [low, low + 1], [high, high - 1],
                   [low] * 1000, [high] * 1000, [low, high] * 700, [0], [low, 0, high]):
        raw, y = np.array(values, DTYPE[type_]), np.array(values[::-1], DTYPE[type_])
        for op in STATISTICS:
            some = [devices[int(i)] for i in g.integers(0, len(devices), 3)]
            for out in [None] + (["f16", "f32", "f64"] if op in ANY_FLOAT else []):
                check(some, op, type_, raw, y if op == "dot" else None, out=out)
    if type_ == "i64":
        assert tally.reduce_array(NOBODY, "norminf", type_, np.array([low], np.int64)) == "ERANGE"
        assert tally.reduce_array(NOBODY, "norm1", type_, np.array([low], np.int64)) == "ERANGE"
        assert tally.reduce_array(NOBODY, "norm1", type_, np.array([low], np.int64), out="f64")[1] == \
            int(np.float64(2.0 ** 63).view(np.uint64))
    # sumsq and dot exactly at the ends of i64 and u64, and one past
    bottom, top = oracle.integer_range(wide)
    for total in (top, top + 1, top - 1, bottom, bottom - 1, bottom + 1):
        x, y = as_products(total, low, high)
        if x is None:
            continue
        for _ in range(2):
            noise = data.make(g, "full", type_, 20)
            a = np.concatenate([np.array(x, DTYPE[type_]), noise, noise if type_[0] == "i" else noise[:0]])
            b = np.concatenate([np.array(y, DTYPE[type_]), np.ones(20, DTYPE[type_]),
                                -np.ones(20, DTYPE[type_]) if type_[0] == "i" else noise[:0]])
            if type_[0] == "u":
                a, b = a[:len(x)], b[:len(x)]
            a, b = shuffled(g, a, b)
            want = check(devices, "dot", type_, a, b)
            assert (want == "ERANGE") == (not bottom <= total <= top)
            if type_[0] == "u" or total >= 0:
                parts = as_squares(g, total, 8 * tally.SIZE[type_] - (type_[0] == "i")) \
                    if total >= 0 else None
                if parts and len(parts) < 300000 and max(parts) <= high:
                    raw = np.array(parts, DTYPE[type_])
                    want = check(devices[:4], "sumsq", type_, shuffled(g, raw))
                    assert (want == "ERANGE") == (total > top)


def integer_wide(type_):
    return "i64" if type_[0] == "i" else "u64"


def as_products(total, low, high):
    """x and y of a type's range whose dot is `total`; None where that takes too many."""
    x, y = [], []
    while total:
        b = high if total > 0 else low
        if b == 0:
            return None, None
        a = min(high, abs(total) // abs(b)) or 1
        if a == 1 and abs(total) < abs(b):
            b = total
        if len(x) > 5000:
            return None, None
        x.append(a)
        y.append(b)
        total -= a * b
    return x, y


# ---- Several values -------------------------------------------------------------------------------

def values_of(device, op, type_, raw, **kw):
    got = tally.reduce_array(device, op, type_, raw, **kw)
    return got if isinstance(got, list) else [got]


@pytest.mark.parametrize("type_", TYPES)
def test_several_are_the_single_ones(type_, devices):
    """also[], describe and minmax give what one problem after the other would."""
    g = data.rng("several " + type_)
    pool = [op for op in SINGLE + OPS + list(LISTS) if op not in ("dot", "and", "or", "xor")]
    for _ in range(60):
        ops = [str(op) for op in g.choice(pool, int(g.integers(1, 9)), replace=False)]
        if g.random() < .3:
            ops.append(str(g.choice(["and", "or", "xor"])))
        ops = ops[:9]
        n = int(g.choice([0, 1, 2, 7, 100, 1000, 5000, 9000]))
        kind = str(g.choice(kinds(type_)))
        raw = data.make(g, kind, type_, n)
        ddof, device = float(g.choice([0.0, 1.0, 0.5])), devices[int(g.integers(0, len(devices)))]
        if sum(len(LISTS.get(op, [op])) for op in ops) > tally.VALUES_MAX:
            continue
        want = [v for op in ops for each in LISTS.get(op, [op])
                for v in values_of(device, each, type_, raw, ddof=ddof)]
        want = [None if isinstance(v, str) else v for v in want]
        asked = tally.problem(ops[0], type_, also=ops[1:], ddof=ddof)
        names = [each for op in ops for each in LISTS.get(op, [op])]
        assert tally.value_count(asked) == len(names)
        for i, name in enumerate(names):
            assert tally.problem_value_op(asked, i) == tally.OPCODE[name]
        assert tally.problem_value_op(asked, len(names)) == 0
        got = tally.reduce_array(device, ops[0], type_, raw, also=ops[1:], ddof=ddof)
        if len(want) == 1:
            got, want = [got if not isinstance(got, str) else None], want
        assert got == want, (ops, type_, kind, n, device, shown(got), shown(want), data.SEED)
        if n < 200 and len(ops) > 1:
            assert got == oracle.several(ops, type_, raw, ddof=ddof), (ops, type_, data.SEED)


@pytest.mark.parametrize("type_", TYPES)
def test_dots_with_others(type_, few_devices):
    """One pass over two arrays: the others are the first one's."""
    g = data.rng("dots with others " + type_)
    for n in (0, 1, 50, 5000):
        for kind in kinds(type_)[:6]:
            x, y = data.make(g, kind, type_, n), second(g, "dot", type_, n)
            for device in few_devices:
                got = tally.reduce_array(device, "sumsq", type_, x, y, also=["dot", "argmax", "norm1"])
                want = [tally.reduce_array(NOBODY, op, type_, x, y if op == "dot" else None)
                        for op in ("sumsq", "dot", "argmax", "norm1")]
                assert got == [None if isinstance(v, str) else v for v in want]


def test_any_and_all_stop_early_and_are_right(devices):
    """What is left after they are known does not matter, in one piece or in many."""
    g = data.rng("any and all")
    for type_ in TYPES:
        one = oracle.ONE.get(type_, 1)
        for n in (1, 1000, 200_000, (5 << 18) // tally.SIZE[type_]):
            for base, other in ((0, one), (one, 0)):
                for places in ([], [0], [n - 1], [n // 2], g.integers(0, n, 3).tolist()):
                    raw = np.full(n, base, DTYPE[type_])
                    raw[places] = other
                    device = devices[int(g.integers(0, len(devices)))]
                    for ops in (["any"], ["all"], ["any", "all"], ["all", "any", "count"],
                                ["any", "nonzero"], ["all", "nonzero"]):
                        want = [oracle.statistic(op, type_, raw) for op in ops]
                        got = tally.reduce_array(device, ops[0], type_, raw, also=ops[1:])
                        assert got == (want if len(ops) > 1 else want[0]), (ops, type_, n, base, places)
                        with tally.State(ops[0], type_, also=ops[1:]) as state:
                            for piece in np.array_split(raw, 3):
                                state.feed(piece, device=device)
                            assert state.value() == (want if len(ops) > 1 else want[0])


def test_fast_means(devices):
    """The fast sum over n; and nothing else is fast."""
    g = data.rng("fast means")
    for type_ in FLOATS:
        for n in (1, 2, 5, 100, 5000):
            whole = g.integers(0, 2 if type_ == "bf16" else 8, n).astype(float)
            raw = data.floats(type_, whole)  # small integers: any order is exact
            for out in (None, "f64"):
                for device in devices:
                    got = tally.reduce_array(device, "mean", type_, raw, fast=True, out=out)
                    assert got == ("f64", int(np.float64(whole.sum() / n).view(np.uint64))) if out else \
                        got == (type_, oracle.round_ratio(type_, *float(whole.sum() / n).as_integer_ratio()))
            check(devices[:3], "var", type_, raw, fast=True)
            check(devices[:3], "norm2", type_, raw, fast=True)
        assert tally.reduce(NOBODY, "mean", type_, None, 0, fast=True) == (type_, oracle.NAN[type_])
        inf = np.array([oracle.INF[type_], oracle.INF[type_] | oracle.SIGN[type_]], DTYPE[type_])
        assert tally.reduce_array(NOBODY, "mean", type_, inf[:1], fast=True) == (type_, oracle.INF[type_])
        assert tally.reduce_array(NOBODY, "mean", type_, inf, fast=True) == (type_, oracle.NAN[type_])
        # beside exact ones, in one problem
        raw = data.floats(type_, g.normal(size=500))
        got = tally.reduce_array(NOBODY, "std", type_, raw, fast=True, also=["mean", "sum", "nans"])
        assert got[0] == tally.reduce_array(NOBODY, "std", type_, raw)
        assert got[1] == tally.reduce_array(NOBODY, "mean", type_, raw, fast=True)
        assert got[2] == tally.reduce_array(NOBODY, "sum", type_, raw, fast=True)
        assert got[3] == ("u64", 0)
    for type_ in INTS:
        check(devices[:3], "mean", type_, data.make(g, "full", type_, 100), fast=True)


# ---- What makes no sense --------------------------------------------------------------------------

def test_which_types_go_together():
    for op in STATISTICS:
        for type_ in TYPES:
            one = np.array([oracle.ONE.get(type_, 1)], DTYPE[type_])
            y = one if op == "dot" else None
            naturals = [oracle.natural_type(each, type_) for each in LISTS.get(op, [op])]
            for out in TYPES:
                for fast in (False, True):
                    got = tally.reduce_array(NOBODY, op, type_, one, y, out=out, fast=fast)
                    narrow = fast and type_ in FLOATS and op == "mean" and out != "f64"
                    free = any(each in ANY_FLOAT for each in LISTS.get(op, [op])) and out in FLOATS
                    if out in naturals or (free and not narrow):
                        if op not in LISTS:
                            assert got[0] == out, (op, type_, out, fast, got)
                        else:
                            assert out in [v[0] for v in got]
                    else:
                        assert got == "ETYPE", (op, type_, out, fast, got)


def status_of(asked):
    value = tally.fresh_values(tally.VALUES_MAX)
    one = np.ones(1, np.uint64)
    return tally.outcomes(tally.c_reduce(None, asked, one.ctypes.data, None, 1, value), value)


def test_problems_that_make_no_sense():
    assert status_of(None) == "EINVAL"
    for op in (0, -1, 26, 255, 1 << 30):
        asked = tally.problem("sum", "f64")
        asked.op = op
        assert status_of(asked) == "EINVAL"
        asked = tally.problem("sum", "f64")
        asked.also[0] = op
        assert op == 0 or status_of(asked) == "EINVAL"
    for type_ in (0, -1, 13, 255):
        asked = tally.problem("sum", "f64")
        asked.type = type_
        assert status_of(asked) == "ETYPE"
        asked = tally.problem("sum", "f64")
        asked.out = type_
        assert type_ == 0 or status_of(asked) == "ETYPE"
    assert status_of(tally.problem("sum", "u32", also=["and", "or"])) == "ETYPE"
    assert status_of(tally.problem("and", "u32", also=["xor"])) == "ETYPE"
    assert isinstance(tally.reduce(NOBODY, "and", "u32", None, 0, also=["and", "sum"]), list)
    assert status_of(tally.problem("user", "u32")) == "EINVAL"  # no operator
    operator = tally.UserOperator(np.minimum, "f64", 0, True)
    assert status_of(tally.problem("sum", "f64", user=operator)) == "EINVAL"
    assert status_of(tally.problem("prod", "f64", also=["user"], user=operator)) == "ETYPE"
    for missing in ("combine", "identity"):
        operator = tally.UserOperator(np.minimum, "f64", 0, True)
        setattr(operator.struct, missing, tally.COMBINE() if missing == "combine" else None)
        assert status_of(tally.problem(operator, "f64")) == "EINVAL"
    assert status_of(tally.problem("describe", "f64", also=["describe"] * 3)) == "EINVAL"  # 36 values
    nine = tally.problem("describe", "f64", also=["describe", "describe"] + ["sum"] * 5)
    assert tally.value_count(nine) == tally.VALUES_MAX
    one = np.ones(1, np.uint64)
    value = tally.fresh_value()
    for x, y, n, op in ((None, None, 1, "mean"), (one, None, 1, "dot"), (None, one, 1, "dot"),
                        (one, one, 1, "mean"), (None, one, 0, "mean"), (one, None, 1 << 61, "var"),
                        (one, one, 1 << 61, "dot")):
        asked = tally.problem(op, "f64")
        status = tally.c_reduce(None, asked, x if x is None else x.ctypes.data,
                                y if y is None else y.ctypes.data, n, value)
        assert tally.outcome(status, value) == "EINVAL", (op, n)
    assert tally.c_reduce(None, tally.problem("mean", "f64"), one.ctypes.data, None, 1, None) == tally.EINVAL
    assert tally.problem_values(tally.problem("mean", "f64"), None) == tally.EINVAL
    assert tally.problem_value_op(None, 0) == 0
    for type_ in TYPES:
        for op in ("argmin", "argmax"):
            assert tally.reduce(NOBODY, op, type_, None, 0) == "EINVAL"


# ---- The oracles of others ------------------------------------------------------------------------

def doubles(values):
    return np.asarray(values, np.float64)


def bits(value):
    return int(np.float64(value).view(np.uint64))


def test_as_python_and_mpfr_say(devices):
    """f64: `statistics` (exact fractions, roots rounded once), math.fsum, MPFR; nothing of oracle.py."""
    g = data.rng("others")
    for _ in range(150):
        n = int(g.integers(2, 60))
        kind = g.integers(0, 4)
        x = doubles(g.normal(size=n) if kind == 0 else 1e8 + g.random(n) if kind == 1 else
                    g.normal(size=n) * np.exp2(g.integers(-200, 200, n)) if kind == 2 else
                    g.integers(-5, 6, n))
        raw, exact = x.view(np.uint64), [F(v) for v in x.tolist()]
        device = devices[int(g.integers(0, len(devices)))]

        def ours(op, **kw):
            return tally.reduce_array(device, op, "f64", raw, **kw)
        assert ours("mean") == ("f64", bits(float(statistics.mean(exact))) if any(x) else 0)
        assert ours("var") == ("f64", bits(statistics.pvariance(x.tolist())))
        assert ours("var", ddof=1) == ("f64", bits(statistics.variance(x.tolist())))
        assert ours("std") == ("f64", bits(statistics.pstdev(x.tolist())))
        assert ours("std", ddof=1) == ("f64", bits(statistics.stdev(x.tolist())))
        assert ours("norm1") == ("f64", bits(math.fsum(map(abs, x.tolist()))))
        squares = gmpy2.mpq(sum(v * v for v in exact))
        for out in FLOATS:  # MPFR: exact in a wide format, then one root or one rounding
            # its context's own clearing of subnormals happens in the same rounding
            wide = gmpy2.mpfr(squares, 0, gmpy2.context(precision=20000))
            assert gmpy2.mpq(wide) == squares
            root = oracle._context(out).sqrt(wide)
            once = gmpy2.mpfr(squares, 0, oracle._context(out))
            assert ours("norm2", out=out) == (out, oracle.bits_of_double(out, float(root)))
            assert ours("sumsq", out=out) == (out, oracle.bits_of_double(out, float(once)))
        y = doubles(g.normal(size=n))
        dot = tally.reduce_array(device, "dot", "f64", raw, y.view(np.uint64))
        if hasattr(math, "sumprod"):  # exact for floats
            assert dot == ("f64", bits(math.sumprod(x.tolist(), y.tolist())))
        assert dot == ("f64", bits(float(sum(a * F(b) for a, b in zip(exact, y.tolist())))))
    for type_ in INTS:
        raw = data.make(g, "full", type_, 50)
        values = raw.tolist()
        assert tally.reduce_array(NOBODY, "mean", type_, raw) == ("f64", bits(float(F(sum(values), 50))))
        assert tally.reduce_array(NOBODY, "var", type_, raw)[1] == bits(float(statistics.pvariance(map(F, values))))
        assert tally.reduce_array(NOBODY, "std", type_, raw, ddof=1)[1] == bits(statistics.stdev(values))


def test_as_numpy_says(devices):
    g = data.rng("numpy")
    for type_, real in (("f16", np.float16), ("f32", np.float32), ("f64", np.float64), ("i8", np.int8),
                        ("u64", np.uint64), ("i32", np.int32)):
        for n in (1, 3, 50, 5000):
            raw = data.make(g, "specials" if type_ in FLOATS and g.random() < .5 else kinds(type_)[0], type_, n)
            values = raw.view(real)
            for op, f in (("argmin", np.argmin), ("argmax", np.argmax), ("nonzero", np.count_nonzero),
                          ("any", np.any), ("all", np.all)):
                if op[:3] == "arg" and (values == 0).any():
                    continue  # NumPy takes -0 and +0 for the same
                got = tally.reduce_array(devices[int(g.integers(0, len(devices)))], op, type_, raw)
                with np.errstate(all="ignore"):
                    want = int(f(values))
                assert got[1] == want, (op, type_, n, data.SEED)
            if type_ in FLOATS:
                assert tally.reduce_array(NOBODY, "nans", type_, raw)[1] == np.isnan(values).sum()
