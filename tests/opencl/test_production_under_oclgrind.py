"""The production kernels in a GPU's shape - blocks of many threads, several blocks - under oclgrind's eyes.

It stops at data races and at accesses outside of buffers; the value must be the CPU's. (It cannot run the
integer product, for want of one instruction.)
"""

import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TALLY = os.environ.get("TALLY", str(ROOT / "build" / "bin" / "tally"))

pytestmark = pytest.mark.skipif(not shutil.which("oclgrind"), reason="oclgrind is not installed")


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=900)


def numbers(dtype, n, spread):
    g = np.random.default_rng(n)
    if dtype in ("f16", "f32", "f64"):
        x = g.standard_normal(n) * np.exp2(g.integers(-spread, spread + 1, n))
        return x.astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])
    if dtype == "bf16":
        return (g.standard_normal(n).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return g.integers(0, 100, n).astype({"i8": np.int8, "u8": np.uint8, "i32": np.int32, "u64": np.uint64}[dtype])


@pytest.mark.parametrize("op,dtype,n,spread", [
    ("sum", "f32", 9001, 0), ("sum", "f32", 5003, 60), ("sum", "f64", 4099, 0), ("sum", "f64", 4099, 400),
    ("sum", "f16", 5000, 4), ("sum", "bf16", 5000, 0), ("sum", "i32", 9001, 0), ("sum", "u8", 20001, 0),
    ("max", "f32", 9001, 0), ("min", "i8", 20001, 0), ("xor", "u64", 5001, 0), ("prod", "f32", 9001, 0),
    ("prod", "f64", 300, 0), ("sum", "f32", 0, 0)])
def test_like_the_cpu(tmp_path, op, dtype, n, spread):
    path = tmp_path / "x.raw"
    numbers(dtype, n, spread).tofile(path)
    command = [TALLY, op, "--dtype", dtype, path, "--device"]
    done = run("oclgrind", "--data-races", "--local-mem-size", str(48 << 10), *command, "opencl:0,block=64")
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert done.stdout == run(*command, "cpu").stdout
