"""A thin ctypes binding for reductions in parts: problems, shapes, and the same by tally_reduce() alone.

Elements are numpy arrays of raw bits or of plain numbers, whose bytes are what counts; results are numpy arrays
of raw bits. The library is the one that TALLY_LIB names, else build/lib/libtally.so of this repository.
"""

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_double, c_int, c_size_t, c_uint, c_uint32,
                    c_uint64, c_ubyte, c_void_p)

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
lib = ctypes.CDLL(os.environ.get("TALLY_LIB") or os.path.join(ROOT, "build", "lib", "libtally.so"))

STATUS = ["OK", "EINVAL", "ETYPE", "EDEVICE", "ENOMEM", "ERANGE", "EFORMAT", "EUNSUPPORTED", "ECOMPILE", "ELOST", "ESTOPPED"]
TYPES = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"]
FLOATS, INTS = TYPES[8:], TYPES[:8]
OPS = ["sum", "prod", "min", "max", "and", "or", "xor", "mean", "var", "std", "norm1", "norm2", "norminf", "sumsq",
       "dot", "argmin", "argmax", "minmax", "count", "nans", "nonzero", "any", "all", "describe", "user"]
DTYPE = dict(i8=np.int8, i16=np.int16, i32=np.int32, i64=np.int64, u8=np.uint8, u16=np.uint16, u32=np.uint32,
             u64=np.uint64, f16=np.float16, bf16=np.uint16, f32=np.float32, f64=np.float64)
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SIZE = {t: np.dtype(d).itemsize for t, d in DTYPE.items()}

COMBINE = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t)


class Operator(Structure):
    _fields_ = [("combine", COMBINE), ("context", c_void_p), ("identity", c_void_p), ("commutative", c_int),
                ("source", c_char_p)]


class _Problem(Structure):
    _fields_ = [("op", c_int), ("type", c_int), ("out", c_int), ("fast", c_int), ("ddof", c_double),
                ("about", c_int), ("mean", c_double * 2), ("is_complex", c_int), ("user", POINTER(Operator)), ("also", c_int * 8),
                ("skip_nan", c_int)]


class Value(Structure):
    _fields_ = [("type", c_int), ("bits", c_uint64)]


class _Shape(Structure):
    _fields_ = [("cut", c_int), ("dims", c_uint), ("length", c_void_p), ("x_stride", c_void_p),
                ("y_stride", c_void_p), ("axes", c_uint32), ("out_stride", c_void_p), ("n", c_size_t),
                ("count", c_size_t), ("offsets", c_void_p), ("offsets_type", c_int), ("ids", c_void_p),
                ("ids_type", c_int), ("skip_outside", c_int), ("sorted", c_int), ("mask", c_void_p),
                ("mask_stride", c_void_p), ("means", c_void_p)]


lib.tally_error.restype = lib.tally_error_result.restype = c_char_p
lib.tally_error_result.argtypes = [POINTER(c_size_t)]
lib.tally_problem_values.argtypes = [POINTER(_Problem), POINTER(c_size_t)]
lib.tally_problem_value_type.argtypes = [POINTER(_Problem), c_size_t]
lib.tally_reduce.argtypes = [c_void_p, POINTER(_Problem), c_void_p, c_void_p, c_size_t, POINTER(Value)]
lib.tally_reduce_shaped.argtypes = [c_void_p, POINTER(_Problem), POINTER(_Shape), c_void_p, c_void_p,
                                    POINTER(c_void_p)]
lib.tally_open.argtypes = [c_char_p, POINTER(c_void_p)]
lib.tally_close.argtypes = [c_void_p]
lib.tally_close.restype = None
lib.tally_shape_results.argtypes = [POINTER(_Shape), POINTER(c_size_t)]


class Failed(Exception):
    def __init__(self, status):
        self.status = STATUS[status]
        self.line = lib.tally_error().decode()
        assert self.line and "\n" not in self.line
        number = c_size_t()
        words = lib.tally_error_result(byref(number))
        self.result = None if words is None else number.value  # that the line is about
        assert words is None or self.line == f"result {number.value}{words.decode()}"
        assert lib.tally_error_result(None) is None
        super().__init__(f"{self.status}: {self.line}")


