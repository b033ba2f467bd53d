"""Sums of floats along an axis that two doubles do not hold: by rows and by columns of every kernel, against the oracle. A warp
adds those of short floats again (src/kernels/schedule/lost_sums.h). Also sums that two doubles do hold, though all large terms
cancel. TALLY_SEED gives other data."""

import numpy as np
import pytest

import data
import oracle
import shapes as t
from test_shapes import SEED, elements_of, opened

SPECS = ["model", "cuda:0"]
TYPES = {"f32": (-149, 128, 23), "bf16": (-133, 128, 7), "f64": (-1074, 1024, 52)}  # the least and the greatest exponent, bits of the mantissa
KINDS = ["far", "nothing", "one unit", "one unit less", "largest", "infinite", "both infinities", "nan", "least"] + 4 * ["undone"]
#: Lines of these lengths: of few_rows and `few`, of the stage by lanes and by teams, of blocks, of warps, and of chunks.
LENGTHS = [3, 8, 37, 130, 1000, 3000]


@pytest.fixture(params=SPECS)
def device(request):
    return opened(request.param)


def line(kind, type, n, rng):
    """A row or a column, whose exponents are further apart than two doubles reach."""
    low, high, mantissa = TYPES[type]
    largest = (2.0 - 2.0 ** -mantissa) * 2.0 ** (high - 1)
    x = rng.choice([-1.0, 1.0], n) * 2.0 ** rng.integers(low, high - 20, n)
    if kind == "least":
        x = rng.choice([-1.0, 1.0], n) * 2.0 ** low
        x[0], x[-1] = largest, -largest
        return x
    if kind == "undone":
        return data.undone(rng, n, low, high - 1)
    if kind == "largest":
        x[:] = rng.choice([-largest, largest])
        x[-1] = 2.0 ** low
        return x
    if kind in ("nothing", "one unit", "one unit less"):
        half = n // 2
        x[half:2 * half] = -x[:half]
        x[2 * half:] = 0 if kind == "nothing" else 2.0 ** low
        if kind != "nothing" and n % 2 == 0:
            x[0], x[half] = 2.0 ** low, 0
        x = x if kind == "one unit" else -x
    elif kind != "far":
        x[rng.integers(n)] = np.nan if kind == "nan" else -np.inf
        if kind == "both infinities":
            x[rng.integers(n)] = np.inf
    return rng.permutation(x)


def check(op, type, x, axis, out, device):
    """Holds the lines along an axis against the oracle."""
    got, = t.reduce_axes(t.Problem(op, type, out=out), x, [axis], device=device)
    for i, bits in enumerate(got):
        raw = np.ascontiguousarray(x[:, i] if axis == 0 else x[i]).view(t.BITS[x.itemsize])
        want = oracle.statistic(op, type, raw, out=out)
        assert want == (out or type, int(bits)), f"{op} of line {i} along axis {axis} of {x.shape} {type}"


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("op", ["sum", "mean", "norm1"])
def test_rows_and_columns(op, type, device):
    rng = np.random.default_rng([SEED, 13, ["sum", "mean", "norm1"].index(op), list(TYPES).index(type)])
    for n in LENGTHS:
        lines = np.array([line(kind, type, n, rng) for kind in KINDS for _ in range(1 + (n < 100))])
        x = elements_of(type, rng.permutation(lines))
        check(op, type, x, 1, None, device)
        check(op, type, np.ascontiguousarray(x.T), 0, None, device)
        apart = np.zeros((len(x), n + 3), x.dtype)[:, 1:n + 1]  # rows with gaps
        apart[:] = x
        check(op, type, apart, 1, None, device)
    check(op, type, np.ascontiguousarray(x.T), 0, "f64" if op != "norm1" else None, device)


def test_a_long_row(device):
    """As many of the largest float as a row may have."""
    x = np.full((1, 1 << 16), np.finfo(np.float32).max, np.float32)
    x[0, 7] = 1e-45
    for sign in (1, -1):
        check("sum", "f32", sign * x, 1, None, device)
        check("mean", "f32", sign * x, 1, None, device)
