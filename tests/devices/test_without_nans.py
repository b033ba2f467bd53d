"""Problems with skip_nan, of all shapes, on the CPU and on the GPU devices: every result has the bits that the oracles give for
the elements that are no NaN, by integers, fractions and the tree's definition (tests/engine/oracle.py), and agrees with NumPy's
nanmin(), nanargmax() and the like, and math.fsum(). TALLY_SEED gives other random arrays."""

import ctypes
import math
import os
from ctypes import c_size_t, c_void_p

import numpy as np
import pytest

import conftest
import data
import oracle
import shapes as t
import tally
from drawn import is_slow, types_on

SEED = int(os.environ.get("TALLY_SEED", "1"))
HOSTS = ["", "cpu", "cpu:threads=3,isa=baseline"]
TYPES = t.FLOATS + ["i32", "u8"]
PAIRS = ["dot"]
PROBLEMS = [(op, {}) for op in t.OPS if op != "user"] + \
    [("var", {"ddof": 1.0}), ("std", {"ddof": 0.5}), ("mean", {"also": ["max", "var", "nonzero", "norm1", "count"]}),
     ("argmin", {"also": ["sum", "argmax"]}), ("prod", {"also": ["any", "argmax"]}), ("dot", {"also": ["sum", "count", "prod"]})]
SHARES = [0, 0.3, 1]  # of elements that are NaN
OPENED = {}


def opened(spec):
    if spec not in OPENED:
        try:
            OPENED[spec] = t.open_device(spec) if spec else None
        except t.Failed as failed:
            assert failed.status == "EDEVICE", failed
            pytest.skip(str(failed))
    return spec


@pytest.fixture(params=HOSTS + conftest.SPECS)
def place(request):
    return opened(request.param)


@pytest.fixture(params=HOSTS)
def host(request):
    return opened(request.param)


@pytest.fixture(params=conftest.SPECS)
def gpu(request):
    return opened(request.param)


def is_gpu(place):
    return place in conftest.SPECS


def types_of(place):
    """Element types of a run there."""
    return [type for type in TYPES if not is_gpu(place) or type in types_on(place)]


def some(rng, problems, place):
    """Problems that a test takes: all on the CPU, of a GPU's drawn ones."""
    few = 6 if is_slow(place) else 8
    return [problems[i] for i in rng.permutation(len(problems))[:few]] if is_gpu(place) else problems


def draw(rng, type, shape, share):
    """Random elements with ties, zeros and infinities; so many of them are NaNs of any sign and payload, and whole rows."""
    n = int(np.prod(shape, dtype=np.int64))
    if type in t.INTS:
        return rng.integers(0 if type[0] == "u" else -3, 4, n).astype(t.DTYPE[type]).reshape(shape)
    x = rng.standard_normal(n) * 2.0 ** rng.integers(-6, 6, n)
    x[rng.random(n) < 0.2] = rng.choice([-1.0, -0.0, 0.0, 2.0])
    if rng.random() < 0.3:
        x[rng.random(n) < 0.02] = math.inf
    x = x.reshape(shape)
    x[rng.random(shape) < share] = math.nan
    if share and x.ndim > 1:
        x[rng.random(x.shape[0]) < 0.2] = math.nan
        x[..., rng.random(x.shape[-1]) < 0.1] = math.nan
    raw = data.floats(type, x.ravel())
    raw = t.with_payloads(type, raw, rng)
    return raw.view(t.DTYPE[type]).reshape(shape)


def lay(x, rng):
    """The same elements, elsewhere: turned, reversed, apart, or with an axis that is one element again and again."""
    way = rng.integers(6)
    if way == 1:
        return np.asfortranarray(x)
    if way == 2:
        return np.ascontiguousarray(x[::-1])[::-1]
    if way == 3:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if way == 4 and x.ndim > 1:
        return np.broadcast_to(x[..., :1], x.shape)
    if way == 5:
        return np.concatenate([x.ravel()[:1], x.ravel()])[1:].reshape(x.shape)
    return x


def bits(type, x):
    return np.ascontiguousarray(x).view(tally.DTYPE[type])


