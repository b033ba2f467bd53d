"""Reductions over the ranks of an NCCL communicator: 1 to 8 ranks on the doubles of CUDA and NCCL, or as many as there are
GPUs, against the oracle's values of the whole array."""

import os
import subprocess
import sys

import numpy as np
import pytest

import data
import ranks
import tally
from ranks import IS_DOUBLE, MOST, Ranks, few, needs_double
from tally import DTYPE, INTS, SIZE, TYPES
from test_terms import BLOCK, KINDS, Host, expected, gradients, over_ranks, wild
from test_terms import TYPES as ARRAYS
from test_words import OPS, array, cut, cut_alike, outcomes
import oracle


def all_same(made):
    assert all(m == made[0] for m in made), made
    return made[0]


def check(op, type_, parts, ys=None, **kw):
    want = oracle.statistic(op, type_, np.concatenate(parts), None if ys is None else np.concatenate(ys))
    problem = tally.problem(op, type_)
    made = Ranks(len(parts), lambda r: r.values(problem, [(parts[r.number], None if ys is None else ys[r.number])]), **kw)
    assert all_same(made.made) == (tally.OK, [want if isinstance(want, list) else [want]])


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_values(op, type_):
    rng = data.rng(f"nccl {op} {type_}")
    count = few(int(rng.integers(1, 9)))
    parts = cut(rng, array(rng, type_, int(rng.integers(1, 200))), count)
    check(op, type_, parts, cut_alike(parts, array(rng, type_, sum(map(len, parts)))) if op == "dot" else None)


@pytest.mark.parametrize("count", range(1, 9))
def test_any_number_of_ranks(count):
    """The same bits for 1 to 8 ranks, some of which have nothing; captured, too."""
    rng = data.rng("nccl ranks")
    x, y = array(rng, "f32", 250), array(rng, "f32", 250)
    for op in ("sum", "std", "dot", "describe"):
        parts = np.split(x, sorted(rng.integers(0, 251, count - 1)))
        check(op, "f32", parts, cut_alike(parts, y) if op == "dot" else None, captures=True)
    check("prod", "i32", np.split(np.array([3, -1, 5] * 5, np.int32), np.arange(1, count)))
    check("describe", "f64", [np.zeros(0, np.uint64)] * count)


@pytest.mark.parametrize("op", OPS)
def test_by_peers(op):
    """GPUs that exchange their words by themselves; on the double, of which one kernel runs at a time, a rank by itself, and
    ranks that learn that they cannot."""
    rng = data.rng(f"nccl peers {op}")
    for type_ in ("f64", "i32", "bf16"):
        for count in range(1, min(MOST, 4) + 1):
            x = array(rng, type_, 250)
            parts = np.split(x, np.sort(rng.integers(0, 251, count - 1)))
            ys = cut_alike(parts, array(rng, type_, 250)) if op == "dot" else None
            for captures in (False, True):
                check(op, type_, parts, ys, shares=True, captures=captures)


def test_a_peer_that_fails():
    """All have its status, and then go on."""
    def values(r):
        x, problem = np.zeros(8, np.uint32), tally.problem("sum", "f32")
        first = r.values(problem, [(x, None)])
        call = ranks.Call(None, 1, r.room(1 << 16), 1 << 16, r.stream, r.room(64), r.peers)
        if r.number == 0:
            status = ranks.allreduce(r.device, ranks.byref(problem), r.comm, ranks.byref(call))
        else:
            call.parts = (ranks.Stretch * 1)(ranks.Stretch(r.put(x), None, 8))
            status = ranks.allreduce(r.device, ranks.byref(problem), r.comm, ranks.byref(call))
        told = outcomes(r.get(call.results, np.uint64, 2))
        return first, status, told, r.values(problem, [(x, None)])

    count = 1 if IS_DOUBLE else few(4)
    made = Ranks(count, values, shares=True).made
    good = (tally.OK, [[("f32", 0)]])
    assert [m[1] for m in made] == [tally.EINVAL] + [tally.OK] * (count - 1)
    assert all(m[0] == good and m[2] == ["EINVAL"] and m[3] == good for m in made), made


