"""What the answer to a problem must be, by the rules of include/tally.h and DESIGN's definitions; Python's integers.

Rows holds the elements of each result, in their order, and what several questions about the same elements share.
values() gives each result's bits, or the status that it has instead.
"""

import bisect
import functools
import math
import operator
from array import array

from formats import CODE, FORMAT, INTS, PACK, SIZE, raw_bytes, signed, to_floats, units

LISTS = {"minmax": ["min", "max"],
         "describe": ["count", "nans", "min", "max", "argmin", "argmax", "sum", "mean", "std"]}
ANY_FLOAT = ["sum", "mean", "var", "std", "norm1", "norm2", "sumsq", "dot"]
NO_INDEX = (1 << 64) - 1


def natural_type(op, type_):
    wide = type_ if type_ not in INTS else "i64" if type_[0] == "i" else "u64"
    if op in ("sum", "prod", "norm1", "norminf", "sumsq", "dot"):
        return wide
    if op in ("mean", "var", "std", "norm2"):
        return type_ if type_ not in INTS else "f64"
    if op in ("argmin", "argmax", "count", "nans", "nonzero"):
        return "u64"
    return "u8" if op in ("any", "all") else type_


def value_ops(ops):
    """The operator of each value."""
    return [each for op in ops for each in LISTS.get(op, [op])]


def value_type(op, type_, out):
    return out if out and op in ANY_FLOAT else natural_type(op, type_)


class Rows:
    """The elements of each result. `raw` holds all rows one behind another, row i from starts[i] to starts[i + 1];
    places[k] is the index that element k has for argmin (None: its index within its row)."""

    def __init__(self, type_, raw, starts, y=None, places=None, plus_zero=False):
        self.type, self.raw, self.starts, self.y, self.places = type_, raw, starts, y, places
        self.spans = list(zip(starts, starts[1:]))
        self.plus_zero = plus_zero                        # a sum that is exactly zero is +0
        self.kept = {}

    def once(self, name, make):
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def magnitudes(self, which="raw"):
        """Bits without the sign."""
        def make():
            if self.type in INTS:
                return getattr(self, which)
            mask = FORMAT[self.type].sign - 1
            return [b & mask for b in getattr(self, which)]
        return self.once("magnitudes" + which, make)

    def infinite(self, which="raw"):
        """The numbers of elements that are NaN or infinite."""
        def make():
            if self.type in INTS:
                return []
            inf, sizes = FORMAT[self.type].inf, self.magnitudes(which)
            if max(sizes, default=0) < inf:
                return []
            return [i for i, m in enumerate(sizes) if m >= inf]
        return self.once("infinite" + which, make)

    def nans(self):
        def make():
            inf = FORMAT[self.type].inf if self.type not in INTS else 0
            sizes = self.magnitudes()
            return [i for i in self.infinite() if sizes[i] > inf]
        return self.once("nans", make)

    def first_nan(self, a, b):
        """The number of the first NaN in [a, b), or None."""
        nans = self.nans()
        if not nans:
            return None
        at = bisect.bisect_left(nans, a)
        return nans[at] if at < len(nans) and nans[at] < b else None

    def units(self, which="raw"):
        return self.once("units" + which, lambda: units(
            self.type, getattr(self, which), self.magnitudes(which), self.infinite(which)))

    def exponent(self, op):
        """Totals of the operator count in 2^exponent."""
        e = self.units()[1]
        return e + self.units("y")[1] if op == "dot" else 2 * e if op == "sumsq" else e

    def totals(self, op):
        """Each row's exact sum, sum of magnitudes, of squares or of products: an integer, or nan, inf, -inf."""
        return self.once("totals" + op, lambda: self._totals(op))

    def _totals(self, op):
        u = self.units()[0]
        if op == "sum":
            out = [sum(u[a:b]) for a, b in self.spans]
        elif op == "norm1":
            out = [sum(map(abs, u[a:b])) for a, b in self.spans]
        elif op == "sumsq":
            out = [sum(map(operator.mul, u[a:b], u[a:b])) for a, b in self.spans]
        else:
            v = self.units("y")[0]
            out = [sum(map(operator.mul, u[a:b], v[a:b])) for a, b in self.spans]
        wrong = sorted({*self.infinite(), *(self.infinite("y") if op == "dot" else [])})
        seen = {}
        if wrong:
            floats = to_floats(self.type, self.raw)
            others = to_floats(self.type, self.y) if op == "dot" else None
            for i in wrong:
                term = floats[i] * others[i] if op == "dot" else floats[i] if op == "sum" else abs(floats[i])
                seen.setdefault(bisect.bisect_right(self.starts, i) - 1, []).append(term)
        for row, terms in seen.items():
            out[row] = terms[0] if len(set(terms)) == 1 else math.nan
        return out

    def is_minus_zero(self, op, a, b):
        """Whether every term of a sum in [a, b) is -0; asked only where the sum is zero."""
        if self.type in INTS or a == b or self.plus_zero:
            return False
        sign = FORMAT[self.type].sign
        if op == "sum":
            return self.raw[a:b].count(sign) == b - a
        if op == "dot":
            sizes, others = self.magnitudes(), self.magnitudes("y")
            return all((not p or not q) and (r ^ s) & sign for p, q, r, s in
                       zip(sizes[a:b], others[a:b], self.raw[a:b], self.y[a:b]))
        return False

    def keys(self):
        """Integers that sort as the elements do, -0 below +0; a NaN's means nothing."""
        def make():
            if self.type in INTS:
                return signed(self.type, self.raw)
            sign = FORMAT[self.type].sign
            mask = 2 * sign - 1
            return [mask ^ b if b & sign else b | sign for b in self.raw]
        return self.once("keys", make)


