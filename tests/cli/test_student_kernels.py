"""`tally explain --kernel` on kernels as students write them (student_kernels.py): the verdict, its words, the exit status."""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
from collections import Counter

import pytest

from conftest import BINARY
from student_kernels import KERNELS, TWINS

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="a kernel of one's own needs g++")
STATUS = {"right": 0, "wrong": 1, "refused": 2}


def run(kernel, folder):
    (folder / "mine.cu").write_text(kernel.text)
    return subprocess.run([BINARY, "explain", "--kernel", folder / "mine.cu", "--json", *shlex.split(kernel.options)],
                          capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def judged(request, tally, tmp_path_factory):
    """The kernels of this run's cases, judged a few at a time: name -> the finished process."""
    kernels = [item.callspec.params["kernel"] for item in request.session.items if "kernel" in getattr(item, "fixturenames", ())]
    folders = [tmp_path_factory.mktemp("kernel") for _ in kernels]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((k.name for k in kernels), pool.map(run, kernels, folders)))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_verdict(judged, kernel):
    done = judged[kernel.name]
    assert done.returncode == STATUS[kernel.verdict], (done.stdout[:2000], done.stderr)
    for word in kernel.words:
        assert word in done.stdout + done.stderr, (word, done.stdout[:2000], done.stderr)
    if kernel.verdict == "refused":
        assert done.stdout == "" and done.stderr.startswith("tally: ") and done.stderr.count("\n") == 1
        return
    said = json.loads(done.stdout)
    assert said["status"] == kernel.verdict
    if kernel.verdict == "right":
        assert said["correct"] and not said["findings"] and "right" in said["verdict"]
        tried = said["tried"]
        assert tried["launches"] == 2 and tried["orders"] > 1 and tried["lengths"] > 10 and tried["seed"] == 1
        assert len(tried["data"]) > 1 and f"seed {tried['seed']}" in tried["words"]
        return
    # What is wrong, why it matters, what mends it.
    assert said["wrong_for"] or said["faults"] or said["findings"]
    for told in said["faults"] + said["findings"]:
        assert told["sentence"] and told["why"] and told["mend"], told


def test_the_table():
    """Names are one kernel's each, and there are enough of either kind."""
    assert max(Counter(k.name for k in KERNELS).values()) == 1
    kinds = Counter(k.verdict for k in KERNELS)
    assert kinds["wrong"] > 50 and kinds["right"] > 40 and kinds["refused"] > 7


def kernel_of(name):
    (kernel,) = [k for k in KERNELS if k.name == name]
    return kernel


@pytest.mark.parametrize("kind", TWINS)
def test_kinds_and_their_twins(tally, tmp_path, kind):
    """Each kind of the table in the documentation is told by its name, and a kernel like it without the fault is right."""
    wrong, right = (run(kernel_of(name), tmp_path) for name in TWINS[kind])
    said = json.loads(wrong.stdout)
    assert wrong.returncode == 1 and kind in {told["kind"] for told in said["faults"] + said["findings"]}, wrong.stdout[:1500]
    assert right.returncode == 0, right.stdout[:1500]
    root = pathlib.Path(__file__).resolve().parents[2]
    for told in said["faults"] + said["findings"]:
        assert told["lesson"].startswith("lessons/") and (root / told["lesson"]).exists(), told


def test_the_documentation_has_these_kinds():
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "own-kernels.md").read_text()
    table = text[text.index("| kind | what is wrong |"):].split("\n\n")[0]
    assert re.findall(r"^\| (\w[\w ]*) \|", table, re.M)[1:] == list(TWINS)


def test_the_seed_repeats(tally, tmp_path):
    (tmp_path / "mine.cu").write_text(kernel_of("the sum of absolute values").text)
    first, again, other = (tally.judged("explain", "--kernel", tmp_path / "mine.cu", "--seed", seed) for seed in (5, 5, 6))
    assert first == again and first["findings"] and first["tried"]["seed"] == 5 and other["tried"]["seed"] == 6
