"""One number: converted to another type, rounded once, and printed exactly, against Python's integers and fractions."""

import ctypes
from fractions import Fraction

import numpy as np
import pytest

import data
import oracle
import tally
from tally import CODE, DTYPE, FLOATS, INTS, SIZE, TYPES, State

ROOM = 2901


def value_of(type_, bits):
    """A finite number, exactly; None for a NaN or an infinity."""
    if type_ in INTS:
        low, high = oracle.integer_range(type_)
        return Fraction(bits if bits <= high else bits + 2 * low)
    if bits & (oracle.SIGN[type_] - 1) >= oracle.INF[type_]:
        return None
    return Fraction(oracle.units_of_bits(type_, bits), 1 << oracle.UNIT)


def converted(type_, bits, to):
    """What the conversion must be: (type, bits), or the name of a status."""
    exact = value_of(type_, bits)
    if to in FLOATS:
        if exact is None:
            is_nan = bits & (oracle.SIGN[type_] - 1) > oracle.INF[type_]
            negative = 0 if is_nan or not bits & oracle.SIGN[type_] else oracle.SIGN[to]
            return to, oracle.NAN[to] if is_nan else oracle.INF[to] | negative
        if exact == 0:
            return to, oracle.SIGN[to] if type_ in FLOATS and bits else 0
        return to, oracle.round_ratio(to, exact.numerator, exact.denominator)
    if exact is None:
        return "ERANGE"
    low, high = oracle.integer_range(to)
    whole = round(exact)  # to even
    return (to, whole & ((1 << 8 * SIZE[to]) - 1)) if low <= whole <= high else "ERANGE"


def near_integers(g, type_):
    """Floats at the edges of integers and of their types, and a last bit beside them."""
    numbers = [0.5, 1.5, 2.5, 127.5, 128.5, 254.5, 255.5, 32767.5, 65535.5, 2147483647.5, 4294967295.5]
    numbers += [2.0**k + d for k in (7, 8, 15, 16, 31, 32, 53, 63, 64) for d in (-1, -0.5, 0, 0.5)] + [2.0**k for k in range(-30, 70)]
    bits = data.floats(type_, np.array(numbers + [-x for x in numbers])).astype(np.uint64)
    beside = bits + g.integers(0, 3, len(bits)).astype(np.uint64) - np.uint64(1)
    return np.concatenate([bits, beside]).astype(DTYPE[type_])


def midpoints(g, to, n):
    """Doubles half way between neighbours of a type, and a last bit beside them."""
    low = g.integers(0, oracle.INF[to] - 1, n)
    middle = np.array([float(value_of(to, int(b)) + value_of(to, int(b) + 1)) / 2 for b in low])
    return np.concatenate([middle, np.nextafter(middle, 0), np.nextafter(middle, np.inf)]).view(np.uint64)


@pytest.mark.parametrize("type_", TYPES)
def test_conversions_round_once(type_):
    g = data.rng(f"convert-{type_}")
    raw = [g.integers(0, 1 << 63, 150).astype(np.uint64).astype(DTYPE[type_]),
           (g.integers(0, 1 << 63, 50).astype(np.uint64) >> g.integers(0, 64, 50).astype(np.uint64)).astype(DTYPE[type_]),
           np.array([0, 1, -1, -1 << (8 * SIZE[type_] - 1), (1 << (8 * SIZE[type_] - 1)) - 1]).astype(np.uint64).astype(DTYPE[type_])
           if type_ != "u64" else np.array([0, 1, (1 << 64) - 1, 1 << 63], np.uint64)]
    if type_ in FLOATS:
        raw += [near_integers(g, type_), np.array([oracle.INF[type_], oracle.INF[type_] | oracle.SIGN[type_], oracle.NAN[type_]]).astype(DTYPE[type_])]
    if type_ == "f64":
        raw += [midpoints(g, to, 40) for to in ("f16", "bf16", "f32")]
    mask = (1 << 8 * SIZE[type_]) - 1
    for bits in (int(b) & mask for b in np.concatenate(raw)):
        given = tally.make_value(type_, bits)
        for to in TYPES:
            out = tally.fresh_value()
            status = tally.value_convert(given, CODE[to], out)
            assert tally.outcome(status, out) == converted(type_, bits, to), (type_, hex(bits), to, data.SEED)
        in_place = tally.make_value(type_, bits)
        assert tally.value_convert(in_place, CODE["f32"], in_place) == tally.OK
        assert tally.bits_of_value(in_place) == converted(type_, bits, "f32")


