"""The superaccumulator: one state for one multiset of numbers, whatever way led there.

The saved bytes are compared, not only the rounded sums: equal multisets must save to equal bytes.
"""

import numpy as np
import pytest

import data
import oracle
import tally
from tally import ACCUMULATOR_BYTES, DTYPE, FLOATS, SIZE, Accumulator

KINDS = ["normal", "bits", "cancel", "subnormal", "zeros", "minus-zeros", "huge", "blocks", "specials",
         "all-bits", "outlier"]


def pieces(g, raw, many):
    points = np.sort(g.integers(0, len(raw) + 1, many))
    return np.split(raw, points)


def build(g, type_, parts, devices):
    """Accumulators over the parts, merged in a random order and nesting until one is left."""
    stack = []
    for part in parts:
        acc = Accumulator()
        acc.add(type_, np.ascontiguousarray(part), devices[int(g.integers(0, len(devices)))])
        if g.random() < 0.2:  # through its bytes
            acc = Accumulator(acc.save())
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
        whole = Accumulator().add(type_, raw, devices[int(g.integers(0, len(devices)))])
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
            assert Accumulator().add(type_, raw, device).save() == \
                Accumulator().add("f64", wide, device).save()


def test_types_mix():
    g = data.rng("mix")
    for _ in range(20):
        exact, acc, parts = oracle.Exact(), Accumulator(), []
        for type_ in g.choice(FLOATS, 8).tolist():
            raw = data.make(g, str(g.choice(["bits", "normal", "cancel"])), type_, 300)
            exact.add(type_, raw)
            acc.add(type_, raw)
            parts.append((type_, raw))
        other = Accumulator()
        for type_, raw in parts[::-1]:
            other.merge(Accumulator().add(type_, raw))
        assert other.save() == acc.save()
        for out in FLOATS:
            assert acc.round(out) == (out, exact.round(out)), data.SEED


def test_nothing_added():
    acc = Accumulator()
    assert acc.count() == 0
    for out in FLOATS:
        assert acc.round(out) == (out, 0)
    saved = acc.save()
    assert Accumulator(saved).save() == saved
    acc.merge(Accumulator())
    assert acc.save() == saved
    assert acc.add_at("f64", None, 0) == tally.OK
    assert acc.save() == saved
    acc.add("f64", data.floats("f64", [1.0, 2.0, np.inf]))
    assert acc.save() != saved
    acc.clear()
    assert acc.save() == saved and acc.count() == 0


def test_clear_forgets_everything():
    g = data.rng("clear")
    acc = Accumulator()
    for kind in KINDS:
        acc.add("f64", data.make(g, kind, "f64", 500))
        acc.clear()
        raw = data.make(g, "bits", "f64", 300)
        acc.add("f64", raw)
        assert acc.save() == Accumulator().add("f64", raw).save()
        acc.clear()


def test_merging_with_itself_doubles():
    g = data.rng("double")
    for kind in KINDS:
        raw = data.make(g, kind, "f64", 777)
        acc = Accumulator().add("f64", raw)
        exact = oracle.Exact().add("f64", raw)
        for k in range(40):
            acc.merge(acc)
            exact.units *= 2
            assert acc.count() == 777 << (k + 1)
            for out in FLOATS:
                assert acc.round(out) == (out, exact.round(out)), (kind, k, data.SEED)
        twice = Accumulator().add("f64", raw).add("f64", raw)
        assert Accumulator().add("f64", raw).merge(Accumulator().add("f64", raw)).save() == \
            twice.save()


def test_2_64_numbers_fit():
    """Doubling 64 times: 2^64 of the largest doubles are still held exactly, saved and loaded."""
    for bits in (oracle.INF["f64"] - 1, oracle.INF["f64"] - 1 | 1 << 63, 1, 1 | 1 << 63):
        acc = Accumulator().add("f64", np.array([bits], np.uint64))
        back = Accumulator().add("f64", np.array([bits ^ 1 << 63], np.uint64))
        units = oracle.units_of_bits("f64", bits)
        for k in range(64):
            assert acc.round("f64") == ("f64", oracle.round_units("f64", units))
            assert acc.count() == 1 << k
            loaded = Accumulator(acc.save())
            assert loaded.save() == acc.save()
            # taking all of it away again leaves nothing, and one more number is all there is
            loaded.merge(back)
            assert loaded.round("f64") == ("f64", 0), k
            loaded.add("f64", np.array([5], np.uint64))
            assert loaded.round("f64") == ("f64", 5), k
            acc.merge(acc)
            back.merge(back)
            units *= 2
        assert acc.count() == 0  # modulo 2^64
        assert acc.round("f64") == ("f64", oracle.round_units("f64", units))
        saved = acc.save()
        loaded = Accumulator(saved)
        assert loaded.save() == saved
        loaded.merge(back)
        assert loaded.round("f64") == ("f64", 0)


