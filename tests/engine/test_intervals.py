"""The arithmetic that bounds its own errors: each interval holds the exact value, each certain bit is right.

What a column's sum is known by - s + e, within b - goes through the kernels that divide, take roots, make variances and
round. Fractions tell what the exact values at the ends of the interval are. A bound that is infinite, or a value that is
not certain, promises nothing; the tests count that there are few of these where there is room."""

import itertools
import os
import subprocess

import gmpy2
import numpy as np
import pytest

import data
import oracle
from tally import CODE, FLOATS

INTERVALS = os.environ.get("INTERVALS")
COUNT = 1024
NUMBER = {"sum": 1, "mean": 8, "var": 9, "std": 10, "norm2": 12}  # as in include/tally.h
ISAS = ["baseline", "avx2", "avx512", "neon"]

pytestmark = pytest.mark.skipif(not INTERVALS, reason="INTERVALS names the program that runs the kernels")


@pytest.fixture(params=ISAS)
def isa(request, isas):
    if request.param not in isas:
        pytest.skip(f"this machine has no {request.param}")
    return request.param


def run(kernel, *arguments, isa, arrays, words=0):
    """What the program makes of arrays of COUNT doubles."""
    done = subprocess.run([INTERVALS, isa, kernel, str(COUNT), *map(str, arguments)], stdout=subprocess.PIPE,
                          input=b"".join(np.ascontiguousarray(a, np.float64).tobytes() for a in arrays), check=True)
    if words:  # bits as Python's integers: NumPy compares its own with these as doubles
        bits, ok = np.frombuffer(done.stdout, np.uint64).reshape(-1, COUNT)
        return bits.tolist(), ok
    return np.frombuffer(done.stdout, np.float64).reshape(-1, COUNT)


def q(x):
    return gmpy2.mpq(float(x))


def spread(g, low, high):
    """Doubles of either sign, their exponents drawn from [low, high)."""
    return np.ldexp(g.uniform(1, 2, COUNT), g.integers(low, high, COUNT)) * g.choice([-1.0, 1.0], COUNT)


def sums(g, low, high):
    """s, e, b: sums of all kinds, exact ones and ones with bounds of all sizes."""
    s = spread(g, low, high)
    few = g.integers(0, 4, COUNT) == 0
    s = np.where(few, np.round(s / np.spacing(s) / 2**45) * np.spacing(s) * 2**45, s)  # few bits
    at = g.integers(54, 110, COUNT)
    e = np.ldexp(s * g.uniform(-1, 1, COUNT), -at) * (g.integers(0, 3, COUNT) > 0)
    b = np.ldexp(np.abs(s) * g.uniform(0, 1, COUNT), -g.integers(30, 120, COUNT)) * (g.integers(0, 3, COUNT) > 0)
    b = np.where(g.integers(0, 16, COUNT) == 0, 2.0**-1074, b)  # which a division makes 0
    return s, e, b


def counts(g):
    n = np.floor(2.0 ** g.uniform(0, 26, COUNT))
    return np.where(g.integers(0, 4, COUNT) == 0, 2.0 ** g.integers(0, 26, COUNT), n)


def ends(s, e, b):
    return q(s) + q(e) - q(b), q(s) + q(e) + q(b)


def known(bound):
    return np.isfinite(bound)


@pytest.mark.parametrize("low,high", [(-40, 40), (-960, -860), (-1074, 1000)])
def test_mean(isa, low, high):
    g = data.rng(f"mean of an interval {isa} {low}")
    s, e, b = sums(g, low, high)
    n = counts(g)
    high_, rest, bound = run("mean", isa=isa, arrays=[s, e, b, n])
    for i in np.flatnonzero(known(bound)):
        middle = q(high_[i]) + q(rest[i])
        for end in ends(s[i], e[i], b[i]):
            assert abs(end / q(n[i]) - middle) <= q(bound[i]), (s[i], e[i], b[i], n[i])
    assert known(bound).all() or low != -40


