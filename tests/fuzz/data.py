"""Random elements, as raw bits, of many kinds; and ties built backwards.

A kind is a function of (random, type, number of elements, operator, result type). Rows of some kinds only say something
together - elements that cancel, or whose exact mean lies half-way between two floats; those are made row by row.
"""

from formats import FORMAT, FLOATS, INTS, PACK, SIZE, raw_of_bytes

SQUARES = ("var", "std", "norm2", "sumsq", "dot")


def bits(r, type_, n):
    """Random bits."""
    return raw_of_bytes(type_, r.getrandbits(8 * SIZE[type_] * n or 1).to_bytes(SIZE[type_] * n or 1, "little")) if n else []


def pick(r, low, high):
    """A random integer in [low, high]; quicker than randint()."""
    return low + int(r.random() * (high - low + 1))


# ---- Floats -------------------------------------------------------------------------------------

def span(r, type_, n, low, width, keep=None):
    """Random signs and mantissas; exponent fields from low to low + width, both clipped to the finite ones."""
    form = FORMAT[type_]
    keep = form.sign | form.mantissa if keep is None else keep
    top, field, exponents = form.top, form.field, form.exponents
    low = max(0, min(low, top))
    width = min(width, top - low) + 1
    if width == 1:
        e = low << field
        return [b & keep | e for b in bits(r, type_, n)]
    mask = (1 << exponents) - 1
    return [b & keep | low + (b >> field & mask) % width << field for b in bits(r, type_, n)]


def uniform(r, type_, n, op, out):
    return span(r, type_, n, FORMAT[type_].bias - 4, 3)


def ranged(r, type_, n, op, out):
    form = FORMAT[type_]
    width = r.choice((0, 1, 2, 5, 9, 14, 20, 24, 25, 30, 40, 40, 54, 60, 64, 80, 100, 200, 500))
    return span(r, type_, n, pick(r, 0, form.top), width, r.choice((None, None, form.sign, form.mantissa)))


def near_one(r, type_, n, op, out):
    return span(r, type_, n, FORMAT[type_].bias - 1, 1)


def few_bits(r, type_, n, op, out):
    """Mantissas of one to four bits: sums that are exact, and ties by chance."""
    form = FORMAT[type_]
    k = pick(r, 0, 4)
    keep = form.sign | form.mantissa & ~((1 << form.field - min(k, form.field)) - 1)
    return span(r, type_, n, pick(r, 0, form.top), pick(r, 0, 2 * form.field), keep)


def wide(r, type_, n, op, out):
    return span(r, type_, n, 0, 1 << 12)


def any_bits(r, type_, n, op, out):
    return bits(r, type_, n)


def integral(r, type_, n, op, out):
    form = FORMAT[type_]
    top = r.choice((1, 2, 7, 100))
    table = [0] + [form.round_integer(v, 0) for v in range(1, top + 1)] + \
        [form.sign | form.round_integer(v, 0) for v in range(1, top + 1)]
    size = len(table)
    return [table[b % size] for b in bits(r, type_, n)]


def constant(r, type_, n, op, out):
    return ranged(r, type_, 1, op, out) * n


def near_constant(r, type_, n, op, out):
    form = FORMAT[type_]
    value = max(ranged(r, type_, 1, op, out)[0] & form.inf - 1, 1)
    most = min(r.choice((1, 2, 3, 15)), form.inf - 1 - value)
    sign = form.sign * pick(r, 0, 1)
    return [sign | value + (b % (most + 1)) for b in bits(r, type_, n)]


def subnormal(r, type_, n, op, out):
    form = FORMAT[type_]
    keep = form.sign | form.mantissa >> pick(r, 0, form.field - 1)
    return [b & keep for b in bits(r, type_, n)]


def zeros(r, type_, n, op, out):
    sign = FORMAT[type_].sign
    return [sign] * n if r.random() < .5 else [b & sign for b in bits(r, type_, n)]


