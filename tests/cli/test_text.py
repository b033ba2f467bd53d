"""Numbers as text: exact integers, floats rounded once, and errors that name the line."""

import os
import resource
import subprocess
import sys
from fractions import Fraction

import exact
import numpy as np
import pytest


def random_seed():
    return int(os.environ.get("TALLY_SEED", 0)) or int.from_bytes(os.urandom(4), "little")


def bits(tally, name, text):
    """The bits that a lone number is read as: the minimum of one element is that element."""
    return int(tally.json("min", "--text", "--dtype", name, stdin=text.encode())["bits"], 16)


def test_default_type_is_f64(tally):
    got = tally.json("sum", "--text", stdin=b"0.1\n0.2\n0.3\n")
    assert (got["dtype"], got["n"]) == ("f64", 3)
    assert got["value"] == float(Fraction(0.1) + Fraction(0.2) + Fraction(0.3))


def test_lines_that_hold_no_number(tally):
    text = b"# head\n\n 1 \r\n\t2\n   \n#3\n  # 4\n+5"
    assert tally("sum", "--text", stdin=text) == "8"
    assert tally("sum", "--text", stdin=b"") == "0"
    assert tally("sum", "--text", stdin=b"\n\n# nothing") == "0"


def test_comments_of_lines_with_returns(tally):
    """A carriage return alone ends a comment, as it ends a row."""
    for text, right in ((b"# c\r1\r2\r3\r", "6"), (b"# a\r# b\r5\n6\n", "11"), (b"5\r# c\r6\r", "11"), (b"# c\r\n1\r\n2\r\n", "3")):
        assert tally("sum", "--text", stdin=text) == right, text


@pytest.mark.parametrize("start", [b"# ", b"\xef\xbb\xbf# ", b"\f# ", b"\r# ", b" \v# "])
def test_a_comment_that_is_too_long(tally, start):
    line = tally.fails("sum", "--text", stdin=start + b"word " * 300000 + b"\n1\n2\n")
    assert line == "standard input:1: a word or a comment is longer than 1048576 bytes; is this text?"


@pytest.mark.parametrize("name", exact.INTEGERS)
def test_integer_ranges(tally, name):
    info = np.iinfo(exact.dtype(name))
    for x in (info.min, info.max, 0, 1):
        assert tally("min", "--text", "--dtype", name, stdin=str(x).encode()) == str(x)
    for x in (info.min - 1, info.max + 1, 10**30, -(10**30)):
        line = tally.fails("min", "--text", "--dtype", name, stdin=f"0\n{x}\n".encode())
        assert line == f"standard input:2: {x} does not fit {name}; choose a wider --dtype"
    for text in ("1.0", "1e3", "0x10", "inf"):
        line = tally.fails("min", "--text", "--dtype", name, stdin=text.encode())
        assert line == f"standard input:1: '{text}' is no {name} number; choose --dtype f64"
    for text in ("--1", "+", "1_000", "1a"):
        line = tally.fails("min", "--text", "--dtype", name, stdin=text.encode())
        assert line == (f"standard input:1: '{text}' is no {name} number; "
                        "numbers with blanks between them are expected")
    for text in ("nan", "NA", "-", "null"):
        line = tally.fails("min", "--text", "--dtype", name, stdin=text.encode())
        assert line == (f"standard input:1: '{text}' is no {name} number; "
                        "--skip-na leaves such words out")


@pytest.mark.parametrize("text", ["", "abc", "1.2.3", "1,5", "1e", "0x", "--1", "1\0", "nanx"])
@pytest.mark.parametrize("name", exact.FLOATS)
def test_malformed_floats(tally, name, text):
    line = tally.fails("sum", "--text", "--dtype", name, stdin=f"1\n#\n'{text}\n".encode())
    assert line.startswith("standard input:3: ") and f"is no {name} number" in line


@pytest.mark.parametrize("name", exact.FLOATS)
def test_special_floats(tally, name):
    run = lambda op, text: tally(op, "--text", "--dtype", name, stdin=text)
    assert run("sum", b"inf\n") == "inf"
    assert run("sum", b"-Infinity\n1\n") == "-inf"
    assert run("sum", b"inf\n-inf\n") == "nan"
    assert run("max", b"nan\n1\n") == "nan"
    assert run("sum", b"-0\n-0.0\n") == "-0"
    assert run("sum", b"0x1.8p1\n") == "3"
    assert run("sum", b"1e99999\n") == "inf"
    assert run("max", b"-1e-99999\n") == "-0"


