"""The right answers, from Python's integers and fractions and from NumPy alone."""

from fractions import Fraction

import numpy as np

INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
TYPES = INTEGERS + FLOATS
OPS = ["sum", "prod", "min", "max", "and", "or", "xor"]
BYTES = {t: int(t.lstrip("iubf")) // 8 for t in TYPES}
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127),
           "f64": (53, -1022, 1023)}  # precision, smallest and largest normal exponent


NAN = {"f16": 0x7E00, "bf16": 0x7FC0, "f32": 0x7FC00000, "f64": 0x7FF8000000000000}


def dtype(name, order="<"):
    """NumPy's name of a type; bf16, which it does not have, as the 16 bits it is."""
    code = {"i": "i", "u": "u", "b": "u", "f": "f"}[name[0]]
    return np.dtype(f"{order}{code}{BYTES[name]}")


def bits(array):
    """The elements' bits as Python integers."""
    a = np.ascontiguousarray(array).ravel()
    a = a.astype(a.dtype.newbyteorder("="))
    return a.view(f"u{a.dtype.itemsize}").tolist()


def value(name, b):
    """The number that bits b of a type stand for: a Fraction, or None for a NaN or an infinity."""
    width = 8 * BYTES[name]
    if name[0] == "u":
        return Fraction(b)
    if name[0] == "i":
        return Fraction(b - (1 << width) if b >> (width - 1) else b)
    precision, low, high = FORMATS[name]
    sign = -1 if b >> (width - 1) else 1
    exponent = (b >> (precision - 1)) & ((1 << (width - precision)) - 1)
    fraction = b & ((1 << (precision - 1)) - 1)
    if exponent == (1 << (width - precision)) - 1:
        return None
    if exponent:
        fraction |= 1 << (precision - 1)
    return sign * Fraction(fraction) * Fraction(2) ** (max(exponent, 1) - 1 + low - precision + 1)


def rounded(name, x, negative_zero=False):
    """The bits of the float of a type that is nearest to the Fraction x, ties to even."""
    width = 8 * BYTES[name]
    precision, low, high = FORMATS[name]
    sign = (x < 0 or (x == 0 and negative_zero)) << (width - 1)
    x = abs(x)
    e = low
    while e <= high and x >= Fraction(2) ** (e + 1):
        e += 1
    units = x / Fraction(2) ** (e - precision + 1)
    b = ((e - low) << (precision - 1)) + round(units)  # Python rounds ties to even
    return sign | min(b, ((1 << (width - precision)) - 1) << (precision - 1))


def result_type(op, name):
    if op in ("sum", "prod") and name in INTEGERS:
        return name[0] + "64"
    return name


def reduce(op, name, array):
    """The bits of the exact result; products of floats must be free of rounding."""
    b = bits(array)
    kind = result_type(op, name)
    mask = (1 << 8 * BYTES[kind]) - 1
    if op in ("and", "or", "xor"):
        r = mask if op == "and" else 0
        for x in b:
            r = {"and": r & x, "or": r | x, "xor": r ^ x}[op]
        return r
    if op in ("min", "max"):
        return (min if op == "min" else max)(b, key=lambda x: value(name, x))
    r = Fraction(op == "prod")
    for x in b:
        r = r * value(name, x) if op == "prod" else r + value(name, x)
    return int(r) & mask if kind in INTEGERS else rounded(kind, r)


def parse(name, text):
    """The bits that a printed number reads back to."""
    if text == "nan":
        return NAN[name]
    if text in ("inf", "-inf"):
        return rounded(name, Fraction(text.replace("inf", "1")) * 2**2000)
    if name in INTEGERS:
        return int(text) & ((1 << 8 * BYTES[name]) - 1)
    return rounded(name, Fraction(text), text.startswith("-"))


def sample(name, n, seed=1):
    """n elements, finite, of every size that keeps a sum within 64 bits; bf16 as its bits."""
    rng = np.random.default_rng(seed)
    if name in INTEGERS:
        info = np.iinfo(dtype(name))
        return rng.integers(max(info.min, -(2**50)), min(info.max, 2**50), n, dtype(name).newbyteorder("="),
                            endpoint=True)
    x = rng.normal(size=n) * np.exp2(rng.uniform(-6, 6, n))
    if name == "bf16":
        return (x.astype("f4").view("u4") >> 16).astype("u2")
    return x.astype(dtype(name))


def factors(name, n, seed=1):
    """n elements whose product is exact in any order: of either sign, few of them not 1."""
    rng = np.random.default_rng(seed)
    if name in INTEGERS:
        return rng.choice([1] if name[0] == "u" else [-1, 1], n).astype(dtype(name))
    x = np.ones(n)
    x[:13] = [2.0] * 7 + [0.5] * 6
    x = rng.permutation(x) * rng.choice([-1, 1], n)
    if name == "bf16":
        return (x.astype("f4").view("u4") >> 16).astype("u2")
    return x.astype(dtype(name))
