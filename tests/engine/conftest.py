"""Shared by all engine tests: the seed in the header, and the devices that are worth telling apart."""

import faulthandler
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
faulthandler.enable()

import data  # noqa: E402
import tally  # noqa: E402

THREADS = [1, 2, 3, 8]


def pytest_report_header(config):
    return [f"TALLY_SEED={data.SEED}", f"TALLY_LIB={tally.PATH}"]


def _isas():
    here = []
    for isa in ("baseline", "avx2", "avx512", "neon"):
        try:
            tally.Device(f"cpu:threads=1,isa={isa}").close()
            here.append(isa)
        except LookupError as e:
            assert "EDEVICE" in str(e), f"isa={isa}: {e}"
    assert here, "no instruction set can be opened"
    return here


@pytest.fixture(scope="session")
def isas():
    return _isas()


@pytest.fixture(scope="session")
def devices(isas):
    """No device, the defaults, and every instruction set with every thread count."""
    specs = [None, "auto", "cpu"]
    specs += [f"cpu:threads={t},isa={i}" for i in isas for t in THREADS]
    opened = [tally.Device(s) for s in specs]
    yield opened
    for device in opened:
        device.close()


@pytest.fixture(scope="session")
def few_devices(devices, isas):
    """One per instruction set, with differing thread counts, and none."""
    by_spec = {d.spec: d for d in devices}
    return [by_spec[None]] + [by_spec[f"cpu:threads={[3, 2, 8, 1][k % 4]},isa={i}"]
                              for k, i in enumerate(isas)]