def hard_cases(name):
    """Decimals at, and a hair from, the midpoints and ends of a format."""
    precision, low, high = exact.FORMATS[name]
    tiny = Fraction(2) ** (low - precision + 1)
    top = Fraction(2) ** high * (2 - Fraction(2) ** (1 - precision))
    ulp = Fraction(2) ** (1 - precision)
    step = Fraction(2) ** (high - precision + 1)
    exact_points = [1 + ulp / 2, 1 + 3 * ulp / 2, 2 - ulp / 2, tiny / 2, 3 * tiny / 2, tiny,
                    Fraction(2) ** low - tiny / 2, top, top + step / 2]
    hair = Fraction(1, 10**30)
    for x in exact_points:
        for y in (x, x * (1 + hair), x * (1 - hair), -x, -x * (1 + hair), -x * (1 - hair)):
            yield y


def decimal(x):
    """A Fraction whose denominator divides a power of ten, in all its digits."""
    digits = 0
    while (x * 10**digits).denominator != 1:
        digits += 1
    whole = abs(x * 10**digits).numerator
    return f"{'-' if x < 0 else ''}{whole}e-{digits}"


@pytest.mark.parametrize("name", exact.FLOATS)
def test_rounded_once(tally, name):
    for x in hard_cases(name):
        want = exact.rounded(name, x, x < 0)
        got = bits(tally, name, decimal(x))
        assert got == want, (name, float(x), hex(got), hex(want))


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_every_short_float_reads_back(tally, name):
    """All finite values, then all midpoints (even neighbours win), as one xor of their bits."""
    sign = 0x8000
    infinity = 0x7C00 if name == "f16" else 0x7F80
    numbers = [exact.value(name, b) for b in range(infinity)]
    text = "\n".join(map(decimal, numbers)).encode()
    want = np.bitwise_xor.reduce(np.arange(infinity))
    assert int(tally.json("xor", "--text", "--dtype", name, stdin=text)["bits"], 16) == want
    middles = [-(a + b) / 2 for a, b in zip(numbers, numbers[1:])]
    text = "\n".join(map(decimal, middles)).encode()
    want = 0
    for b in range(infinity - 1):
        want ^= sign | (b + (b & 1))
    assert int(tally.json("xor", "--text", "--dtype", name, stdin=text)["bits"], 16) == want


def test_random_f32_and_f64(tally):
    rng = np.random.default_rng(5)
    for name in ("f32", "f64"):
        x = rng.integers(0, 2**63, 20000, dtype="u8").view("f8")
        x = x[np.isfinite(x)]
        text = "\n".join(map(repr, x.tolist())).encode()
        with np.errstate(over="ignore"):
            want = np.bitwise_xor.reduce(x.astype(exact.dtype(name)).view(f"u{exact.BYTES[name]}"))
        assert int(tally.json("xor", "--text", "--dtype", name, stdin=text)["bits"], 16) == want


def test_many_lines_and_files(tally, tmp_path):
    """Longer than every buffer, in files, without a last line's end."""
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("\n".join(map(str, range(400_000))))
    b.write_text("\n".join(map(str, range(-7, 300_000))))
    want = sum(range(400_000)) + sum(range(-7, 300_000))
    got = tally.json("sum", "--text", "--dtype", "i32", a, b)
    assert (got["value"], got["n"]) == (want, 700_007)


def test_lines_that_are_too_long(tally):
    assert tally("sum", "--text", stdin=b"0" * 500_000 + b"7\n1") == "8"
    most = 1 << 20
    assert tally("sum", stdin=b"0" * (most - 1) + b"7") == "7"
    assert tally("sum", stdin=b"0" * (most - 1) + b"7\n1") == "8"
    assert tally("sum", stdin=b"1\n" + b"0" * (most - 1) + b"7") == "8"
    for text in (b"1\n" + b"0" * 2_000_000, b"1\n" + b"0" * (most + 1)):
        line = tally.fails("sum", "--text", stdin=text)
        assert line == "standard input:2: a word or a comment is longer than 1048576 bytes; is this text?"