# ---- Each operator ------------------------------------------------------------------------------

def float_special(form, value):
    return form.nan if math.isnan(value) else form.inf | (form.sign if value < 0 else 0)


def integer_value(out, value):
    bits = 8 * SIZE[out]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if out[0] == "i" else (0, (1 << bits) - 1)
    return value & (1 << bits) - 1 if low <= value <= high else "ERANGE"


def sums(rows, op, out):
    totals, exponent = rows.totals(op), rows.exponent(op)
    if out in INTS:
        return [integer_value(out, t) for t in totals]
    form = FORMAT[out]
    return [float_special(form, t) if isinstance(t, float) else form.round_ratio(t, 1, exponent) if t
            else form.sign if rows.is_minus_zero(op, *span) else 0 for t, span in zip(totals, rows.spans)]


def quotient(form, total, divisor, exponent, minus):
    """An exact sum divided by an integer other than 0."""
    if isinstance(total, float):
        return float_special(form, total if divisor > 0 else -total)
    if total == 0:
        return form.sign if minus != (divisor < 0) else 0
    return form.round_ratio(total if divisor > 0 else -total, abs(divisor), exponent)


def means(rows, out):
    form, exponent = FORMAT[out], rows.exponent("sum")
    return [form.nan if a == b else quotient(form, t, b - a, exponent, t == 0 and rows.is_minus_zero("sum", a, b))
            for t, (a, b) in zip(rows.totals("sum"), rows.spans)]


def variances(rows, out, ddof, root, about):
    form, exponent = FORMAT[out], rows.exponent("sumsq")
    if about is not None:
        return variances_about(rows, out, ddof, root, about)
    above, below = ddof.as_integer_ratio()
    rounded = form.round_root if root else form.round_ratio
    made = []
    for s, q, (a, b) in zip(rows.totals("sum"), rows.totals("sumsq"), rows.spans):
        n = b - a
        divisor = n * below - above                       # (n - ddof) * below
        if divisor <= 0 or isinstance(q, float):
            made.append(form.nan)
        else:
            made.append(rounded((n * q - s * s) * below, n * divisor, exponent))
    return made


def variances_about(rows, out, ddof, root, about):
    form, above, below = FORMAT[out], *ddof.as_integer_ratio()
    if not math.isfinite(about):
        return [form.nan for _ in rows.spans]
    m, over = about.as_integer_ratio()
    down = 1 - over.bit_length()                          # about = m 2^down
    units = [rows.exponent("sumsq"), rows.exponent("sum") + down, 2 * down]
    low = min(units)
    low -= low & 1                                        # of which a root is taken
    made = []
    for s, q, (a, b) in zip(rows.totals("sum"), rows.totals("sumsq"), rows.spans):
        n = b - a
        divisor = n * below - above
        if divisor <= 0 or isinstance(q, float):
            made.append(form.nan)
        else:
            total = sum(part << unit - low for part, unit in zip((q, -2 * m * s, n * m * m), units))
            made.append((form.round_root if root else form.round_ratio)(total * below, divisor, low))
    return made


def norms2(rows, out):
    form, exponent = FORMAT[out], rows.exponent("sumsq")
    return [float_special(form, q) if isinstance(q, float) else form.round_root(q, 1, exponent)
            for q in rows.totals("sumsq")]


