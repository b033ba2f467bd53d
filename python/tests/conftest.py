"""What the tests of the package share: random arrays from a printed seed, and answers by fractions."""

import os
import random
import zlib

import pytest
from hypothesis import HealthCheck, settings

# (Set before they begin, those who share the tests out have the same.)
SEED = int(os.environ.setdefault("TALLY_SEED", str(random.SystemRandom().randrange(2**32))))
settings.register_profile("tally", deadline=None, max_examples=int(os.environ.get("TALLY_EXAMPLES", 60)),
                          suppress_health_check=list(HealthCheck), derandomize=False, print_blob=True)
settings.load_profile("tally")


def pytest_terminal_summary(terminalreporter):
    if not terminalreporter.config.pluginmanager.has_plugin("share"):  # which says it itself
        terminalreporter.write_line(f"TALLY_SEED={SEED}")


@pytest.fixture
def rng(request):
    import numpy
    return numpy.random.default_rng([SEED, zlib.crc32(request.node.name.encode())])