@pytest.mark.parametrize("low,high", [(-40, 40), (-960, -860), (-1074, 1000)])
def test_root(isa, low, high):
    g = data.rng(f"root of an interval {isa} {low}")
    s, e, b = sums(g, low, high)
    s, e = np.abs(s), e * np.sign(s)
    # Squares, and their neighbours, whose root is the square's and 1 / (2 root) more or less.
    root = np.floor(2.0 ** g.uniform(26.45, 26.5, COUNT))
    is_square, off = g.integers(0, 4, COUNT) == 0, g.integers(-1, 2, COUNT)
    s, e, b = np.where(is_square, root * root + off, s), np.where(is_square, 0, e), np.where(is_square, 0, b)
    high_, rest, bound = run("root", isa=isa, arrays=[s, e, b])
    assert not bound[is_square & (off == 0)].any()
    for i in np.flatnonzero(known(bound)):
        least, most = (q(high_[i]) + q(rest[i]) + way * q(bound[i]) for way in (-1, 1))
        first, last = ends(s[i], e[i], b[i])
        assert most >= 0 and last <= most * most and (least < 0 or least * least <= max(first, 0)), (s[i], e[i], b[i])
    assert known(bound).all() or low != -40


def moments(g, near, low, high):
    """Sums s + e +- off of n elements and q + qe +- off2 of their squares, as elements can have: n q >= s^2."""
    s, e, off = sums(g, low, high)
    n = counts(g) + 2
    more = 1 + 2.0 ** g.integers(-40, 40, COUNT)  # the variance is down to 2^-40 of the square of the mean
    square = s * s * more / n
    at = g.integers(54, 110, COUNT)
    qe = np.ldexp(square * g.uniform(-1, 1, COUNT), -at) * (g.integers(0, 3, COUNT) > 0)
    off2 = np.ldexp(square * g.uniform(0, 1, COUNT), -g.integers(30, 120, COUNT)) * (g.integers(0, 3, COUNT) > 0)
    return s, e, off, square, qe, off2, n


@pytest.mark.parametrize("root", [0, 1])
@pytest.mark.parametrize("near", [0, 2.0**-100, 2.0**-40])
@pytest.mark.parametrize("low,high", [(-40, 40), (-400, 440)])
def test_variance(isa, near, low, high, root):
    g = data.rng(f"variance of intervals {isa} {near} {low} {root}")
    s, e, off, square, qe, off2, n = moments(g, near, low, high)
    ddof = float(g.choice([0, 1, 0.5]))
    high_, rest, bound = run("variance", ddof, root, near, isa=isa, arrays=[s, e, off, square, qe, off2, n])
    for i in np.flatnonzero(known(bound)):
        least, most = (q(high_[i]) + q(rest[i]) + way * q(bound[i]) for way in (-1, 1))
        squares = ends(square[i], qe[i], off2[i])
        # The sum of magnitudes is at most sqrt(n q); a little more covers the root's rounding.
        lost = q(near) * q(np.nextafter(np.sqrt(float(q(n[i]) * squares[1])), np.inf))
        divisor = q(n[i]) * (q(n[i]) - q(ddof))
        first, last = ends(s[i], e[i], off[i])
        for of in (first - lost, last + lost):
            for total in squares:
                value = (q(n[i]) * total - of * of) / divisor
                if root:
                    inside = value <= most * most and (least < 0 or least * least <= max(value, 0))
                else:
                    inside = least <= value <= most
                assert inside, (s[i], e[i], off[i], square[i], qe[i], off2[i], n[i], ddof)
    assert known(bound).mean() > 0.6 or low != -40, known(bound).mean()


def near_ties(g, out):
    """s + e +- b near values of the type, near halves between two of them, and near 2^k above and below all of them."""
    precision, top, bottom = oracle.FORMAT[out]
    bits = data.finite_bits(g, out, COUNT)
    units = [oracle.units_of_bits(out, int(x) & (oracle.SIGN[out] - 1)) for x in bits]
    step = [abs(oracle.units_of_bits(out, (int(x) & (oracle.SIGN[out] - 1)) + 1) - u) for x, u in zip(bits, units)]
    s = np.array([float(gmpy2.mpq(u, 1 << oracle.UNIT) + gmpy2.mpq(w * int(h), 2 << oracle.UNIT))
                  for u, w, h in zip(units, step, g.integers(0, 2, COUNT))])
    beyond = np.ldexp(1.0, np.minimum(g.choice([top, bottom], COUNT) + g.integers(-4, 5, COUNT), 1000)) * g.choice([1, 1.0625, 1.75], COUNT)
    s = np.where(np.isfinite(s) & (g.integers(0, 8, COUNT) > 0), s, beyond) * g.choice([-1.0, 1.0], COUNT)
    e = np.ldexp(s * g.uniform(-1, 1, COUNT), -g.integers(53, 115, COUNT)) * (g.integers(0, 3, COUNT) > 0)
    e = np.where(np.abs(e) <= np.spacing(np.abs(s)) / 2, e, 0)  # |e| is at most half of s's last bit
    b = np.ldexp(np.abs(s), -g.integers(40, 125, COUNT)) * (g.integers(0, 2, COUNT) > 0)
    return s, e, b


