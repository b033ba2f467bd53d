"""The numbers that are fed in: kinds of arrays, exact constructions, and memory with edges.

Everything random comes from one seed (TALLY_SEED, else a fresh one; pytest's header shows it), mixed
with the test's own name, so that one test alone repeats what it did within the whole run.
"""

import ctypes
import mmap
import os
import zlib

import numpy as np

import oracle
from tally import DTYPE, FLOATS, SIZE

SEED = int(os.environ["TALLY_SEED"]) if os.environ.get("TALLY_SEED") \
    else int.from_bytes(os.urandom(4), "little")


def rng(name):
    return np.random.default_rng([SEED, zlib.crc32(name.encode())])


# Around every power of two that a vector, a lane, a leaf or a chunk may end at.
EDGES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 47, 48, 49, 63, 64, 65, 95, 96, 97,
         127, 128, 129, 191, 192, 193, 255, 256, 257, 383, 384, 385, 511, 512, 513, 767, 1023, 1024,
         1025, 1535, 1536, 2047, 2048, 2049, 3967, 3968, 3969, 4064, 4095, 4096, 4097, 4128, 4129,
         6143, 8191, 8192, 8193, 12287, 12289]
LONGER = [16383, 16384, 16385, 20481, 32767, 32768, 32769, 65535, 65536, 65537]


