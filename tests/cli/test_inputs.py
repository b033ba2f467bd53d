"""Raw data, standard input, several files, large files, and what a terminal sees."""

import io
import math
import os
import pathlib
import pty
import subprocess
import threading
import time

import exact
import numpy as np
import pytest


def check(tally, op, name, array, *args, **kwargs):
    got = tally.json(op, *args, **kwargs)
    assert got["n"] == array.size
    assert int(got["bits"], 16) == exact.reduce(op, name, array)


@pytest.mark.parametrize("op", exact.OPS)
@pytest.mark.parametrize("name", exact.TYPES)
def test_raw(tally, tmp_path, op, name):
    array = (exact.factors if op == "prod" else exact.sample)(name, 777)
    path = tmp_path / "a.raw"
    path.write_bytes(array.tobytes())
    check(tally, op, name, array, "--dtype", name, path)
    check(tally, op, name, array, "--dtype", name, stdin=array.tobytes())
    with path.open("rb") as file:
        check(tally, op, name, array, "--dtype", name, "-", stdin=file)


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, (1 << 19) - 1, 1 << 19, (1 << 19) + 1, 1 << 23])
def test_sizes_around_the_buffers(tally, tmp_path, n):
    array = np.arange(n, dtype="f8") * 0.1
    path = tmp_path / "a.raw"
    path.write_bytes(array.tobytes())
    want = math.fsum(array)
    assert float(tally("sum", "--dtype", "f64", path)) == want
    assert float(tally("sum", "--dtype", "f64", stdin=array.tobytes())) == want


