"""Segments and groups along an axis of an array: every result has the bits that its elements alone give, which NumPy's
indexing finds. TALLY_SEED gives other random arrays."""

import os
import random
from fractions import Fraction

import numpy as np
import pytest

import shapes as t
import vectors
from test_shapes import KINDS, SEED, compare, device, elements, problems, tried  # noqa: F401 (a fixture)

def case(problem, x, axis, places, shape, dev, y=None, mask=None, of_groups=False, out_stride=None, room=None, at=None):
    """Holds the results against those of the elements alone. `places`: of each part, along the axis."""
    y = y if problem.two() else None
    shape = t.along(x, axis, shape, y, mask, out_stride)
    lengths = t.results_along(x, axis, len(places))
    parts, other, indices = [], [], []
    moved = [None if a is None else np.moveaxis(a, axis, -1) for a in (x, y, mask)]
    for index in np.ndindex(*lengths[:axis], *lengths[axis + 1:]):
        for place in places:
            shown = place if mask is None else place[moved[2][index][place] != 0]
            parts.append(moved[0][index][shown])
            other.append(None if y is None else moved[1][index][shown])
            indices.append(shown if of_groups or not len(place) else shown - place[0])
    # parts are in the order of vectors; results in C order of an array with the parts along the axis
    order = np.moveaxis(np.arange(len(parts)).reshape(lengths[:axis] + lengths[axis + 1:] + (len(places),)), -1, axis).ravel()
    parts, indices = [parts[i] for i in order], [indices[i] for i in order]
    other = None if y is None else [other[i] for i in order]

    def call():
        if at is None:
            return t.run(problem, shape, x, y, len(parts), dev)
        try:
            return [o[at] for o in t.run(problem, shape, x, y, len(parts), dev, places=room)]
        except t.Failed as failed:
            failed.out = [o[at] for o in failed.out]
            raise
    compare(problem, tried(call, problem, (parts, other)), parts, other, indices)


def random_case(problem, rng, py, dev, most=4000):
    v = vectors.drawn(problem.type, rng, py, elements, KINDS, most)
    case(problem, v.x, v.axis, v.places, v.shape, dev, v.y, v.mask, v.of_groups, v.out_stride, v.room, v.at)


@pytest.mark.parametrize("type", t.TYPES)
def test_every_problem(type, device):
    rng, py = np.random.default_rng(SEED), random.Random(f"{SEED} {type}")
    for problem in problems(type):
        for _ in range(4):
            random_case(problem, rng, py, device, 600)


@pytest.mark.parametrize("seed", range(SEED, SEED + 6))
def test_random_arrays(seed, device):
    rng, py = np.random.default_rng(seed), random.Random(seed)
    for _ in range(12):
        random_case(py.choice(problems(py.choice(t.TYPES))), rng, py, device)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_equal_segments_along_an_axis(axis, device):
    """Their axis becomes two, of which the inner one is reduced."""
    rng = np.random.default_rng(SEED)
    for type, op in (("f32", "sum"), ("i16", "argmax"), ("f64", "prod")):
        problem = t.Problem(op, type)
        x = elements(type, (12, 24, 36), rng, "small")[:, ::-1]
        for count in (1, 3, 12):
            each = x.shape[axis] // count
            places = [np.arange(i * each, (i + 1) * each) for i in range(count)]
            case(problem, x, axis, places, t.segments_shape(0, None, count), device)
    assert [o.tolist() for o in t.run(t.Problem("count", "f32"), t.along(np.empty((3, 0), np.float32), 1, t.segments_shape(0, None, 2)),
                                      np.empty((3, 0), np.float32), None, 6)] == [[0] * 6]


