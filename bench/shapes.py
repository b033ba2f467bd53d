"""Reductions in parts, beside NumPy's, in GB/s of the bytes of elements, offsets, ids and results: what is read and what is written.

    /usr/bin/python3 bench/shapes.py [--n LOG2] [--runs R] [--only TEXT] [--types T,T]
"""

import argparse
import ctypes
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "engine"))
import shapes as t  # noqa: E402

options = argparse.ArgumentParser()
options.add_argument("--n", type=int, default=26)
options.add_argument("--runs", type=int, default=5)
options.add_argument("--only", default="")
options.add_argument("--types", default="f64,f32")
options.add_argument("--no-numpy", action="store_true")
options.add_argument("--cpu", action="store_true", help="one thread, by its own clock: on a machine that is busy")
options = options.parse_args()
clock = time.process_time if options.cpu else time.perf_counter
N = 1 << options.n
device = t.open_device("cpu:threads=1" if options.cpu else "cpu")
rng = np.random.default_rng(1)


def best(call):
    times = []
    for _ in range(options.runs):
        before = clock()
        call()
        times.append(clock() - before)
    return sorted(times)[len(times) // 2]


def read_seconds(array):
    seconds = ctypes.c_double()
    t.check(t.lib.tally_device_read(device, ctypes.c_void_p(t.address(array)), ctypes.c_size_t(array.nbytes),
                                    ctypes.byref(seconds)))
    return seconds.value


def beside_roof(bytes_, call, array):
    """GB/s of a call, of a plain read of the array, and their ratio: medians over runs, in each of which both take turns."""
    ours, roof = [], []
    for _ in range(options.runs):
        roof.append(array.nbytes / read_seconds(array) / 1e9)
        before = clock()
        call()
        ours.append(bytes_ / (clock() - before) / 1e9)
    ratios = [o / r for o, r in zip(ours, roof)]
    return [sorted(v)[len(v) // 2] for v in (ours, roof, ratios)]


def shaped(problem, shape, x, count, y=None):
    out, pointers = t.outputs(problem, count)
    for o in out:
        o[:] = 0
    return lambda keep=out: t.check(
        t.lib.tally_reduce_shaped(device, problem.c, shape, t.address(x), t.address(y), pointers))


def written(problem, count):
    """Returns the bytes of `count` results."""
    return count * sum(t.SIZE[name] for name in problem.types)


def row(name, bytes_, call, numpy_call):
    if options.only not in name:
        return
    call()  # the first touches memory
    ours, roof, ratio = beside_roof(bytes_, call, x)
    theirs = bytes_ / best(numpy_call) / 1e9 if numpy_call and not options.no_numpy else float("nan")
    print(f"{name:44s} {ours:7.1f} {roof:7.1f} {ratio:6.2f} {theirs:8.1f}", flush=True)


print(f"{'':44s} {'GB/s':>7s} {'roof':>7s} {'ratio':>6s} {'NumPy':>8s}")
half = options.n // 2
DIMS = [(N // 4, 4), (4, N // 4), (1 << half, N >> half), (N >> 8, 256), (256, N >> 8)]
NUMPY = dict(sum=np.sum, mean=np.mean, var=np.var, argmax=np.argmax, max=np.max, argmin=np.argmin)
for type in options.types.split(","):
    x = rng.random(N).astype(t.DTYPE[type])
    for dims in DIMS:
        a = x.reshape(dims)
        for axis in (0, 1):
            for op in ("sum", "mean", "max", "argmax", "var"):
                problem = t.Problem(op, type)
                row(f"{type} {op} {dims} axis {axis}", a.nbytes + written(problem, dims[1 - axis]),
                    shaped(problem, t.axes_shape(a, [axis]), a, dims[1 - axis]),
                    lambda: NUMPY[op](a, axis=axis))
    for length in (4, 16, 64, 256, 4096, 65536, 1 << 20):
        offsets = np.arange(0, N + 1, length)
        problem = t.Problem("sum", type)
        row(f"{type} sum segments of {length}", x.nbytes + offsets.nbytes + written(problem, len(offsets) - 1),
            shaped(problem, t.segments_shape(N, offsets), x, len(offsets) - 1),
            lambda: np.add.reduceat(x, offsets[:-1]))
    skews = {"random, mean 16": np.sort(rng.integers(0, N, N // 16)),
             "zipf": np.cumsum(np.minimum(rng.zipf(1.5, N // 64), 1 << 16)),
             "giant": np.concatenate([np.arange(0, 1000), [N // 2], N - np.arange(1000)[::-1]]),
             "empty": np.repeat(np.arange(0, N + 1, N // 64), N // 1024)}
    for name, offsets in skews.items():
        offsets = np.unique(offsets) if name == "zipf" else offsets
        offsets = np.ascontiguousarray(np.concatenate([[0], offsets[offsets <= N], [N]]).astype(np.int64))
        problem = t.Problem("sum", type)
        row(f"{type} sum segments, {name}", x.nbytes + offsets.nbytes + written(problem, len(offsets) - 1),
            shaped(problem, t.segments_shape(N, offsets), x, len(offsets) - 1), None)
    for groups in (10, 1000, 100000):
        ids = rng.integers(0, groups, N)
        for op in ("sum", "max"):
            row(f"{type} {op} by {groups} random ids", x.nbytes + ids.nbytes,
                shaped(t.Problem(op, type), t.groups_shape(N, ids, groups), x, groups),
                (lambda: np.bincount(ids, x, groups)) if op == "sum" else None)
        if groups == 1000:
            ids.sort()
            row(f"{type} sum by {groups} sorted ids", x.nbytes + ids.nbytes,
                shaped(t.Problem("sum", type), t.groups_shape(N, ids, groups), x, groups), None)
    for columns, each in ((16, 100), (64, 100), (512, 4), (64, 10000)):
        rows = N // 4 // columns
        a, count = x[:rows * columns].reshape(rows, columns), max(1, rows // each)
        ids = rng.integers(0, count, rows).astype(np.int32)
        order, offsets = np.argsort(ids, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=count))])
        for op in ("sum", "mean", "max", "argmax", "var"):
            problem = t.Problem(op, type, also=["count"] if op == "argmax" else [])  # so the argmax of nothing is no error
            bytes_ = a.nbytes + written(problem, count * columns)
            row(f"{type} {op} vectors of {columns}, segments of {each}", bytes_ + offsets.nbytes,
                shaped(problem, t.along(a, 0, t.segments_shape(rows, offsets)), a, count * columns), None)
            row(f"{type} {op} vectors of {columns}, {each} an id", bytes_ + ids.nbytes,
                shaped(problem, t.along(a, 0, t.groups_shape(rows, ids, count)), a, count * columns),
                lambda: np.take(a, order, 0))
