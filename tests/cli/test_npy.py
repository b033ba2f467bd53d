"""Every .npy file NumPy can write of our types, and every one that is refused."""

import gzip
import io
import shutil
import struct
import subprocess
import zipfile

import exact
import numpy as np
import pytest

NPY_TYPES = [t for t in exact.TYPES if t != "bf16"]


def npy_bytes(array, version=(1, 0)):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version)
    return out.getvalue()


def with_header(text, data=b"", version=(1, 0), length=None):
    text = text.encode()
    length = len(text) if length is None else length
    size = struct.pack("<H" if version[0] == 1 else "<I", length)
    return b"\x93NUMPY" + bytes(version) + size + text + data


def header(descr="'<f8'", order="False", shape="(2,)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


@pytest.fixture
def write(tmp_path):
    def write(data, name="a.npy"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def check(tally, op, name, array, *args, printed=True, **kwargs):
    """Its bits, and unless printed is False what is printed without --json."""
    got = tally.json(op, *args, **kwargs)
    want = exact.reduce(op, name, array)
    kind = exact.result_type(op, name)
    assert got["dtype"] == name and got["n"] == array.size and got["op"] == op
    assert int(got["bits"], 16) == want
    text = tally(op, *args, **kwargs) if printed else "nan"
    if text != "nan":  # or of floats may have made one, with bits of its own
        assert exact.parse(kind, text) == want


@pytest.mark.parametrize("op", exact.OPS)
@pytest.mark.parametrize("name", NPY_TYPES)
def test_type_and_operator(tally, write, op, name):
    array = (exact.factors if op == "prod" else exact.sample)(name, 1001)
    check(tally, op, name, array, write(npy_bytes(array)))


@pytest.mark.parametrize("by_pipe", [False, True])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("endian", "<>")
@pytest.mark.parametrize("name", NPY_TYPES)
def test_orders(tally, write, name, endian, order, by_pipe):
    array = exact.sample(name, 60).reshape(3, 4, 5).astype(exact.dtype(name, endian), order)
    data = npy_bytes(array)
    if by_pipe:
        check(tally, "sum", name, array, printed=False, stdin=data)
    else:
        check(tally, "sum", name, array, write(data), printed=False)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (2, 3, 4), (1000,)])
def test_versions_and_shapes(tally, write, version, shape):
    array = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape) - 3
    data = npy_bytes(array, version)
    assert tally("sum", write(data)) == str(array.sum())
    assert tally("sum", stdin=data) == str(array.sum())


def test_big_endian_across_buffers(tally, write):
    array = np.arange(3_000_000, dtype=">u2")
    assert tally("sum", write(npy_bytes(array))) == str(array.sum(dtype="u8"))


@pytest.mark.parametrize("length", [100, 5000, 60000])
def test_long_headers(tally, write, length):
    text = header(shape="(2,)").rstrip().ljust(length) + "\n"
    data = np.array([1.5, 2.25]).tobytes()
    assert tally("sum", write(with_header(text, data))) == "3.75"
    assert tally("sum", stdin=with_header(text, data, (2, 0))) == "3.75"


@pytest.mark.parametrize(
    "text",
    [
        "{'shape':(2,),'fortran_order':True,'descr':'<f8'}",
        '{"descr": "=f8", "fortran_order": False, "shape": (2L,)}',
        "{ 'descr' : '<f8' , 'fortran_order' : False , 'shape' : ( 1 , 2 ) , } \n",
    ],
)
def test_headers_written_otherwise(tally, write, text):
    assert tally("sum", write(with_header(text, np.array([1.5, 2.25]).tobytes()))) == "3.75"


def test_bfloat16(tally, write):
    array = exact.sample("bf16", 1000)
    data = array.astype("<u2").tobytes()
    named = write(with_header(header("'bfloat16'", shape="(1000,)"), data), "named.npy")
    check(tally, "sum", "bf16", array, named)
    check(tally, "sum", "bf16", array, write(with_header(header("'<bfloat16'", shape="(1000,)"), data)))
    for descr in ("'<V2'", "'|V2'"):
        opaque = write(with_header(header(descr, shape="(1000,)"), data), "opaque.npy")
        check(tally, "sum", "bf16", array, opaque, "--dtype", "bf16")
        for args in ((), ("--dtype", "f16")):
            assert tally.fails("sum", opaque, *args) == (
                f"{opaque} holds two-byte elements without a type (dtype 'V2'); "
                "if they are bfloat16, add --dtype bf16"
            )


