"""Arrow and Parquet files, which a helper in Python reads: that helper with pyarrow, where it is here, and what the
command makes of any helper."""

import os
import pathlib
import subprocess
from fractions import Fraction

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
    for columns in ("f4,f8,i1,i8", "f8,i1,f4"):
        each = columns.split(",")
        got = tally("sum,count", "-c", columns, "--skip-na", folder / file, env=env).splitlines()[1:]
        assert got == [f"{c}\t{tally('sum', folder / f'{c}.npy')}\t30000" for c in each]
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
    assert tally.fails("sum", "-c", "f8,f8", path, env=env) == "-c names column f8 twice"
    assert tally.fails("dot", "-c", "f8,f4", path, env=env) == (
        f"column f8 of {path} holds f64 but column f4 of {path} holds f32; one reduction has one type, so convert one of them")
    assert "dot takes two columns of one type" in tally.fails("dot", "-c", "f8,f4", "--skip-na", path, env=env)
    assert tally.fails("sum", "-c", "f8,q", path, env=env).startswith(f"{path} has no column q; ")
    assert tally.fails("sum", "-c", "f8", "--by", "q", path, env=env).startswith(f"{path} has no column q; ")
    assert tally.fails("sum", "-c", f"f8,{'q' * 300}", path, env=env).startswith(f"{path} has no column {'q' * 300}; its columns")
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


MAKE_TABLE = """
import sys, datetime
from decimal import Decimal
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
folder = sys.argv[1]
n = 30_000
rng = np.random.default_rng(8)
cents = rng.integers(-10**9, 10**9, n)
table = pa.table({
    "city": pa.array(["Rome", "New, York", 'a"b', None, "x y", "#1"] * (n // 6)),
    "kind": pa.array(["a", "b", "c"] * (n // 3)).dictionary_encode(),
    "flag": rng.integers(0, 2, n).astype(bool),
    "big": rng.integers(2**53, 2**62, n), "small": rng.integers(-100, 100, n).astype("i2"),
    "x": rng.standard_normal(n) * 10.0 ** rng.integers(-300, 300, n), "h": rng.standard_normal(n).astype("f2"),
    "money": pa.array([Decimal(int(c)).scaleb(-2) for c in cents], pa.decimal128(18, 2)),
    "price, net": pa.array([None if k % 5 == 0 else k for k in range(n)], pa.int32()),
    "gaps": pa.array([None if k % 7 == 0 else k for k in range(n)], pa.int32()),
    "when": pa.array([datetime.datetime(2020, 1, 1 + k % 3) for k in range(n)])})
pq.write_table(table, f"{folder}/k.parquet", row_group_size=7001)
with pa.ipc.new_file(f"{folder}/k.arrow", table.schema) as out:
    out.write_table(table, max_chunksize=9000)
twice = pa.table([pa.array([1, 2]), pa.array([10, 20])], names=["v", "v"])
pq.write_table(twice, f"{folder}/twice.parquet")
np.savez(f"{folder}/k.npz", **{c: table[c].to_numpy(zero_copy_only=False) for c in ("flag", "big", "small", "x", "h")}, cents=cents)
"""


@pytest.fixture(scope="module")
def keyed(here):
    folder, env = here
    subprocess.run(["python3", "-c", MAKE_TABLE, folder], env=env, check=True)
    return folder, env, dict(np.load(folder / "k.npz"))


CITIES = ["Rome", "New, York", 'a"b', "", "x y", "#1"]


@pytest.mark.parametrize("file", ["k.parquet", "k.arrow"])
def test_keys(tally, keyed, file):
    """Of text with what tables quote, flags, dictionaries and dates; sums of integers beyond 2^53 and of all doubles are exact."""
    folder, env, data = keyed
    place = np.arange(30_000)
    want = [f"{city}\t{sum(data['big'][place % 6 == i].tolist())}" for i, city in enumerate(CITIES)]
    assert tally("sum", "-c", "big", "--by", "city", folder / file, env=env).splitlines() == want
    sums = {}
    for k, flag, x in zip("abc" * 10_000, data["flag"].tolist(), data["x"].tolist()):
        sums[k, flag] = sums.get((k, flag), 0) + Fraction(x)
    lines = tally("sum", "-c", "x", "--by", "kind,flag", folder / file, env=env).splitlines()
    assert {tuple(line.split("\t")[:2]): float(line.split("\t")[2]) for line in lines} == {
        (k, str(flag).lower()): float(v) for (k, flag), v in sums.items()}
    got = tally("count", "-c", "h", "--by", "when", folder / file, env=env).splitlines()
    assert [line.split("\t")[1] for line in got] == ["10000"] * 3 and got[0].startswith("2020-01-01")
    h = tally.json("sum", "-c", "h", "--by", "kind", folder / file, env=env)
    assert h["dtype"] == "f16"
    for i, group in enumerate(h["groups"]):
        np.save(folder / "part.npy", data["h"][i::3])
        assert group["bits"] == tally.json("sum", folder / "part.npy")["bits"]