def rounded(out, value):
    return oracle.round_ratio(out, int(value.numerator), int(value.denominator))


@pytest.mark.parametrize("out", FLOATS)
def test_round(isa, out):
    g = data.rng(f"rounding of an interval {isa} {out}")
    s, e, b = near_ties(g, out)
    s[0], e[0], b[0] = 2.0**55, 4, 1  # half way between two f64, with a bound of 1
    bits, ok = run("round", CODE[out], isa=isa, arrays=[s, e, b], words=1)
    for i in np.flatnonzero(ok):
        for end in ends(s[i], e[i], b[i]):
            assert rounded(out, end) == bits[i] or end == 0, (s[i], e[i], b[i])
    exact = b == 0
    assert ok[exact].mean() > 0.5 and ok.mean() > 0.4, (ok[exact].mean(), ok.mean())


def tied_pairs(g, out, factors):
    """Double-doubles s + e: values of the type, and numbers half way between two, times a factor; or just beside."""
    bits = data.finite_bits(g, out, COUNT)
    s, e = np.zeros(COUNT), np.zeros(COUNT)
    for i in range(COUNT):
        b = int(bits[i]) & (oracle.SIGN[out] - 1)
        here, following = oracle.units_of_bits(out, b), oracle.units_of_bits(out, b + 1)
        near = gmpy2.mpq(2 * here + int(g.integers(0, 2)) * (following - here), 2 << oracle.UNIT) * int(factors[i])
        near += near * gmpy2.mpq(int(g.integers(-1, 2)), 1 << int(g.integers(*[(56, 104), (103, 108)][i % 2])))
        if abs(near) < gmpy2.mpq(2) ** 1000:
            s[i] = float(near)
            e[i] = float(near - q(s[i]))
    sign = g.choice([-1.0, 1.0], COUNT)
    return s * sign, e * sign


@pytest.mark.parametrize("mean", [0, 1])
@pytest.mark.parametrize("out", FLOATS)
def test_pair(out, mean):
    """The kernels' sums as pairs of doubles, and their means."""
    g = data.rng(f"pair {out} {mean}")
    n = counts(g)
    s, e = tied_pairs(g, out, n if mean else np.ones(COUNT))
    s[0], e[0], n[0] = (2.0**54, 1, 3) if mean else (2.0**53 + 2, 1, 1)
    bits, ok = run("pair", CODE[out], mean, isa="host", arrays=[s, e, n], words=1)
    for i in np.flatnonzero(ok):
        value = q(s[i]) + q(e[i])
        if value == 0:
            assert bits[i] == 0
            continue
        assert rounded(out, value / q(n[i]) if mean else value) == bits[i], (s[i], e[i], n[i])
    assert ok.mean() > 0.6, ok.mean()


def rounded_root(out, value):
    return oracle.round_root(out, int(value.numerator), int(value.denominator))


@pytest.mark.parametrize("op,rough", [("sum", 0), ("mean", 0), *itertools.product(["var", "std", "norm2"],
                                                                                [0, 2.0**-100, 2.0**-81])])