def check(status):
    if status:
        raise Failed(status)


def open_device(spec):
    device = c_void_p()
    check(lib.tally_open(spec.encode(), byref(device)))
    return device


def close_device(device):
    lib.tally_close(device)


class Problem:
    def __init__(self, op, type, out=None, fast=False, ddof=0, also=(), user=None, about=None, is_complex=False,
                 skip_nan=False):
        self.op, self.type, self.user = op, type, user
        self.c = _Problem(OPS.index(op) + 1, TYPES.index(type) + 1, TYPES.index(out) + 1 if out else 0, fast, ddof,
                          is_complex=is_complex, skip_nan=skip_nan, user=ctypes.pointer(user) if user else None,
                          also=(c_int * 8)(*[OPS.index(o) + 1 for o in also]))
        if about is not None:
            self.c.about, self.c.mean[:] = 1, (about.real, about.imag)
        count = c_size_t()
        check(lib.tally_problem_values(self.c, byref(count)))
        self.types = [TYPES[lib.tally_problem_value_type(self.c, v) - 1] for v in range(count.value)]

    def two(self):
        return self.c.is_complex or "dot" in [self.op] + [OPS[o - 1] for o in self.c.also if o]


def with_payloads(type, x, rng):
    """The same elements, where each NaN has a sign and a payload of its own; half of them are signalling."""
    bits = x.view(BITS[SIZE[type]]).copy()
    mantissa = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[type]
    infinity = ((1 << 8 * SIZE[type] - 1 - mantissa) - 1) << mantissa
    nan = (bits & np.array(infinity + (1 << mantissa) - 1, bits.dtype)) > infinity
    count = int(nan.sum())
    sign = rng.integers(0, 2, count).astype(np.uint64) << np.uint64(8 * SIZE[type] - 1)
    payload = rng.integers(1, 1 << mantissa, count).astype(np.uint64)
    bits[nan] = (sign | np.uint64(infinity) | payload).astype(bits.dtype)
    return bits.view(x.dtype)


def operator(type, function, identity, commutative):
    """A user's operator from a function of two arrays."""
    dtype = DTYPE[type]

    def combine(context, left, right, out, count):
        def array(p):
            return np.frombuffer((c_ubyte * (count * SIZE[type])).from_address(p), dtype=dtype)
        array(out)[:] = function(array(left), array(right))
    keep = (np.array([identity], dtype=dtype), COMBINE(combine))
    op = Operator(keep[1], None, keep[0].ctypes.data, commutative, None)
    op.keep = keep
    return op


def address(array):
    return None if array is None else array.__array_interface__["data"][0]


def reduce(problem, x, y=None, device=None):
    """The values of x's elements: [(type, bits)], type None where there is no such value."""
    x = np.ascontiguousarray(x)
    y = None if y is None else np.ascontiguousarray(y)
    values = (Value * len(problem.types))()
    check(lib.tally_reduce(device, problem.c, address(x), address(y), x.size, values))
    return [(TYPES[v.type - 1], v.bits & (1 << 8 * SIZE[TYPES[v.type - 1]]) - 1) if v.type else None for v in values]


_reduce_at = CFUNCTYPE(c_int, c_void_p, POINTER(_Problem), c_void_p, c_void_p, c_size_t, c_void_p)(("tally_reduce", lib))


