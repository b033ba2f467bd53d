"""bench/sweeps.py: a line for each rung and setting, written once; and bench/plot_sweeps.py draws them."""

import csv
import os
import pathlib
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


def test_sweep_of_n(tmp_path):
    path = tmp_path / "sweeps.csv"
    command = [sys.executable, BENCH / "sweeps.py", path, "--device", "cpu", "-n", "2^12", "--only", "n"]
    # The folder's tests may be given the command in another place.
    first = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=300)
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines() == ["n n 1024", "n n 4096"]
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [(row["n"], row["rung"]) for row in rows] == [(n, r) for n in ("1024", "4096") for r in ("sequential", "tally")]
    for row in rows:
        assert float(row["ms"]) > 0 and row["sweep"] == "n" and row["device"] == "cpu"
        assert float(row["gbps"]) == pytest.approx(4 * int(row["n"]) / float(row["ms"]) * 1e-6, rel=1e-3)

    # A line that is missing is measured again, the others are left as they are.
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    again = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=300)
    assert again.returncode == 0 and again.stdout.splitlines() == ["n n 4096"]
    assert path.read_text().splitlines(keepends=True)[:-1] == lines[:-1]


def test_plots(tmp_path):
    pytest.importorskip("matplotlib")
    head = "sweep,device,name,n,block,coarsen,finish,rung,ms,gbps,of_roof,roof_gbps,launches,ulp_error\n"
    lines = [f"{sweep},cuda,A GPU,{n},{block},{coarsen},{finish},{rung},1,{block + coarsen},0.5,2000,1,0\n"
             for sweep, n, block, coarsen, finish, rung in
             [("block", 4096, b, 4, "relaunch", r) for b in (32, 64) for r in ("shared", "shuffle")]
             + [("coarsen", 4096, 256, c, "relaunch", "coarsened") for c in (1, 2, 4)]
             + [("finish", 4096, b, 4, f, "shared") for b in (64, 128) for f in ("relaunch", "atomic", "host")]
             + [("n", n, 256, 4, "relaunch", "tally") for n in (1024, 4096)]]
    (tmp_path / "sweeps.csv").write_text(head + "".join(lines))
    drawn = {}
    for turn in range(2):
        done = subprocess.run([sys.executable, BENCH / "plot_sweeps.py", tmp_path / "sweeps.csv", tmp_path],
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        files = {path.name: path.read_bytes() for path in tmp_path.glob("*.svg")}
        assert sorted(files) == [f"sweep-{name}.svg" for name in ("block", "coarsen", "finish", "n")]
        assert turn == 0 or files == drawn
        drawn = files
    assert b"A GPU" in drawn["sweep-n.svg"] and b"shuffle" in drawn["sweep-block.svg"]