def test_a_million_merges():
    """Carries pile up merge by merge: the same small numbers, all mantissa bits set, both signs."""
    g = data.rng("million")
    merge, add = tally.accumulator_merge, tally.accumulator_add
    for sign in (0, 1 << 63):
        raw = np.array([0x3fffffffffffffff | sign, 0x3fefffffffffffff | sign, 0x000fffffffffffff | sign,
                        0x7fdfffffffffffff | sign], np.uint64)
        part = Accumulator().add("f64", raw)
        acc = Accumulator()
        for _ in range(500_000):
            merge(acc.handle, part.handle)
        exact = oracle.Exact().add("f64", raw)
        exact.units *= 500_000
        assert acc.round("f64") == ("f64", exact.round("f64"))
        rest = Accumulator().add("f64", raw[:3])
        for _ in range(500_000):
            merge(acc.handle, rest.handle)
        exact.units += 500_000 * oracle.Exact().add("f64", raw[:3]).units
        assert acc.round("f64") == ("f64", exact.round("f64"))
        assert acc.count() == 3_500_000
        assert Accumulator(acc.save()).merge(Accumulator()).save() == acc.save()
    acc, exact = Accumulator(), oracle.Exact()
    raw = data.finite_bits(g, "f64", 200_000)
    for i in range(len(raw)):
        add(acc.handle, None, tally.CODE["f64"], raw.ctypes.data + 8 * i, 1)
    assert acc.save() == Accumulator().add("f64", raw).save()
    assert acc.round("f64") == ("f64", exact.add("f64", raw).round("f64"))


def test_alternating_adds_and_rounds():
    """round(), count() and save() change nothing."""
    g = data.rng("alternate")
    acc, exact = Accumulator(), oracle.Exact()
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
            acc = Accumulator(acc.save())


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
                acc = Accumulator(saved)
                acc.add(type_, np.array([oracle.ONE[type_]], DTYPE[type_]))
                exact.add(type_, np.array([oracle.ONE[type_]], DTYPE[type_]))
                assert acc.round("f64") == ("f64", exact.round("f64"))


def test_payloads_and_signs_of_nan_do_not_matter():
    saved = {Accumulator().add("f64", np.array([bits], np.uint64)).save()
             for bits in (0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001, (1 << 64) - 1)}
    assert len(saved) == 1


# ---- Saving and loading -------------------------------------------------------------------------

def some_states(g):
    yield Accumulator()
    for kind in KINDS:
        yield Accumulator().add("f64", data.make(g, kind, "f64", int(g.integers(1, 300))))
    big = Accumulator().add("f64", np.full(100, 0x7fefffffffffffff, np.uint64))
    for _ in range(50):
        big.merge(big)
    yield big


def test_round_trip():
    g = data.rng("round trip")
    for acc in some_states(g):
        saved = acc.save()
        assert len(saved) == ACCUMULATOR_BYTES
        loaded = Accumulator(saved)
        assert loaded.save() == saved and loaded.count() == acc.count()
        for out in FLOATS:
            assert loaded.round(out) == acc.round(out)
        raw = data.finite_bits(g, "f32", 100)
        assert loaded.add("f32", raw).save() == acc.add("f32", raw).save()
        assert loaded.merge(Accumulator(saved)).save() == acc.merge(Accumulator(saved)).save()


def rejected(saved):
    try:
        Accumulator(saved)
    except ValueError as e:
        return str(e)
    return "accepted"