def reduce_each(problem, parts, other=None):
    """Each part's values, as tally_reduce() has them of that part alone: arrays (exists, bits), one row for a value. A part
    that it refuses has none. `other`: the parts of y."""
    def laid(parts):
        if isinstance(parts, np.ndarray):
            whole, lengths = np.ascontiguousarray(parts), np.full(len(parts), parts[:1].size)
        else:
            whole, lengths = np.concatenate([np.empty(0, DTYPE[problem.type]), *parts]), np.array([p.size for p in parts], np.int64)
        return whole, lengths, (address(whole) + (np.cumsum(lengths) - lengths) * whole.itemsize).tolist()
    whole, lengths, starts = laid(parts)
    kept, _, others = (None, None, [None] * len(starts)) if other is None else laid(other)
    values = np.zeros((len(starts), len(problem.types)), np.dtype([("type", np.int32), ("bits", np.uint64)], align=True))
    places = [address(values) + i * len(problem.types) * values.itemsize for i in range(len(starts))]
    status = [_reduce_at(None, problem.c, x, y, n, v) for x, y, n, v in zip(starts, others, lengths.tolist(), places)]
    exists = (values["type"] != 0) & (np.array(status).reshape(-1, 1) == 0)
    masks = [[(1 << 8 * SIZE[t]) - 1] for t in problem.types]
    return exists.T, values["bits"].T & np.array(masks, np.uint64)


