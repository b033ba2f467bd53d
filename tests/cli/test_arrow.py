"""Arrow and Parquet files, which a helper in Python reads: that helper with pyarrow, where it is here, and what the
command makes of any helper."""

import os
import pathlib
import subprocess

import numpy as np
import pytest

from conftest import BINARY

# Where `scripts/install-deps bench` puts it, or what PATH has.
PYTHONS = [str(BINARY.parent.parent / "peers" / "bin" / "python3"), "python3", "/usr/bin/python3"]

MAKE = """
import sys
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
folder = sys.argv[1]
rng = np.random.default_rng(5)
n = 30_000
types = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
columns = {t: rng.integers(np.iinfo(t).min, np.iinfo(t).max, n, t, endpoint=True) for t in types}
columns |= {t: rng.standard_normal(n).astype(t) for t in ("f2", "f4", "f8")}
columns["flag"] = rng.integers(0, 2, n).astype(bool)
for name, column in columns.items():
    np.save(f"{folder}/{name}.npy", column)
gaps = [None if k % 7 == 3 else float("nan") if k % 7 == 5 else k / 8 for k in range(n)]
table = pa.table(columns | {"gaps": pa.array(gaps, pa.float64()), "text": ["a"] * n})
pq.write_table(table.drop_columns(["f2"]) if pa.__version__ < "15" else table, f"{folder}/t.parquet", row_group_size=7001)
pq.write_table(table.select(["f8"]), f"{folder}/one.parquet")
with pa.ipc.new_file(f"{folder}/t.arrow", table.schema) as out:
    out.write_table(table.slice(0, 11), max_chunksize=5)
    out.write_table(table.slice(11), max_chunksize=9000)
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with the files, and the environment in which python3 is one with pyarrow."""
    folder = tmp_path_factory.mktemp("arrow")
    for python in PYTHONS:
        try:
            done = subprocess.run([python, "-c", MAKE, folder], stderr=subprocess.PIPE)
        except OSError:
            continue
        if done.returncode == 0:
            link = folder / "bin"
            link.mkdir()
            (link / "python3").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
            (link / "python3").chmod(0o755)
            return folder, {**os.environ, "PATH": f"{link}:{os.environ['PATH']}"}
    pytest.skip("no Python with pyarrow")


@pytest.mark.parametrize("file", ["t.parquet", "t.arrow"])
def test_columns_are_arrays(tally, here, file):
    folder, env = here
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "flag"):
        got = tally.json("sum,min,max,argmax", "-c", name, folder / file, env=env)
        want = tally.json("sum,min,max,argmax", folder / f"{name}.npy")
        assert [got[k] for k in ("dtype", "n", "value", "bits")] == [want[k] for k in ("dtype", "n", "value", "bits")], name
    assert tally("sum", "--column", "11", folder / file, env=env) == tally("sum", folder / "f8.npy")
    assert tally("sum", "-c", "f8", folder / "t.parquet", folder / "t.arrow", env=env) == tally(
        "sum", folder / "f8.npy", folder / "f8.npy")


