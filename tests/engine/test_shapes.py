"""Reductions in parts: along axes, by segment, by group, with a mask. Every result has the bits that reducing its
elements alone gives; NumPy says which elements those are. TALLY_SEED gives another run of random shapes."""

import ctypes
import hashlib
import os
import random

import numpy as np
import pytest

import data
import shapes as t
from test_exact_states import with_hash

SEED = int(os.environ.get("TALLY_SEED", "1"))
print(f"TALLY_SEED={SEED}")

DEVICES = {}


@pytest.fixture(params=["cpu", "cpu:threads=1,isa=baseline", "cpu:threads=3,isa=avx2"])
def device(request):
    if request.param not in DEVICES:
        try:
            DEVICES[request.param] = t.open_device(request.param)
        except t.Failed:
            pytest.skip("not here")
    return DEVICES[request.param]


def elements(type, shape, rng, kind="tame"):
    """Random elements, with ties, zeros of both signs and, as asked for, specials and wild exponents."""
    n = int(np.prod(shape, dtype=np.int64))
    if type in t.INTS:
        info = np.iinfo(t.DTYPE[type])
        low, high = (info.min, info.max) if kind == "wild" else (max(info.min, -9), 9)
        return rng.integers(low, high, n, dtype=t.DTYPE[type], endpoint=True).reshape(shape)
    x = rng.standard_normal(n)
    if kind == "wild":
        x *= 2.0 ** rng.integers(-30, 30, n)
    if kind == "small":
        x = rng.integers(-3, 4, n).astype(float)
    if kind == "huge":
        x = np.ldexp(x, rng.integers(-1000, 1000, n)) if type == "f64" else np.ldexp(x, rng.integers(-120, 120, n))
    if kind == "zeros":
        x = np.where(rng.random(n) < 0.7, -0.0, 0.0)
    if kind == "special":
        x[rng.random(n) < 0.1] = np.nan
        x[rng.random(n) < 0.1] = np.inf
        x[rng.random(n) < 0.05] = -np.inf
        x[rng.random(n) < 0.2] = -0.0
    if kind == "underflow":  # what is left of sums, and variances, lies around the least f16, bf16 and f32
        x = np.ldexp(rng.integers(-9, 10, n).astype(float), rng.choice([-10, -13, -20, -75, -134, -149, -160], n))
    if kind == "undone":
        x = data.undone_lines(rng, type, shape)
    with np.errstate(over="ignore"):
        if type == "bf16":
            bits = x.astype(np.float32).view(np.uint32)
            x = (bits >> 16).astype(np.uint16)
        x = x.astype(t.DTYPE[type])
    return (t.with_payloads(type, x, rng) if kind == "special" else x).reshape(shape)


KINDS = ["tame", "small", "special", "zeros", "wild", "huge", "underflow", "undone"]


def problems(type):
    out = [t.Problem(op, type) for op in t.OPS if op not in ("dot", "user")]
    out += [t.Problem("dot", type), t.Problem("var", type, ddof=1), t.Problem("std", type, ddof=1.5)]
    out += [t.Problem("sum", type, out="f64"), t.Problem("mean", type, out="f32"), t.Problem("var", type, out="f64"),
            t.Problem("sum", type, out="f16"), t.Problem("mean", type, also=["max", "argmin", "var", "nonzero"])]
    function = (lambda a, b: a * b + a + b) if type != "bf16" else (lambda a, b: np.maximum(a, b) ^ 1)
    out += [t.Problem("user", type, user=t.operator(type, function, 0, 1)),
            t.Problem("user", type, user=t.operator(type, lambda a, b: b, 0, 0))]
    if type in t.FLOATS:
        out.append(t.Problem("sum", type, fast=True))
    return out


def named(problem):
    ops = [problem.op] + [t.OPS[o - 1] for o in problem.c.also if o]
    names = []
    for op in ops:
        names += {"minmax": ["min", "max"], "describe": ["count", "nans", "min", "max", "argmin", "argmax", "sum",
                                                         "mean", "std"]}.get(op, [op])
    return names


ALONE = {}


def alone(problem, parts, other):
    """reduce_each(), which the next device that has the same parts need not do again."""
    if problem.user:
        return t.reduce_each(problem, parts, other)
    elements = hashlib.blake2b()
    for some in (parts, other):
        if isinstance(some, list):
            elements.update(np.array([p.size for p in some], np.int64))
            elements.update(b"".join([p.tobytes() for p in some]))
        elif some is not None:
            elements.update(np.array(some.shape))
            elements.update(some.tobytes())
    key = (bytes(problem.c), type(parts), elements.digest())
    if key not in ALONE:
        ALONE[key] = t.reduce_each(problem, parts, other)
    return ALONE[key]


def compare(problem, results, parts, other=None, indices=None):
    """results: arrays of bits; parts: the elements of each, and `other` those of y. indices: where each part's
    elements stand."""
    if problem.c.fast:
        return
    names = named(problem)
    exists, bits = alone(problem, parts, other)
    assert len(results) == len(names)
    for name, got, there, want in zip(names, results, exists, bits):
        is_index = name.startswith("arg")
        want = np.where(there, want, 2**64 - 1 if is_index and len(names) > 1 else 0).astype(np.uint64)
        if indices is not None and is_index:
            for i in np.flatnonzero(there):
                want[i] = indices[i][want[i]]
        wrong = np.flatnonzero(got != want)
        if len(wrong):
            i = wrong[0]
            pytest.fail(f"{name} of {problem.type}, result {i} of {len(parts)}: {got[i]:#x}, not {want[i]:#x}; {parts[i]}")


def tried(call, problem, parts):
    """The results; where some do not exist, those of the others."""
    try:
        return call()
    except t.Failed as failed:
        assert "result" in failed.line, failed.line
        exists, _ = alone(problem, *parts)
        needed = [not name.startswith("arg") or len(exists) == 1 for name in named(problem)]
        first = np.flatnonzero(~exists[needed].all(axis=0))
        assert len(first) and failed.result == first[0], (failed.line, first)
        return failed.out


def axes_case(problem, x, axes, device, y=None, mask=None):
    if not problem.two():
        y = None
    parts = t.parts_of_axes(x, axes)
    other = None if y is None else t.parts_of_axes(y, axes)
    indices = None
    if mask is not None:
        there = t.parts_of_axes(np.broadcast_to(mask, x.shape), axes)
        indices = [np.flatnonzero(m) for m in there]
        parts = [p[m] for p, m in zip(parts, indices)]
        other = None if other is None else [p[m] for p, m in zip(other, indices)]
    results = tried(lambda: t.reduce_axes(problem, x, axes, y, mask, device), problem, (parts, other))
    compare(problem, results, parts, other, indices)


