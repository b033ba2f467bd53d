"""What the tests of the package share: random arrays from a printed seed, and answers by fractions."""

import os
import random

import pytest
from hypothesis import HealthCheck, settings

SEED = int(os.environ.get("TALLY_SEED", random.SystemRandom().randrange(2**32)))
settings.register_profile("tally", deadline=None, max_examples=int(os.environ.get("TALLY_EXAMPLES", 60)),
                          suppress_health_check=list(HealthCheck), derandomize=False, print_blob=True)
settings.load_profile("tally")


def pytest_report_header():
    return f"TALLY_SEED={SEED}"


@pytest.fixture
def rng(request):
    import numpy
    return numpy.random.default_rng([SEED, hash(request.node.name) & 0xffff])
