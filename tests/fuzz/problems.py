"""A problem of the fuzzer: a layout (arrays in memory, and which element belongs to which result) and a question about it.

Several questions share a layout, so that its arrays are made and sent once. Either can be written as words of a line,
which scripts/fuzz --repro reads again. Frames for the worker are made here, and its answers judged:

    LOAD: 1, numbers, slot (0 x, 1 y, 2 mask, 3 offsets or ids), place, bytes, the bytes filled up to eights
    CALL: 2, numbers, how, the problem, device, fill; then the fields of its kind, in worker.c's order
    answer: status, flags, the result that the error names or -1, bytes, and the bytes
"""

import itertools
import math
import struct
from array import array

import expected
import scripts
from formats import CODE, FORMAT, INTS, OPS, PACK, SIZE, STATUS, TYPES, raw_bytes

HOWS = ["whole", "shaped", "states", "grouped"]
CUTS = {"axes": 1, "segments": 2, "groups": 3}
UNTOUCHED = 0xA5
FLAGS = {1: "memory beside a block of the library's was written", 2: "memory beside an output, or an output in spite of an error, was written",
         4: "states that know the same are saved differently"}
STEPS = ["end", "create", "begin_at", "feed", "merge", "save_load", "copy", "add_words", "add_parts", "subtract", "negate",
         "value", "divided", "same", "add_state"]
STEP_WORDS = 6


def numbers(values):
    return array("q", values).tobytes()


def float_word(x):
    return struct.unpack("<q", struct.pack("<d", x))[0]


def c_strides(length):
    out, step = [], 1
    for size in reversed(length):
        out.append(step)
        step *= size
    return out[::-1]


def reach(length, strides):
    """The least and the greatest offset of an array's elements; (0, -1) of none."""
    if 0 in length:
        return 0, -1
    low = sum(s * (n - 1) for s, n in zip(strides, length) if s < 0)
    high = sum(s * (n - 1) for s, n in zip(strides, length) if s > 0)
    return low, high


def offsets_of(length, strides):
    """The offset of each element, in C order."""
    out = [0]
    for n, s in zip(length, strides):
        if n != 1:
            steps = range(0, n * s, s) if s else [0] * n
            out = [o + d for o in out for d in steps]
    return out


