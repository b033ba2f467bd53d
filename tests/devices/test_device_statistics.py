"""Every statistic on every device: the bits of the calling thread's CPU, whose own are held against oracles
by tests/engine. A part that a device does not support is a failure here, not a skip."""

import ctypes
from ctypes import byref

import numpy as np
import pytest

import data
import oracle
import tally
from conftest import SPECS, open_device
from drawn import is_slow, types_on
from oracle import ANY_FLOAT
from tally import DTYPE, FLOATS, INTS, NOBODY, SIZE, STATISTICS, TYPES


def cpus():
    here = []
    for isa in ("baseline", "avx2", "avx512", "neon"):
        try:
            tally.Device(f"cpu:isa={isa}").close()
            here += [f"cpu:threads={t},isa={isa}" for t in (1, 2, 3)]
        except LookupError:
            pass
    return here


@pytest.fixture(scope="module", params=SPECS + cpus())
def device(request):
    opened = open_device(request.param)
    yield opened
    opened.close()


def kinds(type_):
    return ["normal", "bits", "specials", "zeros", "subnormal", "cancel", "outlier", "huge"] \
        if type_ in FLOATS else ["full", "small", "extremes"]


def lengths(device, type_):
    tile = 16384 // SIZE[type_]
    if is_slow(device.spec):
        return [1, 17, 257, tile + 1]
    return [1, 2, 17, 257, 1023, tile - 1, tile + 1, 3 * tile + 5] + \
        ([(5 << 18) // SIZE[type_]] if "threads=3" in device.spec else [])


def same(device, op, type_, raw, y=None, what="", **kw):
    want = tally.reduce_array(NOBODY, op, type_, raw, y, **kw)
    got = tally.reduce_array(device, op, type_, raw, y, **kw)
    assert got == want, f"{op} of {len(raw)} {type_} ({what}, {kw}) on {device} seed={data.SEED}"


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", STATISTICS)
def test_like_the_cpu(device, op, type_):
    g = data.rng(f"device statistics {op} {type_}")
    for n in [0] + lengths(device, type_):
        for kind in kinds(type_) if n < 2000 else [str(g.choice(kinds(type_)))]:
            raw = data.make(g, kind, type_, n)
            y = data.make(g, str(g.choice(kinds(type_))), type_, n) if op == "dot" else None
            out = str(g.choice(FLOATS)) if op in ANY_FLOAT and g.random() < .4 else None
            ddof = float(g.choice([0, 1, 0.5, 1e-300])) if op in ("var", "std") else 0.0
            same(device, op, type_, raw, y, what=kind, out=out, ddof=ddof)


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("op", STATISTICS)
def test_specials(device, op, type_):
    """NaN, infinities, zeros of both signs, in all places of short arrays, and somewhere in longer ones."""
    inf, sign = oracle.INF[type_], oracle.SIGN[type_]
    some = [0, sign, oracle.ONE[type_], inf, inf | sign, inf | 1, 1, inf - 1]
    g = data.rng(f"device specials {op} {type_}")
    for n in (1, 2, 3, 300) if is_slow(device.spec) else (1, 2, 3, 40, 300, 9000):
        for base in (0, sign, oracle.ONE[type_]):
            for a in g.permutation(np.array(some, object))[:2 if is_slow(device.spec) else None]:
                raw = np.full(n, base, DTYPE[type_])
                raw[int(g.integers(0, n))] = a
                y = None
                if op == "dot":
                    y = np.full(n, int(g.choice(np.array(some, np.uint64))), DTYPE[type_])
                same(device, op, type_, raw, y, what=f"{a:#x} among {base:#x}")


BOTH = [["minmax"], ["max", "min"], ["argmin", "argmax"], ["argmax", "argmin"]]  # which one launch gives


@pytest.mark.parametrize("type_", TYPES)
def test_several_values(device, type_):
    """One pass, many answers."""
    g = data.rng("device several " + type_)
    for ops in (*BOTH, ["describe"], ["minmax", "argmax"], ["mean", "var", "std"], ["sum", "min", "nonzero"],
                ["norm1", "norm2", "norminf", "sumsq"], ["count"], ["any", "all"], ["prod", "sum", "argmin"],
                ["xor", "nans", "max"], ["describe", "norm2", "nonzero", "or"]):
        for n in (0, 1, 300, 5000):
            raw = data.make(g, str(g.choice(kinds(type_))), type_, n)
            same(device, ops[0], type_, raw, also=ops[1:], ddof=1.0)
    x, y = (data.make(g, kinds(type_)[0], type_, 1000) for _ in range(2))
    same(device, "dot", type_, x, y, also=["sumsq", "argmin", "norm1"])


@pytest.mark.parametrize("type_", ["f32", "f64", "bf16", "i32", "u64"])
def test_states_fed_by_a_device(device, type_):
    """In pieces, some by the device and some by the calling thread; the bytes are one array's."""
    g = data.rng("device states " + type_)
    n = 3000 if is_slow(device.spec) else 70_001
    for op in STATISTICS:
        x = data.make(g, "normal" if type_ in FLOATS else "full", type_, n)
        y = data.make(g, "normal" if type_ in FLOATS else "full", type_, n) if op == "dot" else None
        whole = tally.State(op, type_).feed(x, y)
        state, at = tally.State(op, type_), 0
        for size in (1, n // 3, 100, n):
            piece, other = x[at:at + size], None if y is None else y[at:at + size]
            address = piece.ctypes.data
            by = device if g.random() < .7 else NOBODY
            status = state.feed_at(by, address, len(piece), None if other is None else other.ctypes.data)
            assert status == "OK", (op, type_, by, status, tally.error())
            at += len(piece)
        assert state.value() == whole.value() and state.save() == whole.save(), (op, type_, data.SEED)


@pytest.mark.parametrize("type_", FLOATS)
def test_fast_means(device, type_):
    raw = data.floats(type_, np.arange(2 if type_ == "bf16" else 8).repeat(11).astype(float))
    for out in (None, "f64"):
        same(device, "mean", type_, raw, fast=True, out=out)  # small integers: any order is exact
    same(device, "var", type_, raw, fast=True)


def test_the_first_of_equals(device):
    g = data.rng("device first")
    for type_ in types_on(device.spec):
        for n in (1, 33, 3000):
            raw = data.make(g, "small", type_, n) if type_ in INTS else \
                data.floats(type_, g.integers(-2, 3, n).astype(float))
            for op in ("argmin", "argmax"):
                same(device, op, type_, raw)
                same(device, op, type_, np.full(n, raw[0]))


def test_products_beyond_f64(device):
    """Products below 2^-1074 and above 2^1024, which together are something."""
    def f(values):
        return data.floats("f64", values)
    for x, y in (([1e200, 1e200, 1.0], [1e200, -1e200, 1.0]), ([5e-324] * 2, [0.5] * 2),
                 ([1.0, 2.0 ** -53, 5e-324], [1.0, 1.0, 5e-324]),
                 ([1.0, 2.0 ** -53, 5e-324], [1.0, 1.0, -5e-324]),
                 ([2.0 ** 1023, 2.0 ** 1023, 1.0], [2.0 ** 1023, -(2.0 ** 1023), 2.0 ** -1074])):
        same(device, "dot", "f64", f(x), f(y))
        same(device, "dot", "f64", f(x * 700), f(y * 700))
    for values in ([1e200, 1e200], [5e-324] * 3, [1e-200] * 7, [2.0 ** e for e in range(-1074, 1024)]):
        for op in ("norm2", "sumsq", "var", "std"):
            same(device, op, "f64", f(values))


def test_data_on_the_device(device):
    """What a CPU behind OpenCL calls its own memory is the host's; a cpu's is."""
    g = data.rng("device resident")
    for op, *also in [[op] for op in STATISTICS] + BOTH:
        for type_ in types_on(device.spec):
            raw = data.make(g, kinds(type_)[0], type_, 5000)
            y = data.make(g, kinds(type_)[0], type_, 5000) if op == "dot" else None
            asked = tally.problem(op, type_, also=also)
            values = tally.fresh_values(tally.value_count(asked))
            status = tally.reduce_resident(device.handle, byref(asked), raw.ctypes.data,
                                           None if y is None else y.ctypes.data, 5000, values)
            got = tally.outcomes(status, values)
            if device.spec.startswith(("opencl", "cpu")):
                assert got == tally.reduce_array(NOBODY, op, type_, raw, y, also=also), (op, also, type_)
            else:
                assert got == "EUNSUPPORTED"


def test_time_on_the_device(device):
    g = data.rng("device time")
    raw = data.make(g, "normal", "f32", 5000)
    for op in ("mean", "var", "argmin", "describe", "dot"):
        y = raw if op == "dot" else None
        asked, seconds = tally.problem(op, "f32"), ctypes.c_double(-1)
        values = tally.fresh_values(tally.value_count(asked))
        status = tally.device_time(device.handle, byref(asked), raw.ctypes.data,
                                   None if y is None else y.ctypes.data, 5000, values, byref(seconds))
        got = tally.outcomes(status, values)
        if device.spec.startswith(("model", "cpu")):
            assert got == "EUNSUPPORTED" and seconds.value == -1
        else:
            assert got == tally.reduce_array(NOBODY, op, "f32", raw, y) and seconds.value >= 0