def is_nan(type, x):
    if type in t.INTS:
        return np.zeros(np.shape(x), bool)
    return np.isnan(oracle.to_f64(type, bits(type, x))).reshape(np.shape(x))


def ops_of(op, options):
    out = []
    for one in (op, *options.get("also", ())):
        out += oracle.LISTS.get(one, [one])
    return out


def expect(op, options, type, x, y=None, shown=None, first=0, where=None):
    """Each value's bits of one result, None where it does not exist. `where`: the elements' indices."""
    hidden = is_nan(type, x)
    if y is not None:
        hidden = hidden | is_nan(type, y)
    if shown is not None:
        hidden = hidden | (shown == 0)
    at = np.flatnonzero(~hidden)
    raw, other = bits(type, x)[at], None if y is None else bits(type, y)[at]
    out = []
    for one in ops_of(op, options):
        got = oracle.statistic(one, type, raw, other, ddof=options.get("ddof", 0.0))
        if isinstance(got, str):
            out.append(None)
            continue
        value = got[1]
        if one in ("argmin", "argmax"):
            value = int(where[at[value]] if where is not None else at[value])
        out.append(value)
    return out


def hold_against_numpy(op, type, x, value, ddof):
    """Values that NumPy has, too, of the same elements; its sums are not exact."""
    x = oracle.to_f64(type, bits(type, x))
    there = x[~np.isnan(x)]
    x = np.where(np.isnan(x), np.nan, x)  # NumPy takes a signalling NaN for the least element
    if there.size == 0 or not np.isfinite(there).all():
        return
    if op == "sum" and type == "f64":
        assert value == math.fsum(there.tolist())
    if op in ("min", "max"):
        assert value == (np.nanmin if op == "min" else np.nanmax)(x)
    if op in ("argmin", "argmax"):
        best = np.nanmin(x) if op == "argmin" else np.nanmax(x)
        assert x[value] == best and (best == 0 or value == (np.nanargmin if op == "argmin" else np.nanargmax)(x))
    if op == "mean" and type == "f64":
        assert np.isclose(value, np.nanmean(x), rtol=1e-9, atol=1e-12)
    if op in ("var", "std") and type == "f64" and there.size > ddof:
        assert np.isclose(value, (np.nanvar if op == "var" else np.nanstd)(x, ddof=ddof), rtol=1e-9, atol=1e-12)
    if op == "count":
        assert value == there.size


def held(problem, out, expected):
    """Holds a shape's results against the expected ones, a list of values for each result."""
    for v, type in enumerate(problem.types):
        nothing = (1 << 64) - 1 if len(problem.types) > 1 and problem.ops[v].startswith("arg") else 0
        want = [e[v] if e[v] is not None else nothing for e in expected]
        got = [int(b) for b in out[v]]
        assert got == want, f"{problem.op} of {problem.type}, value {v}: " + str(
            [(i, hex(a), hex(b)) for i, (a, b) in enumerate(zip(got, want)) if a != b][:4])


def run(call, problem, expected):
    """Runs a reduction in parts. Where a single value does not exist it must fail with the first such result."""
    absent = [i for i, e in enumerate(expected) if any(
        v is None and (len(e) == 1 or not problem.ops[k].startswith("arg")) for k, v in enumerate(e))]
    try:
        out = call()
        assert not absent
    except t.Failed as failed:
        assert failed.status in ("EINVAL", "ERANGE") and absent and failed.result == absent[0], failed
        out = failed.out
    held(problem, out, expected)


def has_pairs(op, options):
    return "dot" in (op, *options.get("also", ()))


def made(op, type, options):
    problem = t.Problem(op, type, skip_nan=True, **options)
    problem.ops = ops_of(op, options)
    return problem


def rng_of(*words):
    print(f"TALLY_SEED={SEED}", *words)
    return np.random.default_rng([SEED] + [ord(c) for c in " ".join(map(str, words))])


def cases(test, place):
    """(rng, type, share) of each case of a test."""
    for type in types_of(place):
        for share in SHARES if type in t.FLOATS else [0]:
            yield rng_of(test, place, type, share), type, share


