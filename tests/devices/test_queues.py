"""Reductions on queues of the caller's, in memory of the caller's: nothing waits, the bits are the CPU's."""

import ctypes
import threading
from ctypes import byref, c_int, c_size_t, c_void_p

import numpy as np
import pytest

import data
import tally
from drawn import is_slow
from native import MACHINES
from tally import DTYPE, FLOATS, NOBODY, OPS, SIZE, TYPES
from test_devices import USERS, operator

class Call(ctypes.Structure):
    _fields_ = [("x", c_void_p), ("y", c_void_p), ("n", c_size_t), ("workspace", c_void_p),
                ("workspace_bytes", c_size_t), ("queue", c_void_p), ("results", c_void_p)]


PROBLEM = ctypes.POINTER(tally.Problem)
open_in = tally._declare("open_in", c_int, ctypes.c_char_p, c_void_p, ctypes.POINTER(c_void_p))
workspace = tally._declare("workspace", c_int, c_void_p, PROBLEM, c_size_t, ctypes.POINTER(c_size_t))
c_enqueue = tally._declare("enqueue", c_int, c_void_p, PROBLEM, ctypes.POINTER(Call))


def enqueue(device, problem, x, y, n, work, work_size, queue, results):
    return c_enqueue(device, byref(problem), byref(Call(x, y, n, work, work_size, queue, results)))


class Place:
    """A device in the machine's context, a queue, and memory of every purpose."""

    def __init__(self, machine, room=8 << 20):
        self.machine = machine
        handle = c_void_p()
        assert open_in(machine.spec.encode(), machine.context, byref(handle)) == tally.OK, tally.error()
        self.device = handle.value
        self.queue, self.filling = machine.queue(), []
        self.room = room
        self.array, self.second = machine.memory(room), machine.memory(room)
        self.result = machine.memory(16 * (tally.VALUES_MAX + 1))
        self.work = machine.memory(room)

    def fill(self, memory, byte, size):
        self.filling.append(np.full(size, byte, np.uint8))  # stays until the queue is waited for
        self.machine.write(self.queue, memory, self.filling[-1])

    def outcomes(self, count):
        """The results, read on the same queue and so after the reduction: as tally.outcomes() says them,
        but for the reasons of values that there are not."""
        words = np.zeros(2 * (count + 1), np.uint64)
        self.machine.read(self.queue, words, self.result)
        self.filling.clear()
        assert int(words[-1]) == int(words[-2]) == 0x5A5A5A5A5A5A5A5A, "wrote past its results"
        made = []
        for value, about in words[:-2].reshape(-1, 2).tolist():
            status, code = about & 0xffffffff, about >> 32
            if status != tally.OK:
                assert value == 0
                made.append(tally.STATUS[status])
                continue
            name = TYPES[code - 1]
            assert value >> (8 * SIZE[name]) == 0 or SIZE[name] == 8
            made.append((name, value))
        return made if count > 1 else made[0]

    def outcome(self):
        return self.outcomes(1)

    def run(self, problem, raw, y=None):
        size, values = c_size_t(), tally.value_count(problem)
        status = workspace(self.device, byref(problem), len(raw), byref(size))
        assert status == tally.OK, tally.error()
        assert size.value <= self.room
        self.fill(self.work, 0xA5, size.value)  # of any content
        self.fill(self.result, 0x5A, 16 * (values + 1))
        if len(raw):
            self.machine.write(self.queue, self.array, raw)
            if y is not None:
                self.machine.write(self.queue, self.second, y)
        status = enqueue(self.device, problem, self.array, None if y is None else self.second, len(raw),
                         self.work, size.value, self.queue, self.result)
        assert status == tally.OK, tally.error()
        return self.outcomes(values)

    def reduce(self, op, type_, raw, y=None, **kw):
        return self.run(tally.problem(op, type_, **kw), raw, y)

    def reduce_user(self, user, raw):
        return self.run(tally.problem(user, user.type_), raw)

    def close(self):
        for memory in (self.array, self.second, self.result, self.work):
            self.machine.free(memory)
        tally.c_close(self.device)


@pytest.fixture(scope="module", params=sorted(MACHINES))
def machine(request):
    made = MACHINES[request.param]()
    yield made
    made.close()


@pytest.fixture(scope="module")
def place(machine):
    made = Place(machine)
    yield made
    made.close()


