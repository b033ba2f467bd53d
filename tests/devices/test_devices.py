"""Every reduction on every GPU device: the bits of the calling thread's CPU, and of the oracle's.

The lengths lie around the edges that the kernels have: a pack of 16 bytes, a warp, a thread's tile, a
block's tile, a leaf, a subtree; each array starts somewhere off alignment, between guarded pages.
"""

import ctypes
import threading
from ctypes import byref

import numpy as np
import pytest

import data
import oracle
import tally
from conftest import open_device
from drawn import DRAW, is_slow, types_on
from tally import DTYPE, FLOATS, NOBODY, OPS, SIZE, TYPES


def lengths(device, type_):
    """Few where the model computes, as time is dear there; block tiles are 16 KiB and less."""
    tile = 16384 // SIZE[type_]
    small = [1, 2, 15, 16, 17, 255, 256, 257, 1023]
    if is_slow(device.spec):
        return [1, 17, 257, tile + 1, 2 * tile + 77]
    return small + [tile - 1, tile, tile + 1, 3 * tile + 5, 100003]


@pytest.fixture(scope="module")
def arena():
    return data.Arena(1 << 21)


@pytest.fixture(scope="module")
def large_arena():
    return data.Arena(1 << 24)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_like_the_cpu(device, arena, op, type_):
    g = data.rng(f"devices {op} {type_}")
    for i, n in enumerate(lengths(device, type_)):
        for kind in data.kinds(op, type_):
            raw = data.make(g, kind, type_, n)
            address = arena.place(raw, (i * SIZE[type_]) % 64 + (i % 3 == 2))
            want = tally.reduce(NOBODY, op, type_, address, n)
            got = tally.reduce(device, op, type_, address, n)
            assert got == want, f"{op} of {n} {type_} ({kind}) on {device}"


@pytest.mark.parametrize("type_", FLOATS)
def test_specials(device, type_):
    """Zeros of both signs, infinities and NaNs, alone and among others, wherever they stand."""
    inf, sign = oracle.INF[type_], oracle.SIGN[type_]
    specials = [0, sign, inf, inf | sign, inf | 1, inf | sign | 1, inf - 1, 1]
    g = data.rng("specials " + type_)
    for n in (1, 3, 40, 300, 9000):
        for a in specials:
            for b in (sign, inf, a):
                raw = np.full(n, a, DTYPE[type_])
                raw[int(g.integers(0, n))] = DTYPE[type_](b)
                for op in ("sum", "min", "max", "prod"):
                    want = tally.reduce_array(NOBODY, op, type_, raw)
                    got = tally.reduce_array(device, op, type_, raw)
                    assert got == want, f"{op} of {n} times {a:#x} and {b:#x} on {device}"


@pytest.mark.parametrize("type_", FLOATS)
def test_other_results(device, type_):
    """Results of other types; a fast sum is near the exact one."""
    g = data.rng("results " + type_)
    raw = data.make(g, "near-one", type_, 5000)
    for out in FLOATS:
        assert tally.reduce_array(device, "sum", type_, raw, out=out) == \
            tally.reduce_array(NOBODY, "sum", type_, raw, out=out)
    fast, exact = (tally.reduce_array(device, "sum", type_, raw, fast=f, out="f64") for f in (1, 0))
    fast, exact = (np.uint64(v[1]).reshape(1).view(np.float64)[0] for v in (fast, exact))
    assert abs(fast - exact) < 1


# Of a type: bits of mantissa, bias, by how many binades elements exceed those that a window is chosen by, and how far below these others lie.
EDGES = {"bf16": (7, 127, (0, 3, 4), (26, 27, 28, 29, 36, 37)), "f64": (52, 1023, (0, 3), (44, 45, 90))}