def test_every_flipped_bit_is_noticed():
    g = data.rng("flips")
    for acc in some_states(g):
        saved = acc.save()
        for bit in range(8 * ACCUMULATOR_BYTES):
            damaged = bytearray(saved)
            damaged[bit // 8] ^= 1 << (bit % 8)
            assert rejected(bytes(damaged)) == "EFORMAT", f"bit {bit} of byte {bit // 8}"


def test_other_damage_is_noticed():
    g = data.rng("damage")
    for acc in some_states(g):
        saved = acc.save()
        for size in list(range(0, ACCUMULATOR_BYTES)) + [ACCUMULATOR_BYTES + 1, 608, 5000]:
            long = (saved * 20)[:size]
            assert rejected(long) in ("EFORMAT", "EINVAL"), f"{size} bytes"
        assert rejected(bytes(ACCUMULATOR_BYTES)) == "EFORMAT"
        assert rejected(b"\xff" * ACCUMULATOR_BYTES) == "EFORMAT"
        assert rejected(saved[::-1]) == "EFORMAT"
        for _ in range(300):
            damaged = bytearray(saved)
            for _ in range(int(g.integers(2, 9))):
                damaged[int(g.integers(0, ACCUMULATOR_BYTES))] = int(g.integers(0, 256))
            if bytes(damaged) != saved:
                assert rejected(bytes(damaged)) == "EFORMAT"
        for i in range(0, ACCUMULATOR_BYTES - 8, 8):  # two words exchanged
            damaged = saved[:i] + saved[i + 4:i + 8] + saved[i:i + 4] + saved[i + 8:]
            if damaged != saved:
                assert rejected(damaged) == "EFORMAT", i
        assert rejected(g.bytes(ACCUMULATOR_BYTES)) == "EFORMAT"


# The saved form, as docs/exactness.md gives it: offsets of its fields, and the hash at the end.
AT_SPECIALS, AT_MIXED, AT_ZERO, AT_COUNT, AT_DIGITS, AT_TOP, AT_HASH = 9, 10, 11, 12, 20, 288, 296


def with_hash(saved):
    """The bytes with the hash (FNV-1a of all before it) made right again."""
    h = 0xcbf29ce484222325
    for byte in saved[:AT_HASH]:
        h = (h ^ byte) * 0x100000001b3 & ((1 << 64) - 1)
    return bytes(saved[:AT_HASH]) + h.to_bytes(8, "little")


def forged(saved, *changes):
    forged_bytes = bytearray(saved)
    for at, new in changes:
        forged_bytes[at:at + len(new)] = new
    return with_hash(forged_bytes)


def test_forged_states_are_refused():
    """A right hash over what save() cannot have written: "TALLY_EFORMAT for bytes that save() cannot
    have written", so load() must look at the fields, too."""
    one = Accumulator().add("f64", data.floats("f64", [1.5, 2.5])).save()
    inf = Accumulator().add("f64", np.array([oracle.INF["f64"]], np.uint64)).save()
    zeros = Accumulator().add("f64", np.array([1 << 63], np.uint64)).save()
    empty = Accumulator().save()
    for saved in (one, inf, zeros, empty):
        assert with_hash(saved) == saved  # the format is what the document says
    assert rejected(forged(inf, (AT_DIGITS + 140, b"\x01"))) == "EFORMAT", "infinity with digits"
    assert rejected(forged(inf, (AT_MIXED, b"\0"))) == "EFORMAT", "infinity among -0 alone"
    assert rejected(forged(zeros, (AT_DIGITS + 140, b"\x01"))) == "EFORMAT", "-0 alone, but a sum"
    assert rejected(forged(one, (AT_DIGITS, b"\x01"))) == "EFORMAT", "a bit below 2^-1074"
    assert rejected(forged(one, (AT_DIGITS + 1, b"\x20"))) == "EFORMAT", "a bit below 2^-1074"
    for specials in range(3, 256):
        if specials != 4:
            assert rejected(forged(inf, (AT_SPECIALS, bytes([specials])))) == "EFORMAT", specials
    for mixed in (2, 128, 255):
        assert rejected(forged(one, (AT_MIXED, bytes([mixed])))) == "EFORMAT"
    assert rejected(forged(one, (AT_ZERO, b"\x01"))) == "EFORMAT"
    for top in (1 << 33, -(1 << 33), (1 << 63) - 1, -(1 << 63)):
        assert rejected(forged(one, (AT_TOP, top.to_bytes(8, "little", signed=True)))) == "EFORMAT"


def test_what_is_accepted_is_kept_whole():
    """Random fields under a right hash: whatever load() takes must come out of save() unchanged."""
    g = data.rng("forged")
    base = Accumulator().add("f64", data.make(g, "bits", "f64", 50)).save()
    accepted = 0
    for _ in range(3000):
        changes = [(int(g.integers(8, AT_HASH)), g.bytes(1)) for _ in range(int(g.integers(1, 4)))]
        saved = forged(base, *changes)
        try:
            acc = Accumulator(saved)
        except ValueError as e:
            assert str(e) == "EFORMAT"
            continue
        accepted += 1
        assert acc.save() == saved, changes
        acc.merge(acc)
        for out in FLOATS:
            acc.round(out)
    assert accepted  # other digits are another sum


def test_add_refuses_what_is_not_floating():
    acc = Accumulator().add("f64", data.floats("f64", [1.5]))
    saved = acc.save()
    raw = np.ones(8, np.uint64)
    for type_ in tally.INTS:
        status = acc.add_at(type_, raw.ctypes.data, 1)
        assert status == tally.ETYPE
        tally.check_failed(status)
    for status in (acc.add_at("f64", None, 1), acc.add_at("f64", raw.ctypes.data, 1 << 61)):
        assert status == tally.EINVAL
        tally.check_failed(status)
    assert acc.save() == saved
    for out in tally.INTS:
        assert acc.round(out) == "ETYPE"


def test_misaligned_arrays(devices):
    g = data.rng("misaligned")
    arena = data.Arena(1 << 18)
    for type_ in FLOATS:
        for n in (0, 1, 7, 100, 4097, 20000):
            raw = data.finite_bits(g, type_, n)
            want = Accumulator().add(type_, raw).save()
            for offset in (1, 3, 7, ~0, ~1):
                device = devices[int(g.integers(0, len(devices)))]
                acc = Accumulator()
                assert acc.add_at(type_, arena.place(raw, offset), n, device) == tally.OK
                assert acc.save() == want, (type_, n, offset, device, data.SEED)


def test_equals_a_reduction(devices):
    g = data.rng("equals")
    for type_ in FLOATS:
        for device in devices:
            raw = data.make(g, "bits", type_, int(g.choice([40000, (5 << 18) // SIZE[type_]])))
            acc = Accumulator().add(type_, raw, device)
            for out in FLOATS:
                assert acc.round(out) == tally.reduce_array(device, "sum", type_, raw, out=out)
