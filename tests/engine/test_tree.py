"""The canonical tree, seen through operators that are not associative at all.

A result then names the whole bracketing: one element combined too early, an identity mixed in, two
operands exchanged, and the bits differ. Products of floats go through the same tree and are in
test_reduce.py; here some more of their edges.
"""

import numpy as np
import pytest

import data
import oracle
import tally
from tally import DTYPE, FLOATS, SIZE, TYPES
from test_reduce import compare, show

LENGTHS = [0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 34, 47, 63, 64, 65, 95, 96, 97, 127, 128, 129, 160,
           255, 256, 257, 383, 385, 512, 1000, 1023, 1024, 1025, 2047, 2048, 2049, 2177, 3967, 3968,
           3969, 4063, 4064, 4065, 4095, 4096, 4097, 4128, 4129, 4224, 4225, 8191, 8192, 8193, 12288,
           12289, 12300, 20479, 20481, 28673]


def mixing(type_, commutative):
    """A function that is exact in wrap-around integers and associative nowhere."""
    u = np.dtype(f"u{SIZE[type_]}").type
    k = u(0x9E3779B97F4A7C15 & ((1 << (8 * SIZE[type_])) - 1) | 1)

    def commuting(a, b):
        a, b = a.view(u), b.view(u)
        return ((a + b) * k ^ (a * b)).view(DTYPE[type_])

    def ordered(a, b):
        a, b = a.view(u), b.view(u)
        return (a * k + (b ^ (b >> u(3)))).view(DTYPE[type_])

    return commuting if commutative else ordered


def floating(type_, commutative):
    """Rounds at every step: the bits depend on every bracket."""
    natural = oracle.NATURAL[type_]

    def commuting(a, b):
        a, b = a.view(natural), b.view(natural)
        return ((a + b) * natural(0.75) + a * b * natural(0.125)).view(DTYPE[type_])

    def ordered(a, b):
        a, b = a.view(natural), b.view(natural)
        return (a * natural(0.875) - b * natural(0.375)).view(DTYPE[type_])

    return commuting if commutative else ordered


def run(devices, operator, f, type_, raw, address, commutative, identity, what):
    want = type_, oracle.tree_bits(type_, f, raw, commutative, identity)
    for device in devices:
        got = tally.reduce_user(device, operator, type_, address, len(raw))
        problems, operator.problems = operator.problems, []
        assert not problems, f"{what} {device}: combine(): {problems[0]}"
        if got != want:
            pytest.fail(f"user operator type={type_} commutative={commutative} {what} "
                        f"device={device.spec} n={len(raw)} seed={data.SEED}: got {show(got)}, "
                        f"want {show(want)}")


@pytest.mark.parametrize("commutative", [True, False])
@pytest.mark.parametrize("type_", TYPES)
def test_every_bracket(type_, commutative, devices):
    g = data.rng(f"bracket {type_} {commutative}")
    arena = data.Arena(1 << 20)
    some = [d for d in devices if d.spec != "auto"]
    for n in LENGTHS:
        f = mixing(type_, commutative)
        if type_ in ("f16", "f32", "f64") and g.random() < 0.5:
            f = floating(type_, commutative)
            raw = data.floats(type_, g.normal(size=n))
        else:
            raw = data.random_bits(g, type_, n).view(DTYPE[type_])
        # an identity that would be seen in the result if it ever took part
        identity = int(data.random_bits(g, type_, 1)[0])
        operator = tally.UserOperator(f, type_, identity, commutative)
        address = arena.place(raw, int(g.choice([0, 1, 3, ~0, ~2])))
        chosen = some if n < 200 else [some[int(i)] for i in g.choice(len(some), 4, replace=False)]
        run(chosen, operator, f, type_, raw, address, commutative, identity, "mixing")


@pytest.mark.parametrize("commutative", [True, False])
def test_long(commutative, devices):
    g = data.rng(f"long {commutative}")
    for type_ in ("u8", "i32", "bf16", "f32", "f64"):
        for n in (65537, data.long_lengths(type_)[2] if SIZE[type_] > 1 else (1 << 20) + 5):
            f = mixing(type_, commutative)
            raw = data.random_bits(g, type_, n).view(DTYPE[type_])
            operator = tally.UserOperator(f, type_, 7, commutative)
            device = devices[int(g.integers(0, len(devices)))]
            run([device], operator, f, type_, raw, raw.ctypes.data, commutative, 7, "long")


