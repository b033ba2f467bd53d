"""Missing values, at every door: words of a text, cells of a table, NaN in an array and in parts of it. The oracle is NumPy's
functions that leave NaN out, of whole numbers, whose sums are exact."""

import os

import numpy as np
import pytest

WORDS = ["NA", "N/A", "#N/A", "#NA", "<NA>", "\\N", "null", "NULL", "None", "-", "nan", "NaN", "-nan", "-nan(ind)", "nan(0x8000)",
         "1.#QNAN", "-1.#IND", "1.#QNAN0", "NaT"]


def a_seed():
    return int(os.environ.get("TALLY_SEED", 0)) or int.from_bytes(os.urandom(4), "little")


@pytest.mark.parametrize("word", WORDS)
def test_words(tally, word):
    """In a text, and in a table bare, in blanks and in quotes; of any type, and of decimals."""
    for args in ((), ("--dtype", "i32", "--text"), ("--dtype", "f16", "--text"), ("--decimal",)):
        assert tally("sum", "--skip-na", *args, stdin=f"1\n{word}\n2 {word} 4\n".encode()) == "7", args
        for cell in (word, f" {word} ", f'"{word}"', f'" {word} "'):
            table = f"k,v\na,1\nb,{cell}\nc,2\n{cell},4\n".encode()
            assert tally("sum", "-c", "v", "--skip-na", *args, stdin=table) == "7", (cell, args)
            assert tally("sum", "-c", "2", "--skip-na", "--no-header", *args, stdin=table[4:]) == "7"
    assert tally("count", "-c", "v", "--skip-na", "-F", "blank", stdin=f"k v\na 1\nb {word}\n".encode()) == "1"
    if "nan" not in word.lower():
        assert "--skip-na leaves such" in tally.fails("sum", stdin=f"1\n{word}\n".encode())
        assert "--skip-na leaves such" in tally.fails("sum", "-c", "v", stdin=f"v,k\n1,a\n{word},b\n".encode())


def test_excel_words_open_no_comment(tally):
    assert tally("sum", "-c", "2", stdin=b"#N/A,7\n#comment,9\n#N/A's,9\n5,3\n") == "10"
    assert tally.fails("sum", "-c", "1", stdin=b"#N/A,7\n5,3\n").startswith("standard input:1: column 1 has no number, but '#N/A'")
    assert "'#DIV/0!' is no f64 number" in tally.fails("sum", stdin=b"1\n#DIV/0!\n")


def test_words_of_ones_own(tally):
    assert tally("sum", "--na", ".,?", stdin=b"1\n. ? NA\n3\n") == "4"
    table = b"d,v\na,-9999\nb,-9999.0\nc,1.5\nd,-9.999e3\ne,\n"
    for extra in ((), ("--dtype", "f32", "--text"), ("--decimal-mark", ".")):
        assert tally("sum,count", "-c", "v", "--na", "-9999", *extra, stdin=table) == "sum\t1.5\ncount\t1"
    assert tally("sum", "--decimal", "-c", "v", "--na=-9999", stdin=table.replace(b"e3", b"e0").replace(b"-9.999e0", b"2")) == "3.5"
    assert tally("sum", "--decimal", "--na", "9.50,x", stdin=b"9.5 9.500 1 x 9.51") == "10.51"
    assert tally("sum", "--na", "0", stdin=b"-0 0.0 3") == "3"
    assert tally("sum", "--text", "--dtype", "i64", "--na", "-9999,9007199254740993", stdin=b"-9999 9007199254740992 9007199254740993") == (
        "9007199254740992")
    assert tally("sum", "-c", "v", "--na", '"a,b",c', stdin=b'v\n"a,b"\nc\n1\n') == "1"
    assert tally("mean", "-c", "v", "--by", "k", "--na", ".", stdin=b"k,v\na,1\na,.\nb,2\n") == "a\t1\nb\t2"
    assert "--na '?' leaves such words out" in tally.fails("sum", "-c", "1", stdin=b"1,2\n?,3\n")
    assert "--na takes words" in tally.fails("sum", "--na", "a,,b", status=2)


