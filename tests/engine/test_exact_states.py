"""The state of an exact sum: one state for one multiset of numbers, whatever way led there.

The saved bytes are compared, not only the rounded sums: equal multisets must save to equal bytes.
"""

import struct

import numpy as np
import pytest

import data
import oracle
import shapes
import tally
from tally import DTYPE, FLOATS, NOBODY, SIZE, State

KINDS = ["normal", "bits", "cancel", "subnormal", "zeros", "minus-zeros", "huge", "blocks", "specials",
         "all-bits", "outlier"]


class Sum(State):
    """The state of a sum of f64, or of another floating type, which numbers of any of them go into."""

    def __init__(self, op="sum", type_="f64", handle=None, **kw):
        super().__init__(op, type_, handle, **kw)

    def add(self, type_, array, device=NOBODY):
        if type_ == self.type:
            self.feed(array, device=device)
            return self
        return self.merge(State("sum", type_).feed(array, device=device))

    def round(self, type_):
        """The exact sum, rounded once to a type: that divided by 1."""
        got = self.divided(1, type_)
        if type_ == self.type:
            assert self.value() == got
        return got

    def reload(self):
        return self.load(self.save())


SIZE_OF_SUM = 48 + 8 * (4 + 68) + 8


def pieces(g, raw, many):
    points = np.sort(g.integers(0, len(raw) + 1, many))
    return np.split(raw, points)