def lengths(place, type_):
    tile = 16384 // SIZE[type_]
    if is_slow(place.machine.spec):
        return [0, 1, 2, 31, 257, tile + 1, 2 * tile + 77]
    return [0, 1, 2, 31, 257, tile - 1, tile, tile + 1, 3 * tile + 5, 70001]


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_like_the_cpu(place, op, type_):
    g = data.rng(f"queues {op} {type_}")
    for n in lengths(place, type_):
        for kind in data.kinds(op, type_):
            raw = data.make(g, kind, type_, n)
            want = tally.reduce_array(NOBODY, op, type_, raw)
            assert place.reduce(op, type_, raw) == want, f"{op} of {n} {type_} ({kind})"


@pytest.mark.parametrize("type_", TYPES)
def test_one_block(place, type_):
    """Lengths at which a block gets a warp more, and at which the grid gets a second block; whole packs and not."""
    g = data.rng("queues one block " + type_)
    warp = 2048 // SIZE[type_]
    for n in (warp, warp + 1, 3 * warp + 16, 4 * warp + 1, 8 * warp):
        x, y = (data.make(g, str(g.choice(data.kinds("sum", type_))), type_, n) for _ in range(2))
        for op in ("sum", "dot", "norm1", "max", "nonzero"):
            second = y if op == "dot" else None
            assert place.reduce(op, type_, x, second) == tally.reduce_array(NOBODY, op, type_, x, second), f"{op} of {n}"


@pytest.mark.parametrize("type_", FLOATS)
def test_rounding_on_the_device(place, type_):
    """Ties to even, subnormal results, overflow, signed zeros, to every result type."""
    g = data.rng("queues rounding " + type_)
    for n in (1, 2, 3, 60, 5000) if is_slow(place.machine.spec) else (1, 2, 3, 60, 5000, 40000):
        for kind in data.kinds("sum", type_):
            raw = data.make(g, kind, type_, n)
            for out in FLOATS:
                assert place.reduce("sum", type_, raw, out=out) == \
                    tally.reduce_array(NOBODY, "sum", type_, raw, out=out), f"{kind}, {n}, to {out}"
    one = int(data.floats(type_, np.ones(1))[0])
    sign = 1 << (8 * SIZE[type_] - 1)
    for raw in ([one, one | sign], [sign], [sign, sign], [sign, 0], [0], [1], [1, 1, 1], [one, 1, 1],
                [sign | one, sign | 1], [one] * 33):
        raw = np.array(raw, DTYPE[type_])
        for op in OPS[:4]:
            assert place.reduce(op, type_, raw) == tally.reduce_array(NOBODY, op, type_, raw), (op, raw)


def test_fast(place):
    raw = data.floats("f32", np.arange(1000.0))
    for out in (None, "f64"):
        assert place.reduce("sum", "f32", raw, fast=True, out=out) == \
            tally.reduce_array(NOBODY, "sum", "f32", raw, out=out)  # small integers: any order is exact
    assert place.reduce("sum", "f64", data.floats("f64", [np.inf, -np.inf]), fast=True) == \
        ("f64", 0x7ff8000000000000)


def test_out_of_range(place):
    big = np.full(3, 1 << 62, np.int64)
    assert place.reduce("sum", "i64", big) == "ERANGE"
    assert place.reduce("prod", "i64", big) == "ERANGE"
    assert place.reduce("prod", "i64", big * 0) == ("i64", 0)
    lowest = np.array([-(1 << 62), 2], np.int64)
    assert place.reduce("prod", "i64", lowest) == ("i64", 1 << 63)
    assert place.reduce("sum", "i64", np.full(2, -(1 << 62), np.int64)) == ("i64", 1 << 63)
    assert place.reduce("sum", "u64", np.full(2, 1 << 63, np.uint64)) == "ERANGE"


@pytest.mark.parametrize("case", USERS, ids=lambda c: c[2].split("\n")[0])
def test_user_operators(place, case):
    type_, function, source, identity, commutative = case
    real = {"f32": np.float32, "f64": np.float64}.get(type_)

    def of_values(a, b):
        with np.errstate(all="ignore"):
            return function(a, b) if real is None else \
                function(a.view(real), b.view(real)).astype(real).view(DTYPE[type_])

    user = operator(type_, of_values, source, identity, commutative)
    g = data.rng("queues user " + source)
    for n in (0, 1, 33, 4096, 4097, 140000, 300001):
        raw = data.make(g, "near-one", type_, n) if type_ in FLOATS else \
            g.integers(1, 1000003, n).astype(DTYPE[type_])
        got = place.reduce_user(user, raw)
        assert got == tally.reduce_user(NOBODY, user, type_, raw.ctypes.data, n), f"{source} of {n}"