@pytest.fixture
def array(tmp_path):
    """Whole numbers with NaN among them: a function that makes them, saved."""
    rng = np.random.default_rng(seed := a_seed())
    print("seed", seed)

    def make(shape, type="f8", name="x", part=0.2):
        x = rng.integers(-1000, 1000, shape).astype(type)
        if np.dtype(type).kind == "f":
            x[rng.random(shape) < part] = np.nan
        np.save(tmp_path / f"{name}.npy", x)
        return x, tmp_path / f"{name}.npy"

    return make


@pytest.mark.parametrize("type", ["f2", "f4", "f8", ">f4", ">f8"])
def test_arrays(tally, array, type):
    x, path = array(3001, type)
    v = x[~np.isnan(x)].astype("f8")
    want = {"count": v.size, "nans": 0, "min": v.min(), "max": v.max(), "argmin": np.nanargmin(x), "argmax": np.nanargmax(x), "mean": v.mean()}
    ops = ",".join(want)
    raw = x.astype(x.dtype.newbyteorder("=")).tobytes()
    name = f"f{x.dtype.itemsize * 8}"
    for args, data in (((path,), b""), ((), path.read_bytes()), (("--dtype", name, "--raw"), raw), (("--dtype", name), raw)):
        got = dict(line.split("\t") for line in tally(ops, "--skip-na", "--out", "f64", *args, stdin=data).splitlines())
        assert {k: float(t) for k, t in got.items()} == want, args
    assert tally.json("sum", "--skip-na", path)["n"] == v.size
    assert float(tally("sum", "--skip-na", "--out", "f64", path)) == v.sum()
    assert tally("sum", path) == "nan"


def test_indexes_count_all_elements(tally, tmp_path):
    """Over runs, over files, with ties, and where nothing is left."""
    x = np.full(1_200_000, np.nan)
    for places in ([700_000, 1_100_000], [3], [524_288], [1_199_999], [0, 5]):
        x[:] = np.nan
        x[places] = 7.0
        x[places[0] - 1 : places[0]] = 8
        np.save(tmp_path / "a.npy", x)
        np.save(tmp_path / "n.npy", x[:0] if places == [3] else np.full(10, np.nan))
        before = len(np.load(tmp_path / "n.npy"))
        assert tally("argmin", "--skip-na", tmp_path / "a.npy") == str(places[0])
        assert tally("argmax", "--skip-na", tmp_path / "n.npy", tmp_path / "a.npy") == str(before + int(np.nanargmax(x)))
        got = tally.json("argmin,argmax", "--skip-na", "--each", tmp_path / "a.npy", tmp_path / "n.npy", tmp_path / "a.npy")
        assert got["value"] == [places[0], int(np.nanargmax(x))]
        assert [g["value"] for g in got["groups"]][2] == got["value"]
    assert "no argmin of nothing" in tally.fails("argmin", "--skip-na", tmp_path / "n.npy")
    assert tally("sum,count", "--skip-na", tmp_path / "n.npy") == "sum\t0\ncount\t0"


def test_numbers_that_are_missing_in_arrays(tally, array, tmp_path):
    x, path = array(5000, "i2")
    x[::3] = -9999
    np.save(path, x)
    v = x[x != -9999].astype(int)
    assert tally("sum,count,argmin", "--na", "-9999", path) == f"sum\t{v.sum()}\ncount\t{v.size}\nargmin\t{np.where(x == -9999, 9999, x).argmin()}"
    assert tally("sum", "--na", "-9999", "--dtype", "i16", "--raw", stdin=x.tobytes()) == str(v.sum())
    np.save(path, x.reshape(50, 100))
    masked = np.ma.masked_equal(x.reshape(50, 100).astype(int), -9999)
    assert tally("sum", "--na", "-9999", "--axis", "0", path).split() == [str(s) for s in masked.sum(0)]
    assert tally("sum", "--skip-na", path) == str(int(x.astype(int).sum())), "integers are all there"


def test_pairs(tally, array):
    (x, a), (y, b) = array(4000, name="x"), array(4000, name="y")
    there = ~np.isnan(x) & ~np.isnan(y)
    want = str(int((x[there] * y[there]).sum()))
    assert tally("dot", "--skip-na", a, b) == tally("dot", "--skip-na", a, "-", stdin=b.read_bytes()) == want
    text = "\n".join(map(str, y.tolist())).encode()
    assert "leaves out pairs" in tally.fails("dot", "--skip-na", a, "-", stdin=text)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("axis", ["0", "1", "2", "0,2", "1,2", "0,1,2"])
