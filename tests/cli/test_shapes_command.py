"""The command along axes, by segment, by group and with masks: files, pipes, both orders, every kind of result."""

import io
import json
import os
import resource
import subprocess

import exact
import numpy as np
import pytest
import shapes

SEED = int(os.environ.get("TALLY_SEED", "8"))


@pytest.fixture
def rng(request):
    print(f"TALLY_SEED={SEED}")
    return np.random.default_rng([SEED, *request.node.name.encode()])


@pytest.fixture
def save(tmp_path):
    def save(array, name="a.npy"):
        np.save(tmp_path / name, array)
        return tmp_path / name
    return save


def run(tally, path, by_pipe, *args):
    """What the command prints, of a file or of a pipe."""
    if by_pipe:
        return tally(*args, "-", stdin=path.read_bytes())
    return tally(*args, path)


def results(tally, tmp_path, path, by_pipe, *args):
    """A file of results."""
    out = tmp_path / "out.npy"
    stdin = path.read_bytes() if by_pipe else b""
    done = tally.run(*args, "-o", out, "-" if by_pipe else path, stdin=stdin)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return np.load(out)


def orders(array, rng):
    """The same array in C or Fortran's order, little- or big-endian."""
    array = array.astype(array.dtype.newbyteorder(rng.choice(["<", ">"])))
    return np.asfortranarray(array) if rng.random() < 0.5 else array


@pytest.mark.parametrize("name", ["i8", "u16", "i32", "u64", "f16", "f32", "f64"])
@pytest.mark.parametrize("op", shapes.OPS)
def test_axes(tally, tmp_path, save, rng, op, name):
    for _ in range(3):
        dims = int(rng.integers(1, 5))
        shape = tuple(int(n) for n in rng.integers(1, 7, dims))
        x = shapes.sample(op, name, int(np.prod(shape)), rng).reshape(shape)
        axis = rng.permutation(dims)[: rng.integers(1, dims + 1)].tolist()
        axis = [a - dims if rng.random() < 0.5 else a for a in axis]
        path = save(orders(x, rng))
        got = results(tally, tmp_path, path, bool(rng.random() < 0.5), op, "--axis", ",".join(map(str, axis)))
        assert got.dtype == shapes.dtype(op, name)
        assert got.shape == tuple(n for d, n in enumerate(shape) if d not in [a % dims for a in axis])
        assert shapes.bits_of(got) == shapes.axes(op, name, x, axis), (shape, axis)


@pytest.mark.parametrize("op", ["sum", "max", "var", "argmin", "xor", "count"])
def test_masks(tally, tmp_path, save, rng, op):
    x = shapes.sample(op, "f32", 7 * 5 * 6, rng).reshape(7, 5, 6)
    mask = rng.integers(0, 3, x.shape).astype(rng.choice(["u1", "?", "i1"]))
    mask[..., 0] = 1  # no result is one of nothing
    m = save(np.asfortranarray(mask) if rng.random() < 0.5 else mask, "m.npy")
    for axis in ((0,), (2,), (0, 2), (1, 2), (0, 1, 2)):
        got = results(tally, tmp_path, save(orders(x, rng)), rng.random() < 0.5, op, "--mask", m, "--axis",
                      ",".join(map(str, axis)))
        assert shapes.bits_of(got) == shapes.axes(op, "f32", x, axis, mask), axis
    got = results(tally, tmp_path, save(x), rng.random() < 0.5, op, "--mask", save(mask, "m.npy"))
    assert got.shape == () and shapes.bits_of(got) == shapes.axes(op, "f32", x, (0, 1, 2), mask)


