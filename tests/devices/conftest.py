"""Shared by all tests of the GPU devices: which there are, and the engine's binding and data."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "engine"))

import data  # noqa: E402
import tally  # noqa: E402
from drawn import BLOCK_TYPES, OPENCL_TYPES, OPTIMISED_TYPE, types_on  # noqa: E402

# On a CPU behind OpenCL a block is one thread by default; the other sizes are a GPU's shapes.
SPECS = ["opencl:0", "opencl:0,block=64", "cuda:0", "model"]


def place_and_type(item):
    """Where a test runs, and the type that it is for, or None."""
    of = item.callspec.params if hasattr(item, "callspec") else {}
    return str(of.get("device", of.get("place", of.get("machine")))), of.get("type_", of.get("type"))


@pytest.fixture(autouse=True)
def compiled_soon(request, monkeypatch):
    """Compiling takes most of the time of these tests: what PoCL need not optimise, it does not."""
    where, type_ = place_and_type(request.node)
    if "block" in where or type_ is None or type_ != OPTIMISED_TYPE:
        monkeypatch.setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable")


def pytest_collection_modifyitems(config, items):
    def is_wanted(item):
        where, type_ = place_and_type(item)
        return type_ is None or type_ in types_on(where)
    others = [item for item in items if not is_wanted(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if is_wanted(item)]
    for item in items:  # PoCL takes most of a minute to compile kernels of 64 threads for a type
        if "block=" in item.nodeid:
            item.add_marker(pytest.mark.long)


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