def test_axes(tally, array, tmp_path, order, axis):
    x, path = array((7, 30, 11), part=0.5)
    for some in (x[0], x[:, 0], x[:, :, 0]):  # no part is without any
        some[...] = np.nan_to_num(some)
    np.save(path, np.asarray(x, order=order))
    axes = tuple(map(int, axis.split(",")))
    for op, there in (("sum", np.nansum), ("max", np.nanmax), ("count", lambda v, axis: (~np.isnan(v)).sum(axis))):
        want = [float(v) for v in np.ravel(there(x, axis=axes))]
        for args, data in (((path,), b""), ((), path.read_bytes())):
            got = [float(v) for v in tally(op, "--skip-na", "--axis", axis, *args, stdin=data).split()]
            assert got == want, (op, args)
    y, other = array((7, 30, 11), name="y", part=0.3)
    assert [float(v) for v in tally("dot", "--skip-na", "--axis", axis, path, other).split()] == (
        np.ravel(np.nansum(x * y, axis=axes)).tolist()) if order == "C" else True
    keep = np.random.default_rng(1).integers(0, 2, x.shape).astype("u1")
    np.save(tmp_path / "m.npy", np.asarray(keep, order=order))
    want = np.ravel(np.nansum(np.where(keep, x, np.nan), axis=axes)).tolist()
    assert [float(v) for v in tally("sum", "--skip-na", "--axis", axis, "--mask", tmp_path / "m.npy", path).split()] == want
    if len(axes) == 1:
        assert tally("argmin", "--skip-na", "--axis", axis, path).split() == [str(v) for v in np.ravel(np.nanargmin(x, axis=axes[0]))]


def test_segments_groups_and_masks(tally, array, tmp_path):
    x, path = array(6000)
    there = ~np.isnan(x)
    lines = lambda values: "\n".join(str(int(v)) for v in values)
    for args, data in (((path,), b""), ((), path.read_bytes())):
        assert tally("sum", "--skip-na", "--segments", 100, *args, stdin=data) == lines(np.nansum(x.reshape(60, 100), 1))
        offsets = np.array([0, 10, 10, 2000, 6000])
        np.save(tmp_path / "o.npy", offsets)
        want = [np.nansum(x[a:b]) for a, b in zip(offsets, offsets[1:])]
        assert tally("sum", "--skip-na", "--segments", tmp_path / "o.npy", *args, stdin=data) == lines(want)
        ids = np.random.default_rng(2).integers(0, 9, 6000)
        x_only = x.copy()
        np.save(tmp_path / "i.npy", ids)
        want = "\n".join(f"{k}\t{int(np.nansum(x_only[ids == k]))}" for k in range(9))
        assert tally("sum", "--skip-na", "--by", tmp_path / "i.npy", *args, stdin=data) == want
        keep = np.random.default_rng(3).integers(0, 2, 6000).astype(bool)
        np.save(tmp_path / "m.npy", keep)
        assert tally("count,sum", "--skip-na", "--mask", tmp_path / "m.npy", *args, stdin=data) == (
            f"count\t{(there & keep).sum()}\nsum\t{int(x[there & keep].sum())}")
    ids = np.where(np.arange(6000) < 50, 3, 0)
    x[:50] = np.nan
    np.save(path, x)
    np.save(tmp_path / "i.npy", ids)
    assert tally("max", "--skip-na", "--by", tmp_path / "i.npy", path) == f"0\t{int(np.nanmax(x))}", "a group of nothing is left out"
    text = "\n".join(map(str, x.tolist())).encode()
    assert "--skip-na in parts is for .npy files" in tally.fails("sum", "--skip-na", "--segments", 100, stdin=text)
    np.save(tmp_path / "m.npy", np.asfortranarray(np.ones((60, 100), bool)))
    np.save(path, x.reshape(60, 100))
    assert "is in Fortran's order and" in tally.fails("sum", "--skip-na", "--axis", 0, "--mask", tmp_path / "m.npy", path)


