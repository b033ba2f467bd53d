"""The command line: what is printed, the JSON object, devices, bench, help, and usage errors."""

import json
import os
import resource
import subprocess
from fractions import Fraction

import exact
import numpy as np
import pytest

F32 = np.float32([0.1, 1e8, -1e8, 3.7]).tobytes()


def digits(text):
    return len(text.lower().split("e")[0].lstrip("-").replace(".", "").strip("0"))


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_shortest_decimal(tally, name):
    """As few digits as NumPy's own shortest text, and the same bits when read back."""
    rng = np.random.default_rng(9)
    for b in rng.integers(0, 2**31 if name == "f32" else 2**63, 40):
        x = np.array([b], f"u{exact.BYTES[name]}").view(exact.dtype(name))
        if not np.isfinite(x[0]):
            continue
        text = tally("max", "--dtype", name, stdin=x.tobytes())
        assert exact.parse(name, text) == int(b)
        assert digits(text) == digits(str(x[0]))


def test_json_fields(tally):
    got = tally.json("sum", "--dtype", "f32", stdin=F32)
    assert set(got) == {"op", "dtype", "n", "value", "bits", "device", "seconds", "gbps"}
    assert (got["op"], got["dtype"], got["n"]) == ("sum", "f32", 4)
    want = np.float32(float(sum(map(Fraction, np.frombuffer(F32, "f4").tolist()))))
    assert got["value"] == pytest.approx(float(want), rel=0, abs=1e-7)
    assert np.float32(got["value"]) == want
    assert got["bits"] == f"0x{want.view('u4'):08x}"
    assert got["device"].startswith("cpu")
    assert got["seconds"] > 0 and got["gbps"] >= 0


def test_json_values(tally):
    """Numbers as numbers, but for those JSON does not have; 64-bit integers in full."""
    value = lambda op, name, *x: tally.json(op, "--text", "--dtype", name, stdin="\n".join(x).encode())
    assert value("sum", "f64", "nan")["value"] == "nan"
    assert value("sum", "f64", "inf")["value"] == "inf"
    assert value("sum", "f16", "-inf")["value"] == "-inf"
    assert value("max", "u64", str(2**64 - 1))["value"] == 2**64 - 1
    assert value("min", "i64", str(-(2**63)))["value"] == -(2**63)
    assert value("min", "i8", "-128") | {"seconds": 0, "gbps": 0} == {
        "op": "min", "dtype": "i8", "n": 1, "value": -128, "bits": "0x80",
        "device": value("min", "i8", "-128")["device"], "seconds": 0, "gbps": 0}
    zero = value("sum", "f64", "-0")
    assert str(zero["value"]) == "-0.0" and zero["bits"] == "0x8000000000000000"
    assert value("sum", "f64", "0.1")["value"] == 0.1
    assert value("sum", "i8", "-1")["bits"] == "0x" + "f" * 16


