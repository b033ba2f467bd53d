"""Prints the tables of `make bench`: Tally beside its peers and beside the memory's speed.

    bench/compare.py BUILD [--n 2^27] [--rounds R] [--quick] [--only TABLE] [--peer NAME=LIBRARY:FUNCTION ...]

Tables, each measured in interleaved runs on this machine, medians throughout:
  1. exact sums on data from tame to wild, on all cores and on one, against the OpenMP SIMD loop;
  2. the other operators and types against the same loop;
  3. exact sums against other libraries in this process: NumPy, math.fsum, and any --peer, a shared library
     that exports `double FUNCTION(const double *, size_t)`;
  4. files of text, comma-separated values and .npy against other programs (files.py);
and small arrays, by bench_small.
"""
import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import time

import numpy as np

import files

parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--n", default="2^27")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--only", choices=["exact", "operators", "libraries", "files"], help="one of the tables")
parser.add_argument("--quick", action="store_true", help="a smaller n and fewer rows")
parser.add_argument("--peer", action="append", default=[], metavar="NAME=LIBRARY:FUNCTION")
args = parser.parse_args()
if args.quick:
    args.n, args.rounds = "2^24", 5

ALL = os.cpu_count() if not hasattr(os, "sched_getaffinity") else len(os.sched_getaffinity(0))


def bench(op, dtype, threads, *more):
    command = [os.path.join(args.build, "bin", "tally"), "bench", op, "--dtype", dtype, "-n", args.n,
               "--threads", str(threads), "--repeat", str(args.rounds), "--json", *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def row(label, r):
    print(f"{label:34}{r['gbps']:8.1f}{r['openmp_gbps']:8.1f}{r['roof_gbps']:8.1f}{r['sequential_gbps']:8.1f}"
          f"{r['gbps'] / r['openmp_gbps']:9.2f}{r['of_roof']:9.2f}", flush=True)


def header(title):
    print(f"\n{title}\n{'':34}{'GB/s':>8}{'OpenMP':>8}{'roof':>8}{'loop':>8}{'/OpenMP':>9}{'/roof':>9}")


def exact_sums():
    header(f"Exact sums, n = {args.n}")
    for threads in sorted({ALL, 1}, reverse=True):
        for dtype in ("f64", "f32"):
            for data in ("uniform", "normal", "loguniform", "wild"):
                row(f"sum {dtype} {data}, {threads} threads", bench("sum", dtype, threads, "--data", data))


INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]


def other_operators():
    header(f"Other operators, n = {args.n}, {ALL} threads")
    for dtype in FLOATS:
        row(f"sum {dtype} --fast", bench("sum", dtype, ALL, "--fast"))
    for op, types in (("sum", INTEGERS), ("min", INTEGERS + FLOATS), ("max", INTEGERS + FLOATS), ("and", INTEGERS),
                      ("or", INTEGERS), ("xor", INTEGERS), ("prod", ["i64", "f32", "f64"])):
        for dtype in (types if not args.quick else types[::3]):
            row(f"{op} {dtype}", bench(op, dtype, ALL))


class Value(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("f64", ctypes.c_double)]


class Problem(ctypes.Structure):
    _fields_ = [("op", ctypes.c_int), ("type", ctypes.c_int), ("out", ctypes.c_int), ("fast", ctypes.c_int),
                ("ddof", ctypes.c_double), ("user", ctypes.c_void_p), ("also", ctypes.c_int * 8)]


SUM_OF_F64 = Problem(op=1, type=12)
lib = ctypes.CDLL(os.path.join(args.build, "lib", "libtally.so"))


def ours(spec):
    device = ctypes.c_void_p()
    assert lib.tally_open(spec, ctypes.byref(device)) == 0
    value = Value()

    def call(x):
        assert lib.tally_reduce(device, ctypes.byref(SUM_OF_F64), ctypes.c_void_p(x.ctypes.data), None,
                                ctypes.c_size_t(x.size), ctypes.byref(value)) == 0
        return value.f64

    return call


def peer(text):
    name, _, rest = text.partition("=")
    path, _, function = rest.rpartition(":")
    f = getattr(ctypes.CDLL(path), function)
    f.restype = ctypes.c_double
    return name, lambda x: f(ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(x.size))


def libraries():
    print(f"\nExact f64 sum against other libraries, n = {args.n}, normal data, interleaved in one process")
    base, _, power = args.n.partition("^")
    n = int(base) ** int(power) if power else int(float(args.n))
    x = np.random.default_rng(1).standard_normal(n)
    contestants = {f"tally, {ALL} threads": ours(b"cpu"), "tally, 1 thread": ours(b"cpu:threads=1"),
                   "numpy sum (not exact)": lambda a: float(a.sum())}
    contestants.update(peer(p) for p in args.peer)
    times, answers = {name: [] for name in contestants}, {}
    for _ in range(args.rounds):
        for name, f in contestants.items():
            before = time.perf_counter()
            answers[name] = f(x)
            times[name].append(time.perf_counter() - before)
    part = x[: 2**22]  # fsum takes half a minute for all
    values = part.tolist()
    before = time.perf_counter()
    answers["math.fsum (2^22)"] = math.fsum(values)
    times["math.fsum (2^22)"] = [(time.perf_counter() - before) * n / len(part)]
    truth = answers["tally, 1 thread"]
    ours_all = statistics.median(times[f"tally, {ALL} threads"])
    ours_one = statistics.median(times["tally, 1 thread"])
    print(f"{'':34}{'GB/s':>8}{'ours all':>10}{'ours one':>10}  answer - exact")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        error = "" if "fsum" in name else f"{answers[name] - truth:.3g}"
        print(f"{name:34}{8e-9 * n / median:8.2f}{median / ours_all:10.2f}{median / ours_one:10.2f}  {error}")


def short_arrays():
    print("\nOne call on a short array in cache")
    print(subprocess.run([os.path.join(args.build, "bin", "bench_small")], check=True, capture_output=True, text=True).stdout)


if args.only in (None, "exact"):
    exact_sums()
if args.only in (None, "operators"):
    other_operators()
if args.only in (None, "libraries"):
    libraries()
    short_arrays()
if args.only in (None, "files"):
    files.tables(args.build, min(args.rounds, 5), 20 if args.quick else 200)
