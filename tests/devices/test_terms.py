"""Arrays that are added up over ranks, element by element: bounds, words and values on the host and on devices' queues,
against sums of Python integers. The network is NumPy here: the greatest bounds, and words added up rank by rank."""

import ctypes
from ctypes import POINTER, Structure, byref, c_int, c_size_t, c_uint, c_uint32, c_void_p

import numpy as np
import pytest

import data
import oracle
import tally
from native import MACHINES
from tally import DTYPE, SIZE

BLOCK = 512
TYPES = ["f32", "bf16", "f16"]


class Terms(Structure):
    _fields_ = [("type", c_int), ("n", c_size_t), ("ranks", c_uint), ("spare", c_size_t), ("shard", c_size_t),
                ("divisor", c_uint32)]


class Sizes(Structure):
    _fields_ = [("word", c_int), ("bounds", c_size_t), ("words", c_size_t), ("spare", c_size_t),
                ("workspace", c_size_t), ("rows", c_size_t)]


class Call(Structure):
    _fields_ = [("x", c_void_p), ("bounds", c_void_p), ("words", c_void_p), ("spare", c_void_p),
                ("failed", c_void_p), ("workspace", c_void_p), ("out", c_void_p), ("outcome", c_void_p), ("queue", c_void_p),
                ("first", c_size_t), ("count", c_size_t)]


MAILBOX_RANKS, STOP, ADDRESSES = 16, 1, 2  # tally.h


class SharedCall(Structure):
    _fields_ = [("x", c_void_p * MAILBOX_RANKS), ("out", c_void_p * MAILBOX_RANKS), ("mine", c_size_t), ("arrays", c_uint32),
                ("mailbox", c_void_p), ("failure", c_int), ("outcome", c_void_p), ("queue", c_void_p)]


shared_prepare = tally._declare("terms_shared_prepare", c_int, c_void_p)
shared_sums = tally._declare("terms_shared", c_int, c_void_p, POINTER(Terms), POINTER(SharedCall))
measure = tally._declare("terms_measure", c_int, POINTER(Terms), POINTER(Sizes))
prepare = tally._declare("terms_prepare", c_int, c_void_p)
STEPS = [tally._declare(f"terms_{step}", c_int, c_void_p, POINTER(Terms), POINTER(Call))
         for step in ("bounds", "words", "values")]
open_in = tally._declare("open_in", c_int, ctypes.c_char_p, c_void_p, POINTER(c_void_p))


