"""Words of a reduction on a device's queue, for other ranks: those of the host's states, and, added up and gathered, the
values of the whole array by an oracle."""

import ctypes
from ctypes import POINTER, Structure, byref, c_int, c_size_t, c_void_p

import numpy as np
import pytest

import data
import oracle
import tally
from drawn import types_on
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


class Shared(Structure):
    _fields_ = [("x", c_void_p), ("y", c_void_p), ("n", c_size_t), ("workspace", c_void_p),
                ("workspace_bytes", c_size_t), ("queue", c_void_p), ("words", c_void_p), ("mailbox", c_void_p),
                ("ranks", c_size_t), ("mine", c_size_t), ("failure", c_int), ("results", c_void_p)]


measure = tally._declare("words_measure", c_int, c_void_p, PROBLEM, c_size_t, c_size_t, POINTER(Words))
enqueue_words = tally._declare("enqueue_words", c_int, c_void_p, PROBLEM, POINTER(Call))
enqueue_shared = tally._declare("enqueue_shared", c_int, c_void_p, PROBLEM, POINTER(Shared))
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

    def value(*statuses):
        failed = [len(statuses), sum(s + (s * s << 32) for s in statuses)]
        return place.values(problem, added, gathered, 1000, failed=failed)[0][0]

    assert value() == ("f64", 0)
    assert value(tally.ENOMEM) == "ENOMEM"
    assert value(*[tally.ELOST] * 1000) == "ELOST"
    statuses = {getattr(tally, name): name for name in ("EINVAL", "ETYPE", "ENOMEM", "ELOST", "ECOMPILE", "EUNSUPPORTED")}
    for one in statuses:
        for other in statuses:  # of two that differ the mean may be a third status
            assert value(one, other, one) == (statuses[one] if one == other else "EINVAL")


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


# ---- Ranks that write into each other's memory ------------------------------------------------------

STOP, ADDRESSES, SLOTS, MOST_WORDS = 1, 2, 32, 512  # of a mailbox: include/tally.h, src/kernels/words.h


PAIRED, LOST = (1, 8, 11), 1  # sum, mean, norm1; and what says that a pair is none: src/kernels/pair.h