# ---- Axes ------------------------------------------------------------------------------------

SHAPES = [((), []), ((0,), [0]), ((1,), [0]), ((7,), [0]), ((7,), []), ((5, 3), [1]), ((5, 3), [0]),
          ((40, 4), [1]), ((40, 4), [0]), ((3, 70), [1]), ((3, 70), [0]), ((2, 3, 4), [1]), ((2, 3, 4), [0, 2]),
          ((3, 0, 2), [1]), ((3, 0, 2), [0]), ((8, 1, 4, 10), [2, 3]), ((2, 2, 2, 2, 2), [1, 3]), ((33, 17), [0, 1])]


@pytest.mark.parametrize("type", t.TYPES)
def test_every_problem_along_axes(type, device):
    rng = np.random.default_rng(SEED)
    for problem in problems(type):
        for i, (shape, axes) in enumerate(SHAPES):
            kind = KINDS[i % len(KINDS)]
            x, y = elements(type, shape, rng, kind), elements(type, shape, rng)
            axes_case(problem, x, axes, device, y)


@pytest.mark.parametrize("type", ["f64", "f32", "f16", "i32", "i64", "u8"])
def test_views(type, device):
    rng = np.random.default_rng(SEED + 1)
    base = elements(type, (6, 10, 8), rng, "small")
    views = [base[::-1], base[:, ::2, ::-1], base.transpose(2, 0, 1), base[1:4, :, 3:5],
             np.broadcast_to(base[:, :1], (6, 5, 8)), base[:, :, ::-3], base.transpose(1, 2, 0)[::-1]]
    for op in ("sum", "argmin", "argmax", "prod", "mean", "var", "minmax", "dot", "describe"):
        problem = t.Problem(op, type)
        for x in views:
            for axes in ([0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2]):
                axes_case(problem, x, axes, device, x[::-1])


def random_view(type, rng, py):
    dims = py.randint(1, 6)
    shape = [py.choice([1, 1, 2, 3, 4, 5, 7, 16, 33]) for _ in range(dims)]
    while np.prod(shape) > 20000:
        shape[py.randrange(dims)] = 1
    x = elements(type, shape, rng, py.choice(KINDS))
    x = x.transpose(py.sample(range(dims), dims))
    cut = tuple(slice(None, None, py.choice([1, 1, 1, -1, 2, -2])) for _ in range(dims))
    x = x[cut]
    if py.random() < 0.2:
        d = py.randrange(dims)
        one = tuple(slice(0, 1) if i == d else slice(None) for i in range(dims))
        x = np.broadcast_to(x[one], x.shape[:d] + (py.randint(1, 5),) + x.shape[d + 1:])
    return x, py.sample(range(dims), py.randint(0, dims))


def test_random_axes(device):
    py, rng = random.Random(SEED), np.random.default_rng(SEED)
    for _ in range(150):
        type = py.choice(t.TYPES)
        x, axes = random_view(type, rng, py)
        op = py.choice([o for o in t.OPS if o != "user"])
        y = x[tuple(slice(None, None, -1) for _ in x.shape)]
        mask = None
        if py.random() < 0.3:
            mask = (rng.random(x.shape) < py.choice([0.1, 0.5, 1.0])).astype(np.uint8)
            if py.random() < 0.3:
                mask = np.broadcast_to(mask[:1], x.shape)
        axes_case(t.Problem(op, type, ddof=py.choice([0, 1])), x, axes, device, y, mask)


@pytest.mark.parametrize("shape,axes", [((300, 4), [1]), ((4, 3000), [0]), ((700, 300), [0]), ((700, 300), [1]),
                                        ((9000, 3), [0]), ((9001, 2), [1]), ((3, 9000), [1]), ((70, 30, 9), [1]),
                                        ((70, 30, 9), [0, 2]), ((5, 130, 77), [1]), ((2, 100000), [1]),
                                        ((100000, 2), [0]), ((1500, 65), [1]), ((257, 257), [0])])
@pytest.mark.parametrize("type", ["f64", "f32", "bf16", "i64", "u16"])
def test_larger_axes(type, shape, axes, device, request):
    rng, py = np.random.default_rng(SEED), random.Random(f"{SEED} {request.node.name}")
    problems = [t.Problem("sum", type), t.Problem("mean", type), t.Problem("argmax", type),
                t.Problem("minmax", type), t.Problem("var", type, ddof=1), t.Problem("nonzero", type),
                t.Problem("prod", type), t.Problem("xor", type), t.Problem("std", type, out="f64"),
                t.Problem("sum", type, out="f64"), t.Problem("norm2", type), t.Problem("norminf", type)]
    for kind in ("tame", "wild", "small", "undone"):
        x = elements(type, shape, rng, kind)
        for problem in py.sample(problems, 5):  # other devices, types and seeds have others
            axes_case(problem, x, axes, device)


@pytest.mark.parametrize("length", [5, 20, 59, 300])
@pytest.mark.parametrize("type,out", [("f64", "f32"), ("f64", "f16"), ("f32", "f32"), ("f32", "bf16")])
def test_results_that_underflow(type, out, length, device):
    """Results below the least number of their type, from both sides: +0 and -0 are different bits."""
    rng = np.random.default_rng(SEED)
    least = {"f32": -149, "f16": -24, "bf16": -133}[out]
    for op in ("sum", "mean", "var", "std", "norm1", "norm2", "sumsq", "dot"):
        half = least if op in ("sum", "mean", "std", "norm1", "norm2") else least / 2
        for rest in (1e-2, 0.3, 0.5, 0.7, 1):
            x = np.zeros((40, length))
            x[:, :4] = [1e17, 1.1, -1e17, -1.1]
            x[:, 4] = rest * rng.choice([-1, 1], 40) * (2.0 if op == "mean" else 1)
            if op in ("var", "std"):
                x[:] = rest * rng.uniform(1, 2, (40, 1))
            if type == "f32" and op not in ("var", "std"):
                x[:, :4] = 0
            x = np.ldexp(x[:, rng.permutation(length)], int(half)).astype(t.DTYPE[type])
            problem = t.Problem(op, type, out=out)
            axes_case(problem, x, [1], device, np.ones_like(x))
            axes_case(problem, np.ascontiguousarray(x.T), [0], device, np.ones_like(x).T.copy())
            if op == "dot":
                continue
            segments = np.arange(41) * length
            ids = np.tile(np.arange(40), length)
            compare(problem, t.reduce_segments(problem, x.ravel(), segments, device=device), x)
            compare(problem, t.reduce_groups(problem, x.T.ravel().copy(), ids, 40, device=device), x)


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_means_that_underflow_in_f64(rows, device):
    """What cancels leaves some units of the least f64, from either side: their mean is +0 or -0, or the least number."""
    rng = np.random.default_rng(SEED)
    for length in (5, 6, 11, 40):
        x = np.zeros((rows, length))
        big = rng.standard_normal((rows, 2)) * 2.0 ** rng.choice([-3, 200])
        x[:, :4] = np.concatenate([big, -big], axis=1)
        x[:, 4] = rng.choice([-5, -2, -1, 1, 2, 5], rows) * 5e-324
        x = x[:, rng.permutation(length)]
        problem = t.Problem("mean", "f64")
        axes_case(problem, x, [1], device)
        axes_case(problem, np.ascontiguousarray(x.T), [0], device)
        compare(problem, t.reduce_segments(problem, x.ravel(), np.arange(rows + 1) * length, device=device), x)