@pytest.mark.parametrize("name", ["i16", "u32", "bf16", "f64"])
@pytest.mark.parametrize("op", shapes.OPS)
def test_segments(tally, tmp_path, save, rng, op, name):
    x = shapes.sample(op, name, 300, rng)
    offsets = np.sort(rng.integers(0, 301, 40))
    if op.startswith("arg"):
        offsets = np.unique(offsets)
    mask = rng.integers(0, 2, 300).astype("u1") if rng.random() < 0.5 and not op.startswith("arg") else None
    args = ["--segments", save(offsets.astype(rng.choice(["<i4", ">i4", "<i8", ">i8"])), "o.npy")]
    if mask is not None:
        args += ["--mask", save(mask, "m.npy")]
    for by_pipe in (False, True):
        if name == "bf16":
            path = tmp_path / "a.raw"
            path.write_bytes(x.tobytes())
            extra = ["--dtype", "bf16", "--raw"]
        else:
            path, extra = save(x.astype(x.dtype.newbyteorder(rng.choice(["<", ">"])))), []
        got = results(tally, tmp_path, path, by_pipe, op, *args, *extra)
        assert got.shape == (len(offsets) - 1,)
        assert shapes.bits_of(got) == shapes.segments(op, name, x, offsets, mask)


@pytest.mark.parametrize("name", ["i16", "u32", "f16", "f64"])
@pytest.mark.parametrize("op", shapes.OPS)
def test_groups(tally, tmp_path, save, rng, op, name):
    x = shapes.sample(op, name, 300, rng)
    kind = rng.choice(["i1", "u1", "<i2", ">i4", "<u4", "<i8", ">u8"])
    ids = rng.integers(0, 20, 300).astype(kind)
    ids[ids == 7] = 8
    if rng.random() < 0.3:
        ids.sort()
    mask = rng.integers(0, 2, 300).astype("u1") if rng.random() < 0.5 else None
    args = ["--by", save(ids, "i.npy")]
    if mask is not None:
        args += ["--mask", save(mask, "m.npy")]
    here = ids if mask is None else ids[mask != 0]
    count = int(here.max()) + 1
    want = shapes.groups(op, name, x, ids, count, mask)
    present = [i for i in range(count) if np.any(here == i)]
    kinds = shapes.out_type(op, name)
    for by_pipe in (False, True):
        lines = run(tally, save(x), by_pipe, op, *args).splitlines()
        assert [int(line.split("\t")[0]) for line in lines] == present
        assert [exact.parse(kinds, line.split("\t")[1]) for line in lines if "nan" not in line] == [
            want[i] for i, line in zip(present, lines) if "nan" not in line]
        if not op.startswith("arg"):
            assert shapes.bits_of(results(tally, tmp_path, save(x), by_pipe, op, *args)) == want
        fewer = results(tally, tmp_path, save(x), by_pipe, op, *args, "--groups", 3, "--skip-outside")
        assert shapes.bits_of(fewer) == shapes.groups(op, name, x, ids, 3, mask)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("op, name", [("sum", "f32"), ("max", "i32"), ("argmin", "f64"), ("mean", "u16"), ("xor", "u8")])
def test_along_an_axis(tally, tmp_path, save, rng, op, name, axis):
    """Segments and groups of vectors: each result is of one column of the axis."""
    x = shapes.sample(op, name, 420, rng).reshape(6, 7, 10)
    n, columns = x.shape[axis], np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
    ids = np.append(rng.integers(0, 3, n - 3), [0, 1, 2])
    offsets = np.array([0, 2, 3, n])
    mask = (rng.random(x.shape) < 0.8).astype("u1") if not op.startswith("arg") else None
    hidden = [None] * len(columns) if mask is None else np.moveaxis(mask, axis, -1).reshape(-1, n)
    for args, want in ((["--by", save(ids, "i.npy")], [shapes.groups(op, name, c, ids, 3, m) for c, m in zip(columns, hidden)]),
                       (["--segments", save(offsets, "o.npy")], [shapes.segments(op, name, c, offsets, m) for c, m in zip(columns, hidden)])):
        if mask is not None:
            args += ["--mask", save(orders(mask, rng), "m.npy")]
        for by_pipe in (False, True):
            got = results(tally, tmp_path, save(orders(x, rng)), by_pipe, op, "--axis", axis, *args)
            assert got.shape == x.shape[:axis % 3] + (3,) + x.shape[axis % 3 + 1:]
            assert shapes.bits_of(np.moveaxis(got, axis, -1)) == [bits for column in want for bits in column]