@pytest.mark.parametrize("out", FLOATS)
@pytest.mark.parametrize("low,high", [(-20, 20), (-380, 470)])
def test_doubles(out, op, rough, low, high):
    """The kernels' values from sums in two doubles. Given rough, Q is off by rough Q, S by rough sqrt(n Q)."""
    g = data.rng(f"doubles {out} {op} {rough} {low}")
    s, e, _, square, qe, _, n = moments(g, 0, low, high)
    near = g.integers(0, 3, COUNT) == 0  # roots near ties
    few = np.round(s / np.spacing(s) / 2**42) * np.spacing(s) * 2**42
    square, qe = np.where(near & (op == "norm2"), few * few, square), np.where(near, 0, qe)
    if op in ("sum", "mean"):
        s, e = tied_pairs(g, out, n if op == "mean" else np.ones(COUNT))
    ddof = float(g.choice([0, 1, 0.5, 0.1]))
    bits, ok = run("doubles", CODE[out], NUMBER[op], ddof, rough, isa="host", arrays=[s, e, square, qe, n], words=1)
    for i in np.flatnonzero(ok):
        total, squares, count = q(s[i]) + q(e[i]), q(square[i]) + q(qe[i]), q(n[i])
        if op in ("sum", "mean"):
            assert rounded(out, total / count if op == "mean" else total) == bits[i], (s[i], e[i], n[i])
            continue
        lost = q(rough) * q(np.nextafter(np.sqrt(float(count * squares)), np.inf))
        for more in (squares * (1 - q(rough)), squares * (1 + q(rough))):
            for of in (total - lost, total + lost):
                value = more if op == "norm2" else (count * more - of * of) / (count * (count - q(ddof)))
                made = rounded(out, value) if op == "var" else rounded_root(out, max(value, 0))
                assert made == bits[i], (s[i], e[i], square[i], qe[i], n[i], ddof)
    assert ok.mean() > 0.5 or low != -20 or ddof == 0.1, ok.mean()


@pytest.mark.parametrize("op", ["sum", "mean"])
@pytest.mark.parametrize("out", FLOATS)
def test_near_sum(out, op):
    """A sum that is only near, and its mean."""
    g = data.rng(f"near sum {out} {op}")
    n = np.minimum(counts(g), 2.0**31)
    s, _ = tied_pairs(g, out, n if op == "mean" else np.ones(COUNT))
    off = np.ldexp(np.abs(s), -g.integers(20, 60, COUNT)) * (g.integers(0, 3, COUNT) > 0)
    bits, ok = run("near", CODE[out], NUMBER[op], 0, 0, isa="host", arrays=[s, off, s, s, n], words=1)
    for i in np.flatnonzero(ok):
        for end in (q(s[i]) - q(off[i]), q(s[i]) + q(off[i])):
            assert rounded(out, end / q(n[i]) if op == "mean" else end) == bits[i] or end == 0, (s[i], off[i], n[i])
    assert ok.mean() > 0.3 or out == "f64", ok.mean()


@pytest.mark.parametrize("depth", [0, 1, 64, 4096])
@pytest.mark.parametrize("op", ["var", "std", "norm2"])
@pytest.mark.parametrize("out", FLOATS)
def test_near_sums(out, op, depth):
    """Values of sums that are off by as much as additions of so many doubles, or of pairs of them (depth 0), may be."""
    g = data.rng(f"near sums {out} {op} {depth}")
    s, e, _, square, qe, _, n = moments(g, 0, -20, 20)
    keep = n <= 2**19
    s, e, square, qe, n = (np.where(keep, a, a[keep][0]) for a in (s, e, square, qe, n))
    ddof = float(g.choice([0, 1, 0.5, 0.1]))
    bits, ok = run("near", CODE[out], NUMBER[op], ddof, depth, isa="host", arrays=[s, e, square, qe, n], words=1)
    for i in np.flatnonzero(ok):
        total, squares, count = q(s[i]), q(square[i]), q(n[i])
        if depth == 0:
            total, squares = total + q(e[i]), squares + q(qe[i])
            of_square = (4 * count + 64) * (count + 8) / gmpy2.mpq(2) ** 106
            of_sum = (count + 32) ** 2 / gmpy2.mpq(2) ** 106
        else:
            of_square = of_sum = (depth + 5) / gmpy2.mpq(2) ** 53
        lost = of_sum * q(np.nextafter(np.sqrt(float(count * squares)), 0))
        for more in (squares * (1 - of_square), squares * (1 + of_square)):
            for of in (total - lost, total + lost):
                value = more if op == "norm2" else (count * more - of * of) / (count * (count - q(ddof)))
                made = rounded(out, value) if op == "var" else rounded_root(out, max(value, 0))
                assert made == bits[i], (s[i], e[i], square[i], qe[i], n[i], ddof)
    few = out == "f64" and depth > 0 or ddof == 0.1 and depth == 0 and op != "norm2"
    assert ok.mean() > 0.4 or few, ok.mean()