def digits_of(state, i=0):
    """The printed value, or the name of a status."""
    length = ctypes.c_size_t(77)
    status = tally.state_print(state.handle, i, None, 0, length)
    if status != tally.OK:
        tally.check_failed(status)
        assert length.value == 77
        return tally.STATUS[status]
    text = ctypes.create_string_buffer(b"\xa5" * ROOM, ROOM)
    assert tally.state_print(state.handle, i, text, length.value, length) == tally.EINVAL
    assert text.raw == b"\xa5" * ROOM, "wrote where there is no room"
    assert tally.state_print(state.handle, i, text, length.value + 1, length) == tally.OK
    assert len(text.value) == length.value and text.raw[length.value + 1:].strip(b"\xa5") == b""
    return text.value.decode()


def written(exact):
    """A fraction whose denominator is a power of two, in decimal digits."""
    places = exact.denominator.bit_length() - 1
    digits = str(abs(exact.numerator) * 5**places).rjust(places + 1, "0")
    sign = "-" if exact < 0 else ""
    return sign + (digits[:-places] + "." + digits[-places:] if places else digits)


OPERATORS = {"sum": lambda x, y: x, "norm1": lambda x, y: abs(x), "sumsq": lambda x, y: x * x, "dot": lambda x, y: x * y}


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("type_", TYPES)
def test_digits_are_exact(op, type_):
    g = data.rng(f"digits-{op}-{type_}")
    kinds = [lambda n: data.random_bits(g, type_, n)]
    if type_ in FLOATS:
        kinds = [lambda n: data.finite_bits(g, type_, n), lambda n: data.subnormals(g, type_, n),
                 lambda n: data.floats(type_, g.integers(-1000, 1000, n) / 8)]
    for make in kinds:
        for n in (0, 1, 2, 50):
            x, y = make(n).astype(DTYPE[type_]), make(n).astype(DTYPE[type_])
            mask = (1 << 8 * SIZE[type_]) - 1
            pairs = [(value_of(type_, int(a) & mask), value_of(type_, int(b) & mask)) for a, b in zip(x, y)]
            exact = sum((OPERATORS[op](a, b) for a, b in pairs), Fraction(0))
            state = State(op, type_).feed(x, y if op == "dot" else None)
            assert digits_of(state) == written(exact), (n, data.SEED)
            if op == "sum":
                assert state.negate() == "OK"
                assert digits_of(state) == written(-exact)


def test_digits_of_the_widest_sums():
    least, most = np.array([1], np.uint64), np.array([0x7fefffffffffffff], np.uint64)
    both = np.concatenate([least, most])
    for op, power in (("sum", 1), ("sumsq", 2)):
        exact = sum(value_of("f64", int(b))**power for b in both)
        assert digits_of(State(op, "f64").feed(both)) == written(exact)
        assert len(written(exact)) < ROOM
    negative = State("sum", "i64").feed(np.full(3, -1 << 63, np.int64))
    assert digits_of(negative) == str(-3 << 63)


def test_digits_of_nan_and_infinities():
    inf, nan = 0x7ff0000000000000, 0x7ff8000000000000
    minus = inf | 1 << 63
    for bits, text in (([inf], "inf"), ([minus, 0], "-inf"), ([inf, minus], "nan"), ([nan, inf], "nan"), ([1 << 63], "0")):
        assert digits_of(State("sum", "f64").feed(np.array(bits, np.uint64))) == text


def test_digits_of_one_value_among_several():
    x = np.array([3, 4, 5], np.int64)
    state = State("describe", "i64", also=["sumsq"]).feed(x)
    texts = [digits_of(state, i) for i in range(state.values)]
    assert texts == ["EUNSUPPORTED"] * 6 + ["12"] + ["EUNSUPPORTED"] * 2 + ["50"]
    assert digits_of(state, state.values) == "EINVAL"
    assert digits_of(State("sum", "f64", fast=True).feed(np.zeros(2, np.uint64))) == "EUNSUPPORTED"
