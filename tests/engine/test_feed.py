"""A state that is fed gives what one call over the whole array gives, however it is cut, and at every point."""

import numpy as np
import pytest

import data
import oracle
import tally
from tally import DTYPE, FLOATS, OPS, SIZE, TYPES
from test_reduce import show
from test_tree import mixing


def cuts(g, n):
    """Piece lengths that add to n: few or many, empty ones among them, some at leaf edges."""
    style = int(g.integers(0, 5))
    if style == 0:
        points = g.integers(0, n + 1, int(g.integers(0, 6)))
    elif style == 1:
        points = g.integers(0, n + 1, min(n, 300))
    elif style == 2:
        points = np.arange(0, n, 4096) + int(g.integers(-1, 2))
    elif style == 3:
        points = np.arange(0, min(n, 500))
    else:
        points = np.concatenate([g.integers(0, n + 1, 3)] * 3)  # repeated: empty pieces
    points = np.concatenate([[0], np.sort(np.clip(points, 0, n)), [n]])
    return np.diff(points).tolist()


def fed(state, device, address, n):
    status = state.feed_at(device, address, n)
    assert status == "OK", f"feed: {status}: {tally.error().decode()}"


def feed(state, device, raw, pieces, arena, g):
    size = raw.dtype.itemsize
    at = 0
    for n in pieces:
        piece = raw[at:at + n]
        if g.random() < 0.3 and n * size < arena.size - 8:  # moved to an odd place that is gone later
            fed(state, device, arena.place(piece, int(g.choice([0, 1, 3, ~0, ~1]))), n)
            arena.bytes[:] = 0xFF
        elif n == 0 and g.random() < 0.5:
            fed(state, device, None, 0)
        else:
            fed(state, device, raw.ctypes.data + at * size, n)
        at += n
    assert at == len(raw)


