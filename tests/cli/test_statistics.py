"""Statistics: each against Python's fractions, through every kind of input; dot of two; several at once."""

import os
import resource
import subprocess
import threading
from fractions import Fraction
from math import isqrt

import exact
import numpy as np
import pytest

FLOATS = ["f16", "bf16", "f32", "f64"]
STATISTICS = ["mean", "var", "std", "norm1", "norm2", "norminf", "sumsq", "argmin", "argmax", "minmax",
              "count", "nans", "nonzero", "any", "all", "describe"]
DESCRIBED = ["count", "nans", "min", "max", "argmin", "argmax", "sum", "mean", "std"]


def numbers(name, array):
    return [exact.value(name, b) for b in exact.bits(array)]


def root(name, x):
    """The bits of the float nearest to the square root of the Fraction x: its bracket is far narrower
    than any float's spacing, and a root that is exact is found so."""
    scale = 1 << 2400
    n = x.numerator * scale * scale // x.denominator
    low = isqrt(n)
    exactly = low * low * x.denominator == x.numerator * scale * scale
    return exact.rounded(name, Fraction(low, scale) if exactly else Fraction(2 * low + 1, 2 * scale))


def want(op, name, array, ddof=0, other=None):
    """The type and the bits of a statistic of finite elements."""
    x = numbers(name, array)
    floating = name in FLOATS
    real = name if floating else "f64"
    wide = name if floating else name[0] + "64"
    n = len(x)
    finish = lambda r: exact.rounded(wide, r) if floating else int(r) & (2**64 - 1)
    squares = sum(v * v for v in x)
    if op == "mean":
        return real, exact.rounded(real, sum(x) / n)
    if op in ("var", "std"):
        v = (n * squares - sum(x) ** 2) / (n * (n - Fraction(ddof)))
        return real, exact.rounded(real, v) if op == "var" else root(real, v)
    if op == "norm2":
        return real, root(real, squares)
    if op in ("norm1", "sumsq", "norminf", "dot"):
        r = {"norm1": lambda: sum(map(abs, x)), "sumsq": lambda: squares,
             "norminf": lambda: max(map(abs, x)),
             "dot": lambda: sum(a * b for a, b in zip(x, numbers(name, other)))}[op]()
        return wide, finish(r)
    if op in ("sum", "min", "max"):
        return exact.result_type(op, name), exact.reduce(op, name, array)
    return ("u8" if op in ("any", "all") else "u64"), int(
        {"argmin": lambda: x.index(min(x)), "argmax": lambda: x.index(max(x)), "count": lambda: n,
         "nans": lambda: 0, "nonzero": lambda: sum(v != 0 for v in x), "any": lambda: any(x),
         "all": lambda: all(x)}[op]())


def check(tally, op, name, array, *args, ddof=0, **kwargs):
    got = tally.json(op, "--dtype", name, *args, **kwargs)
    parts = {"minmax": ["min", "max"], "describe": DESCRIBED}.get(op)
    assert (got["op"], got["dtype"], got["n"]) == (op, name, array.size)
    if not parts:
        assert int(got["bits"], 16) == want(op, name, array, ddof)[1]
        return
    assert got["ops"] == parts and len(got["value"]) == len(got["bits"]) == len(parts)
    for part, bits in zip(parts, got["bits"]):
        assert int(bits, 16) == want(part, name, array, ddof)[1], part


def small(name, n):
    """Elements whose squares add up within 64 bits."""
    array = exact.sample(name, n)
    shift = {4: 5, 8: 25}.get(exact.BYTES[name])
    return array >> shift if name in exact.INTEGERS and shift else array


@pytest.mark.parametrize("op", STATISTICS)
@pytest.mark.parametrize("name", exact.TYPES)
def test_every_statistic_of_every_type(tally, tmp_path, op, name):
    array = small(name, 333)
    path = tmp_path / "a.raw"
    path.write_bytes(array.tobytes())
    check(tally, op, name, array, path)
    check(tally, op, name, array, stdin=array.tobytes())
    if name != "bf16":
        np.save(tmp_path / "a.npy", array.astype(array.dtype.newbyteorder(">")))
        check(tally, op, name, array, tmp_path / "a.npy")


