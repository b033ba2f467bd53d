"""Shared by all tests of the GPU devices: which there are, and the engine's binding and data."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "engine"))

import data  # noqa: E402
import tally  # noqa: E402

# On a CPU behind OpenCL a block is one thread by default; the other sizes are a GPU's shapes.
SPECS = ["opencl:0", "opencl:0,block=64", "cuda:0", "model"]


# Blocks of 64 with a type of each kind and size. (A type is another program to compile; opencl:0 has them all.)
BLOCK_TYPES = ["f16", "f64", "i8", "i64", "u32"]


def pytest_collection_modifyitems(config, items):
    def is_wanted(item):
        of = item.callspec.params if hasattr(item, "callspec") else {}
        return "block=" not in str(of.get("device")) or of.get("type_", "f64") in BLOCK_TYPES
    others = [item for item in items if not is_wanted(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if is_wanted(item)]


def pytest_report_header(config):
    return [f"TALLY_SEED={data.SEED}", f"TALLY_LIB={tally.PATH}"]


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
