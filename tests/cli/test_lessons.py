"""Every kernel of lessons/ says of itself what its lesson is about: each broken one is caught for its own reason."""

import pathlib
import re
import shutil

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="a kernel of one's own needs g++")
LESSONS = pathlib.Path(__file__).resolve().parents[2] / "lessons"


def explain(tally, lesson, *args):
    (path,) = LESSONS.glob(f"{lesson:02}_*.cu")
    return tally.judged("explain", "--kernel", f"{path}{args[0] if args and str(args[0]).startswith(':') else ''}",
                      *[a for a in args if not str(a).startswith(":")])


def kinds(got):
    return [f["kind"] for f in got["faults"] if f["n"] == got["n"]]


def test_01(tally):
    got = explain(tally, 1)
    assert not got["wrong_for"] and got["counts"]["steps"] == 10 and got["counts"]["operations"] == 1023


def test_02(tally):
    got = explain(tally, 2)
    assert kinds(got) == ["race"] and "input_s[64]" in got["faults"][0]["sentence"]


def test_03(tally):
    got = explain(tally, 3)
    assert kinds(got) == ["barrier"] and "lanes 0-63" in got["faults"][0]["sentence"]


def test_04(tally):
    got = explain(tally, 4)
    assert got["right_for"] == [n for n in got["right_for"] + got["wrong_for"] if n & (n - 1) == 0]
    assert {6, 10, 12, 14} <= set(got["wrong_for"]) and not got["faults"]


def test_05(tally):
    got = explain(tally, 5)
    assert all(n % 2 == 0 for n in got["right_for"]) and all(n % 2 for n in got["wrong_for"])
    assert {f["kind"] for f in got["faults"]} == {"bounds"}


def test_06(tally):
    assert not explain(tally, 6)["wrong_for"]
    got = explain(tally, 6, "--block", 64, "--length", "block", "-n", 512)
    assert not got["correct"] and not kinds(got)


def test_07(tally):
    got = explain(tally, 7)
    assert got["host"]["segment"] == 512 and min(got["wrong_for"]) == 257 and not got["faults"]
    assert got["times_counted"] == [1] * 256 + [0]


def test_08(tally):
    got = explain(tally, 8)
    assert kinds(got) == [] and "unwritten" in {f["kind"] for f in got["faults"]}


def test_09_and_10(tally):
    assert kinds(explain(tally, 9)) == ["race"] and not explain(tally, 9)["correct"]
    assert explain(tally, 10)["correct"] and kinds(explain(tally, 10)) == []


def test_11(tally):
    got = explain(tally, 11, ":conflicts")
    warps = [w for s in got["steps"] for w in s["warps"]]
    # 32 lanes that read two words each and write one, of one bank: 31 more passes, three times.
    assert max(w["bank_conflicts"] for w in warps) == 3 * 31 and got["correct"]
    assert explain(tally, 11, ":no_conflicts")["counts"]["bank_conflicts"] == 0


def test_12(tally):
    got = explain(tally, 12, "--block", 32, "-n", 32)
    assert not got["wrong_for"] and got["counts"]["operations"] == 5 * 32 and got["counts"]["atomics"] == 1
    assert (got["counts"]["useful"], got["counts"]["issued"]) == (31, 5 * 32)


def test_13(tally):
    """Which elements are in front of which, followed by hand through the accesses that the model tells of."""
    def order(kernel):
        got = explain(tally, 13, kernel, "-n", 8, "--steps")
        assert got["correct"] and not got["wrong_for"]
        held = {i: [i] for i in range(8)}
        for step in got["steps"]:
            reads = [a for a in step["accesses"] if a["act"] == "read"]
            by_thread = {}
            for access in reads:
                for thread, element in zip(access["threads"], access["elements"]):
                    by_thread.setdefault(thread, []).append(element)
            for left, right in by_thread.values():
                held[left] = held[left] + held[right]
        return held[0]
    assert order(":growing") == list(range(8))
    assert order(":shrinking") != list(range(8)) and sorted(order(":shrinking")) == list(range(8))


def test_every_lesson_is_in_the_readme_and_opens_with_its_question(tally):
    readme = (LESSONS / "README.md").read_text()
    files = sorted(LESSONS.glob("*.cu"))
    assert len(files) == 13
    for path in files:
        text = path.read_text()
        assert f"({path.name})" in readme
        comment = text[: text.index("*/")]
        assert "?" in comment
        commands = re.findall(r"tally (explain --kernel .*)", comment)
        assert commands
        for command in commands:
            assert tally.run(*command.split(), cwd=LESSONS.parent).returncode in (0, 1)
