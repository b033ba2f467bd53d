"""Scripts: what is done with states, or with the states of groups; and what they must know at its end.

A step is a word of problems.STEPS and up to four numbers, of which the first is a state:

    create s [TYPE] · begin_at s INDEX · feed s FROM N DEVICE · merge s t · save_load s GIVEN · copy s t · add_words s t · add_parts s t
    subtract s t · negate s · value s · divided s DIVISOR TYPE · same s t · add_state s GROUP FROM N (groups alone)
"""

import struct
from array import array
from collections import Counter

import expected
from data import pick
from formats import CODE, FLOATS, FORMAT, INTS, SIZE, STATUS, TYPES, raw_bytes, raw_of_bytes, to_floats

EXACT = ("sum", "mean", "var", "std", "norm1", "norm2", "sumsq", "dot")
SUBTRACTS = EXACT + ("count", "nans", "nonzero", "xor")
ADDS = EXACT + ("count", "nans", "nonzero", "any", "all")
IN_ANY_ORDER = ADDS + ("xor", "min", "max", "minmax", "norminf", "and", "or")
NEGATES = ("sum", "mean", "dot")
DIVIDES = ("sum", "mean", "norm1", "sumsq", "dot")


class Can:
    """What the states of a question allow."""

    def __init__(self, type_, question):
        ops = expected.value_ops([question.op, *question.also])
        self.tree = "user" in ops or "prod" in ops and type_ in FLOATS
        self.user = "user" in ops
        self.about = question.about is not None
        self.any_order = all(op in IN_ANY_ORDER or op == "prod" and type_ in INTS for op in ops)
        self.words = all(op in ADDS for op in ops)
        self.subtract = all(op in SUBTRACTS for op in ops)
        self.negate = all(op in NEGATES for op in ops)
        self.divide = len(ops) == 1 and ops[0] in DIVIDES


