"""Every built-in operator, on every type, device and length edge, against the oracles.

One test per operator and type. Inside, an array is laid between two forbidden pages, flush with
either one or at an odd byte, and every device must give the oracle's bits. A device is opened once
and used for everything, so that what one call leaves behind would show in the next.
"""

import math

import numpy as np
import pytest

import data
import oracle
import tally
from tally import FLOATS, INTS, OPS, SIZE, TYPES

OFFSETS = [0, 1, 3, 5, 7, 13, 31, 33, 63, ~0, ~1, ~3, ~6]


@pytest.fixture(scope="module")
def arena():
    return data.Arena((1 << 20) + 4096)


def compare(devices, op, type_, kind, raw, address, offset, want, out=None, fast=False):
    for device in devices:
        got = tally.reduce(device, op, type_, address, len(raw), out=out, fast=fast)
        if got != want:
            pytest.fail(f"op={op} type={type_} device={device.spec} n={len(raw)} offset={offset} "
                        f"kind={kind} out={out} seed={data.SEED}: got {show(got)}, "
                        f"want {show(want)}")


def show(result):
    return result if isinstance(result, str) else f"{result[0]} {result[1]:#x}"


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_around_every_edge(op, type_, devices, arena):
    g = data.rng(f"edges {op} {type_}")
    kinds = data.kinds(op, type_)
    for n in data.EDGES:
        chosen = kinds if n < 10 else g.choice(kinds, min(3, len(kinds)), replace=False)
        for kind in chosen:
            raw = data.make(g, str(kind), type_, n)
            want = oracle.answer(op, type_, raw)
            for offset in (int(g.choice(OFFSETS)), ~0):
                address = arena.place(raw, offset)
                compare(devices, op, type_, kind, raw, address, offset, want)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_longer(op, type_, devices, arena):
    g = data.rng(f"longer {op} {type_}")
    kinds = data.kinds(op, type_)
    for n in data.LONGER:
        kind = str(g.choice(kinds))
        raw = data.make(g, kind, type_, n)
        want = oracle.answer(op, type_, raw)
        offset = int(g.choice(OFFSETS))
        compare(devices, op, type_, kind, raw, arena.place(raw, offset), offset, want)