def test_bool(tally, write):
    path = write(npy_bytes(np.array([True, False, True])))
    assert tally("sum,any,all,nonzero", path) == "sum\t2\nany\t1\nall\t0\nnonzero\t2"


def test_dtype_may_repeat_the_header(tally, write):
    path = write(npy_bytes(np.float32([1, 2])))
    assert tally("sum", "--dtype", "f32", path) == "3"
    assert tally.fails("sum", "--dtype", "f64", path) == (
        f"{path} holds f32, but --dtype says f64; leave --dtype out or convert the array"
    )


@pytest.mark.parametrize(
    "descr, words",
    [
        ("'float64'", "dtype 'float64' is not supported: not a number type of Tally"),
        ("'bool'", "not a number type of Tally"),
        ("'>bfloat16'", "not a number type of Tally"),
        ("'<c8'", "complex numbers"),
        ("'|O'", "Python objects"),
        ("'<U3'", "strings"),
        ("'|S3'", "strings"),
        ("'<M8[ns]'", "dates or times"),
        ("'<m8[s]'", "dates or times"),
        ("'<f16'", "extended floats"),
        ("'|V7'", "not a number type of Tally"),
        ("'>V2'", "not a number type of Tally"),
        ("'\x1b[31m'", "dtype '?[31m'"),
        ("''", "not a number type of Tally"),
        ("[('x', '<f8'), ('y', '<f8')]", "structured array"),
        ("'<f8", "damaged"),
        ("'" + "f" * 100 + "'", "damaged"),
        ("12", "damaged"),
    ],
)
def test_unsupported_dtypes(tally, write, descr, words):
    path = write(with_header(header(descr), b"\0" * 16))
    line = tally.fails("sum", path)
    assert line.startswith(f"{path}: ") and words in line


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "no dictionary"),
        ("{", "damaged"),
        ("{}", "lacks one of descr, fortran_order and shape"),
        ("{'descr': '<f8', 'shape': (2,)}", "lacks one of"),
        (header().replace("}", "} x"), "something follows"),
        (header().replace("'shape'", "'color'"), "does not belong"),
        (header().replace("{", "{'descr': '<f8', "), "twice"),
        (header(order="Maybe"), "neither True nor False"),
        (header(shape="2"), "shape in its header is damaged"),
        (header(shape="(-2,)"), "shape in its header is damaged"),
        (header(shape="(2"), "shape in its header is damaged"),
        (header(shape="(2 3)"), "shape in its header is damaged"),
        (header(shape="(18446744073709551616,)"), "too large"),
        (header(shape="(99999999999999999999999,)"), "too large"),
        (header(shape="(4294967296, 4294967296)"), "too large"),
        (header(shape="(1152921504606846976,)"), "too large"),
        ("{'de\\x73cr': '<f8'}", "damaged"),
        ("\0" * 20, "damaged"),
    ],
)
def test_damaged_headers(tally, write, text, words):
    path = write(with_header(text, b"\0" * 16))
    line = tally.fails("sum", path)
    assert line.startswith(f"{path}: ") and words in line
    assert words in tally.fails("sum", stdin=path.read_bytes())


def test_shape_with_zero_is_never_too_large(tally, write):
    assert tally("sum", write(with_header(header(shape="(99999999999999999999, 0)")))) == "0"


def test_unknown_version_and_long_header(tally, write):
    for version in (0, 0), (4, 0), (1, 1):
        line = tally.fails("sum", write(with_header(header(), b"\0" * 16, version)))
        assert f"format version {version[0]}.{version[1]} is not one of" in line
    assert "over 1 MiB" in tally.fails("sum", write(with_header("", version=(2, 0), length=2**31)))


