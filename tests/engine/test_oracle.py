"""The oracles are right: held against each other, fractions.Fraction, math.fsum and brute force.

None of this calls the library; it is what lets the other tests be believed.
"""

import fractions
import math
import statistics
import struct

import gmpy2
import numpy as np
import pytest

import data
import oracle
from tally import FLOATS, INTS, SIZE

F = fractions.Fraction


def test_units_are_the_values():
    g = data.rng("units")
    for type_ in FLOATS:
        for bits in data.finite_bits(g, type_, 500).tolist():
            value = float(oracle.to_f64(type_, np.array([bits], f"u{SIZE[type_]}"))[0])
            assert F(oracle.units_of_bits(type_, bits), 1 << oracle.UNIT) == F(value)


@pytest.mark.parametrize("type_", FLOATS)
def test_mpfr_rounds_as_integers_do(type_):
    g = data.rng("rounding " + type_)
    precision, emax, emin = oracle.FORMAT[type_]
    tried = [0, 1, -1]
    for bits in data.finite_bits(g, type_, 300).tolist() + [0, 1, 2, oracle.INF[type_] - 1,
                                                            oracle.INF[type_] - 2]:
        here = oracle.units_of_bits(type_, bits)
        ahead = oracle.round_units_by_integers(type_, here)
        assert ahead == bits or here == 0
        away = oracle.units_of_bits(type_, (bits & (oracle.SIGN[type_] - 1)) + 1) - abs(here)
        for change in (0, away // 2, away // 2 + 1, away // 2 - 1, away // 4, away - 1):
            tried += [here + change, here - change]
    tried += [int(g.integers(1, 1 << 62)) << int(s) for s in g.integers(0, 2150, 300)]
    for units in tried:
        assert oracle.round_units(type_, units) == oracle.round_units_by_integers(type_, units), units


def test_f64_rounding_is_that_of_fractions():
    g = data.rng("fractions")
    for _ in range(300):
        units = int(g.integers(-(1 << 62), 1 << 62)) << int(g.integers(0, 2000))
        want = struct.unpack("<Q", struct.pack("<d", float(F(units, 1 << oracle.UNIT))))[0]
        assert oracle.round_units("f64", units) == want


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("kind", ["normal", "bits", "cancel", "subnormal", "loguniform", "huge"])
def test_exact_sum_is_that_of_fractions_and_fsum(type_, kind):
    g = data.rng(f"sum {type_} {kind}")
    for n in (1, 2, 17, 400):
        raw = data.make(g, kind, type_, n)
        values = oracle.to_f64(type_, raw).tolist()
        total = sum((F(v) for v in values), F(0))
        exact = oracle.Exact().add(type_, raw)
        assert F(exact.units, 1 << oracle.UNIT) == total
        if kind != "huge" and abs(total) < F(2) ** 1020:
            try:
                got = math.fsum(values)
            except OverflowError:  # fsum's intermediate overflow
                continue
            assert oracle.round_units("f64", exact.units) == \
                struct.unpack("<Q", struct.pack("<d", got if got else 0.0))[0]


def test_f32_to_small_types_rounds_once():
    g = data.rng("small")
    for type_ in ("f16", "bf16"):
        raw = np.concatenate([data.finite_bits(g, "f32", 3000),
                              data.floats("f32", g.normal(size=2000))])
        got = oracle.f32_to(type_, raw.view(np.float32))
        for bits, want in zip(raw.tolist(), got.tolist()):
            units = oracle.units_of_bits("f32", bits)
            rounded = oracle.round_units(type_, units) if units else \
                (oracle.SIGN[type_] if bits else 0)
            assert rounded == want, hex(bits)


def test_exactly_constructs_what_it_says():
    g = data.rng("exactly")
    for type_ in FLOATS:
        for _ in range(20):
            noise = data.finite_bits(g, type_, 10)
            units = oracle.units_of_bits(type_, int(data.finite_bits(g, type_, 1)[0]))
            raw = data.exactly(g, type_, units, noise)
            assert sum(oracle.units_of_bits(type_, b) for b in raw.tolist()) == units


def test_tree_is_the_written_one():
    """The vectorised tree against a plain transcription of the definition."""
    def plain(f, x, commutative):
        leaves = []
        for start in range(0, len(x), 4096):
            leaf = x[start:start + 4096]
            lanes = {}
            for i, value in enumerate(leaf):
                lane = i % 32 if commutative else i // 128
                lanes[lane] = f(lanes[lane], value) if lane in lanes else value
            if commutative:
                for h in (16, 8, 4, 2, 1):
                    for j in range(h):
                        if j + h in lanes:
                            lanes[j] = f(lanes[j], lanes.pop(j + h))
            else:
                for s in (1, 2, 4, 8, 16):
                    for j in range(0, 32, 2 * s):
                        if j + s in lanes:
                            lanes[j] = f(lanes[j], lanes.pop(j + s))
            assert list(lanes) == [0]
            leaves.append(lanes[0])
        while len(leaves) > 1:
            leaves = [f(*leaves[i:i + 2]) if i + 1 < len(leaves) else leaves[i]
                      for i in range(0, len(leaves), 2)]
        return leaves[0]

    g = data.rng("tree")
    mask = (1 << 64) - 1
    for n in [1, 2, 31, 32, 33, 127, 128, 129, 300, 4095, 4096, 4097, 4300, 8192, 12289, 20481]:
        x = data.random_bits(g, "f64", n)
        for commutative in (True, False):
            got = oracle.tree(lambda a, b: a * np.uint64(3) + b, x, commutative)[0]
            assert int(got) == plain(lambda a, b: (a * 3 + b) & mask, x.tolist(), commutative)


def test_integer_oracles():
    g = data.rng("integers")
    for type_ in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"):
        for kind in data.INT_KINDS:
            raw = data.make(g, kind, type_, 200)
            assert oracle.integer_sum(raw) == sum(raw.tolist())
            want = math.prod(raw.tolist())
            low, high = oracle.integer_range("i64" if type_[0] == "i" else "u64")
            got = oracle.integer_product(raw)
            assert got == want or not (low <= want <= high or low <= got <= high)


# ---- Quotients and roots --------------------------------------------------------------------------

def some_fractions(g, type_):
    """Values of a type, half-way and a hair beside, and fractions of every size."""
    for bits in data.finite_bits(g, type_, 100).tolist() + [1, 2, oracle.INF[type_] - 1, oracle.INF[type_] - 2]:
        here = oracle.units_of_bits(type_, bits)
        step = oracle.units_of_bits(type_, (bits & oracle.SIGN[type_] - 1) - 1) - abs(here) if bits & \
            oracle.SIGN[type_] - 1 else -1
        for change in (0, F(step, 2), F(step, 4), -F(step, 2), F(1, 10 ** 400), -F(1, 10 ** 400)):
            for hair in (0, F(1, 3 ** 800), -F(1, 3 ** 800)):
                yield (F(here) + change + hair) / (1 << oracle.UNIT)
    for _ in range(200):
        yield F(int(g.integers(-(1 << 62), 1 << 62)), int(g.integers(1, 1 << 62))) * \
            F(2) ** int(g.integers(-1300, 1100))


@pytest.mark.parametrize("type_", FLOATS)
def test_quotients_round_as_mpfr_and_fractions_do(type_):
    g = data.rng("quotients " + type_)
    for value in some_fractions(g, type_):
        got = oracle.round_ratio(type_, value.numerator, value.denominator)
        want = gmpy2.mpfr(gmpy2.mpq(value), 0, oracle._context(type_))
        assert got & oracle.SIGN[type_] - 1 == oracle.bits_of_double(type_, abs(float(want))), value
        assert got & oracle.SIGN[type_] == (oracle.SIGN[type_] if value < 0 else 0)
        if type_ == "f64" and abs(value) < F(2) ** 1023:
            assert got & (1 << 63) - 1 == struct.unpack("<Q", struct.pack("<d", abs(float(value))))[0]


@pytest.mark.parametrize("type_", FLOATS)
def test_roots_are_the_nearest(type_):
    """By squares alone: no root is taken here."""
    g = data.rng("roots " + type_)
    for value in some_fractions(g, type_):
        value = abs(value)
        for square in (value, value * value):
            bits = oracle.round_root(type_, square.numerator, square.denominator)
            if bits in (0, oracle.INF[type_]):
                if bits == 0:
                    assert square <= F(oracle.units_of_bits(type_, 1), 2 << oracle.UNIT) ** 2
                else:
                    top = oracle.units_of_bits(type_, oracle.INF[type_] - 1)
                    half = (top - oracle.units_of_bits(type_, oracle.INF[type_] - 2)) // 2
                    assert square >= F(top + half, 1 << oracle.UNIT) ** 2
                continue
            below, here = (oracle.units_of_bits(type_, b) for b in (bits - 1, bits))
            above = oracle.units_of_bits(type_, bits + 1) if bits + 1 < oracle.INF[type_] else 2 * here - below
            low, high = (F(here + other, 2 << oracle.UNIT) ** 2 for other in (below, above))
            assert low < square < high or (bits % 2 == 0 and square in (low, high)), (value, hex(bits))


def test_statistics_are_those_of_the_module():
    """Its mean and variances are exact, and its deviations rounded once."""
    g = data.rng("module")
    for _ in range(60):
        raw = data.make(g, str(g.choice(["normal", "loguniform", "cancel", "subnormal"])), "f64",
                        int(g.integers(2, 30)))
        if int(np.isfinite(raw.view(np.float64)).all()) and abs(raw.view(np.float64)).max() < 1e100:
            values = [F(v) for v in raw.view(np.float64).tolist()]
            for op, ddof, f in (("var", 0, statistics.pvariance), ("var", 1, statistics.variance),
                                ("std", 0, statistics.pstdev), ("std", 1, statistics.stdev)):
                want = struct.unpack("<Q", struct.pack("<d", float(f(values))))[0]
                assert oracle.statistic(op, "f64", raw, ddof=ddof) == ("f64", want), (op, ddof)
    for type_ in INTS:
        raw = data.make(g, "full", type_, 20)
        want = float(statistics.pvariance([F(v) for v in raw.tolist()]))
        assert oracle.statistic("var", type_, raw)[1] == struct.unpack("<Q", struct.pack("<d", want))[0]


def test_positions_by_looking():
    def less(a, b):
        return (a, math.copysign(1, a)) < (b, math.copysign(1, b))

    g = data.rng("looking")
    for kind in ("zeros", "specials", "normal", "bits"):
        for n in (1, 2, 10, 60):
            raw = data.make(g, kind, "f32", n)
            values = oracle.to_f64("f32", raw).tolist()
            for op in ("argmin", "argmax"):
                at = 0
                for i, v in enumerate(values):
                    if math.isnan(values[at]):
                        break
                    if math.isnan(v) or (less(v, values[at]) if op == "argmin" else less(values[at], v)):
                        at = i
                assert oracle.position(op, "f32", raw) == ("u64", at)
