"""Inputs of reductions in parts that are wrong: each fails with one line that says what and where, and loses nothing."""

import io
import os
import signal
import subprocess
import time

import numpy as np
import pytest

BLOCK = 1 << 18  # results of a call
HINT = "; --skip-outside leaves such elements out"


@pytest.fixture
def save(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def save(array, name="a.npy"):
        np.save(tmp_path / name, array)
        return name
    return save


@pytest.fixture
def a(save):
    return save(np.arange(12.0).reshape(3, 4))


def read(name):
    with open(name, "rb") as f:
        return f.read()


def header(shape, descr="<f8"):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
    return out.getvalue()


@pytest.mark.parametrize("axis, words", [
    ("2", "a.npy has no axis 2: its shape is (3, 4), its axes are 0 to 1, or -2 to -1"),
    ("0,-3", "a.npy has no axis -3: its shape is (3, 4), its axes are 0 to 1, or -2 to -1"),
    ("999999999", "a.npy has no axis 999999999: "),
    ("0,0", "--axis 0,0 names axis 0 twice"),
    ("1,-1", "--axis 1,-1 names axis 1 twice"),
])
def test_axes_that_are_not_there(tally, a, axis, words):
    assert tally.fails("sum", "--axis", axis, a).startswith(words)


@pytest.mark.parametrize("axis", ["", "x", "0,", ",0", "0;1", "1.5", "--1", "+1", " 1", "9999999999", "-", "all"])
def test_axes_that_are_no_numbers(tally, a, axis):
    assert tally.fails("sum", "--axis", axis, a, status=2) == (
        f"--axis takes whole numbers with commas between them, as in 0 or 0,-1; '{axis}' is not such")


def test_arrays_without_axes(tally, save):
    assert tally.fails("sum", "--axis", 0, save(np.array(1.0))) == (
        "a.npy has no axis 0: its shape is (), its axes are none")
    assert tally.fails("sum", "--axis", 0, save(np.zeros((1,) * 17))) == "a.npy has 17 dimensions, and 16 is the most"
    assert tally("sum", "--axis", 15, save(np.ones((1,) * 15 + (3,)))) == "3"
    assert tally.fails("sum", "--axis", 0, stdin=b"1 2 3") == (
        "standard input is text and has no axes: they are a .npy file's; --segments N takes rows of N")
    assert "is raw elements and has no axes" in tally.fails("sum", "--axis", 0, "--dtype", "f64", "--raw", stdin=b"")


OFFSETS = [
    ([0, 5, 4, 12], "o.npy: offset 2 falls: it is 4 behind 5; sort the offsets"),
    ([0, 5, 3, 12], "o.npy: offset 2 falls: it is 3 behind 5; sort the offsets"),
    ([0, 13, 14], "o.npy: offset 1 is 13, outside of the 12 elements of {}; offsets lie between 0 and the number of elements"),
    ([-1, 5], "o.npy: offset 0 is -1, outside of the 12 elements of {}; offsets lie between 0 and the number of elements"),
    ([0, 2**62], "o.npy: offset 1 is 4611686018427387904, outside of the 12 elements of {}; "),
    ([], "o.npy holds no offsets; N segments have N + 1"),
    ([[0, 12]], "o.npy has shape (1, 2); offsets are an array of one dimension"),
    (3, "o.npy has shape (); offsets are an array of one dimension"),
    ([0.0, 12.0], "o.npy holds f64; offsets are a .npy file of i32 or i64, one more than segments"),
]


@pytest.mark.parametrize("offsets, words", OFFSETS)
def test_offsets(tally, save, a, offsets, words):
    save(np.array(offsets, dtype=None if np.size(offsets) else "i8"), "o.npy")
    assert tally.fails("sum", "--segments", "o.npy", a).startswith(words.format(a))
    assert tally.fails("sum", "--segments", "o.npy", stdin=read(a)).startswith(words.format("standard input"))
    assert tally.fails("sum", "--segments", save(np.zeros(3, "u8"), "u.npy"), a).startswith("u.npy holds u64; offsets are")


def test_offsets_of_a_pipe_of_unknown_length(tally, save):
    raw = np.arange(12.0).tobytes()
    for offsets in ([0, 4, 13, 20], [13, 20, 30], [13]):
        save(np.array(offsets), "o.npy")
        i = offsets.index(13)
        assert tally.fails("sum", "--segments", "o.npy", "--raw", "--dtype", "f64", stdin=raw).startswith(
            f"o.npy: offset {i} is 13, outside of the 12 elements of standard input")
    save(np.array([0, 10_000_000, 10_000_001]), "o.npy")
    assert "offset 1 is 10000000, outside of the 12 elements" in tally.fails(
        "sum", "--segments", "o.npy", "--raw", "--dtype", "f64", stdin=raw)
    assert tally.fails("sum", "--segments", "o.npy", "--raw", "--dtype", "f64", stdin=raw[:-1]).startswith(
        "standard input has 95 bytes, which is no multiple of the 8 bytes of a f64")


def test_lengths_of_segments(tally, a):
    for length in (5, 24, 10**17):
        for where, stdin in ((a, b""), ("-", read(a))):
            name = where if where != "-" else "standard input"
            assert tally.fails("sum", "--segments", length, where, stdin=stdin) == (
                f"{name} has 12 elements, which are not whole segments of {length}; a file of offsets may have segments "
                "of any length")
    raw = np.arange(12.0).tobytes()
    assert tally.fails("sum", "--segments", 5, "--raw", "--dtype", "f64", stdin=raw).startswith("standard input has 12 elements")
    assert tally.fails("sum", "--segments", 2_500_000, "--raw", "--dtype", "f64", stdin=raw).startswith("standard input has 12 elements")
    for length in ("0", "9" * 30):
        assert tally.fails("sum", "--segments", length, a) == (
            f"--segments {length}: segments have a length from 1 up; ./{length} would be a file")
    assert "x cannot be opened" in tally.fails("sum", "--segments", "x", a)


@pytest.mark.parametrize("ids, args, words", [
    ([0, 1, -5, 1], (), "i.npy: id 2 is -5, below 0" + HINT),
    ([0, 1, -5, 1], ("--groups", 2), "i.npy: id 2 is -5, outside of the 2 groups" + HINT + ", or say a larger --groups"),
    ([0, 7, -5, 1], ("--groups", 7), "i.npy: id 1 is 7, outside of the 7 groups" + HINT + ", or say a larger --groups"),
    (np.array([0, 2**64 - 1, 1, 1], "u8"), ("--groups", 2), "i.npy: id 1 is 18446744073709551615, outside of the 2 groups"),
    ([0, 2**40, 2**61, 1], ("-o", "o.npy"), "no memory for 2305843009213693953 groups, which take 3.69e+10 GB; --groups with --skip-outside"),
    ([0, 1, 1], (), "i.npy has 3 elements but {} has 4; each needs a partner"),
    ([[0, 1], [1, 1]], (), "i.npy has shape (2, 2) but {} has (4,); each element needs a partner"),
    ([0.0, 1, 1, 1], (), "i.npy holds f64; ids are a .npy file of integers"),
])
def test_ids(tally, save, ids, args, words):
    x = save(np.arange(4.0))
    save(np.asarray(ids), "i.npy")
    for where, stdin in ((x, b""), ("-", read(x))):
        line = tally.fails("sum", "--by", "i.npy", *args, where, stdin=stdin)
        assert line.startswith(words.format(x if where == x else "standard input"))


def test_ids_far_in(tally, save):
    """The place is that in the file, and the first one's, also where the file is read in pieces."""
    x = save(np.zeros(6_000_000, "f4"))
    ids = np.zeros(6_000_000, "i4")
    ids[[5_500_000, 5_500_001]] = -1, 3
    save(ids, "i.npy")
    for where, stdin in ((x, b""), ("-", read(x))):
        assert tally.fails("max", "--by", "i.npy", "--groups", 3, where, stdin=stdin).startswith(
            "i.npy: id 5500000 is -1, outside of the 3 groups")


def test_ids_that_are_not_there(tally, save, a, tmp_path):
    assert tally.fails("sum", "--by", "x", a) == "x is not there; --by takes a file of ids, or with -c a table's column"
    (tmp_path / "t.txt").write_text("1 2 3\n")
    assert tally.fails("sum", "--by", "t.txt", a) == "t.txt holds text; ids are a .npy file of integers"
    assert tally.fails("sum", "--segments", "t.txt", a).startswith("t.txt holds text; offsets are")
    ids = np.zeros(3, int)
    save(ids, "i.npy")
    raw = np.zeros(4).tobytes()
    assert tally.fails("sum", "--by", "i.npy", "--raw", "--dtype", "f64", stdin=raw) == (
        "i.npy has 3 ids, but standard input has more elements; each needs a partner")
    assert tally.fails("sum", "--by", "i.npy", "--raw", "--dtype", "f64", stdin=raw[:16]) == (
        "i.npy has more ids than standard input has elements; each needs a partner")
    assert "in C's order and f.npy in Fortran's" in tally.fails("sum", "--by", save(np.zeros((3, 4), int), "i.npy"),
                                            save(np.zeros((3, 4), order="F"), "f.npy"))


def test_masks(tally, save, a):
    assert tally.fails("sum", "--mask", save(np.zeros((3, 4), "f4"), "m.npy"), a) == (
        "m.npy holds f32; a mask is a .npy file of bytes or of bool")
    assert tally.fails("sum", "--mask", save(np.zeros((4, 3), "?"), "m.npy"), a) == (
        "m.npy has shape (4, 3) but a.npy has (3, 4); each element needs a partner")
    assert tally.fails("sum", "--axis", 0, "--mask", save(np.zeros(4, "?"), "m.npy"), a) == (
        "m.npy has 4 elements but a.npy has 12; each needs a partner")
    for n in (7, 5):
        line = tally.fails("sum", "--mask", save(np.zeros(n, "u1"), "m.npy"), "--raw", "--dtype", "f64", stdin=bytes(48))
        assert line.startswith("standard input has") and line.endswith("; each needs a partner")
    assert tally.fails("dot", "--axis", 0, a, save(np.zeros((4, 3)), "b.npy")).startswith("b.npy has shape (4, 3) but a.npy has (3, 4)")
    assert tally.fails("dot", "--axis", 0, a, save(np.zeros((3, 4), "f4"), "b.npy")).startswith("a.npy holds f64 but b.npy holds f32")


@pytest.mark.parametrize("shape, args", [((1 << 20, 4), ("--axis", 0)), ((1 << 20, 4), ("--axis", 1)), ((1 << 22,), ("--segments", 4)),
                                         ((1 << 22,), ("--segments", 1 << 21)), ((1 << 22,), ("--mask", "m.npy")),
                                         ((1 << 22,), ("--by", "m.npy"))])
def test_truncated(tally, save, tmp_path, shape, args):
    save(np.ones(shape, "u1"), "m.npy")
    whole = header(shape) + bytes(8 * (1 << 22))
    (tmp_path / "t.npy").write_bytes(whole[:-5])
    words = "is truncated: "
    assert words in tally.fails("sum", *args, "t.npy")
    assert words in tally.fails("sum", *args, stdin=whole[:-5])
    assert "bytes after its array" in tally.fails("sum", *args, stdin=whole + b"x")


def test_sizes_that_overflow(tally, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for shape, axis in (("(0, 99999999999999999999)", 0), ("(4294967296, 0, 4294967296)", 1)):
        text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text)
        assert tally.fails("sum", "--axis", axis, "a.npy") == "a.npy: these are more results than can be counted"


@pytest.mark.parametrize("where", [5, BLOCK + 7, 3 * BLOCK - 1])
def test_results_that_do_not_fit(tally, save, where):
    x = np.zeros((3 * BLOCK, 3), "i8")
    x[where] = 2**62
    wide = save(x)
    tall = save(np.ascontiguousarray(x.T), "t.npy")
    words = f"result {where}: the exact sum does not fit i64; --out f64 rounds what is a sum"
    for name, args in ((wide, ("--axis", 1)), (wide, ("--segments", 3)), (tall, ("--axis", 0))):
        assert tally.fails("sum", *args, name) == f"{name}: {words}"
        assert tally.fails("sum", *args, stdin=read(name)) == f"standard input: {words}"
    offsets = np.arange(0, 9 * BLOCK + 1, 3)
    offsets[where + 1] = offsets[where]
    for stdin, name in ((b"", wide), (read(wide), "standard input")):
        assert tally.fails("argmin", "--segments", save(offsets, "o.npy"), wide if not stdin else "-", stdin=stdin) == (
            f"{name}: result {where} has no elements, so there is no argmin")


def test_argmin_of_no_group(tally, save):
    x, i = save(np.arange(4.0)), save(np.array([0, 2, 2, 0]), "i.npy")
    assert tally("argmin", "--by", i, x) == "0\t0\n2\t1"
    assert tally.fails("argmin", "--by", i, "-o", "o.npy", x) == "a.npy: result 1 has no elements, so there is no argmin"
    assert not os.path.exists("o.npy")


# ---- Files of results ----

def test_outputs_that_cannot_be(tally, a, tmp_path):
    os.link("a.npy", "hard.npy")
    os.symlink("a.npy", "soft.npy")
    before = read("a.npy")
    for name in ("a.npy", "./a.npy", "hard.npy", "soft.npy"):
        assert tally.fails("sum", "--axis", 0, "-o", name, a) == f"-o {name} would write over an input; name another file"
    assert read("a.npy") == before
    assert tally.fails("sum", "--axis", 0, "-o", "no/o.npy", a) == "no/o.npy cannot be written: No such file or directory"
    assert tally.fails("sum", "--axis", 0, "-o", ".", a) == ". cannot be written: Is a directory"
    assert tally.fails("sum", "--axis", 0, "-o", "/dev/full", a) == "/dev/full cannot be written: No space left on device"
    done = subprocess.run(f"{tally.binary} sum --axis 0 a.npy >/dev/full", shell=True, capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"tally: cannot write to standard output: No space left on device\n")
    done = subprocess.run(f"{tally.binary} sum --axis 0 -o - a.npy >/dev/full", shell=True, capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"tally: standard output cannot be written: No space left on device\n")
    if os.getuid() != 0:
        os.mkdir("locked", 0o500)
        assert "locked/o.npy cannot be written: Permission denied" in tally.fails("sum", "--axis", 0, "-o", "locked/o.npy", a)
        os.chmod("a.npy", 0)
        assert "a.npy cannot be opened: Permission denied" in tally.fails("sum", "--axis", 0, a)


def test_nothing_is_lost(tally, save):
    """A run that fails, late, leaves what the output's name stood for before, and nothing else."""
    x = np.zeros((BLOCK * 2, 2), "i8")
    x[-1] = 2**62
    save(x), save(np.arange(3), "o.npy")
    before, names = read("o.npy"), sorted(os.listdir())
    tally.fails("sum", "--axis", 1, "-o", "o.npy", "a.npy")
    assert read("o.npy") == before and sorted(os.listdir()) == names


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_run_that_is_ended(tally, tmp_path, number):
    command = [tally.binary, "sum", "--axis", "1", "-o", str(tmp_path / "o.npy"), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as run:
        run.stdin.write(header((1 << 20, 4)) + bytes(1 << 16))
        run.stdin.flush()
        for _ in range(500):
            if os.listdir(tmp_path):
                break
            time.sleep(0.01)
        assert len(os.listdir(tmp_path)) == 1
        run.send_signal(number)
        assert run.wait(timeout=60) == -number
    assert os.listdir(tmp_path) == []


def test_a_file_that_has_shrunk(tally, save, a):
    """One that is shorter than its header says."""
    os.truncate("a.npy", 200)
    assert "is truncated" in tally.fails("sum", "--axis", 0, a)


@pytest.mark.parametrize("args, words", [
    (("--segments", "4", "--by", "i"), "--segments and --by exclude each other; leave one out"),
    (("--groups", "4"), "--groups goes with --by and a file of ids"),
    (("--skip-outside", "--axis", "0"), "--skip-outside goes with --by and a file of ids"),
    (("--groups", "0", "--by", "i"), "--groups takes a whole number from 1 up"),
    (("-o", "x"), "-o goes with --axis, --segments, --by or --mask; else redirect what is printed"),
    (("--axis", "0", "-c", "1"), "--axis and -c exclude each other; leave one out"),
    (("--mask", "m", "--each"), "--mask and --each exclude each other; leave one out"),
    (("--segments", "2", "--decimal"), "--segments and --decimal exclude each other; leave one out"),
    (("--axis", "0", "--json", "-o", "-"), "--json and -o - both write to standard output; leave one out"),
])
def test_options_that_do_not_go_together(tally, a, args, words):
    assert tally.fails("sum", *args, a, status=2).startswith(words)


def test_parts_along_an_axis(tally, save, a):
    b = save(np.zeros((3, 4)), "b.npy")
    for args, line in (
            (("--axis", "0,1", "--segments", "1"), "--axis 0,1 names several axes; --segments takes one"),
            (("--axis", "1", "--segments", "3"), f"axis 1 of {b} has 4 elements, which are not whole segments of 3; a file of "
                                                 "offsets may have segments of any length"),
            (("--axis", "1", "--segments", "0"), "--segments 0: segments have a length from 1 up; ./0 would be a file"),
            (("--axis", "0", "--by", save(np.array([0, 1]), "i.npy")),
             f"i.npy has 2 ids, but axis 0 of {b} has 3 elements; each needs a partner"),
            (("--axis", "0", "--by", save(np.array([0, -1, 1]), "n.npy")), "n.npy: id 1 is -1, outside of the 2 groups"),
            (("--axis", "0", "--by", save(np.full(3, 2**63, "u8"), "u.npy")),
             "u.npy: id 9223372036854775808 is more than groups can have; --groups with --skip-outside leaves it out"),
            (("--axis", "0", "--by", save(np.zeros((3, 1), int), "w.npy")),
             "w.npy has shape (3, 1); ids along an axis are an array of one dimension"),
            (("--axis", "0", "--segments", save(np.array([0, 5]), "o.npy")),
             "o.npy: offset 1 is 5, outside of the array's 3 elements"),
            (("--axis", "0", "--segments", save(np.zeros(0, int), "e.npy")), "e.npy holds no offsets; N segments have N + 1")):
        args = [os.path.basename(str(x)) if isinstance(x, os.PathLike) else x for x in args]
        assert tally.fails("sum", *args, b) == line


def test_inputs(tally, save, a):
    assert tally.fails("sum", "--axis", 0, a, a, status=2) == "parts are reduced of one input, not of 2; one at a time"
    assert tally.fails("dot", "--axis", 0, a, status=2) == "dot takes two inputs, x and y, not 1; see 'tally help dot'"
    for args in (("--by", "-", "-"), ("--mask", "-", "-"), ("--by", "-", "--mask", "-", a)):
        assert tally.fails("sum", *args) == "standard input is named twice, and can be read once only"
    assert tally.fails("max", "--axis", 0, "--out", "f32", a).startswith("max ")


def test_other_devices(tally, a):
    """The bits of the CPU, or a line that names the device."""
    done = tally.run("sum", "--axis", 0, "--device", "model", a)
    if done.returncode:
        assert done.stdout == b"" and done.stderr.count(b"\n") == 1 and b"model" in done.stderr
    else:
        assert done.stdout.split() == [b"12", b"15", b"18", b"21"]
