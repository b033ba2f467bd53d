"""A thin ctypes binding to libtally: the public header, one Python name for each C name.

Everything is handled as bits. An array is a numpy array of raw bits (uint16 for f16 and bf16, uint32
for f32, uint64 for f64, the plain integer type for integers), a result is an unsigned integer, so
that no conversion on the way can hide a wrong bit. Every call that fails is checked on the spot: its
outputs must be untouched and tally_error() must hold one line of text.

The library is the one that TALLY_LIB names, else build/lib/libtally.so of this repository.
"""

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, Union, byref, c_char, c_char_p, c_double, c_float,
                    c_int, c_int8, c_int16, c_int32, c_int64, c_size_t, c_ubyte, c_uint8, c_uint16,
                    c_uint32, c_uint64, c_uint, c_void_p)

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATH = os.environ.get("TALLY_LIB") or os.path.join(ROOT, "build", "lib", "libtally.so")
lib = ctypes.CDLL(PATH)

OK, EINVAL, ETYPE, EDEVICE, ENOMEM, ERANGE, EFORMAT, EUNSUPPORTED, ECOMPILE, ELOST, ESTOPPED = range(11)
STATUS = ["OK", "EINVAL", "ETYPE", "EDEVICE", "ENOMEM", "ERANGE", "EFORMAT", "EUNSUPPORTED",
          "ECOMPILE", "ELOST", "ESTOPPED"]

TYPES = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"]
OPS = ["sum", "prod", "min", "max", "and", "or", "xor"]
STATISTICS = ["mean", "var", "std", "norm1", "norm2", "norminf", "sumsq", "dot", "argmin", "argmax",
              "minmax", "count", "nans", "nonzero", "any", "all", "describe"]
LISTS = {"minmax": ["min", "max"],
         "describe": ["count", "nans", "min", "max", "argmin", "argmax", "sum", "mean", "std"]}
FLOATS = ["f16", "bf16", "f32", "f64"]
INTS = TYPES[:8]
CODE = {name: i + 1 for i, name in enumerate(TYPES)}
OPCODE = {name: i + 1 for i, name in enumerate(OPS + STATISTICS + ["user"])}
SIZE = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
        "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
DTYPE = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
         "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.uint16, "bf16": np.uint16,
         "f32": np.uint32, "f64": np.uint64}
VALUES_MAX = 32


class _As(Union):
    _fields_ = [("i8", c_int8), ("i16", c_int16), ("i32", c_int32), ("i64", c_int64),
                ("u8", c_uint8), ("u16", c_uint16), ("u32", c_uint32), ("u64", c_uint64),
                ("f16", c_uint16), ("bf16", c_uint16), ("f32", c_float), ("f64", c_double)]


class Value(Structure):
    _fields_ = [("type", c_int), ("as_", _As)]


class DeviceInfo(Structure):
    _fields_ = [("spec", c_char * 64), ("name", c_char * 128), ("isa", c_char * 32),
                ("units", c_uint), ("threads", c_uint), ("memory_bytes", c_uint64)]


COMBINE = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t)


class Operator(Structure):
    _fields_ = [("combine", COMBINE), ("context", c_void_p), ("identity", c_void_p),
                ("commutative", c_int), ("source", c_char_p)]


class Problem(Structure):
    _fields_ = [("op", c_int), ("type", c_int), ("out", c_int), ("fast", c_int), ("ddof", c_double),
                ("about", c_int), ("mean", c_double * 2), ("is_complex", c_int), ("user", POINTER(Operator)), ("also", c_int * 8),
                ("skip_nan", c_int)]


def _declare(name, result, *arguments):
    function = getattr(lib, "tally_" + name)
    function.restype = result
    function.argtypes = list(arguments)
    return function


