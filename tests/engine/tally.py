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

OK, EINVAL, ETYPE, EDEVICE, ENOMEM, ERANGE, EFORMAT, EUNSUPPORTED, ECOMPILE, ELOST = range(10)
STATUS = ["OK", "EINVAL", "ETYPE", "EDEVICE", "ENOMEM", "ERANGE", "EFORMAT", "EUNSUPPORTED",
          "ECOMPILE", "ELOST"]

TYPES = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"]
OPS = ["sum", "prod", "min", "max", "and", "or", "xor"]
FLOATS = ["f16", "bf16", "f32", "f64"]
INTS = TYPES[:8]
CODE = {name: i + 1 for i, name in enumerate(TYPES)}
OPCODE = {name: i + 1 for i, name in enumerate(OPS)}
SIZE = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
        "f16": 2, "bf16": 2, "f32": 4, "f64": 8}
DTYPE = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
         "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.uint16, "bf16": np.uint16,
         "f32": np.uint32, "f64": np.uint64}
ACCUMULATOR_BYTES = 304


class _As(Union):
    _fields_ = [("i8", c_int8), ("i16", c_int16), ("i32", c_int32), ("i64", c_int64),
                ("u8", c_uint8), ("u16", c_uint16), ("u32", c_uint32), ("u64", c_uint64),
                ("f16", c_uint16), ("bf16", c_uint16), ("f32", c_float), ("f64", c_double)]


class Value(Structure):
    _fields_ = [("type", c_int), ("as_", _As)]


class Options(Structure):
    _fields_ = [("fast", c_int), ("out", c_int)]


class DeviceInfo(Structure):
    _fields_ = [("spec", c_char * 64), ("name", c_char * 128), ("isa", c_char * 32),
                ("units", c_uint), ("threads", c_uint), ("memory_bytes", c_uint64)]


COMBINE = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t)


class Operator(Structure):
    _fields_ = [("combine", COMBINE), ("context", c_void_p), ("identity", c_void_p),
                ("commutative", c_int), ("source", c_char_p)]


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
c_open = _declare("open", c_int, c_char_p, POINTER(P))
c_close = _declare("close", None, P)
device_describe = _declare("device_describe", c_int, P, POINTER(DeviceInfo))
device_list = _declare("device_list", c_int, POINTER(DeviceInfo), c_size_t, POINTER(c_size_t))
device_read = _declare("device_read", c_int, P, P, c_size_t, POINTER(c_double))
c_reduce = _declare("reduce", c_int, P, c_int, c_int, P, c_size_t, POINTER(Options), POINTER(Value))
c_reduce_user = _declare("reduce_user", c_int, P, POINTER(Operator), c_int, P, c_size_t,
                         POINTER(Value))
stream_create = _declare("stream_create", c_int, P, c_int, c_int, POINTER(Options), POINTER(P))
stream_create_user = _declare("stream_create_user", c_int, P, POINTER(Operator), c_int, POINTER(P))
stream_feed = _declare("stream_feed", c_int, P, P, c_size_t)
stream_result = _declare("stream_result", c_int, P, POINTER(Value))
stream_destroy = _declare("stream_destroy", None, P)
accumulator_create = _declare("accumulator_create", c_int, POINTER(P))
accumulator_destroy = _declare("accumulator_destroy", None, P)
accumulator_clear = _declare("accumulator_clear", None, P)
accumulator_add = _declare("accumulator_add", c_int, P, P, c_int, P, c_size_t)
accumulator_merge = _declare("accumulator_merge", c_int, P, P)
accumulator_count = _declare("accumulator_count", c_uint64, P)
accumulator_round = _declare("accumulator_round", c_int, P, c_int, POINTER(Value))
accumulator_save = _declare("accumulator_save", None, P, P)
accumulator_load = _declare("accumulator_load", c_int, P, c_size_t, POINTER(P))

_UNTOUCHED_TYPE = 0x5A5A5A5A
_UNTOUCHED = 0xA5A5A5A5A5A5A5A5


def fresh_value():
    value = Value()
    value.type = _UNTOUCHED_TYPE
    value.as_.u64 = _UNTOUCHED
    return value


