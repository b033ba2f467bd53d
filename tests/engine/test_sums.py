"""Floating sums chosen to be hard: cancellation, half-way cases, overflow on the way, far-away bits.

The main tool is data.exactly(): it builds an array whose exact sum is a chosen integer of 2^-1074,
so that a sum can be put exactly half-way between two results, or the smallest possible bit beside it.
"""

import numpy as np
import pytest

import data
import oracle
import tally
from tally import DTYPE, FLOATS
from test_reduce import compare


def check(devices, type_, name, raw, outs=FLOATS):
    raw = np.ascontiguousarray(raw)
    exact = oracle.Exact().add(type_, raw)
    for out in outs:
        compare(devices, "sum", type_, name, raw, raw.ctypes.data, 0, (out, exact.round(out)), out)


def orders(g, raw):
    """The same numbers in several orders: as they are, backwards, sorted, shuffled."""
    yield raw
    yield raw[::-1].copy()
    yield np.sort(raw)
    yield g.permutation(raw)


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("out", FLOATS)
def test_half_way(type_, out, few_devices):
    """Sums half-way between two values of the result type, and one smallest bit to either side."""
    g = data.rng(f"half-way {type_} {out}")
    smallest = oracle.units_of_bits(type_, 1)
    top = oracle.INF[out]
    reach = oracle.units_of_bits(type_, oracle.INF[type_] - 1)
    field = oracle.FORMAT[out][0] - 1
    bits = [0, 1, 2, 3, (1 << field) - 1, 1 << field, (1 << field) + 1, top - 1, top - 2,
            (2 << field) - 1, (2 << field)]
    bits += data.finite_bits(g, out, 60).tolist()
    for b in bits:
        b &= oracle.SIGN[out] - 1
        here = oracle.units_of_bits(out, b)
        # beyond the largest value the next one would be where the exponent goes on
        step = oracle.units_of_bits(out, b + 1) - here if b + 1 < top else \
            here - oracle.units_of_bits(out, b - 1)
        if here > 4 * reach:
            continue
        for tail in (0, smallest, -smallest):
            units = here + step // 2 + tail
            if units % smallest:
                units = units // smallest * smallest
            if g.random() < 0.5:
                units = -units
            noise = g.choice(["none", "finite", "pairs"])
            if noise == "none" or type_ == "f64" and abs(units) > reach // 2:
                extra = np.zeros(0, DTYPE[type_])
            elif noise == "finite":
                extra = data.finite_bits(g, type_, int(g.integers(1, 40)))
            else:
                extra = data.finite_bits(g, type_, int(g.integers(1, 400)))
                extra = np.concatenate([extra, extra ^ DTYPE[type_](oracle.SIGN[type_])])
            raw = data.exactly(g, type_, units, extra)
            check(few_devices, type_, f"{b:#x} + half + {tail}", raw, [out])


