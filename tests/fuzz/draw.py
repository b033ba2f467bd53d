"""Draws a layout and questions about it. Sizes are small mostly, at the edges of vectors, tiles and blocks often, and now
and then large enough for several threads and every schedule."""

import math

import data
import expected
import scripts
from data import pick
from formats import FLOATS, INTS, OPS, SIZE, TYPES
from problems import Layout, Question, c_strides, reach

EDGES = [s for k in range(1, 14) for s in (2 ** k - 1, 2 ** k, 2 ** k + 1)]
PLAIN = [op for op in OPS if op != "user"]
WEIGHTED = PLAIN + ["sum", "mean", "var", "std", "dot", "norm2", "sumsq", "sum", "mean", "var", "prod", "user"]


HOWS = ["axes"] * 45 + ["segments"] * 16 + ["groups"] * 14 + ["whole"] * 10 + ["states"] * 10 + ["grouped"] * 5


def size(r, most):
    """A length in [0, most]."""
    fate = r.random()
    if most > 5000 and fate < .3:
        return pick(r, most // 3, most)
    if fate < .5:
        n = pick(r, 1, 70) if r.random() < .7 else pick(r, 1, 9)
    elif fate < .75:
        n = EDGES[int(r.random() * len(EDGES))]
    elif fate < .85:
        n = r.choice((16, 32, 48, 64))
    elif fate < .98:
        n = int(math.exp(r.random() * math.log(most + 1)))
    else:
        n = r.choice((0, 1))
    return n if n <= most else pick(r, 1, most)


def room(r, scale):
    """How many elements a problem may have; `scale` tells how far many go."""
    fate = r.random()
    return 150 if fate < .6 else 700 if fate < .86 else int(scale * (4000 if fate < .976 else 20000 if fate < .9986 else 300000))


# ---- Shapes -------------------------------------------------------------------------------------

def split(r, n, parts):
    """Lengths whose product is about n: n itself where it is prime."""
    out = [n]
    while len(out) < parts:
        n = out.pop(pick(r, 0, len(out) - 1))
        divisors = [d for d in (2, 3, 4, 5, 7, 8, 16) if n % d == 0] if r.random() < .7 else []
        if divisors and n:
            d = r.choice(divisors)
            out += [d, n // d]
        else:
            out += [n, 1]
    r.shuffle(out)
    return out


def strides(r, length, wild):
    """Strides of an array, (strides, base, extent): any order of dimensions in memory, gaps, negative ones, zeros."""
    dims = len(length)
    order = list(range(dims))
    if wild or r.random() < .3:
        r.shuffle(order)
    else:
        order.reverse()
    out, step = [0] * dims, 1
    for d in order:
        if wild and r.random() < .3:
            step += pick(r, 0, 5)
        out[d] = step
        step *= max(length[d], 1)
        if wild and r.random() < .15:
            out[d] = -out[d]
        elif wild and r.random() < .08:
            step //= max(length[d], 1)
            out[d] = 0
        elif wild and r.random() < .04:
            out[d] = pick(r, -3, 3)                       # elements that overlap
    low, high = reach(length, out)
    return out, -low, high - low + 1


def axes(r, type_, most, results):
    kept, n = size(r, min(most, results)), size(r, most)
    while kept * n > most:
        if r.random() < .5:
            kept = size(r, max(1, min(results, most // max(n, 1))))
        else:
            n = size(r, max(1, most // max(kept, 1)))
    fate = r.random()
    if fate < .5:
        length, bits = ([kept, n], 2) if r.random() < .5 else ([n, kept], 1)
    elif fate < .65:
        outer = pick(r, 1, 4) if kept * n * 4 <= max(most, 400) and 4 * kept <= results else 1
        length, bits = r.choice((([outer, kept, n], 4), ([outer, n, kept], 2), ([n, outer, kept], 1), ([outer, n, kept], 3),
                                 ([n, kept, outer], 5)))
    else:
        a, b = split(r, kept, pick(r, 1, 3)), split(r, n, pick(r, 1, 3))
        names = [0] * len(a) + [1] * len(b)
        if r.random() < .1:
            names = r.choice(([0] * len(a), [1] * len(b), [0] * len(a) + [1] * len(b)))
        r.shuffle(names)
        length = [a.pop() if name == 0 and a else b.pop() if b else 1 for name in names]
        bits = sum(name << d for d, name in enumerate(names))
        if r.random() < .15:
            more = pick(r, 1, 16 - len(length)) if r.random() < .2 else 1
            length = [1] * more + length
            bits = bits << more | r.getrandbits(more)
    if r.random() < .005:
        length, bits = [], 0                              # of no dimensions: one element
    layout = Layout(how="axes", type=type_, length=length, axes=bits)
    wild = r.random() < .35
    extent = math.prod(length)
    if wild or r.random() < .25:
        layout.xs, layout.xb, extent = strides(r, length, wild)
    others = extent if layout.xs is None else math.prod(length)
    if r.random() < .3:
        layout.ys, layout.yb, others = strides(r, length, r.random() < .5)
    masked = math.prod(length)
    if r.random() < .2:
        layout.mask = b""
        if r.random() < .3:
            layout.ms, layout.mb, masked = strides(r, length, r.random() < .5)
    if r.random() < .25:
        keeps = [1 if bits >> d & 1 else s for d, s in enumerate(length)]
        out, step, order = [0] * len(length), 1, list(range(len(length)))
        r.shuffle(order)
        for d in order:
            if not bits >> d & 1:
                step += pick(r, 0, 2) if r.random() < .3 else 0
                out[d] = step if r.random() < .8 else -step
                step *= max(keeps[d], 1)
            else:
                out[d] = pick(r, -9, 9)
        layout.os = out
    return layout, extent, others, masked


def lengths_of_parts(r, n, count):
    """Lengths of count parts, n together."""
    if count == 0:
        return []
    fate = r.random()
    if fate < .4:                                         # about equal
        cuts = sorted(pick(r, 0, n) for _ in range(count - 1))
    elif fate < .7:
        base = n // count
        cuts, at = [], 0
        for _ in range(count - 1):
            at = min(n, at + max(0, base + pick(r, -2, 2)))
            cuts.append(at)
    elif fate < .85:                                      # a giant
        at = pick(r, 0, count - 1)
        cuts = [min(n, i) for i in range(at)] + [max(0, n - (count - 1 - i)) for i in range(at, count - 1)]
        cuts.sort()
    else:                                                 # many that are empty
        some = sorted(pick(r, 0, n) for _ in range(1 + count // 8))
        cuts = sorted(r.choice(some) for _ in range(count - 1))
    bounds = [0, *cuts, n]
    return [b - a for a, b in zip(bounds, bounds[1:])]


def segments(r, type_, most, results):
    n = size(r, most)
    count = size(r, max(1, min(most, 2 * n + 3, results)))
    layout = Layout(how="segments", type=type_, n=n, count=count)
    if r.random() < .25 and count:
        layout.n = n = n // count * count
        layout.offsets = None
    else:
        first = pick(r, 0, min(n, 9)) if r.random() < .3 else 0
        last = n - (pick(r, 0, min(n - first, 9)) if r.random() < .3 else 0)
        bounds = [first]
        for size_ in lengths_of_parts(r, last - first, count):
            bounds.append(bounds[-1] + size_)
        if r.random() < .01 and count:                    # an error: one falls, or lies outside
            bounds[pick(r, 0, count)] = r.choice((n + 1, -1, pick(r, -3, n + 3), 1 << 30))
        layout.offsets, layout.offsets_type = bounds, r.choice(("i32", "i64"))
    return layout


def groups(r, type_, most, results):
    n = size(r, most)
    count = max(1, size(r, max(1, min(most, 2 * n + 3, results))))
    if r.random() < .4:
        count = min(count, pick(r, 1, 9))
    kind = r.choice(TYPES[:8])
    count = min(count, (1 << 8 * SIZE[kind] - (kind[0] == "i")) - 1)
    fate = r.random()
    if fate < .6:
        ids = [int(v * count) for v in (r.random() for _ in range(n))]
    elif fate < .75:
        few = [pick(r, 0, count - 1) for _ in range(3)]
        ids = [r.choice(few) for _ in range(n)]
    elif fate < .85:
        ids = [i % count for i in range(n)]
    else:
        ids = [min(count - 1, int(r.expovariate(8 / count))) for _ in range(n)]
    layout = Layout(how="groups", type=type_, n=n, count=count, ids_type=kind)
    if r.random() < .3:
        ids.sort()
        layout.sorted = int(r.random() < .7)
        if layout.sorted and n and r.random() < .02:
            ids[pick(r, 0, n - 1)] = pick(r, 0, count - 1)  # an error where it falls
    if r.random() < .003:
        layout.n = layout.count = 0
        ids = []
    if r.random() < .15 and layout.n:
        layout.skip = 1
        if not layout.sorted:
            size_ = 8 * SIZE[kind]
            outside = [count, (1 << size_ - 1) - 1] + ([-1, -(1 << size_ - 1)] if kind[0] == "i" else [(1 << size_) - 1])
            outside = [g for g in outside if not 0 <= g < count]
            for _ in range(pick(r, 1, 1 + n // 4)):
                ids[pick(r, 0, n - 1)] = r.choice(outside)
    elif r.random() < .01 and layout.n and count < 100 and not layout.sorted:
        ids[pick(r, 0, n - 1)] = count + 1                # an error
    layout.ids = ids
    return layout


def place(r):
    """Where an array stands: at the front guard, at the rear guard, or some bytes from either."""
    fate = r.random()
    if fate < .35:
        return 0
    if fate < .7:
        return -1
    return pick(r, 1, 65) if fate < .85 else ~pick(r, 1, 17)


# ---- Elements -----------------------------------------------------------------------------------

def fill(r, layout, question, extent, others, masked):
    """Gives the layout its arrays. Elements that no result has are random bits, NaNs among them."""
    type_, op = layout.type, question.op
    out = expected.value_type(op, type_, question.out)
    layout.x = data.bits(r, type_, extent)
    two = question.two()
    if two:
        layout.y = data.bits(r, type_, others)
    if layout.mask is not None:
        share = r.choice((.05, .5, .5, .9, 1.1))
        fixed = r.choice((1, 255, 128, 0))
        layout.mask = bytes([(fixed or 1 + int(r.random() * 255)) if r.random() < share else 0 for _ in range(masked)])
    if layout.how == "axes":
        index = layout.index(layout.xs, layout.xb)
        kept, reduced = layout.kept_and_reduced()
        n = math.prod([layout.length[d] for d in reduced])
        lengths = [n] * math.prod([layout.length[d] for d in kept])
        yindex = layout.index(layout.ys, layout.yb) if two else None
    else:
        index = None
        if layout.is_wrong():
            lengths = [layout.n]
        elif layout.how == "segments":
            bounds = layout.bounds()
            lengths = [b - a for a, b in zip(bounds, bounds[1:])]
            if bounds[0]:
                lengths.insert(0, bounds[0])
        elif layout.how in ("groups", "grouped"):
            lengths = [0] * layout.count
            for g in layout.ids:
                if 0 <= g < layout.count:
                    lengths[g] += 1
            index = sorted((i for i in range(layout.n) if 0 <= layout.ids[i] < layout.count), key=layout.ids.__getitem__)
        else:
            lengths = [layout.n]
        yindex = index
    total = len(index) if index is not None else extent
    raw = data.elements(r, type_, total, op, out, lengths)
    fate = r.random()
    y = None
    if two:
        y = data.elements(r, type_, total, op, out, lengths) if fate < .7 else list(raw)
    at = 0
    if fate < .13 and op != "prod":
        for n in lengths:
            row = raw[at:at + n]
            if two:
                half = n // 2
                y[at + half:at + 2 * half] = y[at:at + half]
                signs = raw[at:at + half]
                raw[at + half:at + 2 * half] = [b ^ (1 << 8 * SIZE[type_] - 1) for b in signs] if type_ in FLOATS else signs
            else:
                data.cancel(r, type_, row)
                raw[at:at + n] = row
            at += n
    elif fate < .38 and op in expected.ANY_FLOAT and out in FLOATS:
        tries = 0
        share = 1 if len(lengths) <= 12 else 12 / len(lengths)
        for n in lengths:
            if 0 < n <= 300 and r.random() < share and tries < 30:
                tries += 1
                try:
                    row, other = data.tie(r, type_, n, op, out, question.ddof)
                    raw[at:at + n] = row
                    if two:
                        y[at:at + n] = other
                except data.Unfit:
                    pass
            at += n
    if index is None:
        layout.x = raw
    else:
        for i, b in zip(index, raw):
            layout.x[i] = b
    if two:
        if yindex is None:
            layout.y = y
        else:
            for i, b in zip(yindex, y):
                layout.y[i] = b


# ---- Questions ----------------------------------------------------------------------------------

def ddof(r, n):
    fate = r.random()
    return 0.0 if fate < .35 else 1.0 if fate < .7 else float(pick(r, 0, 4)) if fate < .8 else r.random() * 2 if fate < .87 else \
        r.choice((0.5, 1.5, 2.0 ** -30, 5e-324, 1e-300, 1 + 2.0 ** -52, 1e300)) if fate < .94 else \
        max(0.0, n + r.choice((-1, 0, 1, -.5, -2.0 ** -20)))


def question(r, type_, n, op=None, two=None):
    """two: whether there is a second array; None: as the operator needs it."""
    while op is None:
        op = r.choice(WEIGHTED)
        if two is not None and (op == "dot") > two:
            op = None
    q = Question(op=op, dev=pick(r, 0, 255))
    if op == "user":
        q.user = pick(r, 1, 2)
    if r.random() < .12:
        also = []
        for _ in range(pick(r, 1, 4)):
            other = r.choice(PLAIN)
            if other == "dot" and not (two or op == "dot"):
                continue
            if other in ("and", "or", "xor") and any(o in ("and", "or", "xor") for o in [op, *also]):
                continue
            if other == "prod" and (op == "user" or "user" in also):
                continue
            also.append(other)
        while also and len(expected.value_ops([op, *also])) > 20:
            also.pop()
        q.also = tuple(also)
    ops = expected.value_ops([op, *q.also])
    if any(o in ("var", "std") for o in ops):
        q.ddof = ddof(r, n)
        if r.random() < .3:
            q.about = r.choice((0.0, -0.0, r.gauss(0, 1), math.ldexp(r.gauss(0, 1), pick(r, -1074, 1022)), 5e-324, math.inf, math.nan))
    if any(o in expected.ANY_FLOAT for o in ops) and r.random() < .35:
        q.out = r.choice(FLOATS)
    if r.random() < .05 and not any(o in ("sum", "mean") for o in ops):
        q.fast = 1                                        # which no other operator notices
    elif r.random() < .05 and op in ("sum", "mean") and not q.also and type_ in FLOATS:
        q.fast, q.out = 1, r.choice((None, "f64"))        # of which the bits mean nothing
    return q


def problem(r, scale=1.0, types=TYPES, hows=None, results=1 << 30):
    """(layout, [questions]). `results`: how many a layout has at most, about."""
    type_ = r.choice(types) if r.random() < .6 else r.choice([t for t in types if t in FLOATS] or types)
    how = r.choice(hows or HOWS)
    most = room(r, scale)
    extent = others = masked = None
    if how == "axes":
        layout, extent, others, masked = axes(r, type_, most, results)
        n = math.prod([layout.length[d] for d in layout.kept_and_reduced()[1]])
    elif how == "segments":
        layout = segments(r, type_, most, results)
        n = layout.n // max(layout.count, 1)
    elif how in ("groups", "grouped"):
        layout = groups(r, type_, most, results)
        n = layout.n // max(layout.count, 1)
        if how == "grouped":
            layout.how, layout.sorted = how, 0
            layout.skip = int(any(not 0 <= g < layout.count for g in layout.ids))
    else:
        n = size(r, most)
        if scale >= 1 and r.random() < (.003 if how == "whole" else .0005):              # for several threads
            n = pick(r, 1 << 19, 5 << 19) // SIZE[type_]
        layout = Layout(how=how, type=type_, n=n)
    first = question(r, type_, n)
    if how != "axes":
        extent = others = masked = layout.n
        if how not in ("whole", "states") and r.random() < .2:
            layout.mask = b""
    fill(r, layout, first, extent, others, masked)
    layout.places = tuple(place(r) for _ in range(5))
    layout.fill = -1 if r.random() < .5 else r.choice((0, 0xFF, 0x7F, 0xA5))
    questions = [first]
    if layout.is_wrong():
        return layout, questions
    for _ in range(pick(r, 1, 4)):
        questions.append(question(r, type_, n, two=layout.y is not None))
    for q in questions:
        if q.fast and how in ("states", "grouped"):
            q.fast = 0
        if how == "states":
            q.script = scripts.draw_states(r, layout, q)
        elif how == "grouped":
            q.script = scripts.draw_groups(r, layout, q)
    return layout, questions