@pytest.mark.parametrize("shape,axes", [((64, 300), [0]), ((300, 64), [1]), ((2000, 3), [1]), ((100000, 3), [0])])
@pytest.mark.parametrize("type", ["f64", "f32", "f16"])
def test_variances_of_large_means(type, shape, axes, device):
    """Spreads so far below the mean that sums in doubles do not tell the variance; and none at all."""
    rng = np.random.default_rng(SEED)
    digits = {"f64": 48, "f32": 20, "f16": 8}[type]
    x = (1 + rng.integers(0, 4, shape) * 2.0 ** -digits).astype(t.DTYPE[type])
    x[:, 1] = x[0, 1]
    for problem in (t.Problem("var", type, ddof=1), t.Problem("std", type)):
        axes_case(problem, x, axes, device)


@pytest.mark.parametrize("shape,axes", [((64, 300), [0]), ((300, 64), [1]), ((2000, 3), [1]), ((5000, 3), [0])])
@pytest.mark.parametrize("type", ["f64", "f32"])
def test_variances_of_all_bits(type, shape, axes, device):
    """Elements next to 1 of as many bits as fit, so that neither sums of their squares in pairs of doubles nor, of f32, the
    square of their sum in one is exact, by just as much as decides how some variances are rounded."""
    rng = np.random.default_rng(SEED)
    digits = {"f64": 52, "f32": 23}[type]
    x = (1 + rng.integers(0, 4096, shape) * 2.0**-digits).astype(t.DTYPE[type])
    for problem in (t.Problem("var", type, ddof=1), t.Problem("std", type)):
        axes_case(problem, x, axes, device)


@pytest.mark.parametrize("rows,columns", [(2, 16), (3, 530), (4, 130), (5, 17), (7, 97), (8, 530)])
@pytest.mark.parametrize("type", ["f64", "f32", "i32", "u64"])
def test_few_rows(type, rows, columns, device):
    """Results of a few elements, whose columns are done without states if those of a block are certain so; and with
    some that are not, one kind an array."""
    rng = np.random.default_rng(SEED)
    tame = elements(type, (rows, columns), rng)
    arrays = [tame]
    for kind in ("zeros", "special", "wild", "ties", "tails", "nans") if type in t.FLOATS else ():
        x = tame.copy()
        at = rng.random(columns) < 0.02
        at[3] = True
        half = 2.0 ** (-53 if type == "f64" else -24)
        if kind == "ties":  # a mean half-way between two floats
            x[:, at] = 0
            x[:2, at] = [[rows], [rows * half]]
        elif kind == "tails":  # a sum that is, but for its last part, whichever that is
            x[:, at] = 0
            x[:3, at] = np.array([1, half, 2.0**-120])[rng.permutation(3)][:rows, None]
        elif kind == "nans":  # not the usual one
            x[:, at] = np.array([-1], f"i{t.SIZE[type]}").view(t.DTYPE[type])
        else:
            x[:, at] = elements(type, (rows, columns), rng, kind)[:, at]
        arrays.append(x)
    for x in arrays:
        for op in ("sum", "mean", "max", "min", "argmax", "argmin", "var", "std"):
            problem = t.Problem(op, type, ddof=rng.integers(0, 3)) if op in ("var", "std") else t.Problem(op, type)
            axes_case(problem, x, [0], device)
            turned = np.ascontiguousarray(x.T)
            axes_case(problem, turned, [1], device)
            if rows in (4, 8):
                offsets = np.arange(0, x.size + 1, rows)
                compare(problem, t.reduce_segments(problem, turned.ravel(), offsets, device=device), list(turned))


def test_numpy_semantics(device):
    """The same numbers as NumPy's, where those are exact."""
    rng = np.random.default_rng(SEED)
    x = rng.integers(-50, 50, (4, 6, 5, 3)).astype(np.float64)
    for axes in ((0,), (1,), (3,), (0, 1), (1, 3), (0, 2, 3), (-1,), (0, 1, 2, 3)):
        for op, f in (("sum", np.sum), ("min", np.min), ("max", np.max)):
            got = t.reduce_axes(t.Problem(op, "f64"), x, axes, device=device)[0].view(np.float64)
            assert (got == f(x, axis=axes).ravel()).all()
        if len(axes) == 1:
            for op, f in (("argmin", np.argmin), ("argmax", np.argmax)):
                got = t.reduce_axes(t.Problem(op, "f64"), x, axes, device=device)[0]
                assert (got == f(x, axis=axes[0]).ravel().astype(np.uint64)).all()


def test_means_next_to_ties(device):
    """The least subnormal beside a mean that lies half-way between two floats decides to which it is rounded."""
    for least in (5e-324, -5e-324):
        for n in (3, 4, 5):
            row = [1.0, 0.0, 2.0**-24, least] if n == 4 else [n * (1 + 2.0**-24)] + [0.0] * (n - 2) + [least]
            x = np.array([row] * 9)
            for array, axes in ((x, [1]), (np.ascontiguousarray(x.T), [0])):
                axes_case(t.Problem("mean", "f64", out="f32"), array, axes, device)