def test_columns_by_a_key_and_equal_segments_along_an_axis(tally, save):
    a = save(np.arange(12.0).reshape(4, 3))
    assert tally("sum", "--axis", 0, "--segments", 2, a).split() == "3 5 7 15 17 19".split()
    assert tally("max", "--axis", 1, "--by", save(np.array([1, 1, 3]), "i.npy"), "--groups", 2, "--skip-outside", a).split() == \
        "-inf 1 -inf 4 -inf 7 -inf 10".split()
    got = tally.json("sum,count", "--axis", 0, "--by", save(np.array([2, 0, 0, 2]), "i.npy"), a)
    assert (got["axis"], got["group_count"], got["results"]) == ([0], 3, [3, 3])
    assert got["value"] == [[9.0, 11.0, 13.0, 0.0, 0.0, 0.0, 9.0, 11.0, 13.0], [2] * 3 + [0] * 3 + [2] * 3]
    assert tally.json("sum", "--axis", 0, "--segments", 2, a)["segments"] == 2


def test_ids_behind_a_mask(tally, save):
    """They may be anything, and make no group."""
    x, m = save(np.arange(5.0)), save(np.array([1, 1, 0, 0, 0], "u1"), "m.npy")
    i = save(np.array([0, 2, -7, 9, 1]), "i.npy")
    for stdin in (b"", x.read_bytes()):
        for more in ((), ("--groups", 3)):
            assert tally("sum", "--by", i, "--mask", m, *more, "-" if stdin else x, stdin=stdin) == "0\t0\n2\t1"


def test_masks_with_dimensions_of_one(tally, tmp_path, save, rng):
    x, mask = rng.integers(0, 9, (4, 1, 5)), rng.integers(0, 2, (4, 1, 5), dtype="u1")
    for shape in ((4, 5), (1, 4, 5), (1, 1, 4, 1, 5, 1)):
        for order in "CF":
            m = save(np.array(mask.reshape(shape), order=order), "m.npy")
            for axis in (0, 2):
                got = results(tally, tmp_path, save(x), False, "sum", "--axis", axis, "--mask", m)
                assert np.array_equal(got, (x * mask).sum(axis)), (shape, order, axis)


def test_dot(tally, tmp_path, save, rng):
    x, y = (rng.integers(-50, 50, (6, 10)).astype("f4") for _ in range(2))
    a, b = save(x, "x.npy"), save(np.asfortranarray(y), "y.npy")
    assert tally("dot", "--axis", 0, a, b).split() == [f"{v:.0f}" for v in (x * y).sum(0)]
    assert tally("dot,count", "--axis", 1, a, a).splitlines() == ["dot\tcount"] + [f"{v:.0f}\t10" for v in (x * x).sum(1)]
    assert tally("dot", "--axis", 1, a, "-", stdin=save(y).read_bytes()).split() == [f"{v:.0f}" for v in (x * y).sum(1)]
    assert tally("dot", "--segments", 30, a, a).split() == [f"{v:.0f}" for v in (x * x).reshape(2, -1).sum(1)]
    ids = save(rng.integers(0, 2, (6, 10)), "i.npy")
    want = [f"{i}\t{(x * x)[np.load(ids) == i].sum():.0f}" for i in range(2)]
    assert tally("dot", "--by", ids, a, a).splitlines() == want
    mask = save(np.ones((6, 10), "?"), "m.npy")
    assert tally("dot", "--mask", mask, a, a) == f"{(x * x).sum():.0f}"


@pytest.mark.parametrize("args", [(), ("--segments", 30), ("--by",), ("--mask",)])
def test_orders_that_do_not_pair(tally, save, args):
    """Elements at the same place of a C and of a Fortran array have different indices."""
    x = np.arange(60.0).reshape(6, 10)
    a, f, ids = save(x, "x.npy"), save(np.asfortranarray(x), "f.npy"), save(x.astype("u1") % 2, "i.npy")
    if args in (("--by",), ("--mask",)):
        args = (*args, ids)
        assert "f.npy in Fortran's" in tally.fails("sum", *args, f)
    for pair in ((a, f), (f, a)):
        assert "save one of them in the other's order" in tally.fails("dot", *args, *pair)
    assert tally("dot", "--axis", "0,1", a, f) == f"{(x * x).sum():.0f}"
    one = save(np.asfortranarray(x[:1]), "one.npy")
    assert tally("dot", one, save(x[:1])) == f"{(x[:1] ** 2).sum():.0f}"


