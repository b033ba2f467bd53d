"""Arrays along axes on the GPU devices, with a mask or with elements that lie apart, of enough elements for a filled copy
(src/gpu/filled.h): every result has the bits that the calling thread gives. TALLY_SEED gives other random shapes."""

import random

import numpy as np
import pytest

import shapes as t
from drawn import is_double, types_on
from test_shapes import KINDS, SEED, device, elements, is_slow, same  # noqa: F401 (device is a fixture)

# Problems whose masked elements a neutral one may stand for, and others.
PROBLEMS = [("sum", {}), ("sum", {"fast": 1}), ("mean", {}), ("var", {"ddof": 1}), ("std", {"ddof": 0.5}), ("var", {"ddof": 7}),
            ("norm1", {}), ("norm2", {}), ("sumsq", {}), ("min", {}), ("max", {}), ("argmin", {}), ("argmax", {}),
            ("minmax", {}), ("nonzero", {}), ("mean", {"also": ["var", "sumsq"]}), ("or", {}), ("prod", {})]
# Rows, columns, both, several axes of each; over which axes.
SHAPES = [((1100,), [0]), ((400, 3), [1]), ((64, 17), [1]), ((9, 130), [1]), ((2, 700), [1]), ((700, 2), [0]), ((4, 300), [0]),
          ((33, 65), [0]), ((130, 16), [0]), ((5, 40, 12), [1]), ((6, 20, 11), [0, 2]), ((7, 5, 6, 8), [1, 3]), ((12, 9, 13), [2, 0])]
UNITS = 24 # a CUDA device's arrays are so many times as long


def lay(x, rng):
    """The same elements, elsewhere: turned, reversed, apart, or with an axis that is one element again and again."""
    way = rng.integers(8)
    if way == 1:
        return np.asfortranarray(x)
    if way == 2:
        return np.ascontiguousarray(x[::-1])[::-1]
    if way == 3:
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if way == 4:
        return np.broadcast_to(x[..., :1], x.shape)
    if way == 5:
        return np.concatenate([x.ravel()[:1], x.ravel()])[1:].reshape(x.shape)
    if way == 6: # rows with something between them, of which there is less or more than of themselves
        padded = rng.integers(0, 256, x.shape[:-1] + (x.shape[-1] * rng.integers(2, 4) + 3,)).astype(x.dtype)
        padded[..., 1:1 + x.shape[-1]] = x
        return padded[..., 1:1 + x.shape[-1]]
    if way == 7:
        wide = np.concatenate([x, x[..., :1]], axis=-1)
        return wide[..., :-1]
    return x


def mask_of(shape, axes, rng):
    """Random bytes; of some rows none, of some all; or the same for a whole axis."""
    mask = (rng.random(shape) < rng.choice([0.02, 0.5, 0.9])).astype(np.uint8) * rng.integers(1, 255, shape, dtype=np.uint8)
    kept = [d for d in range(len(shape)) if d not in axes]
    if kept:
        rows = np.moveaxis(mask, kept, range(len(kept)))
        rows[rng.random(rows.shape[:len(kept)]) < 0.2] = 0
        rows[rng.random(rows.shape[:len(kept)]) < 0.1] = 1
    if rng.random() < 0.3:
        mask = np.broadcast_to(mask[:1], shape)
    return lay(mask, rng)


