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


# How many: a number. Why: words of the right choice, and of no other.
ANSWERS = [
    10,
    N - 1,
    "other warps have written",
    warps_at_work(MODULO[4]),
    sum(0 < sum(t // 32 == w for t in MODULO[4]) < 32 for w in range(16)),
    0,
    sum(t < 32 for t in MODULO[5]),
    32 * sum(map(warps_at_work, MODULO)),
    "spread over all warps",
    "takes many instructions",
    32 * sum(map(warps_at_work, CONTIGUOUS)),
    warps_at_work(CONTIGUOUS[5]),
    lines(CONTIGUOUS, ([BLOCK >> k for k in range(10)], [lambda t: t] * 10)),
    lines(MODULO, (STRIDES, [lambda t: 2 * t] * 10)),
    "neighbours",
    3 * (len([t for t in MODULO[4] if t < 32]) - 1),
    0,
    1 + 7,
    "no thread waits",
    2,
    8,
    2**16 // (8 * 4 * 128),  # the model has 8 multiprocessors, with 4 blocks for each
    "in another order",
    "on their way",
    1,
    32 + 5 * 32,
    "exchanges the registers",
    1,
    "must be in memory",
    "rounds once",
]
UPPER = {"grid-stride", "vectorized", "shuffle", "single-pass", "tally"}


@pytest.fixture(scope="module")
def right(tally):
    """The answers as numbers: a choice's is its place in the list of choices."""
    questions = re.split(r"(?m)^\d+\. ", tally("quiz", "--list"))[1:]
    found = []
    for answer, question in zip(ANSWERS, questions, strict=True):
        choices = re.findall(r"(?m)^   \d\) (.*)$", question)
        assert len(choices) == (3 if isinstance(answer, str) else 0), question
        if choices:
            (answer,) = [i + 1 for i, choice in enumerate(choices) if answer in choice]
        found.append(answer)
    return found


def test_list(tally):
    text = tally("quiz", "--list")
    assert [int(n) for n in re.findall(r"(?m)^(\d+)\. ", text)] == list(range(1, len(ANSWERS) + 1))
    assert text.count("?") >= len(ANSWERS)
    assert sum(isinstance(answer, str) for answer in ANSWERS) >= 8 and all(name in text for name in UPPER)


@pytest.mark.parametrize("number", range(1, len(ANSWERS) + 1))
def test_answers(tally, right, number):
    answer = right[number - 1]
    assert re.search(rf"Right: {answer}[.,] ", tally("quiz", number, "--answer", answer))
    told = tally("quiz", number, "--explain")
    assert re.search(rf"It is {answer}[.,] ", told)
    (command,) = re.findall(r"^   tally ((?:explain|ladder) .*)$", told, re.M)
    tally(*command.split())


@pytest.mark.parametrize("number", range(1, len(ANSWERS) + 1))
def test_a_miss_has_a_hint_and_not_the_answer(tally, right, number):
    answer = right[number - 1]
    for wrong in (answer + 1, 0 if answer else 1, 16, 1023, 3040):
        if wrong == answer:
            continue
        done = tally.run("quiz", number, "--answer", wrong)
        text = done.stdout.decode()
        assert done.returncode == 1 and text.startswith("   No.") and " A hint: " in text and done.stderr == b""
        assert "tally explain" not in text and tally("quiz", number, "--explain").split(". ")[1] not in text
        if answer > 3:
            assert not re.search(rf"\b{answer}\b", text)


def test_the_second_miss_is_told_the_answer(tally):
    text = tally.run("quiz", 8, stdin=b"3040\n3041\n7\n").stdout.decode()
    first, second = text.split("A hint: ")[1].split("   > ", 1)
    assert "3552" not in first and "It is 3552." in second and "tally explain interleaved-modulo" in second
    assert "Right: 3552" in tally("quiz", 8, stdin=b"3040\n3552\n")
    assert "3552" not in tally.run("quiz", 8, stdin=b"3040\n").stdout.decode()
    assert "3552" not in tally.run("quiz", 8, stdin=b"3040\n\n").stdout.decode()


def test_a_wrong_answer_that_suggests_itself_is_told_why(tally):
    assert "a text's formula" in tally.run("quiz", 8, "--answer", 3040).stdout.decode()


def test_all_of_it(tally, right):
    done = tally.run("quiz", stdin="\n".join(map(str, right)).encode() + b"\n")
    assert done.returncode == 0 and done.stdout.decode().endswith(f"{len(right)} of {len(right)} right.\n")
    text = tally("quiz", stdin=b"\n10 apples\n5\n")
    assert "A number, please" in text and text.endswith("0 of 1 right.")
    assert tally("quiz", stdin=b"5\n10\n1022\n1023\n").endswith("2 of 2 right.")
    assert tally("quiz", stdin=b"5\n4\n1023\n").endswith("1 of 2 right.")
    assert "Right: 10" in tally("quiz", 1, stdin=b"10\n")
    assert tally("quiz", stdin=b"").endswith("0 of 0 right.")


def test_misuse(tally):
    assert "questions 1 to" in tally.fails("quiz", 99, status=2)
    assert "questions 1 to" in tally.fails("quiz", "x", status=2)
    assert "goes with the number" in tally.fails("quiz", "--answer", 3, status=2)
    assert "goes with the number" in tally.fails("quiz", "--explain", status=2)
    assert "--answer gives one" in tally.fails("quiz", 1, "--explain", "--answer", 10, status=2)
    assert "whole number" in tally.fails("quiz", 1, "--answer", "ten", status=2)
    assert "one too many" in tally.fails("quiz", 1, 2, status=2)
    assert "--nothing" in tally.fails("quiz", "--nothing", status=2)