def build(g, type_, parts, devices):
    """States over the parts, merged in a random order and nesting until one is left."""
    stack = []
    for part in parts:
        acc = Sum(type_=type_)
        acc.add(type_, np.ascontiguousarray(part), devices[int(g.integers(0, len(devices)))])
        if g.random() < 0.2:  # through its bytes
            acc = acc.reload()
        stack.append(acc)
    while len(stack) > 1:
        i, j = g.choice(len(stack), 2, replace=False).tolist()
        stack[i].merge(stack[j])
        del stack[j]
    return stack[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type_", FLOATS)
def test_any_order_cut_and_nesting(type_, kind, devices):
    g = data.rng(f"acc {type_} {kind}")
    for n in (1, 2, 50, 700, 5000, 20000):
        raw = data.make(g, kind, type_, n)
        exact = oracle.Exact().add(type_, raw)
        whole = Sum(type_=type_).add(type_, raw, devices[int(g.integers(0, len(devices)))])
        saved = whole.save()
        assert whole.count() == n
        for out in FLOATS:
            assert whole.round(out) == (out, exact.round(out)), (type_, kind, n, out, data.SEED)
        for many in (1, 3, 12):
            for order in (raw, raw[::-1], g.permutation(raw)):
                other = build(g, type_, pieces(g, order, many), devices)
                assert other.count() == n
                assert other.save() == saved, (type_, kind, n, many, data.SEED)
                for out in FLOATS:
                    assert other.round(out) == (out, exact.round(out))
        assert whole.save() == saved


def test_widened_numbers_are_the_same_numbers(devices):
    """f16, bf16 and f32 numbers added as f64: the same multiset, the same bytes."""
    g = data.rng("widened")
    for type_ in ("f16", "bf16", "f32"):
        raw = data.finite_bits(g, type_, 3000)
        wide = oracle.to_f64(type_, raw).view(np.uint64)
        for device in devices:
            assert Sum().add(type_, raw, device).save() == Sum().add("f64", wide, device).save()


def test_types_mix():
    g = data.rng("mix")
    for _ in range(20):
        exact, acc, parts = oracle.Exact(), Sum(), []
        for type_ in g.choice(FLOATS, 8).tolist():
            raw = data.make(g, str(g.choice(["bits", "normal", "cancel"])), type_, 300)
            exact.add(type_, raw)
            acc.add(type_, raw)
            parts.append((type_, raw))
        other = Sum()
        for type_, raw in parts[::-1]:
            other.merge(Sum().add(type_, raw))
        assert other.save() == acc.save()
        for out in FLOATS:
            assert acc.round(out) == (out, exact.round(out)), data.SEED


def test_nothing_added():
    acc = Sum()
    assert acc.count() == 0
    for out in FLOATS:
        assert acc.round(out) == (out, 0)
    saved = acc.save()
    assert Sum().load(saved).save() == saved
    acc.merge(Sum())
    assert acc.save() == saved
    assert acc.feed_at(NOBODY, None, 0) == "OK"
    assert acc.save() == saved
    acc.add("f64", data.floats("f64", [1.0, 2.0, np.inf]))
    assert acc.save() != saved
    acc.clear()
    assert acc.save() == saved and acc.count() == 0


def test_clear_forgets_everything():
    g = data.rng("clear")
    acc = Sum()
    for kind in KINDS:
        acc.add("f64", data.make(g, kind, "f64", 500))
        acc.clear()
        raw = data.make(g, "bits", "f64", 300)
        acc.add("f64", raw)
        assert acc.save() == Sum().add("f64", raw).save()
        acc.clear()


def test_merging_with_itself_doubles():
    g = data.rng("double")
    for kind in KINDS:
        raw = data.make(g, kind, "f64", 777)
        acc = Sum().add("f64", raw)
        exact = oracle.Exact().add("f64", raw)
        for k in range(40):
            acc.merge(acc)
            exact.units *= 2
            assert acc.count() == 777 << (k + 1)
            for out in FLOATS:
                assert acc.round(out) == (out, exact.round(out)), (kind, k, data.SEED)
        twice = Sum().add("f64", raw).add("f64", raw)
        assert Sum().add("f64", raw).merge(Sum().add("f64", raw)).save() == \
            twice.save()


def test_2_64_numbers_fit():
    """Doubling 63 times: 2^63 of the largest doubles are still held exactly, saved and loaded, and as
    many again but one; 2^64 are refused, and leave the state as it is."""
    for bits in (oracle.INF["f64"] - 1, oracle.INF["f64"] - 1 | 1 << 63, 1, 1 | 1 << 63):
        acc = Sum().add("f64", np.array([bits], np.uint64))
        rest = Sum()  # of 2^k - 1 elements
        units = oracle.units_of_bits("f64", bits)
        for k in range(64):
            assert acc.round("f64") == ("f64", oracle.round_units("f64", units << k))
            assert acc.count() == 1 << k and rest.count() == (1 << k) - 1
            loaded = acc.reload()
            assert loaded.save() == acc.save()
            # taking all of it away again leaves nothing, and one more number is all there is
            back = acc.copy()
            assert back.negate() == "OK"
            if k < 63:
                loaded.merge(back)
                assert loaded.round("f64") == ("f64", 0), k
                loaded.add("f64", np.array([5], np.uint64))
                assert loaded.round("f64") == ("f64", 5), k
            else:
                assert loaded.subtract(acc) == "OK" and loaded.count() == 0
                assert loaded.save() == Sum().save()
            if k < 63:
                rest.merge(acc)
                acc.merge(acc)
        saved = acc.save()
        assert acc.try_merge(acc) == "ERANGE" and acc.save() == saved
        acc.merge(rest)
        assert acc.count() == (1 << 64) - 1
        units *= (1 << 64) - 1
        assert acc.round("f64") == ("f64", oracle.round_units("f64", units))
        saved = acc.save()
        assert acc.reload().save() == saved
        one = np.array([bits], np.uint64)
        assert acc.feed_at(NOBODY, one.ctypes.data, 1) == "ERANGE" and acc.save() == saved
        assert acc.try_merge(Sum().add("f64", one)) == "ERANGE" and acc.save() == saved
        assert acc.subtract(rest) == "OK" and acc.count() == 1 << 63
        assert acc.divided(-(1 << 63), "f64") == ("f64", bits ^ 1 << 63)


def test_a_million_merges():
    """Carries pile up merge by merge: the same small numbers, all mantissa bits set, both signs."""
    g = data.rng("million")
    merge, feed = tally.state_merge, tally.state_feed
    for sign in (0, 1 << 63):
        raw = np.array([0x3fffffffffffffff | sign, 0x3fefffffffffffff | sign, 0x000fffffffffffff | sign,
                        0x7fdfffffffffffff | sign], np.uint64)
        part = Sum().add("f64", raw)
        acc = Sum()
        for _ in range(500_000):
            merge(acc.handle, part.handle)
        exact = oracle.Exact().add("f64", raw)
        exact.units *= 500_000
        assert acc.round("f64") == ("f64", exact.round("f64"))
        rest = Sum().add("f64", raw[:3])
        for _ in range(500_000):
            merge(acc.handle, rest.handle)
        exact.units += 500_000 * oracle.Exact().add("f64", raw[:3]).units
        assert acc.round("f64") == ("f64", exact.round("f64"))
        assert acc.count() == 3_500_000
        assert acc.reload().merge(Sum()).save() == acc.save()
    acc, exact = Sum(), oracle.Exact()
    raw = data.finite_bits(g, "f64", 200_000)
    for i in range(len(raw)):
        feed(acc.handle, None, raw.ctypes.data + 8 * i, None, 1)
    assert acc.save() == Sum().add("f64", raw).save()
    assert acc.round("f64") == ("f64", exact.add("f64", raw).round("f64"))


def test_two_states_merged_into_each_other():
    """Each takes the other in turn: additions nobody settles grow as Fibonacci's numbers do, past what a limb
    holds of them."""
    g = data.rng("fibonacci")
    for op, type_ in (("sum", "f64"), ("norm1", "f32"), ("sumsq", "f64"), ("sum", "i64"), ("sumsq", "u64")):
        for sign in (0, 1) if op == "sum" and type_ == "f64" else (0,):
            if type_ in FLOATS:
                raw = data.finite_bits(g, type_, 60) | DTYPE[type_]((1 << 20) - 1)  # full digits
                raw = raw & DTYPE[type_](oracle.SIGN[type_] - 1) | DTYPE[type_](sign * oracle.SIGN[type_])
            else:
                raw = np.full(3, -1 if type_ == "u64" else 1, np.int64).astype(DTYPE[type_])
            left, right = State(op, type_).feed(raw[:40]), State(op, type_).feed(raw[20:])
            total = [oracle.sum_of(op, type_, part)[1] for part in (raw[:40], raw[20:])]
            unit = oracle.sum_of(op, type_, raw)[2]
            for _ in range(42):
                for a, b, i in ((left, right, 0), (right, left, 1)):
                    a.merge(b)
                    total[i] += total[1 - i]
                    for divisor in (1, -3):
                        want = oracle.quotient("f64", (None, total[i], unit, False), divisor)
                        assert a.divided(divisor, "f64") == want, (op, type_, data.SEED)
            assert left.load(left.save()).save() == left.save()


def test_alternating_adds_and_rounds():
    """round(), count() and save() change nothing."""
    g = data.rng("alternate")
    acc, exact = Sum(), oracle.Exact()
    for _ in range(300):
        type_ = str(g.choice(FLOATS))
        raw = data.make(g, str(g.choice(["bits", "normal", "huge", "subnormal"])), type_,
                        int(g.integers(0, 50)))
        acc.add(type_, raw)
        exact.add(type_, raw)
        out = str(g.choice(FLOATS))
        assert acc.round(out) == (out, exact.round(out))
        assert acc.count() == exact.count
        if g.random() < 0.3:
            acc = acc.reload()


@pytest.mark.parametrize("type_", FLOATS)
def test_specials_in_any_order(type_):
    g = data.rng("acc specials " + type_)
    inf, minus, nan = oracle.INF[type_], oracle.SIGN[type_], oracle.NAN[type_]
    for special in ([inf], [inf | minus], [inf, inf], [inf, inf | minus], [nan], [inf | 1, inf],
                    [nan | minus, inf, inf | minus], [nan, nan], [0], [minus], [minus, 0],
                    [minus, minus], [0, 0], [inf, minus]):
        for rest in ([], [oracle.ONE[type_]], [minus], data.finite_bits(g, type_, 50).tolist()):
            raw = np.array(special + rest, DTYPE[type_])
            saved = None
            for _ in range(4):
                order = g.permutation(raw)
                acc = build(g, type_, pieces(g, order, 3), [tally.NOBODY])
                if saved is None:
                    saved = acc.save()
                assert acc.save() == saved, (type_, special, data.SEED)
                exact = oracle.Exact().add(type_, raw)
                for out in FLOATS:
                    assert acc.round(out) == (out, exact.round(out)), (type_, special, rest[:3], out)
                acc = acc.load(saved)
                acc.add(type_, np.array([oracle.ONE[type_]], DTYPE[type_]))
                exact.add(type_, np.array([oracle.ONE[type_]], DTYPE[type_]))
                assert acc.round("f64") == ("f64", exact.round("f64"))


def test_payloads_and_signs_of_nan_do_not_matter():
    saved = {Sum().add("f64", np.array([bits], np.uint64)).save()
             for bits in (0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001, (1 << 64) - 1)}
    assert len(saved) == 1


# ---- Saving and loading -------------------------------------------------------------------------

def some_states(g):
    yield Sum()
    for kind in KINDS:
        yield Sum().add("f64", data.make(g, kind, "f64", int(g.integers(1, 300))))
    big = Sum().add("f64", np.full(100, 0x7fefffffffffffff, np.uint64))
    for _ in range(50):
        big.merge(big)
    yield big


def test_round_trip():
    g = data.rng("round trip")
    for acc in some_states(g):
        saved = acc.save()
        assert len(saved) == SIZE_OF_SUM
        loaded = Sum().load(saved)
        assert loaded.save() == saved and loaded.count() == acc.count()
        assert Sum().load(saved, given=False).save() == saved
        for out in FLOATS:
            assert loaded.round(out) == acc.round(out)
        raw = data.finite_bits(g, "f32", 100)
        assert loaded.add("f32", raw).save() == acc.add("f32", raw).save()
        assert loaded.merge(Sum().load(saved)).save() == acc.merge(Sum().load(saved)).save()


def rejected(saved):
    said = []
    for given in (True, False):
        try:
            Sum().load(saved, given)
            said.append("accepted")
        except ValueError as e:
            said.append(str(e))
    assert said[0] == said[1] or said == ["EFORMAT", "accepted"], said  # of another problem
    return said[0]


def test_every_flipped_bit_is_noticed():
    g = data.rng("flips")
    for acc in some_states(g):
        saved = acc.save()
        for bit in range(8 * len(saved)):
            damaged = bytearray(saved)
            damaged[bit // 8] ^= 1 << (bit % 8)
            try:
                Sum().load(bytes(damaged), given=False)
                pytest.fail(f"bit {bit} of byte {bit // 8}")
            except ValueError as e:
                assert str(e) == "EFORMAT", f"bit {bit} of byte {bit // 8}: {e}"


def test_other_damage_is_noticed():
    g = data.rng("damage")
    for acc in some_states(g):
        saved = acc.save()
        size_of = len(saved)
        for size in list(range(0, size_of)) + [size_of + 1, size_of + 8, 2 * size_of, 5000]:
            long = (saved * 20)[:size]
            assert rejected(long) in ("EFORMAT", "EINVAL"), f"{size} bytes"
        assert rejected(bytes(size_of)) == "EFORMAT"
        assert rejected(b"\xff" * size_of) == "EFORMAT"
        assert rejected(saved[::-1]) == "EFORMAT"
        for _ in range(300):
            damaged = bytearray(saved)
            for _ in range(int(g.integers(2, 9))):
                damaged[int(g.integers(0, size_of))] = int(g.integers(0, 256))
            if bytes(damaged) != saved:
                assert rejected(bytes(damaged)) == "EFORMAT"
        for i in range(0, size_of - 8, 8):  # two words exchanged
            damaged = saved[:i] + saved[i + 4:i + 8] + saved[i:i + 4] + saved[i + 8:]
            if damaged != saved:
                assert rejected(damaged) == "EFORMAT", i
        assert rejected(g.bytes(size_of)) == "EFORMAT"


# The saved form, as src/engine/saved.c and docs/states.md give it: where its fields stand, and the hash at the end.
AT_VERSION, AT_TYPE, AT_OUT, AT_FAST, AT_OP, AT_ALSO, AT_USER, AT_ZERO, AT_DDOF, AT_N, AT_FIRST, AT_WORDS = \
    8, 9, 10, 11, 12, 13, 21, 22, 24, 32, 40, 48
AT_NANS, AT_PLUS, AT_MINUS, AT_MIXED, AT_LIMBS = (AT_WORDS + 8 * i for i in range(5))
LIMBS = 68          # of a sum of floats
LOWEST = -1088      # the weight of the first one's lowest bit


def with_hash(saved):
    """The bytes with the hash (FNV-1a of all before it) made right again."""
    h = 0xcbf29ce484222325
    for byte in saved[:-8]:
        h = (h ^ byte) * 0x100000001b3 & ((1 << 64) - 1)
    return bytes(saved[:-8]) + h.to_bytes(8, "little")


def forged(saved, *changes):
    forged_bytes = bytearray(saved)
    for at, new in changes:
        forged_bytes[at:at + len(new)] = new
    return with_hash(forged_bytes)


def word(value):
    return (value & (1 << 64) - 1).to_bytes(8, "little")


def test_the_saved_form_is_the_written_one():
    """Every byte of a state, written here from the description."""
    def limbs(units):  # of 2^-1074
        units <<= -1074 - LOWEST
        some = [units >> 32 * i & 0xffffffff for i in range(LIMBS - 1)]
        return some + [units >> 32 * (LIMBS - 1)]

    g = data.rng("written form")
    for type_ in FLOATS:
        for raw in (np.zeros(0, DTYPE[type_]), data.make(g, "bits", type_, 40),
                    data.make(g, "specials", type_, 30), data.make(g, "minus-zeros", type_, 3),
                    data.make(g, "all-bits", type_, 500), data.make(g, "huge", type_, 33)):
            for out in (None, "f64"):
                for fast in (False, True) if not len(raw) else (False,):
                    finite, counts = 0, [0, 0, 0]
                    for bits in raw.tolist():
                        magnitude = bits & (oracle.SIGN[type_] - 1)
                        if magnitude > oracle.INF[type_]:
                            counts[0] += 1
                        elif magnitude == oracle.INF[type_]:
                            counts[2 if bits & oracle.SIGN[type_] else 1] += 1
                        else:
                            finite += oracle.units_of_bits(type_, bits)
                    mixed = any(bits != oracle.SIGN[type_] for bits in raw.tolist())
                    words = counts + [mixed] + limbs(finite)
                    want = b"TALLYSTA" + bytes([1, tally.CODE[type_], tally.CODE[out] if out else 0, fast,
                                                tally.OPCODE["mean"]]) + bytes(8 + 1 + 2)
                    want += struct.pack("<dQQ", 0.5, len(raw), 7)
                    want += word(0) if fast else b"".join(word(int(w)) for w in words)
                    state = State("mean", type_, out=out, fast=fast, ddof=0.5)
                    assert state.begin_at(7) == "OK"
                    state.feed(raw)
                    assert state.save() == with_hash(want + bytes(8)), (type_, out, fast, data.SEED)


def test_forged_states_are_refused():
    """A right hash over what save() cannot have written: "TALLY_EFORMAT for bytes that tally_state_save()
    cannot have written", so load() must look at the fields, too."""
    one = Sum().add("f64", data.floats("f64", [1.5, 2.5])).save()
    inf = Sum().add("f64", np.array([oracle.INF["f64"]], np.uint64)).save()
    zeros = Sum().add("f64", np.array([1 << 63], np.uint64)).save()
    empty = Sum().save()
    last = AT_LIMBS + 8 * (LIMBS - 1)
    for saved in (one, inf, zeros, empty):
        assert with_hash(saved) == saved and rejected(saved) == "accepted"
    assert rejected(forged(inf, (AT_MIXED, word(0)))) == "EFORMAT", "infinity among -0 alone"
    assert rejected(forged(inf, (AT_LIMBS + 8 * 34, b"\x01"))) == "accepted", "1 + inf, less the 1's count"
    assert rejected(forged(zeros, (AT_LIMBS + 8 * 34, b"\x01"))) == "EFORMAT", "-0 alone, but a sum"
    assert rejected(forged(one, (AT_LIMBS, b"\x01"))) == "EFORMAT", "a bit below 2^-1074"
    assert rejected(forged(one, (AT_LIMBS + 1, b"\x20"))) == "EFORMAT", "a bit below 2^-1074"
    assert rejected(forged(one, (AT_LIMBS + 1, b"\x40"))) == "accepted", "2^-1074"
    for limb in range(LIMBS - 1):  # a limb of more than 32 bits
        assert rejected(forged(one, (AT_LIMBS + 8 * limb + 4, b"\x01"))) == "EFORMAT", limb
    for mixed in (2, 3, 128, 255, 1 << 32, 1 << 63, -1):
        assert rejected(forged(one, (AT_MIXED, word(mixed)))) == "EFORMAT"
    for top in (1 << 33, -(1 << 33), (1 << 63) - 1, -(1 << 63), 1 << 32):
        assert rejected(forged(one, (last, word(top)))) == "EFORMAT"
    # two doubles stay below 2^1025, which is bit 1 of limb 66; three can reach it
    top = AT_LIMBS + 8 * 66
    assert rejected(forged(one, (top, word(1)))) == "accepted"
    for n, digit in ((2, 2), (4, 4), (4, 1 << 31)):
        assert rejected(forged(one, (AT_N, word(n)), (top, word(digit)))) == "EFORMAT", (n, digit)
    for n, digit in ((3, 2), (5, 4), ((1 << 31) + 1, 1 << 31)):
        assert rejected(forged(one, (AT_N, word(n)), (top, word(digit)))) == "accepted", (n, digit)
    # the counts of NaNs and infinities are of elements
    for at in (AT_NANS, AT_PLUS, AT_MINUS):
        assert rejected(forged(one, (at, word(2)))) == "accepted"
        for count in (3, 1 << 32, 1 << 63, -1):
            assert rejected(forged(one, (at, word(count)))) == "EFORMAT"
    assert rejected(forged(one, (AT_NANS, word(1)), (AT_PLUS, word(1)))) == "accepted"
    assert rejected(forged(one, (AT_NANS, word(1)), (AT_PLUS, word(2)))) == "EFORMAT"
    assert rejected(forged(one, (AT_PLUS, word(1)), (AT_MINUS, word(2)))) == "EFORMAT"
    assert rejected(forged(one, (AT_NANS, word(2)), (AT_MINUS, word(1)))) == "EFORMAT"
    assert rejected(forged(empty, (AT_MIXED, word(1)))) == "EFORMAT", "a term, but no element"
    assert rejected(forged(empty, (AT_LIMBS + 8 * 34, b"\x01"))) == "EFORMAT", "a sum of nothing"
    # the problem
    for version in (0, 2, 255):
        assert rejected(forged(one, (AT_VERSION, bytes([version])))) == "EFORMAT"
    for at, bad in ((AT_TYPE, range(1, 9)), (AT_TYPE, (0, 13, 255)), (AT_OUT, (*range(1, 9), 13, 255)),
                    (AT_FAST, range(1, 256)), (AT_OP, (0, 26, 255)), (AT_OP, (2, 3, 9, 12, 23, 24)),
                    (AT_ALSO + 1, (1, 8, 26)), (AT_ALSO, (26, 255, 25)), (AT_USER, (1, 2, 3)),
                    (AT_ZERO, (1, 255)), (AT_ZERO + 1, (1, 128))):
        for byte in bad:
            changed = forged(one, (at, bytes([byte])))
            for given in (True, False):
                with pytest.raises(ValueError, match="EFORMAT"):
                    Sum().load(changed, given)
    for ddof in (np.nan, np.inf, -np.inf, -1.0, -5e-324):
        assert rejected(forged(one, (AT_DDOF, struct.pack("<d", ddof)))) == "EFORMAT", ddof
    assert rejected(forged(one, (AT_FIRST, word(-2)))) == "EFORMAT", "it ends beyond 2^64 - 1"
    assert rejected(forged(one, (AT_FIRST, word(-3)))) == "accepted"
    assert rejected(forged(one[:-8] + bytes(8) + one[-8:])) == "EFORMAT", "a word too many"
    assert rejected(forged(one[:-16] + one[-8:])) == "EFORMAT", "a word too few"


def test_what_is_accepted_is_kept_whole():
    """Random fields under a right hash: whatever load() takes must come out of save() unchanged."""
    g = data.rng("forged")
    base = Sum().add("f64", data.make(g, "bits", "f64", 50)).save()
    accepted = 0
    for _ in range(3000):
        changes = [(int(g.integers(8, len(base) - 8)), g.bytes(1)) for _ in range(int(g.integers(1, 4)))]
        saved = forged(base, *changes)
        try:
            acc = Sum().load(saved)
        except ValueError as e:
            assert str(e) in ("EFORMAT", "EINVAL")  # EINVAL: a user's operator has to be given
            continue
        accepted += 1
        assert acc.save() == saved, changes
        n, first = acc.count(), int.from_bytes(saved[AT_FIRST:AT_FIRST + 8], "little")
        assert acc.try_merge(acc) == ("OK" if first + 2 * n < 1 << 64 else "ERANGE")
        for out in FLOATS:
            acc.round(out)
    assert accepted  # other digits are another sum


def test_feed_refuses_what_is_wrong():
    acc = Sum().add("f64", data.floats("f64", [1.5]))
    saved = acc.save()
    raw = np.ones(8, np.uint64)
    for type_ in tally.INTS:
        assert acc.try_merge(State("sum", type_).feed(np.ones(3, DTYPE[type_]))) == "EINVAL"
    assert acc.feed_at(NOBODY, None, 1) == "EINVAL"
    assert acc.feed_at(NOBODY, raw.ctypes.data, 1 << 61) == "EINVAL"
    assert acc.feed_at(NOBODY, raw.ctypes.data, 1, raw.ctypes.data) == "EINVAL"
    assert acc.save() == saved
    for out in tally.INTS:
        assert acc.divided(1, out) == "ETYPE"
    for out in (13, 99, -1):
        assert acc.divided(1, out) == "ETYPE"
    assert acc.divided(0, "f64") == "EINVAL"


def test_misaligned_arrays(devices):
    g = data.rng("misaligned")
    arena = data.Arena(1 << 18)
    for type_ in FLOATS:
        for n in (0, 1, 7, 100, 4097, 20000):
            raw = data.finite_bits(g, type_, n)
            want = Sum(type_=type_).add(type_, raw).save()
            for offset in (1, 3, 7, ~0, ~1):
                device = devices[int(g.integers(0, len(devices)))]
                acc = Sum(type_=type_)
                assert acc.feed_at(device, arena.place(raw, offset), n) == "OK"
                assert acc.save() == want, (type_, n, offset, device, data.SEED)


def test_equals_a_reduction(devices):
    g = data.rng("equals")
    for type_ in FLOATS:
        for device in devices:
            raw = data.make(g, "bits", type_, int(g.choice([40000, (5 << 18) // SIZE[type_]])))
            acc = Sum(type_=type_).add(type_, raw, device)
            for out in FLOATS:
                assert acc.round(out) == tally.reduce_array(device, "sum", type_, raw, out=out)


def test_forged_groups_are_refused():
    """The state of no elements within saved groups, which says what is asked, has elements, or begins elsewhere."""
    problem = shapes.Problem("sum", "f64")
    groups = shapes.Groups(problem, 1)
    saved, at = groups.save(), 48
    size = int.from_bytes(saved[40:48], "little")
    assert shapes.Groups.load(problem, 1, saved).save() == saved
    for inner in (Sum().add("f64", data.floats("f64", [1.5])).save(), forged(saved[at:at + size], (AT_FIRST, word(4096)))):
        assert len(inner) == size
        with pytest.raises(shapes.Failed) as failed:
            shapes.Groups.load(problem, 1, with_hash(saved[:at] + inner + saved[at + size:]))
        assert failed.value.status == "EFORMAT"