def test_arguments(place):
    size, asked = c_size_t(), tally.problem("sum", "f64")
    assert workspace(place.device, byref(asked), 1000, byref(size)) == tally.OK

    def call(memory=place.array, n=1000, work=place.work, work_size=size.value, result=place.result,
             y=None, asked=asked):
        return tally.STATUS[enqueue(place.device, asked, memory, y, n, work, work_size, place.queue,
                                    result)]
    assert call() == "OK"
    assert call(work_size=size.value - 1) == "EINVAL" and b"workspace" in tally.error()
    assert call(memory=None) == "EINVAL"
    assert call(work=None) == "EINVAL"
    assert call(result=None) == "EINVAL"
    assert call(n=1 << 62) == "EINVAL"
    assert call(memory=None, n=0) == "OK"
    assert call(y=place.second) == "EINVAL"
    assert call(asked=tally.problem("dot", "f64")) == "EINVAL"  # y is NULL
    assert tally.STATUS[c_enqueue(place.device, byref(asked), None)] == "EINVAL"
    assert tally.STATUS[workspace(place.device, byref(asked), 1000, None)] == "EINVAL"
    if place.machine.spec.startswith("cuda"):
        host = np.zeros(1000)
        assert call(memory=place.array + 1) == "EINVAL"
        assert call(memory=host.ctypes.data) == "EUNSUPPORTED"
    assert place.reduce("sum", "f64", data.floats("f64", np.ones(7))) == \
        tally.reduce_array(NOBODY, "sum", "f64", data.floats("f64", np.ones(7)))
    for spec in ("cpu", "model"):
        other = tally.Device(spec)
        assert workspace(other.handle, byref(asked), 10, byref(size)) == \
            tally.STATUS.index("EUNSUPPORTED" if spec == "cpu" else "OK")
        assert enqueue(other.handle, asked, place.array, None, 10, place.work, 1 << 20, None,
                       place.result) == tally.STATUS.index("EUNSUPPORTED")
        other.close()
    assert open_in(b"cpu", place.machine.context, byref(c_void_p())) == tally.STATUS.index("EINVAL")


def test_threads_with_queues_of_their_own(place):
    """One device, and a queue, workspace and result for each thread."""
    g = data.rng("queues threads")
    arrays = [data.make(g, "near-one", "f32", 20000 + i) for i in range(4)]
    wrong = []

    def work(raw):
        if hasattr(place.machine, "enter"):
            place.machine.enter()
        mine = Place(place.machine)
        shared, mine.device = mine.device, place.device
        try:
            for _ in range(20):
                for op in ("sum", "prod", "max"):
                    if mine.reduce(op, "f32", raw) != tally.reduce_array(NOBODY, op, "f32", raw):
                        wrong.append(op)
        except AssertionError as e:
            wrong.append(repr(e))
        mine.device = shared
        mine.close()

    threads = [threading.Thread(target=work, args=(a,)) for a in arrays]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_in_a_graph(place):
    """Captured once, replayed over other data."""
    if not hasattr(place.machine, "capture"):
        pytest.skip("graphs are CUDA's")
    g = data.rng("queues graph")
    for op, type_, n in (("sum", "f32", 100), ("sum", "f64", 70001), ("prod", "f32", 300001),
                         ("max", "i8", 50000), ("sum", "i64", 9999), ("sum", "f32", 0)):
        size, asked = c_size_t(), tally.problem(op, type_)
        assert workspace(place.device, byref(asked), n, byref(size)) == tally.OK
        place.fill(place.result, 0x5A, 32)

        def put():
            assert enqueue(place.device, asked, place.array, None, n, place.work, size.value, place.queue,
                           place.result) == tally.OK, tally.error()
            short = enqueue(place.device, asked, place.array, None, n, place.work, 8, place.queue,
                            place.result)
            assert tally.STATUS[short] == "EINVAL"  # and does the capture no harm
        again = place.machine.capture(place.queue, put)
        for kind in list(data.kinds(op, type_))[:4]:
            raw = data.make(g, kind, type_, n)
            if n:
                place.machine.write(place.queue, place.array, raw)
            again()
            assert place.outcome() == tally.reduce_array(NOBODY, op, type_, raw)


# ---- Statistics -----------------------------------------------------------------------------------

def singly(op, type_, raw, y=None, **kw):
    """What the results must be: each value by itself, or why there is none."""
    made = [tally.reduce_array(NOBODY, each, type_, raw, y, **kw)
            for each in tally.LISTS.get(op, [op])]
    return made if len(made) > 1 else made[0]


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", tally.STATISTICS)
def test_statistics_like_the_cpu(place, op, type_):
    g = data.rng(f"queues statistics {op} {type_}")
    kinds = ["normal", "bits", "specials", "zeros"] if type_ in FLOATS else ["full", "small", "extremes"]
    for n in (0, 1, 2, 31, 257, 4097) if is_slow(place.machine.spec) else (0, 1, 2, 31, 257, 4097, 70001):
        for kind in kinds:
            raw = data.make(g, kind, type_, n)
            y = data.make(g, str(g.choice(kinds)), type_, n) if op == "dot" else None
            assert place.reduce(op, type_, raw, y) == singly(op, type_, raw, y), f"{op} of {n} {type_} ({kind})"