@pytest.fixture(scope="module")
def arena():
    return data.Arena(4096)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_any_cut(op, type_, devices, arena):
    g = data.rng(f"feed {op} {type_}")
    kinds = data.kinds(op, type_)
    for n in [0, 1, 2, 33, 100, 4095, 4096, 4097, 8192, 9000, 20000, 70000, (7 << 18) // SIZE[type_]]:
        for _ in range(3 if n < 50000 else 1):
            kind = str(g.choice(kinds))
            raw = data.make(g, kind, type_, n)
            out = str(g.choice(FLOATS)) if op == "sum" and type_ in FLOATS else None
            device = devices[int(g.integers(0, len(devices)))]
            pieces = cuts(g, n)
            with tally.State(op, type_, out=out) as state:
                feed(state, device, raw, pieces, arena, g)
                got = state.value()
                again = state.value()
            want = oracle.answer(op, type_, raw, out)
            if got != want or again != want:
                pytest.fail(f"state op={op} type={type_} device={device.spec} n={n} kind={kind} "
                            f"pieces={pieces[:20]} out={out} seed={data.SEED}: got {show(got)}, then "
                            f"{show(again)}, want {show(want)}")


@pytest.mark.parametrize("type_", TYPES)
def test_result_on_the_way(type_, devices, arena):
    """value() changes nothing: asked after every piece, it is right for what was fed so far."""
    g = data.rng("on the way " + type_)
    for op in OPS:
        for n in (50, 5000, 17000):
            raw = data.make(g, data.kinds(op, type_)[0], type_, n)
            device = devices[int(g.integers(0, len(devices)))]
            pieces = [p for p in cuts(g, n)][:40]
            with tally.State(op, type_) as state:
                assert state.value() == oracle.answer(op, type_, raw[:0])
                at = 0
                for piece in pieces:
                    fed(state, device, raw.ctypes.data + at * SIZE[type_], piece)
                    at += piece
                    got, want = state.value(), oracle.answer(op, type_, raw[:at])
                    assert got == want, (op, type_, device.spec, at, pieces, show(got), show(want),
                                         data.SEED)


@pytest.mark.parametrize("commutative", [True, False])
@pytest.mark.parametrize("type_", ["u8", "i16", "bf16", "f32", "u64", "f64"])
def test_user_operator(type_, commutative, devices, arena):
    g = data.rng(f"feed user {type_} {commutative}")
    f = mixing(type_, commutative)
    for n in [0, 1, 2, 31, 33, 129, 4095, 4096, 4097, 8193, 12289, 30000]:
        raw = data.random_bits(g, type_, n).view(DTYPE[type_])
        operator = tally.UserOperator(f, type_, 3, commutative)
        device = devices[int(g.integers(0, len(devices)))]
        pieces = cuts(g, n)
        with tally.State(operator, type_) as state:
            half = len(pieces) // 2
            feed(state, device, raw[:sum(pieces[:half])], pieces[:half], arena, g)
            middle = state.value()
            feed(state, device, raw[sum(pieces[:half]):], pieces[half:], arena, g)
            got = state.value()
        assert not operator.problems, operator.problems[0]
        for result, upto in ((middle, sum(pieces[:half])), (got, n)):
            want = type_, oracle.tree_bits(type_, f, raw[:upto], commutative, 3)
            assert result == want, (type_, commutative, device.spec, upto, pieces[:20], show(result),
                                    show(want), data.SEED)


def test_a_sum_out_of_range_may_come_back(devices):
    for device in devices:
        for type_ in ("i64", "u64"):
            top = oracle.integer_range(type_)[1]
            raw = np.array([top, 1] + ([-1] if type_ == "i64" else []), DTYPE[type_])
            with tally.State("sum", type_) as state:
                fed(state, device, raw.ctypes.data, 1)
                assert state.value() == (type_, top)
                fed(state, device, raw.ctypes.data + 8, 1)
                assert state.value() == "ERANGE"
                if type_ == "i64":
                    fed(state, device, raw.ctypes.data + 16, 1)
                    assert state.value() == (type_, top)
            with tally.State("prod", type_) as state:
                fed(state, device, raw.ctypes.data, 1)
                fed(state, device, raw.ctypes.data, 1)
                assert state.value() == "ERANGE"
                fed(state, device, np.zeros(1, np.int64).ctypes.data, 1)
                assert state.value() == (type_, 0)
                fed(state, device, raw.ctypes.data, 1)
                assert state.value() == (type_, 0)


def test_infinities_in_different_pieces(devices):
    for device in devices:
        for type_ in FLOATS:
            inf = oracle.INF[type_]
            raw = np.array([inf, oracle.ONE[type_], inf | oracle.SIGN[type_], 0], DTYPE[type_])
            with tally.State("sum", type_) as state:
                for i, want in enumerate([inf, inf, oracle.NAN[type_], oracle.NAN[type_]]):
                    fed(state, device, raw.ctypes.data + i * SIZE[type_], 1)
                    assert state.value() == (type_, want), (type_, i, device)


def test_many_states_at_once_on_one_device(devices):
    """States share a device but nothing else."""
    g = data.rng("many states")
    for device in devices[:8]:
        open_states = []
        for op in OPS:
            for type_ in TYPES:
                kind = data.kinds(op, type_)[0]
                open_states.append((op, type_, data.make(g, kind, type_, 5000),
                                     tally.State(op, type_)))
        for part in range(5):
            for op, type_, raw, state in open_states:
                fed(state, device, raw.ctypes.data + 1000 * part * SIZE[type_], 1000)
        for op, type_, raw, state in open_states:
            assert state.value() == oracle.answer(op, type_, raw), (op, type_, device)
            state.close()


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def test_constant_memory(few_devices):
    """2^26 elements through one state of each family: it must not keep them."""
    raw = data.floats("f32", np.exp2(data.rng("memory").uniform(-.01, .01, 1 << 20)))
    whole = oracle.tree(np.multiply, raw.view(np.float32), True)
    for _ in range(6):
        with np.errstate(all="ignore"):
            whole = whole * whole  # equal halves meet at every further level
    total = oracle.Exact().add("f32", raw)
    total.units *= 64
    device = few_devices[-1]
    with tally.State("prod", "f32") as product, tally.State("sum", "f32") as sum_:
        for i in range(64):
            fed(product, device, raw.ctypes.data, 1 << 20)
            fed(sum_, device, raw.ctypes.data, 1 << 20)
            if i == 1:
                before = resident()
        assert product.value() == ("f32", oracle.canonical("f32", int(whole.view(np.uint32)[0])))
        assert sum_.value() == ("f32", total.round("f32"))
    assert resident() - before < 32 << 20
