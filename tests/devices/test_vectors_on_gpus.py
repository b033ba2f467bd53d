"""Segments and groups along an axis on the GPU devices: the bits, and the lines, that the calling thread has for the shape,
whose own tests hold it against oracles (tests/engine/test_vectors.py). TALLY_SEED gives other random arrays."""

import random

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
PROBLEMS = [("sum", "f32"), ("argmax", "i32")]


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
