"""Vectors by segment and by id on a GPU: the library beside PyTorch and a plain read, by the device's clock.

    python bench/vectors_gpu.py [--rounds ROUNDS] [--brief]

Times are medians of rounds in which calls take turns. GB/s counts the array once. `roof` is the share of the fastest plain
read of as many bytes, `x torch` PyTorch's time over the library's. The bits of some columns, or of all of a small array,
are held against the CPU's; the script ends with 1 where they differ.
"""
import argparse
import ctypes
import os
import statistics
import sys
from ctypes import POINTER, Structure, byref, c_int, c_size_t, c_void_p

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "engine"))
import shapes  # noqa: E402

lib = shapes.lib
TYPES = {"i32": torch.int32, "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32,
         "f64": torch.float64}
RESULT = {2: torch.int16, 4: torch.int32, 8: torch.int64}
SEGMENTS, GROUPS = 2, 3


class Call(Structure):
    _fields_ = [("shape", POINTER(shapes._Shape)), ("x", c_void_p), ("y", c_void_p), ("workspace", c_void_p),
                ("workspace_bytes", c_size_t), ("queue", c_void_p), ("out", POINTER(c_void_p)), ("outcome", c_void_p),
                ("written", c_int)]


def shape_of(x, cut, places, count):
    """Returns segments or groups along axis 0 of an array of two dimensions. The shape keeps the arrays that it points to."""
    length = np.array(x.shape, np.uint64)
    strides = np.array(x.stride() if isinstance(x, torch.Tensor) else [s // x.itemsize for s in x.strides], np.int64)
    at = places.data_ptr() if isinstance(places, torch.Tensor) else places.ctypes.data
    kind = 3 if places.dtype in (torch.int32, np.int32) else 4
    shape = shapes._Shape(cut=cut, dims=2, length=length.ctypes.data, x_stride=strides.ctypes.data, axes=1, count=count)
    if cut == SEGMENTS:
        shape.offsets, shape.offsets_type = at, kind
    else:
        shape.ids, shape.ids_type = at, kind
    shape.keep = length, strides, places
    return shape


class Reduction:
    """A call that enqueues one reduction on PyTorch's stream."""

    def __init__(self, device, op, type_, x, cut, places, count):
        self.device, self.problem = device, shapes.Problem(op, type_).c
        shape, size = shape_of(x, cut, places, count), c_size_t()
        shapes.check(lib.tally_workspace_shaped(device, byref(self.problem), byref(shape), byref(size)))
        self.work = torch.empty(size.value, dtype=torch.uint8, device="cuda")
        element = 8 if op == "argmax" else x.element_size()
        self.out = torch.empty(count, x.shape[1], dtype=RESULT[element], device="cuda")
        pointers = (c_void_p * 1)(self.out.data_ptr())
        self.call = Call(shape=ctypes.pointer(shape), x=x.data_ptr(), workspace=self.work.data_ptr(), workspace_bytes=size.value,
                         queue=torch.cuda.current_stream().cuda_stream, out=pointers)
        self.keep = shape, pointers, x

    def __call__(self):
        shapes.check(lib.tally_enqueue_shaped(self.device, byref(self.problem), byref(self.call)))


def is_right(reduction, op, type_, x, cut, places, count, columns):
    """Returns whether some columns have the CPU's bits."""
    part = x[:, columns].contiguous()
    bits = part.view(RESULT[part.element_size()]).cpu().numpy()
    cut_at = places.cpu().numpy()
    got = reduction.out[:, columns].cpu().numpy()
    want = np.empty_like(got)
    shape = shape_of(bits, cut, cut_at, count)
    pointers = (c_void_p * 1)(want.ctypes.data)
    shapes.check(lib.tally_reduce_shaped(None, byref(shapes.Problem(op, type_).c), byref(shape), c_void_p(bits.ctypes.data),
                                  None, pointers))
    return np.array_equal(got, want)


def seconds(call, most=0.01):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    count = max(1, min(20, int(most / (1e-3 * start.elapsed_time(end) + 1e-6))))
    start.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return 1e-3 * start.elapsed_time(end) / count


def turns(calls, rounds):
    seen = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            if not seen[name] or statistics.median(seen[name]) < 0.05:
                seen[name].append(seconds(call))
    return {name: statistics.median(s) for name, s in seen.items()}


def rivals(op, x, ids, lengths, count):
    """Returns PyTorch's call for the same results; None if it has none."""
    if lengths is not None:
        how = {"sum": "sum", "mean": "mean", "max": "max"}.get(op)
        if how is None or x.dtype == torch.int64:
            return None
        return lambda: torch.segment_reduce(x, how, lengths=lengths, axis=0, unsafe=True)
    out = torch.zeros(count, x.shape[1], dtype=x.dtype, device="cuda")
    if op == "max":
        return lambda: out.index_reduce_(0, ids, x, "amax", include_self=False)
    return lambda: out.index_add_(0, ids, x)


def ids_of(kind, n, count, rng):
    if kind == "zipf":
        ids = np.minimum(rng.zipf(1.3, n) - 1, count - 1)
    elif kind == "giant":
        ids = np.where(rng.random(n) < 0.9, 0, rng.integers(0, count, n))
    else:
        ids = rng.integers(0, count, n)
    ids[:count] = np.arange(count)  # none is empty
    rng.shuffle(ids)
    return torch.from_numpy(ids).cuda()


def offsets_of(kind, n, count, rng):
    """Offsets of segments that are not empty."""
    if kind == "zipf":
        weights = 1 / (1 + np.arange(count)) ** 1.1
        rng.shuffle(weights)
        cuts = np.r_[0, np.round(np.cumsum(weights) / weights.sum() * (n - count))]
    elif kind == "giant":
        cuts = np.r_[0, np.sort(rng.integers(0, n // 10, count - 1)), n - count]
    else:
        cuts = np.r_[0, np.sort(rng.integers(0, n - count, count - 1)), n - count]
    return torch.from_numpy(cuts.astype(np.int64) + np.arange(count + 1)).cuda()


# op, type, by, kind, rows, columns, parts
CASES = [
    ("sum", "f32", SEGMENTS, "random", 10**6, 64, 10**4), ("sum", "f32", SEGMENTS, "random", 10**6, 32, 10**4),
    ("sum", "f32", SEGMENTS, "random", 10**6, 64, 10**5), ("sum", "f32", SEGMENTS, "zipf", 10**6, 64, 10**4),
    ("sum", "f32", SEGMENTS, "giant", 10**6, 64, 10**4), ("sum", "f32", SEGMENTS, "random", 10**6, 64, 100),
    ("sum", "bf16", SEGMENTS, "random", 10**6, 128, 10**4), ("sum", "f64", SEGMENTS, "random", 10**6, 64, 10**4),
    ("sum", "f32", SEGMENTS, "random", 2 * 10**5, 512, 5 * 10**4), ("sum", "f32", SEGMENTS, "random", 10**7, 3, 10**5),
    ("mean", "f32", SEGMENTS, "random", 10**6, 64, 10**4), ("max", "f32", SEGMENTS, "random", 10**6, 64, 10**4),
    ("var", "f32", SEGMENTS, "random", 10**6, 64, 10**4), ("argmax", "f32", SEGMENTS, "random", 10**6, 64, 10**4),
    ("sum", "f32", GROUPS, "random", 10**6, 64, 10**4), ("sum", "f32", GROUPS, "zipf", 10**6, 64, 10**4),
    ("sum", "f32", GROUPS, "giant", 10**6, 64, 10**4), ("sum", "f32", GROUPS, "random", 10**6, 64, 100),
    ("sum", "f32", GROUPS, "random", 2 * 10**5, 512, 5 * 10**4), ("sum", "f32", GROUPS, "random", 4 * 10**6, 128, 2 * 10**5),
    ("sum", "bf16", GROUPS, "random", 10**6, 128, 10**4), ("sum", "f64", GROUPS, "random", 10**6, 64, 10**4),
    ("mean", "f32", GROUPS, "random", 10**6, 64, 10**4), ("max", "f32", GROUPS, "random", 10**6, 64, 10**4),
    ("var", "f32", GROUPS, "random", 10**6, 64, 10**4), ("argmax", "f32", GROUPS, "random", 10**6, 64, 10**4),
]


def case_of(device, op, type_, cut, kind, n, columns, count):
    """Returns the array, its offsets or ids, and the library's call."""
    rng = np.random.default_rng(1)
    x = torch.randn(n, columns, device="cuda").to(TYPES[type_])
    places = (offsets_of if cut == SEGMENTS else ids_of)(kind, n, count, rng)
    return x, places, Reduction(device, op, type_, x, cut, places, count)


def profile(device, *case):
    ours = case_of(device, *case)[2]
    for _ in range(3):
        ours()
    torch.cuda.synchronize()
    return 0


def measure(device, options, op, type_, cut, kind, n, columns, count):
    """Prints a line of the table; returns whether the bits are the CPU's."""
    x, places, ours = case_of(device, op, type_, cut, kind, n, columns, count)
    ids, lengths = (places, None) if cut == GROUPS else (None, places[1:] - places[:-1])
    calls = {"tally": ours, "read": lambda: torch.sum(x.view(torch.int32), dtype=torch.int32)}
    theirs = rivals(op, x, ids, lengths, count)
    if theirs is not None and not (options.brief and (kind != "random" or op == "max")):
        calls["torch"] = theirs
    times = turns(calls, options.rounds)
    right = is_right(ours, op, type_, x, cut, places, count, [0, columns // 2, columns - 1])
    us, them, size = 1e6 * times["tally"], times.get("torch"), x.numel() * x.element_size()
    what = f"{op:7}{type_:5}{'segments' if cut == SEGMENTS else 'ids':9}{kind:7}{n:>9}x{columns:<4}{count:>7}"
    print(f"{what:50}{us:9.1f}" + (f"{1e6 * them:10.1f}" if them else f"{'-':>10}") +
          f"{size / us / 1e3:8.0f}{1e6 * times['read'] / us:6.2f}" + (f"{1e6 * them / us:9.2f}" if them else f"{'-':>9}") +
          ("" if right else "   WRONG BITS"), flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--brief", action="store_true", help="without the rivals that take longest")
    parser.add_argument("--only", type=int, help="one case, once, for a profiler")
    options = parser.parse_args()
    device, wrong = shapes.open_device("cuda:0"), 0
    print(torch.cuda.get_device_name(0), torch.__version__)
    print(f"{'':50}{'us':>9}{'torch us':>10}{'GB/s':>8}{'roof':>6}{'x torch':>9}", flush=True)
    if options.only is not None:
        return profile(device, *CASES[options.only])
    for case in CASES:
        wrong += not measure(device, options, *case)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
