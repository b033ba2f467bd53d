"""Sums, means and norms of short floats without doubles (src/kernels/state/float_chains.h, float_sum.h, chains.h): the bits that
the calling thread has, whose own tests hold it against oracles. A device adds up in floats if its doubles are slow, or are said to
be (doubles=slow). Squares of 16-bit floats in columns go so everywhere, but for a norm alone. The data are at the limits of what
fits: exponents as far apart as chains reach and one further, windows that elements outgrow, sums that cancel, zeros of both signs,
specials. TALLY_SEED gives others."""

import random

import numpy as np
import pytest

import oracle
import shapes as t
import tally
from test_shapes import SEED, elements_of, opened, same

SPECS = ["model", "model:doubles=slow", "cuda:0", "cuda:0,doubles=slow"]
KINDS = ["normal", "integers", "zeros", "minus zeros", "spread", "far", "growing", "cancelling", "largest", "least", "special", "steps", "leaps"]
OPS = ["sum", "mean", "norm1", "norm2", "sumsq"]
TYPES = ["f16", "bf16", "f32"]
LONGEST = {"model": 1500, "cuda": 20000}
EXPONENTS = {"f16": (-14, 15), "bf16": (-126, 127), "f32": (-126, 127)}  # of normal numbers


@pytest.fixture(params=SPECS)
def device(request):
    return opened(request.param)