@pytest.mark.parametrize("commutative", [True, False])
def test_operands_keep_their_order(commutative, devices):
    """first() and last() are associative and tell left from right; a commutative flag on min."""
    g = data.rng("order")
    if commutative:
        f, pick = (lambda a, b: np.minimum(a, b)), (lambda raw: raw.min())
        for n in (1, 100, 5000, 9000):
            raw = data.random_bits(g, "u32", n)
            run(devices, tally.UserOperator(f, "u32", 5, True), f, "u32", raw, raw.ctypes.data, True,
                5, "min")
            assert oracle.tree_bits("u32", f, raw, True, 5) == int(pick(raw))
        return
    for f, pick in (((lambda a, b: a), 0), ((lambda a, b: b), -1)):
        for n in (1, 2, 33, 128, 129, 4096, 4097, 13000):
            raw = data.random_bits(g, "u64", n)
            assert oracle.tree_bits("u64", f, raw, False, 0) == int(raw[pick])
            run(devices[:6], tally.UserOperator(f, "u64", 0, False), f, "u64", raw, raw.ctypes.data,
                False, 0, "first or last")


def test_nan_of_a_user_operator_is_canonical(devices):
    for type_ in FLOATS:
        odd = oracle.INF[type_] | oracle.SIGN[type_] | 5
        f = lambda a, b: np.full_like(a, DTYPE[type_](odd))  # noqa: E731
        operator = tally.UserOperator(f, type_, 0, True)
        for n in (1, 2, 100, 5000):
            raw = np.full(n, odd, DTYPE[type_])
            for device in devices:
                got = tally.reduce_user(device, operator, type_, raw.ctypes.data, n)
                assert got == (type_, oracle.NAN[type_]), (type_, n, device)


def test_an_identity_alone_is_never_combined(devices):
    for n, calls in ((0, False), (1, False), (2, True)):
        operator = tally.UserOperator(lambda a, b: a + b, "u32", 77, True)
        raw = np.array([40, 2][:n], np.uint32)
        for device in devices:
            operator.calls = 0
            got = tally.reduce_user(device, operator, "u32", raw.ctypes.data if n else None, n)
            assert got == ("u32", [77, 40, 42][n])
            assert bool(operator.calls) == calls


@pytest.mark.parametrize("type_", FLOATS)
def test_products(type_, few_devices):
    """Products that overflow, underflow and turn NaN in some brackets and not in others."""
    g = data.rng("products " + type_)
    for n in (2, 3, 31, 32, 33, 64, 65, 100, 1000, 3969, 4064, 4065, 4095, 4096, 4097, 5000, 8191,
              9000, 40000):
        for kind in ("near-one", "bits", "loguniform", "subnormal", "huge", "outlier", "blocks"):
            raw = data.make(g, kind, type_, n)
            compare(few_devices, "prod", type_, kind, raw, raw.ctypes.data, 0,
                    oracle.answer("prod", type_, raw))
        # inf only where huge factors meet before small ones do
        raw = np.where(g.random(n) < 0.5, *[data.floats(type_, [v])[0] for v in (2.0 ** 14, 2.0 ** -14)])
        raw = raw.astype(DTYPE[type_])
        compare(few_devices, "prod", type_, "seesaw", raw, raw.ctypes.data, 0,
                oracle.answer("prod", type_, raw))
    for special in (oracle.INF[type_], 0, oracle.SIGN[type_]):
        for n in (2, 40, 5000):
            raw = data.make(g, "near-one", type_, n)
            raw[g.choice(n, 2, replace=False)] = [oracle.INF[type_], special]
            want = oracle.answer("prod", type_, raw)
            assert special == oracle.INF[type_] or want[1] == oracle.NAN[type_]
            compare(few_devices, "prod", type_, "inf * 0", raw, raw.ctypes.data, 0, want)