@pytest.mark.parametrize("type_", FLOATS)
def test_far_away_bit(type_, few_devices):
    """Thousands of ordinary numbers; the rounding hangs on one smallest bit, wherever it stands."""
    g = data.rng("far " + type_)
    p = oracle.FORMAT[type_][0]
    one = oracle.units_of_bits(type_, oracle.ONE[type_])
    for n in (4, 40, 1000, 5000, 20000):
        base = np.zeros(n, DTYPE[type_])
        base[0] = oracle.ONE[type_]
        base[1] = oracle.round_units(type_, one >> p)  # half a unit in the last place of 1
        for where in (2, max(2, n // 2), n - 1):
            for tiny in (0, 1, 1 | oracle.SIGN[type_]):
                raw = base.copy()
                raw[where] = tiny
                want = oracle.ONE[type_] + (tiny == 1)
                assert oracle.Exact().add(type_, raw).round(type_) == want
                check(few_devices, type_, f"tiny {tiny:#x} at {where}", raw)
                raw = np.roll(raw, int(g.integers(1, n)))
                check(few_devices, type_, f"tiny {tiny:#x} at {where}, moved", raw)


@pytest.mark.parametrize("type_", FLOATS)
def test_overflow(type_, few_devices):
    """Past the largest value on the way but not at the end; and the boundary to infinity."""
    g = data.rng("overflow " + type_)
    p, emax, _ = oracle.FORMAT[type_]
    largest = oracle.INF[type_] - 1
    minus = oracle.SIGN[type_]
    for n in (1, 2, 7, 100, 1000, 3000, 5000):
        ups = np.full(n, largest, DTYPE[type_])
        both = np.concatenate([ups, ups | DTYPE[type_](minus)])
        for raw in orders(g, both):
            check(few_devices, type_, "up and down", raw)
        for rest in (0, 1, 1 | minus, oracle.ONE[type_], largest):
            for raw in orders(g, np.concatenate([both, np.array([rest], DTYPE[type_])])):
                check(few_devices, type_, f"up and down and {rest:#x}", raw)
        check(few_devices, type_, "only up", ups)
    half = 1 << (emax - p - 1 + oracle.UNIT)  # half of the largest value's last place
    top = oracle.units_of_bits(type_, largest)
    smallest = oracle.units_of_bits(type_, 1)
    for units, inf in ((top + half, True), (top + half - smallest, False),
                       (top + half + smallest, True), (top + 2 * half, True),
                       (top + half // 2, False), (top, False)):
        for sign in (1, -1):
            for _ in range(4):
                noise = data.finite_bits(g, type_, int(g.integers(0, 30)))
                raw = data.exactly(g, type_, sign * units, noise)
                got = oracle.Exact().add(type_, raw).round(type_)
                assert (got & (minus - 1) == oracle.INF[type_]) == inf
                check(few_devices, type_, "the edge of infinity", raw)


@pytest.mark.parametrize("type_", FLOATS)
def test_cancellation(type_, few_devices):
    g = data.rng("cancellation " + type_)
    minus = DTYPE[type_](oracle.SIGN[type_])
    for n in (1, 5, 33, 500, 2049, 9000):
        for kind in ("bits", "normal", "huge", "subnormal", "blocks"):
            half = data.make(g, kind, type_, n)
            both = np.concatenate([half, half ^ minus])
            for raw in orders(g, both):
                check(few_devices, type_, f"x and -x of {kind}", raw, [type_])
                assert oracle.Exact().add(type_, raw).round(type_) == 0
            # the same with something left over: a subnormal, or a single bit anywhere
            for rest in (1, int(minus) | 1, int(data.subnormals(g, type_, 1)[0]),
                         int(data.finite_bits(g, type_, 1)[0])):
                raw = np.concatenate([both, np.array([rest], DTYPE[type_])])
                check(few_devices, type_, f"x, -x of {kind} and {rest:#x}", g.permutation(raw))


@pytest.mark.parametrize("type_", FLOATS)
def test_subnormals(type_, few_devices):
    g = data.rng("subnormals " + type_)
    for n in (1, 2, 3, 64, 1000, 4097, 30000):
        for raw in (data.subnormals(g, type_, n), np.full(n, 1, DTYPE[type_]),
                    np.full(n, 1 | oracle.SIGN[type_], DTYPE[type_]),
                    np.full(n, (1 << (oracle.FORMAT[type_][0] - 1)) - 1, DTYPE[type_])):
            check(few_devices, type_, "subnormals", raw)
    # normal numbers that leave a subnormal
    for _ in range(60):
        units = oracle.units_of_bits(type_, int(data.subnormals(g, type_, 1)[0]))
        noise = data.finite_bits(g, type_, int(g.integers(1, 200)))
        check(few_devices, type_, "down to a subnormal", data.exactly(g, type_, units, noise))


@pytest.mark.parametrize("type_", FLOATS)
def test_one_outlier(type_, few_devices):
    """One huge number among tiny ones (and the reverse) at each kind of place."""
    g = data.rng("outlier " + type_)
    field = oracle.FORMAT[type_][0] - 1
    top = (oracle.INF[type_] >> field) - 1
    for n in (2, 33, 257, 4097, 16385, 40000):
        for place in {0, 1, n - 1, n // 2, min(n - 1, 255), min(n - 1, 4095), min(n - 1, 4096),
                      int(g.integers(0, n))}:
            for low, high in ((0, top), (1, top), (top // 2, top), (0, top // 2), (top, 0),
                              (top // 2, top // 2 + 12)):
                raw = data.exponents(g, type_, n, np.full(n, low))
                raw[place] = data.exponents(g, type_, 1, np.array([high]))[0]
                check(few_devices, type_, f"exponent {high} among {low} at {place}", raw, [type_])


@pytest.mark.parametrize("type_", FLOATS)
def test_changing_magnitude(type_, few_devices):
    """Blocks, ramps and sawteeth of exponents: no window on the exponents lasts."""
    g = data.rng("magnitude " + type_)
    field = oracle.FORMAT[type_][0] - 1
    top = (oracle.INF[type_] >> field) - 1
    for n in (100, 4096, 10007, 33000):
        for block in (1, 2, 8, 64, 500, 4096):
            levels = g.integers(0, top + 1, n // block + 1)
            for exponent in (np.repeat(levels, block)[:n], np.arange(n) // block % (top + 1),
                             top - np.arange(n) // block % (top + 1),
                             (np.arange(n) // block % 2) * top,
                             top // 2 + (np.arange(n) // block % 3) * (top // 7)):
                raw = data.exponents(g, type_, n, exponent)
                check(few_devices, type_, f"blocks of {block}", raw, [type_, "f64"])


@pytest.mark.parametrize("type_", FLOATS)
def test_many_of_the_same(type_, devices):
    """2^20 copies of one number with all its mantissa bits set: the longest carries there are."""
    field = oracle.FORMAT[type_][0] - 1
    top = (oracle.INF[type_] >> field) - 1
    many = [d for d in devices if d.spec is None or "threads=1," in d.spec or "threads=3" in d.spec]
    for exponent in (0, 1, top // 2, top - 22 if top > 40 else 3, top):
        for sign in (0, oracle.SIGN[type_]):
            raw = np.full((1 << 20) + 5, ((exponent + 1) << field) - 1 | sign, DTYPE[type_])
            check(many, type_, f"copies of exponent {exponent}", raw, [type_, "f64"])


@pytest.mark.parametrize("type_", FLOATS)
def test_many_of_the_same_in_wild_company(type_, few_devices):
    """Tens of thousands of one full mantissa among numbers of every other magnitude: a counter kept
    for each exponent runs over, upwards and downwards and back."""
    g = data.rng("company " + type_)
    field = oracle.FORMAT[type_][0] - 1
    top = (oracle.INF[type_] >> field) - 1
    n = 70_000
    for exponent in (0, 1, top // 2, top):
        same = DTYPE[type_](((exponent + 1) << field) - 1)
        for signs in ("up", "down", "up then down", "down then up and more"):
            raw = np.full(n, same, DTYPE[type_])
            sign = DTYPE[type_](oracle.SIGN[type_])
            if signs == "down":
                raw |= sign
            elif signs == "up then down":
                raw[n // 2:] |= sign
            elif signs == "down then up and more":
                raw[:n // 3] |= sign
            where = np.arange(int(g.integers(0, 40)), n, 40)
            company = data.finite_bits(g, type_, len(where))  # which comes to nothing in the end
            half = len(where) // 2
            company[half:2 * half] = company[:half] ^ sign
            company[2 * half:] = 0
            raw[where] = g.permutation(company)
            check(few_devices, type_, f"{signs}, exponent {exponent}", raw, [type_, "f64"])


@pytest.mark.parametrize("type_", FLOATS)
def test_signed_zeros(type_, devices):
    minus = oracle.SIGN[type_]
    for n in (1, 2, 3, 31, 32, 33, 64, 129, 4096, 4097, 70000):
        raw = np.full(n, minus, DTYPE[type_])
        check(devices, type_, "all -0", raw)
        for place in {0, n - 1, n // 2}:
            raw = np.full(n, minus, DTYPE[type_])
            raw[place] = 0
            check(devices, type_, f"+0 at {place}", raw)
            if n >= 2:
                raw[place] = oracle.ONE[type_]
                raw[(place + 1) % n] = oracle.ONE[type_] | minus
                check(devices, type_, "1 - 1 among -0", raw)
            raw = np.zeros(n, DTYPE[type_])
            raw[place] = minus
            check(devices, type_, f"-0 at {place}", raw)


def test_nothing_is_plus_zero(devices):
    for device in devices:
        for type_ in FLOATS:
            for out in FLOATS:
                assert tally.reduce(device, "sum", type_, None, 0, out=out) == (out, 0)


@pytest.mark.parametrize("type_", FLOATS)
def test_specials_together(type_, few_devices):
    inf, minus = oracle.INF[type_], oracle.SIGN[type_]
    g = data.rng("specials " + type_)
    choices = {"+inf": inf, "-inf": inf | minus, "nan": oracle.NAN[type_], "snan": inf | 1,
               "-nan": oracle.NAN[type_] | minus, "-snan": inf | minus | 1, "last nan": inf | (inf - 1) & ~inf | 1,
               "max": inf - 1, "-max": inf - 1 | minus}
    names = list(choices)
    for n in (2, 3, 40, 300, 5000, 20000):
        for a in names:
            for b in names:
                raw = data.make(g, "normal", type_, n)
                i, j = g.choice(n, 2, replace=False)
                raw[i], raw[j] = choices[a], choices[b]
                check(few_devices, type_, f"{a} at {i}, {b} at {j}", raw)
    # infinities in chunks of their own, far from each other
    raw = data.make(g, "bits", type_, 50000)
    raw[7] = inf
    check(few_devices, type_, "+inf", raw)
    raw[49999] = inf | minus
    check(few_devices, type_, "+inf ... -inf", raw)


def test_textbook_cases(devices):
    """Well-known sums that go wrong elsewhere."""
    d = np.float64
    for values in ([1e16, 1.0, -1e16], [1e308] * 1000 + [-1e308] * 1000, [1e308] * 1000 + [-1e308] * 999,
                   [1e300, -1e300, 1e-300] * 5000, [1e300, 1e-300, -1e300, -1e-300] * 2500 + [5e-324],
                   [0.1] * 10, [0.1] * 1000003, [2.0 ** 53, 1.0, 1.0], [2.0 ** 53, 1.0, 2.0 ** -1074],
                   [1.0, 2.0 ** -53, 2.0 ** -1074], [1.0, 2.0 ** -53, -2.0 ** -1074],
                   [1.0, 2.0 ** -53], [1 + 2.0 ** -52, 2.0 ** -53], [2.0 ** -1022, -2.0 ** -1074],
                   [2.0 ** 1023, 2.0 ** 1023, -2.0 ** 1023], [1.7976931348623157e308, 2.0 ** 970],
                   [1.7976931348623157e308, 2.0 ** 969, 2.0 ** 969], [2.0 ** 970] * 3 +
                   [1.7976931348623157e308, -2.0 ** 971],
                   [1.7976931348623157e308, 2.0 ** 970, -2.0 ** -1074],
                   [2.0 ** e for e in range(-1074, 1024)], [-2.0 ** e for e in range(-1074, 1023)],
                   [(-1.0) ** e * 2.0 ** e for e in range(-1074, 1024)],
                   [1 / (i + 1) * (-1) ** i for i in range(100000)]):
        raw = np.array(values, d).view(np.uint64)
        check(devices, "f64", f"{values[:4]}...", raw)
        check(devices, "f64", f"{values[:4]}... backwards", raw[::-1])
    f = np.float32
    for values in ([16777216.0] + [1.0] * 33333, [1e38] * 50 + [-1e38] * 49, [0.1] * 100001,
                   [3.4028235e38, 2.0 ** 103], [3.4028235e38, 2.0 ** 103, -1e-45],
                   [1.0, 2.0 ** -24, 1e-45], [1.0, 2.0 ** -24, -1e-45]):
        check(devices, "f32", f"{values[:4]}...", np.array(values, f).view(np.uint32))


@pytest.mark.parametrize("type_", FLOATS)
def test_every_kind_in_every_result_type(type_, few_devices):
    g = data.rng("kinds " + type_)
    for kind in data.FLOAT_KINDS:
        for n in (1, 2, 31, 250, 4097, 18000):
            raw = data.make(g, kind, type_, n)
            check(few_devices, type_, kind, raw)


@pytest.mark.parametrize("type_", FLOATS)
def test_two_and_three_terms(type_, few_devices):
    """Short sums of random finite bits with close exponents: every alignment of two mantissas."""
    g = data.rng("short " + type_)
    field = oracle.FORMAT[type_][0] - 1
    top = (oracle.INF[type_] >> field) - 1
    for n in (2, 3, 5):
        for _ in range(400):
            middle = int(g.integers(0, top + 1))
            exponent = np.clip(middle + g.integers(-field - 3, field + 4, n), 0, top)
            raw = data.exponents(g, type_, n, exponent)
            exact = oracle.Exact().add(type_, raw)
            device = few_devices[int(g.integers(0, len(few_devices)))]
            for out in FLOATS:
                compare([device], "sum", type_, "short", raw, raw.ctypes.data, 0,
                        (out, exact.round(out)), out)
