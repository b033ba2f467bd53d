"""Reductions in parts of memory that lies on the device: waited for, and on queues of the caller's. The bits are those
of the calling thread, whose own tests hold it against oracles (tests/engine/test_shapes.py)."""

import ctypes
import os
import random
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_size_t, c_void_p

import numpy as np
import pytest

import shapes as t
from drawn import types_on
from native import MACHINES
from test_shapes import KINDS, elements, outcome, problems, random_view, skews

SEED = int(os.environ.get("TALLY_SEED", "1"))


class Call(Structure):
    _fields_ = [("shape", c_void_p), ("x", c_void_p), ("y", c_void_p), ("workspace", c_void_p),
                ("workspace_bytes", c_size_t), ("queue", c_void_p), ("out", POINTER(c_void_p)), ("outcome", c_void_p)]


t.lib.tally_open_in.argtypes = [c_char_p, c_void_p, POINTER(c_void_p)]
t.lib.tally_workspace_shaped.argtypes = [c_void_p, POINTER(t._Problem), c_void_p, POINTER(c_size_t)]
t.lib.tally_enqueue_shaped.argtypes = [c_void_p, POINTER(t._Problem), POINTER(Call)]
t.lib.tally_reduce_shaped_resident.argtypes = [c_void_p, POINTER(t._Problem), c_void_p, c_void_p, c_void_p,
                                               POINTER(c_void_p)]


class Place:
    """A device in the machine's context, and a queue."""

    def __init__(self, machine):
        self.machine = machine
        self.device = c_void_p()
        assert t.lib.tally_open_in(machine.spec.encode(), machine.context, byref(self.device)) == 0, t.lib.tally_error()
        self.queue = machine.queue()
        self.kept = []

    def put(self, array, room=0):
        """An array in the machine's memory, which has been used for something else before."""
        array = np.ascontiguousarray(array)
        memory = self.machine.memory(max(array.nbytes, room))
        self.kept.append((memory, array))
        if array.nbytes < room:
            self.machine.write(self.queue, memory, np.full(room, 0xA5, np.uint8))
        if array.nbytes:
            self.machine.write(self.queue, memory, array)
        return memory

    def done(self):
        for memory, _ in self.kept:
            self.machine.free(memory)
        self.kept = []

    def moved(self, shape, offsets=None, ids=None, mask=None):
        """The shape with arrays of the machine's."""
        made = t._Shape.from_buffer_copy(shape)
        made.keep = shape.keep
        made.offsets = self.put(offsets) if offsets is not None else None
        made.ids = self.put(ids) if ids is not None else None
        made.mask = self.put(mask) if mask is not None else None
        return made

    def enqueue(self, problem, shape, x, y, count, is_asked=True):
        """The results' bits, and what became of the reduction: (status, at, value), where that is asked."""
        size = c_size_t()
        t.check(t.lib.tally_workspace_shaped(self.device, problem.c, byref(shape), byref(size)))
        work = self.put(np.full(size.value, 0xA5, np.uint8))
        out = [np.full(count * t.SIZE[v] + 8, 0xA5, np.uint8) for v in problem.types]
        memory = [self.put(o) for o in out]
        told = np.full(3, 0x5A5A5A5A5A5A5A5A, np.uint64)
        telling = self.put(told)
        call = Call(ctypes.addressof(shape), x, y, work, size.value, self.queue, (c_void_p * len(memory))(*memory),
                    telling if is_asked else None)
        t.check(t.lib.tally_enqueue_shaped(self.device, problem.c, byref(call)))
        self.machine.read(self.queue, told, telling)
        for o, m in zip(out, memory):
            self.machine.read(self.queue, o, m)
            assert (o[-8:] == 0xA5).all(), "wrote past its results"
        assert told[2] == 0x5A5A5A5A5A5A5A5A
        about = int(told[1])
        return [o[:-8].tobytes() for o in out], (about & 0xffffffff, int(told[0]), about >> 32)


@pytest.fixture(scope="module", params=sorted(MACHINES))
def place(request):
    machine = MACHINES[request.param]()
    made = Place(machine)
    yield made
    t.lib.tally_close(made.device)
    machine.close()


def is_slow(place):
    return place.machine.spec.startswith("cuda")


def agree(place, problem, call, shape, x, y, count, what):
    line, want = outcome(lambda: call(None))
    x, y = place.put(x), None if y is None else place.put(y)
    got, (status, at, value) = place.enqueue(problem, shape, x, y, count)
    unasked = place.enqueue(problem, shape, x, y, count, is_asked=False)[0]
    place.done()
    assert got == want and unasked == want, what
    if line is None:
        assert (status, at, value) == (0, 0, 0xffffffff), what
    else:
        assert t.STATUS[status] in ("ERANGE", "EINVAL") and f"result {at}" in line, (what, line)