class Mailboxes:
    """The mailboxes of some ranks. Here one rank runs after another, so that each finds what the others would have sent: words
    that were made beforehand, by tally_enqueue_words(), and put into its mailbox by the test."""

    def __init__(self, place, ranks):
        self.place, self.ranks, self.turn = place, ranks, 0
        self.memory = [place.machine.memory(256 + 16384 * ranks) for _ in range(ranks)]
        first = np.zeros(32 + 2048 * ranks, np.uint64)
        if ranks > 1:
            first[ADDRESSES:ADDRESSES + ranks] = self.memory
        for memory in self.memory:
            place.write(memory, first)

    def slots(self, words, sender, turn):
        """(number of the first word of a sender's message in a mailbox, the message as it stands there)"""
        flag = np.uint64((turn + 1) << 32)
        halves = np.stack([words & np.uint64(0xffffffff), words >> np.uint64(32)], axis=1).ravel()
        return SLOTS + 2 * MOST_WORDS * ((turn % 2) * self.ranks + sender), halves | flag

    def content(self, rank):
        return self.place.read(self.memory[rank], np.uint64, 32 + 2048 * self.ranks)

    def others(self, rank):
        return [r for r in range(self.ranks) if r != rank]

    def one_rank(self, rank, messages, stop):
        """Puts what the others say in each of some turns where rank `rank` looks for it; afterwards(), when the rank has made
        its call, is how many turns it took and what it has said in each."""
        mailbox = self.content(rank)
        for k, words in enumerate(messages):
            for sender in self.others(rank) if rank not in stop else []:
                at, message = self.slots(words[sender], sender, self.turn + k)
                mailbox[at:at + len(message)] = message
        mailbox[STOP] = rank in stop
        self.place.write(self.memory[rank], mailbox)

        def afterwards():
            after, said = self.content(rank), []
            turns = int(after[0]) - self.turn
            for k, words in enumerate(messages):
                for other in self.others(rank):
                    at = self.slots(words[other], other, self.turn + k)[0]
                    if k < turns and rank not in stop:  # whatever it has read it has made empty again
                        assert (after[at:at + 2 * MOST_WORDS] == 0).all()
                    after[at:at + 2 * MOST_WORDS] = 0
                    at, message = self.slots(words[rank], rank, self.turn + k)
                    there = self.content(other)
                    sent = there[at:at + len(message)].copy()
                    assert (there[at + len(message):at + 2 * MOST_WORDS] == 0).all()
                    there[at:at + 2 * MOST_WORDS] = 0  # the test sends it again, from what it knows
                    self.place.write(self.memory[other], there)
                    assert k >= turns or (sent >> np.uint64(32) == np.uint64(self.turn + k + 1)).all()
                    words_sent = sent & np.uint64(0xffffffff)
                    said.append((k, words_sent[::2] | words_sent[1::2] << np.uint64(32)))
            after[0] = self.turn
            self.place.write(self.memory[rank], after)
            return turns, said

        return afterwards

    def round(self, problem, parts, ys, failures, stop, messages, checked):
        """What each rank has of it, and what it said in the first turn, where the others say `messages` turn by turn; it says
        the same as is foretold of it in the turn `checked`."""
        place, sizes, values = self.place, Words(), tally.value_count(problem)
        assert measure(place.device, byref(problem), max(map(len, parts)), 1, byref(sizes)) == tally.OK
        results, first, took = [], [], []
        for rank, x in enumerate(parts):
            afterwards = self.one_rank(rank, messages, stop)
            place.write(place.added, np.full(2 + sizes.added + sizes.gathered * self.ranks + 1, 0x5A5A, np.uint64))
            place.write(place.results, np.full(2 * values + 1, 0x5A5A, np.uint64))
            place.write(place.x, x)
            if ys is not None:
                place.write(place.y, ys[rank])
            call = Shared(place.x, None if ys is None else place.y, len(x), place.work, sizes.workspace, place.queue,
                          place.added, self.memory[rank], self.ranks, rank, failures[rank] if failures else 0, place.results)
            assert enqueue_shared(place.device, byref(problem), byref(call)) == tally.OK, tally.error()
            got = place.read(place.results, np.uint64, 2 * values + 1)
            assert got[-1] == 0x5A5A, "wrote past its results"
            results.append(outcomes(got[:-1]))
            used = 2 + sizes.added + sizes.gathered * self.ranks
            assert place.read(place.added, np.uint64, used + 1)[-1] == 0x5A5A, "wrote past its words"
            turns, said = afterwards()
            took.append(turns)
            first.append(next((words for k, words in said if k == 0), None))
            if turns > checked and rank not in stop:
                assert all((words == messages[checked][rank]).all() for k, words in said if k == checked)
        assert len({t for rank, t in enumerate(took) if rank not in stop}) == 1, took
        self.took = next(t for rank, t in enumerate(took) if rank not in stop)
        self.turn += self.took
        for memory in self.memory:
            mailbox = place.read(memory, np.uint64, 1)
            mailbox[0] = self.turn
            place.write(memory, mailbox)
        return results, first

    def exchange(self, problem, parts, ys=None, failures=None, stop=()):
        """What each rank has of it: by words; and where the ranks try pairs first, by what they said of these, too."""
        place, made = self.place, []
        for i, x in enumerate(parts):
            added, gathered = place.words(problem, x, None if ys is None else ys[i])
            head = np.zeros(2, np.uint64)
            if failures and failures[i]:
                head[:], added[:], gathered[:] = [1, failures[i]], 0, 0
            made.append(np.concatenate([head, added.view(np.uint64), gathered]))
        if self.ranks == 1 or problem.op not in PAIRED or problem.type < tally.CODE["f16"]:
            return self.round(problem, parts, ys, failures, stop, [made], 0)[0]
        lost = [np.array([0, 0, len(x) << 16 | (failures[i] if failures else 0) << 8 | LOST], np.uint64)
                for i, x in enumerate(parts)]
        by_words, pairs = self.round(problem, parts, ys, failures, stop, [lost, made], 1)
        assert self.took == (1 if failures and any(failures) else 2)
        if not stop and not (failures and any(failures)):
            assert self.round(problem, parts, ys, failures, stop, [pairs, made], 1)[0] == by_words
        return by_words

    def close(self):
        for memory in self.memory:
            self.place.machine.free(memory)


def reach(place, ranks):
    """So many ranks, or one where mailboxes have no addresses."""
    return ranks if isinstance(place.machine, MACHINES["cuda"]) else 1


@pytest.mark.parametrize("op", [*OPS, "prod"])
def test_by_mailboxes(place, op):
    """Three exchanges in a row, so that places are used again."""
    rng = data.rng(f"mailboxes {op}")
    type_ = "i32" if op == "prod" else str(rng.choice(types_on(place.machine.spec)))
    mailboxes = Mailboxes(place, reach(place, 3))
    for n in (0, 5, 200):
        x = array(rng, type_, n) if op != "prod" else rng.choice([1, 2, -1], n % 50).astype(np.int32)
        parts, y = cut(rng, x, mailboxes.ranks), array(rng, type_, n) if op == "dot" else None
        want = oracle.statistic(op, type_, x, y)
        want = want if isinstance(want, list) else [want]
        assert mailboxes.exchange(tally.problem(op, type_), parts, None if y is None else cut_alike(parts, y)) == [want] * mailboxes.ranks
    mailboxes.close()