def batch_of_floats(g, p, spread, digits=24):
    """2^p floats whose exponents are `spread` apart, as bad for sums as they can be: many of all ones, odd ones, halves."""
    high = int(g.integers(-126 + spread, 128))
    least = high - spread
    kind = g.integers(0, 4)
    exponent = {0: np.full(1 << p, high), 1: g.choice([high, least], 1 << p), 2: g.integers(least, high + 1, 1 << p),
                3: np.full(1 << p, high - int(g.integers(0, spread + 1)))}[int(kind)]
    exponent[0], exponent[-1] = high, least
    mantissa = np.where(g.integers(0, 3, 1 << p) > 0, 2**digits - 1, g.integers(2**(digits - 1), 2**digits, 1 << p) | 1)
    x = np.ldexp(mantissa.astype(np.float64), exponent - digits + 1)
    if g.integers(0, 2):
        x *= g.choice([-1.0, 1.0], 1 << p)
    x = np.where(g.integers(0, 16, 1 << p) == 0, 0.0, x) if p > 3 and g.integers(0, 3) == 0 else x
    assert (x == x.astype(np.float32)).all()
    return x


PLAIN, COMPENSATED = 53 - 24, 2 * 53 - 24  # what spread + p, and spread + 2 p, may be


@pytest.mark.parametrize("p", [0, 1, 6, 8])
def test_batch(p):
    """Batches whose spread satisfies a condition of certain/batch.h lose nothing; with one more, some do."""
    g = data.rng(f"batch {p}")
    lost = 0
    for turn in range(12):
        near = [PLAIN - p, COMPENSATED - 2 * p][turn % 2] + [0, 0, 0, 1, -1, 2][turn // 2]
        spreads = [min(max(near, 0), 253) for _ in range(COUNT >> p)]
        x = np.concatenate([batch_of_floats(g, p, spread) for spread in spreads])
        one, several, plain, s, e, square, rest, above, more, _ = run("batch", p, isa="host", arrays=[x])
        for b in range(COUNT >> p):
            of = [q(v) for v in x[b << p: (b + 1) << p]]
            some = np.abs(x[b << p: (b + 1) << p])
            exponents = np.maximum(np.frexp(some[some > 0])[1] - 1, -127)
            spread = int(exponents.max() - exponents.min()) if len(exponents) else 0
            assert one[b] == several[b] and one[b] // 16 == spread
            says = int(one[b])
            if says & 1:
                assert q(plain[b]) == sum(of), of
                assert q(square[b]) + q(rest[b]) == q(above[b]) + q(more[b]) == sum(v * v for v in of), of
            if says & 2:
                assert q(s[b]) + q(e[b]) == sum(of), of
            assert says & 3 == (spread + p <= PLAIN) + 2 * (spread + 2 * p <= COMPENSATED)
            lost += q(plain[b]) != sum(of)
    assert lost > 0 or p == 0


@pytest.mark.parametrize("digits", [8, 11])
@pytest.mark.parametrize("p", [3, 4])
def test_batch_in_floats(p, digits):
    """The same of sums in floats of elements of 8 digits, as bf16 has, and 11, as f16."""
    g = data.rng(f"batch in floats {p} {digits}")
    lost, says = 0, 4 if digits == 8 else 8
    for more in (0, 0, 0, 1, -1, 2):
        x = np.concatenate([batch_of_floats(g, p, 24 - digits - p + more, digits) for _ in range(COUNT >> p)])
        one, *_, in_floats = run("batch", p, isa="host", arrays=[x])
        for b in range(COUNT >> p):
            of = x[b << p: (b + 1) << p]
            fits = int(one[b]) // 16 + p + digits <= 24 and np.abs(of).max() < 2.0**(127 - p)
            assert bool(int(one[b]) & says) == fits
            exact = np.isfinite(in_floats[b]) and q(in_floats[b]) == sum(q(v) for v in of)
            assert exact or not int(one[b]) & says, of
            lost += not exact
    assert lost > 0


def test_batch_with_specials():
    """An infinity or a NaN decides a plain sum, and satisfies no condition beside other sums."""
    g = data.rng("batch with specials")
    special = g.choice([np.inf, -np.inf, np.nan], COUNT >> 3)
    x = np.concatenate([batch_of_floats(g, 3, 60) for _ in special])
    at = g.integers(0, 8, COUNT >> 3)
    x[np.arange(0, COUNT, 8) + at] = special
    one, several, plain, *_ = run("batch", 3, isa="host", arrays=[x])
    n = COUNT >> 3
    assert (one[:n].astype(int) & 3 == 3).all() and (several[:n].astype(int) & 3 == 0).all()
    assert np.array_equal(plain[:n], special, equal_nan=True)
