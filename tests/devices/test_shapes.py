"""Reductions in parts on the GPU devices: every result has the bits that the calling thread gives for the whole shape,
whose own tests hold it against oracles (tests/engine/test_shapes.py). TALLY_SEED gives other random shapes."""

import itertools
import os
import random

import numpy as np
import pytest

import conftest
import data
import shapes as t
from drawn import types_on
from test_devices import USERS

SEED = int(os.environ.get("TALLY_SEED", "1"))
# The model and the doubles of CUDA run on it take a thousand times as long as a compiled kernel.
SLOW = ("model", "cuda")
OPENED = {}


def opened(spec):
    """The device of that spec, which is opened once; where there is none, the test is skipped."""
    if spec not in OPENED:
        try:
            OPENED[spec] = t.open_device(spec)
        except t.Failed as failed:
            assert failed.status == "EDEVICE", failed
            pytest.skip(str(failed))
    OPENED[spec].spec = spec
    return OPENED[spec]


@pytest.fixture(params=conftest.SPECS)
def device(request):
    return opened(request.param)


def is_slow(device):
    return device.spec.startswith(SLOW)


def is_opencl(device):
    return device.spec.startswith("opencl")


def has_blocks(device):
    """Whether PoCL runs blocks of 64, whose threads take turns: some ten times as long as a thread alone."""
    return "block=" in device.spec


def elements(type, shape, rng, kind="tame"):
    """Random elements, with ties; and as asked for with zeros of both signs, specials, wild exponents."""
    n = int(np.prod(shape, dtype=np.int64))
    if type in t.INTS:
        info = np.iinfo(t.DTYPE[type])
        low, high = (info.min, info.max) if kind in ("wild", "huge") else (max(info.min, -9), 9)
        return rng.integers(low, high, n, dtype=t.DTYPE[type], endpoint=True).reshape(shape)
    x = rng.standard_normal(n)
    if kind == "wild":
        x *= 2.0 ** rng.integers(-30, 30, n)
    if kind == "small":
        x = rng.integers(-3, 4, n).astype(float)
    if kind == "huge":
        x = np.ldexp(x, rng.integers(-1070, 1020, n)) if type == "f64" else np.ldexp(x, rng.integers(-140, 120, n))
    if kind == "zeros":
        x = np.where(rng.random(n) < 0.7, -0.0, 0.0)
    if kind == "special":
        x[rng.random(n) < 0.02] = np.nan
        x[rng.random(n) < 0.02] = np.inf
        x[rng.random(n) < 0.2] = -0.0
    if kind == "underflow":  # what is left of sums, and variances, lies around the least f16, bf16 and f32; squares, of f64
        scales = [-10, -13, -20, -75, -134, -149, -160] if type != "f64" or rng.random() < 0.5 else [-530, -536, -538, -541]
        x = np.ldexp(rng.integers(-9, 10, n).astype(float), rng.choice(scales[:1 + rng.integers(len(scales))], n))
    if kind == "undone":
        x = data.undone_lines(rng, type, shape)
    with np.errstate(over="ignore"):
        x = elements_of(type, x)
    return (t.with_payloads(type, x, rng) if kind == "special" else x).reshape(shape)


def elements_of(type, x):
    """The same numbers as elements of a type of floats."""
    if type == "bf16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return x.astype(t.DTYPE[type])


KINDS = ["tame", "small", "special", "zeros", "wild", "huge", "underflow", "undone"]


def problems(type):
    out = [t.Problem(op, type, ddof=1) for op in t.OPS if op != "user"]
    out += [t.Problem("sum", type, out="f64"), t.Problem("mean", type, out="f32"), t.Problem("std", type, ddof=0.5),
            t.Problem("mean", type, also=["max", "argmin", "var", "nonzero", "norm1"]),
            t.Problem("prod", type, also=["argmax", "any"])]
    return out


def outcome(call):
    """The results' bits; where some do not exist, with the line that says so."""
    try:
        return None, [o.tobytes() for o in call()]
    except t.Failed as failed:
        assert failed.status in ("EINVAL", "ERANGE"), failed
        return failed.line, [o.tobytes() for o in failed.out]


def same(call, device, what):
    want, got = outcome(lambda: call(None)), outcome(lambda: call(device))
    assert got[0] == want[0], what
    for v, (a, b) in enumerate(zip(got[1], want[1])):
        if a != b:
            at = next(i for i in range(len(a)) if a[i] != b[i])
            raise AssertionError(f"{what}: value {v} differs at byte {at} of {len(a)}: "
                                 f"{a[at // 8 * 8:at // 8 * 8 + 8].hex()}, not {b[at // 8 * 8:at // 8 * 8 + 8].hex()}")