def drawn(kind, type, shape, rng):
    """Elements of an array whose first dimension is added up, or its last: both get the kind's order."""
    low, high = EXPONENTS[type]
    x = rng.standard_normal(shape)
    if kind == "integers":
        x = rng.integers(-3, 4, shape).astype(float)
    elif kind == "zeros":
        x = np.where(rng.random(shape) < 0.5, 0.0, -0.0)
    elif kind == "minus zeros":
        x = np.full(shape, -0.0)
    elif kind == "spread":  # about as far apart as chains and floats reach
        x = x * 2.0 ** rng.integers(-rng.integers(8, 32), 1, shape)
    elif kind == "far":
        x = x * 2.0 ** rng.integers(low // 2, high // 2, shape)
    elif kind == "growing":
        x = x * 2.0 ** np.linspace(-8, 8, shape[0]).reshape(-1, 1) * 2.0 ** np.linspace(-3, 3, shape[1])
    elif kind == "cancelling":  # what is left shows a bit that was lost anywhere
        x = x * 2.0 ** rng.integers(-rng.integers(4, 70), 1, shape)
        half = shape[0] // 2
        x[half:2 * half] = -x[:half]
        x = rng.permuted(x, axis=0)
    elif kind == "steps":  # windows that change, and sums of earlier ones that go in the end
        third = shape[0] // 3
        x[:third] *= 2.0 ** (high // 3)
        x[-third:] = -x[:third]
    elif kind == "leaps":  # a few count, behind others that do not
        x = np.where(rng.random(shape) < 0.02, x * 2.0 ** 11, x)
    elif kind == "largest":
        x = x * 2.0 ** (high - 2)
    elif kind == "least":
        x = x * 2.0 ** (low - 4)
    elif kind == "special":
        x = np.where(rng.random(shape) < 0.002, rng.choice([np.inf, -np.inf, np.nan], shape), x)
    with np.errstate(over="ignore"):
        return elements_of(type, x)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_rows_and_columns(op, type, device):
    rng, py = np.random.default_rng([SEED, OPS.index(op), TYPES.index(type)]), random.Random(f"{SEED} {op} {type}")
    longest = LONGEST[device.spec[:4] if device.spec.startswith("cuda") else "model"]
    problem = t.Problem(op, type)
    for kind in KINDS:
        for few in (1, 3, 4, 8, 37):
            shape = (py.choice([3, 9, 70, longest // 3, longest]), few)
            x = drawn(kind, type, shape, rng)
            same(lambda d: t.reduce_axes(problem, x, [0], device=d), device, f"{op} of {kind} {type} {shape} over 0")
            y = np.ascontiguousarray(x.T)
            same(lambda d: t.reduce_axes(problem, y, [1], device=d), device, f"{op} of {kind} {type} {y.shape} over 1")


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_long_rows(op, type, device):
    """Rows of which a lane has several times what it loads at once."""
    rng = np.random.default_rng([SEED, 11, OPS.index(op), TYPES.index(type)])
    problem = t.Problem(op, type)
    for kind in KINDS:
        for length in (4096, 9001):
            y = np.ascontiguousarray(drawn(kind, type, (length, 5), rng).T)
            same(lambda d: t.reduce_axes(problem, y, [1], device=d), device, f"{op} of {kind} {type} {y.shape} over 1")


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_segments_and_groups(op, type, device):
    rng = np.random.default_rng([SEED, 7, OPS.index(op), TYPES.index(type)])
    n = LONGEST[device.spec[:4] if device.spec.startswith("cuda") else "model"]
    problem = t.Problem(op, type)
    for kind in KINDS:
        x = drawn(kind, type, (n, 8), rng)
        cuts = np.sort(np.r_[0, rng.integers(0, n, 9), n])
        ids = rng.integers(0, 10, n)
        for shape in (t.segments_shape(n, cuts), t.groups_shape(n, ids.astype(np.int32), 10)):
            count = 8 * (len(cuts) - 1)
            same(lambda d: t.run(problem, t.along(x, 0, shape), x, None, count, d), device, f"{op} of vectors of {kind} {type}")
        flat = np.ascontiguousarray(x[:, 0])
        same(lambda d: t.reduce_segments(problem, flat, cuts, device=d), device, f"{op} of segments of {kind} {type}")


# Whole arrays' squares, against the oracle: a GPU's blocks, and blocks of a thread.
WHOLE_SPECS = ["model:doubles=slow", "opencl:0,doubles=slow", "opencl:0,block=64,doubles=slow", "cuda:0,doubles=slow"]
WHOLE_KINDS = ["normal", "zeros", "spread", "far", "growing", "largest", "least", "special", "reach", "steps", "overflowing",
               "underflowing", "subnormal", "one large", "alternating", "equal", "all bits"]
LENGTHS = [0, 1, 2, 3, 4, 5, 8, 9, 31, 33, 255, 1023, 1025, 4095, 4097, 8191, 8193]


def whole(kind, type, n, rng):
    """Elements of a whole array, in the order in which its kind has them."""
    low, high = EXPONENTS[type]
    x, at = rng.standard_normal(n), np.arange(n)
    if kind in ("reach", "steps"):  # exponents as far below the greatest as chains reach, a little less or more
        top = int(rng.integers(low - 10, high))
        down = int(rng.integers(8, 30))
        x = rng.choice([-1, 1], n) * (1 + rng.random(n)) * 2.0 ** (top - (at % (down + 1) if kind == "steps" else
                                                                          np.where(rng.random(n) < 0.01, down, 0)))
    elif kind == "overflowing":  # as floats, squares would
        x = x * 2.0 ** (high - rng.integers(0, high // 2 + 4, n))
    elif kind == "underflowing":
        x = x * 2.0 ** (low + rng.integers(-12, -low // 2 + 12, n))
    elif kind == "subnormal":  # beside numbers whose windows they fit, or just do not
        top, least = low + int(rng.integers(0, 26)), low - {"f16": 10, "bf16": 7, "f32": 23}[type]
        tiny = rng.integers(1, 1 << int(rng.integers(1, 8)), n) * 2.0 ** least
        x = np.where(rng.random(n) < 0.5, (1 + rng.random(n)) * 2.0 ** top, tiny)
    elif kind == "one large":
        x = x * 2.0 ** (low // 2)
        x[n // 2:n // 2 + 1] = 2.0 ** high
    elif kind == "alternating":  # tiles of two kinds
        x = x * np.where(at // 500 % 2, 2.0 ** (high // 2), 2.0 ** (low // 2))
    elif kind == "equal":  # whose rests add up
        x = np.repeat(x, 300)[:n]
    elif kind == "all bits":
        bits = 8 * t.SIZE[type]
        return rng.integers(0, 1 << bits, n, dtype=np.uint64).astype(t.BITS[bits // 8]).view(t.DTYPE[type])
    else:
        return np.ascontiguousarray(drawn(kind, type, (n, 1), rng)[:, 0])
    with np.errstate(over="ignore"):
        return elements_of(type, x)


def is_right(op, type, out, x, device, what):
    raw = x.view(t.BITS[x.itemsize])
    want = oracle.statistic(op, type, raw, out=out)
    assert t.reduce(t.Problem(op, type, out=out), x, device=device) == [want], what


def has_all_bits(type, x, device, what):
    """Holds a state, which no rounding hides anything of, against the calling thread's."""
    own, other, here = x.view(tally.DTYPE[type]), tally.State("sumsq", type), tally.Device(None)
    here.handle = device
    state = tally.State("sumsq", type).feed(own, device=here).feed(own[:5]).feed(own[3:], device=here)
    assert state.save() == other.feed(own).feed(own[:5]).feed(own[3:]).save(), what


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("spec", WHOLE_SPECS)
def test_squares_of_whole_arrays(spec, type):
    device = opened(spec)
    rng = np.random.default_rng([SEED, 11, TYPES.index(type)])
    for kind in WHOLE_KINDS:
        for n in LENGTHS if kind in ("normal", "far") else rng.choice(LENGTHS[4:], 6):
            x = whole(kind, type, int(n), rng)
            for op, out in (("sumsq", "f64"), ("norm2", type)):
                is_right(op, type, out, x, device, f"{op} of {n} {kind} {type}")
            has_all_bits(type, x, device, f"a state of {n} {kind} {type}")
    for n in (20000, 70001):  # several blocks, of which each has several tiles
        for kind in ("normal", "reach", "subnormal", "equal", "alternating", "overflowing", "underflowing", "growing"):
            x = whole(kind, type, n, rng)[int(rng.integers(0, 9)):]
            is_right("sumsq", type, "f64", x, device, f"sumsq of {x.size} {kind} {type}")
            has_all_bits(type, x, device, f"a state of {x.size} {kind} {type}")


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("spec", [spec for spec in WHOLE_SPECS if "block" not in spec])
def test_groups_in_any_order(spec, op, type):
    """Few groups, which a block keeps in digits of 16 bits or of 32, and many; norms are sorted first, which takes the model long."""
    device = opened(spec)
    rng = np.random.default_rng([SEED, 12, OPS.index(op), TYPES.index(type)])
    is_sorted, few = op.startswith(("norm", "sumsq")), spec.startswith("opencl")
    for kind in rng.choice(WHOLE_KINDS, 2 if is_sorted else 3 if few else 8, replace=False):
        groups = int(rng.choice([3, 40] if is_sorted else [1, 3, 40, 5000, 30000]))
        n = int(rng.choice([400] if is_sorted else [0 if groups < 99 else 2, 1, 700, 3000]))  # none at all are reduced as rows
        x, ids = whole(kind, type, n, rng), rng.integers(0, groups, n).astype(np.int32)
        for problem in (t.Problem(op, type), t.Problem(op, type, out="f64")):
            what = f"{op} of {n} {kind} {type} by {groups} ids"
            same(lambda d: t.reduce_groups(problem, x, ids, groups, device=d), device, what)
            got = t.reduce_groups(problem, x, ids, groups, device=device)[0]
            for group in rng.choice(groups, min(groups, 4), replace=False):
                own = x[ids == group].view(t.BITS[x.itemsize])
                want = oracle.statistic(op, type, own, out=problem.types[0])
                assert (problem.types[0], int(got.view(t.BITS[got.itemsize])[group])) == want, what