MALLOC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static long left = -1;
static int fails(void) {
    if (left < 0) left = atol(getenv("MALLOC_FAILS_AFTER"));
    const int now = left == 0 || !--left;
    if (now && getenv("MALLOC_FAILS_ONCE")) left = 1L << 40;
    if (now) errno = ENOMEM;
    return now;
}
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return fails() ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
"""


@pytest.mark.parametrize("once", [False, True])
def test_json_without_memory(tally, tmp_path, once):
    """The k-th malloc fails, or all from it on: a whole object, or a line and no output; for every k."""
    with open(os.environ["TALLY"], "rb") as program:
        if b"__asan_init" in program.read():
            pytest.skip("AddressSanitizer needs more memory than the limit here, and an allocator of its own")
    (tmp_path / "malloc.c").write_text(MALLOC)
    library = tmp_path / "malloc.so"
    if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "malloc.c"]).returncode:
        pytest.skip("no compiler")
    good = 0
    for k in range(1, 200 if once else 2000):
        env = {**os.environ, "LD_PRELOAD": str(library), "MALLOC_FAILS_AFTER": str(k), **({"MALLOC_FAILS_ONCE": "1"} if once else {})}
        done = tally.run("minmax", "--device", "cpu:threads=1", "--dtype", "f32", "--json", stdin=F32, env=env)
        if b"libgomp" in done.stderr:
            continue  # before main()
        assert done.returncode in (0, 1), (k, done)
        if done.returncode == 0:
            assert json.loads(done.stdout)["ops"] == ["min", "max"], k
            good += 1
        else:
            assert done.stdout == b"" and done.stderr.startswith(b"tally: "), (k, done)
        if good == 3 and not once:
            return
    assert once and good


BROKEN_DRIVER = r"""
#include <stdlib.h>
int clGetPlatformInfo(void) { return 0; }
int clIcdGetPlatformIDsKHR(unsigned n, void *p, unsigned *m) { abort(); }
void *clGetExtensionFunctionAddress(const char *name) {
    extern int strcmp(const char *, const char *);
    return strcmp(name, "clIcdGetPlatformIDsKHR") ? 0 : (void *)clIcdGetPlatformIDsKHR;
}
"""


def test_driver_that_aborts(tally, tmp_path):
    """It is named and left out, and the others are listed."""
    (tmp_path / "broken.c").write_text(BROKEN_DRIVER)
    library = tmp_path / "libbroken.so"
    if subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "broken.c"]).returncode:
        pytest.skip("no compiler")
    (tmp_path / "broken.icd").write_text(f"{library}\n")
    env = {**os.environ, "OCL_ICD_VENDORS": str(tmp_path)}
    done = tally.run("devices", "--json", env=env)
    assert done.returncode == 0
    if not done.stderr:
        pytest.skip("no OpenCL loader here that reads OCL_ICD_VENDORS")
    assert done.stderr.decode() == (
        f"tally: the OpenCL driver that {tmp_path}/broken.icd names breaks down (Aborted); "
        "it is left out, and OpenCL with it\n")
    assert json.loads(done.stdout)[0]["spec"] == "cpu"
    done = tally.run("ladder", "-n", "1000", env=env)
    assert done.returncode == 0 and b"broken.icd" in done.stderr
    done = tally.run("ladder", "--device", "opencl", "-n", "1000", env=env)
    assert (done.returncode, done.stdout) == (1, b"") and b"broken.icd" in done.stderr
    named = (f"the OpenCL driver that {tmp_path}/broken.icd names breaks down (Aborted); nothing was computed")
    assert tally.fails("sum", "--device", "opencl", stdin=b"1 2\n", env=env) == named
    assert tally.fails("bench", "sum", "-n", "1000", "--device", "opencl:0", env=env) == named
    # Who names no such device meets no driver.
    assert tally("sum", stdin=b"1 2\n", env=env) == "3"
    assert tally.json("bench", "sum", "-n", "1000", "--repeat", "1", env=env)["device"].startswith("cpu")


def test_json_is_one_line(tally):
    done = tally.run("sum", "--json", "--dtype", "f32", stdin=F32)
    assert done.stdout.count(b"\n") == 1


def test_out(tally):
    x = np.frombuffer(F32, "f4")
    want = float(sum(map(Fraction, x.tolist())))
    assert float(tally("sum", "--dtype", "f32", "--out", "f64", stdin=F32)) == want
    got = tally.json("sum", "--dtype", "f32", "--out=f16", stdin=F32)
    assert int(got["bits"], 16) == exact.rounded("f16", Fraction(sum(map(Fraction, x.tolist()))))
    assert float(tally("sum", "--dtype", "i32", "--out", "f64", stdin=F32)) == float(np.frombuffer(F32, "i4").sum())
    tally.fails("max", "--dtype", "f32", "--out", "f64", stdin=F32)
    tally.fails("sum", "--dtype", "f32", "--out", "i32", stdin=F32)


def test_fast(tally):
    x = np.random.default_rng(1).random(10_000)
    got = float(tally("sum", "--fast", "--dtype", "f64", stdin=x.tobytes()))
    assert got == pytest.approx(x.sum(), rel=1e-12)


def test_threads_and_devices_do_not_change_the_bits(tally, tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.random.default_rng(1).normal(size=100_000) * 1e10)
    want = tally("sum", path)
    for args in (("--threads", 1), ("--threads", 3), ("--device", "cpu"), ("--device", "auto"),
                 ("--device", "auto", "--threads", 2), ("--device", "cpu:threads=2"),
                 ("--device", "cpu:isa=baseline"), ("--device", "cpu:isa=baseline", "--threads=2")):
        assert tally("sum", *args, path) == want


def test_options_after_files(tally, tmp_path):
    path = tmp_path / "-odd"
    path.write_bytes(F32)
    assert float(tally("max", path, "--dtype", "f32")) == 1e8
    assert float(tally("max", "--dtype", "f32", "--", "-odd", cwd=tmp_path)) == 1e8


def test_range_error(tally):
    for name, x, wide in (("i64", 2**62, "i64"), ("u64", 2**63, "u64")):
        data = np.array([x, x], exact.dtype(name)).tobytes()
        assert tally.fails("prod", "--dtype", name, stdin=data).startswith(
            f"the exact prod of these 2 {name} numbers does not fit {wide}"
        )
    data = np.full(8, 256, "u2").tobytes()
    assert "does not fit u64" in tally.fails("prod", "--dtype", "u16", stdin=data)


USAGE = [
    ((), "no command is given; 'tally help' lists them"),
    (("median",), "'median' is no command; the commands are sum prod min max and or xor mean var std"),
    (("--frob",), "'--frob' is no command"),
    (("help", "frob"), "'frob' is no command"),
    (("help", "sum", "max"), "help takes one command at a time"),
    (("sum", "--frob"), "--frob is no option of this command; see 'tally help sum'"),
    (("sum", "--frob=3"), "--frob=3 is no option of this command; see 'tally help sum'"),
    (("maen",), "'maen' is no command; did you mean mean?"),
    (("average",), "'average' is no command; did you mean mean?"),
    (("device",), "'device' is no command; did you mean devices?"),
    (("sum", "--txet"), "--txet is no option of this command; did you mean --text?"),
    (("devices", "--jsno"), "--jsno is no option of this command; did you mean --json?"),
    (("bench", "maxx"), "'maxx' is no operator; did you mean max?"),
    (("sum", "-x"), "-x is no option of this command; see 'tally help sum'"),
    (("sum", "--dtype"), "--dtype needs a value; see 'tally help sum'"),
    (("sum", "--json=1"), "--json=1: this option takes no value; see 'tally help sum'"),
    (("sum", "--dtype", "f65"), "--dtype takes one of i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64; 'f65' is none"),
    (("sum", "--out", "x"), "--out takes one of i8"),
    (("sum", "--threads", "0"), "--threads takes a whole number from 1 up"),
    (("sum", "--threads", "two"), "'two' is none"),
    (("sum", "--threads", "-1"), "'-1' is none"),
    (("sum", "--threads", "2", "--device", "cuda:0"), "--threads goes with the cpu only, not with --device cuda:0; leave one out"),
    (("sum", "--threads", "2", "--device", "cpu:threads=3"), "both tell the number of threads; leave one out"),
    (("devices", "x"), "devices takes no argument such as 'x'"),
    (("devices", "--x"), "--x is no option of this command; see 'tally help devices'"),
    (("bench", "median"), "bench takes one of the operators sum prod min max and or xor mean"),
    (("bench", "sum", "max"), "bench takes one operator; 'max' is one too many"),
    (("bench", "-n"), "-n needs a value; see 'tally help bench'"),
    (("bench", "-n", "0"), "-n takes a whole number from 1 up, such as 1000, 1e6 or 2^27; '0' is none"),
    (("bench", "-n", "1.5"), "'1.5' is none"),
    (("bench", "-n", "2^64"), "'2^64' is none"),
    (("bench", "-n", "2^x"), "'2^x' is none"),
    (("bench", "-n", "1e30"), "'1e30' is none"),
    (("bench", "-n", "15e-1"), "'15e-1' is none"),
    (("bench", "-n", "99999999999999999999"), "is none"),
    (("bench", "--data", "odd"), "--data takes one of uniform normal loguniform wild; 'odd' is none"),
    (("bench", "--repeat", "1001"), "--repeat takes at most 1000 rounds"),
]


@pytest.mark.parametrize("args, words", USAGE, ids=[" ".join(a) for a, _ in USAGE])
def test_usage_errors(tally, args, words):
    assert words in tally.fails(*args, status=2)


def test_unknown_device(tally):
    for command in ("sum", "bench"):
        line = tally.fails(command, "--device", "abacus")
        assert line.startswith("'abacus' names no device; a device is one of auto cpu") and line.count(";") == 1


def test_help_and_version(tally):
    overview = tally("help")
    assert tally("--help") == tally("-h") == overview
    for op in exact.OPS:
        assert f"  {op} " in overview
        assert tally("help", op) == tally(op, "--help") == tally(op, "-h") == tally("help", "sum")
    for command in ("devices", "bench", "help"):
        assert f"  {command} " in overview
        assert tally("help", command) == tally(command, "--help")
        assert tally("help", command).startswith(f"Usage: tally {command}")
    assert tally("--version").startswith("tally ")
    assert tally("--version") == tally("-V") == tally("version")


def test_help_names_every_option(tally):
    for option in ("dtype", "text", "raw", "skip-na", "na", "decimal", "decimal-mark", "thousands", "each", "column", "by", "sort", "header", "no-header", "delimiter", "axis", "segments", "groups", "skip-outside", "mask", "out", "ddof", "fast", "device", "threads", "json"):
        assert f"--{option}" in tally("help", "sum")
    for option in ("dtype", "n", "data", "shape", "axis", "segments", "groups", "ids", "fast", "device", "threads", "repeat", "json"):
        assert f"--{option}" in tally("help", "bench")


@pytest.mark.parametrize("args", ["--version", "help", "sum --dtype u8", "sum --dtype u8 --json", "devices"])
def test_full_disk(tally, args):
    done = subprocess.run(f"{tally.binary} {args} >/dev/full </dev/null", shell=True, capture_output=True)
    assert done.returncode == 1
    assert done.stderr == b"tally: cannot write to standard output: No space left on device\n"


@pytest.mark.long
def test_devices(tally):
    devices = json.loads(tally("devices", "--json"))
    assert devices[0]["spec"] == "cpu"
    for d in devices:
        assert set(d) == {"spec", "name", "isa", "units", "threads", "memory_bytes", "read_gbps"}
        assert d["units"] >= 1 and d["memory_bytes"] > 0
        assert d["read_gbps"] is None if d["spec"].startswith("model") else d["read_gbps"] > 0
    table = tally("devices").splitlines()
    assert table[0].split() == ["SPEC", "ISA", "UNITS", "MEMORY", "READ", "NAME"]
    assert len(table) == 1 + len(devices) and table[1].startswith("cpu ")


@pytest.mark.parametrize("limit", [45 << 20, 400 << 20])
def test_devices_with_little_memory(tally, limit):
    """They are listed, measured or not."""
    with open(os.environ["TALLY"], "rb") as program:
        if b"__asan_init" in program.read():
            pytest.skip("AddressSanitizer needs more memory than the limit here")
    done = tally.run("devices", "--json", env={**os.environ, "OCL_ICD_VENDORS": "/nowhere"},
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert done.returncode == 0, done
    first = json.loads(done.stdout)[0]
    assert first["spec"] == "cpu"
    if limit < 200 << 20:
        assert first["read_gbps"] is None and b"to measure with" in done.stderr
    else:
        assert first["read_gbps"] > 0


BENCH_KEYS = {"op", "dtype", "n", "device", "threads", "isa", "openmp_threads", "data", "fast",
              "rounds", "median_ms", "gbps", "sequential_gbps", "openmp_gbps", "roof_gbps", "of_roof", "of_openmp", "value",
              "bits"}


BENCH_OPS = exact.OPS + ["mean", "var", "std", "norm1", "norm2", "norminf", "sumsq", "dot", "argmin", "argmax",
                         "minmax", "count", "nans", "nonzero", "any", "all", "describe"]


@pytest.mark.parametrize("op,name", [(op, name) for op in BENCH_OPS for name in exact.TYPES
                                     if op in ("sum", "min", "dot", "describe") or name in ("f32", "bf16", "i8", "u64")])
def test_bench(tally, op, name):
    args = ("--dtype", name, "-n", "2^10", "--repeat", 1)
    got = tally.json("bench", op, *args)
    assert set(got) == BENCH_KEYS
    assert (got["op"], got["dtype"], got["n"], got["rounds"]) == (op, name, 1024, 1)
    assert isinstance(got["value"], list) == (op in ("minmax", "describe"))
    if op in ("any", "all"):  # such that every element had to be looked at
        assert got["value"] == {"any": 0, "all": 1}[op]
    if op == "count":  # which reads nothing
        assert got["value"] == 1024 and got["gbps"] is None and got["of_roof"] is None
        return
    array = 1024 * exact.BYTES[name] * (2 if op == "dot" else 1)
    assert got["gbps"] == pytest.approx(array / got["median_ms"] * 1e-6, rel=1e-4)
    for key in ("median_ms", "gbps", "sequential_gbps", "openmp_gbps", "roof_gbps", "of_roof"):
        assert got[key] > 0
    assert got["of_roof"] == pytest.approx(got["gbps"] / got["roof_gbps"], rel=1e-3)


def test_bench_on_a_gpu(tally):
    """In the device's memory, and with the copy to it."""
    if not any(d["spec"] == "opencl:0" for d in tally.json("devices")):
        pytest.skip("no OpenCL device")
    args = ("--dtype", "f32", "-n", "2^12", "--repeat", 1, "--device", "opencl")
    got = tally.json("bench", *args)
    assert set(got) == BENCH_KEYS | {"with_copy_ms"}
    assert got["with_copy_ms"] > 0 and got["device"] == "opencl:0"
    assert got["bits"] == tally.json("bench", *args[:6])["bits"]
    assert "with the copy" in tally("bench", *args)
    assert "the model has no time" in tally.fails("bench", "-n", "100", "--device", "model")