def test_empty_input_gives_the_identity(tally, tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    for args in (("--dtype", "f64", empty), ("--dtype", "f64", empty, empty), ("--dtype", "f64")):
        assert tally("sum", *args) == "0"
        assert tally("prod", *args) == "1"
        assert tally("min", *args) == "inf"
        assert tally("max", *args) == "-inf"
    assert tally("min", "--dtype", "u8") == "255"
    assert tally("and", "--dtype", "u64") == str(2**64 - 1)
    assert tally("max", "--dtype", "i16") == "-32768"


def test_raw_needs_a_type(tally, tmp_path):
    path = tmp_path / "a.raw"
    path.write_bytes(b"1234567\x01")
    words = " is neither text nor a .npy file; for raw elements say their type, as in --dtype f64"
    assert tally.fails("sum", path) == f"{path}{words}"
    assert tally.fails("sum", stdin=b"123\0") == f"standard input{words}"


PACKED = [(b"\xfd7zXZ\0", "is compressed by xz; unpack it: xzcat"), (b"BZh9", "is compressed by bzip2"),
          (b"PAR1", "is a Parquet file"), (b"PK\3\4", "is a .npz or zip archive; unpack it")]


@pytest.mark.parametrize("magic, words", PACKED, ids=[w.split()[-1] for _, w in PACKED])
def test_packed_files_are_no_numbers(tally, magic, words):
    data = magic + bytes(20)
    for args in ((), ("--dtype", "u8")):
        assert words in tally.fails("sum", *args, stdin=data)
    assert tally("sum", "--dtype", "u8", "--raw", stdin=data) == str(sum(data))


def test_files_that_promise_more_than_they_hold(tally):
    """Those of /sys say that they have a page."""
    path = pathlib.Path("/sys/devices/system/cpu/possible")
    try:
        data = path.read_bytes()
    except OSError:
        pytest.skip("no /sys here")
    assert tally("sum", "--dtype", "u8", "--raw", path) == str(sum(data))


def test_closed_descriptors(tally, tmp_path):
    """No file that is opened may take the place of standard input, output or error."""
    path = tmp_path / "numbers"
    path.write_text("1\n" * 100_000)
    raw = tmp_path / "raw"
    raw.write_bytes(bytes(range(200)) * 1000)
    run = lambda text: subprocess.run(["sh", "-c", text, "sh", tally.binary, path, raw], capture_output=True)
    for text in ('exec 0<&-; "$1" sum --text "$2" -', 'exec 0<&-; "$1" sum --dtype u8 "$3" -'):
        done = run(text)
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr == b"tally: standard input cannot be read: Bad file descriptor\n"
    done = run('exec 1>&-; "$1" sum "$2"')
    assert done.returncode == 1
    assert done.stderr == b"tally: cannot write to standard output: Bad file descriptor\n"
    done = run('exec 2>&-; "$1" sum "$2"')
    assert (done.returncode, done.stdout) == (0, b"100000\n")
    assert run('exec 0<&- 1>&- 2>&-; "$1" sum "$2"').returncode == 1
    assert path.read_text() == "1\n" * 100_000


def test_raw_of_a_broken_size(tally, tmp_path):
    path = tmp_path / "a.raw"
    path.write_bytes(bytes(17))
    words = " has 17 bytes, which is no multiple of the 8 bytes of a f64; check --dtype"
    assert tally.fails("sum", "--dtype", "f64", path) == f"{path}{words}"
    assert tally.fails("sum", "--dtype", "f64", stdin=bytes(17)) == f"standard input{words}"


def test_several_files_are_one_stream(tally, tmp_path):
    array = exact.sample("f32", 3000)
    parts = np.split(array, [1, 1000, 1000, 2501])
    paths = []
    for i, part in enumerate(parts):
        paths.append(tmp_path / f"{i}.npy")
        np.save(paths[-1], part.astype(">f4") if i % 2 else part)
    check(tally, "sum", "f32", array, *paths)
    raw = tmp_path / "raw"
    raw.write_bytes(array.tobytes())
    check(tally, "sum", "f32", np.concatenate([array, array]), raw, *paths, "--dtype", "f32")
    check(tally, "sum", "f32", np.concatenate([array, array]), *paths, "-", "--dtype", "f32",
          stdin=array.tobytes())


def test_products_depend_on_the_stream_alone(tally, tmp_path):
    """A product that rounds: the same bits however the elements are cut into files."""
    array = np.random.default_rng(3).uniform(0.5, 2, 50_000)
    whole = tmp_path / "whole.npy"
    np.save(whole, array)
    want = tally("prod", whole)
    paths = []
    for i, part in enumerate(np.split(array, [1, 4096, 4097, 33_333])):
        paths.append(tmp_path / f"{i}.npy")
        np.save(paths[-1], part)
    assert tally("prod", *paths) == want
    assert tally("prod", "--dtype", "f64", stdin=array.tobytes()) == want
    for threads in 1, 2, 3:
        assert tally("prod", "--threads", threads, whole) == want


def test_files_of_two_types(tally, tmp_path):
    a, b = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(a, np.float32([1]))
    np.save(b, np.float64([1]))
    words = "holds f32 but {} holds f64; one reduction has one type, so convert one of them"
    assert tally.fails("sum", a, b) == f"{a} {words.format(b)}"
    assert tally.fails("sum", a, "-", stdin=b.read_bytes()) == f"{a} {words.format('standard input')}"


def test_standard_input_twice(tally):
    line = tally.fails("sum", "--dtype", "u8", "-", "-")
    assert line == "standard input is named twice, and can be read once only"


def test_files_that_cannot_be_read(tally, tmp_path):
    missing = tmp_path / "missing"
    assert tally.fails("sum", missing) == f"{missing} cannot be opened: No such file or directory"
    assert tally.fails("sum", "--dtype", "u8", tmp_path) == (
        f"{tmp_path} cannot be read: Is a directory"
    )
    if os.geteuid() != 0:
        missing.touch(mode=0)
        assert tally.fails("sum", missing) == f"{missing} cannot be opened: Permission denied"


def test_names_cannot_break_the_line(tally, tmp_path):
    path = tmp_path / "a\nb\x1b[31m"
    assert "a?b?[31m cannot be opened" in tally.fails("sum", path)
    line = tally.run("sum", os.fsdecode(os.fsencode(tmp_path) + b"/\xc2\x9b\xff\xe2\x80\xae\xc3\xa9")).stderr
    assert line.endswith("/???é cannot be opened: No such file or directory\n".encode())


def test_closed_standard_input(tally):
    done = subprocess.run(f"exec {tally.binary} sum --dtype u8 <&-", shell=True, capture_output=True)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"tally: standard input cannot be read: Bad file descriptor\n"


def test_partly_read_standard_input(tally, tmp_path):
    """A shell may hand on a file from which something has been read already."""
    path = tmp_path / "a"
    path.write_bytes(bytes(range(100)))
    with path.open("rb", buffering=0) as file:
        file.read(7)
        assert tally("sum", "--dtype", "u8", stdin=file) == str(sum(range(7, 100)))


def test_proc_files_say_they_are_empty(tally):
    assert int(tally("max", "--dtype", "u8", "/proc/self/status")) > 32


def test_named_pipe(tally, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    array = np.arange(1_000_000, dtype="f8")
    file = io.BytesIO()
    np.save(file, array)
    writer = threading.Thread(target=fifo.write_bytes, args=(file.getvalue(),))
    writer.start()
    assert float(tally("sum", fifo)) == math.fsum(array)
    writer.join()


def test_table_from_a_named_pipe(tally, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for args, table, want in ((("count,sum", "-c", "1"), "".join(f"{i}\n" for i in range(100_000)), f"count\t100000\nsum\t{sum(range(100_000))}"),
                              (("sum", "-c", "v", "--by", "key"), "key,v\nRome,1\nOslo,2\n", "Rome\t1\nOslo\t2")):
        writer = threading.Thread(target=fifo.write_text, args=(table,))
        writer.start()
        assert tally(*args, fifo) == want
        writer.join()


def test_slow_pipe(tally):
    """Elements that arrive a few bytes at a time."""
    child = subprocess.Popen([tally.binary, "sum", "--dtype", "u32"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    for i in range(0, 40, 5):
        child.stdin.write(np.arange(10, dtype="u4").tobytes()[i : i + 5])
        child.stdin.flush()
        time.sleep(0.01)
    assert child.communicate()[0] == b"45\n"


def test_pipe_in_constant_memory(tally):
    """1 GiB through a pipe, in much less memory than that."""
    zeros = subprocess.Popen(["head", "-c", str(1 << 30), "/dev/zero"], stdout=subprocess.PIPE)
    child = subprocess.Popen([tally.binary, "sum", "--dtype", "u8", "--json"], stdin=zeros.stdout,
                             stdout=subprocess.PIPE)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    zeros.stdout.close()
    zeros.wait()
    assert child.returncode == 0 and b'"n": 1073741824' in out
    assert usage.ru_maxrss < 256 << 10  # KiB


@pytest.mark.long
def test_large_sparse_file(tally, tmp_path):
    """More than 2^32 elements; the last one is not zero."""
    path = tmp_path / "sparse"
    size = (1 << 32) + 5
    with path.open("wb") as file:
        file.seek(size - 1)
        file.write(b"\x07")
    got = tally.json("sum", "--dtype", "u8", path)
    path.unlink()
    assert (got["value"], got["n"]) == (7, size)


def test_file_that_shrinks_while_it_is_read(tally, tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    child = subprocess.Popen([tally.binary, "sum", "--dtype", "u8", path],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.2)
    os.truncate(path, 0)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (1, b"")
    assert err.decode() == (
        f"tally: {path} changed while it was read: it became shorter, or its disk failed; try again\n"
    )


def test_file_that_loses_its_last_bytes(tally, tmp_path):
    """Less than a page: the kernel shows zeros there instead of sending a signal. A file that is
    read before its bytes are lost gives its sum; so larger ones are tried until one is caught."""
    path = tmp_path / "a"
    for size in (1 << 28, 1 << 30, 1 << 32):
        with path.open("wb") as file:
            file.seek(size)
            file.write(bytes(10))
        child = subprocess.Popen([tally.binary, "sum", "--dtype", "u8", path],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.05)
        os.truncate(path, size + 3)
        out, err = child.communicate(timeout=60)
        if child.returncode:
            break
        assert (out, err) == (b"0\n", b"")
    path.unlink()
    assert (child.returncode, out) == (1, b"")
    assert b" changed while it was read: " in err and err.count(b"\n") == 1


def run_under_terminal(command, feed=lambda stdin: None, env=None):
    """What the command writes to a terminal that is its stderr, and to its stdout."""
    master, slave = pty.openpty()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=slave,
                             env=env)
    os.close(slave)
    feed(child.stdin)
    child.stdin.close()
    seen = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    out = child.stdout.read()
    return seen, out, child.wait()


def slowly(pieces, last=b""):
    def feed(stdin):
        for piece in pieces:
            stdin.write(piece)
            stdin.flush()
            time.sleep(0.5)
        stdin.write(last)

    return feed


ERASE = b"\r\x1b[K"


def test_progress_line(tally):
    feed = slowly([bytes(4 << 20)] * 4)
    seen, out, status = run_under_terminal([tally.binary, "sum", "--dtype", "u8"], feed)
    assert (out, status) == (b"0\n", 0)
    assert b"GB done" in seen and b"GB/s" in seen and b"%" not in seen
    assert seen.startswith(ERASE) and seen.endswith(ERASE) and b"\n" not in seen


CLOCK = r"""
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
/* A millisecond is a second. */
int clock_gettime(clockid_t id, struct timespec *t) {
    long result = syscall(SYS_clock_gettime, id, t);
    long long passed = (t->tv_sec % 1000000 * 1000000000LL + t->tv_nsec) * 1000;
    t->tv_sec = passed / 1000000000;
    t->tv_nsec = passed % 1000000000;
    return (int)result;
}
"""


def test_progress_line_knows_the_size(tally, tmp_path):
    """However fast the machine is: the command is run with a clock that is fast, too."""
    (tmp_path / "clock.c").write_text(CLOCK)
    library = tmp_path / "clock.so"
    if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "clock.c"]).returncode:
        pytest.skip("no compiler")
    path = tmp_path / "numbers"
    path.write_text("1.0\n" * 3_000_000)
    seen, out, status = run_under_terminal([tally.binary, "count", "--text", "--dtype", "f32", str(path)],
                                           env={**os.environ, "LD_PRELOAD": str(library),
                                                "ASAN_OPTIONS": "verify_asan_link_order=0"})
    assert (out, status) == (b"3000000\n", 0)
    assert b"%" in seen and seen.endswith(ERASE)


def test_progress_line_gives_way_to_an_error(tally):
    feed = slowly([bytes(8 << 20)] * 4, b"x")
    seen, out, status = run_under_terminal([tally.binary, "sum", "--dtype", "u16"], feed)
    assert (out, status) == (b"", 1)
    shown, line = seen.rsplit(ERASE, 1)
    assert b"GB done" in shown and line.startswith(b"tally: standard input has ")


def test_no_progress_line_for_quick_work(tally):
    seen, out, status = run_under_terminal(
        [tally.binary, "sum", "--dtype", "u8"])
    assert (seen, out, status) == (b"", b"0\n", 0)


def test_no_progress_line_without_a_terminal(tally):
    child = subprocess.Popen([tally.binary, "sum", "--dtype", "u8"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    slowly([bytes(4 << 20)] * 4)(child.stdin)
    child.stdin.close()
    child.wait()
    assert (child.stdout.read(), child.stderr.read()) == (b"0\n", b"")