def test_lines_of_many_words(tally, tmp_path):
    words = list(range(400_000))
    (tmp_path / "words").write_text(" ".join(map(str, words)) + "\n# 7\n" + "\t".join(map(str, words)))
    for threads in (1, 3):
        assert tally("sum", "--threads", threads, tmp_path / "words") == str(2 * sum(words))
    line = " ".join(map(str, words)) + " # 7\n"
    assert tally.fails("sum", stdin=line.encode()) == "standard input:1: '#' is no f64 number; numbers with blanks between them are expected"
    assert tally.fails("sum", stdin=b"1\n # " + line.encode()) == "standard input:2: a word or a comment is longer than 1048576 bytes; is this text?"


def test_a_zero_byte(tally):
    assert tally.fails("sum", "--text", "--skip-na", stdin=b"1\0\n") == (
        "standard input:1: '1\\x00' is no f64 number; numbers with blanks between them are expected")


THREADS = (1, 2, 3, 8)


def as_file(tmp_path, text):
    path = tmp_path / "numbers.txt"
    path.write_bytes(text)
    return path


def test_threads_read_pieces_in_order(tally, tmp_path):
    """Where things are, and the order of a product's factors, are those of one thread, and of NumPy."""
    rng = np.random.default_rng(seed := random_seed())
    x = np.exp(rng.normal(0, 0.001, 250_000))
    x[rng.integers(0, x.size)] = 99
    x[rng.integers(0, x.size)] = 0.01
    words = [repr(v) + e for v, e in zip(x.tolist(), rng.choice(["\n", " ", "\r\n", "\t", "\n# 5\n", " \n\n"], x.size))]
    path = as_file(tmp_path, "".join(words).encode())
    assert path.stat().st_size > 16 << 18, "more pieces than threads"
    np.save(tmp_path / "x.npy", x)
    ops = "sum,prod,argmax,argmin,count"
    want = tally(ops, tmp_path / "x.npy")
    for threads in THREADS:
        assert tally(ops, "--threads", threads, path) == want, (seed, threads)
        with path.open("rb") as file:
            assert tally(ops, "--threads", threads, stdin=file) == want, (seed, threads)
        assert tally(ops, "--threads", threads, stdin=path.read_bytes()) == want, (seed, threads)
    assert tally("dot", "--threads", 3, path, tmp_path / "x.npy") == tally("dot", tmp_path / "x.npy", tmp_path / "x.npy")


def test_threads_tell_the_first_error(tally, tmp_path):
    """The first of several wrong words, with the number of its line, in whatever piece it is."""
    rng = np.random.default_rng(seed := random_seed())
    for wrong in (b"1.5.5", b"NA", b"1,5"):
        lines = [b"%d" % v for v in rng.integers(0, 10 ** rng.integers(2, 12), 300_000)]
        at = sorted(int(v) for v in rng.integers(0, len(lines), 3))
        for i in at:
            lines[i] = b"3 " + wrong
        path = as_file(tmp_path, b"\n".join(lines))
        line = f"{path}:{at[0] + 1}: '{wrong.decode()}' is no f64 number; "
        for threads in THREADS:
            assert tally.fails("sum", "--threads", threads, path).startswith(line), (seed, threads)
    path = as_file(tmp_path, b"1\n" * 900_000 + b"0" * 1_100_000 + b"\n" + b"x\n" * 900_000)
    for threads in THREADS:
        line = tally.fails("sum", "--threads", threads, path)
        assert line == f"{path}:900001: a word or a comment is longer than 1048576 bytes; is this text?"


def test_threads_add_decimals(tally, tmp_path):
    rng = np.random.default_rng(seed := random_seed())
    cents = rng.integers(-10**9, 10**9, 200_000).tolist()
    text = "\n".join(f"{'-' * (c < 0)}{abs(c) // 100}.{abs(c) % 100:02}" for c in cents) + "\nNA\n1e-3\n"
    total = sum(cents) * 10 + 1
    want = f"{'-' * (total < 0)}{abs(total) // 1000}.{abs(total) % 1000:03}"
    path = as_file(tmp_path, text.encode())
    for threads in THREADS:
        got = tally.json("sum", "--decimal", "--skip-na", "--threads", threads, path)
        assert (got["value"], got["n"]) == (want, len(cents) + 1), (seed, threads)