def test_keys_without_a_number(tally):
    """A key of which nothing is left has sums and counts, but no extremes."""
    table = b"k,v\na,1\nb,NA\na,3\nb,\n"
    run = lambda op, *args: tally(op, "-c", "v", "--by", "k", "--skip-na", *args, stdin=table)
    assert run("sum") == "a\t4\nb\t0" and run("count") == "a\t2\nb\t0" and run("mean") == "a\t2\nb\tnan"
    for op, want in (("min", "1"), ("max", "3"), ("argmin", "0"), ("argmax", "1")):
        assert run(op) == f"a\t{want}"
        assert [g["key"] for g in tally.json(op, "-c", "v", "--by", "k", "--skip-na", stdin=table)["groups"]] == ["a"]
    assert run("minmax") == "k\tmin\tmax\na\t1\t3" and run("min", "--sort") == "a\t1"
    assert run("count,min,argmax") == "k\tcount\tmin\targmax\na\t2\t1\t1\nb\t0\tnone\tnone"
    assert run("max", "--dtype", "i8", "--text") == "a\t3"
    assert tally.json("sum,max", "-c", "v", "--by", "k", "--skip-na", stdin=table)["groups"][1]["value"] == [0, None]
    done = tally.run("min", "-c", "v", "--by", "k", "--na", "1,3", stdin=table)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_exact_decimals_that_are_missing(tally):
    """--decimal compares the numbers of --na by exact value: with exponents, and of any length."""
    run = lambda na, text: tally("sum", "--decimal", f"--na={na}", stdin=text.encode())
    for word in ("-9.999e3", "-9999.000", "-00009999", "-.9999D4", "-99990000e-4", "-9999." + "0" * 40):
        assert run("-9999", f"1 {word} 2") == "3", word
        assert run(word, "1 -9999 2") == "3", word
        assert run(word, "1 -9999.5 9999 2") == "2.5", word
    long = "12345678901234567890.12345678901234567890"
    assert run(long, f"1 {long[:-1]} 2") == "3"
    assert run(long[:-2], f"1 {long[:-2]}00 2") == "3"
    assert run(long + "1", f"{long}") == long
    assert run("0e5", "-0.00 0 3") == "3"
    assert run("1e400,nan,x", "1 x 2") == "3"


def test_integers_that_are_missing_are_whole_decimals(tally, tmp_path):
    """Integers equal the numbers of --na by value, in texts and arrays; numbers that are not whole or do not fit equal none."""
    run = lambda type, na, text: tally("sum,count", "--dtype", type, "--text", f"--na={na}", stdin=text.encode()).replace("count\t", "").split()
    for word in ("-9999.0", "-9999.", "-9.999e3", "-99990e-1", "-0009999", "-.9999D4"):
        assert run("i32", word, "1 -9999 2") == ["sum", "3", "2"], word
        np.save(tmp_path / "x.npy", np.array([1, -9999, 2], "i2"))
        assert tally("sum", f"--na={word}", tmp_path / "x.npy") == "3", word
    assert run("i64", "1e18", f"1 {10**18} 2") == ["sum", "3", "2"]
    assert run("i64", "-9223372036854775808.0,9.223372036854775807e18", f"{-2**63} {2**63 - 1} 2") == ["sum", "2", "1"]
    assert run("u64", "18446744073709551615.0", f"{2**64 - 1} 2") == ["sum", "2", "1"]
    assert run("u8", "-0.0", "0 2") == ["sum", "2", "1"]
    for word in ("1.5", "0.1e-3", "257", "-255", "1e30", "1e400", "nan", "inf"):
        assert run("u8", word, "1 2 0") == ["sum", "3", "3"], word
    for word in ("0x10", "0X10", "+0x010", "0x1p4", "0x.1p8", "0x1.0p+4", "0x0000000000000000000010"):
        for type in ("i8", "u64", "f32"):
            assert run(type, word, "16 2") == ["sum", "2", "1"], (word, type)
        assert tally("sum", f"--na={word}", "--decimal", stdin=b"16.0 2") == "2", word
        assert tally("sum", "-c", "v", f"--na={word}", "--decimal-mark", ",", "--thousands", ".", "--dtype", "i64", stdin=b"k;v\na;16\nb;2\n") == "2"
    assert run("u64", "0xffffffffffffffff", f"{2**64 - 1} 2") == ["sum", "2", "1"]
    assert run("i64", "-0x8000000000000000,0xffffffffffffffff", f"{-2**63} -1 2") == ["sum", "1", "2"]
    assert tally("sum", "--na=-0x1.8p-1,0x1p70", "--decimal", stdin=f"-0.750 {2**70} 2".encode()) == "2"
    assert tally("sum", "--na=0x1.00000000000001p60", "--dtype", "i64", "--text", stdin=f"{2**60} 2".encode()) == str(2**60 + 2)
    for tiny in ("0x1p-2000", "0x0.1p-1073"):
        assert run("i32", tiny, "0 2") == ["sum", "2", "2"], tiny
    assert run("i32", "0x0p-5", "0 2") == ["sum", "2", "1"]
    np.save(tmp_path / "x.npy", np.array([16, 2], "u2"))
    assert tally("sum", "--na", "0x10", tmp_path / "x.npy") == "2"
    np.save(tmp_path / "x.npy", np.array([1, 10**18, 2]))
    assert tally("sum", "--na", "1e18", tmp_path / "x.npy") == "3"