def limits(type_, op):
    """What min or max of nothing is, as bits."""
    if type_ in INTS:
        bits = 8 * SIZE[type_]
        low, high = (1 << bits - 1, (1 << bits - 1) - 1) if type_[0] == "i" else (0, (1 << bits) - 1)
        return high if op == "min" else low
    form = FORMAT[type_]
    return form.inf if op == "min" else form.inf | form.sign


def ends(rows, op):
    keys, pick = rows.keys(), min if op == "min" else max
    empty = limits(rows.type, op)
    mask = (1 << 8 * SIZE[rows.type]) - 1
    made = []
    for a, b in rows.spans:
        if a == b:
            made.append(empty)
        elif rows.first_nan(a, b) is not None:
            made.append(FORMAT[rows.type].nan)
        else:
            key = pick(keys[a:b])
            if rows.type in INTS:
                made.append(key & mask)
            else:
                sign = FORMAT[rows.type].sign
                made.append(key ^ sign if key & sign else mask ^ key)
    return made


def positions(rows, op):
    keys, pick = rows.keys(), min if op == "argmin" else max
    made = []
    for a, b in rows.spans:
        if a == b:
            made.append("EINVAL")
            continue
        at = rows.first_nan(a, b)
        if at is None:
            row = keys[a:b]
            at = a + row.index(pick(row))
        made.append(rows.places[at] if rows.places is not None else at - a)
    return made


def norms_inf(rows, out):
    if rows.type in INTS:
        values = signed(rows.type, rows.raw)
        return [integer_value(out, max(map(abs, values[a:b]), default=0)) for a, b in rows.spans]
    form, sizes = FORMAT[rows.type], rows.magnitudes()
    return [min(max(sizes[a:b], default=0), form.inf) if rows.first_nan(a, b) is None else form.nan
            for a, b in rows.spans]


def bit_rows(rows, op):
    f = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[op]
    start = (1 << 8 * SIZE[rows.type]) - 1 if op == "and" else 0
    return [functools.reduce(f, rows.raw[a:b], start) for a, b in rows.spans]


def integer_products(rows, out):
    values = signed(rows.type, rows.raw)
    made = []
    for a, b in rows.spans:
        row = values[a:b]
        if 0 in row:
            made.append(0)
            continue
        large = [v for v in row if v != 1 and v != -1]
        made.append("ERANGE" if len(large) > 64 else integer_value(out, math.prod(row)))
    return made


# ---- The canonical tree -------------------------------------------------------------------------

LEAF, LANES = 4096, 32


def leaf(f, x, commutative):
    """A leaf's value; f combines two lists, element by element."""
    if commutative:
        lanes = x[:LANES]
        for start in range(LANES, len(x), LANES):
            row = x[start:start + LANES]
            lanes[:len(row)] = f(lanes[:len(row)], row)
        half = LANES // 2
        while half:
            upper = lanes[half:2 * half]
            if upper:
                lanes = f(lanes[:len(upper)], upper) + lanes[len(upper):half]
            half //= 2
        return lanes[0]
    run = LEAF // LANES
    lanes = []
    for start in range(0, len(x), run):
        value = x[start:start + 1]
        for v in x[start + 1:start + run]:
            value = f(value, [v])
        lanes += value
    return pairs(f, lanes)


def pairs(f, nodes):
    """Neighbours meet, until one is left; one without a partner goes up as it is."""
    while len(nodes) > 1:
        met = f(nodes[0:len(nodes) - 1:2], nodes[1::2])
        nodes = met + nodes[2 * len(met):]
    return nodes[0]


def tree(f, x, commutative):
    return pairs(f, [leaf(f, x[i:i + LEAF], commutative) for i in range(0, len(x), LEAF)])


def to_f32(values):
    """Doubles rounded to the nearest f32."""
    return array("f", values).tolist()


def multiply_f64(left, right):
    return [a * b for a, b in zip(left, right)]


def multiply_f32(left, right):
    return to_f32([a * b for a, b in zip(left, right)])   # a product of two f32 is exact in a double


def bits_of(type_, value):
    """The bits of a value of the tree: a double that is to be rounded to the type, once."""
    form = FORMAT[type_]
    if math.isnan(value) or math.isinf(value):
        return float_special(form, value)
    if value == 0:
        return form.sign if math.copysign(1, value) < 0 else 0
    above, below = value.as_integer_ratio()
    return form.round_ratio(above, 1, 1 - below.bit_length())


