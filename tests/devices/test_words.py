"""Words of a reduction on a device's queue, for other ranks: those of the host's states, and, added up and gathered, the
values of the whole array by an oracle."""

import ctypes
from ctypes import POINTER, Structure, byref, c_int, c_size_t, c_void_p

import numpy as np
import pytest

import data
import oracle
import tally
from native import MACHINES
from tally import DTYPE, FLOATS, INTS, SIZE, TYPES

PROBLEM = POINTER(tally.Problem)


class Call(Structure):
    _fields_ = [("x", c_void_p), ("y", c_void_p), ("n", c_size_t), ("workspace", c_void_p),
                ("workspace_bytes", c_size_t), ("queue", c_void_p), ("added", c_void_p), ("gathered", c_void_p),
                ("failed", c_void_p)]


class Words(Structure):
    _fields_ = [("added", c_size_t), ("gathered", c_size_t), ("workspace", c_size_t)]


class Values(Structure):
    _fields_ = [("added", c_void_p), ("gathered", c_void_p), ("ranks", c_size_t), ("count", c_size_t),
                ("failed", c_void_p), ("queue", c_void_p), ("results", c_void_p)]


measure = tally._declare("words_measure", c_int, c_void_p, PROBLEM, c_size_t, c_size_t, POINTER(Words))
enqueue_words = tally._declare("enqueue_words", c_int, c_void_p, PROBLEM, POINTER(Call))
enqueue_values = tally._declare("enqueue_values", c_int, c_void_p, PROBLEM, POINTER(Values))
open_in = tally._declare("open_in", c_int, ctypes.c_char_p, c_void_p, POINTER(c_void_p))


class Place:
    def __init__(self, name, room=1 << 20):
        self.machine = MACHINES[name]()
        handle = c_void_p()
        assert open_in(self.machine.spec.encode(), self.machine.context, byref(handle)) == 0, tally.error()
        self.device, self.queue, self.room = handle.value, self.machine.queue(), room
        self.x, self.y, self.added, self.gathered, self.work, self.results, self.failed = \
            (self.machine.memory(room) for _ in range(7))

    def write(self, memory, array):
        if array.nbytes:
            assert array.nbytes <= self.room
            self.machine.write(self.queue, memory, array)
            self.machine.read(self.queue, np.zeros(8, np.uint8), memory)  # waits

    def read(self, memory, dtype, count):
        out = np.zeros(count, dtype)
        if count:
            self.machine.read(self.queue, out, memory)
        return out

    def words(self, problem, x, y=None):
        sizes = Words()
        assert measure(self.device, byref(problem), len(x), 1, byref(sizes)) == tally.OK, tally.error()
        self.write(self.work, np.full(sizes.workspace, 0xA5, np.uint8))
        for memory, count in ((self.added, sizes.added), (self.gathered, sizes.gathered)):
            self.write(memory, np.full(count + 1, 0x5A5A, np.uint64))
        self.write(self.x, x)
        if y is not None:
            self.write(self.y, y)
        self.write(self.failed, np.full(3, 0x5A5A, np.uint64))
        call = Call(self.x, None if y is None else self.y, len(x), self.work, sizes.workspace, self.queue, self.added,
                    self.gathered, self.failed)
        assert enqueue_words(self.device, byref(problem), byref(call)) == tally.OK, tally.error()
        assert self.read(self.failed, np.uint64, 3).tolist() == [0, 0, 0x5A5A]
        made = [self.read(memory, dtype, count + 1) for memory, dtype, count in
                ((self.added, np.int64, sizes.added), (self.gathered, np.uint64, sizes.gathered))]
        assert all(m[-1] == 0x5A5A for m in made), "wrote past its words"
        return [m[:-1] for m in made]

    def values(self, problem, added, gathered, ranks, count=1, failed=None):
        """`added` of each state one behind another, `gathered` of each rank all states'."""
        sizes, values = Words(), tally.value_count(problem)
        assert measure(self.device, byref(problem), 0, count, byref(sizes)) == tally.OK, tally.error()
        self.write(self.added, added)
        self.write(self.gathered, gathered)
        self.write(self.results, np.full(2 * values * count + 2, 0x5A5A, np.uint64))
        if failed is not None:
            self.write(self.failed, np.array(failed, np.int64))
        call = Values(self.added, self.gathered, ranks, count, None if failed is None else self.failed,
                      self.queue, self.results)
        assert enqueue_values(self.device, byref(problem), byref(call)) == tally.OK, tally.error()
        made = self.read(self.results, np.uint64, 2 * values * count + 2)
        assert (made[-2:] == 0x5A5A).all(), "wrote past its results"
        return [outcomes(made[2 * values * i:2 * values * (i + 1)]) for i in range(count)]

    def over_ranks(self, problem, parts, ys=None):
        """The values of parts of an array that as many ranks have."""
        made = [self.words(problem, x, None if ys is None else ys[i]) for i, x in enumerate(parts)]
        added = np.sum([m[0] for m in made], axis=0, dtype=np.int64)
        return self.values(problem, added, np.concatenate([m[1] for m in made]), len(parts))[0]

    def close(self):
        tally.c_close(self.device)
        self.machine.close()