def test_a_wait_that_is_ended():
    """Rank 0 alone makes its call, and ends its wait; a rank by itself waits for nobody."""
    def values(r):
        problem, size = tally.problem("sum", "f32"), ranks.c_size_t()
        first = r.values(problem, [(np.zeros(8, np.uint32), None)])
        assert ranks.measure(r.device, ranks.byref(problem), 8, 1, r.comm, ranks.byref(size)) == tally.OK
        x, work, results = r.put(np.zeros(8, np.uint32)), r.room(size.value), r.put(np.full(2, 0x5A5A, np.uint64))
        call = ranks.Call((ranks.Stretch * 1)(ranks.Stretch(x, None, 8)), 1, work, size.value, r.stream, results, r.peers)
        told = None
        if r.number == 0:
            assert ranks.allreduce(r.device, ranks.byref(problem), r.comm, ranks.byref(call)) == tally.OK
            assert ranks.peers_abort(r.peers) == tally.OK, ranks.error()
            told = outcomes(r.get(results, np.uint64, 2))
        r.all.wait(30)
        return first, told

    assert ranks.peers_abort(None) == tally.EINVAL
    count = 1 if IS_DOUBLE else few(4)
    made = Ranks(count, values, shares=True).made
    assert all(m[0] == (tally.OK, [[("f32", 0)]]) for m in made)
    assert made[0][1] == (["ELOST"] if count > 1 else [("f32", 0)])


PROCESS = """
import sys
from ctypes import Structure, byref, c_char, c_int, c_void_p
sys.path[:0] = sys.argv[4:]
import conftest, numpy as np, ranks, tally
from native import Cuda
number, count = int(sys.argv[1]), int(sys.argv[2])
class Id(Structure):
    _fields_ = [("bytes", c_char * 128)]
machine = Cuda(number)
comm, identity = c_void_p(), Id.from_buffer_copy(bytes.fromhex(sys.argv[3]))
ranks.nccl.ncclCommInitRank.argtypes = [c_void_p, c_int, Id, c_int]
assert ranks.nccl.ncclCommInitRank(byref(comm), count, identity, number) == 0
class World:
    comms = {number: comm}
    open_device, close_device = ranks.Double.open_device, ranks.Double.close_device
r = ranks.Rank(number, count, World())
r.shares = True
x = (np.arange(5000, dtype=np.float32) * np.float32(1 + number) / 7).view(np.uint32)
made = [r.values(tally.problem(op, "f32"), [(x, None)]) for op in ("sum", "var", "minmax", "sum")]
sums = [r.sums("f32", x, in_place=in_place, divisor=divisor) for in_place in (False, True) for divisor in (0, 3)]
assert r.peers and all(s[:2] == (tally.OK, (tally.OK, 0)) for s in sums), sums
print(made, [s[2].tolist() for s in sums])
"""