def test_every_truncation(tally, write):
    data = npy_bytes(np.array([1.5, 2.25]))
    for length in range(6, len(data), 7):
        line = tally.fails("sum", write(data[:length], "t.npy"))
        assert "t.npy is truncated: " in line and "write it again" in line
        line = tally.fails("sum", stdin=data[:length])
        assert "standard input is truncated: " in line
    for length in range(6):  # so short that it does not even say what it is
        path = write(data[:length], "t.npy")
        assert "t.npy does not begin as a .npy file does: it is cut short" in tally.fails("sum", path)
        assert tally("sum", "--dtype", "u8", path) == str(sum(data[:length]))
    assert tally.fails("sum", write(data[:-1], "t.npy")).endswith(
        "t.npy is truncated: its header promises 16 bytes of data, but only 15 follow; "
        "write it again"
    )


def test_trailing_bytes(tally, write):
    data = npy_bytes(np.array([1.5, 2.25]))
    path = write(data + data)
    assert tally.fails("sum", path) == (
        f"{path} has {len(data)} bytes after its array; a .npy file holds one array only"
    )
    assert tally.fails("sum", stdin=data + b"x") == (
        "standard input has bytes after its array; a .npy file holds one array only"
    )


def test_archive(tally, tmp_path):
    path = tmp_path / "a.npz"
    for save in (np.savez, np.savez_compressed):
        save(path, x=np.arange(4))
        assert tally("sum", path) == tally("sum", f"{path}:x") == tally("sum", f"{path}:x.npy") == "6"
        save(path, x=np.arange(4), y=np.arange(1_000_000.0))
        assert tally("sum", f"{path}:y") == str(sum(range(1_000_000)))
        assert tally("dot", f"{path}:x", f"{path}:x") == "14"
        assert tally.fails("sum", path) == (
            f"{path} is an archive; name one of its members, as in {path}:NAME: x.npy y.npy")
        assert tally.fails("sum", f"{path}:z") == f"{path} has no member z; its members are x.npy y.npy"
    assert "cannot be opened" in tally.fails("sum", tmp_path / "b.npz")
    assert "is no archive that can be read" in tally.fails("sum", f"{tmp_path}/b.npz:x")
    with path.open("rb") as file:
        assert tally.fails("sum", stdin=file).startswith("standard input is a .npz or zip archive; unpack it")
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("a.txt", "1 2\n")
        archive.writestr("b.csv", "k,v\nx,4\n")
    assert tally("sum", f"{tmp_path}/t.zip:a.txt") == "3" and tally("sum", "-c", "v", f"{tmp_path}/t.zip:b.csv") == "4"
    path.write_bytes(path.read_bytes()[:-30])
    assert "is no archive that can be read" in tally.fails("sum", path)


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_compressed(tally, write, pack):
    if pack == "zstd" and not shutil.which("zstd"):
        pytest.skip("no zstd")
    pack = (lambda data: gzip.compress(data, 1)) if pack == "gzip" else zstd  # (9, its own choice, takes half a minute)
    array = np.arange(1_000_000.0)
    want = str(int(array.sum()))
    for data, args in ((npy_bytes(array), ()), (array.tobytes(), ("--dtype", "f64")),
                       ("\n".join(map(repr, array.tolist())).encode(), ())):
        packed = pack(data)
        assert tally("sum", *args, write(packed)) == tally("sum", *args, stdin=packed) == want
        half = len(data) // 2
        if args:
            assert tally("sum", *args, stdin=pack(data[: half - half % 8]) + pack(data[half - half % 8 :])) == want
        for cut in (1, len(packed) // 2, len(packed) - 30):
            line = tally.fails("sum", *args, stdin=packed[:-cut])
            assert "truncated" in line or "cannot be unpacked" in line
        broken = bytearray(packed)
        broken[len(packed) // 2] ^= 0x55
        assert tally.run("sum", *args, stdin=bytes(broken)).returncode == 1
    assert tally("sum", stdin=pack(b"")) == "0"
    assert tally("sum", "-c", "b", stdin=pack(b"a,b\n1,2\n")) == "2"
    data = pack(bytes(100))
    assert tally("sum", "--dtype", "u8", "--raw", stdin=data) == str(sum(data))


RECORDS = [
    np.dtype([("x", "<f8"), ("n", "<i4"), ("s", "S5"), ("u", "U3"), ("b", "?"), ("big", ">i2")]),
    np.dtype([("x", ">f4"), ("n", "u1")], align=True),
    np.dtype({"names": ["n", "x"], "formats": ["<i8", "<f2"], "offsets": [3, 17], "itemsize": 31}),
    np.dtype([("v", "<i4", (2, 3)), (("a title", "x"), "<f8"), ("in", [("n", "<i2"), ("m", "<c8")]), ("t", "<M8[ns]"), ("n", "<u2")]),
]


@pytest.mark.parametrize("record", range(len(RECORDS)))
def test_fields_of_structured_arrays(tally, write, tmp_path, record):
    rng = np.random.default_rng(record)
    x = np.zeros(300_007, RECORDS[record])
    for name in ("x", "n"):
        x[name] = rng.integers(0, 100, x.size)
    x["x"] /= 8
    data = npy_bytes(x)
    path = write(data)
    ops = "sum,max,argmax,argmin,count"
    for name in ("x", "n"):
        plain = write(npy_bytes(np.ascontiguousarray(x[name].astype(x.dtype[name].newbyteorder("=")))), "plain.npy")
        want = tally.json(ops, plain)
        got = tally.json(ops, f"{path}:{name}")
        assert [got[k] for k in ("value", "bits", "dtype", "n")] == [want[k] for k in ("value", "bits", "dtype", "n")], name
        assert tally("sum", "--segments", 43 * 6977 if x.size % (43 * 6977) == 0 else x.size, f"{path}:{name}") == tally("sum", plain)
        np.save(tmp_path / "i.npy", np.arange(x.size) % 7)
        assert tally("sum", "--by", tmp_path / "i.npy", f"{path}:{name}") == tally("sum", "--by", tmp_path / "i.npy", plain)
    grid = write(npy_bytes(np.asfortranarray(x[:300_000].reshape(300, 1000))), "grid.npy")
    plain = write(npy_bytes(x[:300_000].reshape(300, 1000)["n"].astype("i8")), "plain.npy")
    for axis in (0, 1):
        assert tally("sum", "--axis", axis, f"{grid}:n") == tally("sum", "--axis", axis, plain)
    np.savez(tmp_path / "a.npz", r=x)
    assert tally("sum", f"{tmp_path}/a.npz:r.npy:n") == tally("sum", f"{path}:n")
    names = " ".join(x.dtype.names)
    assert tally.fails("sum", path) == (
        f"{path}: it holds a structured array; name a field, as in FILE:{x.dtype.names[0]}; its fields are {names}")
    assert tally.fails("sum", f"{path}:z") == f"{path}:z: it has no field z; its fields are {names}"
    assert tally.fails("sum", f"{plain}:z") == f"{plain}:z: it holds no structured array, so it has no field z"
    cut = write(data[:-1], "cut.npy")
    assert "is truncated" in tally.fails("sum", f"{cut}:x")
    assert "would write over an input" in tally.fails("sum", "--segments", 1, "-o", path, f"{path}:x")


def test_fields_that_are_no_numbers(tally, write):
    x = np.zeros(5, RECORDS[3])
    path = write(npy_bytes(x))
    assert "dates or times" in tally.fails("sum", f"{path}:t")
    for name in ("v", "in"):
        assert tally.fails("sum", f"{path}:{name}") == f"{path}:{name}: its field {name} holds several values; save it as an array of its own"
    x = np.array([(1.0, np.nan), (2.0, 3.0)], [("x", "f8"), ("y", "f8")])
    path = write(npy_bytes(x))
    assert tally("sum", "--skip-na", f"{path}:y") == "3" and tally("dot", "--skip-na", f"{path}:x", f"{path}:y") == "6"
    named = write(npy_bytes(np.arange(4)), "a.npy:x")
    assert tally("sum", named) == "6"
