"""The numbers on the pages are those of the commands beside them. TALLY is the command.

Three forms are checked, in every page of docs/:
  1. A block ```console. A line "$ COMMAND" is run, from the repository's root; the lines that follow it are its
     output, in order, where "..." stands for any number of lines left out. A command goes on as long as its lines
     end in a backslash, or up to the end of its << document.
  2. A table right after such a block whose last command shows no output: the command's --json has these counts, a row
     a rung. A cell is right if it is the number, rounded to the cell's digits.
  3. <!-- COMMAND: KEY = VALUE; KEY = VALUE -->: the command's --json has these values at these keys (a.b.c; an element
     of a list by its name, or by its number from 1), and the text under the same heading says each of them, in digits
     or, up to twelve, in words.
"""

import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TALLY = pathlib.Path(os.environ.get("TALLY", ROOT / "build" / "bin" / "tally"))
COLUMNS = {"steps": "steps", "rounds": "rounds", "barriers": "barriers", "of all blocks": "all_barriers",
           "useful": "useful", "applied": "operations", "slots": "slots", "issued": "issued",
           "efficiency": "efficiency", "divergent": "divergent", "transactions": "transactions",
           "fewest": "fewest_transactions", "bank conflicts": "bank_conflicts", "bytes read": "bytes_read",
           "written": "bytes_written", "atomics": "atomics", "launches": "launches"}
EVERY_CASE = True  # (tests/share.py)
ran = {}


def run(command):
    if command not in ran:
        env = dict(os.environ, PATH=f"{TALLY.parent}:{os.environ['PATH']}", LC_ALL="C.UTF-8")
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, cwd=ROOT, env=env)
        wrong = "explain --kernel" in command  # the status is the verdict there
        assert done.returncode in ((0, 1) if wrong else (0,)), f"{command}: {done.stderr}"
        ran[command] = done.stdout
    return ran[command]


def run_json(command):
    return json.loads(run(command + " --json"))


def commands(lines):
    """[(command, [lines of output])] of a console block."""
    found, i = [], 0
    while i < len(lines):
        if not lines[i].startswith("$ "):
            assert found, f"output before any command: {lines[i]!r}"
            found[-1][1].append(lines[i])
            i += 1
            continue
        command = [lines[i][2:]]
        here = re.search(r"<<\s*'?(\w+)'?", lines[i])
        while command[-1].endswith("\\") or (here and lines[i] != here[1]):
            i += 1
            command.append(lines[i])
        found.append(("\n".join(command), []))
        i += 1
    return found


def table_at(lines):
    """The rows of a table that begins in one of the first two lines, as lists of cells."""
    start = 1 if lines and not lines[0].strip() else 0
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def checks(page):
    """("output", command, lines), ("table", command, rows) and ("values", command, (pairs, paragraph))."""
    lines, i, section = page.read_text().splitlines(), 0, ""
    fences = [line.startswith("```") for line in lines]
    heads = [k for k in range(len(lines)) if re.match("#+ ", lines[k]) and sum(fences[:k]) % 2 == 0]
    while i < len(lines):
        if i in heads or i == 0:
            end = next((k for k in heads if k > i), len(lines))
            section = " ".join(line for line in lines[i:end] if not line.startswith("<!--"))
        if lines[i] == "```console":
            end = lines.index("```", i + 1)
            found = commands(lines[i + 1:end])
            rows = table_at(lines[end + 1:])
            for command, output in found:
                if output:
                    yield "output", command, output
            if rows and not found[-1][1]:
                yield "table", found[-1][0], rows
            elif not found[-1][1]:
                yield "output", found[-1][0], []
            i = end
        note = re.fullmatch(r"<!-- (tally [^:]*(?::[^ :][^:]*)*): (.*) -->", lines[i])
        if note:
            yield "values", note[1], ([pair.split(" = ") for pair in note[2].split("; ")], section)
        i += 1