def test_no_elements(tally, tmp_path, save):
    for shape, axis, want in (((0, 3), 0, ["0"] * 3), ((3, 0), 1, ["0"] * 3), ((0, 3), 1, []), ((2, 0, 3), "0,1", ["0"] * 3)):
        path = save(np.zeros(shape))
        for by_pipe in (False, True):
            done = tally.run("sum", "--axis", axis, "-" if by_pipe else path, stdin=path.read_bytes())
            assert (done.returncode, done.stdout.decode().split()) == (0, want)
            assert results(tally, tmp_path, path, by_pipe, "sum", "--axis", axis).shape == np.zeros(shape).sum(
                axis=tuple(map(int, str(axis).split(",")))).shape
    empty, none = save(np.zeros(0)), save(np.zeros(1, int), "o.npy")
    for path in (empty, "-"):
        for args in (("--segments", none), ("--segments", 4), ("--by", empty.parent / "i.npy")):
            np.save(empty.parent / "i.npy", np.zeros(0, int))
            done = tally.run("sum", *args, path, stdin=empty.read_bytes())
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert tally("sum", "--mask", save(np.zeros(0, "?"), "m.npy"), path, stdin=empty.read_bytes()) == "0"
    one = save(np.float32(2.5), "s.npy")
    assert tally("sum", "--mask", save(np.array(False), "m.npy"), one) == "0"
    assert tally("sum", "--axis", "1", save(np.ones((2, 1, 2)))) == "1\n1\n1\n1"
    assert tally("sum", "--axis", "1", "-", stdin=save(np.ones((2, 1, 2))).read_bytes()) == "1\n1\n1\n1"


# ---- More than a slab of 16 MiB ----

@pytest.mark.parametrize("op", ["sum", "argmax", "max,count"])
@pytest.mark.parametrize("shape, axis, fortran", [
    ((1_500_000, 3), (0,), False), ((1_500_000, 3), (1,), False), ((2, 2_300_000), (1,), False),
    ((2, 2_300_000), (0, 1), False), ((300, 5, 3000), (0, 2), False), ((3, 40, 37_777), (1,), False),
    ((40, 110_001), (0,), True), ((110_001, 40), (0,), True), ((300, 5, 3000), (1,), True), ((300, 5, 3000), (0, 2), True)])
def test_arrays_larger_than_a_slab(tally, tmp_path, save, rng, op, shape, axis, fortran):
    """By pipes, so that they are read in order; beside NumPy's own, of integers that it adds up exactly."""
    x = rng.integers(-1000, 1000, shape, dtype="i4")
    if fortran:
        x = np.asfortranarray(x)
    path = save(x)
    kept = [d for d in range(x.ndim) if d not in axis]
    rows = np.ascontiguousarray(x.transpose(kept + list(axis))).reshape(tuple(x.shape[d] for d in kept) + (-1,))
    want = {"sum": lambda: rows.sum(-1, dtype="i8"), "argmax": lambda: rows.argmax(-1), "max": lambda: rows.max(-1),
            "count": lambda: np.full(rows.shape[:-1], rows.shape[-1])}
    for by_pipe in (True, False):
        got = results(tally, tmp_path, path, by_pipe, op, "--axis", ",".join(map(str, axis)))
        for o in op.split(","):
            assert np.array_equal(got[o] if "," in op else got, want[o]()), by_pipe


