"""Every rung, finish, operator and type on whatever OpenCL is here, and under oclgrind's eyes.

The command checks each result against the exact answer, which the engine's own tests hold against outside
oracles; here it must call every one of them correct. TALLY names the binary.
"""

import json
import os
import pathlib
import random
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TALLY = os.environ.get("TALLY", str(ROOT / "build" / "bin" / "tally"))
TYPES = "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64".split()
OPS = "sum prod min max and or xor".split()
FINISHES = ["relaunch", "atomic", "host"]
SEED = int(os.environ.get("TALLY_SEED") or int.from_bytes(os.urandom(4), "little"))  # with what fails


def ladder(*options, before=(), **environment):
    command = [*before, TALLY, "ladder", "--device", "opencl", "--json", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, env={**os.environ, **environment})


# PoCL compiles in half the time what it need not optimise; test_a_million has its programs optimised.
QUICK = {"POCL_EXTRA_BUILD_FLAGS": "-cl-opt-disable"}


def has_opencl():
    return ladder("-n", 1, "--only", "shared").returncode == 0


pytestmark = pytest.mark.skipif(not has_opencl(), reason="no OpenCL device is here")


def check(done):
    assert done.returncode == 0, (done.stderr, SEED)
    rows = json.loads(done.stdout)["kernels"]
    assert len(rows) == 14  # the loop, twelve kernels, the production reduction
    assert all(k["correct"] for k in rows), ([k["name"] for k in rows if not k["correct"]], SEED)
    return rows


# A pair is twelve programs to compile: each operator has one of these types, others for other seeds. (The model has each with
# each, and test_lengths has sums of f32, i64 and u8.) Each pair has one of the finishes, each length one of them and of the types.
CHOSEN = {"sum": "f16 bf16 f64", "prod": "f32 u64", "min": "i8 f64", "max": "bf16 i32", "and": "u16 i64", "or": "u64", "xor": "u32 i16"}
assert set(CHOSEN) == set(OPS)
DRAW = random.Random(SEED)
PAIRS = [(op, DRAW.choice(dtypes.split())) for op, dtypes in CHOSEN.items()]


@pytest.mark.parametrize("op,dtype", PAIRS)
def test_every_operator_and_type(op, dtype):
    finish = FINISHES[(OPS.index(op) + TYPES.index(dtype)) % 3]
    check(ladder("-n", 4099, "--op", op, "--dtype", dtype, "--finish", finish, "--block", 64, **QUICK))


@pytest.mark.parametrize("n", [0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1023, 1025])
def test_lengths(n):
    check(ladder("-n", n, "--dtype", DRAW.choice(("f32", "i64", "u8")), "--finish", DRAW.choice(FINISHES), "--block", 64, **QUICK))


@pytest.mark.long
@pytest.mark.parametrize("dtype,finish", [DRAW.choice([("f32", "atomic"), ("f64", "relaunch"), ("u8", "host")])])
def test_a_million(dtype, finish):
    rows = check(ladder("-n", 1_000_017, "--dtype", dtype, "--finish", finish))
    assert rows[-1]["name"] == "tally" and rows[-1]["ulp_error"] == 0


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("oclgrind"), reason="oclgrind is not installed")
@pytest.mark.parametrize("op,dtype,finish", [("sum", "f32", DRAW.choice(FINISHES)),
                                             DRAW.choice([("sum", "f64", "relaunch"), ("min", "i8", "atomic"), ("xor", "u64", "host")])])
def test_no_races(op, dtype, finish):
    done = ladder("-n", 700, "--op", op, "--dtype", dtype, "--finish", finish, "--block", 64, before=["oclgrind", "--data-races"])
    check(done)
    assert not done.stderr, done.stderr