@pytest.mark.parametrize("type", t.TYPES)
def test_axes(place, type):
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    for k, problem in enumerate(py.sample(problems(type), 3 if is_slow(place) else 12)):
        for shape, axes in [((40, 4), [1]), ((4, 30), [0]), ((2, 3, 4), [0, 2]), ((0, 3), [0])]:
            x = elements(type, shape, rng, KINDS[k % len(KINDS)])
            y = elements(type, shape, rng) if problem.two() else None
            mask = (rng.random(shape) < 0.5).astype(np.uint8) if k % 2 else None
            made = place.moved(t.axes_shape(x, axes, y, mask), mask=mask)
            count = int(np.prod([n for d, n in enumerate(shape) if d not in axes]))
            agree(place, problem, lambda d: t.reduce_axes(problem, x, axes, y, mask, d), made, x, y, count,
                  f"{problem.op} of {shape} over {axes}")


@pytest.mark.parametrize("type", ["f64", "f32", "f16", "u64"])
def test_segments(place, type):
    rng, py = np.random.default_rng(SEED), random.Random(SEED)
    for n in (700, 20000):
        x = elements(type, n, rng, "wild")
        for name, offsets in py.sample(list(skews(rng, n)), 2 if is_slow(place) else 9):
            offsets = np.ascontiguousarray(offsets.astype(py.choice([np.int32, np.int64])))
            problem = t.Problem(py.choice(["sum", "argmin", "prod", "describe"]), type)
            if is_slow(place) and len(offsets) > 400:
                offsets = offsets[:400].copy()
            made = place.moved(t.segments_shape(n, offsets), offsets)
            agree(place, problem, lambda d: t.reduce_segments(problem, x, offsets, device=d), made, x, None,
                  len(offsets) - 1, f"{problem.op} of {n} in {name} segments")


def test_groups(place):
    rng = np.random.default_rng(SEED)
    n = 2000 if is_slow(place) else 30000
    for op, type, groups, kind in (("sum", "f32", 9, np.int8), ("prod", "f64", 70, np.uint16), ("argmax", "i16", 3, np.int64),
                                   ("var", "bf16", 100, np.int32)):
        x, ids = elements(type, n, rng, "wild"), rng.integers(0, groups, n).astype(kind)
        problem = t.Problem(op, type)
        for is_sorted in (False, True):
            ids = np.sort(ids) if is_sorted else ids
            made = place.moved(t.groups_shape(n, ids, groups, is_sorted=is_sorted), ids=ids)
            agree(place, problem, lambda d: t.reduce_groups(problem, x, ids, groups, device=d), made, x, None, groups, op)


def test_what_is_wrong_comes_with_the_results(place):
    x = np.ones(10)
    memory = place.put(x)
    for offsets, at in (([0, 5, 3, 7], 2), ([0, 5, 11], 2), ([-1, 5, 7], 0), ([0, 12, 3], 1)):
        offsets = np.array(offsets)
        for op in ("sum", "prod", "describe"):
            problem = t.Problem(op, "f64")
            made = place.moved(t.segments_shape(10, offsets), offsets)
            assert place.enqueue(problem, made, memory, None, len(offsets) - 1)[1] == (1, at, 0xffffffff)
    for ids, at in ([0, 1, 2, 9, 0, 0, 0, 9, 0, 0], 3), ([0, -1] * 5, 1):
        ids = np.array(ids)
        made = place.moved(t.groups_shape(10, ids, 3), ids=ids)
        assert place.enqueue(t.Problem("sum", "f64"), made, memory, None, 3)[1] == (1, at, 0xffffffff)
    falling = np.array([0, 1, 1, 0, 2, 2, 2, 2, 2, 2])
    made = place.moved(t.groups_shape(10, falling, 3, is_sorted=True), ids=falling)
    assert place.enqueue(t.Problem("sum", "f64"), made, memory, None, 3)[1] == (1, 3, 0xffffffff)
    place.done()


