"""States: fed, merged, taken apart, saved, loaded, pickled, as words; groups; segments."""

import copy
import pickle
import subprocess
import sys
import threading

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import tally

OPS = "sum prod min max and or xor mean var std norm1 norm2 norminf sumsq argmin argmax minmax count nans nonzero any all describe".split()


def elements(rng, n, dtype):
    if dtype in ("f16", "f32", "f64"):
        x = rng.standard_normal(n) * 2.0 ** rng.integers(-8, 8, n)
        return x.astype({"f16": "f2", "f32": "f4", "f64": "f8"}[dtype])
    return rng.integers(0, 2, n).astype({"i32": "i4", "uint8": "u1", "bool": "?"}[dtype])


def values(x):
    return [np.asarray(v).tobytes() for v in (x if isinstance(x, tuple) else (x,))]


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i32", "uint8", "bool"])
@pytest.mark.parametrize("op", OPS)
def test_every_operator(rng, op, dtype):
    x = elements(rng, 20_000, dtype)
    if op == "prod" and dtype not in ("f16", "f32", "f64"):
        x[:] = 1
    whole = tally.State(op, dtype).update(x)
    assert values(whole.value()) == values(tally.reduce(op, x)), op
    left, right = tally.State(op, dtype), tally.State(op, dtype)
    left.update(x[:8192]).update(x[8192:8192])
    right.begin_at(8192).update(x[8192:])
    left += pickle.loads(pickle.dumps(right))
    assert values(left.value()) == values(whole.value()) and bytes(left) == bytes(whole) and left == whole
    assert left.count == x.size and left.dtype == x.dtype.name and op in repr(left)
    other = tally.State.from_bytes(bytes(left), op, dtype)
    assert values(other.value()) == values(whole.value())
    for twin in (copy.copy(left), copy.deepcopy(left), left.copy()):
        twin.clear()
        assert twin.count == 0 and left.count == x.size


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=30), st.lists(st.integers(0, 30), max_size=4))
def test_cuts_do_not_show(x, cuts):
    s = tally.State("sum,var")
    edges = [0, *sorted(min(c, len(x)) for c in cuts), len(x)]
    for a, b in zip(edges, edges[1:]):
        s += tally.State("sum,var").update(np.array(x[a:b], "f8"))
    assert values(s.value()) == values(tally.reduce("sum,var", np.array(x, "f8")))


def test_arithmetic(rng):
    x = rng.standard_normal(100)
    a, b = tally.State("sum").update(x[:60]), tally.State("sum").update(x[60:])
    assert (a + b).value() == tally.sum(x) and a.value() == tally.sum(x[:60])
    whole = a + b
    assert (whole - b).value() == a.value()
    whole -= a
    assert whole.value() == b.value()
    assert tally.State("sum").update(x).negate().value() == -tally.sum(x)
    assert tally.State("sum").update([1, 1]).divided(3) == 2 / 3
    assert tally.State("sum", "i64").update([7]).divided(2, "f4").dtype == np.float32
    assert tally.State("sum", "f4", out="f8").update(np.ones(1, "f4")).divided(3) == 1 / 3
    assert tally.State("sum", out="f2").update([2049 + 2**-40]).divided(1) == 2050  # which is rounded once
    with pytest.raises(TypeError):
        a + 1
    with pytest.raises(NotImplementedError):
        tally.State("min").update(x) - tally.State("min")


def test_words(rng):
    x = rng.standard_normal(1000) * 2.0 ** rng.integers(-100, 100, 1000)
    parts = [tally.State("std").update(p) for p in np.array_split(x, 7)]
    assert tally.State("std").from_words(sum(p.words() for p in parts)).value() == tally.std(x)
    assert tally.State("min").words().size == 0


def test_feeding(rng):
    x = rng.standard_normal((300, 200))
    s = tally.State("sum")
    s.update(x[::2, ::-1]).update(x[1::2].astype(">f8")).update([1, 2]).update(np.float32(0.5))
    assert s.value() == tally.sum([*x.ravel(), 3.5]) and s.count == x.size + 3
    dot = tally.State("dot", "f4").update(x.astype("f4"), x.astype("f4"))
    assert dot.value() == tally.sumsq(x.astype("f4"))
    with pytest.raises(ValueError, match="shapes"):
        dot.update(x.astype("f4"), x[:1].astype("f4"))
    big = rng.standard_normal(3_000_000).astype(">f4")
    assert tally.State("sum", "f4").update(big).value() == tally.sum(big)
    with pytest.raises(TypeError):
        s.update([[1.0], ["x"]])
    assert s.count == x.size + 3