P = c_void_p
version = _declare("version", c_char_p)
status_text = _declare("status_text", c_char_p, c_int)
type_name = _declare("type_name", c_char_p, c_int)
type_size = _declare("type_size", c_size_t, c_int)
op_name = _declare("op_name", c_char_p, c_int)
type_parse = _declare("type_parse", c_int, c_char_p, POINTER(c_int))
op_parse = _declare("op_parse", c_int, c_char_p, POINTER(c_int))
error = _declare("error", c_char_p)
value_bits = _declare("value_bits", c_uint64, POINTER(Value))
value_double = _declare("value_double", c_double, POINTER(Value))
value_print = _declare("value_print", c_size_t, POINTER(Value), P, c_size_t)
value_convert = _declare("value_convert", c_int, POINTER(Value), c_int, POINTER(Value))
c_open = _declare("open", c_int, c_char_p, POINTER(P))
c_close = _declare("close", None, P)
device_describe = _declare("device_describe", c_int, P, POINTER(DeviceInfo))
device_list = _declare("device_list", c_int, POINTER(DeviceInfo), c_size_t, POINTER(c_size_t))
device_read = _declare("device_read", c_int, P, P, c_size_t, POINTER(c_double))
problem_values = _declare("problem_values", c_int, POINTER(Problem), POINTER(c_size_t))
problem_value_op = _declare("problem_value_op", c_int, POINTER(Problem), c_size_t)
c_reduce = _declare("reduce", c_int, P, POINTER(Problem), P, P, c_size_t, POINTER(Value))
resident_copy = _declare("resident_copy", c_int, P, P, P, c_size_t)
reduce_resident = _declare("reduce_resident", c_int, P, POINTER(Problem), P, P, c_size_t,
                           POINTER(Value))
device_time = _declare("device_time", c_int, P, POINTER(Problem), P, P, c_size_t, POINTER(Value),
                       POINTER(c_double))
state_create = _declare("state_create", c_int, POINTER(Problem), POINTER(P))
state_copy = _declare("state_copy", c_int, P, POINTER(P))
state_destroy = _declare("state_destroy", None, P)
state_clear = _declare("state_clear", None, P)
state_begin_at = _declare("state_begin_at", c_int, P, c_uint64)
state_feed = _declare("state_feed", c_int, P, P, P, P, c_size_t)
state_merge = _declare("state_merge", c_int, P, P)
state_subtract = _declare("state_subtract", c_int, P, P)
state_negate = _declare("state_negate", c_int, P)
state_count = _declare("state_count", c_uint64, P)
state_value = _declare("state_value", c_int, P, POINTER(Value))
state_divided = _declare("state_divided", c_int, P, c_int64, c_int, POINTER(Value))
state_print = _declare("state_print", c_int, P, c_size_t, P, c_size_t, POINTER(c_size_t))
state_size = _declare("state_size", c_size_t, P)
state_save = _declare("state_save", c_int, P, P, c_size_t)
state_load = _declare("state_load", c_int, P, c_size_t, POINTER(Problem), POINTER(P))
state_words = _declare("state_words", c_size_t, P)
state_to_words = _declare("state_to_words", c_int, P, P)
state_from_words = _declare("state_from_words", c_int, P, P)

state_merge_words = _declare("state_merge_words", c_size_t, P)
state_to_merge_words = _declare("state_to_merge_words", c_int, P, P)
merge_words = _declare("merge_words", c_int, POINTER(Problem), P, P)

_UNTOUCHED_TYPE = 0x5A5A5A5A
_UNTOUCHED = 0xA5A5A5A5A5A5A5A5


def fresh_values(count):
    values = (Value * (count + 1))()
    for value in values:
        value.type = _UNTOUCHED_TYPE
        value.as_.u64 = _UNTOUCHED
    return values


def fresh_value():
    return fresh_values(0)[0]


def untouched(value):
    return value.type == _UNTOUCHED_TYPE and value.as_.u64 == _UNTOUCHED


def check_failed(status, value=None):
    """What the header says of every failed call."""
    assert 0 < status < len(STATUS), f"status {status} is none of the header's"
    text = error()
    assert text, f"{STATUS[status]} left tally_error() empty"
    assert b"\n" not in text and text.strip() == text, f"tally_error() is not one line: {text!r}"
    if value is not None:
        assert untouched(value), f"{STATUS[status]} wrote to its output ({text.decode()})"


def bits_of_value(value):
    assert 1 <= value.type <= len(TYPES), f"a result of type {value.type}"
    name = TYPES[value.type - 1]
    return name, value.as_.u64 & ((1 << (8 * SIZE[name])) - 1)