def bounds(r, n, pieces):
    """Where pieces of n elements begin and end."""
    cuts = [pick(r, 0, n) if r.random() < .7 else min(n, pick(r, 0, n) // 4096 * 4096) for _ in range(pieces - 1)]
    return [0, *sorted(cuts), n]


def join(r, can, script, parts, groups=False):
    """Merges states that know pieces of an array, in their order; returns the one that knows all."""
    parts = list(parts)
    while len(parts) > 1:
        i = pick(r, 0, len(parts) - 2)
        j = i + 1
        if can.any_order and r.random() < .5:
            i, j = r.sample(range(len(parts)), 2)
        ways = ["merge"]
        if can.words:
            ways.append("add_words")
        if not can.tree and not groups:
            ways.append("add_parts")
        script.append((r.choice(ways), parts[i], parts[j]))
        if r.random() < .2:
            script.append(("save_load", parts[i], given(r, can)))
        del parts[j]
    return parts[0]


def given(r, can):
    """Whether a state is loaded with its problem."""
    return 1 if can.user or can.about else pick(r, 0, 1)


def draw_mixed(r, layout, can, script):
    """States whose elements are of different floating types: the array's bytes, as numbers of each."""
    size, count = SIZE[layout.type] * layout.n, pick(r, 2, 4)
    for i in range(count):
        type_ = r.choice(FLOATS)
        a, b = sorted((pick(r, 0, size // SIZE[type_]), pick(r, 0, size // SIZE[type_])))
        script += [("create", i, CODE[type_]), ("feed", i, a, b - a, pick(r, 0, 255))]
        if r.random() < .2:
            script.append(("save_load", i, given(r, can)))
    left = list(range(count))
    while len(left) > 1:
        i, j = r.sample(range(len(left)), 2)
        script.append(("merge", left[i], left[j]))
        if r.random() < .3:
            script += [("save_load", left[i], given(r, can)), ("value", left[i])]
        del left[j]
    script.append(("value", left[0]))
    return script


def draw_states(r, layout, question):
    can, n, script = Can(layout.type, question), layout.n, []
    if layout.type in FLOATS and not question.also and question.op in EXACT and question.op != "dot" and r.random() < .15:
        return draw_mixed(r, layout, can, script)
    pieces = pick(r, 1, 5)
    cuts = list(zip(b := bounds(r, n, pieces), b[1:]))
    if r.random() < .4:
        last = 0
        script.append(("create", 0))
        for a, b in cuts:
            script.append(("feed", last, a, b - a, pick(r, 0, 255)))
            fate = r.random()
            if fate < .2:
                script.append(("save_load", last, given(r, can)))
            elif fate < .35:
                script += [("copy", last, last + 1)]
                last += 1
            elif fate < .5:
                script.append(("value", last))
    else:
        order = list(range(pieces))
        if r.random() < .5:
            r.shuffle(order)
        for i in order:
            a, b = cuts[i]
            script.append(("create", i))
            if can.tree:
                script.append(("begin_at", i, a))
            middle = pick(r, a, b)
            script.append(("feed", i, a, middle - a, pick(r, 0, 255)))
            if middle < b or r.random() < .3:
                script.append(("feed", i, middle, b - middle, pick(r, 0, 255)))
        last = join(r, can, script, range(pieces))
        if not can.tree and r.random() < .1:
            script.append(("merge", last, last))
            script.append(("value", last))
            return script
    script.append(("value", last))
    if r.random() < .4:
        script += [("create", 8), ("feed", 8, 0, n, pick(r, 0, 255)), ("same", last, 8)]
    if can.divide and r.random() < .5:
        for _ in range(2):
            divisor = r.choice((1, -1, 2, -2, 3, 7, -10, n or 5, 1 << 62, -1 << 63, (1 << 63) - 1, pick(r, 1, 1 << 40)))
            script.append(("divided", last, divisor, CODE[r.choice(FLOATS)] if r.random() < .6 else 0))
    if can.negate and r.random() < .4:
        script += [("negate", last), ("value", last)]
        if r.random() < .5:
            script += [("feed", last, 0, n // 2, 0), ("value", last)]
        return script
    if can.subtract and r.random() < .5:
        a, b = sorted((pick(r, 0, n), pick(r, 0, n)))
        script += [("create", 9), ("feed", 9, a, b - a, pick(r, 0, 255)), ("subtract", last, 9), ("value", last)]
        if r.random() < .5:
            script += [("feed", last, a, (b - a) // 2, 1), ("value", last)]
        if r.random() < .3:
            script += [("merge", last, 9), ("save_load", last, given(r, can)), ("value", last)]
    return script


class State:
    def __init__(self, known=(), plus_zero=False):
        self.known = list(known)                          # (number of an element, is it negated)
        self.plus_zero = plus_zero                        # forgotten whether all are -0


def rows_of(layout, state):
    sign = FORMAT[layout.type].sign if layout.type in FLOATS else 0
    mask = (1 << 8 * SIZE[layout.type]) - 1
    x, y = layout.x, layout.y
    raw = [(x[i] ^ sign if sign else -x[i] & mask) if minus else x[i] for i, minus in state.known]
    return expected.Rows(layout.type, raw, [0, len(raw)], y and [y[i] for i, _ in state.known], plus_zero=state.plus_zero)


def negated_integers(layout, state):
    """Rows of integers whose negated ones need not be of the type: their totals are what counts."""
    rows = rows_of(layout, state)
    if layout.type in INTS and any(minus for _, minus in state.known):
        units = expected.signed(layout.type, layout.x)
        rows.kept["unitsraw"] = [-units[i] if minus else units[i] for i, minus in state.known], 0
    return rows


def as_f64(type_, raw):
    """The same numbers as bits of f64; what a NaN becomes is one."""
    return raw_of_bytes("f64", array("d", to_floats(type_, raw)).tobytes())


def mixed_states(layout, question):
    """As states(), of elements that are of different types, as doubles."""
    held, out, data = {}, [], raw_bytes(layout.type, layout.x)
    for word, s, *rest in question.script:
        if word == "create":
            held[s] = TYPES[rest[0] - 1], []
        elif word == "feed":
            type_, known = held[s]
            a, b = (i * SIZE[type_] for i in (rest[0], rest[0] + rest[1]))
            held[s] = type_, known + as_f64(type_, raw_of_bytes(type_, data[a:b]))
        elif word == "merge":
            held[s] = held[s][0], held[s][1] + held[rest[0]][1]
        elif word == "value":
            type_, known = held[s]
            to = expected.value_type(question.op, type_, question.out)
            rows = expected.Rows("f64", known, [0, len(known)])
            out += [0, CODE[to], expected.value(rows, question.op, to, question.ddof, 0, question.about)[0], len(known)]
    return struct.pack(f"<{len(out)}Q", *out)


def states(layout, question):
    """The bytes that the worker answers with."""
    if len(question.script[0]) > 2:
        return mixed_states(layout, question)
    made = expected.value_ops([question.op, *question.also])
    held, out = {}, []
    for word, s, *rest in question.script:
        if word == "create":
            held[s] = State()
        elif word == "feed":
            held[s].known += [(i, False) for i in range(rest[0], rest[0] + rest[1])]
        elif word == "copy":
            held[rest[0]] = State(held[s].known, held[s].plus_zero)
        elif word in ("merge", "add_words", "add_parts"):
            other = held[rest[0]]
            held[s] = State(held[s].known + other.known, held[s].plus_zero or other.plus_zero)
        elif word == "subtract":
            left = Counter(held[s].known)
            left.subtract(held[rest[0]].known)
            assert min(left.values(), default=0) >= 0
            known = list(left.elements())
            held[s] = State(known, bool(known))           # a state of nothing is as a new one
        elif word == "same":
            assert len(held[s].known) == len(held[rest[0]].known)
        elif word == "negate":
            held[s] = State([(i, not minus) for i, minus in held[s].known], True)
        elif word == "value":
            status, values = expected.whole(negated_integers(layout, held[s]), question)
            out.append(STATUS.index(status))
            for t, b in values or [(0, 0)] * len(made):
                out += [t, b]
            out.append(len(held[s].known))
        elif word == "divided":
            divisor, type_ = rest
            to = TYPES[type_ - 1] if type_ else question.out or expected.natural_type("mean", layout.type)
            rows = negated_integers(layout, held[s])
            op = "sum" if question.op == "mean" else question.op
            total = rows.totals(op)[0]
            minus = total == 0 and rows.is_minus_zero(op, 0, len(rows.raw))
            out += [0, CODE[to], expected.quotient(FORMAT[to], total, divisor, rows.exponent(op), minus)]
    return struct.pack(f"<{len(out)}Q", *[v & (1 << 64) - 1 for v in out])


# ---- Groups -------------------------------------------------------------------------------------

def draw_groups(r, layout, question):
    can, n, script = Can(layout.type, question), layout.n, []
    pieces = pick(r, 1, 4)
    cuts = list(zip(b := bounds(r, n, pieces), b[1:]))
    if can.tree or r.random() < .4:
        last = 0
        script.append(("create", 0))
        for a, b in cuts:
            script.append(("feed", 0, a, b - a, pick(r, 0, 255)))
            if r.random() < .3:
                script.append(("save_load", 0, given(r, can)))
    else:
        for i, (a, b) in enumerate(cuts):
            script += [("create", i), ("feed", i, a, b - a, pick(r, 0, 255))]
        last = join(r, can, script, range(pieces), groups=True)
    if r.random() < .4:
        script += [("create", 8), ("feed", 8, 0, n, pick(r, 0, 255)), ("same", last, 8)]
    if not can.tree and layout.count and r.random() < .3:
        a, b = sorted((pick(r, 0, n), pick(r, 0, n)))
        script.append(("add_state", last, pick(r, 0, layout.count - 1), a, b - a))
    return script + [("value", last)]


def groups(layout, question):
    """The rows of the groups whose values the script asks for."""
    held = {}
    seen = layout.mask
    for word, s, *rest in question.script:
        if word == "create":
            held[s] = []
        elif word == "feed":
            held[s] = held[s] + [(layout.ids[i] if seen is None or seen[i] else -1, i) for i in range(rest[0], rest[0] + rest[1])]
        elif word in ("merge", "add_words"):
            held[s] = held[s] + held[rest[0]]
        elif word == "add_state":
            held[s] = held[s] + [(rest[0], i) for i in range(rest[1], rest[1] + rest[2])]
        elif word == "same":
            assert len(held[s]) == len(held[rest[0]])
        elif word == "value":
            there = [(p, g, i) for p, (g, i) in enumerate(held[s]) if 0 <= g < layout.count]
            return layout.grouped([g for _, g, _ in there], [layout.x[i] for _, _, i in there],
                                  layout.y and [layout.y[i] for _, _, i in there], [p for p, _, _ in there])
    raise ValueError("no values are asked for")