@pytest.mark.parametrize("type", t.TYPES)
def test_filled_axes(type, device):
    if type not in types_on(device.spec):
        pytest.skip("other types are drawn for this device")
    rng, py = np.random.default_rng([SEED, 1]), random.Random(f"{SEED} {type}")
    lowest = np.iinfo(t.DTYPE[type]).min if type in t.INTS else None
    problems = [p for p in PROBLEMS if not (p[1].get("fast") and type in t.INTS)]
    cases = py.sample([(p, s) for p in problems for s in SHAPES], 12 if is_slow(device) else 40)
    for (op, more), (shape, axes) in cases:
        if device.spec.startswith("cuda") and not is_double(): # a real one has more processors
            shape = (shape[0] * UNITS,) + shape[1:]
        kind = py.choice(KINDS)
        if more.get("fast"): # exact all the same, but for a zero's sign
            kind = "small"
        x = elements(type, shape, rng, kind)
        if rng.random() < 0.3 and not more.get("fast"): # rows of nothing but the least element
            if lowest is None:
                x = elements(type, shape, rng, "zeros") if rng.random() < 0.5 else t_infinite(type, x)
            else:
                x = np.full_like(x, py.choice([lowest, np.iinfo(t.DTYPE[type]).max, 0]))
        x, mask = lay(x, rng), mask_of(shape, axes, rng) if rng.random() < 0.7 else None
        problem = t.Problem(op, type, **more)
        same(lambda d: t.reduce_axes(problem, x, axes, None, mask, d), device,
             f"{op} {more} of {kind} {type} {shape} {x.strides} over {axes}, mask {mask is not None and mask.strides}")


def t_infinite(type, x):
    """Infinities of either sign, more of one."""
    bits = np.zeros(x.shape, t.BITS[t.SIZE[type]])
    infinity = {"f16": 0x7c00, "bf16": 0x7f80, "f32": 0x7f800000, "f64": 0x7ff0000000000000}[type]
    bits[...] = infinity
    bits.ravel()[3::5] |= np.array(1, bits.dtype) << np.array(8 * t.SIZE[type] - 1, bits.dtype)
    return bits.view(t.DTYPE[type])


@pytest.mark.parametrize("shape, axis", [((500, 3), 1), ((12, 130), 1), ((600, 8), 0), ((130, 16), 0)])
def test_neutral_elements(shape, axis, device):
    """What stands for a hidden element changes nothing: neither the sign of a zero, nor an infinity that is the greatest or
    the least, nor how many there are, whatever byte it is that lets one pass."""
    rng = np.random.default_rng([SEED, 2])
    if device.spec.startswith("cuda") and not is_double():
        shape = (shape[0] * UNITS,) + shape[1:]
    mask = rng.integers(1, 256, shape, dtype=np.uint8) * (rng.random(shape) < 0.75)
    for op, x in [("sum", np.full(shape, -0.0)), ("mean", np.full(shape, -0.0)), ("mean", rng.standard_normal(shape)),
                  ("max", np.full(shape, -np.inf)), ("min", np.full(shape, np.inf)),
                  ("max", np.full(shape, np.finfo(np.float32).min)), ("min", np.full(shape, np.finfo(np.float32).max))]:
        same(lambda d: t.reduce_axes(t.Problem(op, "f32"), x.astype(np.float32), [axis], None, mask.astype(np.uint8), d), device,
             f"{op} of {x.ravel()[0]} and so on, {shape} over {axis}")


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_rows_apart(type, device):
    """Rows of several axes, with something between them, cut where there are few of them."""
    rng = np.random.default_rng([SEED, 3])
    for shape, order in [((3, 700), (0, 1)), ((2, 1500), (0, 1)), ((6, 7, 40), (0, 1, 2)), ((6, 7, 40), (1, 0, 2)), ((900, 16), (0, 1))]:
        if device.spec.startswith("cuda") and not is_double():
            shape = (shape[0],) + tuple(UNITS * n for n in shape[1:2]) + shape[2:]
        wide = elements(type, tuple(n + 5 for n in shape[:-1]) + (shape[-1] + 7,), rng, "tame")
        x = np.transpose(wide[tuple(slice(1, n + 1) for n in shape)], order)
        for op in ["sum", "argmax", "min", "var"]:
            same(lambda d: t.reduce_axes(t.Problem(op, type), x, [x.ndim - 1], None, None, d), device,
                 f"{op} of {type} {shape} {x.strides}")
