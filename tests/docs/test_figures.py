"""The H200's figures on the pages are those of docs/results: scripts/figures makes them, and says when they differ."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def figures(root, *args):
    return subprocess.run([sys.executable, root / "scripts" / "figures", *args], capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path):
    """The pages and results, to be changed."""
    for name in ("README.md", "docs/ladder.md", "docs/ladder-hardware.md", "docs/claims.md", "scripts/figures", "docs/results"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_pages_have_the_measured_figures():
    done = figures(ROOT, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_cells_are_those_of_the_file():
    """Read here without the script: the first row of that name after the command."""
    text = (ROOT / "docs/results/h200-ladder.txt").read_text()
    text = text[text.index("--dtype f32"):]
    page = (ROOT / "docs/ladder.md").read_text()
    page = page[page.index("<!-- figures clock -->"):]
    for rung in ("contiguous", "shared", "coarsened", "vectorized", "tally"):
        ms, _, mflops, gbps, roof = re.search(rf"(?m)^{rung} .*$", text)[0].split()[1:6]
        cells = [cell.strip() for cell in re.search(rf"(?m)^\| {rung} \|.*$", page)[0].strip("|").split("|")]
        assert cells[1:5] == [ms, mflops, gbps, roof]


def test_new_measurements(copy):
    results = copy / "docs/results/h200-ladder.txt"
    text = results.read_text()
    from_here = text.index("$ tally ladder --device cuda --dtype f32")
    mask, single = (re.compile(rf"(?m)^{rung} .*$").search(text, from_here) for rung in ("interleaved-mask", "single-pass"))
    roof = re.compile(r"The roof: ([\d.]+) GB/s").search(text, from_here)[1]
    new = text
    for row, ms in ((mask, "5.555"), (single, "0.9999")):
        new = new.replace(row[0], row[0].replace(row[0].split()[1], ms, 1), 1)
    results.write_text(new.replace(f"The roof: {roof}", "The roof: 4444.44", 1))
    done = figures(copy, "--check")
    assert done.returncode == 1 and "run scripts/figures" in done.stderr
    assert "5.555" not in (copy / "docs/ladder.md").read_text()
    assert figures(copy).returncode == 0 and figures(copy, "--check").returncode == 0
    ladder, claims = (copy / "docs/ladder.md").read_text(), (copy / "docs/claims.md").read_text()
    assert "**Measured**: 5.555 ms" in ladder and "| interleaved-mask | 5.555 |" in ladder
    assert "reads 4444.44 GB/s" in ladder and f"{roof} GB/s" not in ladder + claims  # a rung may be the roof
    assert "An H200 read 4444.44 GB/s: at most 1111110 MFLOPS" in claims and "0.02 1111110\n" in claims
    loop = float(re.compile(r"(?m)^sequential .*$").search(text, from_here)[0].split()[1])
    assert "single-pass             0.9999 " in claims and f"0.9999 ms: {loop / 0.9999:.0f} times" in claims


def test_a_folder_of_the_gpu(copy, tmp_path):
    """What scripts/gpu leaves becomes what is committed, but for folders."""
    results, folder = copy / "docs/results", tmp_path / "left"
    folder.mkdir()
    machine, ladder = (results / "h200-ladder.txt").read_text().split("\n\n", 1)
    (folder / "machine.txt").write_text(machine + "\n")
    (folder / "ladder.txt").write_text(ladder.replace("$ tally", "$ build/bin/tally"))
    counters = (results / "h200-counters.txt").read_text().split("\n\n", 1)[1]
    (folder / "counters-table.txt").write_text(
        counters.replace("scripts/gpu FOLDER counters", "python3 bench/counters.py a/counters.txt a/model.json"))
    before = {p.name: p.read_text() for p in results.iterdir()}
    assert figures(copy, folder).returncode == 0
    assert {p.name: p.read_text() for p in results.iterdir()} == before
    assert figures(copy, "--check").returncode == 0
