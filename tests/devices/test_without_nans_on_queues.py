"""Problems with skip_nan of memory that lies on the device: waited for, and on queues of the caller's. What is right is as in
test_without_nans.py."""

import ctypes
from ctypes import byref, c_size_t, c_void_p

import numpy as np
import pytest

import shapes as t
import tally
from drawn import types_on
from test_queues import Call, c_enqueue, workspace
from test_shapes_on_queues import is_slow, place  # noqa: F401 (place is a fixture)
from test_without_nans import LARGER, PROBLEMS, SHAPES, SHARES, bits, draw, expect, has_pairs, lay, made, rng_of


def cases(test, place, types=("f16", "bf16", "f32", "f64")):
    spec = place.machine.spec
    for type in [type for type in types if type in types_on(spec)]:
        for share in SHARES:
            yield rng_of(test, spec, type, share), type, share


def drawn(rng, place):
    return [PROBLEMS[i] for i in rng.permutation(len(PROBLEMS))[:4 if is_slow(place) else 8]]


def held(place, problem, shape, x, y, count, expected):
    """Enqueues a reduction in parts, and holds results and outcome against what is expected."""
    memory = place.put(x), None if y is None else place.put(y)
    got, (status, at, value) = place.enqueue(problem, shape, *memory, count)
    got = [np.frombuffer(g, t.BITS[t.SIZE[v]]).tolist() for g, v in zip(got, problem.types)]
    several, absent = len(problem.types) > 1, []
    for v, op in enumerate(problem.ops):
        nothing = (1 << 64) - 1 if several and op.startswith("arg") else 0
        assert got[v] == [nothing if e[v] is None else e[v] for e in expected], f"{problem.op} of {problem.type}, value {v}"
        absent += [(i, v) for i, e in enumerate(expected) if e[v] is None and not (several and op.startswith("arg"))]
    assert (status, at, value) == ((tally.EINVAL, *min(absent)) if absent else (0, 0, 0xffffffff))


@pytest.mark.parametrize("size", ["small", "large"])
def test_axes(place, size):
    for rng, type, share in cases(f"axes {size}", place):
        shapes = SHAPES if size == "small" else [LARGER[rng.integers(len(LARGER))]] if is_slow(place) else LARGER
        for op, options in drawn(rng, place)[:8 if size == "small" else 3]:
            for shape, axes in [shapes[i] for i in rng.permutation(len(shapes))[:4]]:
                two = has_pairs(op, options)
                x, y = draw(rng, type, shape, share), draw(rng, type, shape, share) if two else None
                x = np.asfortranarray(x) if rng.random() < 0.3 else x
                mask = (rng.random(shape) < 0.7).astype(np.uint8) if rng.random() < 0.4 else None
                problem = made(op, type, options)
                parts = [t.parts_of_axes(a, axes) if a is not None else None for a in (x, y, mask)]
                expected = [expect(op, options, type, *[p[i] if p is not None else None for p in parts]) for i in range(len(parts[0]))]
                cut = place.moved(t.axes_shape(x, axes, y, mask), mask=mask)
                held(place, problem, cut, x.T if x.flags.f_contiguous and x.ndim > 1 else x, y, len(expected), expected)
                place.done()


def test_segments_and_groups(place):
    for rng, type, share in cases("cuts", place):
        for op, options in drawn(rng, place):
            n, count = int(rng.integers(1, 300 if is_slow(place) else 3000)), int(rng.integers(1, 20))
            x, y = draw(rng, type, n, share), draw(rng, type, n, share) if has_pairs(op, options) else None
            mask = (rng.random(n) < 0.7).astype(np.uint8) if rng.random() < 0.4 else None
            problem = made(op, type, options)

            def of(where):
                return [None if a is None else a[where] for a in (x, y, mask)]
            offsets = np.sort(rng.integers(0, n + 1, count + 1))
            expected = [expect(op, options, type, *of(slice(a, b))) for a, b in zip(offsets[:-1], offsets[1:])]
            held(place, problem, place.moved(t.segments_shape(n, offsets, mask=mask), offsets, mask=mask), x, y, count, expected)
            ids = rng.integers(0, count, n).astype(rng.choice([np.int32, np.int64, np.uint8]))
            is_sorted = bool(rng.random() < 0.5)
            ids = np.sort(ids) if is_sorted else ids
            where = [np.flatnonzero(ids == g) for g in range(count)]
            expected = [expect(op, options, type, *of(w), where=w) for w in where]
            cut = place.moved(t.groups_shape(n, ids, count, mask, is_sorted=is_sorted), ids=ids, mask=mask)
            held(place, problem, cut, x, y, count, expected)
            place.done()