@pytest.mark.parametrize("name", ["f16", "bf16", "f32", "f64", "i32", "u64"])
@pytest.mark.parametrize("data", ["uniform", "normal", "loguniform", "wild"])
def test_bench_data(tally, data, name):
    """The same elements every time; finite."""
    run = lambda *a: tally.json("bench", "max", "--dtype", name, "-n", "1e3", "--data", data,
                                "--repeat", 1, *a)
    first, second = run(), run("--threads", 1)
    assert first["bits"] == second["bits"] and first["data"] == data
    assert second["threads"] == 1
    low, high = {"uniform": (0.9, 1), "normal": (2, 6), "loguniform": (2**9, 2**20),
                 "wild": (1e3, 2e308)}[data]
    if name in exact.FLOATS:
        assert low <= first["value"] <= high


def test_bench_defaults_and_table(tally):
    got = tally.json("bench", "-n", 1000, "--repeat", 2)
    assert (got["op"], got["dtype"], got["data"], got["fast"]) == ("sum", "f64", "uniform", False)
    assert tally.json("bench", "--fast", "-n", 1000, "--repeat", 2)["fast"] is True
    table = tally("bench", "min", "--dtype", "i16", "-n", "1000", "--repeat", "2").splitlines()
    assert table[0].startswith("min of 1000 i16 (uniform) = -100")
    for row in ("tally", "openmp simd", "sequential", "read roof"):
        assert any(line.strip().startswith(row) for line in table)


def test_bench_without_the_memory(tally):
    line = tally.fails("bench", "-n", "2^50")
    assert line.startswith("not enough memory for 1125899906842624 f64 numbers: ")
    assert line.endswith("choose a smaller -n")
    assert "not enough memory" in tally.fails("bench", "-n", "2^62")
