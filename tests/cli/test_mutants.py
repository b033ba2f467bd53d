"""Every mutant of a rung or a lesson - a barrier or a fence less, a bound less or wider, an index shifted - is called wrong, or is
harmless for a reason that stands in mutants.py. A run has every TALLY_SHARE-th of them, as share.py has of other tests."""

import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import tempfile
from collections import Counter

import pytest

import mutants
from conftest import BINARY

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="a kernel of one's own needs g++")
SHARE = int(os.environ.get("TALLY_SHARE", "3"))
SEED = os.environ.get("TALLY_SEED", "1")


def judge(kernel):
    """The exit status, and what is said."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/mine.cu"
        with open(path, "w") as file:
            file.write(kernel.text)
        done = subprocess.run([BINARY, "explain", "--kernel", path + (f":{kernel.options}" if kernel.options else "")],
                              capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout[:1500] + done.stderr


def judge_all(kernels):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(zip(kernels, pool.map(judge, kernels)))


@pytest.mark.long
def test_the_rungs_and_lessons_themselves(tally):
    for kernel, (status, said) in judge_all(list(mutants.texts())):
        assert status == (kernel.name[:2] in mutants.WRONG_BEFORE), (kernel.name, said)


def test_there_are_mutants_of_each_kind():
    """Each rung and lesson has some; every barrier, fence and index of the texts is in one."""
    kinds = Counter(re.sub(r".*: | \d+$", "", m.name) for m in mutants.mutants())
    assert kinds["no barrier"] > 30 and kinds["no fence"] == 4 and kinds["a shifted index"] > 160 and sum(kinds.values()) > 400, kinds
    assert len({m.name for m in mutants.mutants()}) == sum(kinds.values())
    of = {m.name.split(": ")[0] for m in mutants.mutants()}
    assert of == {t.name for t in mutants.texts()}
    assert mutants.HARMLESS.keys() <= {m.name for m in mutants.mutants()}


@pytest.mark.long
def test_mutants(tally):
    every = list(mutants.mutants())
    chosen = random.Random(f"{SEED} mutants").sample(every, -(-len(every) // SHARE))
    lives = {kernel.name: said for kernel, (status, said) in judge_all(chosen) if status != 1}
    unexpected = lives.keys() - mutants.HARMLESS.keys()
    assert not unexpected, {name: lives[name] for name in unexpected}
    assert lives.keys() == mutants.HARMLESS.keys() & {m.name for m in chosen}