ALL = [(page.name, *check) for page in sorted((ROOT / "docs").glob("*.md")) for check in checks(page)]


def same(cell, value):
    text = cell.strip("*").replace(",", "")
    digits = len(text.split(".")[1]) if "." in text else 0
    return text == ("-" if value is None else f"{value:.{digits}f}")


def check_output(command, shown):
    rest = [line.rstrip() for line in run(command).splitlines()]
    skip = False
    for line in shown:
        if line.strip() == "...":
            skip = True
            continue
        assert line in rest, f"{command} does not say, or not here: {line!r}"
        at = rest.index(line)
        assert skip or at == 0, f"{command}: lines are missing before {line!r}"
        rest, skip = rest[at + 1:], False
    assert skip or not shown or not rest, f"{command} says more: {rest}"


def check_table(command, rows):
    got = run_json(command)
    by_name = {k["name"]: {**k["counts"], "launches": k["launches"]} for k in got["kernels"]}
    head, body = rows[0], rows[2:]
    assert body
    for row in body:
        counts = by_name[row[0]]
        for name, cell in list(zip(head, row))[1:]:
            assert same(cell, counts[COLUMNS[name]]), f"{row[0]}, {name}: {cell}, not {counts[COLUMNS[name]]}"


def value_at(got, key):
    for word in key.split("."):
        if isinstance(got, list):
            named = [x for x in got if isinstance(x, dict) and x.get("name") == word]
            got = named[0] if named else got[int(word) - 1]
        else:
            got = got[word]
    return got


def says(text, value):
    words = "no|none|zero one two three four five six seven eight nine ten eleven twelve".split()
    forms = [re.escape(value)] + ([words[int(value)]] if value.isdigit() and int(value) < len(words) else [])
    return re.search(rf"(?<![\w.])({'|'.join(forms)})(?!\w|\.\d)", text, re.IGNORECASE)


def check_values(command, pairs, section):
    got = run_json(command)
    for key, value in pairs:
        counted = value_at(got, key)
        assert same(value, counted), f"{command}: {key} is {counted}, not {value}"
        assert says(section, value), f"{value}, of {key}, is not in the text under its heading"


def is_slow(command):
    """All rungs of 2^20 elements on the model take seconds, for each block and finish anew."""
    return "2^20" in command and re.search("--(block|finish)", command)


def some(wanted):
    cases = [(number, *check) for number, check in enumerate(ALL) if bool(is_slow(check[2])) == wanted]
    return pytest.mark.parametrize("page, kind, command, what", [case[1:] for case in cases],
                                   ids=[f"{page}-{kind}-{number}" for number, page, kind, *_ in cases])


@some(False)
def test_page(page, kind, command, what):
    if kind == "output":
        check_output(command, what)
    elif kind == "table":
        check_table(command, what)
    else:
        check_values(command, *what)


@pytest.mark.long
@some(True)
def test_slow_page(page, kind, command, what):
    test_page(page, kind, command, what)


def test_the_pages_have_numbers():
    """A page that has lost its commands would pass without a word."""
    assert sum(1 for check in ALL if check[0] == "claims.md") >= 16


def test_what_is_wrong_is_noticed():
    with pytest.raises(AssertionError):
        check_values("tally explain contiguous", [("counts.slots", "1153")], "1153 slots")
    with pytest.raises(AssertionError):
        check_values("tally explain contiguous", [("counts.slots", "1152")], "11152 slots")
    with pytest.raises(AssertionError):
        check_output("echo one; echo two", ["two"])
    with pytest.raises(AssertionError):
        check_output("echo one; echo two", ["one"])
    with pytest.raises(AssertionError):
        check_table("tally ladder --device model -n 1024 --block 512 --only shared",
                    [["rung", "steps"], ["---", "--:"], ["shared", "11"]])
    check_output("echo one; echo two; echo three", ["...", "two", "..."])