def outcomes(words):
    made = []
    for value, about in words.reshape(-1, 2).tolist():
        status, code = about & 0xffffffff, about >> 32
        assert status == tally.OK or value == 0
        made.append(tally.STATUS[status] if status else (tally.TYPES[code - 1], value))
    return made


@pytest.fixture(scope="module", params=sorted(MACHINES))
def place(request):
    made = Place(request.param)
    yield made
    made.close()


def array(rng, type_, n):
    """Elements of a type: small ones, any bits, and what is special."""
    if type_ in INTS:
        any_bits = data.random_bits(rng, type_, n).view(DTYPE[type_])
        return np.where(rng.random(n) < 0.5, rng.integers(0, 4, n).astype(DTYPE[type_]), any_bits)
    x = data.floats(type_, rng.standard_normal(n) * 2.0 ** rng.integers(-12, 12, n))
    return np.where(rng.random(n) < 0.1, rng.choice([0, oracle.SIGN[type_]], n).astype(DTYPE[type_]), x)


def cut(rng, x, ranks):
    """An array in as many parts, some of them empty."""
    return np.split(x, np.sort(rng.integers(0, len(x) + 1, ranks - 1)))


def check(place, op, type_, parts, ys=None, **kw):
    x = np.concatenate(parts)
    want = oracle.statistic(op, type_, x, None if ys is None else np.concatenate(ys), **kw)
    got = place.over_ranks(tally.problem(op, type_, **kw), parts, ys)
    assert got == (want if isinstance(want, list) else [want]), (op, type_, [len(p) for p in parts])


OPS = [op for op in tally.OPS + tally.STATISTICS if op not in ("prod",)]


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_like_one_array(place, op, type_):
    rng = data.rng(f"words {op} {type_}")
    for ranks, n in ((1, 0), (3, int(rng.integers(1, 200)))):
        parts = cut(rng, array(rng, type_, n), ranks)
        check(place, op, type_, parts, cut_alike(parts, array(rng, type_, n)) if op == "dot" else None)


def cut_alike(parts, y):
    return np.split(y, np.cumsum([len(p) for p in parts])[:-1])


@pytest.mark.parametrize("type_", INTS)
def test_products(place, type_):
    rng = data.rng(f"words product {type_}")
    for ranks in (1, 2, 4):
        for values in ([1, 2, 3], [1, 255 if SIZE[type_] == 1 and type_[0] == "u" else 100], [0, 1, 7]):
            for n in (0, 5, 30):
                x = rng.choice(values, n).astype(DTYPE[type_])
                if type_[0] == "i":
                    x = np.where(rng.random(n) < 0.5, -x, x).astype(DTYPE[type_])
                check(place, "prod", type_, cut(rng, x, ranks))


@pytest.mark.parametrize("type_", FLOATS)
def test_what_is_special(place, type_):
    """NaNs, infinities, zeros of both signs, the far ends of the range: on one rank or on several."""
    rng = data.rng(f"words special {type_}")
    inf, sign, nan = oracle.INF[type_], oracle.SIGN[type_], oracle.NAN[type_]
    for pool in ([inf, 0], [inf, inf | sign], [nan, inf, 1], [sign], [sign, 0], [1, 1 | sign, inf - 1],
                 [inf - 1, (inf - 1) | sign, 1]):
        for op in ("sum", "mean", "norm2", "dot", "describe", "minmax", "var"):
            x = rng.choice(np.array(pool, DTYPE[type_]), 40)
            parts = cut(rng, x, 3)
            check(place, op, type_, parts, cut_alike(parts, rng.permutation(x)) if op == "dot" else None)