@pytest.mark.parametrize("op", STATISTICS)
def test_cuts_do_not_matter(tally, tmp_path, op):
    array = exact.sample("f32", 2000)
    paths = []
    for i, part in enumerate(np.split(array, [1, 700, 700, 1999])):
        paths.append(tmp_path / f"{i}.npy")
        np.save(paths[-1], part)
    check(tally, op, "f32", array, *paths)
    text = "\n".join(repr(float(x)) for x in array).encode()
    check(tally, op, "f32", array, "--text", stdin=text)


@pytest.mark.parametrize("ddof", ["0", "1", "2.5", "1e-3"])
def test_ddof(tally, ddof):
    array = exact.sample("f64", 50)
    for op in ("var", "std"):
        check(tally, op, "f64", array, "--ddof", ddof, ddof=float(ddof), stdin=array.tobytes())
    assert tally("var", "--ddof", 50, "--dtype", "f64", stdin=array.tobytes()) == "nan"
    line = tally.fails("mean", "--ddof", 1, stdin=b"", status=2)
    assert line == "--ddof goes with var, std and describe, not with mean"
    for bad in ("-1", "x", "", "nan", "inf"):
        assert "--ddof takes a finite number from 0 up" in tally.fails("var", f"--ddof={bad}", status=2)


def test_out_rounds_once(tally):
    array = exact.sample("f32", 99)
    for op in ("mean", "var", "std", "norm1", "norm2", "sumsq"):
        x = numbers("f32", array)
        got = tally.json(op, "--dtype", "f32", "--out", "f16", stdin=array.tobytes())
        if op == "mean":
            assert int(got["bits"], 16) == exact.rounded("f16", sum(x) / len(x))
        assert len(got["bits"]) == 6
    assert tally("sum", "--dtype", "u64", "--out", "f64", stdin=b"\xff" * 64) == str(float(8 * (2**64 - 1)))


def test_several_at_once(tally, tmp_path):
    array = np.array([3.0, 1, 4, 1, 5])
    np.save(tmp_path / "a.npy", array)
    assert tally("count,sum,mean,max", tmp_path / "a.npy") == "count\t5\nsum\t14\nmean\t2.8\nmax\t5"
    assert tally("minmax", tmp_path / "a.npy") == "min\t1\nmax\t5"
    got = tally.json("var,minmax,any", "--ddof", 1, tmp_path / "a.npy")
    assert got["op"] == "var,minmax,any" and got["ops"] == ["var", "min", "max", "any"]
    assert got["value"] == [3.2, 1.0, 5.0, 1]
    assert tally.json("sum", tmp_path / "a.npy").keys() == {
        "op", "dtype", "n", "value", "bits", "device", "seconds", "gbps"}
    for bad, words in (("sum,", "an operator is missing beside a comma"),
                       (",sum", "an operator is missing beside a comma"),
                       ("sum,average", "'average' is no operator; did you mean mean?"),
                       ("sum,frobnicate", "'frobnicate' is no operator; the operators are sum prod"),
                       (",".join(["sum"] * 10), "at most 9 operators")):
        assert words in tally.fails(bad, status=2)


def test_describe_is_a_table(tally):
    lines = tally("describe", "--text", stdin=b"3\n1\n4\n1\n5\n").splitlines()
    assert lines == ["count   5", "nans    0", "min     1", "max     5", "argmin  1", "argmax  4",
                     "sum     14", "mean    2.8", "std     1.6"]


def test_a_value_that_there_is_not(tally):
    args = ("--text", "--dtype", "i64")
    got = tally.json("count,prod", *args, stdin=b"9223372036854775807\n2\n")
    assert got["value"] == [2, None] and got["bits"][1] is None
    assert "argmin  none (of nothing)" in tally("describe", *args, stdin=b"").splitlines()
    for op in ("argmin", "argmax"):
        line = tally.fails(op, *args, stdin=b"")
        assert line == f"there is no {op} of nothing: the input holds no number"


def test_nan(tally):
    run = lambda op: tally(op, "--text", stdin=b"1\nnan\n-7\nnan\n0\n")
    assert [run(op) for op in ("nans", "count", "nonzero", "argmin", "argmax", "any", "all")] == [
        "2", "5", "4", "1", "1", "1", "0"]
    assert [run(op) for op in ("mean", "var", "norm1", "norm2", "norminf", "sumsq")] == ["nan"] * 6


# ---- dot ----