def test_two_processes():
    """Peers that reach each other by the driver's handles, each in a process of its own. The double's memory is one
    process's, so there it is known only that ranks which cannot reach each other say so (test_by_peers)."""
    if IS_DOUBLE or MOST < 2:
        return
    identity = (ranks.ctypes.c_char * 128)()
    assert ranks.nccl.ncclGetUniqueId(identity) == 0
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [here, *(os.path.join(os.path.dirname(here), f) for f in ("engine", "devices"))]
    started = [subprocess.Popen([sys.executable, "-c", PROCESS, str(i), "2", bytes(identity).hex(), *folders],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for i in range(2)]
    said = [p.communicate(timeout=120) for p in started]
    assert all(p.returncode == 0 for p in started), said
    xs = [(np.arange(5000, dtype=np.float32) * np.float32(1 + i) / 7).view(np.uint32) for i in range(2)]
    x, values = np.concatenate(xs), []
    for op in ("sum", "var", "minmax", "sum"):
        want = oracle.statistic(op, "f32", x)
        values.append((tally.OK, [want if isinstance(want, list) else [want]]))
    sums = [expected("f32", xs, divisor).tolist() for _ in range(2) for divisor in (0, 3)]
    assert said[0][0].strip() == said[1][0].strip() == f"{values} {sums}"


@pytest.mark.parametrize("type_", ["f32", "f64", "bf16", "i32"])
def test_long(type_):
    """Arrays of many blocks, of unequal parts, captured and not: the bits of one process on the CPU."""
    rng = data.rng(f"nccl long {type_}")
    n = 3000 if IS_DOUBLE else (1 << 18) + 4097
    x, cpu = array(rng, type_, n), tally.Device("cpu")
    if type_ in INTS:
        x %= 1000
    for op in ("sum", "var", "norm2", "describe", "minmax", "nonzero"):
        want = tally.reduce_array(cpu, op, type_, x)
        for count in range(1, min(MOST, 4) + 1):
            for captures in (False, True):
                parts = np.split(x, np.sort(rng.integers(0, n + 1, count - 1)))
                made = Ranks(count, lambda r: r.values(tally.problem(op, type_), [(parts[r.number], None)]), captures=captures)
                assert all_same(made.made) == (tally.OK, [want if isinstance(want, list) else [want]]), (op, count)
    cpu.close()


@pytest.mark.parametrize("type_", ARRAYS)
def test_long_arrays(type_):
    """Long enough for each rank to round a shard of its own: the bits that the same steps on the host leave."""
    rng = data.rng(f"nccl long arrays {type_}")
    n, count = (1 << 15) + 777 if IS_DOUBLE else (1 << 17) + 777, min(MOST, 4)
    for kind in (gradients, wild):
        arrays = [kind(type_, rng, n) for _ in range(count)]
        want = over_ranks(Host(), type_, arrays)[0]
        for in_place in (False, True):
            got, _ = check_arrays(type_, arrays, spare=n, in_place=in_place)
            assert (got == want).all()


def test_many_results():
    """Rows of which each rank has a part, in one message."""
    rng = data.rng("nccl rows")
    rows = [cut(rng, array(rng, "bf16", n), few(3)) for n in (0, 5, 70, 300)]
    problem = tally.problem("var", "bf16", also=["minmax", "argmax"])
    made = Ranks(few(3), lambda r: r.values(problem, [(row[r.number], None) for row in rows]))
    status, got = all_same(made.made)
    assert status == tally.OK
    for i, row in enumerate(rows):
        x = np.concatenate(row)
        assert got[i] == [oracle.statistic("var", "bf16", x), *oracle.statistic("minmax", "bf16", x),
                          oracle.statistic("argmax", "bf16", x)]


@needs_double
def test_message_of_a_sum():
    """docs/cluster.md: 16 bytes, and 8 for each of 73 words."""
    problem = tally.problem("sum", "f32")
    made = Ranks(2, lambda r: r.values(problem, [(np.zeros(4, np.uint32), None)], agrees=False))
    assert made.sent == 16 + 8 * 73  # two ranks in a ring send it once each


# ---- Arrays ---------------------------------------------------------------------------------------

def check_arrays(type_, arrays, scatter=False, divisor=0, shares=False, **kw):
    attributes = {"captures": True, "shares": shares}
    made = Ranks(len(arrays), lambda r: r.sums(type_, arrays[r.number], divisor, scatter, **kw), **attributes)
    assert [m[:2] for m in made.made] == [(tally.OK, (tally.OK, 0))] * len(arrays)
    got = np.concatenate([m[2] for m in made.made]) if scatter else made.made[0][2]
    assert scatter or all((m[2] == got).all() for m in made.made), "ranks have other bits"
    return got, made.sent


@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("type_", ARRAYS)
def test_arrays(type_, count):
    rng = data.rng(f"nccl arrays {type_} {count}")
    for kind in KINDS:
        n = int(rng.integers(1, 700))
        arrays = [kind(type_, rng, n) for _ in range(count)]
        got, _ = check_arrays(type_, arrays, spare=1000, in_place=bool(rng.integers(2)), divisor=int(rng.integers(4)))
        divisor = 0
    rng = data.rng(f"nccl scatter {type_} {count}")
    arrays = [wild(type_, rng, 37 * count) for _ in range(count)]
    got, _ = check_arrays(type_, arrays, scatter=True, spare=1000)
    assert (got == expected(type_, arrays)).all()
    got, _ = check_arrays(type_, arrays, spare=1000, divisor=count)
    assert (got == expected(type_, arrays, count)).all()


@pytest.mark.parametrize("type_", ARRAYS)
def test_arrays_by_peers(type_):
    """Arrays that are added up where they lie; on the double a rank by itself, and ranks that learn that they cannot. None
    of them needs a spare row."""
    rng = data.rng(f"nccl arrays peers {type_}")
    for count in range(1, min(MOST, 4) + 1):
        alone = count == 1 or not IS_DOUBLE
        for kind in KINDS:
            n = int(rng.integers(1, 3000)) * count
            arrays = [kind(type_, rng, n) for _ in range(count)]
            divisor, scatter, in_place = int(rng.integers(4)), bool(rng.integers(2)), bool(rng.integers(2))
            got, sent = check_arrays(type_, arrays, scatter, divisor, shares=True, spare=1 if alone else 1000,
                                     in_place=in_place and not scatter)
            assert (got == expected(type_, arrays, divisor)).all(), (count, kind.__name__)


def test_arrays_that_have_not_been_agreed_on():
    """The rank says so, all have its outcome, and the peers go on."""
    def sums(r):
        x, array, size = np.zeros(40, np.uint32), ranks.Array(tally.CODE["f32"], 40, 0, 0, 0), ranks.c_size_t()
        first = r.sums("f32", x)
        assert ranks.measure_array(r.device, ranks.byref(array), r.comm, ranks.byref(size)) == tally.OK
        told, work, given = r.put(np.full(2, 0xEE, np.uint64)), r.room(size.value), r.put(x)
        call = ranks.ArrayCall(given, given, told, work, size.value, r.stream, r.peers)
        status = ranks.allreduce_array(r.device, ranks.byref(array), r.comm, ranks.byref(call))
        return status, r.get(told, np.uint64, 2)[1], first[:2], r.sums("f32", x)[:2]

    good = (tally.OK, (tally.OK, 0))
    for made in Ranks(1 if IS_DOUBLE else few(4), sums, shares=True).made:
        assert made == (tally.EINVAL, tally.EINVAL, good, good)


def test_no_elements():
    got, _ = check_arrays("f32", [np.zeros(0, np.uint32)] * few(3))
    assert len(got) == 0


@pytest.mark.parametrize("type_", ARRAYS)
def test_bytes(type_):
    """What a long array costs: half as much again as a plain allreduce in a ring, and a little for bounds, spare rows and
    the agreement. Each rank rounds its own part; the rest is everybody's."""
    rng = data.rng(f"nccl bytes {type_}")
    n, count = (1 << 15) + 777, 2
    arrays = [gradients(type_, rng, n) for _ in range(count)]
    got, sent = check_arrays(type_, arrays, spare=1)
    some = rng.integers(0, n, 500)
    assert (got[some] == expected(type_, [a[some] for a in arrays])).all()
    assert (got[-900:] == expected(type_, [a[-900:] for a in arrays])).all()
    plain = 2 * (count - 1) / count * SIZE[type_] * n
    assert sent is None or 1.5 < sent / plain < 1.65, sent / plain


# ---- Ranks that differ, and fail --------------------------------------------------------------------

def test_ranks_that_differ():
    """All of them learn it, before there is a message that would not match."""
    x, count = np.zeros(8, np.uint32), max(2, few(3))
    for asked in ([("sum", "f32"), ("mean", "f32")], [("sum", "f32"), ("sum", "bf16")], [("sum", "f32"), ("min", "f32")]):
        made = Ranks(count, lambda r: r.values(tally.problem(*asked[r.number == count - 1]), [(x.view(DTYPE[asked[r.number == count - 1][1]]), None)]))
        assert all_same(made.made) == (tally.EINVAL, None)
    problem = tally.problem("sum", "f32")
    made = Ranks(count, lambda r: r.values(problem, [(x, None)] * (1 + (r.number == 1))))
    assert all_same(made.made) == (tally.EINVAL, None)
    made = Ranks(count, lambda r: r.sums("f32", x[:8 - r.number]))
    assert all_same(made.made) == (tally.EINVAL, None, None)
    made = Ranks(count, lambda r: r.sums("f32", np.zeros(12, np.uint32), scatter=r.number == 1))
    assert all_same(made.made) == (tally.EINVAL, None, None)


def test_a_rank_that_fails():
    """It says so itself, and all have its status in their results."""
    def values(r):
        x = np.zeros(8, np.uint32)
        r.put = (lambda a: None if a is x else type(r).put(r, a)) if r.number == 1 else r.put
        return r.values(problem, [(x, None)])

    for op in ("sum", "describe"):
        problem = tally.problem(op, "f32")
        made = Ranks(max(2, few(3)), values)
        assert [m[0] for m in made.made] == [tally.OK, tally.EINVAL, tally.OK][:max(2, few(3))]
        assert all(set(m[1][0]) == {"EINVAL"} for m in made.made)

    def sums(r):
        x = np.zeros(n, np.uint32)
        r.put = (lambda a: None if a is x else type(r).put(r, a)) if r.number == 1 else r.put
        return r.sums("f32", x)[:2]

    for n in (8, 33000):
        made = Ranks(2, sums)
        assert [m[0] for m in made.made] == [tally.OK, tally.EINVAL]
        assert all(m[1] == (tally.EINVAL, 0) for m in made.made)


def test_too_few_rows():
    rng = data.rng("nccl rows needed")
    arrays = [np.concatenate([gradients("f32", rng, 2 * BLOCK), wild("f32", rng, 3 * BLOCK)]) for _ in range(2)]
    made = Ranks(2, lambda r: r.sums("f32", arrays[r.number], spare=1))
    status, (outcome, needs), _ = made.made[0]
    assert (status, outcome) == (tally.OK, tally.ENOMEM) and made.made[1][1] == (outcome, needs)
    got, _ = check_arrays("f32", arrays, spare=needs)
    assert (got == expected("f32", arrays)).all()


def right_or_failed(made, want):
    """No rank has a wrong value that it takes for right."""
    for status, got in made:
        assert status != tally.OK or got is None or all(v == w or v in tally.STATUS for v, w in zip(got[0], want))


CALLS = ["ncclCommCount", "ncclCommUserRank", "ncclAllReduce", "ncclAllGather"]


@needs_double
@pytest.mark.parametrize("name", CALLS)
def test_nccl_fails(monkeypatch, name):
    problem = tally.problem("describe", "f32")
    x = data.floats("f32", [1, 2, 3])
    want = oracle.statistic("describe", "f32", np.concatenate([x, x]))
    for which in range(1, 9):
        monkeypatch.setenv("TALLY_NCCL_DOUBLE_FAIL", f"{name}:{which}:3")
        made = Ranks(2, lambda r: r.values(problem, [(x, None)]), aborts=True)
        right_or_failed(made.made, want)
        monkeypatch.delenv("TALLY_NCCL_DOUBLE_FAIL")
        if all(status == tally.OK for status, _ in made.made):
            break
    else:
        pytest.fail("more calls than there are")
    assert which > 1


@needs_double
@pytest.mark.parametrize("error", [1, 2, 719])
@pytest.mark.parametrize("name", ["cuLaunchKernel", "cuMemsetD8Async", "cuPointerGetAttributes", "cuMemcpyHtoDAsync"])
def test_the_driver_fails(monkeypatch, name, error):
    """Whatever call of the driver's fails on whatever rank: nobody has a wrong value, and nobody waits for ever."""
    rng = data.rng(f"nccl driver {name}")
    x = gradients("f32", rng, 40)
    want = expected("f32", [x, x])
    failures = 0
    for which in (1, 2, 3, 4, 5, 6, 9, 14):
        def work(r):
            if r.number == 0 and not started:
                started.append(monkeypatch.setenv("TALLY_CUDA_DOUBLE_FAIL", f"{name}:{which}:{error}"))
            try:
                return r.sums("f32", x)
            except AssertionError:  # the test's own calls may be those that fail
                return "test", None, None

        started = []
        try:
            made = Ranks(2, work, aborts=True).made
        except AssertionError as e:
            assert "hangs" not in str(e) and "past" not in str(e)
            made, failures = [], failures + 1
        finally:
            monkeypatch.delenv("TALLY_CUDA_DOUBLE_FAIL", raising=False)
        for status, outcome, got in made:
            if status == tally.OK and outcome == (tally.OK, 0):
                assert (got == want).all()
            else:
                failures += 1
    assert failures > 0


@needs_double
def test_without_nccl():
    """A line says what is missing; nothing else happens. (A machine with GPUs may have an NCCL that everybody finds.)"""
    script = "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); v = ctypes.c_int(); " \
        "l.tally_nccl_error.restype = ctypes.c_char_p; print(l.tally_nccl_version(ctypes.byref(v)), l.tally_nccl_error())"
    out = subprocess.run([sys.executable, "-c", script, ranks.lib._name], env={"PATH": "/usr/bin:/bin"}, check=True,
                         capture_output=True, text=True).stdout
    assert f"{tally.EDEVICE} b'no " in out and "was not found" in out, out


def test_arguments():
    def work(r):
        made = []
        size = ranks.c_size_t()
        for problem in (tally.problem("prod", "f32"), tally.problem("sum", "f64", also=["prod"])):
            made.append(ranks.measure(r.device, problem, 8, 1, r.comm, size))
        made.append(ranks.measure(r.device, tally.problem("sum", "f32"), 8, 1, None, size))
        made.append(ranks.measure_array(r.device, ranks.Array(tally.CODE["f64"], 8), r.comm, size))
        made.append(ranks.measure_array(r.device, ranks.Array(tally.CODE["f32"], 7, 0, 1), r.comm, size))
        made.append(r.values(tally.problem("sum", "f32"), [(np.zeros(9, np.uint32), None)], n=8)[0])
        return made

    for made in Ranks(2, work).made:
        assert made[:5] == [tally.EUNSUPPORTED, tally.EUNSUPPORTED, tally.EINVAL, tally.ETYPE, tally.EINVAL]