def test_more_results_than_a_call_has(tally, tmp_path, save, rng):
    """Masks and second arrays go along with the array; either may be in the other order."""
    x, y = (rng.integers(-100, 100, (300_000, 3), dtype="i4") for _ in range(2))
    mask = rng.integers(0, 2, x.shape, dtype="u1")
    for order in "CF":
        a, b, m = save(x), save(np.array(y, order=order), "y.npy"), save(np.array(mask, order=order), "m.npy")
        for by_pipe in (False, True):
            got = results(tally, tmp_path, a, by_pipe, "sum", "--axis", 1, "--mask", m)
            assert np.array_equal(got, (x * mask).sum(1, dtype="i8"))
        assert tally.run("dot", "--axis", 1, a, b, "-o", tmp_path / "d.npy").returncode == 0
        assert np.array_equal(np.load(tmp_path / "d.npy"), (x.astype("i8") * y).sum(1))
    m = save(mask, "m.npy")
    for by_pipe in (False, True):
        got = results(tally, tmp_path, a, by_pipe, "sum", "--segments", 3, "--mask", m)
        assert np.array_equal(got, (x * mask).sum(1, dtype="i8"))


def test_floats_larger_than_a_slab(tally, tmp_path, save, rng):
    """The same bits from a pipe, which is read in order, as from a file, which is not; and as of a column alone."""
    x = rng.normal(size=(600_000, 7)) * np.exp2(rng.integers(-300, 300, (600_000, 7)))
    path = save(x)
    for op in ("sum", "prod", "mean,var,norm2", "describe"):
        a, b = (results(tally, tmp_path, path, by_pipe, op, "--axis", 0) for by_pipe in (False, True))
        assert a.tobytes() == b.tobytes()
    assert tally("prod", save(x[:, 3], "c.npy")) == run(tally, path, True, "prod", "--axis", "0").split()[3]


def test_segments_larger_than_a_slab(tally, tmp_path, save, rng):
    x = rng.integers(-1000, 1000, 9_000_000, dtype="i2")
    mask = rng.integers(0, 2, x.size, dtype="u1")
    offsets = np.array([5, 5, 9, 8_600_001, 8_600_001, 8_999_000])
    path, m = save(x), save(mask, "m.npy")
    sums, masked = (np.add.reduceat(a.astype("i8"), offsets[:-1]) for a in (x, x * mask))
    sums[[0, 3]] = masked[[0, 3]] = 0
    sums[-1], masked[-1] = x[8_600_001:8_999_000].sum(dtype="i8"), (x * mask)[8_600_001:8_999_000].sum(dtype="i8")
    raw = tmp_path / "a.raw"
    raw.write_bytes(x.tobytes())
    o = save(offsets, "o.npy")
    for file, extra in ((path, ()), (raw, ("--dtype", "i16", "--raw"))):
        for by_pipe in (False, True):
            assert np.array_equal(results(tally, tmp_path, file, by_pipe, "sum", "--segments", o, *extra), sums)
            assert np.array_equal(results(tally, tmp_path, file, by_pipe, "sum", "--segments", o, "--mask", m, *extra), masked)
            for length in (9, 9_000_000, 4_500_000):
                got = results(tally, tmp_path, file, by_pipe, "argmin", "--segments", length, *extra)
                assert np.array_equal(got, x.reshape(-1, length).argmin(1))


def test_groups_larger_than_a_slab(tally, tmp_path, save, rng):
    x = rng.integers(-1000, 1000, 5_000_000, dtype="i4")
    ids = rng.integers(0, 1000, x.size, dtype="u2")
    path, i = save(x), save(ids, "i.npy")
    want = np.bincount(ids, x, 1000).astype("i8")
    order = np.argsort(ids, kind="stable")
    for by_pipe in (True, False):
        assert np.array_equal(results(tally, tmp_path, path, by_pipe, "sum", "--by", i), want)
        at = results(tally, tmp_path, path, by_pipe, "argmax", "--by", i)
        for g in (0, 500, 999):
            places = np.flatnonzero(ids == g)
            assert at[g] == places[x[places].argmax()]
    piped = tally.run("sum", "--by", "-", "--groups", 1000, "-o", tmp_path / "p.npy", path, stdin=i.read_bytes())
    assert piped.returncode == 0 and np.array_equal(np.load(tmp_path / "p.npy"), want)
    assert order.size == x.size