def test_vectors(place):
    for rng, type, share in cases("vectors", place, ("f32", "f64")):
        for op, options in drawn(rng, place)[:4]:
            shape, count = (int(rng.integers(1, 60)), int(rng.integers(1, 40))), int(rng.integers(1, 9))
            x, y = draw(rng, type, shape, share), draw(rng, type, shape, share) if has_pairs(op, options) else None
            ids = rng.integers(0, count, shape[0]).astype(np.int32)
            problem = made(op, type, options)
            where = [np.flatnonzero(ids == g) for g in range(count)]
            expected = [expect(op, options, type, x[w, c], None if y is None else y[w, c], where=w) for w in where for c in range(shape[1])]
            cut = place.moved(t.along(x, 0, t.groups_shape(shape[0], ids, count), y), ids=ids)
            held(place, problem, cut, x, y, count * shape[1], expected)
            place.done()


def test_whole_arrays(place):
    for rng, type, share in cases("whole", place):
        for op, options in drawn(rng, place):
            n = int(rng.choice([0, 1, 9, 300, 5000 if is_slow(place) else 40001]))
            two = has_pairs(op, options)
            x, y = draw(rng, type, n, share), draw(rng, type, n, share)
            problem = tally.problem(op, type, skip_nan=True, **options)
            want = expect(op, options, type, x, y if two else None)
            size = c_size_t()
            assert workspace(place.device, byref(problem), n, byref(size)) == tally.OK, tally.error()
            results = np.full(2 * len(want) + 1, 0xA5A5A5A5A5A5A5A5, np.uint64)
            work, into = place.put(np.full(size.value, 0xA5, np.uint8)), place.put(results)
            at = (place.put(x) if n else None, place.put(y) if n and two else None)
            call = Call(*at, n, work, size.value, place.queue, into)
            assert c_enqueue(place.device, byref(problem), byref(call)) == tally.OK, tally.error()
            place.machine.read(place.queue, results, into)
            assert results[-1] == 0xA5A5A5A5A5A5A5A5
            for v, w in enumerate(want):
                status, got = int(results[2 * v + 1]) & 0xffffffff, int(results[2 * v])
                assert (status, got) == ((tally.EINVAL, 0) if w is None else (tally.OK, w)), (op, options, type, n, share, v)
            call = Call(*at, n, work, size.value - 1, place.queue, into)
            assert c_enqueue(place.device, byref(problem), byref(call)) == tally.EINVAL
            place.done()


def test_resident(place):
    """A CPU behind OpenCL reads the host's memory; CUDA has addresses of its own. States copy elements to the host."""
    on_host = place.machine.spec.startswith("opencl")
    for rng, type, share in cases("resident", place):
        for op, options in drawn(rng, place):
            n, two = int(rng.integers(1, 2000)), has_pairs(op, options)
            x, y = draw(rng, type, n, share), draw(rng, type, n, share)
            want = expect(op, options, type, x, y if two else None)
            at = [t.address(a) if on_host else place.put(a) for a in (x, y)]
            if not on_host:  # what has been put has arrived
                place.machine.read(place.queue, np.zeros(1, np.uint8), place.put(np.zeros(1, np.uint8)))
            at[1] = at[1] if two else None
            shaped_resident(place, on_host, made(op, type, options), x, y, at, want)
            asked = tally.problem(op, type, skip_nan=True, **options)
            values = tally.fresh_values(tally.value_count(asked))
            got = tally.outcomes(tally.reduce_resident(place.device, byref(asked), *at, n, values), values)
            got = [None if g is None or isinstance(g, str) else g[1] for g in (got if isinstance(got, list) else [got])]
            assert got == want, (op, options, type, n)
            state = tally.State(op, type, skip_nan=True, **options)
            status = t.lib.tally_state_feed_resident(c_void_p(state.handle), place.device, *[c_void_p(a) for a in at], c_size_t(n))
            assert status == tally.OK and state.count() == n - int((bits_hidden(type, x) | (bits_hidden(type, y) & two)).sum())
            got = state.value()
            assert [None if g is None or isinstance(g, str) else g[1] for g in (got if isinstance(got, list) else [got])] == want
            place.done()


def shaped_resident(place, on_host, problem, x, y, at, want):
    """The same array as the only row of a shape."""
    shape = t.axes_shape(x, [0], y if at[1] else None)
    out, pointers = t.outputs(problem, 1)
    if not on_host:
        pointers = (c_void_p * len(out))(*[place.put(o) for o in out])
        place.machine.read(place.queue, np.zeros(1, np.uint8), place.put(np.zeros(1, np.uint8)))
    status = t.lib.tally_reduce_shaped_resident(place.device, problem.c, byref(shape), *[c_void_p(a) for a in at], pointers)
    for o, p in zip(out, pointers):
        if not on_host:
            place.machine.read(place.queue, o, p)
    assert (status == tally.EINVAL) == (want == [None]) and status in (tally.OK, tally.EINVAL)
    nothing = (1 << 64) - 1 if len(want) > 1 else 0
    assert [int(o[0]) for o in out] == [nothing if w is None else w for w in want]


def bits_hidden(type, x):
    import oracle
    return np.isnan(oracle.to_f64(type, bits(type, x)))