def outcome(status, value):
    """(type name, bits) of a success, the status' name of a failure."""
    if status != OK:
        check_failed(status, value)
        return STATUS[status]
    return bits_of_value(value)


def outcomes(status, values):
    """As outcome(), of all values that a call had room for: a list where there are several, with None
    for one that there is not. The last of `values` is there to stay untouched."""
    if status != OK:
        for value in values:
            check_failed(status, value)
        return STATUS[status]
    assert untouched(values[len(values) - 1]), "wrote past its values"
    if len(values) == 2:
        return bits_of_value(values[0])
    return [bits_of_value(v) if v.type else None for v in values[:len(values) - 1]]


def make_value(name, bits):
    value = Value()
    value.type = CODE[name]
    value.as_.u64 = bits
    return value


def problem(op, type_, out=None, fast=False, ddof=0.0, also=(), user=None, about=None, is_complex=False,
            skip_nan=False):
    """A tally_problem; `op` may be a UserOperator. What it points to stays with it."""
    if isinstance(op, UserOperator):
        op, user = "user", op
    made = Problem(OPCODE[op], CODE[type_], CODE[out] if out else 0, 1 if fast else 0, ddof)
    made.also[:len(also)] = [OPCODE[name] for name in also]
    made.is_complex, made.skip_nan = is_complex, skip_nan
    if about is not None:
        made.about, made.mean[:] = 1, (about.real, about.imag)
    if user is not None:
        made.user, made.keep = ctypes.pointer(user.struct), user
    return made


def value_count(asked):
    """How many values a problem has; 1 where it makes no sense."""
    count = c_size_t(1)
    problem_values(byref(asked), byref(count))
    assert 1 <= count.value <= VALUES_MAX
    return count.value


class Device:
    """An opened device; Device(None) is the calling thread alone."""

    def __init__(self, spec):
        self.spec, self.handle = spec, None
        if spec is not None:
            handle = P()
            status = c_open(spec.encode(), byref(handle))
            if status != OK:
                check_failed(status)
                raise LookupError(f"{STATUS[status]}: {error().decode()}")
            assert handle.value
            self.handle = handle.value

    def info(self):
        info = DeviceInfo()
        assert device_describe(self.handle, byref(info)) == OK
        return info

    def close(self):
        c_close(self.handle)
        self.handle = None

    def __repr__(self):
        return f"<{self.spec}>"


NOBODY = Device(None)


def reduce(device, op, type_, address, n, y=None, **kw):
    asked = problem(op, type_, **kw)
    values = fresh_values(value_count(asked))
    return outcomes(c_reduce(device.handle, byref(asked), address, y, n, values), values)


def reduce_array(device, op, type_, array, y=None, **kw):
    assert array.dtype == DTYPE[type_] and array.flags.c_contiguous
    if y is not None:
        assert y.dtype == array.dtype and y.flags.c_contiguous and len(y) == len(array)
    return reduce(device, op, type_, array.ctypes.data, len(array),
                  None if y is None else y.ctypes.data, **kw)


class UserOperator:
    """A numpy function of two arrays as a tally_operator. Whatever goes wrong inside the callback
    is kept in .problems, since an exception cannot cross the C frames."""

    def __init__(self, function, type_, identity_bits, commutative):
        dtype, size = DTYPE[type_], SIZE[type_]
        self.problems, self.calls = [], 0
        self._identity = np.array([identity_bits], dtype=f"u{size}")

        def combine(context, left, right, out, count):
            try:
                self.calls += 1
                assert count >= 1, "count is 0"
                assert left % size == 0 and right % size == 0 and out % size == 0, "not aligned"
                assert context == 12345, f"context is {context}"
                kind = c_char * (count * size)
                a = np.frombuffer(kind.from_address(left), dtype)
                b = np.frombuffer(kind.from_address(right), dtype)
                c = np.frombuffer(kind.from_address(out), dtype)
                with np.errstate(all="ignore"):
                    c[:] = function(a, b)
            except BaseException as e:  # noqa: B902
                self.problems.append(repr(e))

        self._combine = COMBINE(combine)
        self.struct = Operator(self._combine, 12345, self._identity.ctypes.data,
                               1 if commutative else 0)


