"""Shared by all tests of the GPU devices: which there are, and the engine's binding and data."""

import ctypes
import os
import random
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "engine"))

import data  # noqa: E402
import tally  # noqa: E402

# On a CPU behind OpenCL a block is one thread by default; the other sizes are a GPU's shapes.
SPECS = ["opencl:0", "opencl:0,block=64", "cuda:0", "model"]

# A type is another program of each kernel for PoCL to compile, which takes most of the time of these tests. The model runs the same
# sources for all types; a run has f32, f64 and one of each other kind on OpenCL, and fewer in blocks of 64. Other seeds have others.
DRAW = random.Random(data.SEED)
OPENCL_TYPES = ["f32", "f64", DRAW.choice(["f16", "bf16"]), DRAW.choice(["i8", "i16", "i32", "i64"]), DRAW.choice(["u8", "u16", "u32", "u64"])]
BLOCK_TYPES = ["f64", DRAW.choice(["f16", "bf16", "f32"]), DRAW.choice(tally.INTS)]
# Of this type PoCL optimises the programs of blocks of one thread; the others' it compiles in a third of the time.
OPTIMISED_TYPE = DRAW.choice(["f32", "f64", OPENCL_TYPES[3]])
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


def place_and_type(item):
    """Where a test runs, and the type that it is for, or None."""
    of = item.callspec.params if hasattr(item, "callspec") else {}
    return str(of.get("device", of.get("place", of.get("machine")))), of.get("type_", of.get("type"))


@pytest.fixture(autouse=True)
def compiled_soon(request, monkeypatch):
    """Compiling takes most of the time of these tests: what PoCL need not optimise, it does not."""
    where, type_ = place_and_type(request.node)
    if "block" in where or type_ != OPTIMISED_TYPE:
        monkeypatch.setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable")


def types_on(spec):
    """The types that a run has there."""
    if "block=" in spec:
        return BLOCK_TYPES
    if spec.startswith("opencl"):
        return OPENCL_TYPES
    return DOUBLE_TYPES if spec.startswith("cuda") and is_double() else tally.TYPES


def pytest_collection_modifyitems(config, items):
    def is_wanted(item):
        where, type_ = place_and_type(item)
        return type_ is None or type_ in types_on(where)
    others = [item for item in items if not is_wanted(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if is_wanted(item)]


def pytest_terminal_summary(terminalreporter):
    """(A header would not be shown with -q.)"""
    terminalreporter.write_line(f"TALLY_SEED={data.SEED} TALLY_LIB={tally.PATH}; types on OpenCL: {' '.join(OPENCL_TYPES)}, "
                                f"in blocks {' '.join(BLOCK_TYPES)}; optimised: {OPTIMISED_TYPE}")


def open_device(spec):
    try:
        return tally.Device(spec)
    except LookupError as e:
        assert "EDEVICE" in str(e), f"{spec}: {e}"
        pytest.skip(str(e))


@pytest.fixture(scope="session", params=SPECS)
def device(request):
    opened = open_device(request.param)
    yield opened
    opened.close()