@pytest.mark.parametrize("file", ["t.parquet", "t.arrow"])
def test_several_columns(tally, here, tmp_path, file):
    folder, env = here
    f8 = tally("sum", folder / "f8.npy")
    gaps = str(sum(k // 8 if k % 8 == 0 else k / 8 for k in range(30_000) if k % 7 not in (3, 5)))
    assert tally("sum", "-c", "f8,gaps", "--skip-na", folder / file, env=env) == f"f8\t{f8}\ngaps\t{gaps}"
    x = np.load(folder / "f8.npy")
    table = tmp_path / "t.csv"
    table.write_text("i,f8\n" + "".join(f"{i},{v!r}\n" for i, v in enumerate(x.tolist())))
    both = tally("sum,count", "-c", "f8,11", folder / file, env=env)
    assert both == f"column\tsum\tcount\nf8\t{f8}\t30000\n11\t{f8}\t30000"
    assert tally("dot", "-c", "f8,f8", folder / file, env=env) == tally("sumsq", folder / "f8.npy")
    assert tally("dot", "-c", "f8,f8", folder / file, table, folder / file, env=env) == tally("sumsq", *[folder / "f8.npy"] * 3)
    got = tally.json("min", "-c", "f8,gaps", "--skip-na", folder / file, env=env)
    assert [(g["column"], g["n"]) for g in got["groups"]] == [("f8", 30_000), ("gaps", sum(k % 7 not in (3, 5) for k in range(30_000)))]


def test_the_only_column(tally, here):
    folder, env = here
    assert tally("mean", folder / "one.parquet", env=env) == tally("mean", folder / "f8.npy")


@pytest.mark.parametrize("file", ["t.parquet", "t.arrow"])
def test_missing_values(tally, here, file):
    folder, env = here
    kept = [k / 8 for k in range(30_000) if k % 7 not in (3, 5)]
    got = tally.json("sum", "-c", "gaps", "--skip-na", folder / file, env=env)
    assert (got["n"], got["value"]) == (len(kept), sum(kept))
    assert tally.fails("sum", "-c", "gaps", folder / file, env=env) == (
        f"{folder / file}: row 4 of column gaps has no value; --skip-na leaves such rows out")


def test_what_is_wrong_with_a_file(tally, here, tmp_path):
    folder, env = here
    path = folder / "t.parquet"
    assert tally.fails("sum", "-c", "q", path, env=env).startswith(f"{path} has no column q; its columns are i1 i2")
    assert tally.fails("sum", path, env=env).startswith(f"{path} has several columns; name one, as in -c i1: i1 i2")
    assert tally.fails("sum", "-c", "text", path, env=env) == (
        f"{path}: column text is of type string; a column of numbers is needed")
    assert tally.fails("sum", "-c", "f8", "--dtype", "f32", path, env=env) == (
        f"{path} holds f64, but --dtype says f32; leave --dtype out or convert the array")
    for args in (("sum", "-c", "f8", "--by", "i1"), ("sum", "-c", "f8", "--decimal"), ("dot", "-c", "f8,gaps", "--skip-na")):
        assert "are reduced without --by, --decimal and pairs with --skip-na" in tally.fails(*args, path, env=env)
    assert tally.fails("sum", "-c", "f8,f8", path, env=env) == "-c names column f8 twice"
    assert tally.fails("sum", "-c", "f8,f4", path, env=env).startswith(f"{path} holds f64 but {path} holds f32; ")
    assert tally.fails("sum", "-c", "f8,q", path, env=env).startswith(f"{path} has no column q; ")
    assert tally.fails("sum", "-c", f"f8,{'q' * 300}", path, env=env) == f"{path} has no column {'q' * 300}"
    with path.open("rb") as file:
        assert tally.fails("sum", "-c", "f8", stdin=file, env=env) == (
            "standard input is a Parquet file; give it by its name, not packed and not through a pipe")
    for cut in (path.read_bytes()[:5000], b"PAR1", b"ARROW1\0\0" + bytes(100)):
        (tmp_path / "cut").write_bytes(cut)
        assert tally.fails("sum", "-c", "f8", tmp_path / "cut", env=env).startswith(f"{tmp_path / 'cut'} cannot be read: ")


def helper(tmp_path, text):
    """An environment in which python3 is this shell script."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "python3").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "python3").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_other_helpers(tally, tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1")
    env = helper(tmp_path, r"printf 'u16\n\001\000\002\000'")
    assert tally("sum", path, env=env) == "3"
    assert tally("sum", "-c", "x", path, env=env) == "3"
    env = helper(tmp_path, r"printf 'u8\n'; head -c 9000000 /dev/zero")
    assert tally("count", path, env=env) == "9000000"
    env = helper(tmp_path, r"printf 'u16\n\001\000\002\000'; echo 'tally: no more' >&2; exit 1")
    assert tally.fails("sum", path, env=env) == "no more"
    env = helper(tmp_path, r"printf 'u16\n\001\000'; kill -9 $$")
    assert tally.fails("sum", path, env=env) == f"{path}: python3 was ended by signal 9 (Killed)"
    env = helper(tmp_path, r"printf 'u16\n\001\000\002'")
    assert "no multiple" in tally.fails("sum", path, env=env)
    for said in ("", r"printf 'x7\n'", "printf f64"):
        assert tally.fails("sum", path, env=helper(tmp_path, said)) == f"{path}: python3 has not written a column"
    env = helper(tmp_path, 'exec /usr/bin/python3 -I -S "$@"')
    assert tally.fails("sum", path, env=env) == (
        f"{path} is an Arrow or Parquet file, for which Python's pyarrow is needed; install it (pip install pyarrow), "
        "or save the column as a .npy file")
    (tmp_path / "pyarrow.py").write_text("raise ImportError('an older NumPy\\nis here')")
    env = helper(tmp_path, f'PYTHONPATH="{tmp_path}" exec /usr/bin/python3 "$@"')
    assert tally.fails("sum", path, env=env) == (
        f"{path} is an Arrow or Parquet file, and Python's pyarrow, which reads them, cannot be used: an older NumPy is here; "
        "save the column as a .npy file")
    line = tally.fails("sum", path, env={**os.environ, "PATH": str(tmp_path)})
    assert "python3, which reads them, cannot be run: No such file or directory; save the column" in line