def some(items, device, few, compiled=False):
    """All of them; of a slow device's a few, and half of OpenCL's where each is programs to compile; others for each seed."""
    items = list(items)
    if is_slow(device):
        return random.Random(SEED).sample(items, min(few, len(items)))
    if not (compiled and is_opencl(device)):
        return items
    half = random.Random(SEED).sample(items, (len(items) + 1) // 2)
    return drawn(half, few) if has_blocks(device) else half


def drawn(items, count):
    """So many of them at most, by the seed and the test's name: of what a run of PoCL's blocks has no time for all."""
    return random.Random(f"{SEED} {os.environ['PYTEST_CURRENT_TEST']}").sample(items, min(count, len(items)))


SHAPES = [((), []), ((0,), [0]), ((7,), [0]), ((7,), []), ((5, 3), [1]), ((40, 4), [0]), ((3, 70), [1]), ((2, 3, 4), [0, 2]),
          ((3, 0, 2), [1]), ((3, 0, 2), [0]), ((8, 1, 4, 10), [2, 3]), ((2, 2, 2, 2, 2), [1, 3]), ((33, 17), [0, 1])]


@pytest.mark.parametrize("type", t.TYPES)
def test_every_problem_along_axes(type, device):
    rng = np.random.default_rng(SEED)
    for k, problem in enumerate(some(problems(type), device, 6, compiled=True)):
        for i, (shape, axes) in enumerate(some(SHAPES, device, 3)):
            x = elements(type, shape, rng, KINDS[(i + k) % len(KINDS)])
            y = elements(type, shape, rng) if problem.two() else None
            same(lambda d: t.reduce_axes(problem, x, axes, y, None, d), device, f"{problem.op} of {shape} over {axes}")


def test_ties(device):
    """Sums and means of short rows half-way between two floats, and next to that: rounded once, not twice."""
    tiny = [0.0, 2.0**-54, -2.0**-54, 2.0**-80, -2.0**-80, 2.0**-200, -2.0**-200, 5e-324, -5e-324]
    for type, half in (("f32", 2.0**-24), ("f16", 2.0**-11), ("bf16", 2.0**-8), ("f64", 2.0**-53)):
        rows = [[sign * a, sign * b, sign * h, c] for sign in (1, -1) for a in (1.0, 1.5, 2.0, 2.0**100)
                for b in (0.0, a * 2 * half) for h in (a * half, a * half / 2) for c in tiny]
        rows += [[a, -a, c, c] for a in (1.0, 2.0**1000, 1.7e308) for c in tiny] + [[-0.0] * 4, [1.7e308] * 4, [np.inf] * 4]
        x = np.array(some(rows, device, 40))
        for op in ("sum", "mean"):
            same(lambda d: t.reduce_axes(t.Problem(op, "f64", out=type), x, [1], device=d), device, f"{op} of f64 to {type}")
            same(lambda d: t.reduce_axes(t.Problem(op, "f64", out=type), np.ascontiguousarray(x.T), [0], device=d), device, op)
            with np.errstate(all="ignore"):
                short = x.astype(np.float32)
            same(lambda d: t.reduce_axes(t.Problem(op, "f32", out=type), short, [1], device=d), device, f"{op} of f32 to {type}")


def test_nans_are_canonical(device):
    """A NaN of any payload, signalling or not, makes every result that it is part of the canonical NaN: rows of all kernels'
    lengths, columns, segments and groups."""
    rng = np.random.default_rng(SEED)
    for type in [type for type in ("f32", "f64", "bf16") if type in types_on(device.spec)]:
        for op in ("sum", "mean", "norm2", "var"):
            problem = t.Problem(op, type)
            for length in (7, 20, 30, 65, 130):
                x = rng.standard_normal((12, length)) * 2.0 ** rng.integers(-30, 30, (12, length))
                x[::3, length // 2] = np.nan
                x[1::3, 0] = np.inf if length == 7 else 0
                x = t.with_payloads(type, elements_of(type, x), rng)
                turned, flat, ids = np.ascontiguousarray(x.T), x.ravel(), np.tile(np.arange(12), length)
                what = f"{op} of {type}, {length} elements"
                same(lambda d: t.reduce_axes(problem, x, [1], device=d), device, what)
                same(lambda d: t.reduce_axes(problem, turned, [0], device=d), device, what)
                same(lambda d: t.reduce_segments(problem, flat, np.arange(13) * length, device=d), device, what)
                same(lambda d: t.reduce_groups(problem, turned.ravel(), ids, 12, device=d), device, what)


def test_zeros_beside_rows_that_are_uncertain(device):
    """A sum of -0s alone is -0, also where the row before it needs more than a cheap sum."""
    rng = np.random.default_rng(SEED)
    for type in [type for type in ("f32", "bf16") if type in types_on(device.spec)]:
        for length in (5, 24, 66, 69, 140):
            x = np.full((6, length), -0.0)
            x[::2] = rng.standard_normal((3, length)) * 2.0 ** rng.integers(-60, 60, (3, length))
            x[3, length // 2] = 0.0
            x = elements_of(type, x)
            for op in ("sum", "mean"):
                problem, what = t.Problem(op, type), f"{op} of {type}, {length} elements"
                same(lambda d: t.reduce_axes(problem, x, [1], device=d), device, what)
                same(lambda d: t.reduce_segments(problem, x.ravel(), np.arange(7) * length, device=d), device, what)


def test_many_columns(device):
    """A thread a column; what it cannot do is left to blocks, also of columns that pieces cut."""
    rng = np.random.default_rng(SEED)
    shape = (3, 4100) if is_slow(device) else (40, 5000)
    for op, type in (("sum", "f64"),) if is_slow(device) else (("sum", "f64"), ("mean", "f32"), ("argmin", "f16"), ("sum", "i64")):
        x = elements(type, shape, rng, "small")
        x[:, 7:9] = elements(type, (shape[0], 2), rng, "huge")
        same(lambda d: t.reduce_axes(t.Problem(op, type), x, [0], device=d), device, f"{op} of columns of {type}")


# Reductions that columns.cu folds.
COLUMN_PROBLEMS = [t.Problem("sum", type) for type in t.TYPES] + [
    t.Problem("mean", "f32", also=["sum"]), t.Problem("mean", "f64"), t.Problem("mean", "bf16", out="f64"),
    t.Problem("sum", "f64", out="f16"), t.Problem("minmax", "f32"), t.Problem("minmax", "i8")] + [
    t.Problem("mean", type) for type in ("i8", "u32", "i64", "u64")] + [
    t.Problem(op, type) for op in ("min", "max", "argmin", "argmax") for type in ("f16", "f32", "f64", "i16", "u32", "i64")] + [
    t.Problem(op, type, ddof=1) for op in ("var", "std", "sumsq", "norm2", "norminf") for type in ("f16", "bf16", "f32", "f64")] + [
    t.Problem("var", "f32", also=["mean", "sum"], ddof=0.5), t.Problem("std", "f64", also=["norm2"]), t.Problem("var", "f32", out="f64")]
COLUMNS = [*range(2, 18), 31, 32, 33, 63, 100, 128, 257, 1000]


def columns_of(type, rows, columns, rng, kind):
    """Columns of elements, of which one is wild, one has a NaN and one an infinity."""
    x = elements(type, (rows, columns), rng, kind)
    if type not in t.INTS and columns > 3:
        x[rng.integers(rows), 0] = elements(type, (1,), rng, "huge")[0]
        nan, inf = (0x7fc0, 0xff80) if type == "bf16" else (np.nan, -np.inf)
        x[rng.integers(rows), columns // 2] = nan
        x[rng.integers(rows), columns - 1] = inf
    return x


@pytest.mark.long
def test_columns(device):
    """Every number of columns, in tiles of every form; starts that are no multiples of 16 bytes; slabs of them."""
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    problems = [p for p in COLUMN_PROBLEMS if p.type in types_on(device.spec)]
    if has_blocks(device): # where each problem is a program of some seconds to compile; the doubles of CUDA have all
        problems = py.sample(problems, min(8, len(problems)))
    cases = [(problem, columns) for problem in problems for columns in COLUMNS]
    for problem, columns in py.sample(cases, 12 if is_slow(device) else 60 if is_opencl(device) else 120):
        rows = py.choice([1, 2, 3, 4, 5, 7, 8, 9, 40] if is_slow(device) else [1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 300, 2500])
        slabs, cut, kind = py.choice([1, 1, 2, 5]), py.choice([0, 0, 1, 3]), py.choice(KINDS)
        x = columns_of(problem.type, slabs * rows, columns + cut, rng, kind).reshape(slabs, rows, columns + cut)[:, :, cut:]
        if py.random() < 0.2:
            x = x[:, ::-1]
        same(lambda d: t.reduce_axes(problem, x, [1], device=d), device,
             f"{problem.op} of {kind} {problem.type}, {slabs} x {rows} x {columns}, from {cut} on")


@pytest.mark.parametrize("type", ["f64", "f32"])
def test_columns_of_negative_zeros(device, type):
    """Nothing but -0 is -0, however many strands and chunks it is cut into; one +0 makes it +0."""
    for rows, columns in [(40, 3), (300, 65)]:
        x = np.full((rows, columns), -0.0, np.float64 if type == "f64" else np.float32)
        x[rows // 2, 1] = 0.0
        same(lambda d: t.reduce_axes(t.Problem("sum", type), x, [0], device=d), device, f"-0, {rows} x {columns}")


@pytest.mark.parametrize("type", ["f64", "f32"])
def test_columns_with_an_infinity(device, type):
    """A NaN or an infinity decides of its column's variance and norm, and of no other's; the rest are zeros and small."""
    rng = np.random.default_rng(SEED)
    for rows, columns in [(3, 8), (4, 5), (70, 12)]:
        x = elements(type, (rows, columns), rng, "small")
        x[rows // 2, 0], x[0, 1], x[:, 2], x[rows - 1, 3] = np.inf, np.nan, 0, -np.inf
        for op in ("var", "std", "norm2", "sumsq"):
            for ddof in (0, 1):
                same(lambda d: t.reduce_axes(t.Problem(op, type, ddof=ddof), x, [0], device=d), device, f"{op}, {ddof}, {rows} x {columns}")


def along_all(x, op, device, what):
    """Holds what the device has for an array of f64 by columns, by rows, and by vectors, in segments and in a group."""
    n, columns = x.shape
    problem = t.Problem(op, "f64")
    for axis in (0, 1):
        same(lambda d: t.reduce_axes(problem, x, [axis], device=d), device, f"{what}, axis {axis}")
    for shape in (t.segments_shape(n, np.array([0, n])), t.segments_shape(n, np.array([0, 4, n])),
                  t.groups_shape(n, np.zeros(n, np.int32), 1)):
        same(lambda d: t.run(problem, t.along(x, 0, shape), x, None, columns * shape.count, d), device, f"{what} of vectors")


@pytest.mark.parametrize("op", ["sumsq", "norm2", "var"])
@pytest.mark.parametrize("least", [-1074, -1022, -960, -900])
def test_squares_that_underflow(op, least, device):
    """Squares of f64 that lose bits below 2^-1074."""
    rng = np.random.default_rng(SEED)
    x = np.ldexp(rng.integers(8, 16, (23, 36)) * rng.choice([-1.0, 1.0], (23, 36)), least // 2 - rng.integers(0, 5, 36))
    along_all(x, op, device, f"{op}, 2^{least}")


@pytest.mark.parametrize("op", ["sumsq", "norm2"])
def test_tiny_squares_beside_a_tie(op, device):
    """A square that no double has makes the sum of the others, half way between two doubles, round up."""
    for exponent in (0, -400, 400):
        for rows, step in [(5, 1), (256, 16), (40, 8), (23, 3)]:
            x = np.zeros((rows, 2))
            x[[0, step]], x[2 * step], x[-1] = 2.0 ** (exponent - 27), 2.0 ** max(exponent - 600, -1074), 2.0 ** exponent
            along_all(x, op, device, f"{op} of {rows} by {step} steps, 2^{exponent}")


def test_means_that_are_subnormal(device):
    """Quotients of some last bits of f64, ties among them."""
    for n in (6, 12, 24, 49):
        x = np.zeros((n, 20))
        x[0] = np.ldexp(np.arange(20) * 3.0, -1074)
        along_all(x, "mean", device, f"means of {n}")


def random_view(type, rng, py):
    dims = py.randint(1, 6)
    shape = [py.choice([1, 1, 2, 3, 4, 5, 7, 16, 33]) for _ in range(dims)]
    while np.prod(shape) > 6000:
        shape[py.randrange(dims)] = 1
    x = elements(type, shape, rng, py.choice(KINDS))
    x = x.transpose(py.sample(range(dims), dims))
    x = x[tuple(slice(None, None, py.choice([1, 1, 1, -1, 2, -2])) for _ in range(dims))]
    if py.random() < 0.2:
        d = py.randrange(dims)
        one = tuple(slice(0, 1) if i == d else slice(None) for i in range(dims))
        x = np.broadcast_to(x[one], x.shape[:d] + (py.randint(1, 5),) + x.shape[d + 1:])
    return x, py.sample(range(dims), py.randint(0, dims))


def test_random_axes(device):
    py, rng = random.Random(SEED), np.random.default_rng(SEED)
    for i in range(8 if is_slow(device) else 60):
        type = py.choice(types_on(device.spec))
        x, axes = random_view(type, rng, py)
        problem = t.Problem(py.choice([o for o in t.OPS if o != "user"]), type, ddof=py.choice([0, 1]))
        y = x[tuple(slice(None, None, -1) for _ in x.shape)] if problem.two() else None
        mask = None
        if py.random() < 0.4:
            mask = (rng.random(x.shape) < py.choice([0.1, 0.5, 1.0])).astype(np.uint8)
            if py.random() < 0.3:
                mask = np.broadcast_to(mask[:1], x.shape)
        same(lambda d: t.reduce_axes(problem, x, axes, y, mask, d), device,
             f"case {i}: {problem.op} of {type} {x.shape} {x.strides} over {axes}, masked: {mask is not None}")


@pytest.mark.parametrize("shape,axes", [((2, 60000), [1]), ((20000, 2), [1]), ((60000, 2), [0]), ((300, 257), [0]),
                                        ((1, 140000), [1]), ((3, 9000), [1])])
def test_larger_axes(shape, axes, device):
    """Rows that pieces cut, and pieces of thousands of rows."""
    rng = np.random.default_rng(SEED)
    if is_slow(device):
        shape = tuple(min(n, 17000 if d in axes else 60) for d, n in enumerate(shape))
    cases = [(op, type, kind) for op in ("sum", "describe", "prod", "argmax", "var", "norm1") for type in
             ("f64", "f32", "bf16", "i64", "u8") for kind in ("tame", "wild")]
    cases = random.Random(SEED).sample(cases, 1 if is_slow(device) else 6)
    for op, type, kind in drawn(cases, 2) if has_blocks(device) else cases:
        x = elements(type, shape, rng, kind)
        same(lambda d: t.reduce_axes(t.Problem(op, type), x, axes, device=d), device, f"{op} of {kind} {type} {shape}")


def test_out_strides(device):
    x = elements("f64", (6, 5, 4), np.random.default_rng(SEED))
    for op, stride in (("sum", [1, 99, 12]), ("minmax", [-4, 0, 1]), ("argmax", [-1, 0, -6])):
        shape = t.axes_shape(x, [1], out_stride=stride)
        low = sum(s * (n - 1) for s, n in zip(stride, (6, 1, 4)) if s < 0)

        def run(d):
            out, pointers = t.outputs(t.Problem(op, "f64"), 60)
            for v, o in enumerate(out):
                pointers[v] = t.address(o) - low * 8
            t.check(t.lib.tally_reduce_shaped(d, t.Problem(op, "f64").c, shape, t.address(x), None, pointers))
            return out
        same(run, device, op)


@pytest.mark.parametrize("shape", [(2, 1, 20000), (3, 2, 9000), (700, 3, 30)], ids=str)
def test_rows_of_results_far_apart(device, shape):
    """Their workspace is that of results side by side, which is how the device leaves them."""
    x = elements("u16", shape, np.random.default_rng(SEED))
    apart = shape[2] + 10007
    for op in ("max", "sum"):
        given = t.axes_shape(x, [1], out_stride=[apart, 0, 1])

        def run(d):
            out, pointers = t.outputs(t.Problem(op, "u16"), shape[0] * apart)
            t.check(t.lib.tally_reduce_shaped(d, t.Problem(op, "u16").c, given, t.address(x), None, pointers))
            return out
        same(run, device, op)


def skews(rng, n):
    yield "even", np.arange(0, n + 1, 4)
    yield "one", np.array([0, n])
    yield "two", np.array([0, n // 3, n])
    yield "empty", np.zeros(50, np.int64)
    yield "gaps", np.sort(rng.integers(0, n, 300, endpoint=True))
    yield "zipf", np.minimum(np.concatenate([[0], np.cumsum(rng.zipf(1.5, 200))]), n)
    yield "giant", np.concatenate([np.arange(0, 60), [n - 30], np.arange(n - 29, n + 1)])
    yield "inner", np.array([5, 9, 9, 9, 40, n - 7])
    yield "none", np.array([3])


@pytest.mark.parametrize("type", ["f64", "f32", "f16", "i32", "u64"])
def test_segments(type, device):
    rng = np.random.default_rng(SEED)
    for n in (700, 17000 if is_slow(device) else 50000):
        x, y = elements(type, n, rng, "wild"), elements(type, n, rng, "small")
        mask = (rng.random(n) < 0.6).astype(np.uint8)
        cases = [(op, skew, masked) for op in ("sum", "argmin", "prod", "var", "dot", "describe", "all")
                 for skew in skews(rng, n) for masked in (False, True)]
        cases = random.Random(SEED).sample(cases, (4 if n < 1000 else 1) if is_slow(device) else 30 if is_opencl(device) else 60)
        for op, (name, offsets), masked in drawn(cases, 8) if has_blocks(device) else cases:
            problem = t.Problem(op, type)
            offsets = np.ascontiguousarray(offsets.astype(rng.choice([np.int32, np.int64])))
            same(lambda d: t.reduce_segments(problem, x, offsets, y if problem.two() else None, mask if masked else None, d),
                 device, f"{op} of {n} in {name} segments, masked: {masked}")


def side_by_side(n, py, rng):
    """Offsets into n elements that meet packs of 16 bytes, teams of 1 to 32 lanes and pieces in all ways."""
    of = [np.arange(0, n + 1, py.choice([1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64])),
          np.append(np.arange(0, n + 1, py.choice([100, 255, 1000, 4095, 4096, 4097, 8192, 9000])), n),
          np.array([0, n]), np.array([3, n // 3, n // 3, n - 5]),
          np.sort(rng.integers(0, n, 300, endpoint=True)),
          np.minimum(np.concatenate([[0], np.cumsum(rng.zipf(1.5, 300))]), n),
          np.minimum(np.cumsum(rng.integers(0, py.choice([33, 90, 300, 2000]), n // 15 + 2)), n),
          np.concatenate([np.arange(0, 60), [n - 30], np.arange(n - 29, n + 1)]),
          np.sort(np.repeat(rng.integers(0, n, 9, endpoint=True), 200)),
          np.concatenate([[5], np.full(500, 9), np.arange(9, 200), np.full(300, n // 2), [n - 7], np.full(40, n)])]
    return np.ascontiguousarray(py.choice(of).astype(py.choice([np.int32, np.int64])))


SIDE_BY_SIDE = [("sum", []), ("var", []), ("minmax", []), ("norm2", []), ("argmin", []), ("mean", ["std"]), ("max", []), ("norm1", []),
                ("sumsq", []), ("mean", []), ("std", []), ("argmax", []), ("var", ["sum", "mean", "norm2"]), ("min", []), ("norminf", []), ("min", ["norminf"])]


@pytest.mark.parametrize("type", [type for type in t.TYPES if t.SIZE[type] > 1])
def test_side_by_side(type, device):
    """Rows, segments and sorted groups from any element on: what rows.cu is for, and what it leaves to others."""
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    # (The double of CUDA runs the model's kernels, and each type begins with another problem.)
    cases, first = (10 if has_blocks(device) else 30 if is_opencl(device) else 60, 0) if not is_slow(device) else (3, 3 * t.TYPES.index(type) + SEED) if device.spec == "model" else (2, 0)
    for i in range(first, first + cases):
        op, also = SIDE_BY_SIDE[i % len(SIDE_BY_SIDE)]
        problem, kind = t.Problem(op, type, also=also, ddof=py.choice([0, 1, 1, 0.5, 3])), py.choice(KINDS)
        n = py.choice([700, 5000, 9000]) if is_slow(device) else py.choice([700, 20000, 60000])
        x = elements(type, n + 3, rng, kind)[py.randrange(4):][:n]
        if kind == "tame":  # a row whose sum needs more in its middle
            x[n // 2:n // 2 + 3] = elements(type, 3, rng, "huge")
        n, what = len(x), f"case {i}: {op} of {kind} {type}"
        if i % 3 == 0:
            length = min(n, py.choice([1, 2, 3, 4, 5, 16, 31, 64, 100, 255, 1000, 4096, n]))
            rows = x[:n // length * length].reshape(-1, length)
            same(lambda d: t.reduce_axes(problem, rows, [1], device=d), device, f"{what}, rows {rows.shape}")
        elif i % 7 == 4:
            ids = np.sort(rng.integers(0, py.choice([3, 50, 900]), n)).astype(np.int32)
            same(lambda d: t.reduce_groups(problem, x, ids, 1000, device=d, is_sorted=True), device, f"{what} by sorted ids")
        else:
            offsets = side_by_side(n, py, rng)
            same(lambda d: t.reduce_segments(problem, x, offsets, device=d), device, f"{what}, {n} at {offsets[:5]} ...")


@pytest.mark.parametrize("type", ["f32", "f64", "bf16"])
def test_variances_of_few(type, device):
    """Segments of so few elements that a variance needs no sums of them, beside others: none, NaN and infinities among them."""
    x = np.tile([np.inf, np.nan, -0.0, 5, 1e30, 1, 2, -np.inf, 3, 0, 0, 0], 40)
    ends = (np.array([1, 2, 3, 4, 5, 7, 9, 12, 12]) + 12 * np.arange(40)[:, None]).ravel()
    for ddof in some([0, 0.5, 1, 2, 3], device, 3):
        for op in ("var", "std"):
            problem, offsets = t.Problem(op, type, ddof=ddof), np.append(0, ends)
            same(lambda d: t.reduce_segments(problem, elements_of(type, x), offsets, device=d), device, f"{op} of {type}, ddof {ddof}")


@pytest.mark.parametrize("type", ["f32", "f64", "f16", "bf16"])
def test_rows_near_ties(type, device):
    """Results half way between two floats, and a trace beside that: sums that are only near must not decide which it is."""
    py, bits = random.Random(SEED), {"f32": 24, "f64": 53, "f16": 11, "bf16": 8}[type]
    for length in some([2, 3, 4, 5, 31, 64, 130, 400], device, 3):
        x = np.zeros((70, length))
        for row in x:
            trace = py.choice([0, 1, -1]) * 2.0 ** -py.choice([bits, 14] if type == "f16" else [bits, 30, 60])
            odd = 2 * py.randrange(2 ** (bits // 2 - 2), int(2 ** (bits // 2 - 1.4))) + 1
            values = py.choice([[1, 2.0**-bits, trace],  # a sum: 1 and half of its last bit
                                [odd * 2.0 ** -(bits // 2), trace],  # a sum of squares, with a 0 a variance: some bits more
                                [2.0 ** (bits // 2), 1, -1, trace]])
            row[:min(length, len(values))] = values[:length]
            py.shuffle(row)
        x = elements_of(type, x)
        for op in some(["sum", "mean", "norm1", "sumsq", "norm2", "var", "std"], device, 3):
            problem = t.Problem(op, type, ddof=py.choice([0, 1]))
            same(lambda d: t.reduce_axes(problem, x, [1], device=d), device, f"{op} of {type}, rows of {length}")
            columns = np.ascontiguousarray(x.T)
            same(lambda d: t.reduce_axes(problem, columns, [0], device=d), device, f"{op} of {type}, columns of {length}")
            offsets = np.arange(0, x.size + 1, length)
            same(lambda d: t.reduce_segments(problem, x.ravel(), offsets, device=d), device, f"{op} of {type}, segments of {length}")


def test_sums_beside_squares(device):
    """Of one state: a norm of infinities of both signs, whose sum is a NaN; a sum of 2^-33 beside squares that need 66 bits."""
    a, b = 1 + 2.0**-23, 2.0**-10 * (1 + 2.0**-23)
    for type, rows in (("f32", [[a, -a, b, -2.0**-10], [1, np.inf, -np.inf, 2]]), ("f16", [[1, np.inf, -np.inf, 2], [1, 2, np.inf, 3]])):
        x = np.array(rows * 3, dtype=t.DTYPE[type])
        for op in some(["var", "norm2", "sumsq"], device, 2):
            problem = t.Problem(op, type, also=["sum", "mean"])
            same(lambda d: t.reduce_axes(problem, x, [1], device=d), device, f"{op} and sum of {type}")


def test_long_rows_of_wide_sums(device):
    """Sums of f64 that two doubles cannot hold, but the pieces of which they can: each piece of 1024 elements, the least that
    there is, has a scale of its own. Where larger pieces cancel, what decides is in the third and the fourth double."""
    rng, piece = np.random.default_rng(SEED), 1024
    for n in some([5000, 20000, 9000], device, 1):
        for gap, cancelling in itertools.product((40, 60, 100), (0, 1, 2)):
            x = np.ldexp(rng.standard_normal(n), -gap * (np.arange(n) // piece % 3))
            pieces = x[:n // piece * piece].reshape(-1, piece)
            for i in range(3, len(pieces)):
                if i % 3 < cancelling and i // 3 % 2:
                    pieces[i] = -pieces[i - 3][::-1]
            for op in ("sum", "mean", "norm1"):
                what = f"{op} of {n}, {gap}, {cancelling}"
                same(lambda d: t.reduce_axes(t.Problem(op, "f64"), x.reshape(1, -1), [1], device=d), device, what)
                offsets = np.array([1, 3, n // 2, n - 1])
                same(lambda d: t.reduce_segments(t.Problem(op, "f64"), x, offsets, device=d), device, what)


@pytest.mark.parametrize("type", [*t.INTS, *t.FLOATS])
def test_rows_of_one_element(type, device):
    """A float alone is its own sum and mean, whatever it is; also where that is an infinity, or next to the least."""
    rng = np.random.default_rng(SEED)
    for kind in some(KINDS, device, 2):
        x = elements(type, (601, 1), rng, kind)
        if type in t.FLOATS and kind == "huge":
            with np.errstate(over="ignore"):
                x[:9, 0] = elements_of(type, np.array([np.inf, -np.inf, np.nan, 1.7e308, -1.7e308, 5e-324, -5e-324, 2.0**-149, -0.0]))
        for op in some(["sum", "mean", "norm1", "norm2", "norminf", "sumsq", "var", "min", "argmax"], device, 3):
            same(lambda d: t.reduce_axes(t.Problem(op, type), x, [1], device=d), device, f"{op} of rows of one of {kind} {type}")


@pytest.mark.parametrize("type", [*t.INTS, *t.FLOATS])
def test_rows_for_blocks(type, device):
    """So few rows, and so long, that each is for a block; with parts of warps that are no multiple of anything, and beside gaps."""
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    most = 65536 // np.dtype(t.DTYPE[type]).itemsize
    for kind in some(KINDS, device, 2):
        rows = py.choice([1, 2, 5, 9])
        length = py.choice([most // 32, most // 32 - 1, most // 32 + 1, most // 20 + py.randrange(9)] + [most, most + 1] * (rows == 1))
        x = elements(type, (rows, length + 3), rng, kind)
        for op in some(["sum", "mean", "norm1", "norm2", "norminf", "var", "min", "max", "argmin", "argmax"], device, 3):
            for part in (x[:, :length].copy(), x[:, 1:1 + length]):
                same(lambda d: t.reduce_axes(t.Problem(op, type), part, [1], device=d), device,
                     f"{op} of rows of {kind} {type} {part.shape}, {part.strides}")


def test_many_rows_of_few(device):
    """More rows than a round of warps has: each warp goes on to another tile while it reduces one."""
    rng = np.random.default_rng(SEED)
    x = elements("f32", 25001 * 2 + 1, rng, "wild")[1:].reshape(25001, 2)
    same(lambda d: t.reduce_axes(t.Problem("sum", "f32"), x, [1], device=d), device, "25001 rows of 2")


def test_fast_rows(device):
    """Sums in any order are those in order, where no addition rounds."""
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    for type in ("f32", "f64", "f16", "bf16"):
        for _ in range(3 if is_slow(device) or has_blocks(device) else 12):
            n = py.choice([700, 9000])
            x = np.where(rng.random(n) < 0.01, 1.0, 0.0)
            x = (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) if type == "bf16" else x.astype(t.DTYPE[type])
            offsets = side_by_side(n, py, rng)
            same(lambda d: t.reduce_segments(t.Problem("sum", type, fast=1), x, offsets, device=d), device, f"fast sum of {type}")


@pytest.mark.parametrize("offsets,line", [([0, 5, 3, 7], "offset 2 falls"), ([0, 5, 11], "offset 2 is 11"),
                                          ([-1, 5, 7], "offset 0 is -1"), ([0, 12, 3], "offset 1 is 12"),
                                          ([3, 2], "offset 1 falls"), ([0, 2**31 - 1, 4], "offset 1 is 2147483647")])
def test_hostile_offsets(offsets, line, device):
    for kind in (np.int32, np.int64):
        for op in ("sum", "prod"):
            with pytest.raises(t.Failed) as failed:
                t.reduce_segments(t.Problem(op, "f64"), np.ones(10), np.array(offsets, kind), device=device)
            assert failed.value.status == "EINVAL" and line in failed.value.line
            assert all((o.view(np.uint8) == 0xA5).all() for o in failed.value.out)


def test_first_wrong_offset(device):
    """Of several wrong offsets among many the first is named, and none is gone by: short and long segments, on pieces of their own."""
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    for i in range(3 if is_slow(device) else 24):
        n = py.choice([900, 20000])
        offsets = side_by_side(n, py, rng).astype(py.choice([np.int32, np.int64]))
        for _ in range(py.choice([1, 1, 2, 40])):
            k = py.randrange(len(offsets))
            wrong = py.choice([-1, n + 1, 2**31 - 1, -2**31, int(offsets[k]) + n // 2, py.randrange(n), int(offsets[0]) - 2 * k])
            offsets[k] = min(max(wrong, -2**31), 2**31 - 1)
        before = np.concatenate([[0], offsets[:-1]])
        wrong = np.flatnonzero((offsets < before) | (offsets < 0) | (offsets > n))
        problem = t.Problem(*py.choice([("sum", "f32"), ("max", "i32"), ("argmin", "f64"), ("var", "f32")]))
        x = np.ones(n, t.DTYPE[problem.type])
        if len(wrong) == 0:
            t.reduce_segments(t.Problem("sum", "f32"), np.ones(n, np.float32), offsets, device=device)
            continue
        with pytest.raises(t.Failed) as failed:
            t.reduce_segments(problem, x, offsets, device=device)
        assert failed.value.status == "EINVAL" and f"offset {wrong[0]} " in failed.value.line, (i, wrong[:5], failed.value.line)


def test_absent_results(device):
    same(lambda d: t.reduce_segments(t.Problem("argmin", "i32"), np.arange(9, dtype=np.int32), np.array([0, 3, 3, 9]),
                                     device=d), device, "argmin")
    big = np.array([[1, 2], [2**62, 2**62], [5, 6], [2**63 - 1, 1]], np.int64)
    for op in ("sum", "prod", "norm1", "sumsq"):
        for problem in (t.Problem(op, "i64"), t.Problem(op, "i64", also=["argmin", "max"])):
            for axes, x in (([1], big), ([0], np.ascontiguousarray(big.T)), ([1], big[::-1]), ([1], big[:0])):
                same(lambda d: t.reduce_axes(problem, x, axes, device=d), device, op)


ID_TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("type", t.TYPES)
def test_groups(type, device):
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    for i, problem in enumerate(some(problems(type), device, 4, compiled=True)):
        n, groups = py.choice([(0, 3), (1, 1), (500, 7), (500, 100), (2000, 3), (9000, 2)])
        x, y = elements(type, n, rng, py.choice(KINDS)), elements(type, n, rng)
        ids = rng.integers(0, groups, n).astype(ID_TYPES[i % 8])
        if i % 3 == 0:
            ids = np.sort(ids)
        mask = (rng.random(n) < 0.7).astype(np.uint8) if i % 4 == 1 else None
        same(lambda d: t.reduce_groups(problem, x, ids, groups, y if problem.two() else None, mask, d,
                                       is_sorted=i % 6 == 0), device, f"{problem.op} by {groups} ids")


def test_many_groups(device):
    rng = np.random.default_rng(SEED)
    n = 3000 if is_slow(device) else 9000 if has_blocks(device) else 60000
    for groups in (2, 1100) if is_slow(device) else (2, 1000, 20000, 70000):  # one pass of a sort, two and three
        ids = rng.integers(-2, groups + 2, n).astype(np.int32)
        some = (("sum", "f32"), ("argmax", "i16"), ("prod", "f64"), ("dot", "f32"), ("minmax", "i64"), ("argmin", "f64"))
        for op, type in some[:1] if has_blocks(device) and groups > 1000 else some:
            problem = t.Problem(op, type)
            x = elements(type, n, rng, "tame" if problem.two() else "wild")
            y = x[::-1].copy() if problem.two() else None
            same(lambda d: t.reduce_groups(problem, x, ids, groups, y, None, d, skip=True), device, f"{op} by {groups} ids")


def test_unordered_groups(device):
    """Sums, means, extremes and counts by ids in any order: few groups, whose digits a block keeps, and many; all elements in one, empty
    ones; what does not fit a window, specials, zeros of both signs, what does not fit its type."""
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    problems = [t.Problem("sum", type) for type in t.TYPES] + [
        t.Problem(op, type, out=out) for op in ("sum", "mean") for type in ("f16", "bf16", "f32", "f64") for out in ("f32", "f64")] + [
        t.Problem(op, type) for op in ("min", "max", "minmax", "argmin", "argmax", "count", "nonzero", "any", "all")
        for type in t.TYPES] + [t.Problem("any", "f32", also=["all", "count"]), t.Problem("argmax", "i16", also=["max"])]
    problems = [p for p in problems if p.type in types_on(device.spec)]
    cases = [(problem, groups, kind) for problem in problems for groups in (1, 2, 10, 33, 1000, 3009, 4011, 6000) for kind in KINDS]
    for problem, groups, kind in py.sample(cases, 12 if is_slow(device) else 30 if has_blocks(device) else 100 if is_opencl(device) else 200):
        n = py.choice([1, 255, 256, 257, 2500]) if is_slow(device) or has_blocks(device) else py.choice([1, 257, 20000, 70001])
        x = elements(problem.type, n, rng, kind)
        ids = rng.integers(0, groups, n) if py.random() < 0.8 else np.full(n, groups - 1)
        skip, mask = py.random() < 0.3, (rng.random(n) < 0.7).astype(np.uint8) if py.random() < 0.3 else None
        if skip:
            ids[rng.random(n) < 0.1] = py.choice([groups, -1])
        ids = ids.astype(py.choice([np.int16, np.int32, np.int64]))
        same(lambda d: t.reduce_groups(problem, x, ids, groups, None, mask, d, skip=skip), device,
             f"{problem.op} of {n} {kind} {problem.type} by {groups} ids")


def test_groups_of_zeros_and_specials(device):
    """Groups with no number but zeros: -0 if all are, and what infinities and NaNs make of them."""
    groups = [[-0.0, -0.0], [-0.0, 0.0], [-0.0, np.inf], [np.inf, -0.0, -np.inf], [np.nan, -0.0], [0.0], [-0.0, -np.inf, -np.inf], [5.0, -0.0]]
    x, ids = np.concatenate(groups), np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    for type in ("f16", "f64"):
        same(lambda d: t.reduce_groups(t.Problem("sum", type, out="f32"), x.astype(t.DTYPE[type]), ids, 9, None, None, d), device, type)
    both = t.Problem("argmax", "i16", also=["max"])
    same(lambda d: t.reduce_groups(both, np.array([8], np.int16), np.array([1]), 2, None, None, d), device, "an index of none, among others")


def test_sorted_ids_far_apart(device):
    """Sorted ids with long runs of empty groups between them, before and behind; of every length of an id."""
    rng = np.random.default_rng(SEED)
    far = 150 if is_slow(device) else 5000
    for type, most in ((np.int8, 127), (np.int16, far), (np.int32, far), (np.uint32, far), (np.int64, far)):
        for n in (2, 300) if is_slow(device) else (1, 2, 65, 5003):
            ids = np.sort(rng.choice(rng.integers(0, most, 20), n)).astype(type)
            x = elements("f32", n, rng)
            same(lambda d: t.reduce_groups(t.Problem("sum", "f32"), x, ids, most + 70, None, None, d, is_sorted=True), device,
                 f"by {n} sorted {type}")


def test_hostile_ids(device):
    n = 3000
    x, ids = np.ones(n), np.zeros(n, np.int64)
    for at, value in ((7, 3), (n - 1, -1), (1500, 2**62)):
        bad = ids.copy()
        bad[at] = value
        for op in ("sum", "prod"):
            with pytest.raises(t.Failed) as failed:
                t.reduce_groups(t.Problem(op, "f64"), x, bad, 3, device=device)
            assert failed.value.status == "EINVAL" and failed.value.line.startswith(f"id {at} is {value}, outside")
        assert list(t.reduce_groups(t.Problem("count", "f64"), x, bad, 3, device=device, skip=True)[0]) == [n - 1, 0, 0]
    with pytest.raises(t.Failed) as failed:
        t.reduce_groups(t.Problem("sum", "f64"), x[:4], np.array([0, 1, 1, 0]), 2, device=device, is_sorted=True)
    assert "id 3 falls" in failed.value.line
    with pytest.raises(t.Failed) as failed:
        t.reduce_groups(t.Problem("sum", "f64"), x[:2], np.array([0, 5], np.uint8), 0, device=device)
    assert "id 0 is 0" in failed.value.line


@pytest.mark.parametrize("case", USERS, ids=lambda c: c[2].split("\n")[0])
def test_user_operators(case, device):
    if device.spec == "model":
        pytest.skip("the model runs the kernels it was built with only")
    type, function, source, identity, commutative = case
    real = {"f32": np.float32, "f64": np.float64}.get(type)
    rng = np.random.default_rng(SEED)

    def of_values(a, b):
        with np.errstate(all="ignore"):
            return function(a, b) if real is None else function(a.view(real), b.view(real)).astype(real)
    user = t.operator(type, of_values, 0, commutative)
    user.source = source.encode()
    problem = t.Problem("user", type, user=user)
    x = elements(type, 9000, rng, "tame") if type in t.FLOATS else rng.integers(1, 100, 9000).astype(t.DTYPE[type])
    offsets = np.array([0, 1, 3, 3, 40, 700, 5000, 9000])
    same(lambda d: t.reduce_segments(problem, x, offsets, device=d), device, source)
    mask = (rng.random(9000) < 0.9).astype(np.uint8)
    same(lambda d: t.reduce_segments(problem, x, offsets, None, mask, d), device, source)
    same(lambda d: t.reduce_axes(problem, x.reshape(90, 100)[::2, ::-1], [0], device=d), device, source)
    same(lambda d: t.reduce_groups(problem, x, rng.integers(0, 5, 9000) * 0 + 2, 5, device=d), device, source)


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_gathered_trees(type, device):
    """Elements of a canonical tree that do not lie side by side are copied to the work, whose guards the model checks."""
    rng = np.random.default_rng([SEED, 3])
    x, ids = elements(type, (37, 5), rng), rng.integers(0, 7, 185).astype(np.int32)
    mask, product = (rng.random(x.shape) < 0.7).astype(np.uint8), t.Problem("prod", type)
    same(lambda d: t.reduce_axes(product, x, [0], device=d), device, "columns")
    same(lambda d: t.reduce_axes(product, x, [1], None, mask, d), device, "masked rows")
    same(lambda d: t.reduce_groups(t.Problem("prod", type, also=["argmin"]), x.ravel(), ids, 7, device=d), device, "groups")


def test_group_states(device):
    """States of groups that the device feeds are those that the calling thread feeds."""
    rng = np.random.default_rng(SEED)
    for op, type in (("var", "f32"), ("argmin", "i32"), ("prod", "f64")):
        x, ids = elements(type, 300, rng, "wild"), rng.integers(0, 3, 300)
        saved = []
        for d in (None, device):
            groups = t.Groups(t.Problem(op, type), 3)
            groups.feed(x[:100], ids[:100], device=d)
            groups.feed(x[100:], ids[100:], device=d)
            saved.append(groups.save())
        assert saved[0] == saved[1]


@pytest.mark.parametrize("spec", ["opencl:0,block=64,memory=1M", "model:0,memory=1M"])
def test_more_than_the_device_holds(spec):
    """In halves, in chunks and, where neither will do, on the calling thread."""
    try:
        device = t.open_device(spec)
    except t.Failed:
        pytest.skip(spec)
    rng = np.random.default_rng(SEED)
    x = rng.standard_normal((1100, 150)) * 2.0 ** rng.integers(-30, 30, (1100, 150))
    n = x.size
    mask = (rng.random(x.shape) < 0.9).astype(np.uint8)
    offsets = np.array([0, 5, 40000, 40000, 41000, n])
    for op in ("sum", "argmax", "prod") if spec.startswith("opencl") else ("argmax",):
        problem = t.Problem(op, "f64")
        for axes in ([0], [1], [0, 1]):
            same(lambda d: t.reduce_axes(problem, x, axes, None, None, d), device, f"{op} over {axes}")
        same(lambda d: t.reduce_axes(problem, x[::-1], [0, 1], None, mask, d), device, f"masked {op}")
        same(lambda d: t.reduce_segments(problem, x.ravel(), offsets, None, None, d), device, f"{op} of segments")
        same(lambda d: t.reduce_segments(problem, x.ravel(), offsets[[0, 5]], None, None, d), device, f"{op} of one")
        same(lambda d: t.reduce_groups(problem, x.ravel(), rng.integers(0, 9, n) * 0 + 4, 9, None, None, d), device, op)
    t.close_device(device)