def test_missing_numbers_beyond_a_type_equal_no_infinity_and_no_zero(tally, tmp_path):
    for type, large, small in (("f16", "1e5", "1e-9"), ("bf16", "1e39", "1e-42"), ("f32", "1e39", "-1e-60"), ("f32", "0x1p200", "0x1p-200"),
                               ("f64", "-1e400", "0.1e-400"), ("f64", "1D400", "0x0.1p-2000")):
        run = lambda na, text: tally("sum,count", "--dtype", type, "--text", f"--na={na}", stdin=text.encode())
        assert run(large, "1 inf 2") == "sum\tinf\ncount\t3", (type, large)
        assert run(large, "1 -inf 2") == "sum\t-inf\ncount\t3", (type, large)
        assert run(small, "1 0 2") == "sum\t3\ncount\t3", (type, small)
        assert run(f"{large},{small},7", "1 7 2") == "sum\t3\ncount\t2"
        for word in ("inf", "+Infinity", "INF"):
            assert run(word, "1 inf 2") == "sum\t3\ncount\t2", (type, word)
        for word in ("-0", "0.00", "0e5", ".0D-3", "0x0p1", "0x0"):
            assert run(word, "1 0 2") == "sum\t3\ncount\t2", (type, word)
    np.save(tmp_path / "x.npy", np.array([1, np.inf, 0], "f4"))
    assert tally("sum,count", "--na", "1e39,1e-60", tmp_path / "x.npy") == "sum\tinf\ncount\t3"


def test_numbers_of_na_have_the_marks_of_numbers(tally):
    table = b"k;v\na;-9.999,90\na;-99,90\na;-9999,9\na;9\n"
    marks = ("--decimal-mark", ",", "--thousands", ".")
    for decimal in ((), ("--decimal",)):
        run = lambda na: float(tally("sum", "-c", "v", "--na", na, *decimal, *marks, stdin=table))
        assert run('"-99,9"') == run("-99.9") == -19990.8
        assert run('"-9.999,9"') == run("-9999.9") == run('"-9999,90"') == -90.9
        assert run("9.0") == -20099.7
    assert tally("sum", "--decimal-mark", ",", "--na", '"-1,5"', stdin=b"-1,50 2") == "2"
    for na in ("-99,9", "NA,-99,9", "1,5"):
        line = tally.fails("sum", "-c", "v", "--na", na, *marks, stdin=table, status=2)
        one, other = na.split(",")[-2:]
        assert line == f"--na {one},{other} may have one number or two; put '\"{one},{other}\"' for one, or '\"{one}\",{other}' for two"
    for na in ('"-99",9', "NA,9", "9,x"):
        assert tally("sum", "-c", "v", "--na", na, *marks, stdin=table) == "-20099.7"


def test_advice_on_numbers_without_marks(tally):
    for word in (b"inf", b"0x10"):
        assert tally.fails("sum", "-c", "v", "--decimal", stdin=b"v\n" + word).endswith(" is no decimal number")
