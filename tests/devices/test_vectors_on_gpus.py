"""Segments and groups along an axis on the GPU devices: the bits, and the lines, that the calling thread has for the shape,
whose own tests hold it against oracles (tests/engine/test_vectors.py). TALLY_SEED gives other random arrays."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest

import shapes as t
import vectors
from test_shapes import KINDS, SEED, device, elements, is_slow, same  # noqa: F401 (a fixture)


def run(problem, v, device):
    shape = t.along(v.x, v.axis, v.shape, v.y if problem.two() else None, v.mask, v.out_stride)
    count = int(np.prod(t.results_along(v.x, v.axis, len(v.places))))
    return t.run(problem, shape, v.x, v.y if problem.two() else None, count, device, places=v.room)


# Few, as each is a program to compile: what one vector's kernels do with operators and types is tested elsewhere.
PROBLEMS = [("sum", "f32"), ("argmax", "i32"), ("prod", "f32")]


@pytest.mark.parametrize("op, type", PROBLEMS)
def test_random_arrays(op, type, device):
    rng, py = np.random.default_rng(SEED), random.Random(f"{SEED} {op}")
    problem = t.Problem(op, type)
    for _ in range(3 if is_slow(device) else 8):
        v = vectors.drawn(type, rng, py, elements, KINDS, 300 if is_slow(device) else 2000)
        same(lambda d: run(problem, v, d), device, f"{op} of {type} {v.x.shape} {v.x.strides} along {v.axis}")


def test_what_is_wrong(device):
    x = np.zeros((4, 6), np.float32)
    ids = np.array([0, 1, 5, 1, 0, -1], np.int16)
    for shape, line in ((t.groups_shape(6, ids, 5), "id 2 is 5, outside of the 5 groups"),
                        (t.segments_shape(6, np.array([0, 3, 2])), "offset 2 falls: it is 2, behind 3")):
        with pytest.raises(t.Failed, match=line):
            t.run(t.Problem("sum", "f32"), t.along(x, 1, shape), x, None, 20, device)


# What teams of threads fold (kernels/vectors.cu): a problem for each kind of state and size of elements.
FOLDED = [("sum", "f32"), ("mean", "f64"), ("var", "bf16"), ("std", "f64"), ("norm2", "f32"), ("max", "u8"), ("argmin", "f16"),
          ("argmax", "i64"), ("sum", "i32"), ("mean", "u64")]
COLUMNS = [(1, 1), (2, 1), (3, 1), (5, 1), (4, 1), (12, 1), (64, 1), (132, 1), (260, 1), (8, 3), (3, 2), (1, 4)]  # outer last


def cuts_of(rng, py, n):
    """Offsets of segments of a kind: short ones, one giant, many empty ones, some of each length."""
    kind = py.choice(["short", "giant", "empty", "mixed"])
    if kind == "giant":
        return np.array([0, n // 40, n - 1, n, n])
    count = {"short": n // 3, "empty": 3 * n, "mixed": 9}[kind]
    return np.sort(np.r_[0, rng.integers(0, n, count), n])


def folded_case(problem, rng, py, device, n):
    """An array of rows of columns, and of outer ones of these, by segment or by id: unaligned, strided, out of order."""
    columns, outer = py.choice(COLUMNS)
    gap = py.choice([0, 0, 1, 4])
    all_ = elements(problem.type, (outer, n + 1, columns + gap), rng, py.choice(KINDS)).ravel()
    x = all_[py.choice([0, 0, 1]):][:outer * n * (columns + gap)].reshape(outer, n, columns + gap)[:, :, :columns]
    cuts = cuts_of(rng, py, n)
    if py.random() < 0.5:
        shape, count = t.segments_shape(n, cuts.astype(py.choice([np.int32, np.int64]))), len(cuts) - 1
    else:
        count = len(cuts) - 1
        ids = np.repeat(np.arange(count), np.diff(cuts))
        rises = py.random() < 0.2
        if not rises:
            rng.shuffle(ids)
        outside = not rises and py.random() < 0.4
        if outside:
            ids[rng.random(n) < 0.1] = py.choice([-1, count])
        shape = t.groups_shape(n, ids.astype(py.choice([np.int32, np.int64])), count, None, outside, rises)
    results = outer * count * columns
    same(lambda d: t.run(problem, t.along(x, 1, shape), x, None, results, d), device,
         f"{problem.op} of {problem.type}: {outer} x {n} x {columns}, {count} parts")


@pytest.mark.parametrize("op, type", FOLDED)
def test_teams(op, type, device):
    rng, py = np.random.default_rng(SEED), random.Random(f"{SEED} {op} {type}")
    for _ in range(2 if is_slow(device) else 12):
        folded_case(t.Problem(op, type, ddof=1), rng, py, device, 150 if is_slow(device) else py.choice([30, 400, 3000]))


def test_several_values(device):
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    for problem in (t.Problem("mean", "f32", also=["var", "sum", "norm2"]), t.Problem("min", "f32", also=["max"]),
                    t.Problem("argmax", "f32", also=["max"])):
        folded_case(problem, rng, py, device, 150)


def test_nothing_is_written_to_the_terminal(tmp_path):
    """PoCL writes there how many warnings its compiler has, unless it shall have none."""
    text = """if True:
        import numpy as np, shapes as t
        shape = t.along(np.ones((9, 8), np.float32), 0, t.segments_shape(9, np.array([0, 4, 9])))
        for op in ("sum", "minmax"):
            t.run(t.Problem(op, "f32"), shape, np.ones((9, 8), np.float32), None, 16, t.open_device("opencl:0"))
    """
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True,
                          env={**os.environ, "POCL_CACHE_DIR": str(tmp_path), "TALLY_CACHE": "0",
                               "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    assert done.stdout + done.stderr == ""
