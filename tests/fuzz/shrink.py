"""Makes a problem that fails simpler, as long as it fails: fewer options, fewer results, fewer elements, plainer values."""

import time

from formats import FLOATS, FORMAT, SIZE
from problems import c_strides


def simplest(layout, question, fails, seconds):
    """The simplest (layout, question) found in the time. `fails` tells whether one still does."""
    end = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for make in (options, plain_memory, fewer, plainer):
            again = True
            while again:
                again = False
                for candidate in make(layout, question):
                    if time.monotonic() > end:
                        return layout, question
                    try:
                        if fails(*candidate):
                            layout, question = candidate
                            again = progress = True
                            break
                    except (AssertionError, IndexError, KeyError, ValueError, TypeError, AttributeError, ZeroDivisionError):
                        continue                          # makes no sense
    return layout, question


def options(layout, question):
    if question.also:
        yield layout, question.copy(also=())
        for i, op in enumerate(question.also):
            yield layout, question.copy(op=op, also=())
            yield layout, question.copy(also=question.also[:i] + question.also[i + 1:])
    for name in ("out", "ddof", "about", "fast", "dev"):
        default = type(question).FIELDS[name]
        if getattr(question, name) != default:
            yield layout, question.copy(**{name: default})
    if question.ddof not in (0.0, 1.0):
        yield layout, question.copy(ddof=1.0)
    if question.script:
        for i in range(len(question.script)):
            yield layout, question.copy(script=question.script[:i] + question.script[i + 1:])
    if layout.mask is not None:
        yield layout.copy(mask=None, ms=None, mb=0), question
    if layout.y is not None and not question.two():
        yield layout.copy(y=None, ys=None, yb=0), question
    for name in ("places", "fill", "skip", "sorted"):
        default = type(layout).FIELDS[name]
        if getattr(layout, name) != default:
            yield layout.copy(**{name: default}), question
    if layout.how in ("segments", "groups", "axes") and layout.mask is None:
        rows = layout.rows()                              # one result, by itself
        for a, b in rows.spans[:64]:
            part = rows.raw[a:b]
            yield type(layout)(how="whole", type=layout.type, x=part, y=rows.y and rows.y[a:b], n=len(part)), question


def plain_memory(layout, question):
    """Arrays in C order."""
    if layout.how != "axes":
        return
    if layout.os is not None:
        yield layout.copy(os=None), question
    order = offsets(layout)
    for array, strides, base in (("x", "xs", "xb"), ("y", "ys", "yb"), ("mask", "ms", "mb")):
        data = getattr(layout, array)
        if getattr(layout, strides) is not None:
            if data is None:
                yield layout.copy(**{strides: None, base: 0}), question
                continue
            at = layout.index(getattr(layout, strides), getattr(layout, base))
            made = [0] * len(at)
            for to, i in zip(order, at):
                made[to] = data[i]
            yield layout.copy(**{array: bytes(made) if array == "mask" else made, strides: None, base: 0}), question
    for d in range(len(layout.length)):
        if layout.length[d] == 1 and len(layout.length) > 1:
            low, high = layout.axes & (1 << d) - 1, layout.axes >> d + 1 << d
            changes = {name: v[:d] + v[d + 1:] for name in ("length", "xs", "ys", "os", "ms")
                       if (v := getattr(layout, name)) is not None}
            yield layout.copy(axes=low | high, **changes), question


def offsets(layout):
    return layout.index(c_strides(layout.length), 0)


def cuts(n):
    """Ranges to leave out of n: halves, then less."""
    size = n
    while size:
        for a in range(0, n, size):
            yield a, min(n, a + size)
        if n // size > 64:
            return
        size //= 2


def without(values, a, b):
    return None if values is None else values[:a] + values[b:]


def fewer(layout, question):
    if layout.how == "axes":
        for d, n in enumerate(layout.length):
            for a, b in cuts(n):
                if b - a < n and (a == 0 or b == n):
                    yield along(layout, d, b if a == 0 else 0, n if a == 0 else a), question
    elif layout.how == "whole":
        for a, b in cuts(layout.n):
            yield layout.copy(x=without(layout.x, a, b), y=without(layout.y, a, b), n=layout.n - (b - a)), question
    elif layout.how == "segments":
        if layout.offsets is None:
            yield layout.copy(offsets=layout.bounds(), offsets_type="i64"), question
            return
        for a, b in cuts(layout.count):                   # segments
            low, high = layout.offsets[a], layout.offsets[b]
            moved = layout.offsets[:a] + [o - (high - low) for o in layout.offsets[b:]]
            yield elements(layout, low, high).copy(offsets=moved, count=layout.count - (b - a)), question
        for a, b in cuts(layout.n):                       # elements
            moved = [o - max(0, min(o, b) - a) for o in layout.offsets]
            yield elements(layout, a, b).copy(offsets=moved), question
    elif layout.how == "groups":
        for a, b in cuts(layout.n):
            yield elements(layout, a, b).copy(ids=without(layout.ids, a, b)), question
        top = max([g for g in layout.ids if g < layout.count], default=0)
        if top + 1 < layout.count:
            yield layout.copy(count=top + 1), question
        if layout.count > 1:
            yield layout.copy(ids=[min(g, layout.count // 2 - 1) for g in layout.ids], count=layout.count // 2), question


def elements(layout, a, b):
    """The layout without elements [a, b)."""
    return layout.copy(x=without(layout.x, a, b), y=without(layout.y, a, b), mask=without(layout.mask, a, b),
                       n=layout.n - (b - a))


def along(layout, d, a, b):
    """Indices [a, b) of dimension d alone."""
    length = list(layout.length)
    length[d] = b - a
    changes = {"length": length}
    whole = c_strides(layout.length)
    for array, strides, base in (("x", "xs", "xb"), ("y", "ys", "yb"), ("mask", "ms", "mb")):
        data, step = getattr(layout, array), getattr(layout, strides)
        if step is not None:
            changes[base] = getattr(layout, base) + a * step[d]
        elif data is not None:
            piece = layout.copy(length=length, xs=whole, xb=a * whole[d])
            order = piece.copy(xs=None, xb=0)
            made = [0] * (len(data) // max(layout.length[d], 1) * (b - a))
            for to, i in zip(order.index(None, 0), piece.index(whole, a * whole[d])):
                made[to] = data[i]
            changes[array] = bytes(made) if array == "mask" else made
    return layout.copy(**changes)


def plainer(layout, question):
    """Zeros, ones, and fewer different values."""
    one = FORMAT[layout.type].bias << FORMAT[layout.type].field if layout.type in FLOATS else 1
    for name in ("x", "y"):
        data = getattr(layout, name)
        if data is None:
            continue
        for plain in (0, one):
            for a, b in cuts(len(data)):
                if any(v not in (0, plain) for v in data[a:b]):
                    yield layout.copy(**{name: data[:a] + [plain] * (b - a) + data[b:]}), question
        if len(data) < 200:
            for value in {v for v in data if v}:
                for other in (0, one, value & value - 1):
                    if other != value and not (value == one and other == value & value - 1):
                        yield layout.copy(**{name: [other if v == value else v for v in data]}), question