def float_products(rows):
    values = to_floats(rows.type, rows.raw)
    f = multiply_f64 if rows.type == "f64" else multiply_f32
    one = bits_of(rows.type, 1.0)
    return [bits_of(rows.type, tree(f, values[a:b], True)) if b > a else one for a, b in rows.spans]


def users(rows, which):
    """The worker's operators: 1 does not commute, 2 does."""
    type_ = rows.type
    commutes = which == 2
    if type_ in ("f32", "f64"):
        rounded = to_f32 if type_ == "f32" else list
        if commutes:
            def f(left, right):
                return rounded([a + b for a, b in zip(left, right)])
        else:
            def f(left, right):
                return rounded([a + b for a, b in zip(rounded([a * .5 for a in left]), right)])
        values = to_floats(type_, rows.raw)
        return [bits_of(type_, tree(f, values[a:b], commutes)) if b > a else 0 for a, b in rows.spans]
    mask = (1 << 8 * SIZE[type_]) - 1
    if commutes:
        def f(left, right):
            return [(a ^ b) + (a & b) * 5 & mask for a, b in zip(left, right)]
    else:
        def f(left, right):
            return [a * 3 + b & mask for a, b in zip(left, right)]
    made = [tree(f, rows.raw[a:b], commutes) if b > a else 0 for a, b in rows.spans]
    if type_ in FORMAT:
        form = FORMAT[type_]
        made = [form.nan if v & form.sign - 1 > form.inf else v for v in made]
    return made


# ---- All values of a problem --------------------------------------------------------------------

def value(rows, op, out, ddof, user, about=None):
    """The bits of each row's value, or "ERANGE" or "EINVAL"; `out` is the value's type."""
    if op in ("sum", "norm1", "sumsq", "dot"):
        return sums(rows, op, out)
    if op == "mean":
        return means(rows, out)
    if op in ("var", "std"):
        return variances(rows, out, ddof, op == "std", about)
    if op == "norm2":
        return norms2(rows, out)
    if op in ("min", "max"):
        return ends(rows, op)
    if op in ("argmin", "argmax"):
        return positions(rows, op)
    if op == "norminf":
        return norms_inf(rows, out)
    if op in ("and", "or", "xor"):
        return bit_rows(rows, op)
    if op == "prod":
        return integer_products(rows, out) if rows.type in INTS else float_products(rows)
    if op == "user":
        return users(rows, user)
    if op == "count":
        return [b - a for a, b in rows.spans]
    if op == "nans":
        nans = rows.nans()
        return [bisect.bisect_left(nans, b) - bisect.bisect_left(nans, a) for a, b in rows.spans]
    sizes = rows.magnitudes()
    zeros = [sizes[a:b].count(0) for a, b in rows.spans]
    if op == "nonzero":
        return [b - a - z for z, (a, b) in zip(zeros, rows.spans)]
    if op == "any":
        return [int(b - a > z) for z, (a, b) in zip(zeros, rows.spans)]
    assert op == "all"
    return [int(z == 0) for z in zeros]


def values(rows, question):
    """[(operator, type, [bits or status])] of a question."""
    made = []
    for op in value_ops([question.op, *question.also]):
        out = value_type(op, rows.type, question.out)
        asked = (question.ddof, repr(question.about)) if op in ("var", "std") else 0
        key = (op, out, asked, question.user if op == "user" else 0)
        made.append((op, out, rows.once(key, lambda: value(rows, op, out, question.ddof, question.user, question.about))))
    return made


def whole(rows, question):
    """tally_reduce(): (status, [(type code, bits)])."""
    made = [(out, bits[0]) for _, out, bits in values(rows, question)]
    if len(made) == 1 and isinstance(made[0][1], str):
        return made[0][1], []
    return "OK", [(0, 0) if isinstance(bits, str) else (CODE[out], bits) for out, bits in made]


def shaped(rows, question):
    """tally_reduce_shaped(): (status, the result that is wrong or -1, [bytes of each value's results])."""
    made = values(rows, question)
    status, wrong, out = "OK", -1, []
    for op, type_, bits in made:
        for row, b in enumerate(bits) if str in map(type, bits) else []:
            if isinstance(b, str) and not (b == "EINVAL" and len(made) > 1) and (wrong < 0 or row < wrong):
                status, wrong = b, row
        missing = NO_INDEX if op in ("argmin", "argmax") and len(made) > 1 else 0
        if str in map(type, bits):
            bits = [missing if isinstance(b, str) else b for b in bits]
        out.append((SIZE[type_], raw_bytes(type_, bits)))
    return status, wrong, out
