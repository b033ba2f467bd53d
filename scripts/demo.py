"""What `make demo` shows: a sizeable file, the textbook loop's answer, and Tally's.

    scripts/demo.py BUILD

Everything printed is measured or computed here and now. The exact sum comes from integer arithmetic that
has nothing to do with Tally: the floats written are multiples of 2^-24, so their sum is one of integers.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

build = sys.argv[1]
tally = os.path.join(build, "bin", "tally")
N = 2**27


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def reduce(path, *options):
    return json.loads(run(tally, "sum", path, "--json", *options))


def write(path):
    """N random floats in [0, 1), and their exact sum in units of 2^-24."""
    rng = np.random.default_rng(20)
    units = 0
    with open(path, "wb") as f:
        header = {"descr": "<f4", "fortran_order": False, "shape": (N,)}
        np.lib.format.write_array_header_1_0(f, header)
        for _ in range(N // 2**22):
            k = rng.integers(0, 2**24, 2**22, dtype=np.int32)
            units += int(k.sum(dtype=np.int64))
            f.write((k * np.float32(2.0**-24)).astype("<f4").tobytes())
    return units


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/tmp")) as folder:
        path = os.path.join(folder, "floats.npy")
        units = write(path)
        exact = float(np.float32(units / 2**24))  # a quotient of exact integers, rounded once each
        print(f"{path}: {N} random float32 in [0, 1), {os.path.getsize(path) / 1e9:.2f} GB\n")

        loop, seconds = (float(v) for v in run(os.path.join(build, "bin", "example_textbook_loop"), path).split())
        x = np.load(path, mmap_mode="r")
        print(f"{'':34}{'answer':>14}{'off by':>12}{'GB/s':>8}  bits")
        print(f"{'textbook loop, float':34}{loop:14.0f}{loop - exact:12.0f}{4e-9 * N / seconds:8.1f}")
        columns = np.asarray(x).reshape(-1, 2).sum(axis=0)  # of an array of two columns
        fold = float(columns[0]) + float(columns[1])
        print(f"{'NumPy float32 sum(axis=0), 2 columns':36}{fold:12.0f}{fold - exact:12.0f}")
        print(f"{'exact, by integer arithmetic':34}{exact:14.0f}{0:12.0f}")

        here = {d["spec"]: d for d in json.loads(run(tally, "devices", "--json"))}["cpu"]
        isas = {"avx512": ["baseline", "avx2", "avx512"], "avx2": ["baseline", "avx2"]}
        bits = set()
        for isa in isas.get(here["isa"], [here["isa"]]):
            for threads in (1, 2, 7):
                r = reduce(path, "--device", f"cpu:threads={threads},isa={isa}")
                bits.add(r["bits"])
                what = f"tally sum, {threads} threads, {isa}"
                print(f"{what:34}{r['value']:14.0f}{r['value'] - exact:12.0f}{r['gbps']:8.1f}  {r['bits']}")
        same = "the same bits every time" if len(bits) == 1 else "DIFFERENT BITS"
        right = "and the right ones" if all(np.uint32(int(b, 16)).view(np.float32) == exact for b in bits) else "AND WRONG"
        print(f"\nTally: {same}, {right}.")
        print(f"Now in memory, {N} float32 (tally bench: ours, the textbook loop, OpenMP SIMD, the memory's roof):\n")
        print(run(tally, "bench", "sum", "--dtype", "f32", "-n", "2^27"))
        if "ladder" in run(tally, "help"):
            print("The classic GPU kernels, on whatever OpenCL runs on here:\n", flush=True)
            subprocess.run([tally, "ladder", "--device", "opencl", "-n", "2^22"])
            print("\nAnd counted by the model:\n", flush=True)
            subprocess.run([tally, "ladder", "--device", "model", "-n", "2^16"], check=True)
        return 0 if len(bits) == 1 and right.startswith("and") else 1


sys.exit(main())