class Host:
    """The calling thread, in host memory."""

    def __init__(self):
        self.device, self.queue = None, None

    def put(self, array):
        made = np.zeros(array.nbytes // 8 + 1, np.uint64)
        made.view(np.uint8)[:array.nbytes] = array.view(np.uint8)
        return made

    def get(self, memory, dtype, count):
        return memory.view(dtype)[:count].copy()

    def address(self, memory):
        return memory.ctypes.data

    def free(self, memory):
        pass

    def close(self):
        pass


class Place:
    """A device, a queue and memory of a machine's."""

    def __init__(self, name):
        self.machine = MACHINES[name]()
        handle = c_void_p()
        assert open_in(self.machine.spec.encode(), self.machine.context, byref(handle)) == 0, tally.error()
        self.device, self.queue = handle.value, self.machine.queue()
        assert prepare(self.device) == 0, tally.error()

    def put(self, array):
        memory = self.machine.memory(array.nbytes)
        if array.nbytes:
            self.machine.write(self.queue, memory, array)
            self.machine.read(self.queue, np.empty_like(array), memory)  # waits
        return memory

    def get(self, memory, dtype, count):
        out = np.zeros(count, dtype)
        if count:
            self.machine.read(self.queue, out, memory)
        return out

    def address(self, memory):
        return memory

    def free(self, memory):
        self.machine.free(memory)

    def close(self):
        tally.c_close(self.device)
        self.machine.close()


@pytest.fixture(scope="module", params=["host", *sorted(MACHINES)])
def place(request):
    made = Host() if request.param == "host" else Place(request.param)
    yield made
    made.close()


def run(place, step, terms, **where):
    call = Call(queue=place.queue, **{k: v if isinstance(v, int) and k in ("first", "count") else place.address(v)
                                      for k, v in where.items() if v is not None})
    assert STEPS[step](place.device, byref(terms), byref(call)) == tally.OK, tally.error()


def added(words):
    """What a network makes of the ranks' words; none of them may overflow."""
    assert np.abs(words.astype(np.float64)).sum(0).max(initial=0) <= 2.0 ** (8 * words.itemsize - 1)
    total = np.zeros_like(words[0])
    for row in np.random.default_rng(data.SEED).permutation(len(words)):
        total += words[row]
    return total


def over_ranks(place, type_, arrays, spare=None, shard=0, divisor=0, parts=1, fails=False):
    """The sums, from each rank's three steps; rank by rank on one device. `parts`: values so many at a time."""
    n = len(arrays[0])
    terms, sizes = Terms(tally.CODE[type_], n, len(arrays), 0, shard, divisor), Sizes()
    assert measure(byref(terms), byref(sizes)) == tally.OK, tally.error()
    terms.spare = sizes.rows if spare is None else spare
    assert measure(byref(terms), byref(sizes)) == tally.OK
    dtype = {3: np.int32, 4: np.int64}[sizes.word]
    xs = [place.put(a) for a in arrays]
    bounds = []
    for x in xs:
        memory = place.put(np.full(sizes.bounds, 0x5A5A5A5A, np.int32))
        run(place, 0, terms, x=x, bounds=memory)
        bounds.append(place.get(memory, np.int32, sizes.bounds))
        place.free(memory)
    failed = place.put(np.array([1 if fails else 0, 0], dtype))
    if fails:
        bounds[-1].view(np.uint8)[:] = 0xf0
    agreed = place.put(np.max(bounds, axis=0))
    workspace = place.put(np.full(sizes.workspace, 0xA5, np.uint8))
    words, rows = [], []
    for x in xs:
        first = place.put(np.full(sizes.words, 0x33, dtype))
        more = place.put(np.full(sizes.spare, 0x33, dtype))
        run(place, 1, terms, x=x, bounds=agreed, words=first, spare=more, workspace=workspace)
        words.append(place.get(first, dtype, sizes.words))
        rows.append(place.get(more, dtype, sizes.spare))
        place.free(first)
        place.free(more)
    total, more = added(np.array(words)), place.put(added(np.array(rows)))
    out = np.full(n, 0x77, DTYPE[type_])
    outcome = np.zeros(2, np.uint64)
    each = max(1, -(-n // parts))
    for first in range(0, max(n, 1), each):
        count = min(each, n - first)
        memory, result = place.put(total[first:first + count]), place.put(out[first:first + count])
        told = place.put(np.full(2, 0xEE, np.uint64))
        run(place, 2, terms, bounds=agreed, words=memory, spare=more, failed=failed, workspace=workspace, out=result,
            outcome=told, first=first, count=count)
        out[first:first + count] = place.get(result, DTYPE[type_], count)
        outcome = place.get(told, np.uint64, 2)
        for m in (memory, result, told):
            place.free(m)
    for m in (*xs, agreed, workspace, more, failed):
        place.free(m)
    return out, (int(outcome[1]) & 0xffffffff, int(outcome[0])), sizes


def one_sum(type_, column, divisor):
    inf, sign = oracle.INF[type_], oracle.SIGN[type_]
    special = {b if b & (sign - 1) == inf else oracle.NAN[type_] for b in column if b & (sign - 1) >= inf}
    if special:
        return special.pop() if len(special) == 1 else oracle.NAN[type_]
    units = sum(oracle.units_of_bits(type_, b) for b in column)
    if units == 0:
        return sign if all(b == sign for b in column) else 0
    return oracle.round_ratio(type_, units, divisor << oracle.UNIT)


def expected(type_, arrays, divisor=0):
    return np.array([one_sum(type_, column, divisor or 1) for column in np.array(arrays).T.tolist()], DTYPE[type_])


def check(place, type_, arrays, **kw):
    out, outcome, sizes = over_ranks(place, type_, arrays, **kw)
    assert outcome == (tally.OK, 0)
    want = expected(type_, arrays, kw.get("divisor", 0))
    wrong = np.flatnonzero(out != want)
    assert not len(wrong), f"element {wrong[0]}: {out[wrong[0]]:x}, not {want[wrong[0]]:x}, of " \
        f"{[hex(int(a[wrong[0]])) for a in arrays]}"
    return out


FIELD = {"f32": 23, "bf16": 7, "f16": 10}


def gradients(type_, rng, n):
    x = rng.standard_normal(n).astype(np.float32) * np.float32(0.01)
    return x.view(np.uint32) if type_ == "f32" else oracle.f32_to(type_, x)


def wild(type_, rng, n):
    """Any exponent, and nothing that is not finite."""
    bits = rng.integers(0, 1 << (8 * SIZE[type_]), n, dtype=np.uint64).astype(DTYPE[type_])
    special = (bits & (oracle.SIGN[type_] - 1)) >= oracle.INF[type_]
    return np.where(special, bits & (oracle.SIGN[type_] | 0x7f), bits).astype(DTYPE[type_])


def signed_zeros(type_, rng, n):
    x = gradients(type_, rng, n)
    return np.where(rng.random(n) < 0.6, rng.choice([0, oracle.SIGN[type_]], n), x).astype(DTYPE[type_])


def specials(type_, rng, n):
    x = wild(type_, rng, n)
    inf, sign = oracle.INF[type_], oracle.SIGN[type_]
    return np.where(rng.random(n) < 0.3, rng.choice([inf, inf | sign, oracle.NAN[type_], inf + 1, 0, sign], n),
                    x).astype(DTYPE[type_])


def subnormals(type_, rng, n):
    return (rng.integers(0, 3 << FIELD[type_], n, dtype=np.uint64)
            | rng.choice([0, oracle.SIGN[type_]], n).astype(np.uint64)).astype(DTYPE[type_])


def greatest(type_, rng, n):
    """So near the largest number that sums overflow, or do not."""
    x = oracle.INF[type_] - 1 - rng.integers(0, 2 << FIELD[type_], n)
    return (x | rng.choice([0, oracle.SIGN[type_]], n, p=[0.8, 0.2])).astype(DTYPE[type_])


KINDS = [gradients, wild, signed_zeros, specials, subnormals, greatest]


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("type_", TYPES)
def test_sums(place, type_, kind):
    rng = data.rng(f"terms {type_} {kind.__name__}")
    for ranks in (1, 2, 3, 8):
        for n in (1, BLOCK, 2 * BLOCK + 5):
            check(place, type_, [kind(type_, rng, n) for _ in range(ranks)])


@pytest.mark.parametrize("type_", TYPES)
def test_what_cancels(place, type_):
    """Large terms that cancel leave a small one; in the sum of all ranks in turn nothing would be left of it."""
    rng = data.rng(f"terms cancel {type_}")
    n = BLOCK + 7
    large, small = wild(type_, rng, n), subnormals(type_, rng, n)
    check(place, type_, [large, small, large ^ oracle.SIGN[type_], subnormals(type_, rng, n)])


@pytest.mark.parametrize("ranks", [16, 17, 33, 127])
@pytest.mark.parametrize("type_", TYPES)
def test_many_ranks(place, type_, ranks):
    """All ranks have the greatest term: words do not overflow, whatever the number of ranks."""
    rng = data.rng(f"terms many {type_} {ranks}")
    top = np.full(5, oracle.INF[type_] - 1, DTYPE[type_])
    low = np.full(5, 1, DTYPE[type_])
    check(place, type_, [np.where(np.arange(5) < 3, top, low)] * ranks)
    check(place, type_, [specials(type_, rng, 40) for _ in range(ranks)])


@pytest.mark.parametrize("divisor", [2, 3, 7, 1 << 20, (1 << 32) - 1])
@pytest.mark.parametrize("type_", TYPES)
def test_divided(place, type_, divisor):
    rng = data.rng(f"terms divided {type_} {divisor}")
    for kind in KINDS:
        check(place, type_, [kind(type_, rng, 300) for _ in range(3)], divisor=divisor)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("shard", [1, 7, BLOCK, BLOCK + 1, 3000])
def test_shards(place, type_, shard):
    """Sums in parts, as a reduce-scatter leaves them, are those of the whole."""
    rng = data.rng(f"terms shards {type_} {shard}")
    n = 9 if shard == 1 else 5 * shard if shard < 100 else 2 * shard + 11
    arrays = [wild(type_, rng, n) for _ in range(3)]
    one = check(place, type_, arrays, shard=shard, parts=n // shard)
    assert (one == check(place, type_, arrays, parts=3)).all()


def test_nothing(place):
    out, outcome, _ = over_ranks(place, "f32", [np.zeros(0, np.uint32)] * 3)
    assert len(out) == 0 and outcome == (tally.OK, 0)


@pytest.mark.parametrize("type_", ["f32", "bf16"])
def test_too_few_rows(place, type_):
    """All ranks find how many rows are needed, and no sum is written; with so many it works."""
    rng = data.rng(f"terms rows {type_}")
    arrays = [np.concatenate([gradients(type_, rng, 3 * BLOCK), wild(type_, rng, 2 * BLOCK)]) for _ in range(2)]
    out, (status, needs), sizes = over_ranks(place, type_, arrays, spare=1)
    assert status == tally.ENOMEM and 1 < needs <= sizes.rows
    assert (out == 0x77).all()
    check(place, type_, arrays, spare=needs)
    _, (status, again), _ = over_ranks(place, type_, arrays, spare=needs - 1)
    assert (status, again) == (tally.ENOMEM, needs)


@pytest.mark.parametrize("kind,spare", [(gradients, 1), (gradients, 3), (wild, 20)])
def test_rows_that_are_not_needed(place, kind, spare):
    """They are zeros, whatever was there: the network adds all of them."""
    terms, sizes = Terms(tally.CODE["f32"], 3, 2, spare, 0, 0), Sizes()
    assert measure(byref(terms), byref(sizes)) == tally.OK
    given = kind("f32", data.rng(f"terms zeros {spare}"), 3)
    if kind == wild:  # the ends of the range: no seed makes three elements that fit one word
        given[:2] = 0x7f7fffff, 1
    x = place.put(given)
    bounds, words = place.put(np.zeros(sizes.bounds, np.int32)), place.put(np.full(sizes.words, 0x33, np.int64))
    rows = place.put(np.full(sizes.spare, 0x33, np.int64))
    workspace = place.put(np.full(sizes.workspace, 0xA5, np.uint8))
    run(place, 0, terms, x=x, bounds=bounds)
    run(place, 1, terms, x=x, bounds=bounds, words=words, spare=rows, workspace=workspace)
    made = place.get(rows, np.int64, sizes.spare).reshape(spare, BLOCK)
    assert (made[:, 3:] == 0).all() and (made[-1] == 0).all()
    assert kind == gradients or made.any()
    for m in (x, bounds, words, rows, workspace):
        place.free(m)


def test_a_rank_fails(place):
    """It says so instead of bounds; all others find out, and no sum is written."""
    rng = data.rng("terms fails")
    for n in (1, 3 * BLOCK):
        out, outcome, _ = over_ranks(place, "f32", [wild("f32", rng, n)] * 2, fails=True)
        assert outcome == (tally.EINVAL, 0) and (out == 0x77).all()


def test_bytes_of_gradients():
    """What docs/cluster.md says of the messages: a word for an element, and a spare row for one block in sixteen at
    most. Plain sums take an element's bytes."""
    rng = data.rng("terms bytes")
    blocks = 64
    for type_, word, spare in (("f32", 8, 0), ("bf16", 4, blocks // 16), ("f16", 4, 0)):
        for ranks in (2, 8):
            arrays = [gradients(type_, rng, blocks * BLOCK) for _ in range(ranks)]
            out, outcome, sizes = over_ranks(Host(), type_, arrays, spare=spare)
            assert outcome == (tally.OK, 0), (type_, ranks)
            assert {3: 4, 4: 8}[sizes.word] == word and word == (2 * SIZE[type_])
            assert sizes.words == blocks * BLOCK and sizes.bounds == 3 * blocks and sizes.spare == spare * BLOCK


def test_arguments(place):
    sizes, x = Sizes(), place.put(np.zeros(8, np.uint32))
    terms = Terms(tally.CODE["f32"], 8, 2, 0, 0, 0)
    assert measure(byref(terms), byref(sizes)) == tally.OK
    for wrong, status in ((Terms(tally.CODE["f64"], 8, 2), tally.ETYPE), (Terms(tally.CODE["i32"], 8, 2), tally.ETYPE),
                          (Terms(tally.CODE["f32"], 8, 0), tally.EINVAL),
                          (Terms(tally.CODE["f32"], 8, (1 << 20) + 1), tally.EINVAL),
                          (Terms(tally.CODE["f32"], 1 << 62, 2), tally.EINVAL)):
        assert measure(byref(wrong), byref(sizes)) == status
        tally.check_failed(status)
    whole = {name: place.address(x) for name in ("x", "bounds", "words", "spare", "workspace", "out")}
    needs = [("x", "bounds"), ("x", "bounds", "words", "workspace"), ("bounds", "words", "workspace", "out")]
    for step, names in enumerate(needs):
        for name in names:
            call = Call(queue=place.queue, count=8, **{**whole, name: None})
            status = STEPS[step](place.device, byref(terms), byref(call))
            assert status == tally.EINVAL, name
            tally.check_failed(status)
        assert STEPS[step](place.device, byref(terms), None) == tally.EINVAL
    call = Call(queue=place.queue, first=4, count=5, **whole)
    assert STEPS[2](place.device, byref(terms), byref(call)) == tally.EINVAL
    place.free(x)


# ---- In each other's memory -------------------------------------------------------------------------

@pytest.fixture(scope="module")
def cuda(place):
    """The machine whose devices reach each other's memory; the ranks of a test are all on one of them."""
    if isinstance(place, Host) or not isinstance(place.machine, MACHINES["cuda"]):
        assert shared_prepare(place.device) == tally.EUNSUPPORTED
        return None
    assert shared_prepare(place.device) == tally.OK, tally.error()
    return place


def shared(place, type_, arrays, shard=0, divisor=0, in_place=False, off=0):
    """What each rank has in the end, one rank behind another, without meetings; `off`: arrays begin so many elements behind
    a multiple of 16 bytes."""
    n, ranks, dtype = len(arrays[0]), len(arrays), DTYPE[type_]
    length = shard or n
    xs = [place.put(np.concatenate([np.full(off, 0x55, dtype), a, np.full(8, 0x55, dtype)])) for a in arrays]
    outs = xs if in_place else [place.put(np.full(off + length + 8, 0x77, dtype)) for _ in arrays]
    call, terms = SharedCall(queue=place.queue), Terms(tally.CODE[type_], n, ranks, 0, shard, divisor)
    for rank in range(ranks):
        call.x[rank], call.out[rank] = xs[rank] + off * SIZE[type_], outs[rank] + off * SIZE[type_]
    for call.mine in range(ranks):
        assert shared_sums(place.device, byref(terms), byref(call)) == tally.OK, tally.error()
    made = []
    for memory in outs:
        got = place.get(memory, dtype, off + length + 8)
        assert (got[:off] == got[-1]).all() and (got[off + length:] == got[-1]).all(), "wrote past its sums"
        made.append(got[off:off + length])
    for memory in {*xs, *outs}:
        place.free(memory)
    return made


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("type_", TYPES)
def test_shared(cuda, type_, kind):
    """All ranks have the sums of Python's integers."""
    rng = data.rng(f"shared {type_} {kind.__name__}")
    for ranks, n, how in ((1, 5, {}), (2, 700, {}), (2, 133, {"off": 1}), (3, 401, {"in_place": True}), (5, 60, {"shard": 12}),
                          (8, 1100, {"in_place": True}), (16, 50, {}), (3, 300, {"divisor": 3}), (2, 80, {"divisor": 1 << 20})):
        arrays = [kind(type_, rng, n) for _ in range(ranks)]
        if not cuda:
            return
        want = expected(type_, arrays, how.get("divisor", 0))
        made = shared(cuda, type_, arrays, **how)
        for rank, got in enumerate(made):
            part = want[rank * 12:(rank + 1) * 12] if "shard" in how else want
            wrong = np.flatnonzero(got != part)
            assert not len(wrong), (ranks, how, rank, wrong[0], hex(got[wrong[0]]), hex(part[wrong[0]]))


@pytest.mark.parametrize("type_", TYPES)
def test_shared_that_cancel(cuda, type_):
    """Sums that two doubles hold, and sums that they do not; zeros that are left over are +0."""
    if not cuda:
        return
    rng = data.rng(f"shared cancel {type_}")
    n = 90
    large, small, sign = wild(type_, rng, n), subnormals(type_, rng, n), oracle.SIGN[type_]
    middle = gradients(type_, rng, n)
    for arrays in ([large, small, large ^ sign, subnormals(type_, rng, n)], [large, small, large ^ sign, small ^ sign],
                   [large, middle, small, large ^ sign, middle ^ sign], [large, large ^ sign]):
        want = expected(type_, arrays)
        assert all((got == want).all() for got in shared(cuda, type_, arrays))


class Meetings:
    """Mailboxes of so many ranks on one device. Each rank's exchange is done by itself: what the others say is there before."""

    def __init__(self, place, ranks):
        self.place, self.ranks, self.turn = place, ranks, 0
        words = 32 + 2048 * ranks
        self.memory = [place.put(np.zeros(words, np.uint64)) for _ in range(ranks)]

    def content(self, rank, others, stop=False):
        """Makes the mailbox of a rank one into which the others have said something, in both of a call's meetings."""
        mailbox = np.zeros(32 + 2048 * self.ranks, np.uint64)
        mailbox[0], mailbox[STOP] = self.turn, stop
        mailbox[ADDRESSES:ADDRESSES + self.ranks] = self.memory
        for meeting in (0, 1):
            turn = self.turn + meeting
            for other, said in others.items():
                at = 32 + 1024 * ((turn % 2) * self.ranks + other)
                flag, word = (turn + 1) << 32, said[meeting]
                mailbox[at], mailbox[at + 1] = flag | word & 0xffffffff, flag | word >> 32
        fresh = self.place.put(mailbox)
        self.place.free(self.memory[rank])
        self.memory[rank] = fresh
        mailbox[ADDRESSES:ADDRESSES + self.ranks] = self.memory
        at = self.place.put(mailbox)
        self.place.free(self.memory[rank])
        self.memory[rank] = at
        return at

    def close(self):
        for memory in self.memory:
            self.place.free(memory)


def test_shared_meetings(cuda):
    """What ranks say to one another: that they are there, for which arrays, and that they have failed; and a wait that is
    ended. Twice in a row, so that places are used again."""
    if not cuda:
        return
    n, ranks = 40, 3
    arrays = [gradients("f32", data.rng("shared meetings"), n) for _ in range(ranks)]
    want = expected("f32", arrays)
    xs = [cuda.put(a) for a in arrays]
    mailboxes = Meetings(cuda, ranks)
    fine, failed, others = (7 << 32, 7 << 32), (7 << 32 | tally.ENOMEM, 7 << 32), (8 << 32, 8 << 32)
    for said, failure, stop, status in (((fine, fine), 0, False, tally.OK), ((fine, failed), 0, False, tally.ENOMEM),
                                        ((fine, fine), tally.ETYPE, False, tally.ETYPE), ((fine, others), 0, False, tally.EINVAL),
                                        ((fine,), 0, True, tally.ELOST)):
        out, told = cuda.put(np.full(n, 0x77, np.uint32)), cuda.put(np.full(2, 0xEE, np.uint64))
        mailbox = mailboxes.content(0, dict(enumerate(said, 1)), stop)
        call = SharedCall(mine=0, arrays=7, mailbox=mailbox, failure=failure, outcome=told, queue=cuda.queue)
        for rank in range(ranks):
            call.x[rank], call.out[rank] = xs[rank], out
        terms = Terms(tally.CODE["f32"], n, ranks, 0, 0, 0)
        assert shared_sums(cuda.device, byref(terms), byref(call)) == tally.OK, tally.error()
        assert cuda.get(told, np.uint64, 2).tolist() == [0, status]
        assert cuda.get(mailbox, np.uint64, 1)[0] == mailboxes.turn + 2
        made = cuda.get(out, np.uint32, n)
        assert (made == (want if status == tally.OK else 0x77)).all(), status
        mailboxes.turn += 2
        cuda.free(out)
        cuda.free(told)
    for memory in xs:
        cuda.free(memory)
    mailboxes.close()


def test_shared_arguments(cuda):
    if not cuda:
        return
    x = cuda.put(np.zeros(64, np.uint32))

    def asked(ranks=2, n=8, shard=0, **kw):
        call = SharedCall(queue=cuda.queue, **{k: v for k, v in kw.items() if k != "xs"})
        for rank in range(kw.get("xs", min(ranks, MAILBOX_RANKS))):
            call.x[rank] = call.out[rank] = x
        return shared_sums(cuda.device, byref(Terms(tally.CODE["f32"], n, ranks, 0, shard, 0)), byref(call))

    assert asked() == tally.OK
    for wrong in ({"mine": 2}, {"ranks": 17}, {"xs": 1}, {"mailbox": x}, {"failure": tally.ENOMEM}, {"shard": 3}, {"shard": 2}):
        assert asked(**wrong) == tally.EINVAL, wrong
    assert asked(shard=4) == tally.OK
    cuda.free(x)