@pytest.fixture(scope="module")
def large_arena():
    return data.Arena((9 << 19) + 4096)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_long(op, type_, devices, few_devices, large_arena):
    """Long enough to be shared out among threads."""
    g = data.rng(f"long {op} {type_}")
    for i, n in enumerate(data.long_lengths(type_)):
        kind = str(g.choice(data.kinds(op, type_)))
        raw = data.make(g, kind, type_, n)
        want = oracle.answer(op, type_, raw)
        offset = int(g.choice(OFFSETS))
        address = large_arena.place(raw, offset)
        compare(devices if i % 2 else few_devices, op, type_, kind, raw, address, offset, want)
    if type_ in FLOATS and op in ("sum", "prod", "min", "max"):
        # one special among ordinary numbers, in the hands of one thread of several
        n = data.long_lengths(type_)[3]
        raw = data.make(g, "near-one", type_, n)
        inf = oracle.INF[type_]
        specials = {inf | 1: oracle.NAN[type_]}
        if op == "sum":
            specials.update({inf: inf, inf | oracle.SIGN[type_]: inf | oracle.SIGN[type_]})
        for special, want in specials.items():
            for place in (0, n // 2, n - 1, int(g.integers(0, n))):
                was, raw[place] = raw[place], special
                compare(few_devices, op, type_, f"{special:#x} at {place}", raw, raw.ctypes.data, 0,
                        (type_, want))
                raw[place] = was


@pytest.mark.parametrize("type_", TYPES)
def test_millions(type_, devices):
    """Several million elements: every thread has many chunks, and the last one is cut short."""
    g = data.rng("millions " + type_)
    n = int(g.integers(2_500_000, 3_500_000))
    kind = str(g.choice(["normal", "bits", "blocks", "cancel"])) if type_ in FLOATS else "full"
    raw = data.make(g, kind, type_, n)
    room = np.zeros(raw.nbytes + 64, np.uint8)
    room[1:1 + raw.nbytes] = raw.view(np.uint8)
    many = [d for d in devices if d.spec in ("cpu", "auto") or "threads=3" in (d.spec or "")]
    for op in OPS:
        used = raw
        if op == "prod":  # long products of anything else are all inf, 0 or out of range
            used = data.make(g, "near-one" if type_ in FLOATS else "units", type_, n)
            room[1:1 + raw.nbytes] = used.view(np.uint8)
        compare(many, op, type_, kind, used, room.ctypes.data + 1, 1, oracle.answer(op, type_, used))
        room[1:1 + raw.nbytes] = raw.view(np.uint8)


@pytest.mark.parametrize("op", OPS)
def test_all_values_of_half_types(op, devices):
    """All 2^16 bit patterns: each alone, then those that are finite together, then everything."""
    for type_ in ("f16", "bf16"):
        every = np.arange(1 << 16, dtype=np.uint16)
        for bits in every.tolist():
            want = oracle.canonical(type_, bits) if op in ("sum", "prod", "min", "max") else bits
            got = tally.reduce(devices[bits % len(devices)], op, type_,
                               every.ctypes.data + 2 * bits, 1)
            assert got == (type_, want), (op, type_, hex(bits), data.SEED)
        g = data.rng("all 16 " + op)
        finite = every[(every & oracle.INF[type_]) != oracle.INF[type_]]
        for raw in (every, finite, finite[finite < 0x8000], finite[finite >= 0x8000]):
            raw = raw.copy()
            for order in (raw, raw[::-1].copy(), g.permutation(raw)):
                want = oracle.answer(op, type_, order)
                compare(devices, op, type_, "all values", order, order.ctypes.data, 0, want)


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_all_values_widen_exactly(type_, devices):
    every = np.arange(1 << 16, dtype=np.uint16)
    wide = oracle.to_f64(type_, every).view(np.uint64)
    narrow = oracle.f32_to  # f16 -> bf16 and back, through f32, which holds both
    for bits in every.tolist():
        device = devices[bits % len(devices)]
        want = oracle.canonical("f64", int(wide[bits]))
        got = tally.reduce(device, "sum", type_, every.ctypes.data + 2 * bits, 1, out="f64")
        assert got == ("f64", want), (type_, hex(bits), data.SEED)
    other = "bf16" if type_ == "f16" else "f16"
    want = narrow(other, oracle.to_f32(type_, every)).tolist()
    for bits in every.tolist():
        got = tally.reduce(tally.NOBODY, "sum", type_, every.ctypes.data + 2 * bits, 1, out=other)
        assert got == (other, want[bits]), (type_, hex(bits), data.SEED)


def test_specials_at_every_position(devices):
    """One NaN (quiet, signalling, negative) or infinity anywhere in an array."""
    g = data.rng("positions")
    for type_ in FLOATS:
        inf, sign = oracle.INF[type_], oracle.SIGN[type_]
        for n in (1, 2, 31, 33, 127, 129, 700, 4097, 9000):
            base = data.make(g, "near-one", type_, n)
            places = {0, n - 1, n // 2, min(n - 1, 4095), min(n - 1, 4096)} | \
                set(g.integers(0, n, 4).tolist())
            for place in places:
                for special in (inf | 1, oracle.NAN[type_] | sign | 3, inf, inf | sign):
                    raw = base.copy()
                    raw[place] = special
                    for op in ("sum", "prod", "min", "max"):
                        device = devices[int(g.integers(0, len(devices)))]
                        want = oracle.answer(op, type_, raw)
                        compare([device], op, type_, f"{special:#x} at {place}", raw,
                                raw.ctypes.data, 0, want)


def test_one_element_decides_at_every_position(devices):
    """min, max, and, or, xor, sum where a single element differs: none may be skipped or doubled."""
    g = data.rng("decides")
    for type_ in TYPES:
        for n in (1, 2, 3, 16, 33, 64, 65, 129, 257):
            for place in range(n):
                raw = np.zeros(n, tally.DTYPE[type_])
                raw[place] = 1
                device = devices[int(g.integers(0, len(devices)))]
                for op in ("sum", "max", "or", "xor"):
                    compare([device], op, type_, f"1 at {place}", raw, raw.ctypes.data, 0,
                            oracle.answer(op, type_, raw))
                raw = np.full(n, 1, tally.DTYPE[type_])
                raw[place] = 0
                for op in ("min", "and", "prod"):
                    compare([device], op, type_, f"0 at {place}", raw, raw.ctypes.data, 0,
                            oracle.answer(op, type_, raw))


def test_nothing_gives_the_identity(devices):
    for device in devices:
        for type_ in TYPES:
            for op in OPS:
                empty = np.zeros(0, tally.DTYPE[type_])
                want = oracle.answer(op, type_, empty)
                assert tally.reduce(device, op, type_, None, 0) == want, (device, op, type_)
                assert tally.reduce(device, op, type_, 1, 0) == want, (device, op, type_)


def test_which_types_go_together(devices):
    """A sum may be any floating type; every other of these operators has its natural type alone."""
    for device in devices[:4]:
        for op in OPS:
            for type_ in TYPES:
                one = np.array([oracle.ONE.get(type_, 1)], tally.DTYPE[type_])
                natural = oracle.answer(op, type_, one)[0]
                for out in TYPES:
                    for fast in (False, True):
                        got = tally.reduce_array(device, op, type_, one, out=out, fast=fast)
                        good = out == natural or (
                            op == "sum" and out in FLOATS and
                            (not fast or type_ in INTS or out == "f64"))
                        if good:
                            assert got[0] == out, (op, type_, out, fast)
                            if op == "sum":
                                assert got[1] == oracle.ONE.get(out, 1)
                        else:
                            assert got == "ETYPE", (op, type_, out, fast, got)


# ---- Integers at the edge of their range --------------------------------------------------------

def test_integer_sums_at_the_edge(devices):
    """The sum may pass its type's limits on the way, but not at the end."""
    g = data.rng("integer edge")
    for type_ in ("i64", "u64"):
        low, high = oracle.integer_range(type_)
        for n in (1, 2, 3, 8, 33, 1000, 5000, 70000):
            for total in (low, low + 1, low - 1, high, high - 1, high + 1, 0, high // 2, 3 * high,
                          2 * low, high + (high - low) + 1, low - (high - low) - 1):
                # equal shares, then noise that cancels, then whatever the last element can take
                share = [total // n] * n
                share[0] += total - sum(share)
                for i in range(0, n - 1, 2):
                    room = min(high - share[i], share[i + 1] - low)
                    if room > 0:
                        d = int(g.integers(0, room, endpoint=True, dtype=np.uint64))
                        share[i] += d
                        share[i + 1] -= d
                if any(not low <= s <= high for s in share):
                    continue
                raw = np.array(share, tally.DTYPE[type_])
                g.shuffle(raw)
                want = oracle.answer("sum", type_, raw)
                assert (want == "ERANGE") == (not low <= total <= high)
                compare(devices, "sum", type_, f"total {total}", raw, raw.ctypes.data, 0, want)


def test_integer_products_at_the_edge(devices):
    """Exactly at, just under and just past the limits; and a zero rescues any overflow."""
    g = data.rng("product edge")
    cases = {
        "i64": [[-2] * 63, [2] * 63, [2] * 62, [-2] * 62 + [-1], [2] * 62 + [-2], [-2] * 64,
                [3037000499, 3037000499], [3037000500, 3037000500], [-(1 << 63)], [-(1 << 63), 1],
                [-(1 << 63), -1], [-(1 << 63), -1, -1], [-1, -1, -(1 << 63)], [(1 << 63) - 1, -1],
                [1 << 62, -2], [1 << 62, 2], [1 << 32, 1 << 31], [-(1 << 32), 1 << 31],
                [7, 73, 127, 337, 92737, 649657], [-(1 << 63), -(1 << 63), 0],
                [-(1 << 63), 0, 2], [5] * 27, [5] * 28, [-5] * 27, [10] * 18, [10] * 19],
        "u64": [[2] * 63, [2] * 64, [1 << 32, (1 << 32) - 1], [1 << 32, 1 << 32], [(1 << 64) - 1],
                [(1 << 64) - 1, 1], [(1 << 64) - 1, 2], [3, 5, 17, 257, 641, 65537, 6700417],
                [(1 << 64) - 1] * 5 + [0], [10] * 19, [10] * 20, [15] * 16, [16] * 16],
        "i8": [[-128] * 9, [-128] * 8, [-128] * 10, [-2] * 63, [-2] * 64, [127] * 9, [127] * 10],
        "u8": [[255] * 8, [255] * 9, [2] * 63, [2] * 64, [255] * 9 + [0]],
        "i16": [[-32768] * 4, [-32768] * 5, [2] * 62 + [-2], [-2] * 62 + [2]],
        "u16": [[65535] * 4, [65535] * 5, [256] * 8, [256] * 7],
        "i32": [[-(1 << 31)] * 2, [-(1 << 31)] * 3, [-(1 << 31), 1 << 30, 2, -2], [65536] * 4],
        "u32": [[(1 << 32) - 1] * 2, [(1 << 32) - 1] * 3, [65536] * 4, [65536] * 3 + [65535]],
    }
    for type_, lists in cases.items():
        for factors in lists:
            for n in sorted({len(factors), 67, 130, 1000, 4099, 20000}):
                if n < len(factors):
                    continue
                raw = np.ones(n, tally.DTYPE[type_])
                raw[g.choice(n, len(factors), replace=False)] = np.array(factors, tally.DTYPE[type_])
                if n % 2 and type_[0] == "i" and n > len(factors):
                    raw[raw == 1] = g.choice([1, -1], int((raw == 1).sum()))
                want = oracle.answer("prod", type_, raw)
                if len(factors) == n:
                    p = math.prod(factors)
                    low, high = oracle.integer_range("i64" if type_[0] == "i" else "u64")
                    assert (want == "ERANGE") == (not low <= p <= high)
                compare(devices, "prod", type_, f"{factors[:3]}*{len(factors)}", raw,
                        raw.ctypes.data, 0, want)
                raw[int(g.integers(0, n))] = 0
                compare(devices, "prod", type_, "a zero", raw, raw.ctypes.data, 0,
                        ("i64" if type_[0] == "i" else "u64", 0))


def test_sums_of_small_integers_never_wrap(devices):
    """Long runs of the same extreme: any narrow lane counter would wrap."""
    for type_ in INTS:
        low, high = oracle.integer_range(type_)
        for value in (low, high):
            for n in (255, 256, 257, 65537, 200_001):
                if not -(1 << 63) <= value * n < 1 << (64 if type_[0] == "u" else 63):
                    continue
                raw = np.full(n, value, tally.DTYPE[type_])
                compare(devices, "sum", type_, f"all {value}", raw, raw.ctypes.data, 0,
                        oracle.answer("sum", type_, raw))


# ---- Fast ---------------------------------------------------------------------------------------

def test_fast_sums_are_sums(devices):
    """No promise on the bits: but within the textbook bound n * u * sum|x|, and of the right type."""
    g = data.rng("fast")
    for type_ in FLOATS:
        ulp = 2.0 ** -oracle.FORMAT[type_][0]
        for n in (0, 1, 2, 3, 17, 64, 129, 1000, 4097, 70001):
            values = g.random(n) - 0.25
            raw = data.floats(type_, values)
            exact = oracle.to_f64(type_, raw)
            true = math.fsum(exact.tolist())
            bound = max(n, 1) * 2.0 ** -11 * math.fsum(np.abs(exact).tolist())
            for out in (None, "f64"):
                for device in devices:
                    got = tally.reduce_array(device, "sum", type_, raw, fast=True, out=out)
                    assert got[0] == (out or type_)
                    value = float(oracle.to_f64(got[0], np.array([got[1]], tally.DTYPE[got[0]]))[0])
                    slack = bound if type_ in ("f16", "bf16") else max(n, 1) * ulp * bound * 2 ** 11
                    slack += abs(true) * 2.0 ** -oracle.FORMAT[got[0]][0]
                    assert abs(value - true) <= slack, (type_, out, device.spec, n, data.SEED)


def test_fast_leaves_every_other_operator_as_it_is(devices):
    g = data.rng("fast others")
    for type_ in TYPES:
        for op in OPS:
            if op == "sum" and type_ in FLOATS:
                continue
            for n in (0, 5, 100, 5000):
                raw = data.make(g, data.kinds(op, type_)[0], type_, n)
                compare(devices, op, type_, "fast", raw, raw.ctypes.data, 0,
                        oracle.answer(op, type_, raw), fast=True)


# ---- Not written to, and not one byte past ------------------------------------------------------

def test_arrays_are_only_read(devices):
    """Arrays on read-only pages, filling them from guard page to guard page."""
    g = data.rng("read only")
    arena = data.Arena(16 * 4096)
    for type_ in TYPES:
        n = arena.size // SIZE[type_]
        for op in OPS:
            raw = data.make(g, data.kinds(op, type_)[0], type_, n)
            arena.protect(True)
            address = arena.place(raw, 0)
            arena.protect(False)
            compare(devices, op, type_, "read-only", raw, address, 0, oracle.answer(op, type_, raw))
    arena.protect(True)