@pytest.mark.parametrize("file", ["k.parquet", "k.arrow"])
def test_columns_of_several_types(tally, keyed, file):
    folder, env, data = keyed
    money = lambda cents: f"{'-' * (cents < 0)}{abs(cents) // 100}.{abs(cents) % 100:02}"
    big, small, cents = (sum(data[c].tolist()) for c in ("big", "small", "cents"))
    x = float(sum(map(Fraction, data["x"].tolist())))
    lines = dict(line.split("\t") for line in tally("sum", "-c", "big,x,small,money", folder / file, env=env).splitlines())
    assert (int(lines["big"]), float(lines["x"]), int(lines["small"]), lines["money"]) == (big, x, small, money(cents))
    got = tally.json("sum", "-c", "x,big,money", folder / file, env=env)
    assert [g["dtype"] for g in got["groups"]] == ["f64", "i64", "decimal"]
    assert tally("sum", "-c", "money", folder / file, env=env) == tally("sum", "--decimal", "-c", "money", folder / file, env=env) == money(cents)
    assert tally.json("sum", "-c", "money", folder / file, env=env)["dtype"] == "decimal"
    lines = tally("sum", "-c", "money,big", "--by", "kind", folder / file, env=env).splitlines()
    for i in range(3):
        assert lines[2 * i] == f"{'abc'[i]}\tmoney\t{money(sum(data['cents'][i::3].tolist()))}"
        assert lines[2 * i + 1] == f"{'abc'[i]}\tbig\t{sum(data['big'][i::3].tolist())}"
    np.save(folder / "money.npy", data["cents"] / 100)
    for args in ((), ("--skip-na",)):
        assert tally("mean,max", "-c", "money", "--dtype", "f64", *args, folder / file, env=env) == tally("mean,max", folder / "money.npy")
    assert "whose exact sum there is; for mean, --dtype f64" in tally.fails("mean", "-c", "money", folder / file, env=env)
    assert "whose exact sum there is" in tally.fails("max", "-c", "money", "--by", "kind", folder / file, env=env)


def test_pairs_names_and_dates(tally, keyed):
    folder, env, _ = keyed
    path = folder / "k.parquet"
    both = [k for k in range(30_000) if k % 5 and k % 7]
    assert tally("dot", "-c", r"price\, net,gaps", "--skip-na", path, env=env) == str(sum(k * k for k in both))
    assert tally("sum", "-c", "price, net", "--skip-na", path, env=env) == str(sum(k for k in range(30_000) if k % 5))
    assert tally("sum", "-c", '"price, net",gaps', "--skip-na", path, env=env).splitlines()[0] == (
        f"price, net\t{sum(k for k in range(30_000) if k % 5)}")
    assert tally("sum", "-c", "gaps", "--by", "kind", "--skip-na", path, env=env).splitlines() == [
        f"{'abc'[i]}\t{sum(k for k in range(i, 30_000, 3) if k % 7)}" for i in range(3)]
    assert tally.fails("sum", "-c", "gaps", "--by", "kind", path, env=env) == (
        f"{path}: row 1 of column gaps has no value; --skip-na leaves such rows out")
    assert tally.fails("sum", "-c", "when", path, env=env).endswith(
        ": that is a date or a time, and only numbers are reduced; cast it to int64")
    twice = folder / "twice.parquet"
    assert tally.fails("sum", "-c", "v", twice, env=env) == f"{twice} has two columns v, 1 and 2; give the number of one of them"
    assert tally("sum", "-c", "2", twice, env=env) == "30" and tally("sum", "-c", "1", twice, env=env) == "3"


def test_a_helper_that_fails_within_its_rows(tally, tmp_path):
    """What it wrote before is no answer."""
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1")
    for args, said in ((("-c", "v", "--by", "k"), r"printf 'f64\n1,a\n2,b\n'"), (("--decimal",), r"printf 'decimal\n1\n2\n'"), ((), r"printf 'u8\n\001'")):
        assert tally("count" if "v" in args else "sum", *args, path, env=helper(tmp_path, said))
        assert tally.fails("sum", *args, path, env=helper(tmp_path, f"{said}; echo 'tally: no more' >&2; exit 1")) == "no more"