def check_failed(status, value=None):
    """What the header says of every failed call."""
    assert 0 < status < len(STATUS), f"status {status} is none of the header's"
    text = error()
    assert text, f"{STATUS[status]} left tally_error() empty"
    assert b"\n" not in text and text.strip() == text, f"tally_error() is not one line: {text!r}"
    if value is not None:
        assert value.type == _UNTOUCHED_TYPE and value.as_.u64 == _UNTOUCHED, \
            f"{STATUS[status]} wrote to its output ({text.decode()})"


def outcome(status, value):
    """(type name, bits) of a success, the status' name of a failure."""
    if status != OK:
        check_failed(status, value)
        return STATUS[status]
    assert 1 <= value.type <= len(TYPES), f"a result of type {value.type}"
    name = TYPES[value.type - 1]
    return name, value.as_.u64 & ((1 << (8 * SIZE[name])) - 1)


def make_value(name, bits):
    value = Value()
    value.type = CODE[name]
    value.as_.u64 = bits
    return value


def options(fast=False, out=None):
    if not fast and out is None:
        return None
    return byref(Options(1 if fast else 0, CODE[out] if out else 0))


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


def reduce(device, op, type_, address, n, fast=False, out=None):
    value = fresh_value()
    status = c_reduce(device.handle, OPCODE[op], CODE[type_], address, n, options(fast, out), value)
    return outcome(status, value)


def reduce_array(device, op, type_, array, **kw):
    return reduce(device, op, type_, array.ctypes.data, len(array), **kw)


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
    value = fresh_value()
    status = c_reduce_user(device.handle, byref(operator.struct), CODE[type_], address, n, value)
    return outcome(status, value)


class Stream:
    def __init__(self, device, op, type_, fast=False, out=None):
        handle = P()
        self._keep = op
        if isinstance(op, UserOperator):
            status = stream_create_user(device.handle, byref(op.struct), CODE[type_], byref(handle))
        else:
            status = stream_create(device.handle, OPCODE[op], CODE[type_], options(fast, out),
                                   byref(handle))
        if status != OK:
            check_failed(status)
            assert handle.value is None, "a failed create wrote its output"
            raise ValueError(STATUS[status])
        self.handle = handle.value

    def feed(self, address, n):
        status = stream_feed(self.handle, address, n)
        assert status == OK, f"feed: {STATUS[status]}: {error().decode()}"

    def result(self):
        value = fresh_value()
        return outcome(stream_result(self.handle, value), value)

    def close(self):
        stream_destroy(self.handle)
        self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Accumulator:
    def __init__(self, saved=None):
        handle = P()
        if saved is None:
            status = accumulator_create(byref(handle))
        else:
            room = (c_ubyte * max(1, len(saved))).from_buffer_copy(saved or b"\0")
            status = accumulator_load(room, len(saved), byref(handle))
        if status != OK:
            check_failed(status)
            assert handle.value is None, "a failed create or load wrote its output"
            raise ValueError(STATUS[status])
        self.handle = handle.value

    def add(self, type_, array, device=NOBODY):
        assert array.dtype == DTYPE[type_] and array.flags.c_contiguous
        status = accumulator_add(self.handle, device.handle, CODE[type_], array.ctypes.data,
                                 len(array))
        assert status == OK, f"add: {STATUS[status]}: {error().decode()}"
        return self

    def add_at(self, type_, address, n, device=NOBODY):
        return accumulator_add(self.handle, device.handle, CODE[type_], address, n)

    def merge(self, other):
        assert accumulator_merge(self.handle, other.handle) == OK
        return self

    def round(self, type_):
        value = fresh_value()
        return outcome(accumulator_round(self.handle, CODE[type_], value), value)

    def save(self):
        room = (c_ubyte * (ACCUMULATOR_BYTES + 16))(*([0xCC] * (ACCUMULATOR_BYTES + 16)))
        accumulator_save(self.handle, room)
        saved = bytes(room)
        assert saved[ACCUMULATOR_BYTES:] == b"\xcc" * 16, "save() wrote past its bytes"
        return saved[:ACCUMULATOR_BYTES]

    def count(self):
        return accumulator_count(self.handle)

    def clear(self):
        accumulator_clear(self.handle)

    def close(self):
        accumulator_destroy(self.handle)
        self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.handle:
            self.close()

    def __del__(self):
        if getattr(self, "handle", None):
            self.close()