class Layout:
    """How: whole, axes, segments, groups; states and grouped are fed by a question's script. Arrays are lists of raw
    bits; xb, yb and mb are the elements before the one whose indices are all 0. Strides are None for C order."""

    FIELDS = {"how": "", "type": "f32", "x": None, "xb": 0, "y": None, "yb": 0, "mask": None, "mb": 0, "n": 0, "count": 0,
              "length": None, "xs": None, "ys": None, "os": None, "ms": None, "axes": 0, "offsets": None, "offsets_type": None,
              "ids": None, "ids_type": None, "skip": 0, "sorted": 0, "places": (0, 0, 0, 0, 0), "fill": -1}

    def __init__(self, **fields):
        for name, default in self.FIELDS.items():
            setattr(self, name, fields.pop(name, default))
        assert not fields
        self._rows = None

    def copy(self, **changes):
        return Layout(**{name: getattr(self, name) for name in self.FIELDS} | changes)

    # ---- Which element belongs to which result ----

    def kept_and_reduced(self):
        dims = range(len(self.length))
        return [d for d in dims if not self.axes >> d & 1], [d for d in dims if self.axes >> d & 1]

    def index(self, strides, base):
        """Where each element lies, row after row."""
        strides = strides or c_strides(self.length)
        kept, reduced = self.kept_and_reduced()
        inner = offsets_of([self.length[d] for d in reduced], [strides[d] for d in reduced])
        outer = offsets_of([self.length[d] for d in kept], [strides[d] for d in kept])
        return [base + o + i for o in outer for i in inner]

    def results(self):
        """How many."""
        return math.prod([self.length[d] for d in self.kept_and_reduced()[0]]) if self.how == "axes" else \
            1 if self.how in ("whole", "states") else self.count

    def rows(self):
        if self._rows is None:
            self._rows = getattr(self, "_" + self.how)()
        return self._rows

    def _whole(self):
        return expected.Rows(self.type, self.x, [0, len(self.x)], self.y)

    def _masked(self, raw, y, starts, places, seen):
        """Rows without the elements that a mask hides."""
        at = list(itertools.compress(range(len(raw)), seen))
        before = list(itertools.accumulate((1 if s else 0 for s in seen), initial=0))
        return expected.Rows(self.type, [raw[i] for i in at], [before[s] for s in starts], y and [y[i] for i in at],
                             [places(i) for i in at])

    def _axes(self):
        kept, reduced = self.kept_and_reduced()
        n = math.prod([self.length[d] for d in reduced])
        count = math.prod([self.length[d] for d in kept])
        starts = list(range(0, n * count + 1, n)) if n else [0] * (count + 1)
        x, y = self.x, self.y
        raw = [x[i] for i in self.index(self.xs, self.xb)]
        others = None if y is None else [y[i] for i in self.index(self.ys, self.yb)]
        if self.mask is None:
            return expected.Rows(self.type, raw, starts, others)
        mask = self.mask
        return self._masked(raw, others, starts, lambda i: i % n, [mask[i] for i in self.index(self.ms, self.mb)])

    def bounds(self):
        """The offsets of segments, whether or not they are given."""
        if self.offsets is not None:
            return self.offsets
        length = self.n // self.count if self.count else 0
        return [i * length for i in range(self.count + 1)]

    def _segments(self):
        bounds = self.bounds()
        first, last = bounds[0], bounds[-1]
        raw, others = self.x[first:last], self.y and self.y[first:last]
        starts = [b - first for b in bounds]
        if self.mask is None:
            return expected.Rows(self.type, raw, starts, others)
        begins = [s - first for s, e in zip(bounds, bounds[1:]) for _ in range(s, e)]
        return self._masked(raw, others, starts, lambda i: i - begins[i], self.mask[first:last])

    def _groups(self):
        ids, mask, count = self.ids, self.mask, self.count
        there = [i for i in range(self.n) if (mask is None or mask[i]) and 0 <= ids[i] < count]
        return self.grouped([ids[i] for i in there], [self.x[i] for i in there], self.y and [self.y[i] for i in there], there)

    def grouped(self, ids, x, y, places):
        order = sorted(range(len(ids)), key=ids.__getitem__)
        sizes = [0] * (self.count + 1)
        for i in ids:
            sizes[i + 1] += 1
        return expected.Rows(self.type, [x[i] for i in order], list(itertools.accumulate(sizes)), y and [y[i] for i in order],
                             [places[i] for i in order])

    def is_wrong(self):
        """An argument is wrong: an offset falls or lies outside, or an id does."""
        if self.how == "segments" and self.offsets is not None:
            bounds = self.offsets
            return any(b < a for a, b in zip(bounds, bounds[1:])) or not 0 <= bounds[0] <= bounds[-1] <= self.n
        if self.how != "groups":
            return False
        if self.sorted and not self.skip and self.mask is None and any(b < a for a, b in zip(self.ids, self.ids[1:])):
            return True
        return not self.skip and any(not 0 <= g < self.count for g, seen in zip(self.ids, self.mask or itertools.repeat(1)) if seen)

    # ---- Frames ----

    def loads(self):
        out = []
        for slot, data in enumerate([
                raw_bytes(self.type, self.x) if self.x else None, raw_bytes(self.type, self.y) if self.y else None, self.mask or None,
                raw_bytes(self.offsets_type, [o & (1 << 8 * SIZE[self.offsets_type]) - 1 for o in self.offsets])
                if self.offsets is not None else
                raw_bytes(self.ids_type, [g & (1 << 8 * SIZE[self.ids_type]) - 1 for g in self.ids]) if self.ids else None]):
            if data is not None:
                padding = -len(data) % 8
                out.append(numbers([1, 3 + (len(data) + padding) // 8, slot, self.places[slot], len(data)]) + data + bytes(padding))
        return b"".join(out)

    def at(self, name, base):
        """The offset in bytes that the worker is told; -1 for NULL."""
        data = getattr(self, name)
        return -1 if not data else base * (1 if name == "mask" else SIZE[self.type])

    def shape_numbers(self):
        cut = {"axes": 1, "segments": 2}.get(self.how, 3)
        dims = len(self.length) if cut == 1 else 0
        out = [cut, dims, *(self.length if dims else [])]
        for strides in (self.xs, self.ys, self.os, self.ms):
            out += [0] if strides is None or not dims else [1, *strides]
        given = self.offsets if cut == 2 else self.ids
        kind = self.offsets_type if cut == 2 else self.ids_type
        return out + [self.axes, self.n, self.count, -1 if not given else 0, CODE[kind] if kind else 0, self.skip,
                      self.sorted, self.at("mask", self.mb)]

    def output(self):
        """(elements of an output's room, the element that the call is given, where each result lies or None for one behind
        another)"""
        count = self.results()
        if self.how != "axes" or self.os is None:
            return count, 0, None
        kept, _ = self.kept_and_reduced()
        length, strides = [self.length[d] for d in kept], [self.os[d] for d in kept]
        low, high = reach(length, strides)
        return high - low + 1, -low, [o - low for o in offsets_of(length, strides)] if high >= low else []


class Question:
    """What is asked of a layout. `dev` picks one of a worker's devices."""

    FIELDS = {"op": "sum", "also": (), "out": None, "ddof": 0.0, "about": None, "fast": 0, "user": 0, "dev": 0, "script": None}

    def __init__(self, **fields):
        for name, default in self.FIELDS.items():
            setattr(self, name, fields.pop(name, default))
        assert not fields

    def copy(self, **changes):
        return Question(**{name: getattr(self, name) for name in self.FIELDS} | changes)

    def frame(self, layout):
        ops = [OPS.index(op) + 1 for op in self.also]
        how = {"whole": 0, "states": 2, "grouped": 3}.get(layout.how, 1)
        words = [how, OPS.index(self.op) + 1, CODE[layout.type], CODE[self.out] if self.out else 0, self.fast,
                 float_word(self.ddof), self.about is not None, float_word(self.about or 0.0), self.user, *ops, *[0] * (8 - len(ops)), self.dev, layout.fill,
                 layout.at("x", layout.xb), layout.at("y", layout.yb) if self.two() else -1]
        made = expected.value_ops([self.op, *self.also])
        if how == 0:
            words += [len(layout.x), len(made)]
        elif how == 2:
            words.append(len(made))
        else:
            words += layout.shape_numbers()
            room, first, _ = layout.output()
            sizes = [SIZE[expected.value_type(op, layout.type, self.out)] for op in made]
            words.append(len(sizes))
            for size in sizes:
                words += [size * room, layout.places[4]]
            if how == 1:
                words += [size * first for size in sizes]
        for step in self.script or []:
            words += [STEPS.index(step[0]), *step[1:], *[0] * (STEP_WORDS - len(step))]
        if self.script is not None:
            words += [0] * STEP_WORDS
        return numbers([2, len(words), *words])

    def two(self):
        return self.op == "dot" or "dot" in self.also

    # ---- The right answer ----

    def answer(self, layout):
        """(status, the result that is wrong or -1, bytes or None where they mean nothing)"""
        if self.fast and self.op in ("sum", "mean") and layout.type in FORMAT and not layout.is_wrong():
            return "OK", -1, None
        if layout.how == "whole":
            status, made = expected.whole(layout.rows(), self)
            return status, -1, numbers([w for t, b in made for w in (t, b - (b >> 63 << 64))])
        if layout.how == "states":
            return "OK", -1, scripts.states(layout, self)
        if layout.is_wrong():                             # of ids that lie outside, some are found late
            room = layout.output()[0]
            made = expected.value_ops([self.op, *self.also])
            size = sum(SIZE[expected.value_type(op, layout.type, self.out)] for op in made)
            return "EINVAL", None, bytes([UNTOUCHED]) * (room * size) if layout.how == "segments" else None
        if layout.how == "grouped":
            rows = scripts.groups(layout, self)
        else:
            rows = layout.rows()
        status, wrong, results = expected.shaped(rows, self)
        room, _, where = layout.output()
        if where is None:
            return status, wrong, b"".join(data for _, data in results)
        out = []
        for size, data in results:
            filled = array(PACK[size], bytes([UNTOUCHED]) * (size * room))
            given = array(PACK[size], data)
            for at, bits in zip(where, given):
                filled[at] = bits
            out.append(filled.tobytes())
        return status, wrong, b"".join(out)


def difference(question, layout, right, got):
    """None where an answer is right, else what is wrong with it, in words. got: (status, flags, wrong, bytes)."""
    status, flags, wrong, data = got
    if status < 0:
        return f"{died(status)}"
    if flags:
        return "; ".join(text for bit, text in FLAGS.items() if flags & bit)
    if STATUS[status] != right[0]:
        return f"status {STATUS[status]}, not {right[0]}"
    if right[1] is not None and wrong != right[1]:
        return f"the error names result {wrong}, not {right[1]}"
    if right[2] is None or data == right[2]:
        return None
    return first_difference(question, layout, right[2], data)


def died(status):
    import signal
    try:
        return "hung" if -1000 - status == signal.SIGALRM else f"died of {signal.Signals(-1000 - status).name}"
    except ValueError:
        return "died"


def first_difference(question, layout, right, got):
    made = expected.value_ops([question.op, *question.also])
    if layout.how in ("whole", "states"):
        names = list(struct.unpack(f"<{len(right) // 8}Q", right)), list(struct.unpack(f"<{len(got) // 8}Q", got))
        return f"expected {' '.join(f'{v:x}' for v in names[0])}, got {' '.join(f'{v:x}' for v in names[1])}"
    if len(right) != len(got):
        return f"{len(got)} bytes of results, not {len(right)}"
    at, room = 0, layout.output()[0]
    for op in made:
        type_ = expected.value_type(op, layout.type, question.out)
        size = SIZE[type_]
        for i in range(room):
            a, b = right[at:at + size], got[at:at + size]
            if a != b:
                return f"{op} at place {i}: expected {a[::-1].hex()}, got {b[::-1].hex()}"
            at += size
    return "?"


# ---- As a line ----------------------------------------------------------------------------------

def _runs(values, text):
    """Values with commas; equal neighbours as VALUE*TIMES."""
    return ",".join(text(v) + (f"*{n}" if n > 1 else "") for v, n in
                    ((v, len(list(g))) for v, g in itertools.groupby(values)))


def _read_runs(text, value):
    out = []
    for part in text.split(",") if text else []:
        v, _, times = part.partition("*")
        out += [value(v)] * (int(times) if times else 1)
    return out


_HEX = (lambda v: f"{v:x}"), (lambda t: int(t, 16))
_DECIMAL = str, int


def line(layout, question):
    words = []
    for thing in (layout, question):
        for name, default in thing.FIELDS.items():
            v = getattr(thing, name)
            if v == default and not (name == "type"):
                continue
            if name in ("x", "y"):
                v = _runs(v, _HEX[0])
            elif name == "mask":
                v = _runs(v, str)
            elif name in ("length", "xs", "ys", "os", "ms", "offsets", "ids", "places"):
                v = _runs(v, str)
            elif name == "also":
                v = ",".join(v)
            elif name == "script":
                v = "/".join(",".join(map(str, step)) for step in v)
            elif name in ("ddof", "about"):
                v = repr(v)
            words.append(f"{name}={v}")
    return " ".join(words)


def read_line(text):
    fields = dict(word.split("=", 1) for word in text.split())
    given = [{}, {}]
    for name, v in fields.items():
        if name in ("x", "y"):
            v = _read_runs(v, _HEX[1])
        elif name == "mask":
            v = bytes(_read_runs(v, int))
        elif name in ("length", "xs", "ys", "os", "ms", "offsets", "ids"):
            v = _read_runs(v, int)
        elif name == "places":
            v = tuple(_read_runs(v, int))
        elif name == "also":
            v = tuple(v.split(","))
        elif name == "script":
            v = [(s[0], *map(int, s[1:])) for s in (step.split(",") for step in v.split("/"))]
        elif name in ("ddof", "about"):
            v = float(v)
        elif name not in ("how", "type", "offsets_type", "ids_type", "op", "out"):
            v = int(v)
        given[name in Question.FIELDS][name] = v
    return Layout(**given[0]), Question(**given[1])