def is_asan():
    with open(os.environ["TALLY"], "rb") as program:
        return b"__asan_init" in program.read()


def limited(bytes_, kind=resource.RLIMIT_DATA):
    if is_asan():
        pytest.skip("AddressSanitizer needs more memory than the limit here, and an allocator of its own")
    return lambda: resource.setrlimit(kind, (bytes_, bytes_))


def header(shape, descr="<f4"):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
    return out.getvalue()


@pytest.mark.parametrize("axis, rows, count", [("0", 1 << 25, 4), ("1", 1 << 24, 1 << 24), ("0,1", 1 << 25, 1)])
def test_constant_memory_from_pipes(tally, tmp_path, axis, rows, count):
    """Up to 512 MiB of zeros by a pipe into 192 MiB; along axis 1 a quarter of them are results, which wait in a file."""
    limit, out = limited(192 << 20), tmp_path / "out.npy"
    (tmp_path / "h").write_bytes(header((rows, 4)))
    command = f"cat '{tmp_path}/h' && head -c {rows * 16} /dev/zero"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE) as source:
        done = tally.run("sum", "--axis", axis, "-o", out, "-", stdin=source.stdout, preexec_fn=limit)
    assert (done.returncode, done.stderr) == (0, b"")
    got = np.load(out, mmap_mode="r")
    assert got.size == count and not got.any()