@pytest.mark.parametrize("type_", ["f64", "f32", "bf16"])
def test_what_cancels(place, type_):
    """Few elements whose sum is far below most of them, and needs more than two doubles on the way."""
    g = data.rng("queues cancels " + type_)
    top, step = (900, 130) if type_ == "f64" else (120, 60)
    for n in (7, 40, 257, 1000, 2048):
        for _ in range(4):
            half = g.standard_normal(n // 2) * 2.0 ** (top - step * g.integers(0, 5, n // 2))
            x = np.concatenate([half, -half, g.standard_normal(n % 2) * 2.0 ** (top - 5 * step)])
            raw = data.floats(type_, g.permutation(x))
            for op in ("mean", "var", "std", "norm1", "norm2", "sumsq"):
                assert place.reduce(op, type_, raw) == tally.reduce_array(NOBODY, op, type_, raw), f"{op} of {n}"


def near_decisions(type_):
    """A few elements, among zeros, whose means, variances and norms are ties between two floats, or next to ties, exact
    powers of two, or 0, or lie at an end of what the type holds."""
    if type_ not in FLOATS:
        top = np.iinfo(DTYPE[type_]).max // 4
        yield from ([7], [-7], [-1], [1 << 12], [-(1 << 12)], [top, top], [-top, -top], [-(1 << 20), 3], [5001, -5001])
        return
    tiny = 2.0 ** (-300 if type_ == "f64" else -60)
    for digits in (9, 12, 13, 25, 26, 54):  # of a number that is half way between two floats with one bit less
        low, high = 1.0, 2.0 ** (digits - 1)
        for more in ([], [tiny], [-tiny]):
            yield [high, low, *more]
            yield [-high, -low, *more]
    for x in (2.0 ** 31, 2.0 ** 32, 2.0 ** -32, 2.0 ** 64, 2.0 ** -64, 2.0 ** 96):
        yield from ([-x], [x], [-x, tiny], [x, -x], [x, -x, tiny], [x, -x, -tiny])
    for x in (5001.0, 181.0, 94906267.0):  # squares of p + 1 bits
        yield from ([x, -x], [x, -x, tiny], [x], [x, tiny])
    for x in (2.0 ** 120, 2.0 ** 1000, 2.0 ** -120, 2.0 ** -1000, 2.0 ** -1074, 2.0 ** -149):
        yield from ([x], [-x, x / 2], [1.0, x], [x, x, x])


@pytest.mark.parametrize("type_", ["f64", "f32", "bf16", "i16", "u64", "u8"])
def test_near_decisions(place, type_):
    """More elements than one block takes, so that a launch of its own lowers: by doubles, where these are enough."""
    if not place.machine.spec.startswith("cuda"):
        return  # OpenCL's launch lowers without doubles
    n = 4096 if type_ == "f64" else 2500
    cases = [[*few] + [0] * (n - len(few)) for few in near_decisions(type_)]
    for case in cases + [[3] * n, [-3] * n if type_ != "u8" else [255] * n]:
        raw = data.floats(type_, case) if type_ in FLOATS else np.array(case).astype(DTYPE[type_])
        for op in ("mean", "var", "std", "norm2"):
            for out in {None, "f32" if type_ in FLOATS else None}:
                assert place.reduce(op, type_, raw, out=out) == \
                    tally.reduce_array(NOBODY, op, type_, raw, out=out), f"{op} of {case[:5]}, to {out}"


def test_several_results(place):
    """A result for each value, in the problem's order, and not one byte behind them."""
    g = data.rng("queues several")
    for type_ in ("f32", "f64", "i64", "u8"):
        for ops in (["minmax"], ["argmax", "argmin"], ["mean", "var"], ["minmax", "argmin"], ["describe", "norm2"], ["count", "any", "all"]):
            for n in (0, 5, 5000):
                raw = data.make(g, "normal" if type_ in FLOATS else "full", type_, n)
                want = [v for op in ops for each in tally.LISTS.get(op, [op])
                        for v in [tally.reduce_array(NOBODY, each, type_, raw, ddof=1.0)]]
                assert place.reduce(ops[0], type_, raw, also=ops[1:], ddof=1.0) == want, (ops, type_, n)