@pytest.mark.parametrize("op", ["sum", "mean", "norm1"])
def test_by_pairs(place, op):
    """Tame floats take one turn, and no words; of wild ones, and of many, words follow. All have the oracle's bits."""
    rng = data.rng(f"pairs {op}")
    mailboxes = Mailboxes(place, reach(place, 3))
    for type_ in ("f32", "f64", "bf16", "f16"):
        for kind, n in (("normal", 60), ("normal", 700), ("bits", 200), ("minus-zeros", 9), ("zeros", 9), ("specials", 30), ("cancel", 300),
                        ("all-bits", 50), ("normal", 9000 * mailboxes.ranks)):
            x = data.make(rng, kind, type_, n)
            parts = cut(rng, x, mailboxes.ranks) if n < 9000 else np.array_split(x, mailboxes.ranks)
            assert mailboxes.exchange(tally.problem(op, type_), parts) == [[oracle.statistic(op, type_, x)]] * mailboxes.ranks, (type_, kind, n)
            if mailboxes.ranks > 1 and (kind == "minus-zeros" or kind == "normal" and type_ != "f64"):
                assert mailboxes.took == (1 if n < 9000 else 2), (type_, kind, n)
    mailboxes.close()


def test_mailboxes_of_ranks_that_fail(place):
    problem, mailboxes = tally.problem("sum", "f64"), Mailboxes(place, reach(place, 3))
    parts = [np.ones(3, np.uint64)] * mailboxes.ranks
    failures = [0] * (mailboxes.ranks - 1) + [tally.ENOMEM]
    assert mailboxes.exchange(problem, parts, failures=failures) == [[["ENOMEM"][0]]] * mailboxes.ranks
    if mailboxes.ranks > 1:
        ones = [[("f64", 3 * mailboxes.ranks)]] * mailboxes.ranks
        assert mailboxes.exchange(problem, parts) == ones
        assert mailboxes.exchange(problem, parts, stop=[1]) == [ones[0], ["ELOST"], ones[0]]
    mailboxes.close()


def test_mailboxes_at_once():
    """Ranks whose kernels are at work at the same time, on one GPU, a stream each: a hundred exchanges without a wait between
    them, whose messages differ in length. The double runs one kernel at a time, so there it is one rank."""
    rng = data.rng("mailboxes at once")
    places = [Place("cuda", 1 << 18)]
    ranks = 1 if hasattr(places[0].machine.cu, "tally_cuda_double_objects") else 4
    places += [Place("cuda", 1 << 18) for _ in range(ranks - 1)]
    mailboxes = [p.machine.memory(256 + 16384 * ranks) for p in places]
    for p, mailbox in zip(places, mailboxes):
        first = np.zeros(32 + 2048 * ranks, np.uint64)
        first[ADDRESSES:ADDRESSES + ranks] = mailboxes
        p.write(mailbox, first)
    for op, type_ in (("sum", "f32"), ("var", "f64"), ("describe", "bf16"), ("minmax", "i32"), ("sum", "f32")):
        problem, sizes = tally.problem(op, type_), Words()
        parts = [array(rng, type_, 100 + r) for r in range(ranks)]
        for p, x in zip(places, parts):
            assert measure(p.device, byref(problem), len(x), 1, byref(sizes)) == tally.OK
            p.write(p.x, x)
            p.write(p.results, np.full(40, 0x5A5A, np.uint64))
        for _ in range(20):
            for r, p in enumerate(places):
                call = Shared(p.x, None, len(parts[r]), p.work, sizes.workspace, p.queue, p.added, mailboxes[r], ranks, r, 0, p.results)
                assert enqueue_shared(p.device, byref(problem), byref(call)) == tally.OK, tally.error()
        want = oracle.statistic(op, type_, np.concatenate(parts))
        want = want if isinstance(want, list) else [want]
        for p in places:
            assert outcomes(p.read(p.results, np.uint64, 2 * len(want))) == want
    for p, mailbox in zip(places, mailboxes):
        p.machine.free(mailbox)
        p.close()


def test_mailboxes_that_are_none(place):
    problem, call = tally.problem("sum", "f64"), Shared(None, None, 0, place.work, 1 << 16, place.queue, place.added, None, 1)
    assert enqueue_shared(place.device, byref(problem), byref(call)) == tally.EINVAL
    for ranks, mine in ((17, 0), (2, 2), (0, 0)):
        call = Shared(None, None, 0, place.work, 1 << 16, place.queue, place.added, place.x, ranks, mine, 0, place.results)
        assert enqueue_shared(place.device, byref(problem), byref(call)) == tally.EINVAL
    assert enqueue_shared(place.device, byref(tally.problem("prod", "f32")), byref(call)) != tally.OK
