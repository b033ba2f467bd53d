"""A share of the cases of each test, for a run that has no time for all: `ctest` loads this into pytest.

Of a test with four cases or more every TALLY_SHARE-th is run (3), drawn by TALLY_SEED, which else is a fresh one: another
run has others. TALLY_SHARE=1 has all of them, as has pytest by itself. A file that says EVERY_CASE = True has all of its own
in each run: no other case of it would show what one of them does.

`make check` and `make check-all` part the cases: TALLY_PART=first has every FIRST-th case and none with the mark `long`;
TALLY_PART=rest has what the first part of the same seed lacks of the share."""
import os
import random

import pytest

SHARE = int(os.environ.get("TALLY_SHARE", "3"))
PART = os.environ.get("TALLY_PART", "")
FIRST = 12
FEW = 4
if PART not in ("", "first", "rest"):
    raise SystemExit(f"TALLY_PART is first or rest, not {PART}")
if PART == "rest" and not os.environ.get("TALLY_SEED"):
    raise SystemExit("TALLY_PART=rest needs the TALLY_SEED of the first part")
if not os.environ.get("TALLY_SEED"):
    os.environ["TALLY_SEED"] = str(random.randrange(1 << 32))
SEED = os.environ["TALLY_SEED"]
left_out = 0


def count(cases, share):
    """How many of a test's cases a run of one in `share` has."""
    return len(cases) if len(cases) < FEW or getattr(cases[0].module, "EVERY_CASE", False) else -(-len(cases) // share)


def choose(test, cases):
    """The cases of a test that this run has. Those with the mark `long` are never in the first part."""
    order = random.Random(f"{SEED} {test}").sample(cases, len(cases))
    first = [case for case in order[:count(cases, max(SHARE, FIRST))] if not case.get_closest_marker("long")]
    if PART == "first":
        return first
    return [case for case in order[:count(cases, SHARE)] if PART != "rest" or case not in first]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    global left_out
    tests = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen = {id(item) for test, cases in tests.items() for item in choose(test, cases)}
    others = [item for item in items if id(item) not in chosen]
    left_out = len(others)
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if id(item) in chosen]


def pytest_sessionfinish(session, exitstatus):
    """Nothing to run is no failure where the other part has it all."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and PART and left_out:
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"TALLY_SEED={SEED}" + f"; {left_out} cases are left out, TALLY_SHARE=1 has them" * (left_out > 0))
