"""How long the first call of an operator, a type and a shape takes: each in a process of its own.

    python3 bench/first_call.py [--device cuda:0] [--jobs 1] [--only TEXT] [--usual | --rest] [--rows 1000]

A line for each call, in milliseconds: `up`, until CUDA has a context and memory there; `first` and `second`, the
first call and the second one, where nothing is on disk; `next`, the first call of the next process; `programs`, how many the
first one has compiled. `usual` calls are those whose programs the library should hold. Fails if a result has other bits than
the CPU's. The driver's own cache is off.
"""
import argparse
import concurrent.futures
import ctypes
import hashlib
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "engine"))

COLUMNS = 4096
USUAL = [f"{op} {type} {shape}" for shape in ("whole", "rows", "columns", "short") for type in ("f32", "bf16", "f64", "i32")
         for op in ("sum", "mean", "max", "argmax", "var", "norm2")]
REST = [f"{op} {type} {shape}" for type, shapes in {
    "f32": ("apart", "masked", "middle", "segments", "groups", "sorted"), "f16": ("rows", "columns"), "i64": ("rows",)
}.items() for shape in shapes for op in ("sum", "var", "max")] + [
    "prod f32 whole", "describe f32 rows", "minmax f32 columns", "describe bf16 whole", "std u8 rows", "norm1 f64 rows", "dot f64 whole",
    "mean f64 apart", "var f64 masked", "argmin f16 apart", "sum bf16 apart", "argmax f32 groups"]


def cuda_up():
    """Makes the device's primary context and takes some memory there."""
    cuda, context, place = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
    for status in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxPushCurrent_v2(context),
                   cuda.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(4096)), cuda.cuCtxSynchronize()):
        if status:
            sys.exit(f"first_call: CUDA fails with error {status}")


def call_for(name, rows):
    """The call of a name such as "sum f32 rows": a function of a device that returns the results' bytes."""
    import shapes as t
    op, type_, shape = name.split()
    ops = {"minmax": ("min", ["max"]), "describe": ("count", ["min", "max", "argmin", "argmax", "sum", "mean", "std"])}
    op, also = ops.get(op, (op, []))
    rng = np.random.default_rng(1)
    bits = rng.integers(0x3c00, 0x4400, rows * COLUMNS, dtype=np.uint64)  # of f16 and bf16; the upper bits of wider floats
    numbers = {2: lambda: bits.astype(np.uint16), 4: lambda: (bits << np.uint64(16)).astype(np.uint32),
               8: lambda: (bits << np.uint64(48)) | rng.integers(0, 1 << 48, bits.size, dtype=np.uint64)}
    x = (numbers[t.SIZE[type_]]().view(t.DTYPE[type_]) if type_[0] in "fb" else
         rng.integers(0, 100, bits.size).astype(t.DTYPE[type_]))
    problem = t.Problem(op, type_, also=also)
    y = x[::-1].copy() if problem.two() else None
    if shape == "whole":
        return lambda device: repr(t.reduce(problem, x, y, device)).encode()
    if shape == "segments":
        offsets = np.sort(rng.integers(0, x.size, rows * 20 + 1)).astype(np.int64)
        offsets[0], offsets[-1] = 0, x.size
        return lambda device: b"".join(o.tobytes() for o in t.reduce_segments(problem, x, offsets, device=device))
    if shape in ("groups", "sorted"):
        ids = rng.integers(0, 1000, x.size).astype(np.int32)
        ids = np.sort(ids) if shape == "sorted" else ids
        return lambda device: b"".join(o.tobytes() for o in t.reduce_groups(problem, x, ids, 1000, device=device,
                                                                            is_sorted=shape == "sorted"))
    mask = None
    if shape == "short":
        x, axis = x.reshape(-1, 8), 1
    elif shape == "middle":
        x, axis = x.reshape(20, -1, 64), 1
    else:
        x, axis = x.reshape(rows, COLUMNS), 0 if shape == "columns" else 1
    if shape == "apart":
        x = x[:, :4000]
    if shape == "masked":
        mask = np.ascontiguousarray(rng.integers(0, 2, x.shape, dtype=np.uint8))
    return lambda device: b"".join(o.tobytes() for o in t.reduce_axes(problem, x, [axis], mask=mask, device=device))


def child(name, spec, rows):
    """Prints the times of one process, in seconds, and a hash of the results; "-" if the CPU has others."""
    import shapes as t
    call = call_for(name, rows)
    begin = time.perf_counter()
    if spec.startswith("cuda"):
        cuda_up()
    up = time.perf_counter()
    device = t.open_device(spec)
    results = call(device)
    first = time.perf_counter()
    call(device)
    second = time.perf_counter()
    same = results == call(None)
    print(up - begin, first - up, second - first, hashlib.sha256(results).hexdigest()[:8] if same else "-")


def measured(name, spec, rows):
    """Runs a call in two processes. Returns its name, (up, first, second, next, programs), and whether the bits are the CPU's."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, TALLY_CACHE_DIR=folder, CUDA_CACHE_DISABLE="1", OMP_NUM_THREADS="1")
        environment.pop("TALLY_CACHE", None)
        words = []
        for _ in range(2):
            run = subprocess.run([sys.executable, __file__, "--device", spec, "--case", name, "--rows", str(rows)], capture_output=True, text=True,
                                 env=environment, check=False)
            if run.returncode:
                return name, None, run.stderr.strip().splitlines()[-1:] or ["it failed"]
            words.append(run.stdout.split())
            programs = len(os.listdir(folder)) if len(words) == 1 else programs
        times = [1000 * float(w) for w in words[0][:3]] + [1000 * float(words[1][1])]
        return name, times + [programs], words[0][3] != "-" and words[0][3] == words[1][3]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda:0")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--rows", type=int, default=1000, help="of 4096 elements")
    options.add_argument("--only", default="")
    options.add_argument("--usual", action="store_true")
    options.add_argument("--rest", action="store_true")
    options.add_argument("--case", help=argparse.SUPPRESS)
    options = options.parse_args()
    if options.case:
        return child(options.case, options.device, options.rows)
    failed = False
    for title, names in (("usual", USUAL), ("rest", REST)):
        if (options.usual or options.rest) and not getattr(options, title):
            continue
        names = [n for n in names if options.only in n]
        print(f"{title:24s} {'up':>7s} {'first':>8s} {'second':>7s} {'next':>7s} programs")
        worst = [0.0] * 4
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for name, times, same in pool.map(lambda n: measured(n, options.device, options.rows), names):
                if times is None:
                    print(f"{name:24s} failed: {same[0]}", flush=True)
                else:
                    print("%-24s %7.1f %8.1f %7.2f %7.1f %4d" % (name, *times), "" if same else "OTHER BITS", flush=True)
                    worst = [max(a, b) for a, b in zip(worst, times)]
                failed = failed or times is None or not same
        print("%-24s %7.1f %8.1f %7.2f %7.1f" % ("the worst", *worst), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
