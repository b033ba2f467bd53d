"""Columns of tables, groups by key, exact decimals, files apart, and sums beyond 64 bits."""

import csv
import io
import math
import os
import random
from decimal import Decimal
from fractions import Fraction

import exact
import numpy as np
import pytest

SALES = b'''city,price,qty
Rome,0.10,3
"New, York",1.25,4
Rome,0.20,1
"New, York","2.50",2

Oslo,-3.1,10
'''


@pytest.fixture
def sales(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_bytes(SALES)
    return path


def test_column_by_name_and_number(tally, sales):
    assert tally("sum", "-c", "qty", sales) == tally("sum", "--column", "3", "--header", sales) == "20"
    assert tally("sum", "-c", "qty", stdin=SALES) == "20"
    assert tally("sum", "-c", "qty", sales, sales, "-", stdin=SALES) == "60"
    assert tally("count,min,max", "-c2", stdin=b"a,1\nb,2\n") == "count\t2\nmin\t1\nmax\t2"
    assert tally("argmax", "-c", "qty", "--text", "--dtype", "i16", sales) == "4"
    got = tally.json("sum", "-c", "qty", sales)
    assert (got["n"], got["value"], got["dtype"]) == (5, 20.0, "f64")


def test_by_key(tally, sales):
    run = lambda op, *args: tally(op, "-c", "qty", "--by", "city", *args, sales).splitlines()
    assert run("sum") == ["Rome\t4", "New, York\t6", "Oslo\t10"]
    assert run("sum", "--sort") == ["New, York\t6", "Oslo\t10", "Rome\t4"]
    assert run("count,max", "--sort") == ["city\tcount\tmax", "New, York\t2\t4", "Oslo\t1\t10", "Rome\t2\t3"]
    assert run("minmax")[1] == "Rome\t1\t3"
    assert run("describe")[0].split("\t") == ["city", "count", "nans", "min", "max", "argmin", "argmax", "sum",
                                              "mean", "std"]
    assert tally("sum", "-c", "2", "--by", "1", "--sort", stdin=b"10,1\n9,2\n10,3\n1e1,4\n") == "9\t2\n10\t4\n1e1\t4"
    got = tally.json("mean", "-c", "qty", "--by", "city", sales)
    assert [(g["key"], g["n"], g["value"]) for g in got["groups"]] == [
        ("Rome", 2, 2.0), ("New, York", 2, 3.0), ("Oslo", 1, 10.0)]
    assert tally("sum", "-c", "2", "--by", "1", stdin=b'"a\tb\nc",1\n') == "a\\tb\\nc\t1"


@pytest.mark.parametrize("op", ["sum", "prod", "min", "xor", "mean", "std", "norminf", "argmax", "nonzero", "all"])
def test_every_group_is_reduced_as_if_alone(tally, tmp_path, op):
    """Many keys, so that the table of them grows; few elements and many."""
    rng = np.random.default_rng(4)
    keys = np.concatenate([rng.integers(0, 300, 20_000), np.full(30_000, 7)])
    rng.shuffle(keys)
    x = rng.normal(size=keys.size)
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows((f"k{k}", repr(float(v))) for k, v in zip(keys, x))
    lines = tally(op, "-c", 2, "--by", 1, stdin=out.getvalue().encode()).splitlines()
    order = list(dict.fromkeys(f"k{k}" for k in keys))
    assert [line.split("\t")[0] for line in lines] == order
    for key in ("k7", "k0", "k299"):
        want = tally(op, "--dtype", "f64", stdin=x[keys == int(key[1:])].tobytes())
        assert f"{key}\t{want}" in lines


def test_delimiters(tally):
    for data, args in ((b"a\tb\n1\t2\n", ()), (b"a;b\n1;2\n", ()), (b"a|b\n1|2\n", ("-F", "|")),
                       (b"a\tb\n1\t2\n", ("-F", "tab")), (b"a\tb\n1\t2\n", ("--delimiter=\\t",)),
                       (b"\xef\xbb\xbfb,a\r\n2,1\r\n", ()), (b"b\n2", ())):
        assert tally("sum", "-c", "b", *args, stdin=data) == "2"
    assert tally("sum", "-c", "2", stdin=b"a\t1\n\t2\n") == "3"
    assert "-F takes one character, tab or blank; 'xy' is none of these" in tally.fails("sum", "-c1", "-F", "xy", status=2)


TABLES = [
    (("-c", "prise"), SALES, "standard input has no column prise; did you mean price?"),
    (("-c", "x"), SALES, "standard input has no column x; its columns are city price qty"),
    (("-c", "qty", "--by", "town"), SALES, "standard input has no column town; its columns are city price qty"),
    (("-c", "1"), SALES, "standard input:2: 'Rome' in column 1 is no f64 number"),
    (("-c", "1"), b"x,1\ny,2\n", "standard input:1: 'x' is no f64 number; where the first line has names, add --header"),
    (("-c", "b"), b"a,b\n1,2\n3\n", "standard input:3: the line has 1 field, and no column b"),
    (("-c", "b"), b"a,b\n1,2\n\n3,\n", "standard input:4: column b has no number, but ''; --skip-na leaves such rows out"),
    (("-c", "b"), b"a,b\n1,NA\n", "standard input:2: column b has no number, but 'NA'; --skip-na leaves such rows out"),
    (("-c", "b"), b'a,b\n"1\n1",2\n3,x y\n', "standard input:4: 'x y' in column b is no f64 number"),
    (("-c", "b"), b'a,b\n1,2\n"3,4\n', "standard input:3: a quote is opened in this line and not closed"),
    (("-c", "b"), b"", "standard input is empty: it has no line with the columns' names"),
    (("-c", "b", "--text", "--dtype", "i8"), b"b\n200\n", "standard input:2: 200 does not fit i8"),
    (("-c", "b", "--decimal"), b"b\n1.5x\n", "standard input:2: '1.5x' in column b is no decimal number"),
]


@pytest.mark.parametrize("args, data, words", TABLES, ids=range(len(TABLES)))
def test_broken_tables(tally, args, data, words):
    assert tally.fails("sum", *args, stdin=data) == words


def test_no_table(tally, tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(3.0))
    assert tally.fails("sum", "-c", "1", path) == f"{path} is a .npy file; leave -c out"
    assert tally.fails("sum", "--decimal", path) == f"{path} is a .npy file; leave --decimal out"
    assert tally.fails("sum", "-c", "1", stdin=bytes(100)) == "standard input is no text, but -c wants a table"
    assert "compressed by xz" in tally.fails("sum", "-c", "1", stdin=b"\xfd7zXZ\0" + bytes(20))


def test_rows_without_a_number(tally):
    data = b"a,b\nx,1\nx,\ny,NA\ny,4\n"
    assert tally("count,sum", "-c", "b", "--skip-na", stdin=data) == "count\t2\nsum\t5"
    assert tally("sum", "-c", "b", "--by", "a", "--skip-na", stdin=data) == "x\t1\ny\t4"


@pytest.mark.parametrize("args, words", [
    (("--header",), "--header goes with a table's column"),
    (("-F", ","), "-F goes with a table's column"),
    (("--sort",), "--sort goes with --by"),
    (("--sort", "--by", "x"), "--by with a file of ids and --sort exclude each other; leave one out"),
    (("-c", "1", "--each"), "--each and -c exclude each other; leave one out"),
    (("-c", "1", "--raw"), "-c reads text; leave --raw out"),
    (("--decimal", "--dtype", "f64"), "--decimal goes with sum alone"),
    (("-c", "a", "-c", "b"), "-c is given twice; give one list, as in -c a,b"),
    (("-c", "v", "--by", "a", "--by", "b"), "--by is given twice; give one list, as in --by a,b"),
    (("-c", "v", "--na", "-99", "--na", "-9999"), "--na is given twice; give one list, as in --na -99,-9999"),
])
def test_options_that_do_not_go_together(tally, args, words):
    assert tally.fails("sum", *args, status=2).startswith(words)
    assert "dot takes two arrays" in tally.fails("dot", "--each", "a", "b", status=2)
    assert "--decimal goes with sum alone" in tally.fails("mean", "--decimal", status=2)


def test_decimal(tally, sales):
    assert tally("sum", "-c", "price", "--decimal", sales) == "0.95"
    assert tally("sum", "-c", "price", "--by", "city", "--decimal", sales) == "Rome\t0.30\nNew, York\t3.75\nOslo\t-3.1"
    assert tally("sum", "--decimal", stdin=b"1.10 2.20\n-0.05\n") == "3.25"
    assert tally("sum", "--decimal", stdin=b"0.10\n-0.10\n") == "0.00"
    assert tally("sum", "--decimal", stdin=b"") == "0"
    assert tally("sum", "--decimal", stdin=b"1e30\n1e-30\n") == f"1{'0' * 30}.{'0' * 29}1"
    assert tally("sum", "--decimal", "--skip-na", stdin=b"1.5 NA\n") == "1.5"
    for word in ("1.5" + "0" * 600, "0." + "0" * 600 + "15e601", "0" * 600 + "1.5"):
        assert tally("sum", "--decimal", stdin=word.encode()).rstrip("0") == "1.5"
        assert tally("sum", "-c", "v", "--decimal", stdin=b"v\n" + word.encode()).rstrip("0") == "1.5"
    assert float(tally("sum", "--decimal", stdin=b"0." + b"0" * 600 + b" 0e-999")) == 0
    for word in ("0." + "0" * 396 + "1", "1e396", "1e-397"):
        assert "has too large an exponent for --decimal" in tally.fails("sum", "--decimal", stdin=word.encode())
    assert tally("sum", "--decimal", stdin=b"1e395 1e-396").strip("01.") == ""
    got = tally.json("sum", "--decimal", stdin=b"0.1\n0.2\n")
    assert (got["value"], got["bits"], got["dtype"], got["n"]) == ("0.3", None, "decimal", 2)
    assert "1e999 has too large an exponent for --decimal" in tally.fails("sum", "--decimal", stdin=b"1e999\n")


def test_decimal_of_many(tally):
    rng = np.random.default_rng(6)
    words = [f"{'-' if rng.random() < 0.5 else ''}{rng.integers(0, 10**15)}.{rng.integers(0, 10**9):09d}"[: rng.integers(3, 27)]
             for _ in range(5000)]
    words = [w for w in words if w[-1] != "-"]
    want = sum(map(Fraction, words))
    got = tally("sum", "--decimal", stdin=" ".join(words).encode())
    assert Fraction(got) == want and "e" not in got.lower()
    assert len(got.split(".")[1]) == max(len(w.partition(".")[2]) for w in words)
    assert Decimal(got) == Decimal(got)


def test_each_file(tally, tmp_path):
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("1 2 3\n")
    b.write_text("4\n")
    assert tally("sum", "--each", a, b) == f"{a}\t6\n{b}\t4\ntotal\t10"
    assert tally("min,max", "--each", a, a) == f"file\tmin\tmax\n{a}\t1\t3\n{a}\t1\t3\ntotal\t1\t3"
    b.write_text("# nothing\n")
    assert tally("sum,count", "--each", b, a, b) == f"file\tsum\tcount\n{b}\t0\t0\n{a}\t6\t3\n{b}\t0\t0\ntotal\t6\t3"
    b.write_text("4\n")
    got = tally.json("prod", "--each", a, "-", stdin=b.read_bytes())
    assert got["value"] == 24.0 and got["n"] == 4
    assert [(g["file"], g["n"], g["value"]) for g in got["groups"]] == [(str(a), 3, 6.0), ("standard input", 1, 4.0)]


@pytest.mark.parametrize("name", ["i32", "u32", "i64", "u64"])
def test_sums_beyond_64_bits(tally, tmp_path, name):
    """By dot products where the sum of short integers could not get there."""
    info = np.iinfo(exact.dtype(name))
    rng = np.random.default_rng(3)
    for low, high, n in ((info.max - 99, info.max, 4000), (info.min, info.max, 5), (info.min, info.min // 2, 4000)):
        x = rng.integers(low, high, n, exact.dtype(name), endpoint=True)
        path = tmp_path / "x.npy"
        np.save(path, x)
        y = rng.integers(info.min, info.max, n, exact.dtype(name), endpoint=True)
        np.save(tmp_path / "y.npy", y)
        for op, files, want in (("sum", [path], sum(x.tolist())),
                                ("norm1", [path], sum(map(abs, x.tolist()))),
                                ("sumsq", [path], sum(v * v for v in x.tolist())),
                                ("dot", [path, path], sum(v * v for v in x.tolist())),
                                ("dot", [path, tmp_path / "y.npy"], sum(v * w for v, w in zip(x.tolist(), y.tolist())))):
            assert int(tally(op, *files)) == want, op
            assert float(tally(op, "--out", "f64", *files)) == float(want), op
        every = ["count", "mean", "nans", "norm1", "min", "sumsq", "norm2", "argmax", "std", "sum", "nonzero", "xor", "var"]
        whole = {"sum": sum(x.tolist()), "norm1": sum(map(abs, x.tolist())), "sumsq": sum(v * v for v in x.tolist())}
        for ops in [every[:9], every[-9:], *([a, b] for a in every for b in whole if a != b and n == 5)]:
            got = dict(line.split("\t") for line in tally(",".join(ops), path).splitlines())
            assert {op: int(got[op]) for op in ops if op in whole} == {op: whole[op] for op in ops if op in whole}
            listed = tally.json(",".join(ops), path)
            for op, value, bits in zip(ops, listed["value"], listed["bits"]):
                if op in whole:
                    assert int(value) == whole[op] and isinstance(value, str) == (bits is None) == (
                        not -2**63 * (name[0] == "i") <= whole[op] < (2**63 if name[0] == "i" else 2**64)), ops
        got = dict(line.split("\t") for line in tally("dot,sumsq,sum,norm1", path, path).splitlines())
        assert {op: int(v) for op, v in got.items()} == whole | {"dot": whole["sumsq"]}
    assert tally("prod,sum", "--text", "--dtype", "i64", stdin=b"9223372036854775807 2") == (
        "prod\tnone\nsum\t9223372036854775809"), "a product is none"
    assert "sum     36893488147419103230\n" in tally(
        "describe", "--text", "--dtype", "u64", stdin=b"18446744073709551615 18446744073709551615")
    assert tally("sum,max", "-c", "2", "--by", "1", "--text", "--dtype", "i64", stdin=b"a,9223372036854775807\nb,1\na,1\n") == (
        "1\tsum\tmax\na\t9223372036854775808\t9223372036854775807\nb\t1\t1")
    assert tally("sum", "--text", "--dtype", "u64", "--out", "f64", stdin=b"18446744073709551615 18446744073709551615") == (
        "3.6893488147419103e+19")
    got = tally.json("sum", "--text", "--dtype", "i64", stdin=b"9223372036854775807 1")
    assert (got["value"], got["bits"]) == ("9223372036854775808", None)


@pytest.mark.parametrize("alias, name", [
    ("float32", "f32"), ("double", "f64"), ("<f4", "f32"), ("F32", "f32"), ("<i8", "i64"), ("i8", "i8"), ("uint16", "u16"),
    ("=u8", "u64"), ("half", "f16"), ("bfloat16", "bf16"), ("INT64", "i64"), ("|u1", "u8"), ("f8", "f64")])
def test_type_aliases(tally, alias, name):
    assert tally.json("count", "--raw", "--dtype", alias, stdin=b"")["dtype"] == name


def test_types_that_are_none(tally):
    assert "raw elements have this machine's byte order" in tally.fails("sum", "--dtype", ">f4", status=2)
    for text in ("", "f", "f65", "complex64", "<bf16x", "x" * 100):
        assert "--dtype takes one of i8 i16" in tally.fails("sum", "--dtype", text, status=2)


WIDE = b"""city,year,price,quantity
Rome,2020,1.5,2
"New York, NY",2019,2.25,3
Rome,2020,0.125,1
Rome,2019,-4,5
10,9,1,1
9,10,1,NA
"""


def test_several_columns(tally):
    table = b"".join(line + b"\n" for line in WIDE.splitlines()[:-1])
    assert tally("sum", "-c", "price,quantity", stdin=table) == "price\t0.875\nquantity\t12"
    assert tally("sum,count", "-c", "quantity,price", stdin=table) == (
        "column\tsum\tcount\nquantity\t12\t5\nprice\t0.875\t5")
    assert tally("max", "-c", "3,4", "--header", stdin=table) == "3\t2.25\n4\t5"
    assert tally("sum", "--decimal", "-c", "price,quantity", stdin=table) == "price\t0.875\nquantity\t12"
    assert tally.fails("sum", "-c", "price,price", stdin=table) == "-c names column price twice"
    got = tally.json("sum", "-c", "price,quantity", stdin=table)
    assert [(g["column"], g["n"], g["value"]) for g in got["groups"]] == [("price", 5, 0.875), ("quantity", 5, 12)]
    assert tally("sum", "-c", "price,quantity", "--skip-na", stdin=WIDE) == "price\t1.875\nquantity\t12"
    assert tally("sum", "-c", "price,quantity", stdin=WIDE[:25]) == "price\t0\nquantity\t0", "no rows"
    assert tally.fails("sum", "-c", "price,quantity", stdin=WIDE) == (
        "standard input:7: column quantity has no number, but 'NA'; --skip-na leaves such rows out")
    assert tally.fails("sum", "-c", "price,quantiti", stdin=WIDE) == (
        "standard input has no column quantiti; did you mean quantity?")
    assert tally.fails("sum", "-c", "1,7", stdin=b"1,2\n") == "standard input:1: the line has 2 fields, and no column 7"
    for text in ("", ",", "a,", ",a", "a,,b", ",".join("a" * 65)):
        assert tally.fails("sum", "-c", text, status=2).startswith("-c takes up to 64 names or numbers of columns")
        assert tally.fails("sum", "-c", "a", "--by", text, status=2).startswith("--by takes up to 64 names")


def test_sorted_keys_have_the_marks_of_numbers(tally):
    run = lambda keys, *marks: [line.split("\t")[0] for line in tally(
        "count", "-c", "2", "--by", "1", "--sort", "-F", ";", *marks, stdin="".join(f"{k};1\n" for k in keys).encode()).splitlines()]
    assert run(["10,2", "9", "1,5", "-3"], "--decimal-mark", ",") == ["-3", "1,5", "9", "10,2"]
    assert run(["1.000", "9", "200", "1.000,5"], "--decimal-mark", ",", "--thousands", ".") == ["9", "200", "1.000", "1.000,5"]
    assert run(["10,2", "9", "1,5", "x"], "--decimal-mark", ",") == ["1,5", "10,2", "9", "x"]
    assert run(["10,2", "9", "1,5"]) == ["1,5", "10,2", "9"]


def test_sorted_keys_that_doubles_cannot_tell_apart(tally):
    """Neighbours beyond 2^53, numbers of many digits and those beyond a double: sorted by exact value, equal ones by their bytes."""
    run = lambda keys: tally("count", "-c", "v", "--by", "k", "--sort", stdin="\n".join(["k,v", *(f"{k},1" for k in keys)]).encode()).split("\n")
    rng = random.Random(1)
    for keys in ([-2**53 - 1, -2**53], [2**64 + i for i in range(-9, 10)], [-10**30 - 1, -10**30, 10**30, 10**30 + 1],
                 ["-inf", "-1e999", "-1", "0", "+1.00000000000000000001", "1.00000000000000000002", "99e398", "1e400", "2e400", "inf"],
                 ["0", "9007199254740992", "9007199254740992.0", "9.0071992547409921e15", "009007199254740993"]):
        shuffled = rng.sample(keys, len(keys))
        assert run(shuffled) == [f"{k}\t1" for k in keys], shuffled


def test_keys_of_several_columns(tally):
    assert tally("sum", "-c", "price", "--by", "city,year", stdin=WIDE) == (
        "Rome\t2020\t1.625\nNew York, NY\t2019\t2.25\nRome\t2019\t-4\n10\t9\t1\n9\t10\t1")
    assert tally("sum,count", "-c", "price,quantity", "--by", "year,city", "--sort", "--skip-na", stdin=WIDE) == "\n".join([
        "year\tcity\tcolumn\tsum\tcount", "9\t10\tprice\t1\t1", "9\t10\tquantity\t1\t1", "10\t9\tprice\t1\t1",
        "10\t9\tquantity\t0\t0", "2019\tNew York, NY\tprice\t2.25\t1", "2019\tNew York, NY\tquantity\t3\t1",
        "2019\tRome\tprice\t-4\t1", "2019\tRome\tquantity\t5\t1", "2020\tRome\tprice\t1.625\t2",
        "2020\tRome\tquantity\t3\t2"])
    got = tally.json("sum", "-c", "price", "--by", "city,year", stdin=WIDE)
    assert got["groups"][0]["key"] == ["Rome", "2020"] and "column" not in got["groups"][0]
    # Fields are apart: "a" and "bc" is another key than "ab" and "c".
    assert tally("sum", "-c", "3", "--by", "1,2", stdin=b"a,bc,1\nab,c,2\na,bc,4\n,,8\n") == "a\tbc\t5\nab\tc\t2\n\t\t8"


def test_dot_of_two_columns(tally, tmp_path):
    rng = np.random.default_rng(7)
    x, y, key = rng.standard_normal(30_000), rng.standard_normal(30_000), rng.integers(0, 7, 30_000)
    path = tmp_path / "xy.csv"
    path.write_text("x,k,y\n" + "".join(f"{a!r},{k},{b!r}\n" for a, k, b in zip(x.tolist(), key.tolist(), y.tolist())))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    want = tally("dot", tmp_path / "x.npy", tmp_path / "y.npy")
    assert tally("dot", "-c", "x,y", path) == tally("dot", "-c", "1,3", "--header", path) == want
    lines = []
    for k in sorted(set(key.tolist())):
        np.save(tmp_path / "a.npy", x[key == k])
        np.save(tmp_path / "b.npy", y[key == k])
        lines.append(f"{k}\t{tally('dot', tmp_path / 'a.npy', tmp_path / 'b.npy')}")
    assert tally("dot", "-c", "x,y", "--by", "k", "--sort", path) == "\n".join(lines)
    assert tally("dot", "-c", "1,2", "--skip-na", stdin=b"1,2\nNA,3\n4,\n5,6\n") == "32"
    assert tally.fails("dot", "-c", "1,2", stdin=b"1,2\n4,x\n") == "standard input:2: 'x' in column 2 is no f64 number"
    for text in ("1", "1,2,3"):
        assert tally.fails("dot", "-c", text, status=2) == "dot takes two columns of a table, as in -c price,quantity"


# ---- Tables of many pieces, by several threads ----


THREADS = (1, 2, 3, 8)


def many_rows(rng, quoted):
    """Rows whose keys have line ends, quotes, blanks and delimiters in them; about 2 MB."""
    rows = []
    for n in range(60_000):
        kind = rng.integers(0, 40)
        key = {0: "a\n" * int(rng.integers(1, 6)), 1: 'q"q', 2: "p,l", 3: "x" * int(rng.integers(0, 60)), 4: "c\r" if quoted else "c"}.get(kind, f"k{kind}")
        rows.append([key, f"{rng.integers(-10**6, 10**6) / 100:.2f}", "y" * int(rng.integers(0, 30))])
    out = io.StringIO()
    csv.writer(out, lineterminator=("\n", "\r\n")[int(rng.integers(0, 2))],
               quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL).writerows(rows)
    return out.getvalue().encode()


def test_many_keys(tally, tmp_path):
    """Thousands of keys, some of which have long runs of rows: each has what its own rows give."""
    rng = np.random.default_rng(seed := int.from_bytes(os.urandom(4), "little"))
    keys = np.concatenate([rng.integers(0, 9000, 40_000), np.zeros(20_000, int), rng.integers(0, 9000, 60_000), np.full(9000, 7)])
    x = np.round(rng.normal(size=keys.size) * 1000) / 8
    path = tmp_path / "t.csv"
    path.write_text("k,x\n" + "".join(f"{k},{v!r}\n" for k, v in zip(keys.tolist(), x.tolist())))
    rows = {}
    for key, value in zip(keys.tolist(), x.tolist()):
        rows.setdefault(key, []).append(value)
    for threads in THREADS[:2]:
        lines = tally("sum,argmax,count", "-c", "x", "--by", "k", "--threads", threads, path).splitlines()[1:]
        got = [line.split("\t") for line in lines]
        assert [int(key) for key, *_ in got] == list(rows), seed
        for key, total, at, count in got:
            own = rows[int(key)]
            assert (float(total), int(at), int(count)) == (math.fsum(own), int(np.argmax(own)), len(own)), (seed, key)


@pytest.mark.parametrize("quoted", [False, True])
def test_tables_by_several_threads(tally, tmp_path, quoted):
    rng = np.random.default_rng(seed := int.from_bytes(os.urandom(4), "little"))
    data = many_rows(rng, quoted)
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    sums, last = {}, {}
    for key, price, _ in csv.reader(io.StringIO(data.decode(), newline="")):
        sums[key] = sums.get(key, 0) + Fraction(price)
        last.setdefault(key, []).append(float(price))
    shown = lambda key: key.replace("\n", "\\n").replace("\r", "\\r")
    for threads in THREADS:
        got = [line.split("\t") for line in tally("sum", "--decimal", "-c", 2, "--by", 1, "--threads", threads, path).splitlines()]
        assert [(k, Fraction(v)) for k, v in got] == [(shown(k), v) for k, v in sums.items()], (seed, threads)
        got = [line.split("\t") for line in tally("argmax", "-c", 2, "--by", 1, "--threads", threads, stdin=data).splitlines()]
        assert [(k, int(v)) for k, v in got] == [(shown(k), int(np.argmax(v))) for k, v in last.items()], (seed, threads)
    line = data.count(b"\n") + 1
    path.write_bytes(data + b"z,1.x,\n" + data)
    for threads in THREADS:
        assert tally.fails("sum", "-c", 2, "--threads", threads, path) == f"{path}:{line}: '1.x' in column 2 is no f64 number", (
            seed, threads)


QUOTES = [  # a field as written, and its text
    ('"a"', "a"), (' "a" ', "a"), ('" a "', " a "), ('"a,b"', "a,b"), ('""', ""), ('" "', " "), ('"a""b"', 'a"b'), ('""""', '"'),
    ('a"b', 'a"b'), ('a"b"', 'a"b"'), ('"a\nb"', "a\\nb"), ('"a\r\n,"', "a\\r\\n,"),
    ('"12345678"', "12345678"), ('"' + "1234567," * 3 + '"', "1234567," * 3), (' a b ', "a b"), ("", ""),
]


@pytest.mark.parametrize("field, text", QUOTES)
def test_quotes(tally, field, text):
    """Fields before, at and behind those that are needed: in a line among others, and in one without an end."""
    numbers = ('7', '"7"', ' "7" ')
    first = [f"{field},{n}{rest}" for n in numbers for rest in (',"x"', "", f",{field}")]
    for rows, args, key in ((first, ("-c", 2, "--by", 1), f"{text}\t"), ([f"{n},{field}" for n in numbers], ("-c", 1), ""),
                            ([f"{field},k,{n}" for n in numbers], ("-c", 3, "--by", 2), "k\t")):
        for end in ("\n", "\r\n"):
            assert tally("sum", *args, stdin="".join(row + end for row in rows).encode()) == f"{key}{7 * len(rows)}", (rows, end)
        for row in rows:
            assert tally("sum", *args, stdin=row.encode()) == f"{key}7", row


PIECE = 1 << 18


ACROSS = [
    (b'1,2\n"' + b"x\n" * 700_000 + b'",5\n3,4\n', "11"),
    (b'1,2\n"' + b"x\n" * 700_000 + b'",5\n3,z\n', "standard input:700003: 'z' in column 2 is no f64 number"),
    (b"1,2\n" * 100_000 + b'3,"4\n' + b"5,6\n" * 300_000, "standard input:100001: a quote is opened in this line and not closed"),
    (b"1,2\r" * 500_000, "1000000"),
    (b"1,2\r\r\n" * 100_000, "200000"),
    (b"0,1," + b"z" * 3_000_000 + b"\n2,3\n" + b" " * 3_000_000 + b"\n4,5", "9"),
    (b"0,1," + b",".join([b"7"] * (1 << 20)) + b"\n2,3", "4"),
    (b"1,2\n" * 200_000 + b"3\n1,2\n", "standard input:200001: the line has 1 field, and no column 2"),
    (b"1,2\n" * 200_000 + b"3,4\0\n", "standard input:200001: '4\\x00' in column 2 is no f64 number"),
] + [(b"1,2\n" * (PIECE // 4 - 2) + b'"' + b"k" * (6 + k) + b'\n",5\n' + b"1,2\n" * 1000, str(2 * (PIECE // 4 + 998) + 5))
     for k in range(-4, 5)]


@pytest.mark.parametrize("case", range(len(ACROSS)))
def test_rows_across_pieces(tally, case):
    data, want = ACROSS[case]
    for threads in THREADS:
        done = tally.run("sum", "-c", 2, "--threads", threads, stdin=data)
        assert (done.stdout + done.stderr).decode() == ("" if want.isdigit() else "tally: ") + want + "\n", threads


def test_a_header_across_pieces(tally):
    for threads in THREADS:
        assert tally("sum", "-c", "b", "--threads", threads, stdin=b'\n\na,b,"' + b"h\n" * 700_000 + b'"\n1,2,3\n4,5,6\n') == "7"
        assert tally.fails("sum", "-c", "b", "--threads", threads, stdin=b'\n\na,b,"' + b"h\n" * 700_000) == (
            "standard input:3: a quote is opened in this line and not closed")


def test_a_delimiter_that_numbers_have(tally):
    for delimiter in ".5e- ":
        table = f"a{delimiter}7{delimiter}8\na{delimiter}12{delimiter}9\n".encode()
        assert tally("sum", "-c", 2, "-F", delimiter, stdin=table) == "19"
        assert tally("sum", "-c", 2, "-F", delimiter, "--decimal", stdin=table) == "19"