def test_sums_of_vectors_are_exact(device):
    """Fractions have no rounding."""
    rng = np.random.default_rng(SEED)
    x = np.ldexp(rng.standard_normal((300, 5)), rng.integers(-200, 200, (300, 5)))
    ids = rng.integers(0, 7, 300)
    got = t.run(t.Problem("sum", "f64"), t.along(x, 0, t.groups_shape(300, ids, 7)), x, None, 35, device)[0].view(np.float64)
    for g in range(7):
        for c in range(5):
            assert got[5 * g + c] == float(sum((Fraction(float(v)) for v in x[ids == g, c]), Fraction(0)))


def outcome(problem, shape, x, y, count, dev):
    """The results, and the line about the first that does not exist."""
    try:
        return t.run(problem, shape, x, y, count, dev)[0], None
    except t.Failed as failed:
        return failed.out[0], failed.line


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("columns", [2, 5, 12, 16, 24, 64, 100])
def test_groups_taken_as_they_come(columns, threads):
    """Arrays are read in whole steps of columns, but for the last row, in any direction; threads share the rows, and a mask may
    leave some out. Rows that have been brought into the order of their groups are segments, with the same bits."""
    rng, py = np.random.default_rng([SEED, columns, threads]), random.Random(f"{SEED} {columns} {threads}")
    dev = t.open_device(f"cpu:threads={threads}")
    for problem in py.sample([p for type in t.TYPES for p in problems(type)], 12):
        x, y = (elements(problem.type, (500, columns), rng, py.choice(KINDS)) for _ in "xy")
        turn, ids = slice(None, None, py.choice([1, -1])), rng.integers(-1, 9, 500)
        places = [np.flatnonzero(ids == g) for g in range(9)]
        case(problem, x[turn], 0, places, t.groups_shape(500, ids, 9, None, True), dev, y[turn], of_groups=True)
    for type, op in [("f32", "sum"), ("f32", "argmax"), ("f32", "dot"), *[("f32", "var")] * (columns == 16),
                     *py.sample([(type, op) for type in ("f16", "f32", "f64", "i8", "i32", "i64", "bf16")
                                 for op in ("sum", "mean", "max", "argmin", "norm1", "sumsq", "nonzero")], 8)]:
        problem = t.Problem(op, type)
        rows = -(-((25 if op == "var" else 2) << 20) // (columns * t.SIZE[type])) + py.randrange(100)
        x = elements(type, (rows, columns), rng, py.choice(["tame", "wild", "special", "small"]))[::py.choice([1, -1])]
        y = elements(type, x.shape, rng, "tame")[::py.choice([1, -1])] if problem.two() else None
        ids = rng.integers(-1, 9, rows)
        ids[rng.integers(0, rows):] = 3  # a run
        ids[ids == 5] = 6  # one group is empty
        shown = py.choice([None, rng.integers(0, 3, rows).astype(np.uint8)])
        mask = None if shown is None else np.broadcast_to(shown[:, None], x.shape)
        groups = ids if shown is None else np.where(shown, ids, -1)
        order = np.argsort(np.where(groups < 0, 9, groups), kind="stable")
        starts = np.searchsorted(groups[order][:np.count_nonzero(groups >= 0)], np.arange(10))
        there, other = np.ascontiguousarray(x[order]), None if y is None else np.ascontiguousarray(y[order])
        got, line = outcome(problem, t.along(x, 0, t.groups_shape(rows, ids, 9, None, True), y, mask), x, y, 9 * columns, dev)
        want, same = outcome(problem, t.along(there, 0, t.segments_shape(rows, starts), other), there, other, 9 * columns, dev)
        if op.startswith("arg"):  # the number of a row, where a segment has that of an element
            at = np.minimum(np.repeat(starts[:-1], columns) + want.astype(np.int64), rows - 1)
            want = np.where(np.repeat(np.diff(starts), columns) > 0, order[at], want)
        assert line == same, (type, op)
        assert np.array_equal(got, want), (type, op)
    t.close_device(dev)


# ---- What is refused --------------------------------------------------------------------------

def refused(shape, problem=None, x=None, device=None, count=64):
    x = np.zeros((6, 4), np.float32) if x is None else x
    with pytest.raises(t.Failed) as failed:
        t.run(problem or t.Problem("sum", "f32"), shape, x, None, count, device)
    return str(failed.value)


def test_shapes_that_make_no_sense():
    x = np.zeros((6, 4), np.float32)

    def shape(**fields):
        shape = t.along(x, 0, t.segments_shape(6, np.array([0, 2, 6])))
        for name, value in fields.items():
            setattr(shape, name, value)
        return shape
    assert "lie along one axis; 2 are given" in refused(shape(axes=3))
    assert "lie along one axis; 0 are given" in refused(shape(axes=0))
    assert "axis 2 is to be reduced, but there are 2 dimensions" in refused(shape(axes=4))
    assert "17 dimensions; an array has 16 at most" in refused(shape(dims=17))
    assert "length is NULL" in refused(shape(length=None))
    assert "n is 5, but axis 0 has 6 elements" in refused(shape(n=5))
    assert "6 elements are not 4 segments of equal length" in refused(shape(offsets=None, count=4))
    assert "offsets are i32 or i64, not f32" in refused(shape(offsets_type=11))
    assert "more results than can be counted" in refused(shape(count=2**59))
    huge = np.array([6, 2**62], np.uint64)
    assert "more than can be counted" in refused(shape(length=t.address(huge)))
    groups = t.along(x, 1, t.groups_shape(4, np.zeros(4, np.int32), 2))
    groups.ids = None
    assert "ids is NULL but n is 4" in refused(groups)
    groups.ids_type = 12
    assert "ids are integers, not f64" in refused(groups)
    with pytest.raises(t.Failed, match="EUNSUPPORTED: states of groups are of elements side by side"):
        states = t.Groups(t.Problem("sum", "f32"), 8)
        t.check(t.lib.tally_groups_feed(states.handle, None, t.byref(t.along(x, 0, t.groups_shape(6, np.zeros(6, np.int32), 2))),
                                        t.c_void_p(t.address(x)), None))


def test_results_of_a_shape():
    x = np.zeros((6, 4, 5), np.float32)
    count = t.c_size_t()
    t.check(t.lib.tally_shape_results(t.along(x, 1, t.groups_shape(4, np.zeros(4, np.int32), 9)), t.byref(count)))
    assert count.value == 6 * 9 * 5
    t.check(t.lib.tally_shape_results(t.along(x[:0], 1, t.groups_shape(4, np.zeros(4, np.int32), 9)), t.byref(count)))
    assert count.value == 0


@pytest.mark.parametrize("offsets, line", [([0, 7, 8], "offset 1 is 7, outside of the array's 6 elements"),
                                           ([-1, 5, 6], "offset 0 is -1"), ([3, 2], "offset 1 falls: it is 2, behind 3"),
                                           ([7], "offset 0 is 7, outside of the array's 6 elements")])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_wrong_offsets(offsets, line, kind, device):
    x = np.zeros((6, 4), np.float32)
    assert line in refused(t.along(x, 0, t.segments_shape(6, np.array(offsets, kind))), x=x, device=device)


def test_wrong_ids(device):
    x = np.zeros((4, 6), np.float32)
    ids = np.array([0, 1, 5, 1, 0, -1], np.int16)
    assert "id 2 is 5, outside of the 5 groups" in refused(t.along(x, 1, t.groups_shape(6, ids, 5)), x=x, device=device)
    assert "id 5 is -1, outside of the 6 groups" in refused(t.along(x, 1, t.groups_shape(6, ids, 6)), x=x, device=device)
    assert "id 0 is 0, outside of the 0 groups" in refused(t.along(x, 1, t.groups_shape(6, ids, 0)), x=x, device=device)
    ids[5] = 0
    assert "said to be sorted, but id 3 falls" in refused(t.along(x, 1, t.groups_shape(6, ids, 6, None, False, True)), x=x,
                                                          device=device)
    mask = np.ones_like(x, np.uint8)
    mask[1:, 2] = 0  # one vector still shows it
    assert "id 2 is 5" in refused(t.along(x, 1, t.groups_shape(6, ids, 5), mask=mask), x=x, device=device)
    mask[:, 2] = 0
    counts = t.run(t.Problem("count", "f32"), t.along(x, 1, t.groups_shape(6, ids, 5), mask=mask), x, None, 20, device)[0]
    assert counts.tolist() == [3, 2, 0, 0, 0] * 4


def test_results_that_do_not_exist(device):
    """The line names the first by its number; all others are there."""
    x = np.ones((4, 3), np.int64)
    x[1:3, 1] = 2**62
    ids = np.array([1, 2, 2, 0], np.int32)
    with pytest.raises(t.Failed) as failed:
        t.run(t.Problem("sum", "i64"), t.along(x, 0, t.groups_shape(4, ids, 3)), x, None, 9, device)
    assert failed.value.line == "result 7: the exact sum does not fit i64" and failed.value.result == 7
    assert failed.value.out[0].tolist() == [1, 1, 1, 1, 1, 1, 2, 0, 2]
    with pytest.raises(t.Failed) as failed:
        t.run(t.Problem("argmin", "i64"), t.along(x, 0, t.segments_shape(4, np.array([0, 1, 1, 4]))), x, None, 9, device)
    assert failed.value.line == "result 3 has no elements, so there is no argmin"
    assert failed.value.out[0].tolist() == [0, 0, 0, 0, 0, 0, 0, 2, 0]


def test_many_vectors(device):
    """More of them than are copied at a time; none of the first copies has the result that does not exist."""
    x = np.zeros((2, 3 << 20), np.int64)
    x[:, -2] = 2**62
    with pytest.raises(t.Failed) as failed:
        t.run(t.Problem("sum", "i64"), t.along(x, 0, t.groups_shape(2, np.zeros(2, np.int32), 1)), x, None, x.shape[1], device)
    assert failed.value.line == f"result {x.shape[1] - 2}: the exact sum does not fit i64"


LARGE = [("f32", "tame"), ("f32", "wild"), ("f64", "wild"), ("i32", "wild"), ("i64", "tame"), ("bf16", "special"), ("f64", "tame")]


@pytest.mark.parametrize("type, kind", LARGE)
@pytest.mark.parametrize("columns", [3, 40, 1500])
def test_parts_that_are_cut(columns, type, kind, device):
    """Tasks share long parts, and a row may have more columns than a block."""
    rng, py = np.random.default_rng([SEED, columns]), random.Random(f"{SEED} {type} {columns}")
    rows = 600000 // columns
    x = elements(type, (rows, columns), rng, kind)
    if type in t.FLOATS and type != "bf16" and py.random() < 0.5:
        x += 2.0 ** 20  # variances that sums of squares are not near enough for
    count = py.choice([1, 5, 300])
    ids = np.minimum(rng.zipf(1.5, rows) - 1, count - 1).astype(np.int32)
    if py.random() < 0.3:
        ids[rng.random(rows) < 0.99] = 0
    cuts = np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=count))])
    if columns > 1000 or type == "i64":
        x = x[:, ::-1]
    shape = t.groups_shape(rows, ids, count)
    for op in py.sample(["sum", "var", "argmax", "mean", "max", "norm2", "nonzero", "dot"], 3):
        case(t.Problem(op, type), x, 0, vectors.members(None, count, ids), shape, device, x, None, True)
    shape = t.segments_shape(rows, cuts)
    for op in py.sample(["sum", "std", "argmin", "mean", "min", "all", "count", "sumsq"], 3):
        case(t.Problem(op, type), x, 0, vectors.members(cuts, count, None), shape, device)