def long_lengths(type_):
    """Lengths that are worth several threads, whatever the element's size: around 1, 2 and 4 MiB."""
    size = SIZE[type_]
    return [(1 << 20) // size - 1, (1 << 20) // size + 1, (2 << 20) // size + 4097,
            (9 << 19) // size - 33]



# ---- Memory with edges --------------------------------------------------------------------------

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Arena:
    """Memory between two pages that may not be touched: reading past an array is a crash."""

    def __init__(self, size):
        page = mmap.PAGESIZE
        self.size = (size + page - 1) // page * page
        self._map = mmap.mmap(-1, self.size + 2 * page)
        whole = np.frombuffer(self._map, np.uint8)
        self.bytes = whole[page:page + self.size]
        self.address = self.bytes.ctypes.data
        for guard in (self.address - page, self.address + self.size):
            assert _libc.mprotect(guard, page, 0) == 0, os.strerror(ctypes.get_errno())

    def place(self, raw, offset):
        """Copies raw in; offset >= 0 counts bytes from the front, < 0 leaves ~offset behind it."""
        data = np.ascontiguousarray(raw).view(np.uint8)
        at = offset if offset >= 0 else self.size - len(data) - ~offset
        assert 0 <= at and at + len(data) <= self.size
        self.bytes[at:at + len(data)] = data
        return self.address + at

    def protect(self, writable):
        mode = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        assert _libc.mprotect(self.address, self.size, mode) == 0


# ---- Kinds of arrays ----------------------------------------------------------------------------

def floats(type_, values):
    """Doubles rounded to a type's raw bits."""
    values = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        if type_ == "f64":
            return values.copy().view(np.uint64)
        if type_ == "f32":
            return values.astype(np.float32).view(np.uint32)
        return oracle.f32_to(type_, values.astype(np.float32))


def random_bits(g, type_, n):
    return g.integers(0, 1 << (8 * SIZE[type_]), n, np.uint64, False).astype(f"u{SIZE[type_]}") \
        if SIZE[type_] < 8 else g.integers(0, (1 << 64) - 1, n, np.uint64, True)


def finite_bits(g, type_, n):
    """Random finite bit patterns: the whole exponent range, subnormals among them."""
    raw = random_bits(g, type_, n)
    inf = DTYPE[type_](oracle.INF[type_])
    top = DTYPE[type_](oracle.INF[type_] & ~(oracle.INF[type_] >> 1))
    return np.where((raw & inf) == inf, raw ^ top, raw)


def subnormals(g, type_, n):
    raw = random_bits(g, type_, n)
    return raw & DTYPE[type_](oracle.SIGN[type_] | ((1 << (oracle.FORMAT[type_][0] - 1)) - 1))


def exponents(g, type_, n, exponent):
    """Random signs and mantissas under the given biased exponents (clipped to the finite ones)."""
    field = oracle.FORMAT[type_][0] - 1
    top = (oracle.INF[type_] >> field) - 1
    raw = random_bits(g, type_, n).astype(np.uint64)
    keep = np.uint64(oracle.SIGN[type_] | ((1 << field) - 1))
    where = np.clip(np.asarray(exponent, np.int64), 0, top).astype(np.uint64) << np.uint64(field)
    return ((raw & keep) | where).astype(DTYPE[type_])


def _top(type_):
    return (oracle.INF[type_] >> (oracle.FORMAT[type_][0] - 1)) - 1


def _cancel(g, type_, n):
    raw = finite_bits(g, type_, n)
    half = n // 2
    raw[half:2 * half] = raw[:half] ^ DTYPE[type_](oracle.SIGN[type_])
    if n % 2:
        raw[n - 1] = 1
    g.shuffle(raw)
    return raw


def _outlier(g, type_, n):
    raw = subnormals(g, type_, n)
    if n:
        raw[int(g.choice([0, n - 1, n // 2, int(g.integers(0, n))]))] = \
            DTYPE[type_](oracle.INF[type_] - 1 - int(g.integers(0, 2)))
    return raw


def _specials(g, type_, n):
    raw = floats(type_, g.normal(size=n))
    choices = [oracle.INF[type_], oracle.INF[type_] | oracle.SIGN[type_], oracle.INF[type_] | 1,
               oracle.NAN[type_] | oracle.SIGN[type_] | 1, 0, oracle.SIGN[type_]]
    some = g.choice(len(choices), int(g.integers(1, 4)))
    for which in some.tolist():
        if n:
            raw[int(g.integers(0, n))] = DTYPE[type_](choices[which])
    return raw


def undone(g, n, least, most):
    """n doubles, of which a lane that adds four of every step-th keeps a small number and a larger one, which another element
    cancels. `least` and `most` bound the exponents."""
    middle = int(g.integers(least + (most - least) // 4, most - (most - least) // 4))
    x = np.zeros(n)
    for _ in range(int(g.integers(1, 4)) if n > 4 else 0):
        step = 1 << int(g.integers((n // 4).bit_length()))
        at = int(g.integers(n - 3 * step)) + step * np.arange(4)
        some = np.exp2(np.clip(middle + np.array([0, 60, 60, -54]), least, most))
        other = g.integers(n)
        if not x[at].any() and not x[other] and other not in at:
            x[at], x[other] = some * [1, 1, -1, 1], -some[0]
    return x


def undone_lines(g, type_, shape):
    """Doubles of that shape, one behind another. The lines along some axis are like undone(): all alike, but for a power of
    two, the sign, and some lines of numbers far apart."""
    lengths = np.atleast_1d(shape).astype(int) if np.size(shape) else np.array([1])
    axis, least, most = int(g.integers(len(lengths))), oracle.FORMAT[type_][2] - 1, oracle.FORMAT[type_][1] - 1
    length = int(lengths[axis])
    count = int(np.prod(np.delete(lengths, axis)))
    lines = np.tile(undone(g, length, least + 4, most - 4), (count, 1))
    far = g.random(count) < 0.3
    lines[far] = np.exp2(np.clip(g.integers(-70, 10, (int(far.sum()), length)), least + 4, most - 4))
    lines *= np.exp2(g.integers(-4, 4, (count, 1))) * g.choice([-1.0, 1.0], (count, 1))
    return np.moveaxis(lines.reshape([*np.delete(lengths, axis), length]), -1, axis).ravel()


FLOAT_KINDS = {
    "uniform": lambda g, t, n: floats(t, g.random(n) * 2 - 1),
    "positive": lambda g, t, n: floats(t, g.random(n)),
    "normal": lambda g, t, n: floats(t, g.normal(size=n)),
    "loguniform": lambda g, t, n: floats(t, g.choice([-1.0, 1.0], n) * np.exp2(
        g.uniform(-20, 15 if t == "f16" else 20, n))),
    "bits": finite_bits,
    "all-bits": random_bits,
    "cancel": _cancel,
    "subnormal": subnormals,
    "zeros": lambda g, t, n: (g.integers(0, 2, n) * oracle.SIGN[t]).astype(DTYPE[t])
    if t != "f64" else (g.integers(0, 2, n).astype(np.uint64) << np.uint64(63)),
    "minus-zeros": lambda g, t, n: np.full(n, oracle.SIGN[t], DTYPE[t]),
    "huge": lambda g, t, n: exponents(g, t, n, np.full(n, _top(t))),
    "copies": lambda g, t, n: np.full(n, (int(g.integers(1, _top(t))) + 1 <<
                                          oracle.FORMAT[t][0] - 1) - 1, DTYPE[t]),
    "blocks": lambda g, t, n: exponents(g, t, n, np.repeat(
        g.integers(0, _top(t) + 1, n // 256 + 1), 256)[:n]),
    "rising": lambda g, t, n: exponents(g, t, n, np.linspace(0, _top(t), n)),
    "falling": lambda g, t, n: exponents(g, t, n, np.linspace(_top(t), 0, n)),
    "outlier": _outlier,
    "specials": _specials,
    "undone": lambda g, t, n: floats(t, undone(g, n, oracle.FORMAT[t][2] - 1, oracle.FORMAT[t][1] - 1)),
    "near-one": lambda g, t, n: floats(t, g.choice([-1.0, 1.0], n) * np.exp2(g.uniform(-.5, .5, n))),
}


def _limits(t):
    return oracle.integer_range(t)


def _integers(g, t, n, low, high):
    bottom, top = _limits(t)
    return g.integers(max(low, bottom), min(high, top), n, DTYPE[t], True)


INT_KINDS = {
    "full": lambda g, t, n: random_bits(g, t, n).view(DTYPE[t]),
    "small": lambda g, t, n: _integers(g, t, n, -3, 3),
    "extremes": lambda g, t, n: np.array(_limits(t), DTYPE[t])[g.integers(0, 2, n)],
    "largest": lambda g, t, n: np.full(n, _limits(t)[1], DTYPE[t]),
    "smallest": lambda g, t, n: np.full(n, _limits(t)[0], DTYPE[t]),
    "units": lambda g, t, n: g.choice(np.array([1, 1 if t[0] == "u" else -1], DTYPE[t]), n),
    "few-twos": lambda g, t, n: _few_twos(g, t, n),
}


def _few_twos(g, t, n):
    """Products near the result type's edge: up to 66 factors of two among ones."""
    raw = INT_KINDS["units"](g, t, n)
    if n:
        raw[g.integers(0, n, int(g.integers(60, 67)))] = 2 if t[0] == "u" or g.random() < .5 else -2
    return raw


def kinds(op, type_):
    """The kinds that can tell something about this operator and type."""
    if type_ not in FLOATS:
        return ["full", "units", "few-twos", "small"] if op == "prod" else \
            ["full", "small", "extremes", "largest", "smallest"]
    if op == "sum":
        return list(FLOAT_KINDS)
    if op == "prod":
        return ["near-one", "bits", "specials", "zeros", "all-bits", "loguniform"]
    if op in ("min", "max"):
        return ["normal", "bits", "zeros", "minus-zeros", "specials", "subnormal", "outlier"]
    return ["all-bits", "zeros", "normal"]


def make(g, kind, type_, n):
    raw = (FLOAT_KINDS if type_ in FLOATS else INT_KINDS)[kind](g, type_, n)
    assert raw.dtype == DTYPE[type_] and len(raw) == n, (kind, type_, raw.dtype)
    return raw


# ---- Arrays whose exact sum is chosen -----------------------------------------------------------

def truncate_units(type_, units):
    """The largest value of the type, in 2^-1074, that is no further from 0 than units."""
    sign, units = (-1, -units) if units < 0 else (1, units)
    precision, emax, emin = oracle.FORMAT[type_]
    lowest = emin - 1 + oracle.UNIT
    top = ((1 << precision) - 1) << (emax - precision + oracle.UNIT)
    shift = max(lowest, units.bit_length() - precision)
    return sign * min(units >> shift << shift, top)


def exactly(g, type_, units, noise):
    """Shuffled raw values of the type whose exact sum is units * 2^-1074: the given noise, then
    whatever is missing, greedily. units must be a multiple of the type's smallest value."""
    rest = units - sum(oracle.units_of_bits(type_, int(b)) for b in noise)
    parts = []
    while rest:
        part = truncate_units(type_, rest)
        assert part, "not a multiple of the type's smallest value"
        parts.append(oracle.round_units_by_integers(type_, part))
        rest -= part
        assert len(parts) < 5000, "too far away for this type"
    raw = np.concatenate([noise, np.array(parts, DTYPE[type_])]).astype(DTYPE[type_])
    g.shuffle(raw)
    return raw
