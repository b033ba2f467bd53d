"""`tally quiz`: its answers against arithmetic done here, and against what `tally explain` shows."""

import re

import pytest

BLOCK, N = 512, 1024


def warps_at_work(active):
    """Warps of a block in which some thread of the set works."""
    return len({t // 32 for t in active})


STRIDES = [2**k for k in range(10)]
MODULO = [[t for t in range(BLOCK) if t % s == 0] for s in STRIDES]
CONTIGUOUS = [list(range(BLOCK >> k)) for k in range(10)]


def lines(steps, places):
    """128-byte lines that a tree's loads and stores touch: left and right are read, left is written."""
    total = 0
    for threads, stride, left in zip(steps, *places):
        for warp in range(BLOCK // 32):
            of = [t for t in threads if t // 32 == warp]
            for offset in (0, stride, 0):
                total += len({(left(t) + offset) // 32 for t in of})
    return total + 2  # the result is read and written once more


ANSWERS = [
    10,
    N - 1,
    warps_at_work(MODULO[4]),
    sum(0 < sum(t // 32 == w for t in MODULO[4]) < 32 for w in range(16)),
    0,
    sum(t < 32 for t in MODULO[5]),
    32 * sum(map(warps_at_work, MODULO)),
    32 * sum(map(warps_at_work, CONTIGUOUS)),
    warps_at_work(CONTIGUOUS[5]),
    lines(CONTIGUOUS, ([BLOCK >> k for k in range(10)], [lambda t: t] * 10)),
    lines(MODULO, (STRIDES, [lambda t: 2 * t] * 10)),
    3 * (len([t for t in MODULO[4] if t < 32]) - 1),
    0,
    1 + 7,
    2,
    8,
]


def test_list(tally):
    text = tally("quiz", "--list")
    assert [int(n) for n in re.findall(r"(?m)^(\d+)\. ", text)] == list(range(1, len(ANSWERS) + 1))
    assert text.count("?") >= len(ANSWERS)


@pytest.mark.parametrize("number", range(1, len(ANSWERS) + 1))
def test_answers(tally, number):
    right = ANSWERS[number - 1]
    assert f"Right: {right}." in tally("quiz", number, "--answer", right)
    done = tally.run("quiz", number, "--answer", right + 1)
    text = done.stdout.decode()
    assert done.returncode == 1 and f"No: it is {right}." in text and done.stderr == b""
    (command,) = re.findall(r"^   tally (explain .*)$", text, re.M)
    tally(*command.split())


def test_a_wrong_answer_that_suggests_itself_is_told_why(tally):
    assert "a text's formula" in tally.run("quiz", 7, "--answer", 3040).stdout.decode()


def test_all_of_it(tally):
    done = tally.run("quiz", stdin="\n".join(map(str, ANSWERS)).encode() + b"\n")
    assert done.returncode == 0 and done.stdout.decode().endswith(f"{len(ANSWERS)} of {len(ANSWERS)} right.\n")
    text = tally("quiz", stdin=b"\n10 apples\n5\n")
    assert "A number, please" in text and text.endswith("0 of 1 right.")
    assert "Right: 10" in tally("quiz", 1, stdin=b"10\n")
    assert tally("quiz", stdin=b"").endswith("0 of 0 right.")


def test_misuse(tally):
    assert "questions 1 to" in tally.fails("quiz", 99, status=2)
    assert "questions 1 to" in tally.fails("quiz", "x", status=2)
    assert "goes with the number" in tally.fails("quiz", "--answer", 3, status=2)
    assert "whole number" in tally.fails("quiz", 1, "--answer", "ten", status=2)
    assert "one too many" in tally.fails("quiz", 1, 2, status=2)
    assert "--nothing" in tally.fails("quiz", "--nothing", status=2)
