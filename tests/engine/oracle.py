"""What the answer must be, worked out with none of the library's ideas.

Exact sums. Every element is an integer multiple of 2^-1074, so a sum is a Python integer in that
unit. To be quick on long arrays, mantissas of one exponent are first added up by numpy (in two
halves, each exact); from there on Python's integers do the work. The one rounding is MPFR's, with
the exponent range and the subnormals of the result type. test_oracle.py holds this against
fractions.Fraction, math.fsum and a rounding written on integers.

Products and user operators follow the canonical tree literally, lane by lane and level by level.
Integers, min, max and the bit operators are Python's integers and numpy.
"""

import fractions
import functools
import math
import struct

import gmpy2
import numpy as np

from tally import FLOATS, INTS, LISTS, SIZE

# precision, largest exponent, smallest exponent (both as MPFR counts: 0.5 <= m < 1), bits
FORMAT = {"f16": (11, 16, -23), "bf16": (8, 128, -132), "f32": (24, 128, -148),
          "f64": (53, 1024, -1073)}
NAN = {"f16": 0x7e00, "bf16": 0x7fc0, "f32": 0x7fc00000, "f64": 0x7ff8000000000000}
INF = {"f16": 0x7c00, "bf16": 0x7f80, "f32": 0x7f800000, "f64": 0x7ff0000000000000}
SIGN = {name: 1 << (8 * SIZE[name] - 1) for name in FLOATS}
ONE = {"f16": 0x3c00, "bf16": 0x3f80, "f32": 0x3f800000, "f64": 0x3ff0000000000000}
UNIT = 1074
NATURAL = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16,
           "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
           "u64": np.uint64}


# ---- Conversions --------------------------------------------------------------------------------