def huge(r, type_, n, op, out):
    """Near the largest number, or near its root where squares are asked for, or near the result type's."""
    form, to = FORMAT[type_], FORMAT.get(out, FORMAT[type_])
    top = to.top - to.bias
    if op in SQUARES and r.random() < .8:
        top //= 2
    return span(r, type_, n, top - 3 + form.bias, pick(r, 0, 4), r.choice((None, form.mantissa)))


def underflow(r, type_, n, op, out):
    """Around half of the result type's smallest number; or around its root."""
    form, to = FORMAT[type_], FORMAT.get(out, FORMAT[type_])
    low = to.lowest
    if op in SQUARES and r.random() < .8:
        low //= 2
    return span(r, type_, n, low - pick(r, 0, 6) + form.bias, pick(r, 0, 8), r.choice((None, form.mantissa, form.sign)))


def sprinkle(r, type_, made):
    """Puts a few NaNs, infinities or zeros among elements."""
    form, n = FORMAT[type_], len(made)
    quiet = form.inf + (form.mantissa + 1 >> 1)
    choices = [form.inf, form.inf | form.sign, form.inf | 1, quiet | 1, quiet | form.sign | pick(r, 0, form.mantissa >> 1),
               form.inf | form.sign | 1 + pick(r, 0, form.mantissa >> 2), quiet, 0, form.sign]
    if n:
        some = [r.choice(choices) for _ in range(pick(r, 1, 3))]
        for _ in range(pick(r, 1, 1 + n // r.choice((2, 8, 40)))):
            made[pick(r, 0, n - 1)] = r.choice(some)
    return made


def specials(r, type_, n, op, out):
    return sprinkle(r, type_, r.choice((uniform, ranged, few_bits, zeros))(r, type_, n, op, out))


FLOAT_KINDS = [uniform, ranged, ranged, near_one, few_bits, wide, any_bits, integral, constant, near_constant, subnormal, zeros,
               huge, underflow, underflow, specials]
PRODUCT_KINDS = [near_one, near_one, near_one, ranged, integral, specials, zeros, few_bits]


# ---- Integers -----------------------------------------------------------------------------------

def full(r, type_, n, op, out):
    return bits(r, type_, n)


def small(r, type_, n, op, out):
    mask = (1 << 8 * SIZE[type_]) - 1
    half = pick(r, 0, 5)
    low = 0 if type_[0] == "u" else half
    return [(b % (2 * half + 1)) - low & mask for b in bits(r, type_, n)]


def limits(r, type_, n, op, out):
    size = 8 * SIZE[type_]
    ends = [0, (1 << size) - 1] if type_[0] == "u" else [1 << size - 1, (1 << size - 1) - 1]
    if r.random() < .5:
        return [r.choice(ends)] * n
    return [ends[b & 1] for b in bits(r, type_, n)]


def offset(r, type_, n, op, out):
    """Near-constant integers."""
    mask = (1 << 8 * SIZE[type_]) - 1
    value, most = r.getrandbits(8 * SIZE[type_]), r.choice((1, 2, 9, 100))
    return [value + b % most & mask for b in bits(r, type_, n)]


def factors(r, type_, n, op, out):
    """Products near the limits of 64 bits: some twos among ones."""
    mask = (1 << 8 * SIZE[type_]) - 1
    made = [1] * n if type_[0] == "u" or r.random() < .5 else [1 if b & 1 else mask for b in bits(r, type_, n)]
    for _ in range(pick(r, 55, 66)):
        if n:
            made[pick(r, 0, n - 1)] = 2 if type_[0] == "u" or r.random() < .5 else mask - 1
    return made


def integer_magnitude(r, type_, n, op, out):
    """Of some bits each, so that sums and squares come near the limits of 64 bits."""
    size = 8 * SIZE[type_]
    keep = (1 << pick(r, 1, size)) - 1
    high = r.getrandbits(1) and type_[0] == "i"
    return [((1 << size) - (b & keep) & (1 << size) - 1) if high and b >> size - 1 else b & keep for b in bits(r, type_, n)]


INT_KINDS = [full, small, limits, offset, integer_magnitude, integer_magnitude]


# ---- Patchworks ---------------------------------------------------------------------------------

def elements(r, type_, n, op, out, lengths=None):
    """n elements of a kind that suits the operator, or of several: `lengths` are those of rows."""
    kinds = (PRODUCT_KINDS if op in ("prod", "user") else FLOAT_KINDS) if type_ in FLOATS else \
        INT_KINDS + [factors, factors] if op == "prod" else INT_KINDS
    made = r.choice(kinds)(r, type_, n, op, out)
    fate = r.random()
    if fate < .2 and n:                                   # each row, or stretch, of one of several kinds
        others = [made] + [r.choice(kinds)(r, type_, n, op, out) for _ in range(pick(r, 1, 3))]
        at, out_ = 0, []
        for size in lengths if lengths and r.random() < .7 else iter(lambda: pick(r, 1, 40), None):
            if at >= n:
                break
            out_ += r.choice(others)[at:at + size]
            at += size
        made = (out_ + made[len(out_):])[:n]
    elif fate < .3 and type_ in FLOATS:
        sprinkle(r, type_, made)
    elif fate < .45 and n:                                # some elements of another kind
        other = r.choice(kinds)(r, type_, n, op, out)
        share = r.choice((.02, .1, .5))
        for i in range(n) if n < 100 or share > .1 else [pick(r, 0, n - 1) for _ in range(1 + int(n * share))]:
            if n >= 100 or r.random() < share:
                made[i] = other[i]
    return made


def cancel(r, type_, row):
    """Makes most of a row cancel."""
    sign = FORMAT[type_].sign if type_ in FLOATS else 0
    half = len(row) // 2
    mask = (1 << 8 * SIZE[type_]) - 1
    back = [b ^ sign for b in row[:half]] if sign else [-b & mask for b in row[:half]]
    if r.random() < .5:
        r.shuffle(back)
    row[half:2 * half] = back
    if sign and r.random() < .3 and len(row) > 2:         # what is left is next to nothing, of either sign
        if len(row) % 2 == 0:
            other = row.index(row[half - 1] ^ sign, half)
            row[half - 1] = row[other] = 0
        row[-1 if len(row) % 2 else half - 1] = pick(r, 1, 3) | r.choice((0, sign))
    if r.random() < .3:
        r.shuffle(row)


# ---- Ties, built backwards ----------------------------------------------------------------------

class Unfit(Exception):
    """The row, or the type, has no room for it."""


def largest(type_, value, exponent):
    """The largest value of the type up to value * 2^exponent, value > 0: (value, bits), in the same unit."""
    if type_ in INTS:
        if exponent < 0:
            raise Unfit
        top = (1 << 8 * SIZE[type_] - (type_[0] == "i")) - 1 >> exponent
        value = min(value, top)
        return value, value << exponent
    form = FORMAT[type_]
    shift = max(form.lowest - exponent, value.bit_length() - form.precision, 0)
    if value >> shift == 0:
        raise Unfit
    value = value >> shift << shift
    made = form.round_integer(value, exponent)
    if made >= form.inf:
        made = form.inf - 1
        value = (1 << form.precision) - 1
        shift = form.top - form.bias - form.field - exponent
        if shift < 0:
            raise Unfit
        value <<= shift
    return value, made


def linear(type_, value, exponent, room):
    """Bits of at most `room` elements whose sum is value * 2^exponent, value > 0."""
    made = []
    while value:
        if len(made) == room:
            raise Unfit
        part, raw = largest(type_, value, exponent)
        made.append(raw)
        value -= part
    return made


def square_parts(value, exponent, precision, room):
    """Integers of `precision` bits whose squares sum to value, greedily."""
    import math
    made = []
    while value:
        if len(made) == room:
            raise Unfit
        part = math.isqrt(value)
        cut = max(part.bit_length() - precision, 0)
        part = part >> cut << cut
        made.append(part)
        value -= part * part
    return made


def element(type_, value, exponent):
    """The bits of value * 2^exponent, value >= 0, if it is a value of the type."""
    if value == 0:
        return 0
    part, raw = largest(type_, value, exponent)
    if part != value:
        raise Unfit
    return raw


def tie(r, type_, n, op, out, ddof):
    """(x, y or None): n elements whose exact result lies half-way between two neighbours of the result type, or the least
    bit beside. Unfit where there is no room."""
    to = FORMAT[out]
    size = to.precision + 1
    odd = (r.getrandbits(size) | 1 | 1 << size - 1) if r.random() < .9 else (1 << size) - 1
    if r.random() < .3:                                   # a result that is subnormal, or just not
        size = pick(r, 1, size)
        odd = r.getrandbits(size) | 1
        exponent = to.lowest - 1
    else:
        low, high = to.lowest - 1, to.top - to.bias - to.precision
        if r.random() < .7:
            low, high = max(low, -to.precision - 12), min(high, 12)
        exponent = pick(r, low, high)
        if r.random() < .1:
            exponent = high
    if type_ in INTS:
        exponent = max(exponent, 0) if op in ("sum", "norm1") else exponent
    negative = type_ not in INTS or type_[0] == "i"
    y = None
    if op in ("sum", "mean", "norm1", "dot"):
        value = odd * n if op == "mean" else odd
        if type_ in INTS and exponent < 0:                # only halves of n are left to choose from
            cut = -exponent
            if value & (1 << cut) - 1:
                raise Unfit
            value, exponent = value >> cut, 0
        x = linear(type_, value, exponent, n)
        if r.random() < .3 and len(x) + 2 <= n and negative and op != "norm1" and type_ in FLOATS:  # borrow: a - b
            x += x[:1] + [x[0] ^ FORMAT[type_].sign]
    elif op in ("sumsq", "norm2", "var", "std"):
        exponent -= exponent & 1
        value = odd * odd if op in ("norm2", "std") else odd
        if op in ("norm2", "std"):
            exponent = 2 * (exponent // 2) if r.random() < .5 else 2 * exponent
        pairs = op in ("var", "std")
        precision = FORMAT[type_].precision if type_ in FLOATS else 8 * SIZE[type_] - 1
        if pairs:
            if ddof != int(ddof) or n <= ddof:
                raise Unfit
            value *= n - int(ddof)
            if value & 1:
                value, exponent = value * 4, exponent - 2
            value //= 2
        parts = square_parts(value, exponent, precision, n // 2 if pairs else n)
        x = [element(type_, p, exponent // 2) for p in parts]
        if pairs:
            if not negative:
                raise Unfit
            minus = (lambda b: b ^ FORMAT[type_].sign) if type_ in FLOATS else \
                (lambda b: -b & (1 << 8 * SIZE[type_]) - 1)
            x += [minus(b) for b in x]
    else:
        raise Unfit
    x += [0] * (n - len(x))
    if op == "dot":
        if type_ in INTS:
            y = [1] * n
        else:
            form = FORMAT[type_]
            y = []
            for i, b in enumerate(x):                     # a power of two goes to and fro
                field = b >> form.field & (1 << form.exponents) - 1
                k = pick(r, -8, 8)
                if 9 < field < form.top - 9:
                    x[i] = b + (k << form.field)
                    y.append(form.bias - k << form.field)
                else:
                    y.append(form.bias << form.field)
    fate = r.random()
    if fate < .6 and n and type_ in FLOATS:               # the least bit beside
        form = FORMAT[type_]
        least = 1 if fate < .3 else form.sign | 1
        spare = [i for i, b in enumerate(x) if b == 0]
        if spare and (op != "norm1" or fate < .3):
            x[spare[0]] = least
            if r.random() < .3:
                x[spare[0]] += pick(r, 0, form.inf // 3)  # or more than the least
        else:
            i = pick(r, 0, n - 1)
            x[i] = x[i] - 1 if x[i] & form.sign - 1 else least
    elif fate < .6 and n:
        i = pick(r, 0, n - 1)
        x[i] = x[i] + 1 & (1 << 8 * SIZE[type_]) - 1
    order = list(range(n))
    r.shuffle(order)
    x = [x[i] for i in order]
    if y:
        y = [y[i] for i in order]
    if type_ in FLOATS and op in ("sum", "mean", "dot") and r.random() < .5:
        sign = FORMAT[type_].sign
        x = [b ^ sign for b in x]
    return x, y
