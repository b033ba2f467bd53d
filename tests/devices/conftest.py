"""Shared by all tests of the GPU devices: which there are, and the engine's binding and data."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "engine"))

import data  # noqa: E402
import tally  # noqa: E402

# On a CPU behind OpenCL a block is one thread by default; the other sizes are a GPU's shapes.
SPECS = ["opencl:0", "opencl:0,block=64", "cuda:0", "model"]


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