def to_f64(type_, raw):
    """The values of raw bits, as doubles (exact)."""
    with np.errstate(all="ignore"):
        if type_ == "bf16":
            return (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return raw.view(NATURAL[type_]).astype(np.float64)


def to_f32(type_, raw):
    with np.errstate(all="ignore"):
        if type_ == "bf16":
            return (raw.astype(np.uint32) << 16).view(np.float32)
        return raw.view(NATURAL[type_]).astype(np.float32)


def f32_to(type_, x):
    """The bits of float32 values rounded to nearest even to f16 or bf16; NaN becomes canonical."""
    x = np.asarray(x, np.float32)
    with np.errstate(all="ignore"):
        if type_ == "f16":
            bits = x.astype(np.float16).view(np.uint16)
        else:
            wide = x.view(np.uint32).astype(np.uint64)
            bits = ((wide + 0x7fff + ((wide >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(NAN[type_]), bits)


def bits_of_double(type_, value):
    """The bits of a double that the type can represent exactly."""
    if type_ == "f64":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    if type_ == "f32":
        return struct.unpack("<I", struct.pack("<f", value))[0]
    if type_ == "f16":
        return struct.unpack("<H", struct.pack("<e", value))[0] if abs(value) != float("inf") \
            else INF["f16"] | (SIGN["f16"] if value < 0 else 0)
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


@functools.lru_cache(None)
def _context(type_):
    precision, emax, emin = FORMAT[type_]
    return gmpy2.context(precision=precision, emax=emax, emin=emin, subnormalize=True,
                         round=gmpy2.RoundToNearest)


_DENOMINATOR = gmpy2.mpz(1) << UNIT


def round_units(type_, units):
    """The bits of units * 2^-1074, rounded once to nearest even by MPFR."""
    if units == 0:
        return 0
    value = gmpy2.mpfr(gmpy2.mpq(units, _DENOMINATOR), 0, _context(type_))
    bits = bits_of_double(type_, float(value))
    if units < 0:
        bits |= SIGN[type_]  # a negative sum that rounds to zero keeps its sign
    return bits


def units_of_bits(type_, bits):
    """A finite value as an integer of 2^-1074: the definition of the formats."""
    precision, _, emin = FORMAT[type_]
    field = precision - 1
    exponent = (bits & (SIGN[type_] - 1)) >> field
    mantissa = bits & ((1 << field) - 1)
    if exponent:
        mantissa |= 1 << field
        exponent -= 1
    units = mantissa << (exponent + emin - 1 + UNIT)
    return -units if bits & SIGN[type_] else units


def round_units_by_integers(type_, units):
    """As round_units(), by integer arithmetic alone: holds MPFR's settings to account."""
    sign = SIGN[type_] if units < 0 else 0
    units = abs(units)
    precision, _, emin = FORMAT[type_]
    lowest = emin - 1 + UNIT                              # the weight of the type's last bit
    shift = max(lowest, units.bit_length() - precision)   # the weight of the result's last bit
    kept, rest = units >> shift, units & ((1 << shift) - 1)
    half = 1 << (shift - 1) if shift else 0
    if rest > half or (rest == half and rest and kept & 1):
        kept += 1
    field = precision - 1
    bits = kept + ((shift - lowest) << field)  # a carry out of the mantissa steps the exponent
    return sign | min(bits, INF[type_])


# ---- Exact sums ---------------------------------------------------------------------------------

class Exact:
    """The exact sum of floating numbers: add() what was fed, round() to any floating type."""

    def __init__(self):
        self.units, self.count = 0, 0
        self.nan = self.plus = self.minus = False
        self.only_minus_zero = True

    def add(self, type_, raw):
        self.count += len(raw)
        for start in range(0, len(raw), 1 << 22):
            self._add(to_f64(type_, raw[start:start + (1 << 22)]).view(np.uint64))
        return self

    def _add(self, bits):
        if not len(bits):
            return
        if self.only_minus_zero:
            self.only_minus_zero = bool((bits == np.uint64(1 << 63)).all())
        exponent = ((bits >> np.uint64(52)) & np.uint64(0x7ff)).astype(np.int64)
        mantissa = bits & np.uint64((1 << 52) - 1)
        special = exponent == 0x7ff
        if special.any():
            at = bits[special]
            self.nan |= bool((mantissa[special] != 0).any())
            self.plus |= bool((at == np.uint64(0x7ff << 52)).any())
            self.minus |= bool((at == np.uint64(0xfff << 52)).any())
            keep = ~special
            bits, exponent, mantissa = bits[keep], exponent[keep], mantissa[keep]
            if not len(bits):
                return
        mantissa = mantissa | (np.minimum(exponent, 1).astype(np.uint64) << np.uint64(52))
        sign = 1.0 - 2.0 * (bits >> np.uint64(63)).astype(np.float64)
        low = (mantissa & np.uint64((1 << 26) - 1)).astype(np.float64) * sign
        high = (mantissa >> np.uint64(26)).astype(np.float64) * sign
        weight = np.maximum(exponent, 1) - 1
        lows = np.bincount(weight, low)
        highs = np.bincount(weight, high)
        for w in np.flatnonzero((lows != 0) | (highs != 0)).tolist():
            self.units += (int(lows[w]) + (int(highs[w]) << 26)) << w

    def round(self, type_):
        if self.nan or (self.plus and self.minus):
            return NAN[type_]
        if self.plus or self.minus:
            return INF[type_] | (SIGN[type_] if self.minus else 0)
        if self.units == 0:
            return SIGN[type_] if self.count and self.only_minus_zero else 0
        return round_units(type_, self.units)


# ---- The canonical tree -------------------------------------------------------------------------

LEAF, LANES = 4096, 32


def _leaf(f, x, commutative):
    """Reduces leaves of one length, the last axis of x, to one element each."""
    n = x.shape[-1]
    if commutative:
        lanes = []
        for lane in range(min(n, LANES)):
            lanes.append(x[..., lane].copy())
        full = n // LANES
        if full:
            block = x[..., :full * LANES].reshape(x.shape[:-1] + (full, LANES))
            acc = block[..., 0, :].copy()
            for row in range(1, full):
                acc = f(acc, block[..., row, :])
            lanes = [acc[..., lane] for lane in range(LANES)]
            for lane in range(n % LANES):
                lanes[lane] = f(lanes[lane], x[..., full * LANES + lane])
        half = 16
        while half:
            for lane in range(half):
                if lane + half < len(lanes):
                    lanes[lane] = f(lanes[lane], lanes[lane + half])
            lanes = lanes[:half]
            half //= 2
        return lanes[0]
    run = LEAF // LANES
    full = n // run
    lanes = []
    if full:
        block = x[..., :full * run].reshape(x.shape[:-1] + (full, run))
        acc = block[..., 0].copy()
        for i in range(1, run):
            acc = f(acc, block[..., i])
        lanes = [acc[..., lane] for lane in range(full)]
    if n % run:
        acc = x[..., full * run].copy()
        for i in range(full * run + 1, n):
            acc = f(acc, x[..., i])
        lanes.append(acc)
    step = 1
    while step < LANES:
        for lane in range(0, LANES, 2 * step):
            if lane + step < len(lanes):
                lanes[lane] = f(lanes[lane], lanes[lane + step])
        step *= 2
    return lanes[0]


def tree(f, x, commutative):
    """The canonical tree over x (n >= 1), f working on numpy arrays."""
    with np.errstate(all="ignore"):
        full = len(x) // LEAF
        nodes = x[:0]
        if full:
            nodes = np.asarray(_leaf(f, x[:full * LEAF].reshape(full, LEAF), commutative))
        if len(x) % LEAF:
            last = np.asarray(_leaf(f, x[full * LEAF:].reshape(1, -1), commutative))
            nodes = np.concatenate([nodes, last])
        while len(nodes) > 1:
            pairs = len(nodes) // 2
            upper = f(nodes[0:2 * pairs:2], nodes[1:2 * pairs:2])
            nodes = np.concatenate([upper, nodes[2 * pairs:]])
        return nodes[:1]


def tree_bits(type_, f, raw, commutative, identity_bits):
    """The bits a user operator must give; f works on raw bits as the library would show them."""
    if not len(raw):
        return canonical(type_, identity_bits)
    return canonical(type_, int(tree(f, raw, commutative).view(f"u{SIZE[type_]}")[0]))


def canonical(type_, bits):
    if type_ in FLOATS and (bits & (SIGN[type_] - 1)) > INF[type_]:
        return NAN[type_]
    return bits


# ---- Every built-in operator --------------------------------------------------------------------

def integer_range(type_):
    bits = 8 * SIZE[type_]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type_[0] == "i" else (0, (1 << bits) - 1)


def _wide(type_, value):
    """An exact integer as the i64 or u64 result, or the error it must be."""
    out = "i64" if type_[0] == "i" else "u64"
    low, high = integer_range(out)
    return (out, value & ((1 << 64) - 1)) if low <= value <= high else "ERANGE"


def integer_sum(raw):
    low = raw.astype(np.int64).view(np.uint64) if raw.dtype.kind == "i" else raw.astype(np.uint64)
    words = int((low & np.uint64(0xffffffff)).sum(dtype=np.uint64))
    if raw.dtype.kind == "i":
        return words + (int((low.view(np.int64) >> np.int64(32)).sum(dtype=np.int64)) << 32)
    return words + (int((low >> np.uint64(32)).sum(dtype=np.uint64)) << 32)


def integer_product(raw):
    if (raw == 0).any():
        return 0
    big = raw[raw != 1]
    if raw.dtype.kind == "i":
        big, sign = big[big != -1], -1 if int((raw == -1).sum()) & 1 else 1
    else:
        sign = 1
    if len(big) > 64:
        return 1 << 100  # at least 2^65 in absolute value: no type holds it
    for value in big.tolist():
        sign *= value
    return sign


def answer(op, type_, raw, out=None):
    """What tally.reduce() must return for raw bits: (type, bits) or "ERANGE"."""
    mask = (1 << (8 * SIZE[type_])) - 1
    unsigned = raw.view(f"u{SIZE[type_]}")
    if op in ("and", "or", "xor"):
        if not len(raw):
            return type_, mask if op == "and" else 0
        f = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
        return type_, int(f.reduce(unsigned))
    if type_ in INTS:
        if op == "sum":
            return _wide(type_, integer_sum(raw))
        if op == "prod":
            return _wide(type_, integer_product(raw))
        low, high = integer_range(type_)
        value = (high if op == "min" else low) if not len(raw) else \
            int(raw.min() if op == "min" else raw.max())
        return type_, value & mask
    if op == "sum":
        return out or type_, Exact().add(type_, raw).round(out or type_)
    if op == "prod":
        if not len(raw):
            return type_, ONE[type_]
        if type_ in ("f16", "bf16"):
            value = tree(np.multiply, to_f32(type_, raw), True)
            return type_, int(f32_to(type_, value)[0])
        value = tree(np.multiply, raw.view(NATURAL[type_]), True)
        return type_, canonical(type_, int(value.view(f"u{SIZE[type_]}")[0]))
    if not len(raw):
        return type_, INF[type_] | (SIGN[type_] if op == "max" else 0)
    values = to_f64(type_, raw)
    if np.isnan(values).any():
        return type_, NAN[type_]
    with np.errstate(all="ignore"):
        value = float(values.min() if op == "min" else values.max())
    if value == 0:
        minus = bool((unsigned == SIGN[type_]).any())
        plus = bool((unsigned == 0).any())
        return type_, SIGN[type_] if (minus if op == "min" else not plus) else 0
    return type_, bits_of_double(type_, value)


# ---- Statistics ---------------------------------------------------------------------------------
#
# Everything is a fraction of Python integers until one rounding at the end: round_ratio() and
# round_root(), which are integer arithmetic of their own. Elements count in 2^-1074, squares and products
# in 2^-2148; integers in 1. NumPy knows where the least element is, and what a NaN is in all that.

def round_ratio(type_, numerator, denominator):
    """The bits of a fraction, denominator > 0, rounded once to nearest even. 0 is +0."""
    sign = SIGN[type_] if numerator < 0 else 0
    rest = abs(numerator)
    if rest == 0:
        return 0
    precision, _, emin = FORMAT[type_]
    lowest = emin - 1                                     # the exponent of the type's last bit
    exponent = rest.bit_length() - denominator.bit_length()
    if (rest << max(0, -exponent)) < (denominator << max(0, exponent)):
        exponent -= 1                                     # now 2^exponent <= value < 2^(exponent + 1)
    last = max(lowest, exponent - precision + 1)          # the exponent of the result's last bit
    kept, rest = divmod(rest << max(0, -last), denominator << max(0, last))
    twice, whole = 2 * rest, denominator << max(0, last)
    if twice > whole or (twice == whole and kept & 1):
        kept += 1
    bits = kept + ((last - lowest) << (precision - 1))    # a carry steps the exponent, to infinity at last
    return sign | min(bits, INF[type_])


def round_root(type_, numerator, denominator):
    """The bits of a fraction's square root, rounded once."""
    assert numerator >= 0 and denominator > 0
    if numerator == 0:
        return 0
    short = 2 * (FORMAT[type_][0] + 8) - (numerator.bit_length() - denominator.bit_length())
    k = max(0, (short + 1) // 2)                          # the root in 2^-k has enough bits
    scaled, rest = divmod(numerator << (2 * k), denominator)
    root = math.isqrt(scaled)
    inexact = rest != 0 or root * root != scaled
    return round_ratio(type_, 2 * root + inexact, 1 << (k + 1))


def natural_type(op, type_):
    """The type that a value of an operator has when none is asked for."""
    wide = type_ if type_ in FLOATS else "i64" if type_[0] == "i" else "u64"
    if op in ("sum", "prod", "norm1", "norminf", "sumsq", "dot"):
        return wide
    if op in ("mean", "var", "std", "norm2"):
        return type_ if type_ in FLOATS else "f64"
    if op in ("argmin", "argmax", "count", "nans", "nonzero"):
        return "u64"
    return "u8" if op in ("any", "all") else type_


ANY_FLOAT = ["sum", "mean", "var", "std", "norm1", "norm2", "sumsq", "dot"]


class Terms:
    """An array as exact numbers: integers in 2^-unit, and what is not finite apart."""

    def __init__(self, type_, raw):
        self.type, self.n = type_, len(raw)
        if type_ in INTS:
            self.unit = 0
            self.finite = raw.tolist()
            self.doubles = None
            return
        self.unit = UNIT
        self.doubles = to_f64(type_, raw)
        self.finite = [0] * self.n
        for i in np.flatnonzero(self.doubles).tolist():
            bits = int(raw[i])
            self.finite[i] = units_of_bits(type_, bits) if (bits & (SIGN[type_] - 1)) < INF[type_] else None

    def special(self, i):
        """nan, inf or -inf; None for a finite number."""
        return None if self.finite[i] is not None else float(self.doubles[i])


def _settle(specials):
    """What decides a sum before its finite terms do: NaN, an infinity, or nothing (None)."""
    if any(math.isnan(s) for s in specials) or len(set(specials)) > 1:
        return math.nan
    return specials[0] if specials else None


def _float_bits(type_, value):
    return NAN[type_] if math.isnan(value) else INF[type_] | (SIGN[type_] if value < 0 else 0)


def sum_of(op, type_, raw, y=None):
    """An exact sum: (special or None, units, exponent of a unit, every term is -0)."""
    x = Terms(type_, raw)
    if op == "dot":
        z = Terms(type_, y)
        specials, total, minus = [], 0, type_ in FLOATS and x.n > 0
        with np.errstate(all="ignore"):
            for i in range(x.n):
                if x.finite[i] is None or z.finite[i] is None:
                    specials.append(float(np.float64(x.doubles[i]) * np.float64(z.doubles[i])))
                    minus = False
                    continue
                term = x.finite[i] * z.finite[i]
                total += term
                if minus:
                    minus = term == 0 and np.signbit(x.doubles[i]) != np.signbit(z.doubles[i])
        return _settle(specials), total, 2 * x.unit, bool(minus)
    specials = [x.special(i) for i in range(x.n) if x.finite[i] is None]
    finite = [v for v in x.finite if v is not None]
    if op == "sum":
        minus = type_ in FLOATS and x.n > 0 and not specials and \
            bool(((x.doubles == 0) & np.signbit(x.doubles)).all())
        return _settle(specials), sum(finite), x.unit, minus
    if op == "norm1":
        return _settle([abs(s) for s in specials]), sum(map(abs, finite)), x.unit, False
    assert op == "sumsq"
    return _settle([abs(s) for s in specials]), sum(v * v for v in finite), 2 * x.unit, False


def _sum_value(out, total):
    special, units, unit, minus = total
    if out in INTS:
        assert unit == 0
        low, high = integer_range(out)
        return (out, units & ((1 << 64) - 1)) if low <= units <= high else "ERANGE"
    if special is not None:
        return out, _float_bits(out, special)
    if units == 0:
        return out, SIGN[out] if minus else 0
    return out, round_ratio(out, units, 1 << unit)


def quotient(out, total, divisor):
    """An exact sum divided by an integer."""
    special, units, unit, minus = total
    if special is not None:
        return out, _float_bits(out, special if divisor > 0 else -special)
    if units == 0:
        return out, SIGN[out] if minus != (divisor < 0) else 0
    return out, round_ratio(out, units if divisor > 0 else -units, abs(divisor) << unit)


def variance(out, type_, raw, ddof, root=False):
    """By its definition: the mean of the squared distances from the mean, with n - ddof for n."""
    x, n = Terms(type_, raw), len(raw)
    if n == 0 or None in x.finite or n <= fractions.Fraction(ddof):
        return out, NAN[out]
    total = sum(x.finite)
    distances = sum((n * v - total) ** 2 for v in x.finite)         # n^2 times too large
    over = fractions.Fraction(n * n * (n - fractions.Fraction(ddof)) * (1 << (2 * x.unit)))
    rounded = round_root if root else round_ratio
    return out, rounded(out, distances * over.denominator, over.numerator)


def position(op, type_, raw):
    """NumPy's argmin and argmax, but that -0 is below +0."""
    values = raw if type_ in INTS else to_f64(type_, raw)
    at = int(values.argmin() if op == "argmin" else values.argmax())
    if type_ in FLOATS and values[at] == 0:
        wanted = (values == 0) & (np.signbit(values) == (op == "argmin"))
        if wanted.any():
            at = int(np.flatnonzero(wanted)[0])
    return "u64", at


def statistic(op, type_, raw, y=None, out=None, ddof=0.0):
    """What tally.reduce() must return: answer()'s operators, and all the others; a list where an operator
    stands for several."""
    n = len(raw)
    if op in LISTS:
        return [statistic(each, type_, raw, y, out, ddof) for each in LISTS[op]]
    out = out if out and op in ANY_FLOAT else natural_type(op, type_)
    values = raw if type_ in INTS else to_f64(type_, raw)
    if op in ("sum", "norm1", "sumsq", "dot"):
        return _sum_value(out, sum_of(op, type_, raw, y))
    if op == "mean":
        return quotient(out, sum_of("sum", type_, raw), n) if n else (out, NAN[out])
    if op in ("var", "std"):
        return variance(out, type_, raw, ddof, op == "std")
    if op == "norm2":
        special, units, unit, _ = sum_of("sumsq", type_, raw)
        return out, _float_bits(out, special) if special is not None else \
            round_root(out, units, 1 << unit)
    if op == "norminf":
        if type_ in INTS:
            return _sum_value(out, (None, max(map(abs, raw.tolist()), default=0), 0, False))
        with np.errstate(all="ignore"):
            largest = np.abs(values).max() if n else 0.0
        return out, NAN[out] if np.isnan(largest) else bits_of_double(out, float(largest))
    if op in ("argmin", "argmax"):
        return position(op, type_, raw) if n else "EINVAL"
    if op == "count":
        return out, n
    if op == "nans":
        return out, int(np.isnan(values).sum()) if type_ in FLOATS else 0
    if op == "nonzero":
        return out, int(np.count_nonzero(values))
    if op in ("any", "all"):
        with np.errstate(all="ignore"):
            return out, int((np.any if op == "any" else np.all)(values))
    return answer(op, type_, raw)


def several(ops, type_, raw, **kw):
    """What a problem of several operators must give: one value each, None where there is none."""
    made = []
    for op in ops:
        got = statistic(op, type_, raw, **kw)
        made += got if isinstance(got, list) else [got]
    return [None if isinstance(v, str) else v for v in made]