@pytest.mark.parametrize("type_", EDGES)
def test_edges_of_windows(device, type_):
    """Elements as large and as small as a window just holds, or just not, around 1 and at both ends of the range; all
    of one sign, so that chains of them go as far as they can."""
    bits, bias, above, below = EDGES[type_]
    tile, size = 16384 // SIZE[type_], SIZE[type_]
    g = data.rng("edges " + type_)
    for n in (tile, tile + 7):
        for middle in (bias, 2, 2 * bias - 4):
            for up in above:
                for down in below:
                    raw = np.full(n, min(middle + up, 2 * bias) << bits | (1 << bits) - 1, DTYPE[type_])
                    raw[::n // 32] = middle << bits
                    raw[g.integers(0, n, 5)] = max(middle - down, 0) << bits | 1
                    sign = DTYPE[type_](1 << (8 * size - 1))
                    if up == above[0]:
                        raw[g.integers(0, n, n // 2)] ^= sign
                    for out in ("f64", type_):
                        want = tally.reduce_array(NOBODY, "sum", type_, raw, out=out)
                        assert tally.reduce_array(device, "sum", type_, raw, out=out) == want, f"{n} {middle} {up} {down}"


def test_nothing(device):
    for type_ in TYPES:
        for op in OPS:
            assert tally.reduce(device, op, type_, None, 0) == \
                tally.reduce(NOBODY, op, type_, None, 0)


def test_states(device):
    """However a state's food is cut, also within leaves and within a device's subtrees."""
    g = data.rng("streams")
    n = 30000 if is_slow(device.spec) else 4096 * 1024 + 60000
    for op, type_ in (("sum", "f32"), ("prod", "f32"), ("max", "f64"), ("sum", "i64")):
        raw = data.make(g, "near-one", type_, n) if type_ in FLOATS else \
            data.make(g, "small", type_, n)
        want = tally.reduce_array(NOBODY, op, type_, raw)
        with tally.State(op, type_) as state:
            at = 0
            for size in (1, 4095, 5000, 12288, n):
                piece = raw[at:at + size]
                state.feed(piece, device=device)
                at += len(piece)
            assert state.value() == want, f"{op} of {type_} on {device}"


def test_oracle(device):
    """Correct by an oracle of the tests' own, not only like the CPU."""
    g = data.rng("oracle")
    for type_ in set(FLOATS) & set(types_on(device.spec)):
        for kind in ("outlier", "loguniform", "subnormal"):
            raw = data.make(g, kind, type_, 700)
            for op in ("sum", "min", "prod"):
                assert tally.reduce_array(device, op, type_, raw) == oracle.answer(op, type_, raw)
    raw = data.make(g, "full", "i64", 3001) >> 20
    total = sum(int(v) for v in raw)
    assert tally.reduce_array(device, "sum", "i64", raw) == ("i64", total & (1 << 64) - 1)
    raw = np.full(3, 1 << 62, np.int64)
    assert tally.reduce_array(device, "sum", "i64", raw) == "ERANGE"
    assert tally.reduce_array(device, "prod", "i64", raw) == "ERANGE"
    raw[1] = 0
    assert tally.reduce_array(device, "prod", "i64", raw) == ("i64", 0)


# ---- Exponents that no window holds ---------------------------------------------------------------

WILD_OPS = ("sum", "norm1", "sumsq", "norm2", "var", "mean")


def opposites(g, type_, n):
    """Any finite bits, each with its opposite, in some order; but a few of the smallest are alone, and all that is left."""
    raw = data.make(g, "bits", type_, max(n // 2, 1))
    both = np.concatenate([raw, raw ^ DTYPE[type_](oracle.SIGN[type_])])
    alone = np.argsort(raw & DTYPE[type_](oracle.SIGN[type_] - 1), kind="stable")[:3]
    return g.permutation(np.delete(both, alone))


def tame_and_wild(g, type_, n):
    """Stretches of tame elements of changing size, with a few others strewn in."""
    raw = data.make(g, "loguniform", type_, n)
    wild = data.make(g, "bits", type_, n)
    chosen = g.random(n) < np.repeat(g.choice([0, .001, .05, 1], n // 700 + 1), 700)[:n]
    return np.where(chosen, wild, raw)


def every_exponent(g, type_, n):
    """All exponents in turn, subnormal ones too, with either sign and all bits of the mantissa set or none."""
    mantissa = oracle.FORMAT[type_][0] - 1
    fields = oracle.INF[type_] >> mantissa
    i = np.arange(n, dtype=np.uint64)
    ones = (i // fields % 3 != 0) * np.uint64((1 << mantissa) - 1)
    return ((i % fields) << np.uint64(mantissa) | ones |
            (i // (fields + 7) % 2) * np.uint64(oracle.SIGN[type_])).astype(DTYPE[type_])


@pytest.mark.parametrize("make", (opposites, tame_and_wild, every_exponent))
@pytest.mark.parametrize("type_", FLOATS)
def test_wild(device, make, type_):
    g = data.rng(f"wild {make.__name__} {type_}")
    for n in lengths(device, type_)[1:]:
        raw = make(g, type_, n)
        for op in WILD_OPS if n < 20000 else ("sum", "sumsq"):
            out = "f64" if op != "sum" else type_
            want = tally.reduce_array(NOBODY, op, type_, raw, out=out)
            assert tally.reduce_array(device, op, type_, raw, out=out) == want, f"{op} of {n} on {device}"
    raw = make(g, type_, 900)
    assert tally.reduce_array(device, "sum", type_, raw) == oracle.answer("sum", type_, raw)


@pytest.mark.parametrize("type_", ("bf16", "f32", "f64"))
def test_wild_with_specials(device, type_):
    """Tiles with infinities and NaNs among tiles without."""
    g = data.rng("wild specials " + type_)
    for special in (0, oracle.INF[type_], oracle.INF[type_] | 1, oracle.INF[type_] | oracle.SIGN[type_]):
        raw = data.make(g, "bits", type_, 9000)
        raw[g.integers(0, len(raw), 5)] = DTYPE[type_](special)
        assert tally.reduce_array(device, "sum", type_, raw) == tally.reduce_array(NOBODY, "sum", type_, raw)


@pytest.mark.long
@pytest.mark.parametrize("alternating", (False, True))
@pytest.mark.parametrize("type_", [DRAW.choice(["bf16", "f32", "f64"])])
def test_words_that_fill(type_, alternating):
    """So many elements of one exponent, all bits set, that the words of a lane's sum overflow if they are not emptied;
    one in five is so small that no window holds both. 1024 threads: then 32 of them share a sum."""
    device = open_device("opencl:0,block=1024")
    n = (12 << 20) + 12345
    mantissa = oracle.FORMAT[type_][0] - 1
    one = oracle.INF[type_] >> 1 >> mantissa << mantissa | (1 << mantissa) - 1
    for exponent in (0, 3):
        x, tiny = one + (exponent << mantissa), 1 + exponent
        raw = np.full(n, x, DTYPE[type_])
        raw[::5] = DTYPE[type_](tiny)
        sign = 1 - 2 * (np.arange(n) % 7 > 3) if alternating else np.ones(n, np.int64)
        raw[sign < 0] |= DTYPE[type_](oracle.SIGN[type_])
        parts = [(int(sign[::5].sum()), tiny), (int(sign.sum() - sign[::5].sum()), x)]
        total = sum(k * oracle.units_of_bits(type_, bits) for k, bits in parts)
        assert tally.reduce_array(device, "sum", type_, raw, out="f64") == \
            ("f64", oracle.round_units("f64", total)), f"sum of {n} {type_}"
    device.close()


def test_data_on_the_device(device):
    """What a CPU behind OpenCL calls its own memory is the host's."""
    g = data.rng("resident")
    for op, type_ in (("sum", "f32"), ("sum", "f64"), ("prod", "f32"), ("max", "i8"), ("prod", "i64")):
        for n in (1, 5000, 4096 * 40 + 77):
            raw = data.make(g, "near-one" if type_ in FLOATS else "units", type_, n)
            value = tally.fresh_value()
            status = tally.reduce_resident(device.handle, byref(tally.problem(op, type_)),
                                           raw.ctypes.data, None, n, byref(value))
            got = tally.outcome(status, value)
            if not device.spec.startswith("opencl"):
                assert got == "EUNSUPPORTED"
            else:
                assert got == tally.reduce_array(NOBODY, op, type_, raw)
            copy = np.zeros_like(raw)
            status = tally.resident_copy(device.handle, copy.ctypes.data, raw.ctypes.data, raw.nbytes)
            assert tally.STATUS[status] == "EUNSUPPORTED" if got == "EUNSUPPORTED" else (copy == raw).all()


@pytest.mark.parametrize("type_", FLOATS)
def test_a_block_apart(device, type_):
    """Blocks begin with one window, for a sample of the array. Those which it does not fit - the last one, the first, one in
    the middle, all - have their own, and their sums meet those of the others."""
    g = data.rng("a block apart " + type_)
    n = 100003
    for where in (slice(n - 3, n), slice(1, 3), slice(40001, 40007), slice(1, None, 2)):
        for scale in (1e4, 1e-4):
            raw = data.floats(type_, g.uniform(-1, 1, n))
            raw[where] = data.floats(type_, g.uniform(-scale, scale, n))[where]
            assert tally.reduce_array(device, "sum", type_, raw) == tally.reduce_array(NOBODY, "sum", type_, raw), where


def test_time_on_the_device(device):
    """The value, and a time by the device's clock; the model has none."""
    g = data.rng("time")
    for op, type_, n in (("sum", "f32", 5000), ("prod", "f32", 9000), ("min", "i8", 3), ("sum", "f64", 0),
                         ("prod", "i64", 2)):
        raw = data.make(g, "near-one" if type_ in FLOATS else "full", type_, n)
        value, seconds = tally.fresh_value(), ctypes.c_double(-1)
        status = tally.device_time(device.handle, byref(tally.problem(op, type_)), raw.ctypes.data, None,
                                   n, byref(value), byref(seconds))
        got = tally.outcome(status, value)
        if device.spec == "model" and n > 0:
            assert got == "EUNSUPPORTED" and seconds.value == -1
        else:
            assert got == tally.reduce_array(NOBODY, op, type_, raw)
            assert seconds.value >= 0 or status != tally.OK
    one, value = np.ones(1), tally.fresh_value()
    assert tally.device_time(None, byref(tally.problem("sum", "f64")), one.ctypes.data, None, 1,
                             byref(value), byref(ctypes.c_double())) == tally.EINVAL


# ---- Operators of users' ------------------------------------------------------------------------

def operator(type_, function, source, identity, commutative):
    user = tally.UserOperator(function, type_, identity, commutative)
    user.text = source.encode()
    user.struct.source, user.type_ = user.text, type_
    return user


def reduce_user(user, device, raw):
    got = tally.reduce_user(device, user, user.type_, raw.ctypes.data, len(raw))
    assert not user.problems, user.problems
    return got


USERS = [
    ("i64", lambda a, b: a * b % 1000003, "a * b % 1000003", 1, True),
    ("u8", np.maximum, "a > b ? a : b", 0, True),
    ("i32", lambda a, b: b, "b", 0, False),
    ("f32", lambda a, b: a * np.float32(0.5) + b, "a * 0.5f\n    + b", 0, False),
    ("f64", lambda a, b: a * b + a + b, "a * b + a + b", 0, True),
]


@pytest.mark.parametrize("case", USERS, ids=lambda c: c[2].split("\n")[0])
def test_user_operators(device, case):
    type_, function, source, identity, commutative = case
    if device.spec == "model":
        pytest.skip("the model has no compiler")
    g = data.rng("user " + source)

    def of_values(a, b):
        real = {"f32": np.float32, "f64": np.float64}.get(type_)
        with np.errstate(all="ignore"):
            return function(a, b) if real is None else \
                function(a.view(real), b.view(real)).astype(real).view(DTYPE[type_])

    user = operator(type_, of_values, source, identity, commutative)
    for n in (1, 31, 33, 129, 4095, 4096, 4097, 12289, 50000):
        raw = data.make(g, "near-one", type_, n) if type_ in FLOATS else \
            g.integers(1, 1000003, n).astype(DTYPE[type_])
        want, got = (reduce_user(user, d, raw) for d in (NOBODY, device))
        assert got == want, f"{source} of {n} {type_} on {device}"


def test_user_operators_that_fail(device):
    raw = np.ones(5, np.uint32)
    user = operator("f32", lambda a, b: a, "a +\n foo(b)", 0, True)
    if device.spec != "model":
        assert reduce_user(user, device, raw) == "ECOMPILE"
        assert b"foo" in tally.error() and b"operator:2" in tally.error().replace(b"(", b":")
    user.struct.source = None
    assert reduce_user(user, device, raw) == "EUNSUPPORTED"
    half = operator("f16", lambda a, b: a, "a", 0, True)
    assert reduce_user(half, device, np.ones(5, np.uint16)) == "EUNSUPPORTED"
    assert tally.reduce_array(device, "sum", "u32", raw) == ("u64", 5), "the device works afterwards"


def test_a_feed_that_fails_half_way(device):
    """The device cannot run this operator, which it finds out when some elements lie in the state already."""
    raw = np.arange(20000, dtype=np.uint16)
    operator = tally.UserOperator(lambda a, b: a * np.uint16(3) + b, "f16", 7, False)
    for first, before in ((4090, 3), (4090, 0), (4090, 6), (4090, 4000), (0, 0), (0, 100), (0, 4096), (4096, 4000)):
        state = tally.State(operator, "f16", also=["sum"])
        assert state.begin_at(first) == "OK"
        state.feed(raw[:before])
        saved = state.save()
        for n in (5000, 16000):
            address = raw.ctypes.data + 2 * before
            assert state.feed_at(device, address, n) == "EUNSUPPORTED"
            assert state.save() == saved and state.count() == before, (first, before, n)
        state.feed(raw[before:12000])
        whole = tally.State(operator, "f16", also=["sum"])
        whole.begin_at(first)
        assert whole.feed(raw[:12000]).save() == state.save(), (first, before)


# ---- Devices ------------------------------------------------------------------------------------

def test_larger_than_memory(device, large_arena):
    """A device that claims a megabyte, and an array of several."""
    small = open_device(device.spec + ("," if ":" in device.spec else ":") + "memory=1M")
    g = data.rng("larger")
    n = 40000 if device.spec == "model" else 1000003
    for op, type_ in (("sum", "f64"), ("min", "f32"), ("sum", "i64"), ("prod", "f64"), ("xor", "u8")):
        raw = data.make(g, "near-one", type_, n) if type_ in FLOATS else data.make(g, "full", type_, n)
        for offset in (0, 1):  # what is not aligned is always copied
            address = large_arena.place(raw, offset)
            assert tally.reduce(small, op, type_, address, n) == \
                tally.reduce(NOBODY, op, type_, address, n)
    small.close()


def test_from_several_threads(device):
    """One device shared, and one of each thread's own."""
    g = data.rng("threads")
    raw = data.make(g, "outlier", "f32", 3000)
    want = tally.reduce_array(NOBODY, "sum", "f32", raw)
    wrong = []

    def work(mine):
        for _ in range(10):
            for d in (device, mine):
                if tally.reduce_array(d, "sum", "f32", raw) != want:
                    wrong.append(d)

    own = [open_device(device.spec) for _ in range(4)]
    threads = [threading.Thread(target=work, args=(d,)) for d in own]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for d in own:
        d.close()
    assert not wrong


def test_opened_many_times(device):
    """No memory stays behind."""
    def resident():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * 4096

    for round_ in range(3):
        for _ in range(100):
            open_device(device.spec).close()
        if round_ == 0:
            before = resident()
    assert resident() - before < 20 << 20


@pytest.mark.parametrize("spec", ["opencl:x", "opencl:0,memory=12", "opencl:0,block=3", "cuda:nine",
                                  "model:1", "model:block=64", "opencl:999", "model:memory=", "opencl:0,threads=2"])
def test_specs_that_are_none(spec):
    with pytest.raises(LookupError, match="EDEVICE"):
        tally.Device(spec)


def test_list():
    """The cpu, then GPUs, the model last; each can be opened."""
    infos, count = (tally.DeviceInfo * 16)(), ctypes.c_size_t()
    assert tally.device_list(infos, 16, byref(count)) == tally.OK
    specs = [infos[i].spec.decode() for i in range(count.value)]
    kind = [s.split(":")[0] for s in specs]
    assert kind == sorted(kind, key=["cpu", "cuda", "opencl", "model"].index)
    assert kind[0] == "cpu" and kind[-1] == "model"
    for spec in specs:
        tally.Device(spec).close()