def test_sums_whose_second_double_is_the_larger(device):
    """1 + 2^-24 + 2^-60, of which additions leave 2^-60 and a second double with the rest; beside sums that take a bound."""
    undone = [2.0**80, 1, 2.0**-24, -2.0**80, 2.0**-60]
    bounded = [1, 2.0**-60, 2.0**-70, 2.0**-130, 0.25]
    block = np.array([undone] + 15 * [bounded]).T
    x = np.r_[np.tile(block, 4), np.zeros((4, 64))]
    narrow = x.astype(np.float32)
    want = 0x3f800001
    for problem, array, y in ((t.Problem("dot", "f32"), narrow, np.ones_like(narrow)), (t.Problem("sum", "f32", also=["var"]), narrow, None),
                              (t.Problem("sum", "f64", out="f32"), x, None), (t.Problem("sum", "f32"), narrow, None)):
        got = t.reduce_axes(problem, array, [0], y, device=device)[0]
        assert hex(got[0]) == hex(want) and (got[::16] == got[0]).all(), problem.op
    got = t.reduce_groups(t.Problem("sum", "f32"), block.astype(np.float32).ravel(), np.tile(np.arange(16), 5), 16, device=device)[0]
    assert hex(got[0]) == hex(want)


def test_a_norm_of_a_long_column_beside_a_tie(device):
    """What 58,000 additions leave is many last bits of the sum of squares, whose root lies just above the middle of two doubles."""
    column = np.array([77087840 * 2.0**19] + 58628 * [361758] + [360527, 605861, 91045, 2372]) * 2.0**-19
    x = np.repeat(column, 64).reshape(-1, 64)
    x[:, 1] = 0
    x[:5, 1] = [1, 2.0**-30, 2.0**-35, 2.0**-65, 0.5]
    got = t.reduce_axes(t.Problem("norm2", "f64"), x, [0], device=device)[0].view(np.float64)
    assert got[0].hex() == "0x1.2611180002f77p+26" and (got[2:] == got[0]).all()


@pytest.mark.parametrize("type,out,root", [("f64", "f32", 1 + 2.0**-24), ("f64", "bf16", 257), ("f32", "bf16", 257),
                                           ("f32", "f16", 2049), ("i32", "bf16", 257), ("f16", "bf16", 257)])
def test_norms_next_to_ties(type, out, root, device):
    """Roots that lie half-way between two numbers of the result's type, and that something far smaller moves from there."""
    rng = np.random.default_rng(SEED)
    least = {"f64": 2.0**-500, "f32": 2.0**-140, "f16": 2.0**-24, "i32": 1}[type]
    columns = []
    for scale in (1, 2, 1024) if type == "i32" else (1, 2.0**-9) if type == "f16" else (1, 4, 2.0**-70, 2.0**40):
        for other in (0, 0, least, 1000 * least):
            columns.append(rng.permutation(np.array([scale * root, other] + [0] * 11)))
    x = np.array(columns * 3).astype(t.DTYPE[type])
    for problem in (t.Problem("norm2", type, out=out), t.Problem("norm2", type), t.Problem("norm2", type, out=out, also=["sum", "sumsq"])):
        axes_case(problem, x, [1], device)
        axes_case(problem, np.ascontiguousarray(x.T), [0], device)


def test_out_strides(device):
    rng = np.random.default_rng(SEED)
    x = elements("f64", (6, 5, 4), rng)
    problem = t.Problem("sum", "f64")
    shape = t.axes_shape(x, [1], out_stride=[1, 99, 12])
    got = t.run(problem, shape, x, None, 24, device, places=60)[0]
    want = t.reduce_axes(problem, x, [1], device=device)[0].reshape(6, 4)
    for i in range(6):
        for j in range(4):
            assert got[i + 12 * j] == want[i, j]
    touched = {i + 12 * j for i in range(6) for j in range(4)}
    assert all(got[k] == 0xA5A5A5A5A5A5A5A5 for k in range(60) if k not in touched)


# ---- Segments --------------------------------------------------------------------------------


