"""Oracles of reductions in parts: NumPy says which elements belong together, integers and fractions what they come to."""

from fractions import Fraction

import exact
import numpy as np

OPS = exact.OPS + ["mean", "var", "argmin", "argmax", "count", "nonzero", "any", "sumsq"]


def out_type(op, name):
    if op in ("argmin", "argmax", "count", "nonzero"):
        return "u64"
    if op in ("any", "all"):
        return "u8"
    if op in ("mean", "var"):
        return name if name in exact.FLOATS else "f64"
    if op == "sumsq":
        return exact.result_type("sum", name)
    return exact.result_type(op, name)


def dtype(op, name):
    return exact.dtype(out_type(op, name))


def one(op, name, x, index=None):
    """The bits of one result; index: where the elements stand, which count from 0 without it."""
    index = np.arange(x.size) if index is None else index
    v = [exact.value(name, b) for b in exact.bits(x)]
    kind = out_type(op, name)
    if op == "count":
        return len(v)
    if op in ("nonzero", "any"):
        nonzero = sum(e != 0 for e in v)
        return nonzero if op == "nonzero" else int(nonzero > 0)
    if op in ("argmin", "argmax"):
        return int(index[v.index((min if op == "argmin" else max)(v))])
    if op in ("mean", "var") and not v:
        return exact.NAN[kind]
    if op in ("mean", "var", "sumsq"):
        total, squares = sum(v, Fraction(0)), sum((e * e for e in v), Fraction(0))
        if op == "sumsq" and kind in exact.INTEGERS:
            return int(squares)
        value = squares if op == "sumsq" else total / len(v) if op == "mean" else \
            (len(v) * squares - total * total) / len(v) ** 2
        return exact.rounded(kind, value)
    if not v:
        return empty(op, name)
    return exact.reduce(op, name, x)


def empty(op, name):
    """The identity."""
    kind = exact.result_type(op, name)
    mask = (1 << 8 * exact.BYTES[kind]) - 1
    if op in ("sum", "or", "xor"):
        return 0
    if op == "and":
        return mask
    if op == "prod":
        return 1 if kind in exact.INTEGERS else exact.rounded(kind, Fraction(1))
    if name in exact.FLOATS:
        return exact.rounded(name, Fraction(2) ** 2000 * (1 if op == "min" else -1))
    info = np.iinfo(exact.dtype(name))
    return (info.max if op == "min" else info.min) & mask


def sample(op, name, n, rng):
    """Elements whose integer results fit, and whose products are exact; many are equal."""
    if op == "prod":
        return exact.factors(name, max(n, 13), int(rng.integers(1 << 30)))[:n]
    x = exact.sample(name, n, int(rng.integers(1 << 30)))
    if op == "sumsq" and name in exact.INTEGERS:
        x = x % 100
    if n and rng.random() < 0.5:
        x = rng.choice(x[: 1 + n // 8], n)
    return x


def axes(op, name, x, axis, mask=None, y=None):
    """The results along axes, as bits in C order of the dimensions that are kept."""
    axis = sorted(a % x.ndim for a in axis)
    kept = [d for d in range(x.ndim) if d not in axis]
    each = int(np.prod([x.shape[d] for d in axis], dtype=int))
    turned = x.transpose(kept + axis).reshape(-1, each)
    masks = None if mask is None else mask.transpose(kept + axis).reshape(-1, each)
    return [one(op, name, row if mask is None else row[masks[i] != 0],
                None if mask is None else np.flatnonzero(masks[i])) for i, row in enumerate(turned)]


def segments(op, name, x, offsets, mask=None):
    found = []
    for a, b in zip(offsets[:-1], offsets[1:]):
        keep = slice(None) if mask is None else mask[a:b] != 0
        found.append(one(op, name, x[a:b][keep], np.arange(b - a)[keep]))
    return found


def groups(op, name, x, ids, count, mask=None):
    found = []
    for i in range(count):
        places = np.flatnonzero((ids == i) & (True if mask is None else mask != 0))
        found.append(one(op, name, x[places], places) if places.size or not op.startswith("arg") else None)
    return found


def bits_of(array):
    """A file of results as bits, in C order."""
    if array.dtype.kind == "V":
        array = array.view("u2")
    return exact.bits(array)
