"""Number formats and the one rounding, by Python's integers alone.

A finite element is an integer times a power of two. An exact result is a fraction of integers times a power of two,
and is rounded to nearest even here, or its root is. Nothing here knows the library.
"""

import math
import struct
from array import array

TYPES = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"]
INTS, FLOATS = TYPES[:8], TYPES[8:]
CODE = {t: i + 1 for i, t in enumerate(TYPES)}
SIZE = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
PACK = {1: "B", 2: "H", 4: "I", 8: "Q"}
OPS = ["sum", "prod", "min", "max", "and", "or", "xor", "mean", "var", "std", "norm1", "norm2", "norminf", "sumsq",
       "dot", "argmin", "argmax", "minmax", "count", "nans", "nonzero", "any", "all", "describe", "user"]
STATUS = ["OK", "EINVAL", "ETYPE", "EDEVICE", "ENOMEM", "ERANGE", "EFORMAT", "EUNSUPPORTED", "ECOMPILE", "ELOST", "ESTOPPED"]


class Format:
    """A floating format: precision in bits, and the exponent of its smallest subnormal number."""

    def __init__(self, name, precision, width):
        self.name, self.precision, self.width = name, precision, width
        self.field = precision - 1                        # bits of the mantissa's field
        self.exponents = width - precision                # bits of the exponent's field
        self.bias = (1 << self.exponents - 1) - 1
        self.lowest = 1 - self.bias - self.field
        self.sign = 1 << width - 1
        self.inf = ((1 << self.exponents) - 1) << self.field
        self.nan = self.inf | 1 << self.field - 1
        self.top = (1 << self.exponents) - 2              # the largest exponent field of a finite number
        self.mantissa = (1 << self.field) - 1

    def round_integer(self, kept, exponent):
        """The bits of kept * 2^exponent, kept > 0, rounded to nearest even."""
        last = max(self.lowest, exponent + kept.bit_length() - self.precision)
        shift = last - exponent
        if shift > 0:
            half = 1 << shift - 1
            rest = kept & (half + half - 1)
            kept >>= shift
            if rest > half or (rest == half and kept & 1):
                kept += 1
        else:
            kept <<= -shift
        bits = kept + (last - self.lowest << self.field)  # a carry steps the exponent, to infinity at last
        return bits if bits < self.inf else self.inf

    def round_ratio(self, numerator, denominator, exponent):
        """The bits of numerator / denominator * 2^exponent, denominator > 0. Zero is +0."""
        if numerator == 0:
            return 0
        sign = 0
        if numerator < 0:
            sign, numerator = self.sign, -numerator
        if denominator == 1:
            return sign | self.round_integer(numerator, exponent)
        shift = self.precision + 3 - numerator.bit_length() + denominator.bit_length()
        if shift > 0:
            quotient, rest = divmod(numerator << shift, denominator)
        else:
            quotient, rest = divmod(numerator, denominator << -shift)
        return sign | self.round_integer(2 * quotient + (rest != 0), exponent - shift - 1)

    def round_root(self, numerator, denominator, exponent):
        """The bits of the square root of numerator / denominator * 2^exponent, which is not negative."""
        if numerator == 0:
            return 0
        shift = 2 * (self.precision + 3) - numerator.bit_length() + denominator.bit_length()
        if exponent - shift & 1:
            shift += 1
        if shift > 0:
            scaled, rest = divmod(numerator << shift, denominator)
        else:
            scaled, rest = divmod(numerator, denominator << -shift)
        root = math.isqrt(scaled)
        inexact = rest != 0 or root * root != scaled
        return self.round_integer(2 * root + inexact, (exponent - shift) // 2 - 1)


FORMAT = {"f16": Format("f16", 11, 16), "bf16": Format("bf16", 8, 16), "f32": Format("f32", 24, 32),
          "f64": Format("f64", 53, 64)}


def raw_bytes(type_, raw):
    return array(PACK[SIZE[type_]], raw).tobytes()


def raw_of_bytes(type_, data):
    out = array(PACK[SIZE[type_]])
    out.frombytes(data)
    return out.tolist()


def to_floats(type_, raw):
    """The values of raw bits as Python's floats, exact; what a NaN becomes does not matter."""
    if type_ == "f16":
        return list(struct.unpack(f"<{len(raw)}e", array("H", raw).tobytes()))
    if type_ == "bf16":
        raw = [b << 16 for b in raw]
    floats = array("d" if type_ == "f64" else "f")
    floats.frombytes(array("Q" if type_ == "f64" else "I", raw).tobytes())
    return floats.tolist()


def signed(type_, raw):
    """The integers that raw bits of an integer type are."""
    if type_[0] == "u":
        return raw
    sign = 1 << 8 * SIZE[type_] - 1
    return [(b ^ sign) - sign for b in raw]


def units(type_, raw, magnitudes, zero_at):
    """Finite elements as integers in 2^exponent: (integers, exponent). `magnitudes` are the bits without the sign;
    elements that zero_at holds count as 0."""
    if type_ in INTS:
        return signed(type_, raw), 0
    form = FORMAT[type_]
    if zero_at:
        raw, magnitudes = list(raw), list(magnitudes)
        for i in zero_at:
            raw[i] = magnitudes[i] = 0
    high = max(magnitudes, default=0) >> form.field
    low = max(min(filter(None, magnitudes), default=0) >> form.field, 1)
    exponent = form.lowest + low - 1
    if high - low < 900:
        floats = to_floats(type_, raw)
        if -exponent > 1000:                              # in two steps, as 2^1074 is not a double
            first = 2.0 ** 600
            second = 2.0 ** (-exponent - 600)
            return [int(v * first * second) for v in floats], exponent
        scale = 2.0 ** -exponent
        return [int(v * scale) for v in floats], exponent
    out = []
    field, mantissa, hidden, sign = form.field, form.mantissa, 1 << form.field, form.sign
    for bits, magnitude in zip(raw, magnitudes):
        e = magnitude >> field
        v = (magnitude & mantissa | hidden) << e - low if e else magnitude  # subnormal numbers have low = 1
        out.append(-v if bits & sign else v)
    return out, exponent