def test_constant_memory_of_groups(tally, tmp_path, save):
    """128 MiB by a pipe and in a file: to sort them whole would take three times that, and more."""
    n, limit = 1 << 25, limited(160 << 20)
    (tmp_path / "a.npy").write_bytes(header((n,)))
    os.truncate(tmp_path / "a.npy", (tmp_path / "a.npy").stat().st_size + 4 * n)
    ids = save((np.arange(n) % 7).astype("u1"), "i.npy")
    want = [(i, (n - 1 - i) // 7 + 1, i) for i in range(7)]
    for name in ("-", tmp_path / "a.npy"):
        with open(tmp_path / "a.npy", "rb") as source:
            with subprocess.Popen(["cat"], stdin=source, stdout=subprocess.PIPE) as cat:
                done = tally.run("argmin", "--by", ids, "--json", name, stdin=cat.stdout, preexec_fn=limit)
                cat.stdout.close()
        assert (done.returncode, done.stderr) == (0, b"")
        assert [(g["key"], g["n"], g["value"]) for g in json.loads(done.stdout)["groups"]] == want


@pytest.mark.parametrize("args", [("--axis", "0"), ("--axis", "1"), ("--segments", "1024"), ("--mask", "m.npy")])
def test_constant_memory_of_files(tally, tmp_path, args):
    """A sparse file of 256 MiB, also where the address space has no room for all of it."""
    shape = (1 << 16, 1024)
    for name, descr, size in (("a.npy", "<f4", 4), ("m.npy", "|b1", 1)):
        with open(tmp_path / name, "wb") as f:
            f.write(header(shape, descr))
            f.truncate(f.tell() + (shape[0] * shape[1] * size))
    for limit in (limited(112 << 20), limited(240 << 20, resource.RLIMIT_AS)):
        got = tally.run("sum", *args, "--device", "cpu:threads=1", "a.npy", cwd=tmp_path, preexec_fn=limit)
        assert (got.returncode, got.stderr) == (0, b"")
        assert set(got.stdout.split()) <= {b"0", b"-0"}


# ---- What is printed and written ----

def test_lines(tally, save):
    a = save(np.arange(12.0).reshape(3, 4))
    assert tally("sum", "--axis", 0, a) == "12\n15\n18\n21"
    assert tally("count,mean", "--axis", 1, a) == "count\tmean\n4\t1.5\n4\t5.5\n4\t9.5"
    assert tally("minmax", "--axis", "0,1", a) == "min\t0\nmax\t11"
    assert tally("describe", "--axis", "0,1", a) == tally("describe", a)
    o = save(np.array([0, 3, 3, 12]), "o.npy")
    assert tally("sum,argmin", "--segments", o, a) == "sum\targmin\n3\t0\n0\tnone\n63\t0"
    i = save(np.array([[0, 1, 3, 0], [1, 1, 0, 3], [3, 0, 0, 1]]), "i.npy")
    assert tally("argmin", "--by", i, a) == "0\t0\n1\t1\n3\t2"
    assert tally("count,sum", "--by", i, a) == "id\tcount\tsum\n0\t5\t28\n1\t4\t21\n3\t3\t17"
    assert tally("mean", "--by", i, "--out", "f32", "--threads", 1, a).splitlines()[2] == "3\t5.6666665"


def test_more_lines_than_wait_in_memory(tally, save):
    """Results beyond 32 MiB wait in a file until all are there."""
    n = 4_300_000
    assert tally("max", "--segments", 1, save(np.arange(n))) == "\n".join(map(str, range(n)))


def test_json(tally, save):
    a = save(np.arange(12, dtype="f4").reshape(3, 4))
    got = tally.json("sum", "--axis", -1, a)
    assert (got["op"], got["dtype"], got["n"], got["shape"], got["axis"]) == ("sum", "f32", 12, [3, 4], [1])
    assert (got["results"], got["types"], got["value"]) == ([3], ["f32"], [6.0, 22.0, 38.0])
    assert got["bits"] == [f"0x{b:08x}" for b in exact.bits(np.float32([6, 22, 38]))]
    got = tally.json("sum,argmax", "--segments", save(np.int32([0, 0, 12]), "o.npy"), a)
    assert got["ops"] == ["sum", "argmax"] and got["segments"] == 2 and got["types"] == ["f32", "u64"]
    assert got["value"] == [[0.0, 66.0], [None, 11]] and got["bits"][1] == [None, "0x000000000000000b"]
    got = tally.json("max", "--by", save(np.full((3, 4), 2), "i.npy"), a)
    assert got["group_count"] == 3 and got["groups"] == [{"key": 2, "n": 12, "value": 11.0, "bits": "0x41300000"}]
    got = tally.json("sum", "--mask", save(np.zeros((3, 4), "?"), "m.npy"), a)
    assert got["results"] == [] and got["value"] == 0.0
    got = tally.json("sum", "--axis", 0, "-o", a.parent / "out.npy", a)
    assert got["output"] == str(a.parent / "out.npy") and "value" not in got


def test_files_of_several_values(tally, tmp_path, save):
    a = save(np.arange(12, dtype="f4").reshape(3, 4))
    got = results(tally, tmp_path, a, False, "describe,var", "--axis", 0)
    assert got.dtype.names == ("count", "nans", "min", "max", "argmin", "argmax", "sum", "mean", "std", "var")
    assert got["sum"].dtype == "f4" and got["sum"].tolist() == [12, 15, 18, 21] and got["argmax"].tolist() == [2] * 4
    assert "min is asked for twice" in tally.fails("minmax,min", "--axis", 0, "-o", tmp_path / "o.npy", a)
    raw = np.arange(8).astype("f4").view("u4") >> 16
    (tmp_path / "b").write_bytes(raw.astype("u2").tobytes())
    got = tally.run("sum", "--segments", 4, "--raw", "--dtype", "bf16", "-o", "-", tmp_path / "b").stdout
    assert b"'<V2'" in got and np.frombuffer(got[-4:], "u2").tolist() == [0x40C0, 0x41B0]
    assert tally("max", "--dtype", "bf16", "-", stdin=got) == "22"


def test_results_to_pipes_and_devices(tally, tmp_path, save):
    a = save(np.arange(12.0).reshape(3, 4))
    done = tally.run("sum", "--axis", 0, "-o", "-", a)
    assert np.load(io.BytesIO(done.stdout)).tolist() == [12, 15, 18, 21]
    assert tally("sum", "--axis", 0, "-", stdin=done.stdout) == "66"
    assert tally.run("sum", "--axis", 0, "-o", "/dev/null", a).returncode == 0


def test_files_keep_their_permissions(tally, tmp_path, save):
    a, out = save(np.ones((3, 4))), tmp_path / "out.npy"
    tally.run("sum", "--axis", 0, "-o", out, a, preexec_fn=lambda: os.umask(0o027))
    assert out.stat().st_mode & 0o777 == 0o640
    out.chmod(0o604)
    tally.run("sum", "--axis", 0, "-o", out, a)
    assert out.stat().st_mode & 0o777 == 0o604
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "out.npy"]


def test_archives_and_packed_files(tally, tmp_path, save):
    import gzip
    x = np.arange(12.0).reshape(3, 4)
    np.savez_compressed(tmp_path / "z.npz", x=x, ids=np.arange(12).reshape(3, 4) % 2)
    assert tally("sum", "--by", f"{tmp_path}/z.npz:ids", f"{tmp_path}/z.npz:x") == "0\t30\n1\t36"
    (tmp_path / "a.npy.gz").write_bytes(gzip.compress(save(x).read_bytes()))
    assert tally("sum", "--axis", 0, tmp_path / "a.npy.gz") == "12\n15\n18\n21"
    assert tally("sum", "--segments", 2, stdin=b"1 2 3 4") == "3\n7"
    assert json.loads(tally("sum", "--segments", 2, "--json", stdin=b"1 2 3 4"))["segments"] == 2


def test_memory_follows_the_ids_that_occur(tally, tmp_path):
    """Few elements with ids up to 2^62, in an address space of 1 GB."""
    with open(tally.binary, "rb") as program:
        code = program.read()
        if b"__asan_init" in code or b"libtsan" in code:
            pytest.skip("a sanitizer needs more memory than the limit here")
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    rng = np.random.default_rng(seed := int.from_bytes(os.urandom(4), "little"))
    x = rng.integers(-1000, 1000, 3000)
    np.save(tmp_path / "x.npy", x)
    for bits, kind in ((28, "u4"), (31, "i4"), (32, "u4"), (40, "i8"), (62, "i8"), (62, "u8")):
        pool = np.unique(np.append(rng.integers(0, 2**bits - 1, 40, dtype="u8"), 2**bits - 1)).astype(kind)
        ids = np.append(rng.choice(pool, 2999), pool[-1])
        np.save(tmp_path / "i.npy", ids)
        sums = {int(k): int(x[ids == k].sum()) for k in pool if (ids == k).any()}
        want = "\n".join(f"{k}\t{v}" for k, v in sums.items())
        run = lambda *args, **kw: tally("sum", "--threads", 1, "--by", tmp_path / "i.npy", *args, preexec_fn=limit, **kw)
        assert run(tmp_path / "x.npy") == run(stdin=(tmp_path / "x.npy").read_bytes()) == want, (seed, bits, kind)
        got = json.loads(run("--json", tmp_path / "x.npy"))
        assert {g["key"]: g["value"] for g in got["groups"]} == sums and got["group_count"] == int(pool[-1]) + 1
        half = int(pool[20])
        if half > 1 << 17:
            kept = "\n".join(f"{k}\t{v}" for k, v in sums.items() if k < half)
            assert run("--groups", half, "--skip-outside", tmp_path / "x.npy") == kept, (seed, bits, kind)
            line = tally.fails("sum", "--by", tmp_path / "i.npy", "--groups", half, tmp_path / "x.npy", preexec_fn=limit)
            at = int(np.argmax(ids >= half))
            assert f"id {at} is {ids[at]}, outside of the {half} groups" in line, (seed, bits, kind)
        mask = (ids != pool[-1]).astype("u1")
        np.save(tmp_path / "m.npy", mask)
        assert run("--mask", tmp_path / "m.npy", tmp_path / "x.npy") == "\n".join(f"{k}\t{v}" for k, v in sums.items() if k != pool[-1])
    line = tally.fails("sum", "--by", tmp_path / "i.npy", "-o", tmp_path / "o.npy", tmp_path / "x.npy", preexec_fn=limit)
    assert "no memory for" in line and "which take" in line and "GB" in line
