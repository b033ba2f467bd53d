"""A share of the cases of each test, for a run that has no time for all: `ctest` loads this into pytest.

Of a test with four cases or more every TALLY_SHARE-th is run (3), drawn by TALLY_SEED, which else is a fresh one: another
run has others. TALLY_SHARE=1 has all of them, as has pytest by itself. A file that says EVERY_CASE = True has all of its own
in each run: no other case of it would show what one of them does."""
import os
import random

import pytest

SHARE = int(os.environ.get("TALLY_SHARE", "3"))
FEW = 4
if not os.environ.get("TALLY_SEED"):
    os.environ["TALLY_SEED"] = str(random.randrange(1 << 32))
SEED = os.environ["TALLY_SEED"]
left_out = 0


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    global left_out
    cases = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen = set()
    for test, its in cases.items():
        count = len(its) if len(its) < FEW or getattr(its[0].module, "EVERY_CASE", False) else -(-len(its) // SHARE)
        chosen.update(id(item) for item in random.Random(f"{SEED} {test}").sample(its, count))
    others = [item for item in items if id(item) not in chosen]
    left_out = len(others)
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if id(item) in chosen]


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"TALLY_SEED={SEED}" + f"; {left_out} cases are left out, TALLY_SHARE=1 has them" * (left_out > 0))