def skews(rng, n):
    yield "even", np.arange(0, n + 1, 4)
    yield "one", np.array([0, n])
    yield "two", np.array([0, n // 3, n])
    yield "empty", np.zeros(50, np.int64)
    yield "gaps", np.sort(rng.integers(0, n, n // 3, endpoint=True))
    yield "zipf", np.minimum(np.concatenate([[0], np.cumsum(rng.zipf(1.5, 400))]), n)
    giant = np.concatenate([np.arange(0, 60), [n - 30], np.arange(n - 29, n + 1)])
    yield "giant", giant
    lengths = rng.choice([0, 0, 1, 5, 17, 1024, 1025, 3000, 9000], 300)  # of pieces of 1024, and of what is no column
    yield "mixed", np.minimum(np.concatenate([[0], np.cumsum(lengths)]), n)
    yield "inner", np.array([5, 9, 9, 9, 40, n - 7])


@pytest.mark.parametrize("type", ["f64", "f32", "f16", "i32", "u64"])
@pytest.mark.parametrize("n", [1000, 150000])
def test_segments(type, n, device):
    rng = np.random.default_rng(SEED)
    x, y = elements(type, n, rng, "wild"), elements(type, n, rng, "small")
    ops = [("sum", {}), ("mean", {}), ("argmin", {}), ("prod", {}), ("var", dict(ddof=1)), ("dot", {}), ("describe", {}),
           ("minmax", {}), ("any", {}), ("and", {}), ("sum", dict(also=["max"]))]
    if n > 10000:
        ops = ops[:5]
    for op, options in ops:
        problem = t.Problem(op, type, **options)
        for name, offsets in skews(rng, n):
            if n > 10000 and name == "gaps":
                offsets = np.unique(offsets[::100])
            for kind in (np.int32, np.int64):
                offsets = np.ascontiguousarray(offsets.astype(kind))
                parts = [x[a:b] for a, b in zip(offsets[:-1], offsets[1:])]
                other = [y[a:b] for a, b in zip(offsets[:-1], offsets[1:])] if problem.two() else None
                results = tried(lambda: t.reduce_segments(problem, x, offsets, y if other else None, None, device),
                                problem, (parts, other))
                compare(problem, results, parts, other)


@pytest.mark.parametrize("type", ["f64", "f32", "f16", "bf16", "i8", "u32"])
def test_short_segments(type, device):
    """Sums and means of segments of all short lengths in turn: those that one unit fits, and those that none does."""
    rng = np.random.default_rng(SEED)
    for kind in KINDS:
        for mean, count in ((0.4, 600), (5, 400), (70, 60), (400, 9)):
            lengths = rng.poisson(mean, count) if mean < 1 else rng.geometric(1 / mean, count) - 1
            offsets = np.concatenate([[3], 3 + np.cumsum(lengths)]).astype(rng.choice([np.int32, np.int64]))
            x = elements(type, offsets[-1] + rng.integers(0, 3), rng, kind)
            parts = [x[a:b] for a, b in zip(offsets[:-1], offsets[1:])]
            for op in ("sum", "mean"):
                problem = t.Problem(op, type)
                compare(problem, t.reduce_segments(problem, x, offsets, device=device), parts)


@pytest.mark.parametrize("type", ["f64", "f32", "i16"])
def test_many_results(type, device):
    """So many that they are written past the caches. Sums of small whole numbers are NumPy's, too."""
    rng = np.random.default_rng(SEED)
    count = (1 << 24) // t.SIZE["f32" if type == "f32" else "f64"] + 5
    x = rng.integers(-9, 9, (count, 2)).astype(t.DTYPE[type])
    out = np.int64 if type == "i16" else x.dtype
    for problem, expected in ((t.Problem("sum", type), x[:, 0] + x[:, 1].astype(out)),
                              (t.Problem("max", type), np.maximum(x[:, 0], x[:, 1]))):
        turned = np.ascontiguousarray(x.T)
        for got in (t.reduce_axes(problem, x, [1], device=device), t.reduce_axes(problem, turned, [0], device=device),
                    t.reduce_segments(problem, x.ravel(), np.arange(0, 2 * count + 1, 2), device=device)):
            assert (got[0].view(expected.dtype) == expected).all()


def test_masked_segments(device):
    rng = np.random.default_rng(SEED)
    for type in ("f64", "i16"):
        n = 20000
        x = elements(type, n, rng, "small")
        mask = (rng.random(n) < 0.6).astype(np.uint8)
        for op in ("sum", "argmax", "prod", "count", "std"):
            problem = t.Problem(op, type)
            for name, offsets in skews(rng, n):
                offsets = np.ascontiguousarray(offsets.astype(np.int64))
                if len(offsets) > 2000:
                    offsets = offsets[:2000]
                there = [np.flatnonzero(mask[a:b]) for a, b in zip(offsets[:-1], offsets[1:])]
                parts = [x[a:b][m] for a, b, m in zip(offsets[:-1], offsets[1:], there)]
                results = tried(lambda: t.reduce_segments(problem, x, offsets, None, mask, device), problem,
                                (parts, None))
                compare(problem, results, parts, None, there)


@pytest.mark.parametrize("shape,axes", [((3000, 4), [1]), ((4, 3000), [0]), ((90, 300), [0]), ((300, 90), [1]), ((9000, 3), [0]),
                                        ((3, 9000), [1]), ((70, 30, 9), [1]), ((70, 30, 9), [0, 2]), ((5, 130, 77), [1]),
                                        ((9, 5, 4, 70), [0, 2]), ((700, 129), [0]), ((20000,), [0]), ((40000, 2), [1]), ((0, 3), [0]),
                                        ((3, 0, 2), [1]), ((0, 3), [1]), ((3, 0), [0, 1])])
@pytest.mark.parametrize("type", ["f64", "f16", "i32", "u8"])
def test_masked_axes(type, shape, axes, device, request):
    rng, py = np.random.default_rng(SEED), random.Random(f"{SEED} {request.node.name}")
    x, y = elements(type, shape, rng, "small"), elements(type, shape, rng, "small")
    some = [t.Problem(op, type) for op in ("sum", "argmax", "minmax", "prod", "describe", "dot", "std", "all", "xor", "count")]
    some.append(t.Problem("user", type, user=t.operator(type, lambda a, b: b, 0, 0)))
    for problem in py.sample(some, 2):  # other devices, types and seeds have others
        mask = (rng.random(shape) < py.choice([0.1, 0.5, 0.9, 1.0])).astype(np.uint8) * np.uint8(py.choice([1, 128, 255]))
        if py.random() < 0.3:
            mask = np.asfortranarray(mask)
        mask[..., :1] = py.choice([0, 1])
        axes_case(problem, x, axes, device, y, mask)
        axes_case(problem, x[::-1], axes, device, y[::-1], mask)


def test_equal_segments(device):
    rng = np.random.default_rng(SEED)
    for length in (1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 63, 64, 65, 100, 255, 1024):
        for count in (1, 3, 8, 17, 200):
            for type in ("f64", "f32", "i32"):
                x = elements(type, (count, length), rng, "tame")
                for op in ("sum", "argmin", "mean", "max"):
                    problem = t.Problem(op, type)
                    compare(problem, t.reduce_segments(problem, x, None, device=device, count=count), list(x))


@pytest.mark.parametrize("offsets,line", [([0, 5, 3, 7], "offset 2 falls: it is 3, behind 5"), ([0, 5, 11], "offset 2 is 11"),
                                          ([-1, 5, 7], "offset 0 is -1"), ([0, 12, 3], "offset 1 is 12"),
                                          ([3, 2], "offset 1 falls: it is 2, behind 3"), ([11], "offset 0 is 11"),
                                          ([-1], "offset 0 is -1"), ([0, 2**31 - 1, 4], "offset 1 is 2147483647")])
def test_hostile_offsets(offsets, line, device):
    x = np.ones(10)
    for kind in (np.int32, np.int64):
        with pytest.raises(t.Failed) as failed:
            t.reduce_segments(t.Problem("sum", "f64"), x, np.array(offsets, kind), device=device)
        assert failed.value.status == "EINVAL" and line in failed.value.line
        assert all((o.view(np.uint8) == 0xA5).all() for o in failed.value.out)


def test_unaligned_offsets_and_ids(device):
    """Offsets and ids need no alignment, as no array does."""
    rng = np.random.default_rng(SEED)
    for dtype in (np.int32, np.int64, np.uint16, np.uint32, np.uint64):
        for n, parts in ((40, 5), (5000, 700), (300000, 40)):
            numbers = np.sort(rng.integers(0, parts, n))
            x = elements("f64", n, rng, "small")
            def moved(array):
                array = array.astype(dtype)
                room = np.zeros(array.nbytes + 1, np.uint8)
                room[1:] = array.view(np.uint8)
                return np.frombuffer(room.data, dtype, array.size, 1)
            starts = np.searchsorted(numbers, np.arange(parts + 1))
            of = [x[a:b] for a, b in zip(starts[:-1], starts[1:])]
            for op in ("sum", "max", "argmin"):
                problem, index = t.Problem(op, "f64"), op == "argmin"
                kept = [i for i, part in enumerate(of) if len(part)]
                if dtype in (np.int32, np.int64) and not index:
                    compare(problem, t.reduce_segments(problem, x, moved(starts), device=device), of)
                for shuffled in (0, 1):
                    order = rng.permutation(n) if shuffled else np.arange(n)
                    ids = moved(np.searchsorted(kept, numbers)[order])
                    there = [np.flatnonzero(numbers[order] == k) for k in kept] if n < 6000 else None
                    if n >= 6000 and index:
                        continue
                    results = t.reduce_groups(problem, x[order], ids, len(kept), device=device)
                    where = there if there is not None else [np.flatnonzero(numbers == k) for k in kept]
                    compare(problem, results, [x[order][w] if there is not None else x[w] for w in where],
                            indices=where if index else None)


def test_late_bad_offset(device):
    n = 300000
    offsets = np.arange(0, n + 1, dtype=np.int64)
    offsets[200001] = 5
    offsets[250001] = n + 5
    with pytest.raises(t.Failed) as failed:
        t.reduce_segments(t.Problem("sum", "i8"), np.ones(n, np.int8), offsets, device=device)
    assert "offset 200001 falls" in failed.value.line


def test_absent_results(device):
    with pytest.raises(t.Failed) as failed:
        t.reduce_segments(t.Problem("argmin", "i32"), np.arange(9, dtype=np.int32), np.array([0, 3, 3, 9]),
                          device=device)
    assert failed.value.status == "EINVAL" and failed.value.line.startswith("result 1 has no elements") and failed.value.result == 1
    assert list(failed.value.out[0]) == [0, 0, 0]
    big = np.array([[1, 2], [2**62, 2**62], [5, 6], [2**63 - 1, 1]], np.int64)
    for axes, x in (([1], big), ([0], np.ascontiguousarray(big.T))):
        with pytest.raises(t.Failed) as failed:
            t.reduce_axes(t.Problem("sum", "i64"), x, axes, device=device)
        assert failed.value.status == "ERANGE" and failed.value.line.startswith("result 1: the exact sum")
        assert list(failed.value.out[0]) == [3, 0, 11, 0]
    least = np.zeros((3, 40), np.int64)
    least[1, 7] = -2**63
    with pytest.raises(t.Failed) as failed:
        t.reduce_axes(t.Problem("norminf", "i64"), least, [0], device=device)
    assert failed.value.status == "ERANGE" and failed.value.result == 7 and (failed.value.out[0] == 0).all()


# ---- Groups ----------------------------------------------------------------------------------


def group_parts(ids, groups, mask=None):
    there = np.ones(len(ids), bool) if mask is None else mask != 0
    return [np.flatnonzero((ids == g) & there) for g in range(groups)]


ID_TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("type", t.TYPES)
def test_groups(type, device):
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    for i, problem in enumerate(problems(type)):
        n, groups = py.choice([(0, 3), (1, 1), (500, 7), (500, 100), (2000, 3)])
        x, y = elements(type, n, rng, py.choice(["tame", "wild", "special", "zeros", "undone"])), elements(type, n, rng)
        ids = rng.integers(0, groups, n).astype(ID_TYPES[i % 8])
        if i % 3 == 0:
            ids = np.sort(ids)
        mask = (rng.random(n) < 0.7).astype(np.uint8) if i % 4 == 1 else None
        where = group_parts(ids, groups, mask)
        parts, other = [x[w] for w in where], [y[w] for w in where] if problem.two() else None
        results = tried(lambda: t.reduce_groups(problem, x, ids, groups, y if other else None, mask, device), problem,
                        (parts, other))
        compare(problem, results, parts, other, where)


@pytest.mark.parametrize("groups,n", [(2, 300000), (1000, 300000), (50000, 300000), (2, 50000), (1000, 20000)])
def test_larger_groups(groups, n, device):
    """The shorter ones have between 16 and 32 chunks of 1024 ids a thread: tasks of two chunks each."""
    rng = np.random.default_rng(SEED)
    ids = rng.integers(0, groups, n).astype(np.int32)
    order = np.argsort(ids, kind="stable")
    ends = np.searchsorted(ids[order], np.arange(groups + 1))
    for type in ("f64", "f32", "i32"):
        for kind in ("tame", "wild"):
            x = elements(type, n, rng, kind)
            for op in ("sum", "mean", "argmax", "count") if groups < 10000 else ("sum",):
                problem = t.Problem(op, type)
                where = [order[a:b] for a, b in zip(ends[:-1], ends[1:])]
                results = tried(lambda: t.reduce_groups(problem, x, ids, groups, device=device), problem,
                                ([x[w] for w in where], None))
                compare(problem, results, [x[w] for w in where], None, where)


def test_many_groups(device):
    """More groups than the caches hold, some of them empty, and some whose sums doubles do not tell: as if their elements lay side by
    side."""
    rng, groups, n = np.random.default_rng(SEED), (1 << 18) + 3, 2200000
    ids = rng.integers(0, groups, n).astype(np.int32)
    ids[ids == 1] = 2
    order = np.argsort(ids, kind="stable")
    offsets = np.searchsorted(ids[order], np.arange(groups + 1))
    tame = rng.random(n) - 0.25
    for op, x in (("sum", tame * np.exp2(rng.integers(-300, 300, n))), ("mean", tame)):
        problem = t.Problem(op, "f64")
        got = t.reduce_groups(problem, x, ids, groups, device=device)[0]
        want = t.reduce_segments(problem, x[order], offsets, device=device)[0]
        assert np.array_equal(got.view(np.uint64), want.view(np.uint64)), op


def test_indices_in_runs_that_are_cut(device):
    """Two results of runs of 1009 elements: a thread begins in the middle of a run, and finds the greatest there."""
    rng = np.random.default_rng(SEED)
    x = rng.random((199, 2, 1009), np.float32)
    mask = (rng.random(x.shape) < 0.9).astype(np.uint8)
    mask[:, :, 1008] = 1
    for run in range(199):
        x[run, :, 1008] = 9
        got = t.reduce_axes(t.Problem("argmax", "f32"), x, (0, 2), mask=mask, device=device)[0]
        assert list(got) == [run * 1009 + 1008] * 2
        x[run, :, 1008] = 0


@pytest.mark.parametrize("run", [256, 512, 1024, 2048, 4096])
def test_groups_of_minus_zeros(run, device):
    """Runs of ones, and of -0 that belong to other groups: as many as are looked at together, or more, or fewer."""
    rng = np.random.default_rng(SEED)
    second = np.arange(100 * run) // run % 2
    x = np.where(second, -0.0, 1.0)
    ids = (rng.integers(0, 2, len(x)) + 2 * second).astype(np.int32)
    got = t.reduce_groups(t.Problem("sum", "f64"), x, ids, 4, device=device)[0].view(np.float64)
    assert list(got[:2]) == [np.sum(ids == 0), np.sum(ids == 1)]
    assert list(got[2:]) == [0, 0] and np.signbit(got[2:]).all()


def test_hostile_ids(device):
    x = np.ones(100000)
    ids = np.zeros(100000, np.int64)
    for at, value in ((7, 3), (99999, -1), (70000, 2**62)):
        bad = ids.copy()
        bad[at] = value
        with pytest.raises(t.Failed) as failed:
            t.reduce_groups(t.Problem("sum", "f64"), x, bad, 3, device=device)
        assert failed.value.status == "EINVAL" and failed.value.line.startswith(f"id {at} is {value}, outside")
        got = t.reduce_groups(t.Problem("count", "f64"), x, bad, 3, device=device, skip=True)[0]
        assert list(got) == [99999, 0, 0]
    falling = np.array([0, 1, 1, 0])
    with pytest.raises(t.Failed) as failed:
        t.reduce_groups(t.Problem("sum", "f64"), x[:4], falling, 2, device=device, is_sorted=True)
    assert "id 3 falls" in failed.value.line
    unsigned = np.array([0, 255], np.uint8)
    with pytest.raises(t.Failed) as failed:
        t.reduce_groups(t.Problem("sum", "f64"), x[:2], unsigned, 2, device=device)
    assert "id 1 is 255" in failed.value.line


@pytest.mark.parametrize("type", ["f64", "f32", "f16", "i32", "u8"])
def test_group_states(type, device):
    """Fed in pieces, merged, saved and loaded: the same as all at once."""
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    seen = 0
    for problem in problems(type):
        if problem.c.fast:
            continue
        groups, n = 9, 3000
        x, y = elements(type, n, rng, py.choice(["tame", "wild", "special", "undone"])), elements(type, n, rng)
        ids = rng.integers(-1, groups, n)
        ids[ids == 4] = 5
        y = y if problem.two() else None
        tree = problem.op == "user" or (problem.op == "prod" and type in t.FLOATS)

        def outcome(call):
            try:
                return call()
            except t.Failed as failed:
                return failed.status, failed.line
        want = outcome(lambda: [list(o) for o in t.reduce_groups(problem, x, ids, groups, y, None, device, True)])
        cuts = [0] + sorted(py.sample(range(n), 4)) + [n]
        pieces = [t.Groups(problem, groups) for _ in range(1 if tree else 5)]
        for k, (a, b) in enumerate(zip(cuts[:-1], cuts[1:])):
            pieces[0 if tree else k].feed(x[a:b], ids[a:b], None if y is None else y[a:b], None, True, device)
        while len(pieces) > 1:
            k = py.randrange(len(pieces) - 1)
            left = t.Groups.load(problem, groups, pieces[k].save())
            left.merge(pieces.pop(k + 1))
            pieces[k] = left
        whole = t.Groups(problem, groups)
        whole.feed(x, ids, y, None, True, device)
        saved = pieces[0].save()
        assert saved == whole.save(), problem.op
        assert (pieces[0].counts() == np.bincount(ids[ids >= 0], minlength=groups)).all()
        newer = saved[:8] + b"\2" + saved[9:]
        with pytest.raises(t.Failed) as failed:
            t.Groups.load(problem, groups, newer)
        assert failed.value.status == "EFORMAT" and "version 2" in failed.value.line
        additive = t.Groups(problem, groups).words() is not None
        seen += additive
        if additive:
            added = np.zeros(1, np.int64)
            for a, b in zip(cuts[:-1], cuts[1:]):
                piece = t.Groups(problem, groups)
                piece.feed(x[a:b], ids[a:b], None if y is None else y[a:b], None, True, device)
                added = added + piece.words()
            for word in (0, 1, len(added) - 1):
                wrong = added.copy()
                wrong[word] -= 1 << 62
                with pytest.raises(t.Failed):
                    whole.from_words(wrong)
            assert whole.save() == saved
            whole.from_words(added)
            assert whole.save() == saved
        again = t.Groups.load(problem, groups, saved)
        assert outcome(lambda: [list(o) for o in again.values()]) == want
        for at in (0, 9, 30, len(saved) // 2, len(saved) - 1):
            bad = bytearray(saved)
            bad[at] ^= 4
            with pytest.raises(t.Failed):
                t.Groups.load(problem, groups, bytes(bad))
        with pytest.raises(t.Failed):
            t.Groups.load(problem, groups, saved[:-8])
    assert seen > 3  # problems whose states additions combine


@pytest.mark.parametrize("op, also", [("sum", ["min"]), ("describe", []), ("mean", ["norm1", "max"])])
def test_forged_groups(op, also):
    """A word changed under a right hash: what is accepted is saved as it came, and its values agree about NaNs."""
    problem = t.Problem(op, "f64", also=also)
    groups = t.Groups(problem, 2)
    groups.feed(np.array([1.0, -2, 3, 4]), np.array([0, 1, 0, 1]))
    saved = groups.save()
    assert with_hash(saved) == saved
    accepted = 0
    for at in range(64, len(saved) - 8, 8):
        for word in (0, 1, 2):
            bad = with_hash(saved[:at] + word.to_bytes(8, "little") + saved[at + 8:])
            try:
                loaded = t.Groups.load(problem, 2, bad)
            except t.Failed as failed:
                assert failed.status == "EFORMAT"
                continue
            accepted += bad != saved
            assert loaded.save() == bad
            floats = [v.view(np.float64) for v, type in zip(loaded.values(), problem.types) if type == "f64"]
            assert len({tuple(np.isnan(v)) for v in floats}) == 1, (at, word, floats)
    assert accepted > 0


def make_state(problem):
    state = ctypes.c_void_p()
    t.check(t.lib.tally_state_create(ctypes.byref(problem.c), ctypes.byref(state)))
    return state


def test_states_added_to_groups():
    """A state that knows a group's elements gives what these give when they are fed, to whatever the group knows."""
    x = np.array([3.5, -1e300, 2.25, 1e300, 0.0, 7.0, np.nan, -0.0, 1e-300])
    ids, groups = np.array([0, 0, 0, 1, 1, 3, 3, 3, 3]), 4
    for problem in (t.Problem("sum", "f64"), t.Problem("var", "f64", also=["min", "count"]),
                    t.Problem("describe", "f64"), t.Problem("dot", "f64")):
        y = x[::-1].copy() if problem.two() else None
        once, twice, added = (t.Groups(problem, groups) for _ in range(3))
        once.feed(x, ids, y)
        twice.feed(x, ids, y)
        twice.feed(x, ids, y)
        for times, expected in ((1, once), (2, twice)):
            assert expected.counts().tolist() == (times * np.bincount(ids, minlength=groups)).tolist()
            for group in range(groups):
                at = np.flatnonzero(ids == group)
                mine = np.ascontiguousarray(x[at])
                other = None if y is None else np.ascontiguousarray(y[at])
                state = make_state(problem)
                t.check(t.lib.tally_state_feed(state, None, ctypes.c_void_p(mine.ctypes.data),
                                               ctypes.c_void_p(other.ctypes.data if at.size and y is not None else None),
                                               ctypes.c_size_t(at.size)))
                t.check(t.lib.tally_groups_add_state(added.handle, ctypes.c_size_t(group), state))
                t.lib.tally_state_destroy(state)
            assert added.save() == expected.save(), problem.op
    before = added.save()
    sums, products = t.Groups(t.Problem("sum", "f64"), 2), t.Groups(t.Problem("prod", "f64"), 2)
    one, other = make_state(t.Problem("sum", "f64")), make_state(t.Problem("prod", "f64"))
    for handle, group, state, said in ((sums.handle, 2, one, "none of 2"), (sums.handle, 0, other, "another problem"),
                                       (added.handle, 0, one, "another problem"), (None, 0, one, "NULL"),
                                       (sums.handle, 0, None, "NULL"), (products.handle, 0, other, "canonical tree")):
        with pytest.raises(t.Failed, match=said):
            t.check(t.lib.tally_groups_add_state(handle, ctypes.c_size_t(group), state))
    assert added.save() == before
    t.lib.tally_state_destroy(one)
    t.lib.tally_state_destroy(other)


def state_values(state, problem):
    """The values of a state, which is destroyed, as t.reduce() has them."""
    values = (t.Value * len(problem.types))()
    status = t.lib.tally_state_value(state, values)
    t.lib.tally_state_destroy(state)
    t.check(status)
    return [(t.TYPES[v.type - 1], v.bits & (1 << 8 * t.SIZE[t.TYPES[v.type - 1]]) - 1) if v.type else None for v in values]


def test_groups_that_grow():
    """Groups found on the way, whose indices count within them: each is the whole of its own elements, fed, merged, saved or
    taken out as a state."""
    rng = np.random.default_rng(SEED)
    x = np.round(rng.normal(size=4000) * 4)
    ids = np.minimum(rng.geometric(0.02, x.size), 300) - 1
    pieces = np.split(np.arange(x.size), np.sort(rng.integers(0, x.size, 6)))
    for op in ("sum", "argmin", "argmax", "var", "prod", "describe"):
        problem = t.Problem(op, "f64")
        grown, left, right = (t.Groups(problem, 0).index_within() for _ in range(3))
        for i, at in enumerate(pieces):
            count = max(grown.count, int(ids[at].max(initial=-1)) + 1)
            grown.grow(count)
            grown.feed(x[at], ids[at])
            grown = t.Groups.load(problem, count, grown.save())
            half = right if i > 3 else left
            half.grow(max(half.count, count))
            half.feed(x[at], ids[at])
        for group in range(grown.count):
            own = np.ascontiguousarray(x[ids == group])
            if not own.size and op in ("argmin", "argmax"):
                with pytest.raises(t.Failed, match="no elements"):
                    state_values(grown.state(group), problem)
                continue
            got = state_values(grown.state(group), problem)
            assert got == t.reduce(problem, own), (op, group)
            if op in ("argmin", "argmax"):
                keys = list(zip(own.tolist(), (~np.signbit(own)).tolist()))  # -0 lies below +0
                assert got[0][1] == keys.index((min if op == "argmin" else max)(keys))
        if op != "prod":
            left.grow(grown.count)
            left.merge(right)
            assert left.save() == grown.save(), op
    counted = t.Groups(t.Problem("argmin", "f64"), 2)
    counted.feed(x[:2], np.array([0, 1]))
    for wrong, said in ((lambda: grown.grow(1), "only added"), (lambda: counted.index_within(), "elements already"),
                        (lambda: counted.state(0), "within the group"), (lambda: grown.state(grown.count), "is none of"),
                        (lambda: counted.merge(t.Groups(counted.problem, 2).index_within()), "within each group")):
        with pytest.raises(t.Failed, match=said):
            wrong()


def test_copied_from_a_device():
    """Memory of the CPU's is the host's."""
    x, to = np.arange(5.0), np.zeros(5)
    t.check(t.lib.tally_resident_copy(None, ctypes.c_void_p(to.ctypes.data), ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(40)))
    assert (to == x).all()
    t.check(t.lib.tally_resident_copy(None, None, None, ctypes.c_size_t(0)))
    with pytest.raises(t.Failed, match="NULL"):
        t.check(t.lib.tally_resident_copy(None, None, ctypes.c_void_p(x.ctypes.data), ctypes.c_size_t(1)))


# ---- Wrong arguments -------------------------------------------------------------------------


def test_wrong_shapes():
    x = np.ones(12)
    problem = t.Problem("sum", "f64")

    def refused(shape, status="EINVAL", y=None):
        with pytest.raises(t.Failed) as failed:
            t.run(problem, shape, x, y, 4)
        assert failed.value.status == status
        assert all((o.view(np.uint8) == 0xA5).all() for o in failed.value.out)
        return failed.value.line

    length = np.array([3, 4], np.uint64)
    assert "no way to cut" in refused(t._Shape(cut=0))
    assert "17 dimensions" in refused(t._Shape(cut=1, dims=17, length=t.address(length)))
    assert "length is NULL" in refused(t._Shape(cut=1, dims=2))
    assert "axis 2" in refused(t._Shape(cut=1, dims=2, length=t.address(length), axes=4))
    huge = np.array([2**40, 2**40], np.uint64)
    assert "more than can be counted" in refused(t._Shape(cut=1, dims=2, length=t.address(huge), axes=2))
    assert "equal length" in refused(t._Shape(cut=2, n=12, count=5))
    refused(t._Shape(cut=2, n=12, count=1, offsets=t.address(length), offsets_type=12), "ETYPE")
    refused(t._Shape(cut=3, n=12, count=1, ids=t.address(length), ids_type=12), "ETYPE")
    assert "ids is NULL" in refused(t._Shape(cut=3, n=12, count=1))
    assert "second array" in refused(t._Shape(cut=2, n=12, count=4), y=x)
    with pytest.raises(t.Failed):
        t.run(problem, t._Shape(cut=2, n=12, count=4), None, None, 4)