def strides(array):
    assert all(s % array.itemsize == 0 for s in array.strides)
    return np.array([s // array.itemsize for s in array.strides], dtype=np.int64)


def outputs(problem, count, fill=0xA5):
    out = [np.frombuffer(bytearray([fill]) * (count * SIZE[t]), dtype=BITS[SIZE[t]]) for t in problem.types]
    return out, (c_void_p * len(out))(*[address(o) for o in out])


def run(problem, shape, x, y, count, device=None, places=None):
    """Results as bits. After a failure, what was left in the outputs is in the exception."""
    out, pointers = outputs(problem, count if places is None else places)
    for p, o in zip(range(len(out)), out):
        if o.size == 0:
            pointers[p] = 1
    status = lib.tally_reduce_shaped(device, problem.c, shape, address(x), address(y), pointers)
    if status:
        failed = Failed(status)
        failed.out = out
        raise failed
    return out


def axes_shape(x, axes, y=None, mask=None, out_stride=None):
    """The shape of an array of any strides; keeps what it points to."""
    keep = [np.array(x.shape, dtype=np.uint64), strides(x), None if y is None else strides(y),
            None if mask is None else strides(mask), None if out_stride is None else np.array(out_stride, np.int64)]
    bits = sum(1 << (a % x.ndim) for a in axes)
    shape = _Shape(cut=1, dims=x.ndim, length=address(keep[0]), x_stride=address(keep[1]), y_stride=address(keep[2]),
                   axes=bits, out_stride=address(keep[4]), mask=address(mask), mask_stride=address(keep[3]))
    shape.keep = keep + [mask]
    return shape


def reduce_axes(problem, x, axes, y=None, mask=None, device=None):
    kept = [x.shape[d] for d in range(x.ndim) if d not in [a % x.ndim for a in axes]]
    count = int(np.prod(kept, dtype=np.int64))
    return run(problem, axes_shape(x, axes, y, mask), x, y, count, device)


def parts_of_axes(x, axes):
    """The elements of each result, in C order."""
    axes = [a % x.ndim for a in axes]
    kept = [d for d in range(x.ndim) if d not in axes]
    count = int(np.prod([x.shape[d] for d in kept], dtype=np.int64))
    return np.ascontiguousarray(x.transpose(kept + sorted(axes))).reshape(count, -1) if x.size else \
        np.empty((count, 0), x.dtype)


def segments_shape(n, offsets=None, count=None, mask=None):
    kind = 0 if offsets is None else TYPES.index({4: "i32", 8: "i64"}[offsets.itemsize]) + 1
    shape = _Shape(cut=2, n=n, count=count if offsets is None else len(offsets) - 1, offsets=address(offsets),
                   offsets_type=kind, mask=address(mask))
    shape.keep = [offsets, mask]
    return shape


def groups_shape(n, ids, groups, mask=None, skip=False, is_sorted=False):
    kind = {"int": "i", "uin": "u"}[ids.dtype.name[:3]] + str(8 * ids.itemsize)
    shape = _Shape(cut=3, n=n, count=groups, ids=address(ids), ids_type=TYPES.index(kind) + 1, skip_outside=skip,
                   sorted=is_sorted, mask=address(mask))
    shape.keep = [ids, mask]
    return shape


def reduce_segments(problem, x, offsets=None, y=None, mask=None, device=None, count=None):
    shape = segments_shape(x.size, offsets, count, mask)
    return run(problem, shape, x, y, shape.count, device)


def reduce_groups(problem, x, ids, groups, y=None, mask=None, device=None, skip=False, is_sorted=False):
    return run(problem, groups_shape(x.size, ids, groups, mask, skip, is_sorted), x, y, groups, device)


def along(x, axis, shape, y=None, mask=None, out_stride=None):
    """Segments or groups of a 1-D shape, along an axis of an array of any strides."""
    of = axes_shape(x, [axis], y, mask, out_stride)
    for field in ("dims", "length", "x_stride", "y_stride", "axes", "out_stride", "mask", "mask_stride"):
        setattr(shape, field, getattr(of, field))
    shape.n = 0
    shape.keep = shape.keep + of.keep
    return shape


def results_along(x, axis, count):
    """The shape of such results."""
    axis %= x.ndim
    return x.shape[:axis] + (count,) + x.shape[axis + 1:]


class Groups:
    """The states of all groups."""

    def __init__(self, problem, count, handle=None):
        self.problem, self.count = problem, count
        self.handle = handle or c_void_p()
        if not handle:
            check(lib.tally_groups_create(byref(problem.c), c_size_t(count), byref(self.handle)))

    def feed(self, x, ids, y=None, mask=None, skip=False, device=None):
        shape = groups_shape(x.size, ids, self.count, mask, skip)
        check(lib.tally_groups_feed(self.handle, device, byref(shape), c_void_p(address(x)), c_void_p(address(y))))

    def merge(self, right):
        check(lib.tally_groups_merge(self.handle, right.handle))

    def counts(self):
        counts = np.empty(self.count, np.uint64)
        check(lib.tally_groups_counts(self.handle, c_void_p(address(counts))))
        return counts

    def add_state(self, group, state):
        check(lib.tally_groups_add_state(self.handle, c_size_t(group), state.handle))

    def grow(self, count):
        check(lib.tally_groups_grow(self.handle, c_size_t(count)))
        self.count = count

    def index_within(self):
        check(lib.tally_groups_index_within(self.handle))
        return self

    def state(self, group):
        """One group's state; the caller destroys it."""
        state = c_void_p()
        check(lib.tally_groups_state(self.handle, c_size_t(group), byref(state)))
        return state

    def values(self):
        out, pointers = outputs(self.problem, self.count)
        check(lib.tally_groups_values(self.handle, pointers))
        return out

    def counts(self):
        """How many elements each group has."""
        count = np.zeros(self.count, np.uint64)
        check(lib.tally_groups_counts(self.handle, c_void_p(address(count))))
        return count

    def save(self):
        lib.tally_groups_size.restype = c_size_t
        size = lib.tally_groups_size(self.handle)
        room = (c_ubyte * size)()
        check(lib.tally_groups_save(self.handle, room, c_size_t(size)))
        return bytes(room)

    def words(self):
        """Those that additions combine; None where there are none."""
        lib.tally_groups_words.restype = c_size_t
        words = np.zeros(lib.tally_groups_words(self.handle), np.int64)
        if not words.size:
            return None
        check(lib.tally_groups_to_words(self.handle, c_void_p(address(words))))
        return words

    def from_words(self, words):
        check(lib.tally_groups_from_words(self.handle, c_void_p(address(words))))

    @staticmethod
    def load(problem, count, saved, given=True):
        handle = c_void_p()
        check(lib.tally_groups_load(saved, c_size_t(len(saved)), byref(problem.c) if given else None, byref(handle)))
        return Groups(problem, count, handle)

    def __del__(self):
        if self.handle:
            lib.tally_groups_destroy(self.handle)
