"""Variances that the engine has no operator for: of complex numbers, and about a mean that is given.

The exact sums and sums of squares are those of a state, read from its words; what is made of them is made of Python's
integers, and rounded once. A result at a time: this is for few results of many elements.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Sequence

import numpy as np

from . import _core
from ._arrays import DTYPE, FLOATS
from ._arguments import problem
from ._host import BLOCK, chunks, indices, rows_of

_SUM_LIMBS = {True: 68, False: 4}  # of floats, of integers
_SUM_UNIT = {True: 1088, False: 0}  # a sum's lowest bit weighs 2^-unit, that of squares 2^-(2 unit)
_SPECIAL = 4  # words before the limbs; the first three count NaNs and infinities


def _limbs(words: np.ndarray[Any, np.dtype[np.int64]]) -> int:
    """The integer of limbs of 32 bits, the last of which has its sign."""
    low = int.from_bytes(words[:-1].astype("<u4").tobytes(), "little")
    return low + (int(words[-1]) << 32 * (words.size - 1))


def _moments(words: bytes, floating: bool) -> tuple[int, int, int] | None:
    """How many elements there are, their sum and the sum of their squares in units; None where not all are finite."""
    w = np.frombuffer(words, np.int64)
    squares = 1 + _SPECIAL + _SUM_LIMBS[floating]
    if w[1:4].any():
        return None
    return int(w[0]), _limbs(w[1 + _SPECIAL:squares]), _limbs(w[squares + _SPECIAL:])


def _root(value: Fraction) -> Fraction:
    """A number that rounds as the root of `value` does: 64 of its bits or more, and a last one that says whether more
    would follow."""
    shift = 66 + max(0, (value.denominator.bit_length() - value.numerator.bit_length()) // 2 + 1)
    whole, rest = divmod(value.numerator << 2 * shift, value.denominator)
    root = math.isqrt(whole)
    return Fraction(2 * root + (rest != 0 or root * root != whole), 1 << (shift + 1))


def _nearest(value: Fraction, kind: str) -> float:
    """A number that is not negative, rounded to a floating type, once."""
    try:
        if kind == "f64":
            return value.numerator / value.denominator  # Python rounds quotients of integers to nearest even
        # 53 bits with a last one that says whether more would follow: rounded once more, that is the nearest.
        shift = 53 - value.numerator.bit_length() + value.denominator.bit_length()
        scaled = value * Fraction(2) ** shift
        whole = scaled.numerator // scaled.denominator
        drop = max(0, whole.bit_length() - 53)
        odd = (whole >> drop) | (whole & ((1 << drop) - 1) != 0) | (whole != scaled)
        with np.errstate(over="ignore", under="ignore"):
            return float(DTYPE[kind].type(math.ldexp(odd, drop - shift)))
    except OverflowError:
        return math.inf


def _variance(parts: Sequence[tuple[int, int, int] | None], ddof: float, mean: complex | int | None, floating: bool) -> Fraction | None:
    """The exact variance of numbers whose parts have those moments; None where there is none."""
    if any(p is None for p in parts) or (mean is not None and not (math.isfinite(mean.real) and math.isfinite(mean.imag))):
        return None
    n = parts[0][0] if parts[0] is not None else 0
    if n <= ddof:
        return None
    unit = Fraction(1, 1 << _SUM_UNIT[floating])
    total = Fraction(0)
    about = (None, None) if mean is None else (Fraction(mean.real), Fraction(mean.imag))
    for moments, m in zip(parts, about):
        assert moments is not None
        s, q = moments[1] * unit, moments[2] * unit * unit
        total += q - s * s / n if m is None else q - 2 * m * s + n * m * m
    if len(parts) == 1 and mean is not None:
        total += n * Fraction(mean.imag) ** 2
    return total / (n - Fraction(ddof))


def variances(parts: Sequence[np.ndarray[Any, Any]], kind: str, axes: tuple[int, ...], *, root: bool, out: str,
              mask: np.ndarray[Any, Any] | None, ddof: float, mean: np.ndarray[Any, Any] | None,
              device: str | None) -> np.ndarray[Any, Any]:
    """The variances, or their roots, of numbers of one or two parts along axes, which stay with length 1. `mean`: an
    array of that shape."""
    shape = tuple(1 if d in axes else n for d, n in enumerate(parts[0].shape))
    rows = [rows_of(p, axes) for p in parts]
    masks = None if mask is None else rows_of(mask, axes)
    floating, dtype = kind in FLOATS, DTYPE[kind]
    p = problem(("var",), kind)  # (the state's; each result has its own divisor)
    values = np.empty(rows[0].shape[:parts[0].ndim - len(axes)], DTYPE[out])
    means = None if mean is None else mean.reshape(values.shape)
    for at in indices(values.shape):
        moments = []
        for row in rows:
            state = _core.State(p)
            for cut in chunks(row[at], BLOCK // dtype.itemsize):
                piece = row[at][cut]
                if masks is not None:
                    piece = piece[masks[at][cut]]
                state.feed(np.ascontiguousarray(piece, dtype), None, device)
            moments.append(_moments(state.words(), floating))
        value = _variance(moments, ddof, None if means is None else means[at].item(), floating)
        if value is None:
            values[at] = math.nan
        else:
            values[at] = _nearest(_root(value) if root else value, out)
    return values.reshape(shape)