def reduce_user(device, operator, type_, address, n):
    return reduce(device, operator, type_, address, n)


class State:
    """A tally_state. A call that must succeed does so here; what may fail says how it came out."""

    def __init__(self, op, type_, handle=None, **kw):
        self.op, self.type, self.kw = op, type_, kw
        self.problem = problem(op, type_, **kw)
        self.values = value_count(self.problem)
        if handle is None:
            made = P()
            status = state_create(byref(self.problem), byref(made))
            if status != OK:
                check_failed(status)
                assert made.value is None, "a failed create wrote its output"
                raise ValueError(STATUS[status])
            handle = made.value
        self.handle = handle

    def like(self, handle):
        return type(self)(self.op, self.type, handle, **self.kw)

    def feed_at(self, device, address, n, y=None):
        status = state_feed(self.handle, device.handle, address, y, n)
        if status != OK:
            check_failed(status)
        return STATUS[status]

    def feed(self, array, y=None, device=NOBODY):
        assert array.dtype == DTYPE[self.type] and array.flags.c_contiguous
        status = self.feed_at(device, array.ctypes.data, len(array),
                              None if y is None else y.ctypes.data)
        assert status == "OK", f"feed: {status}: {error().decode()}"
        return self

    def _say(self, status):
        if status != OK:
            check_failed(status)
        return STATUS[status]

    def try_merge(self, other):
        return self._say(state_merge(self.handle, other.handle))

    def merge(self, other):
        status = self.try_merge(other)
        assert status == "OK", f"merge: {status}: {error().decode()}"
        return self

    def subtract(self, other):
        return self._say(state_subtract(self.handle, other.handle))

    def negate(self):
        return self._say(state_negate(self.handle))

    def begin_at(self, first):
        return self._say(state_begin_at(self.handle, first))

    def value(self):
        values = fresh_values(self.values)
        return outcomes(state_value(self.handle, values), values)

    def divided(self, divisor, type_=None):
        value = fresh_value()
        code = type_ if isinstance(type_, int) else CODE[type_] if type_ else 0
        return outcome(state_divided(self.handle, divisor, code, byref(value)), value)

    def copy(self):
        made = P()
        assert state_copy(self.handle, byref(made)) == OK
        return self.like(made.value)

    def save(self):
        size = state_size(self.handle)
        assert size > 0
        room = (c_ubyte * (size + 16))(*([0xCC] * (size + 16)))
        assert state_save(self.handle, room, size) == OK
        saved = bytes(room)
        assert saved[size:] == b"\xcc" * 16, "save() wrote past its bytes"
        return saved[:size]

    def load(self, saved, given=True):
        """A new state out of saved bytes; `given`: the problem is handed over too. ValueError if not."""
        made = P()
        room = (c_ubyte * max(1, len(saved))).from_buffer_copy(saved or b"\0")
        status = state_load(room, len(saved), byref(self.problem) if given else None, byref(made))
        if status != OK:
            check_failed(status)
            assert made.value is None, "a failed load wrote its output"
            raise ValueError(STATUS[status])
        return self.like(made.value)

    def words(self):
        """The wire form, or None where there is none."""
        count = state_words(self.handle)
        if not count:
            return None
        words = np.full(count + 2, -1234567, np.int64)
        status = state_to_words(self.handle, words.ctypes.data)
        if status != OK:
            check_failed(status)
            return STATUS[status]
        assert (words[count:] == -1234567).all(), "wrote past its words"
        return words[:count].copy()

    def merge_words(self):
        """The words that merge_words() combines; or what that fails with."""
        words = np.zeros(state_merge_words(self.handle), np.int64)
        status = state_to_merge_words(self.handle, words.ctypes.data)
        return words if status == OK else self._say(status)

    def try_merge_words(self, left, right):
        """Merges left[] into right[]."""
        return self._say(merge_words(byref(self.problem), left.ctypes.data, right.ctypes.data))

    def from_words(self, words):
        words = np.ascontiguousarray(words, np.int64)
        return self._say(state_from_words(self.handle, words.ctypes.data))

    def count(self):
        return state_count(self.handle)

    def clear(self):
        state_clear(self.handle)

    def close(self):
        state_destroy(self.handle)
        self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "handle", None):
            self.close()