def test_whole_arrays(place):
    for rng, type, share in cases("whole", place):
        for n in [0, 1, 7, 1000] + ([4096, 5000, 13000] if not is_slow(place) else []):
            x, y = draw(rng, type, n, share), draw(rng, type, n, share)
            for op, options in some(rng, PROBLEMS, place):
                two = has_pairs(op, options)
                problem = made(op, type, options)
                want = expect(op, options, type, x, y if two else None)
                try:
                    got = t.reduce(problem, x, y if two else None, OPENED[place])
                except t.Failed as failed:
                    assert failed.status in ("EINVAL", "ERANGE") and want == [None], (failed, op, type, n)
                    continue
                assert [g and g[1] for g in got] == [w if w is not None else None for w in want] or \
                    [None if g is None else g[1] for g in got] == want, (op, options, type, n, share)
                if len(got) == 1 and not two and type in t.FLOATS and got[0]:
                    out, raw = got[0]
                    value = raw if out[0] == "u" else float(oracle.to_f64(out, np.array([raw], tally.DTYPE[out]))[0])
                    hold_against_numpy(op, type, x, value, options.get("ddof", 0.0))


@pytest.mark.parametrize("kind", ["first", "last", "none", "sparse", "dense"])
def test_long_arrays(host, kind):
    """More than one piece of those that are packed, and of threads."""
    rng = rng_of("long", host, kind)
    n = (1 << 20) + 70001
    for type in ("f32", "f64"):
        x = rng.standard_normal(n).astype(t.DTYPE[type])
        x[{"first": slice(0, 1), "last": slice(n - 1, n), "none": slice(0, 0), "sparse": slice(100, n, 5003),
           "dense": slice(0, n, 3)}[kind]] = math.nan
        there = x[~np.isnan(x)]
        for op, want in [("sum", math.fsum(there.tolist())), ("min", there.min()), ("argmax", np.nanargmax(x)), ("count", there.size),
                         ("prod", None), ("nonzero", np.count_nonzero(there)), ("dot", None)]:
            if op in ("prod", "dot"):
                two = (lambda a: a) if op == "dot" else (lambda a: None)
                got = t.reduce(made(op, type, {}), x, two(x), OPENED[host])
                assert got == t.reduce(t.Problem(op, type), there, two(there)), (op, type)
                continue
            (out, raw), = t.reduce(made(op, type, {}), x, None, OPENED[host])
            value = raw if out == "u64" else float(np.array([raw], tally.DTYPE[out]).view(t.DTYPE[out])[0])
            assert value == (np.float32(want) if type == "f32" and op == "min" else want) or \
                (op == "sum" and type == "f32" and abs(value - want) <= np.spacing(np.float32(abs(want)))), (op, type)


SHAPES = [((7,), [0]), ((7,), []), ((0,), [0]), ((40, 4), [0]), ((40, 4), [1]), ((5, 130), [1]), ((3, 4, 5), [0, 2]), ((2, 3, 4, 5), [1, 3]),
          ((300, 3), [0]), ((9, 40), [0, 1]), ((3, 0, 2), [1])]
LARGER = [((700, 33), [0]), ((700, 33), [1]), ((3, 9000), [1]), ((9000, 2), [0]), ((30, 20, 30), [1])]


@pytest.mark.parametrize("size", ["small", "large"])
def test_axes(place, size):
    for rng, type, share in cases(f"axes {size}", place):
        shapes = SHAPES if size == "small" else LARGER
        if size == "large" and is_slow(place):
            shapes = [LARGER[rng.integers(len(LARGER))]] if type in ("f32", "f64") else []
        for shape, axes in shapes:
            few = some(rng, PROBLEMS, place)
            for op, options in few if size == "small" else [few[i] for i in rng.permutation(len(few))[:4]]:
                two = has_pairs(op, options)
                x = lay(draw(rng, type, shape, share), rng)
                y = lay(draw(rng, type, shape, share), rng) if two else None
                mask = lay((rng.random(shape) < 0.7).astype(np.uint8), rng) if rng.random() < 0.4 else None
                problem = made(op, type, options)
                parts = [t.parts_of_axes(a, axes) if a is not None else None for a in (x, y, mask)]
                expected = [expect(op, options, type, *[p[i] if p is not None else None for p in parts]) for i in range(len(parts[0]))]
                run(lambda: t.reduce_axes(problem, x, axes, y, mask, OPENED[place]), problem, expected)