@pytest.mark.parametrize("type_", TYPES)
def test_first_among_equals(place, type_):
    """argmin and argmax count from rank 0's first element, and take the first of several."""
    x = np.array([3, 1, 2, 3, 1, 3], DTYPE[type_]) if type_ in INTS else data.floats(type_, [3, 1, 2, 3, 1, 3])
    for at in range(7):
        for op in ("argmin", "argmax"):
            check(place, op, type_, [x[:0], x[:at], x[at:], x[:0]])


@pytest.mark.parametrize("type_", TYPES)
def test_the_host_knows_the_words(place, type_):
    """Where nothing is gathered they are those of tally_state_to_words(), bit for bit."""
    rng = data.rng(f"words host {type_}")
    for op, also in (("sum", ()), ("var", ()), ("sumsq", ("norm1",)), ("dot", ("sum", "nonzero")), ("count", ())):
        problem = tally.problem(op, type_, also=also)
        for n in (0, 1, 700):
            x, y = array(rng, type_, n), array(rng, type_, n) if op == "dot" else None
            state = c_void_p()
            assert tally.state_create(byref(problem), byref(state)) == 0
            assert tally.state_feed(state, None, x.ctypes.data, None if y is None else y.ctypes.data, n) == 0
            want = np.zeros(tally.state_words(state), np.int64)
            assert tally.state_to_words(state, want.ctypes.data) == 0
            tally.state_destroy(state)
            added, gathered = place.words(problem, x, y)
            assert len(gathered) == 0 and added.tolist() == want.tolist(), (op, n)


def test_many_states(place):
    """Several results, each of ranks of its own, in one message."""
    rng = data.rng("words states")
    problem = tally.problem("describe", "f32")
    states = [cut(rng, array(rng, "f32", n), 3) for n in (0, 1, 50, 200)]
    made = [[place.words(problem, part) for part in parts] for parts in states]
    added = np.concatenate([np.sum([m[0] for m in parts], axis=0, dtype=np.int64) for parts in made])
    gathered = np.concatenate([made[i][rank][1] for rank in range(3) for i in range(len(states))])
    got = place.values(problem, added, gathered, 3, len(states))
    assert got == [oracle.statistic("describe", "f32", np.concatenate(parts)) for parts in states]


def test_ranks_that_fail(place):
    problem = tally.problem("sum", "f64")
    added, gathered = place.words(problem, np.zeros(3, np.uint64))
    assert place.values(problem, added, gathered, 4, failed=[0, 0]) == [[("f64", 0)]]
    assert place.values(problem, added, gathered, 4, failed=[1, tally.ENOMEM]) == [["ENOMEM"]]
    assert place.values(problem, added, gathered, 4, failed=[2, 2 * tally.ELOST]) == [["ELOST"]]
    assert place.values(problem, added, gathered, 4, failed=[2, tally.ELOST + tally.ENOMEM]) == [["EINVAL"]]


def test_what_has_no_words(place):
    sizes = Words()
    for problem in (tally.problem("prod", "f32"), tally.problem("sum", "f64", also=["prod"])):
        assert measure(place.device, byref(problem), 10, 1, byref(sizes)) == tally.EUNSUPPORTED
        tally.check_failed(tally.EUNSUPPORTED)
    problem = tally.problem("sum", "f32")
    assert measure(None, byref(problem), 10, 1, byref(sizes)) == tally.EUNSUPPORTED
    call = Call(place.x, None, 4, place.work, 8, place.queue, place.added, None, None)
    assert enqueue_words(place.device, byref(problem), byref(call)) == tally.EINVAL
    fast = tally.problem("sum", "f32", fast=True)
    assert place.over_ranks(fast, [data.floats("f32", [1e30, 1, -1e30])]) == [("f32", 0x3f800000)]