def check_dot(tally, name, x, y, *args, **kwargs):
    got = tally.json("dot", "--dtype", name, *args, **kwargs)
    assert got["n"] == x.size
    assert int(got["bits"], 16) == want("dot", name, x, other=y)[1]


@pytest.mark.parametrize("name", exact.TYPES)
def test_dot(tally, tmp_path, name):
    x, y = small(name, 1500), small(name, 3000)[1500:]
    a, b = tmp_path / "x.raw", tmp_path / "y.raw"
    a.write_bytes(x.tobytes())
    b.write_bytes(y.tobytes())
    check_dot(tally, name, x, y, a, b)
    check_dot(tally, name, x, y, a, "-", stdin=y.tobytes())
    check_dot(tally, name, x, x, a, a)
    if name != "bf16":
        np.save(tmp_path / "x.npy", x.astype(x.dtype.newbyteorder(">")))
        check_dot(tally, name, x, y, tmp_path / "x.npy", b)


def test_dot_of_texts_and_arrays(tally, tmp_path):
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("# head\n" + "".join(f"{i}\n\n" for i in range(200_000)))
    b.write_text("".join(f"{i % 7}\n" for i in range(200_000)))
    want = sum(i * (i % 7) for i in range(200_000))
    assert tally("dot", "--text", "--dtype", "i64", a, b) == str(want)
    with b.open("rb") as file:
        assert tally("dot", "--text", "--dtype", "i64", a, "-", stdin=file) == str(want)


def test_dot_across_windows(tally, tmp_path):
    """Longer than a window, one of them swapped, so that their pieces end at different places."""
    n = 9_000_000
    x = np.arange(n, dtype=">i8") % 1000
    np.save(tmp_path / "x.npy", x.astype(">i8"))
    np.save(tmp_path / "y.npy", np.arange(n, dtype="<i8") % 777)
    want = int((np.arange(n) % 1000 * (np.arange(n) % 777)).sum())
    assert tally("dot", tmp_path / "x.npy", tmp_path / "y.npy") == str(want)


def test_dot_of_unequal_lengths(tally, tmp_path):
    a, b = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(a, np.zeros(5))
    np.save(b, np.zeros(7))
    words = "dot takes two inputs of one length"
    assert tally.fails("dot", a, b) == f"{a} has 5 numbers but {b} has 7; {words}"
    assert tally.fails("dot", b, "-", stdin=a.read_bytes()) == (
        f"{b} has 7 numbers but standard input has 5; {words}")
    raw = np.zeros(100_000).tobytes()
    assert tally.fails("dot", "--dtype", "f64", a, "-", stdin=raw) == (
        f"{a} has 5 numbers but standard input has 100000; {words}")
    np.save(b, np.zeros(5, "f4"))
    assert "holds f64 but" in tally.fails("dot", a, b)
    for files in ((), (a,), (a, b, a)):
        assert tally.fails("dot", *files, status=2) == (
            f"dot takes two inputs, x and y, not {len(files) or 1}; see 'tally help dot'")
    assert "standard input is named twice" in tally.fails("dot", "--dtype", "f64", "-", "-")


def test_dot_of_pipes_in_constant_memory(tally, tmp_path):
    with open(os.environ["TALLY"], "rb") as program:
        if b"__asan_init" in program.read():
            pytest.skip("AddressSanitizer needs more memory than the limit here, and an allocator of its own")
    fifos = [tmp_path / "a", tmp_path / "b"]
    size = 256 << 20

    def write(fifo):
        with open(fifo, "wb") as out:
            subprocess.run(["head", "-c", str(size), "/dev/zero"], stdout=out, check=True)

    writers = []
    for fifo in fifos:
        os.mkfifo(fifo)
        writers.append(threading.Thread(target=write, args=(fifo,)))
        writers[-1].start()
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (192 << 20, 192 << 20))
    got = tally.json("dot", "--dtype", "u8", *fifos, preexec_fn=limit)
    for writer in writers:
        writer.join()
    assert (got["n"], got["value"]) == (size, 0)


def test_dot_beside_others(tally, tmp_path):
    np.save(tmp_path / "x.npy", np.array([1.0, 2]))
    np.save(tmp_path / "y.npy", np.array([3.0, 4]))
    assert tally("dot,sum", tmp_path / "x.npy", tmp_path / "y.npy") == "dot\t11\nsum\t3"
