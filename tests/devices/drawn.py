"""The element types that a run of the tests has on each device."""

import ctypes
import os
import random

import data
import tally

# A type is another program of each kernel for PoCL to compile, which takes most of the time of these tests. The model runs the same
# sources for all types; a run has f64 and one of each other kind on OpenCL, and fewer in blocks of 64. Other seeds have others.
DRAW = random.Random(data.SEED)
OPENCL_TYPES = ["f64", DRAW.choice(["f16", "bf16", "f32"]), DRAW.choice(["i8", "i16", "i32", "i64"]), DRAW.choice(["u8", "u16", "u32", "u64"])]
BLOCK_TYPES = [DRAW.choice(["f64", *OPENCL_TYPES[:2]]), DRAW.choice(tally.INTS)]
# Of this type PoCL optimises the programs of blocks of one thread; the others' it compiles in a third of the time. `make check` leaves
# that to `make check-all` (tests/share.py).
OPTIMISED_TYPE = DRAW.choice(OPENCL_TYPES[:3]) if os.environ.get("TALLY_PART") != "first" else None
# The double of CUDA's driver runs the kernels of the model, which has all types; it has one of each kind and size, and others.
DOUBLE_TYPES = ["bf16", "f32", "f64", "i16", "u64", "u8"]


def is_double():
    """Whether the CUDA driver here is the tests' own."""
    try:
        return hasattr(ctypes.CDLL("libcuda.so.1"), "tally_cuda_double_failures")
    except OSError:
        return False


def is_slow(spec):
    """Whether the model computes what is asked of that device: a thousand times as long as a compiled kernel."""
    return spec.startswith("model") or spec.startswith("cuda") and is_double()


def types_on(spec):
    """The types that a run has there."""
    if "block=" in spec:
        return BLOCK_TYPES
    if spec.startswith("opencl"):
        return OPENCL_TYPES
    return DOUBLE_TYPES if spec.startswith("cuda") and is_double() else tally.TYPES