def test_lines_and_blanks_across_pieces(tally, tmp_path):
    """Lines from empty to longer than a piece, numbers of every length, so that pieces are cut anywhere."""
    rng = np.random.default_rng(seed := random_seed())
    total, parts = 0, []
    for size in rng.integers(0, 400_000, 12).tolist() + [1, 0, 2]:
        digits = [str(v)[: int(k)] for v, k in zip(rng.integers(1, 10**17, size // 10), rng.integers(1, 18, size // 10))]
        total += sum(map(int, digits))
        parts.append("  ".join(digits))
    text = "\n".join(parts).encode()
    for threads in THREADS:
        assert tally("sum", "--text", "--dtype", "i64", "--threads", threads, stdin=text) == str(total), (seed, threads)


def test_text_in_constant_memory(tally, tmp_path):
    """256 MiB of text through a pipe, where there is room for much less than that, or than its numbers."""
    with open(tally.binary, "rb") as program:
        code = program.read()
        if b"__asan_init" in code or b"libtsan" in code:
            pytest.skip("a sanitizer needs more memory than the limit here")
    piece = as_file(tmp_path, b"1 2 3 4 5 6 7 8\n" * (1 << 16))
    many = subprocess.Popen(["cat"] + [str(piece)] * 256, stdout=subprocess.PIPE)
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (96 << 20, 96 << 20))
    done = tally.run("sum", "--threads", 2, "--text", stdin=many.stdout, preexec_fn=limit)
    many.stdout.close()
    assert many.wait() == 0
    assert (done.stdout, done.stderr) == (b"%d\n" % (36 << 24), b"")


def test_several_numbers_a_line(tally):
    assert tally("sum", stdin=b"1 2\t3\r\n 4\v5 \n# 100\n6\n") == "21"
    assert tally("count", stdin=b"1 2\t3\r\n 4\v5 \n# 100\n6") == "6"
    line = tally.fails("sum", stdin=b"1 2\n3 # 4\n")
    assert line == "standard input:2: '#' is no f64 number; numbers with blanks between them are expected"


def test_missing_values(tally):
    text = b"1\nNA 2 N/A\n\nnan NaN null none - 3\n"
    assert tally("sum", "--skip-na", stdin=text) == "6"
    assert tally("count,mean", "--skip-na", "--text", "--dtype", "i32", stdin=text) == "count\t3\nmean\t2"
    line = tally.fails("sum", stdin=text)
    assert line == "standard input:2: 'NA' is no f64 number; --skip-na leaves such words out"
    assert tally("sum", stdin=b"1\nnan\n") == "nan"


def test_text_is_recognised(tally, tmp_path):
    path = tmp_path / "a"
    path.write_text("".join(f"{i}\n" for i in range(1, 11)))
    assert tally("sum", path) == tally("sum", stdin=path.read_bytes()) == "55"
    assert tally("sum", stdin=b"") == "0"
    assert tally("sum", stdin=b"\xef\xbb\xbf1\r\n2\r\n") == "3"
    for form, name in (("utf-16", "UTF-16"), ("utf-32", "UTF-32"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE")):
        for text in ("1\n", "1\n2\n", "a,b\r\n1,2\r\n" * 1000):
            advice = f"text in {name}; convert it: iconv -f {name} -t UTF-8 FILE | tally ..."
            assert tally.fails("sum", stdin=text.encode(form)) == (
                f"standard input looks like {advice}; for raw elements say their type, as in --dtype f64")
            for args in (("--text",), ("-c", "1")):
                assert tally.fails("sum", *args, stdin=text.encode(form)) == f"standard input is {advice}"
    assert tally("sum", "--dtype", "u16", stdin="1\n".encode("utf-16")) == str(0xFEFF + 49 + 10)
    assert "is neither text nor" in tally.fails("sum", stdin=np.array([1, 2, 3], "u2").tobytes())
    for name in ("f64", "i16", "u8"):
        line = tally.fails("sum", "--dtype", name, path)
        assert line == f"{path} looks like numbers as text, not like raw {name}; say --text or --raw"
    for text, names in (("# temps\n# °C\n1.5\n2.5", ("f64", "u8")), ("temperature\n1.5\n2.5\n", ("f64", "i16")), ("a,b\n1,2\n3,4\nn/a,6", ("f32",))):
        text = text.encode().ljust(32, b"\n")
        for name in names:
            line = tally.fails("sum", "--dtype", name, stdin=text)
            assert line.endswith(f"text, not like raw {name}; say --text or --raw")
            assert tally("count", "--dtype", name, "--raw", stdin=text) == str(32 // exact.BYTES[name])
    assert tally("sum", "--dtype", "u8", stdin=b"a word\n" * 3) == str(3 * sum(b"a word\n"))
    assert tally("sum", "--dtype", "i16", stdin=b" \n") == str(int.from_bytes(b" \n", sys.byteorder))
    assert tally("sum", "--dtype", "u8", "--raw", path) == str(sum(path.read_bytes()))
    assert tally("sum", "--dtype", "i16", "--text", path) == "55"
    assert "exclude each other" in tally.fails("sum", "--raw", "--text", path, status=2)
    assert "--raw needs the elements' type" in tally.fails("sum", "--raw", path)
    constant = bytes([49]) * 1000  # bytes that happen to be digits
    assert tally("sum", "--dtype", "u8", stdin=constant) == "49000"


def test_what_cannot_be_seen_is_written_out(tally):
    for data, shown in ((b"1\xc2\xa02", "1\\u00a02"), (b"\n\xef\xbb\xbf1", "\\ufeff1"), (b"1\x002", "1\\x002"),
                        (b"1\xff", "1\\xff"), (b"1\xc2\x9bm", "1\\u009bm"), (b"1\x9bm", "1\\x9bm")):
        line = tally.fails("sum", "--text", stdin=data + b"\n")
        assert f"'{shown}" in line and "is no f64 number" in line
    assert "'é'" in tally.fails("sum", "--text", stdin="é\n".encode())


def test_quick_numbers_are_read_as_slow_ones(tally):
    """Decimals of every length around 2^53 and powers of ten: with and without the quick way, which a
    blank within the exponent's digits, or more than 19 digits, leaves."""
    rng = np.random.default_rng(8)
    words = []
    for digits in range(1, 20):
        for _ in range(60):
            w = str(rng.integers(10 ** (digits - 1), min(10**digits, 2**63 - 1)))
            cut = int(rng.integers(0, len(w) + 1))
            words.append(f"{w[:cut]}.{w[cut:]}e{rng.integers(-30, 31)}")
    words += ["9007199254740993", "9007199254740993e1", "18014398509481985", "9223372036854775807.",
              "1.00000017881393432617187499", "1.000000178813934326", "1e22", "1e23", "8.5e-45", "1e-40"]
    for name in ("f32", "f64"):
        x = [exact.rounded(name, Fraction(w)) for w in words]
        got = tally.json("xor", "--text", "--dtype", name, stdin="\n".join(words).encode())
        assert int(got["bits"], 16) == int(np.bitwise_xor.reduce(np.array(x, dtype="u8")))
        for w, b in zip(words[::40], x[::40]):
            assert bits(tally, name, w) == b


@pytest.mark.long
def test_decimals_beside_midpoints(tally):
    """For each power of ten, decimals of up to 19 digits right below and above midpoints of neighbouring f64s."""
    rng = np.random.default_rng(seed := random_seed())
    words = []
    for power in range(-70, 71):
        for odd in (rng.integers(2**52, 2**53, 8) * 2 + 1).tolist():
            scaled = Fraction(odd) / Fraction(10) ** power
            while scaled >= 10**19 // 2:
                scaled /= 2
            while scaled < 10**18:
                scaled *= 2
            words += [f"{int(scaled)}e{power}", f"-{int(scaled) + 1}e{power}"]
    for part in (words[k::10] for k in range(10)):
        want = np.bitwise_xor.reduce(np.array([exact.rounded("f64", Fraction(w)) for w in part], dtype="u8"))
        assert int(tally.json("xor", "--text", stdin="\n".join(part).encode())["bits"], 16) == int(want), (seed, part)


def test_npy_is_no_text(tally, tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(3.0))
    assert tally.fails("sum", "--text", path) == f"{path} is a .npy file; leave --text out"


def test_line_numbers_in_files(tally, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1\n" * 300_000 + "two\n")
    assert tally.fails("sum", "--text", path).startswith(f"{path}:300001: 'two' is no f64 number")
