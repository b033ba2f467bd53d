"""Uses of the package, for mypy --strict and pyright (test_process.py): what each result is known to be."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import tally


def unknown() -> NDArray[np.float32]:
    return np.ones((2, 3), np.float32)


a = unknown()
i: NDArray[np.int16] = np.array([0, 1, 2], np.int16)
u: NDArray[np.uint8] = np.ones(3, np.uint8)
z: NDArray[np.complex64] = np.ones(3, np.complex64)
v = np.zeros(3)
m = np.zeros((3, 2))
assert_type(tally.sum(a), np.float32)
assert_type(tally.sum(i), np.int64)
assert_type(tally.sum(u), np.uint64)
assert_type(tally.sum(z), np.complex64)
assert_type(tally.sum(a, keepdims=True), NDArray[np.float32])
assert_type(tally.sum(a, dtype=np.float64), np.float64)
assert_type(tally.mean(a), np.float32)
assert_type(tally.mean(i), np.float64)
assert_type(tally.mean([1.0, 2]), np.float64)
assert_type(tally.std(z), np.floating[Any])
assert_type(tally.var(i, ddof=1), np.float64)
assert_type(tally.norm(a), np.float32)
assert_type(tally.max(i), np.int16)
assert_type(tally.argmax(a), np.int64)
assert_type(tally.any(a), np.bool_)
assert_type(tally.count_nonzero([1, 0]), np.int64)
assert_type(tally.sum(v, axis=0), np.float64)
assert_type(tally.sum(m, axis=0), NDArray[np.float64])
assert_type(tally.argmin(m, 1), NDArray[np.int64])
assert_type(tally.norm(m, 1, axis=1), NDArray[np.float64])
assert_type(tally.sum(a, axis=0), Any)
out = np.empty(2)
assert_type(tally.minmax(i), tally.MinMax[np.int16])
low, high = tally.minmax(i)
assert_type(low, np.int16)
assert_type(tally.describe(a), tally.Description)
assert_type(tally.dot(v, v), np.float64)
assert_type(tally.group("mean", v, i), NDArray[np.floating[Any]])
assert_type(tally.group("minmax", v, i).max, NDArray[Any])
assert_type(tally.segment("sum", v, 3), NDArray[Any])
assert_type(tally.reduce("count", v), np.int64)
r = tally.sum(m, axis=0, out=out)
assert_type(r, np.ndarray[tuple[int], np.dtype[np.float64]])

state: tally.State = tally.State("sum", "f64").update(v)
state += tally.State("sum")
saved: bytes = bytes(state)
groups: tally.Groups = tally.Groups("max", 3).update(v, i)
described: tally.Description = tally.describe(a)
assert_type(tally.dot(v, m, out), np.ndarray[tuple[int], np.dtype[np.float64]])
assert_type(tally.vecdot(m, m), NDArray[np.float64])
assert_type(tally.mean(m, axis=0)[0], Any)