@pytest.mark.parametrize("kind", ["offsets", "equal", "vectors"])
def test_segments(place, kind):
    for rng, type, share in cases(f"segments {kind}", place):
        for op, options in some(rng, PROBLEMS, place):
            two = has_pairs(op, options)
            n = int(rng.integers(1, 400 if is_slow(place) else 3000)) if kind != "equal" else 24 * int(rng.integers(1, 30))
            shape = (n,) if kind != "vectors" else (n // 8 + 1, int(rng.integers(1, 9)))
            x = draw(rng, type, shape, share)
            y = draw(rng, type, shape, share) if two else None
            mask = (rng.random(shape) < 0.7).astype(np.uint8) if rng.random() < 0.4 else None
            count = int(rng.integers(1, 20)) if kind != "equal" else 12
            offsets = np.sort(rng.integers(0, shape[0] + 1, count + 1)).astype(rng.choice([np.int32, np.int64]))
            if kind == "equal":
                offsets = np.arange(13) * (n // 12)
            problem = made(op, type, options)
            place_of = OPENED[place]
            if kind == "vectors":
                expected = [expect(op, options, type, x[a:b, c], None if y is None else y[a:b, c], None if mask is None else mask[a:b, c])
                            for a, b in zip(offsets[:-1], offsets[1:]) for c in range(shape[1])]
                cut = t.along(x, 0, t.segments_shape(shape[0], offsets), y, mask)
                run(lambda: t.run(problem, cut, x, y, count * shape[1], place_of), problem, expected)
                continue
            expected = [expect(op, options, type, x[a:b], None if y is None else y[a:b], None if mask is None else mask[a:b])
                        for a, b in zip(offsets[:-1], offsets[1:])]
            if kind == "equal":
                run(lambda: t.reduce_segments(problem, x, None, y, mask, place_of, 12), problem, expected)
            else:
                run(lambda: t.reduce_segments(problem, x, offsets, y, mask, place_of), problem, expected)


@pytest.mark.parametrize("kind", ["mixed", "sorted", "few", "vectors"])
def test_groups(place, kind):
    for rng, type, share in cases(f"groups {kind}", place):
        for op, options in some(rng, PROBLEMS, place):
            two = has_pairs(op, options)
            n = int(rng.integers(1, 400 if is_slow(place) else 3000))
            shape = (n,) if kind != "vectors" else (n // 8 + 1, int(rng.integers(1, 9)))
            x = draw(rng, type, shape, share)
            y = draw(rng, type, shape, share) if two else None
            mask = (rng.random(shape) < 0.7).astype(np.uint8) if rng.random() < 0.4 else None
            groups = 3 if kind == "few" else int(rng.integers(1, 40))
            ids = rng.integers(0, groups, shape[0]).astype(rng.choice([np.int32, np.int64, np.uint8]))
            ids = np.sort(ids) if kind == "sorted" else ids
            problem = made(op, type, options)
            where = [np.flatnonzero(ids == g) for g in range(groups)]
            if kind == "vectors":
                expected = [expect(op, options, type, x[w, c], None if y is None else y[w, c], None if mask is None else mask[w, c], where=w)
                            for w in where for c in range(shape[1])]
                cut = t.along(x, 0, t.groups_shape(shape[0], ids, groups), y, mask)
                run(lambda: t.run(problem, cut, x, y, groups * shape[1], OPENED[place]), problem, expected)
                continue
            expected = [expect(op, options, type, x[w], None if y is None else y[w], None if mask is None else mask[w], where=w)
                        for w in where]
            run(lambda: t.reduce_groups(problem, x, ids, groups, y, mask, OPENED[place], is_sorted=kind == "sorted"), problem, expected)


def test_complex_numbers_and_means(place):
    """A pair with a NaN in either part is left out; so are NaNs from what means that are given are the means of."""
    for rng, type, share in cases("complex", place):
        if type in t.INTS:
            continue
        x, y = draw(rng, type, (6, 50), share), draw(rng, type, (6, 50), share)
        problem, plain = (t.Problem("var", type, ddof=1.0, is_complex=True, skip_nan=s) for s in (True, False))
        there = ~is_nan(type, x) & ~is_nan(type, y)
        want = [t.reduce(plain, x[i][there[i]], y[i][there[i]])[0][1] for i in range(6)]
        assert [int(b) for b in t.reduce_axes(problem, x, [1], y, None, OPENED[place])[0]] == want
        assert [t.reduce(problem, x[i], y[i], OPENED[place])[0][1] for i in range(6)] == want
        about, plain = (t.Problem("std", type, about=0.25, skip_nan=s) for s in (True, False))
        there = ~is_nan(type, x)
        want = [t.reduce(plain, x[i][there[i]])[0][1] for i in range(6)]
        assert [int(b) for b in t.reduce_axes(about, x, [1], None, None, OPENED[place])[0]] == want


def feeds(n, rng):
    cuts = np.sort(rng.integers(0, n + 1, 3))
    return zip([0, *cuts], [*cuts, n])


def test_states(place):
    """Fed in pieces, merged, saved and loaded, in words. Indices count all that is fed."""
    device = type("Opened", (), {"handle": OPENED[place]})
    for rng, type_, share in cases("states", place):
        for op, options in some(rng, PROBLEMS, place):
            two = has_pairs(op, options)
            n = int(rng.integers(0, 900 if is_slow(place) else 20000))
            x, y = (bits(type_, draw(rng, type_, n, share)) for _ in range(2))
            state = tally.State(op, type_, skip_nan=True, **options)
            right = tally.State(op, type_, skip_nan=True, **options)
            for a, b in feeds(n, rng):
                state.feed(x[a:b].copy(), y[a:b].copy() if two else None, device)
            want = expect(op, options, type_, x, y if two else None)
            check_values(state, want, op)
            hidden = is_nan(type_, x) | (is_nan(type_, y) if two else False)
            assert state.count() == n - int(hidden.sum())
            again = state.load(state.save())
            check_values(again, want, op)
            again.feed(x, y if two else None, device)
            right.begin_at(again.count())
            right.feed(x, y if two else None, device)
            assert again.merge(right).count() == 3 * state.count()
            check_values(again, expect(op, options, type_, np.tile(x, 3), np.tile(y, 3) if two else None), op)
            first = tally.State(op, type_, skip_nan=True, **options)
            first.feed(x[:n // 3].copy(), y[:n // 3].copy() if two else None, device)
            right.clear()
            right.begin_at(first.count())
            right.feed(x[n // 3:].copy(), y[n // 3:].copy() if two else None, device)
            merge_words(first, right)
            check_values(first.merge(right), want, op)
            if state.words() is not None:
                right.clear()
                assert right.from_words(state.words()) == "OK"
                check_values(right, want, op)


def merge_words(left, right):
    """Merges the words of two states, where there are such, and holds them against the states' merge."""
    t.lib.tally_state_merge_words.restype = c_size_t
    count = t.lib.tally_state_merge_words(c_void_p(left.handle))
    if count == 0:
        return
    words = np.zeros((2, count), np.int64)
    for state, row in zip((left, right), words):
        t.check(t.lib.tally_state_to_merge_words(c_void_p(state.handle), c_void_p(t.address(row))))
    t.check(t.lib.tally_merge_words(ctypes.byref(left.problem), c_void_p(t.address(words[0])), c_void_p(t.address(words[1]))))
    made = tally.State(left.op, left.type, **left.kw)
    t.check(t.lib.tally_state_from_merge_words(c_void_p(made.handle), c_void_p(t.address(words[1]))))
    assert made.save() == left.copy().merge(right).save()


def check_values(state, want, op):
    got = state.value()
    got = got if isinstance(got, list) else [got]
    got = [None if g is None or isinstance(g, str) else g[1] for g in got]
    assert got == want, (op, got, want)


def test_states_of_groups(place):
    for rng, type, share in cases("states of groups", place):
        for op, options in some(rng, PROBLEMS, place):
            two = has_pairs(op, options)
            n, groups = int(rng.integers(0, 400 if is_slow(place) else 9000)), int(rng.integers(1, 9))
            x, y = draw(rng, type, n, share), draw(rng, type, n, share)
            ids = rng.integers(0, groups, n).astype(np.int32)
            mask = (rng.random(n) < 0.7).astype(np.uint8)
            state = t.Groups(made(op, type, options), groups)
            for a, b in feeds(n, rng):
                state.feed(x[a:b].copy(), ids[a:b].copy(), y[a:b].copy() if two else None, mask[a:b].copy(), device=OPENED[place])
            where = [np.flatnonzero(ids == g) for g in range(groups)]
            expected = [expect(op, options, type, x[w], y[w] if two else None, mask[w], where=w) for w in where]
            for each in (state, t.Groups.load(state.problem, groups, state.save())):
                run(lambda: values_of(each), state.problem, expected)


def values_of(groups):
    out, pointers = t.outputs(groups.problem, groups.count)
    status = t.lib.tally_groups_values(groups.handle, pointers)
    if status:
        failed = t.Failed(status)
        failed.out = out
        raise failed
    return out


def test_user_operators(host):
    """The canonical tree of the elements that are there."""
    rng = rng_of("user", host)
    for n in (0, 5, 5000, 20000):
        x = draw(rng, "f64", n, 0.3)
        op = t.operator("f64", lambda a, b: a * 0.5 + b, 0.0, False)
        there = x[~np.isnan(x)]
        got = t.reduce(t.Problem("user", "f64", user=op, skip_nan=True), x, None, OPENED[host])
        assert got == t.reduce(t.Problem("user", "f64", user=op), there)


def test_what_refuses(gpu):
    """What neither packs nor masks elements: times, and words of ranks."""
    x = np.array([1.0, math.nan, 3.0])
    problem, value, room = made("sum", "f64", {}), (t.Value * 1)(), (ctypes.c_uint64 * 8)()
    for call in (lambda p: t.lib.tally_device_time(OPENED[gpu], p, c_void_p(t.address(x)), None, c_size_t(3), value, room),
                 lambda p: t.lib.tally_words_measure(OPENED[gpu], p, c_size_t(3), c_size_t(1), room)):
        with pytest.raises(t.Failed) as failed:
            t.check(call(ctypes.byref(problem.c)))
        assert failed.value.status == "EUNSUPPORTED" and "skips no NaNs" in failed.value.line


@pytest.mark.parametrize("within", [False, True])
def test_states_of_groups_take_states(within):
    """A state's skipped elements count among those that are fed; in a group of its own index, among the state's."""
    problem = made("argmax", "f64", {"also": ["mean"]})
    groups = t.Groups(problem, 2)
    if within:
        groups.index_within()
    groups.feed(np.array([1.0, math.nan, 5.0]), np.array([0, 0, 1], np.int32))
    state = tally.State("argmax", "f64", also=["mean"], skip_nan=True)
    state.feed(np.array([math.nan, 2.0, math.nan]).view(np.uint64))
    t.check(t.lib.tally_groups_add_state(groups.handle, c_size_t(0), c_void_p(state.handle)))
    groups.feed(np.array([math.nan, 9.0]), np.array([0, 0], np.int32))
    again = t.Groups.load(problem, 2, groups.save())
    for each in (groups, again):
        at, mean = each.values()
        assert at.tolist() == ([4, 0] if within else [7, 2]) and mean.view(np.float64).tolist() == [4.0, 5.0]
    other = tally.State("argmax", "f64", also=["mean"])
    assert other.try_merge(state) == "EINVAL" and state.try_merge(other) == "EINVAL"