def test_a_state_of_several_threads(rng):
    """However an array lies, what other threads and signal handlers add while it is fed stays."""
    x, op = rng.integers(-9, 9, (200_000, 2)).astype("f8"), tally.Operator("a + b", identity=0)
    arrays = (x[:, 0], x.T, x.ravel()[::-1], x.astype(">f8"), x.astype("f4"), x.astype("i8"), np.broadcast_to(1.0, x.shape), x)
    for what in ("sum,count", "prod", op):
        s = tally.State(what)
        parts = [threading.Thread(target=lambda a=a: [s.update(a) for _ in range(3)]) for a in arrays]
        parts.append(threading.Thread(target=lambda: [s.__iadd__(tally.State(what).update([1.0])) for _ in range(100)] if what == "sum,count"
                                      else [s.update([1.0]) for _ in range(100)]))
        for part in parts:
            part.start()
        for part in parts:
            part.join()
        assert s.count == 3 * sum(a.size for a in arrays) + 100
        if what != "prod":
            total = s.value()[0] if what != op else s.value()
            assert total == 3 * sum(np.sum(a, dtype="f8") for a in arrays) + 100
    dot = tally.State("dot")
    parts = [threading.Thread(target=lambda: dot.update(x[:, 0], x[:, 1])) for _ in range(4)]
    for part in parts:
        part.start()
    for part in parts:
        part.join()
    assert dot.value() == 4 * (x[:, 0] @ x[:, 1])