def test_arguments(place):
    x = np.ones((4, 4))
    shape, problem, size = t.axes_shape(x, [1]), t.Problem("sum", "f64"), c_size_t()
    t.check(t.lib.tally_workspace_shaped(place.device, problem.c, byref(shape), byref(size)))
    memory, work, out, telling = (place.put(a, size.value) for a in (x, x, x * 0, x))

    def call(work=work, bytes=size.value, out=out, telling=telling, shape=shape, x=memory):
        c = Call(ctypes.addressof(shape), x, None, work, bytes, place.queue, (c_void_p * 1)(out), telling)
        return t.STATUS[t.lib.tally_enqueue_shaped(place.device, problem.c, byref(c))]
    assert call() == "OK"
    assert call(bytes=size.value - 1) == "EINVAL" and b"workspace" in t.lib.tally_error()
    assert call(work=None) == "EINVAL" and call(out=None) == "EINVAL"
    assert call(x=None) == "EINVAL"
    assert call(shape=t._Shape(cut=9)) == "EINVAL"
    assert t.STATUS[t.lib.tally_workspace_shaped(None, problem.c, byref(shape), byref(size))] == "EUNSUPPORTED"
    many = t.groups_shape(4, np.zeros(4, np.int64), (1 << 32) - 1)
    for least, is_sorted, want in ((0, 0, "EUNSUPPORTED"), (1, 0, "OK"), (0, 1, "OK")):
        many.count, many.sorted = (1 << 32) - 1 - least, is_sorted
        assert t.STATUS[t.lib.tally_workspace_shaped(place.device, problem.c, byref(many), byref(size))] == want
        assert want == "OK" or b"promise it" in t.lib.tally_error()
    if place.machine.spec.startswith("opencl"):
        assert call(shape=t.axes_shape(x[::-1], [1])) == "EINVAL" and b"before the start" in t.lib.tally_error()
    else:
        assert call(x=memory + 1) == "EINVAL"
    scratch = np.zeros(16, np.uint64)
    place.machine.read(place.queue, scratch, out)
    assert list(scratch[:4].view(np.float64)) == [4.0] * 4
    other = place.put(x * 0)
    assert call(telling=None, out=other) == "OK"
    place.machine.read(place.queue, scratch, other)
    assert list(scratch[:4].view(np.float64)) == [4.0] * 4
    place.done()


def test_resident(place):
    """A CPU behind OpenCL reads the host's memory; CUDA has addresses of its own."""
    py, rng = random.Random(SEED), np.random.default_rng(SEED)
    on_host = place.machine.spec.startswith("opencl")
    for i in range(12 if is_slow(place) else 60):
        type = py.choice(types_on(place.machine.spec))
        x, axes = random_view(type, rng, py)
        base = x
        while base.base is not None and isinstance(base.base, np.ndarray):
            base = base.base
        problem = t.Problem(py.choice([o for o in t.OPS if o not in ("user", "dot")]), type)
        shape = t.axes_shape(x, axes)
        count = int(np.prod([n for d, n in enumerate(x.shape) if d not in axes], dtype=np.int64))
        line, want = outcome(lambda: t.reduce_axes(problem, x, axes))
        out, pointers = t.outputs(problem, count)
        at = t.address(x)
        if not on_host:
            at = place.put(base) + t.address(x) - t.address(base)
            pointers = (c_void_p * len(out))(*[place.put(o) for o in out])
            place.machine.read(place.queue, np.zeros(1, np.uint8), place.put(np.zeros(1, np.uint8)))
        for v, o in enumerate(out):
            if o.size == 0:
                pointers[v] = pointers[v] or 1
        status = t.lib.tally_reduce_shaped_resident(place.device, problem.c, byref(shape), at, None, pointers)
        assert (t.lib.tally_error().decode() if status else None) == line
        for o, p in zip(out, pointers):
            if not on_host and o.nbytes:
                place.machine.read(place.queue, o, p)
        assert [o.tobytes() for o in out] == want, f"case {i}: {problem.op} of {type} {x.shape} over {axes}"
        place.done()


def test_in_a_graph(place):
    """Captured once, replayed over other data."""
    if not hasattr(place.machine, "capture"):
        pytest.skip("graphs are CUDA's")
    rng = np.random.default_rng(SEED)
    for op, type, shape, axes in (("sum", "f32", (30, 5), [1]), ("prod", "f64", (5, 30), [0]), ("describe", "i32", (9, 9), [1])):
        x = elements(type, shape, rng)
        problem, made, size = t.Problem(op, type), t.axes_shape(x, axes), c_size_t()
        count = int(np.prod(shape) // shape[axes[0]])
        t.check(t.lib.tally_workspace_shaped(place.device, problem.c, byref(made), byref(size)))
        memory, work, told = place.put(x), place.put(np.zeros(size.value, np.uint8)), place.put(np.zeros(2, np.uint64))
        out = [np.zeros(count * t.SIZE[v], np.uint8) for v in problem.types]
        results = [place.put(o) for o in out]
        call = Call(ctypes.addressof(made), memory, None, work, size.value, place.queue, (c_void_p * len(out))(*results), told)
        again = place.machine.capture(place.queue, lambda: t.check(t.lib.tally_enqueue_shaped(place.device, problem.c,
                                                                                             byref(call))))
        for kind in ("wild", "small"):
            x = elements(type, shape, rng, kind)
            place.machine.write(place.queue, memory, x)
            again()
            for o, m in zip(out, results):
                place.machine.read(place.queue, o, m)
            assert [o.tobytes() for o in out] == outcome(lambda: t.reduce_axes(problem, x, axes))[1]
        place.done()
