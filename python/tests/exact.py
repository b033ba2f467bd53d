"""The oracle: sums, means, variances and norms by Python's fractions, rounded once by integer arithmetic."""

import math
from fractions import Fraction

import numpy as np

DIGITS = {"float16": (11, -24, 15), "float32": (24, -149, 127), "float64": (53, -1074, 1023)}


def rounded(value, dtype):
    """A Fraction as the nearest float of a dtype, ties to even; as a NumPy number."""
    dtype = np.dtype(dtype)
    digits, lowest, highest = DIGITS[dtype.name]
    if value == 0:
        return dtype.type(0)
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = max(exponent - digits + 1, lowest)
    scaled = size / Fraction(2) ** unit
    whole = round(scaled)  # Python rounds ties to even
    result = math.inf if whole >= 2 ** digits and unit + digits > highest else None
    if result is None:
        number = Fraction(whole) * Fraction(2) ** unit
        result = math.inf if number >= Fraction(2) ** (highest + 1) else number.numerator / number.denominator
    return dtype.type(-result if value < 0 else result)


def root(value, dtype):
    """The root of a Fraction, rounded once: more digits than any tie needs, with a sticky one."""
    if value == 0:
        return np.dtype(dtype).type(0)
    shift = 600
    while True:
        scaled = value * 4 ** shift
        whole = math.isqrt(scaled.numerator // scaled.denominator)
        if whole.bit_length() > 200:
            break
        shift *= 2
    exact = Fraction(whole) ** 2 == scaled
    return rounded((Fraction(whole) + (0 if exact else Fraction(1, 2))) / Fraction(2) ** shift, dtype)


def fractions(x):
    return [Fraction(float(v)) if x.dtype.kind == "f" else Fraction(int(v)) for v in x.reshape(-1)]


def deviation(op, z, dtype, ddof, mean=None):
    """var or std of finite complex or real numbers from one number, or from their mean; None where it is a NaN."""
    pairs = list(zip(fractions(z.real.copy()), fractions(z.imag.copy())))
    n = len(pairs)
    if n <= ddof:
        return None
    centre = [sum(p) / n for p in zip(*pairs)] if mean is None else [Fraction(mean.real), Fraction(mean.imag)]
    squares = sum((a - centre[0]) ** 2 + (b - centre[1]) ** 2 for a, b in pairs) / (n - Fraction(ddof))
    return rounded(squares, dtype) if op == "var" else root(squares, dtype)


def answer(op, x, dtype, ddof=0):
    """What an operator of a finite array is, in a floating dtype; None where it is a NaN."""
    values = fractions(x)
    n = len(values)
    if op == "sum":
        return rounded(sum(values, Fraction(0)), dtype)
    if op == "sumsq":
        return rounded(sum((v * v for v in values), Fraction(0)), dtype)
    if op == "norm":
        return root(sum((v * v for v in values), Fraction(0)), dtype)
    if op == "mean":
        return rounded(sum(values, Fraction(0)) / n, dtype) if n else None
    if n <= ddof:
        return None
    ddof = Fraction(ddof)
    var = (n * sum((v * v for v in values), Fraction(0)) - sum(values, Fraction(0)) ** 2) / (n * (n - ddof))
    return rounded(var, dtype) if op == "var" else root(var, dtype)