def test_a_signal_handler_may_use_a_state():
    """In the middle of a long feed: of a state all is there; groups, which are fed in place, refuse."""
    done = subprocess.run([sys.executable, "-c", """
import signal, numpy as np, tally
many, seen = np.zeros(1 << 28, "i1"), []
for array in (many, many[::-1], many.reshape(2, -1).T):
    s = tally.State("sum", "i1")
    signal.signal(signal.SIGALRM, lambda *_: seen.append(s.update(np.ones(5, "i1")).value()))
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    while not seen:
        s.update(array)
    assert s.value() == 5 and s.count % array.size == 5 and seen.pop() == 5
g = tally.Groups("sum", 2000, "i1")  # of fewer, blocks are fed and then merged
def fails(*_):
    for call in (g.value, lambda: g.update(np.ones(5, "i1"), [0] * 5), lambda: bytes(g), lambda: g.__iadd__(g)):
        try:
            call()
            return signal.setitimer(signal.ITIMER_REAL, 0.02)  # between two feeds
        except RuntimeError as error:
            seen.append("signal" in str(error))
signal.signal(signal.SIGALRM, fails)
signal.setitimer(signal.ITIMER_REAL, 0.02)
while not seen:
    g.update(many, many)
assert seen == [True] * 4 and not g.value().any()
"""], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_an_operator_of_ones_own(rng):
    op = tally.Operator("a * b % 1000003", identity=1)
    x = rng.integers(1, 1000003, 10_000)
    a = tally.State(op, "i64").update(x[:4096])
    b = tally.State(op, "i64").begin_at(4096).update(x[4096:])
    assert (a + b).value() == tally.reduce(op, x)
    again = pickle.loads(pickle.dumps(a))
    assert again.value() == a.value() and again == a


def test_a_text_means_one_type():
    """Wherever a dtype is given: NumPy's, or one of ours that is not NumPy's."""
    for text, name in (("i8", "int64"), ("u8", "uint64"), ("i1", "int8"), ("f8", "float64"), ("f64", "float64"), ("f32", "float32"), ("f16", "float16"),
                       ("f2", "float16"), ("i64", "int64"), ("u16", "uint16"), ("int8", "int8"), (">i8", "int64"), ("?", "bool"), ("bool", "bool")):
        assert tally.State("sum", text).dtype == name and name in repr(tally.Groups("sum", 1, text)), text
        if name != "bool":
            x = np.ones(2, name)
            assert tally.sum(x, dtype=text).dtype == name == tally.reduce("sum", x, dtype=text).dtype == tally.group("sum", x, [0, 0], dtype=text).dtype
        if name[0] == "f":
            assert tally.State("mean", out=text).update([1.0]).value().dtype == name == tally.State("sum").update([1.0]).divided(2, text).dtype
    for state in (tally.State("sum", np.int8), tally.Groups("sum", 2, "int8", out="f4")):
        again = pickle.loads(pickle.dumps(state))
        assert repr(again) == repr(state) and "int8" in repr(again) and again._out == state._out
    assert tally._states._load_state(bytes(tally.State("sum", "i1", out="f32")), ("sum",), "i8", 0.0, "f32", False).dtype == "int8"  # a saved pickle's
    for text in ("f128", "nonsense", "c128"):
        with pytest.raises(TypeError):
            tally.State("sum", text)
    da = pytest.importorskip("dask.array")
    assert tally.dask.sum(da.ones(3, chunks=2), dtype="f32").compute().dtype == np.float32


def test_damaged():
    saved = bytearray(bytes(tally.State("sum").update([1.0])))
    saved[40] ^= 1
    with pytest.raises(ValueError):
        tally.State.from_bytes(saved, "sum")
    with pytest.raises(ValueError):
        tally.State.from_bytes(bytes(tally.State("sum")), "max")


@pytest.mark.parametrize("nothing", [None, 3, "text"])
def test_bytes_of_nothing(nothing):
    with pytest.raises(TypeError):
        tally.State.from_bytes(nothing, "sum")
    with pytest.raises(TypeError):
        tally.Groups.from_bytes(nothing, "sum", 2)


def test_groups_that_are_not_as_many():
    saved = bytes(tally.Groups("sum", 5).update(np.ones(9), np.arange(9) % 5))
    for count in (0, 3, 6):
        with pytest.raises(ValueError, match=f"5 groups have been saved, not {count}"):
            tally.Groups.from_bytes(saved, "sum", count)


@pytest.mark.parametrize("op", ["sum", "mean", "min", "argmax", "count", "describe", "prod"])
@pytest.mark.parametrize("ids", ["i1", "u2", "i4", "i8", "u8"])
def test_groups(rng, op, ids):
    x, i = rng.standard_normal(5000), rng.integers(0, 7, 5000).astype(ids)
    got = tally.group(op, x, i, 7)
    whole = tally.Groups(op, 7).update(x[:2000], i[:2000]).update(x[2000:], i[2000:])
    assert values(whole.value()) == values(got)
    again = pickle.loads(pickle.dumps(whole))
    assert bytes(again) == bytes(whole) and len(again) == 7
    for g in range(7):
        part = tally.reduce(op, x[i == g])
        if op == "argmax":
            part = np.flatnonzero(i == g)[part]
        if op != "describe":
            assert (got[g] if op != "count" else got[g]) == part
    if op != "prod":
        a, b = tally.Groups(op, 7).update(x[:2000], i[:2000]), tally.Groups(op, 7).update(x[2000:], i[2000:])
        assert values((a + b).value()) == values(got)
        a += b
        assert bytes(a) == bytes(whole)


def test_group_arguments(rng):
    x, i = rng.standard_normal((3, 50)), rng.integers(0, 5, 50)
    assert np.array_equal(tally.group("sum", x, i, 5), [tally.group("sum", r, i, 5) for r in x])
    assert np.array_equal(tally.group("sum", x.T, i, 5, axis=0), tally.group("sum", x, i, 5).T)
    assert np.array_equal(tally.group("sum", x[0], i, 4, skip_outside=True), tally.group("sum", x[0], i, 5)[:4])
    keep = rng.random(50) < 0.5
    assert np.array_equal(tally.group("mean", x[0], i, 5, where=keep), tally.group("mean", x[0][keep], i[keep], 5), equal_nan=True)
    order = np.argsort(i, kind="stable")
    assert np.array_equal(tally.group("std", x[0][order], i[order], 5, sorted=True), tally.group("std", x[0], i, 5))
    assert tally.group("sum", np.ones(3, "f4"), [0, 0, 1], dtype="f8").dtype == np.float64
    assert tally.group("sum", [], np.array([], int)).shape == (0,)


def test_segments(rng):
    x = rng.standard_normal((2, 100))
    offsets = np.array([0, 0, 30, 31, 100])
    for op in ("sum", "mean", "max", "prod", "argmin"):
        if op in ("max", "argmin"):
            offsets = np.array([0, 5, 30, 31, 100])
        want = [[tally.reduce(op, r[a:b]) for a, b in zip(offsets, offsets[1:])] for r in x]
        for o in (offsets, offsets.astype("i4"), offsets.astype("u2"), offsets.tolist()):
            assert np.array_equal(tally.segment(op, x, o), want, equal_nan=True)
        assert np.array_equal(tally.segment(op, x.T, offsets, axis=0), np.transpose(want), equal_nan=True)
    assert np.array_equal(tally.segment("sum", x[0], 4), [tally.sum(p) for p in np.split(x[0], 4)])
    low, high = tally.segment("minmax", np.arange(4), 2)
    assert low.tolist() == [0, 2] and high.tolist() == [1, 3]


def test_by_blocks(rng, monkeypatch):
    """Segments and groups of what does not lie in order, of which blocks are copied: as those of a copy of all of it."""
    for module in (tally._host, tally._states):
        monkeypatch.setattr(module, "BLOCK", 1 << 10)
    x, i = rng.standard_normal(5000) * np.exp2(rng.integers(-90, 90, 5000)), rng.integers(0, 7, 5000)
    mask, offsets = rng.random(5000) < 0.5, np.array([0, 0, 1, 100, 101, 700, 4000, 4900, 5000])
    for y in (x[::-1], x.astype(">f8"), np.stack([x, x], 1)[:, 0]):
        copy = np.array(y, "f8")
        for op in ("sum", "mean,std", "argmax", "prod", "minmax", "describe", "count"):
            o = offsets[2:] - 1 if op in ("argmax", "minmax", "describe") else offsets
            o = np.maximum(o, 0)
            assert values(tally.segment(op, y, o)) == values(tally.segment(op, copy, o)), op
            assert values(tally.segment(op, y, 5)) == values(tally.segment(op, copy, 5)), op
            assert values(tally.group(op, y, i, 7)) == values(tally.group(op, copy, i, 7)), op
            assert values(tally.group(op, y, i[::-1], where=mask)) == values(tally.group(op, copy, i[::-1].copy(), where=mask)), op
            fed = tally.Groups(op, 7).update(copy, i).update(y, i[::-1], where=mask)
            assert values(fed.value()) == values(tally.Groups(op, 7).update(copy, i).update(copy, i[::-1].copy(), where=mask).value()), op
        for wrong in ([0, 9, 3, 5000], [0, 6000], [-1, 5]):
            messages = []
            for z in (y, copy):
                with pytest.raises((ValueError, OverflowError)) as error:
                    tally.segment("sum", z, wrong)
                messages.append(str(error.value))
            assert messages[0] == messages[1]
        with pytest.raises(ValueError, match="5000 elements"):
            tally.Groups("sum", 7).update(y, i[:-1])
        outside = i.copy()
        outside[4000] = 7
        fed = tally.Groups("sum", 7)
        for call in (lambda: fed.update(y, outside), lambda: tally.group("sum", y, outside, 7)):
            with pytest.raises((ValueError, IndexError)):
                call()
        assert not fed.value().any()
        assert values(tally.group("sum", y, outside, 7, skip_outside=True)) == values(tally.group("sum", copy, outside, 7, skip_outside=True))
    z = x[:5000].view("c16").reshape(50, 50)
    z[::3, 7], z[5] = 0, 0
    for v in (z, z.T, z.astype(">c16"), z[::-1, ::2]):
        copy, where = np.array(v, "c16"), rng.random(v.shape) < 0.5
        assert tally.norm(v) == tally.norm(copy)
        for axis in (None, 0, 1, (1, 0)):
            for mine, theirs in ((tally.any, np.any), (tally.all, np.all)):
                assert np.array_equal(mine(v, axis=axis), theirs(copy, axis=axis))
                assert np.array_equal(mine(v, axis=axis, where=where, keepdims=True), theirs(copy, axis=axis, where=where, keepdims=True))
            assert np.array_equal(tally.count_nonzero(v, axis=axis), np.count_nonzero(copy, axis=axis))
