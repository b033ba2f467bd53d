"""States of every problem: fed, merged, taken apart, saved, loaded, sent as words, in programs made at random.

What a state knows is always an array in the test's hands; whatever way led to the state, its values are the
oracle's of that array, and its bytes are those of a state that was fed the array at once.
"""

from fractions import Fraction

import numpy as np
import pytest

import data
import oracle
import tally
from oracle import ANY_FLOAT
from tally import DTYPE, FLOATS, INTS, LISTS, NOBODY, OPS, SIZE, STATISTICS, TYPES, State
from test_exact_states import forged, word
from test_statistics import kinds, shown
from test_tree import mixing

ADDITIVE = ["sum", "mean", "var", "std", "norm1", "norm2", "sumsq", "dot", "count", "nans", "nonzero"]
SUBTRACT = ADDITIVE + ["xor"]
NEGATE = ["sum", "mean", "dot"]
DIVIDED = ["sum", "mean", "norm1", "sumsq", "dot"]


def is_tree(op, type_):
    return op == "prod" and type_ in FLOATS


def problems(g, type_, pool, many):
    """Problems of one operator each, and some of several."""
    made = [([op], {}) for op in pool]
    for _ in range(many):
        ops = [str(op) for op in g.choice(pool, min(int(g.integers(2, 5)), len(pool)), replace=False)]
        if sum(op in ("and", "or", "xor") for op in ops) < 2:
            made.append((ops, {}))
    for ops, options in made:
        if g.random() < .5 and any(op in ANY_FLOAT for op in ops):
            options["out"] = str(g.choice(FLOATS))
        if g.random() < .5:
            options["ddof"] = float(g.choice([1.0, 0.5, 2.5]))
    return made


def expected(ops, type_, raw, y=None, plus_zero=False, out=None, ddof=0.0):
    """The oracle's values, as State.value() gives them. `plus_zero`: a sum that is zero is +0."""
    made = []
    for op in [each for name in ops for each in LISTS.get(name, [name])]:
        value = oracle.statistic(op, type_, raw, y, out=out, ddof=ddof)
        if plus_zero and op in ("sum", "mean", "dot") and type_ in FLOATS and \
                not oracle.sum_of("dot" if op == "dot" else "sum", type_, raw, y)[1] and \
                value[1] == oracle.SIGN[value[0]]:
            value = value[0], 0
        made.append(value)
    return [None if isinstance(v, str) else v for v in made] if len(made) > 1 else made[0]


def new(ops, type_, **options):
    return State(ops[0], type_, also=ops[1:], **options)


def pick(g, devices):
    return devices[int(g.integers(0, len(devices)))]


# ---- Programs -------------------------------------------------------------------------------------

class Known:
    """A state, and the array that it must know."""

    def __init__(self, ops, type_, options):
        self.ops, self.type, self.options = ops, type_, options
        self.state = new(ops, type_, **options)
        self.x = self.y = np.zeros(0, DTYPE[type_])
        self.plus_zero = False

    def check(self, what):
        want = expected(self.ops, self.type, self.x, self.y if "dot" in self.ops else None, self.plus_zero,
                        **self.options)
        got = self.state.value()
        assert self.state.count() == len(self.x), what
        assert got == want, (self.ops, self.type, self.options, what, len(self.x), shown(got), shown(want),
                             data.SEED)

    def keep(self, x, y):
        self.x, self.y = x, y
        if not len(x):
            self.plus_zero = False


def program(g, type_, ops, options, devices, steps):
    two = "dot" in ops
    known = [Known(ops, type_, options) for _ in range(3)]
    may_subtract = all(op in SUBTRACT for op in ops)
    may_negate = all(op in NEGATE for op in ops)
    told = []
    for _ in range(steps):
        a, b = known[int(g.integers(0, 3))], known[int(g.integers(0, 3))]
        step = str(g.choice(["feed", "feed", "feed", "merge", "reload", "copy", "clear", "subtract", "negate",
                             "words"], p=[.2, .15, .1, .2, .1, .05, .02, .1, .05, .03]))
        told.append(step)
        if step == "feed":
            n = int(g.choice([0, 1, 2, 5, 30, 300]))
            x, y = (data.make(g, str(g.choice(kinds(type_))), type_, n) for _ in range(2))
            a.state.feed(x, y if two else None, pick(g, devices))
            a.keep(np.concatenate([a.x, x]), np.concatenate([a.y, y]))
        elif step == "merge" and len(a.x) + len(b.x) < 3000:
            had = b.state.save()
            a.state.merge(b.state)
            assert a is b or b.state.save() == had
            a.plus_zero |= b.plus_zero
            a.keep(np.concatenate([a.x, b.x]), np.concatenate([a.y, b.y]))
        elif step == "reload":
            saved = a.state.save()
            a.state = a.state.load(saved, given=bool(g.integers(0, 2)))
            assert a.state.save() == saved
        elif step == "copy":
            b.state = a.state.copy()
            assert b.state.save() == a.state.save()
            b.plus_zero = a.plus_zero
            b.keep(a.x, a.y)
        elif step == "clear":
            a.state.clear()
            a.keep(a.x[:0], a.y[:0])
        elif step == "subtract" and may_subtract and len(a.x):
            part = np.zeros(len(a.x), bool)
            part[g.choice(len(a.x), int(g.integers(0, len(a.x) + 1)), replace=False)] = True
            taken = new(ops, type_, **options).feed(a.x[part], a.y[part] if two else None)
            assert a.state.subtract(taken) == "OK"
            a.plus_zero = True
            a.keep(a.x[~part], a.y[~part])
        elif step == "negate" and may_negate and type_ in FLOATS:
            assert a.state.negate() == "OK"
            a.plus_zero = True
            a.keep(a.x ^ DTYPE[type_](oracle.SIGN[type_]), a.y)
        elif step == "words":
            words = a.state.words()
            if words is not None:
                other = new(ops, type_, **options)
                assert other.from_words(words) == "OK"
                assert other.save() == a.state.save()
                a.state = other
        a.check(told)
    for k in known:
        k.check(told)
        if not k.plus_zero:
            whole = new(ops, type_, **k.options).feed(k.x, k.y if two else None, pick(g, devices))
            assert whole.save() == k.state.save(), (ops, type_, told, data.SEED)


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_counts_that_no_double_holds(type_):
    """2^54 + 2 elements and a ddof of 2^54, which as doubles are equal: n - ddof is 2."""
    pair = data.floats(type_, [0.0, 1.0])
    for op in ("var", "std"):
        state = new([op], type_, ddof=2.0**54).feed(pair)
        for _ in range(53):
            state.merge(state.copy())
        state.feed(pair)
        n = 2**54 + 2
        variance = Fraction(n, 8)  # S = Q = n / 2
        rounded = oracle.round_root if op == "std" else oracle.round_ratio
        want = type_, rounded(type_, variance.numerator, variance.denominator)
        assert state.value() == want, op


@pytest.mark.parametrize("type_", TYPES)
def test_programs(type_, few_devices):
    g = data.rng("programs " + type_)
    pool = [op for op in OPS + STATISTICS if not is_tree(op, type_)]
    for ops, options in problems(g, type_, pool, 12):
        program(g, type_, ops, options, few_devices, 12)


@pytest.mark.parametrize("type_", ["f32", "f64", "i32"])
def test_programs_that_take_away(type_, few_devices):
    g = data.rng("programs that take away " + type_)
    for ops, options in problems(g, type_, SUBTRACT, 8) + problems(g, type_, NEGATE, 4):
        program(g, type_, ops, options, few_devices, 20)


@pytest.mark.parametrize("op,type_", [(op, type_) for op in OPS + STATISTICS for type_ in TYPES
                                      if not is_tree(op, type_)])
def test_bytes_do_not_tell_the_way(op, type_, devices):
    """Fed at once, fed in pieces, merged of parts, on whatever devices: the same bytes."""
    g = data.rng(f"the way {op} {type_}")
    for n in (0, 1, 2, 100, 3000):
        for kind in kinds(type_)[::3] + ["specials" if type_ in FLOATS else "extremes"]:
            x = data.make(g, kind, type_, n)
            y = data.make(g, str(g.choice(kinds(type_))), type_, n) if op == "dot" else None
            whole = State(op, type_).feed(x, y, pick(g, devices))
            saved, value = whole.save(), whole.value()
            for _ in range(3):
                points = np.sort(g.integers(0, n + 1, 4)).tolist()
                pieces = list(zip([0] + points, points + [n]))
                parts = []
                for a, b in pieces:
                    part = State(op, type_)
                    assert part.begin_at(a) == "OK"
                    parts.append(part.feed(x[a:b], None if y is None else y[a:b], pick(g, devices)))
                while len(parts) > 1:
                    i = int(g.integers(0, len(parts) - 1))
                    parts[i].merge(parts.pop(i + 1))
                assert parts[0].save() == saved and parts[0].value() == value, (kind, n, pieces, data.SEED)
                in_pieces = State(op, type_)
                for a, b in pieces:
                    in_pieces.feed(x[a:b], None if y is None else y[a:b], pick(g, devices))
                assert in_pieces.save() == saved, (kind, n, pieces, data.SEED)


def test_exact_states_of_different_floats_merge():
    g = data.rng("different floats")
    for op in [op for op in ADDITIVE if op != "dot"] + ["any", "all"]:
        for type_ in FLOATS:
            for other in FLOATS:
                x, y = data.finite_bits(g, type_, 40), data.finite_bits(g, other, 30)
                left = State(op, type_, ddof=0.5).feed(x)
                left.merge(State(op, other, ddof=0.5).feed(y))
                wide = np.concatenate([oracle.to_f64(type_, x), oracle.to_f64(other, y)]).view(np.uint64)
                want = oracle.statistic(op, "f64", wide, ddof=0.5, out=type_ if op in ANY_FLOAT else None)
                assert left.value() == want, (op, type_, other, data.SEED)
    for op in ("min", "argmax", "minmax", "prod", "describe", "or"):
        assert State(op, "f32").feed(np.ones(3, np.uint32)).try_merge(State(op, "f64")) == "EINVAL"


def test_states_of_different_problems_do_not_merge():
    one = np.ones(1, np.uint32)
    for a, b in (({"op": "sum"}, {"op": "mean"}), ({"op": "var"}, {"op": "std"}), ({"op": "min"}, {"op": "max"}),
                 ({"op": "sum"}, {"op": "sum", "fast": True}), ({"op": "sum"}, {"op": "sum", "also": ["mean"]}),
                 ({"op": "sum", "type_": "f32"}, {"op": "sum", "type_": "u32"}), ({"op": "or"}, {"op": "xor"}),
                 ({"op": "sum", "type_": "i32"}, {"op": "sum", "type_": "u32"}),
                 ({"op": "sum", "type_": "i32"}, {"op": "sum", "type_": "i16"}), ({"op": "any"}, {"op": "all"}),
                 ({"op": "argmin"}, {"op": "min"}), ({"op": "minmax"}, {"op": "min"})):
        a, b = State(**{"type_": "f32", **a}), State(**{"type_": "f32", **b})
        for state in (a, b):
            state.feed(one.astype(DTYPE[state.type]))
        for left, right in ((a, b), (b, a)):
            had = left.save()
            assert left.try_merge(right) == "EINVAL" and left.subtract(right) == "EINVAL"
            assert left.save() == had
    state = State("sum", "f32")
    assert tally.state_merge(state.handle, None) == tally.state_merge(None, state.handle) == tally.EINVAL
    assert tally.state_subtract(state.handle, None) == tally.EINVAL
    assert tally.state_negate(None) == tally.EINVAL


# ---- Taking away ----------------------------------------------------------------------------------

@pytest.mark.parametrize("type_", TYPES)
def test_what_can_be_taken_away(type_):
    g = data.rng("taken away " + type_)
    raw = data.make(g, kinds(type_)[0], type_, 50)
    for op in OPS + STATISTICS:
        y = raw if op == "dot" else None
        state, part = State(op, type_).feed(raw, y), State(op, type_).feed(raw[:20], None if y is None else y[:20])
        had = state.save()
        if op in SUBTRACT:
            assert part.subtract(state) == "EINVAL"  # it has fewer
            assert state.subtract(part) == "OK" and state.count() == 30
            assert state.value() == expected([op], type_, raw[20:], raw[20:] if op == "dot" else None)
            assert state.subtract(state) == "OK" and state.save() == State(op, type_).save()
        else:
            assert state.subtract(part) == "EUNSUPPORTED" and state.save() == had, op
            assert state.subtract(state) == "EUNSUPPORTED" and state.save() == had, op
        state = State(op, type_).feed(raw, y)
        if op in NEGATE:
            assert state.negate() == "OK"
        else:
            assert state.negate() == "EUNSUPPORTED" and state.save() == had, op
    for ops in (["sum", "min"], ["mean", "any"], ["var", "argmin"], ["nonzero", "prod"]):
        state = new(ops, type_).feed(raw)
        assert state.subtract(new(ops, type_)) == "EUNSUPPORTED"
    for ops in (["sum", "var"], ["mean", "norm1"], ["sum", "count"], ["describe"]):
        assert new(ops, type_).feed(raw).negate() == "EUNSUPPORTED"
    if type_ in FLOATS:
        assert State("sum", type_, fast=True).feed(raw).negate() == "EUNSUPPORTED"
        assert State("mean", type_, fast=True).feed(raw).subtract(State("mean", type_, fast=True)) == \
            "EUNSUPPORTED"
    else:
        state = State("mean", type_).feed(raw)
        assert state.negate() == "OK"
        assert state.value() == oracle.quotient("f64", (None, -sum(raw.tolist()), 0, False), 50)


def test_negated_integers():
    """A sum that is negated may leave its type, and comes back."""
    for type_, raw, values in (("u64", [5], ["ERANGE", ("u64", 5)]), ("u64", [0, 0], [("u64", 0), ("u64", 0)]), ("u8", [], [("u64", 0)] * 2),
                               ("i64", [-1 << 63], ["ERANGE", ("i64", 1 << 63)]),
                               ("i64", [(1 << 63) - 1, 1], [("i64", 1 << 63), "ERANGE"]), ("u32", [7], ["ERANGE", ("u64", 7)])):
        state = State("sum", type_).feed(np.array(raw, DTYPE[type_]))
        for value in values:
            assert state.negate() == "OK" and state.value() == value, (type_, raw)


def test_elements_that_were_never_there():
    one, inf, nan = (np.array([b], np.uint64) for b in
                     (oracle.ONE["f64"], oracle.INF["f64"], oracle.NAN["f64"]))
    minus = inf | np.uint64(1 << 63)
    for op in ("sum", "mean", "norm1", "var", "sumsq"):
        state = State(op, "f64").feed(np.concatenate([one, one, inf, nan]))
        had = state.save()
        for wrong in ((nan, nan), (inf, inf), (minus,)):
            if wrong == (minus,) and op in ("norm1", "sumsq"):
                continue  # as good as +inf
            assert state.subtract(State(op, "f64").feed(np.concatenate(wrong))) == "EINVAL", op
            assert state.save() == had
        assert state.subtract(State(op, "f64").feed(np.concatenate([nan, inf]))) == "OK"
        assert state.value() == expected([op], "f64", np.concatenate([one, one]))
    state = State("nonzero", "u8").feed(np.array([0, 0, 1], np.uint8))
    had = state.save()
    assert state.subtract(State("nonzero", "u8").feed(np.ones(2, np.uint8))) == "EINVAL"
    assert state.save() == had


@pytest.mark.parametrize("type_", ["f16", "f32", "f64", "i16"])
def test_a_window_that_moves(type_):
    """Added at one end and taken away at the other: at every place as if it had been reduced alone."""
    g = data.rng("window " + type_)
    raw = data.make(g, "bits" if type_ in FLOATS else "full", type_, 400)
    if type_ in FLOATS:
        raw[[50, 120, 121]] = oracle.INF[type_], oracle.INF[type_] | 5, oracle.INF[type_] | oracle.SIGN[type_]
    for ops in (["mean", "std"], ["sum", "nonzero"], ["norm1", "norm2", "count"]):
        window = new(ops, type_, ddof=1)
        for i in range(len(raw)):
            window.feed(raw[i:i + 1])
            if i >= 30:
                assert window.subtract(new(ops, type_, ddof=1).feed(raw[i - 30:i - 29])) == "OK"
            if i % 7 == 0 or i > 380:
                want = expected(ops, type_, raw[max(0, i - 29):i + 1], ddof=1, plus_zero=True)
                assert window.value() == want, (ops, i, shown(window.value()), shown(want), data.SEED)


# ---- Complex elements -----------------------------------------------------------------------------

@pytest.mark.parametrize("type_", FLOATS)
def test_imaginary_parts_of_minus_zeros(type_, devices):
    """Whether some imaginary part is not -0 is known, and saved, on all devices alike."""
    mixed = 1 + 2 * (4 + 68) + 2 * (4 + 136) - 68 - 1
    for n in (1, 5, 5000):
        x, zeros = data.floats(type_, np.arange(n)), data.floats(type_, np.full(n, -0.0))
        saved = set()
        for device in (NOBODY, *devices, tally.Device("model")):
            state = State("var", type_, is_complex=True).feed(x, zeros, device)
            saved.add(state.save())
            assert state.words()[mixed] == 0
            assert state.feed(zeros, x, device).words()[mixed] == 1
        assert len(saved) == 1


# ---- More elements than 64 bits count -------------------------------------------------------------

@pytest.mark.parametrize("skip_nan", [False, True])
@pytest.mark.parametrize("also", [(), ("count", "sum")])
def test_indices_beyond_64_bits(also, skip_nan):
    """Elements that are skipped have indices, too: two states with too many are not merged, in words neither."""
    nan, one = (data.floats("f64", [value]) for value in (np.nan, 1.0))
    half = State("argmin", "f64", also=also, skip_nan=skip_nan).feed(nan)
    for _ in range(63):
        half.merge(half)
    whole = half.copy()
    assert whole.try_merge(half) == "ERANGE" and whole.save() == half.save()
    whole.feed(one)
    assert whole.try_merge(half) == "ERANGE"
    want = ("u64", 1 << 63 if skip_nan else 0)
    assert (whole.value()[0] if also else whole.value()) == want
    if skip_nan:
        words = half.merge_words()
        assert half.try_merge_words(words, words.copy()) == "ERANGE"


# ---- Divided --------------------------------------------------------------------------------------

@pytest.mark.parametrize("type_", TYPES)
def test_divided(type_):
    g = data.rng("divided " + type_)
    divisors = [1, -1, 2, 3, -3, 7, 10, 1000, 2 ** 31 - 1, 2 ** 32, -(2 ** 32) - 1, 2 ** 62 + 1, 2 ** 63 - 1,
                -(2 ** 63)] + g.integers(-(1 << 62), 1 << 62, 6).tolist()
    natural = type_ if type_ in FLOATS else "f64"
    for op in DIVIDED:
        for kind in kinds(type_):
            for n in (0, 1, 3, 60):
                x, y = data.make(g, kind, type_, n), data.make(g, kind, type_, n)
                y = y if op == "dot" else None
                asked = [None, *FLOATS][int(g.integers(0, 5))]
                state = State(op, type_, out=asked).feed(x, y)
                total = oracle.sum_of("sum" if op == "mean" else op, type_, x, y)
                for divisor in [divisors[int(i)] for i in g.integers(0, len(divisors), 5)]:
                    for out in (None, str(g.choice(FLOATS))):
                        got, want = state.divided(divisor, out), oracle.quotient(out or asked or natural, total, divisor)
                        assert got == want, (op, type_, kind, n, divisor, shown(got), shown(want), data.SEED)
                assert state.value() == oracle.statistic(op, type_, x, y, out=asked)  # which it still is
    for op in OPS + STATISTICS:
        state = State(op, type_)
        if op not in DIVIDED:
            assert state.divided(3) == "EUNSUPPORTED", op
        else:
            assert state.divided(0) == "EINVAL"
            for out in INTS + [13, -1, 99]:
                assert state.divided(3, out) == "ETYPE"
    if type_ in FLOATS:
        assert State("sum", type_, fast=True).divided(3) == "EUNSUPPORTED"


@pytest.mark.parametrize("type_", FLOATS)
def test_divided_half_way(type_):
    """Sums made so that a quotient ties; and one least bit beside it."""
    g = data.rng("divided half-way " + type_)
    smallest = oracle.units_of_bits(type_, 1)
    for b in data.finite_bits(g, type_, 60).tolist() + [0, 1, oracle.INF[type_] - 1]:
        b &= oracle.SIGN[type_] - 1
        here = oracle.units_of_bits(type_, b)
        step = (oracle.units_of_bits(type_, b + 1) - here) if b + 1 < oracle.INF[type_] else \
            here - oracle.units_of_bits(type_, b - 1)
        divisor = 2 * int(g.integers(1, 500))
        for tail in (0, smallest, -smallest):
            units = (2 * here + step) * (divisor // 2) + tail
            raw = data.exactly(g, type_, units, np.zeros(0, DTYPE[type_]))
            state = State("sum", type_).feed(raw)
            for sign in (1, -1):
                assert state.divided(sign * divisor, type_) == \
                    oracle.quotient(type_, (None, units, oracle.UNIT, False), sign * divisor), data.SEED


# ---- Words ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("type_", TYPES)
def test_words_are_added_up(type_, few_devices):
    """NumPy adds the words of many states in any order; the sum is the state of all elements."""
    g = data.rng("words " + type_)
    for ops, options in problems(g, type_, ADDITIVE, 10):
        two = "dot" in ops
        for n in (0, 3, 200):
            x, y = (data.make(g, str(g.choice(kinds(type_))), type_, n) for _ in range(2))
            whole = new(ops, type_, **options).feed(x, y if two else None)
            parts = [new(ops, type_, **options).feed(a, b if two else None, pick(g, few_devices))
                     for a, b in zip(np.array_split(x, 9), np.array_split(y, 9))]
            words = [p.words() for p in parts]
            assert len({len(w) for w in words}) == 1 and words[0].dtype == np.int64
            total = np.zeros_like(words[0])
            for i in g.permutation(len(words)).tolist():
                total = total + words[i]
            state = new(ops, type_, **options).feed(x[:1], y[:1] if two else None)  # whatever it was
            assert state.begin_at(3) == ("OK" if n == 0 else "EINVAL")
            assert state.from_words(total) == "OK"
            assert state.value() == whole.value() and state.count() == n, (ops, type_, data.SEED)
            assert state.save() == whole.save()
            assert (state.words() == whole.words()).all()


def test_words_of_two_to_the_31_states():
    """Any limb at its fullest, 2^31 times over."""
    g = data.rng("many words")
    for type_ in TYPES:
        for op in ADDITIVE:
            for kind in kinds(type_):
                x = data.make(g, kind, type_, 12)
                y = data.make(g, kind, type_, 12) if op == "dot" else None
                once = State(op, type_).feed(x, y)
                words = [int(w) << 31 for w in once.words()]
                assert all(-(1 << 63) <= w < 1 << 63 for w in words), (op, type_, words)
                many = State(op, type_)
                assert many.from_words(np.array(words, np.int64)) == "OK", (op, type_, kind)
                for _ in range(31):
                    once.merge(once)
                assert many.count() == once.count() == 12 << 31
                assert many.value() == once.value() and many.save() == once.save()
    full = np.array([0x7fefffffffffffff, 0x000fffffffffffff, 0x3fffffffffffffff, 0x3bafffffffffffff], np.uint64)
    for signs in (0, 1 << 63):
        raw = full | np.uint64(signs)
        once = State("sum", "f64").feed(raw)
        many = State("sum", "f64")
        assert many.from_words(once.words() << np.int64(31)) == "OK"
        units = sum(oracle.units_of_bits("f64", b) for b in raw.tolist()) << 31
        assert many.value() == ("f64", oracle.round_units("f64", units))


def test_words_that_are_none():
    for type_ in TYPES:
        for op in OPS + STATISTICS:
            state = State(op, type_)
            additive = op in ADDITIVE + ["any", "all"] or op == "sum"
            assert (state.words() is not None) == additive, (op, type_)
            if not additive:
                room = np.zeros(400, np.int64)
                assert tally.state_to_words(state.handle, room.ctypes.data) == tally.EUNSUPPORTED
                assert state.from_words(room) == "EUNSUPPORTED" and not room.any()
    assert State("sum", "f64", fast=True).words() is None
    assert tally.state_words(None) == 0
    raw = data.floats("f64", [1.5, -2.5, 1e300])
    for op in ("sum", "var", "nonzero"):
        state = State(op, "f64").feed(raw)
        saved, words = state.save(), state.words()
        assert tally.state_to_words(state.handle, None) == tally.EINVAL
        assert tally.state_from_words(state.handle, None) == tally.EINVAL
        for i in range(len(words)):
            for value in (-(1 << 63), (1 << 63) - 1, -1):
                damaged = words.copy()
                damaged[i] = value
                other = State(op, "f64").feed(raw)
                status = other.from_words(damaged)
                assert status in ("OK", "EFORMAT")
                if status == "EFORMAT":
                    assert other.save() == saved
                else:
                    other.value()
                    assert State(op, "f64").load(other.save()).save() == other.save()
        for i, value in ((0, -1), (0, -(1 << 63)), (0, 0), (1, 4), (1, -1)):
            damaged = words.copy()
            damaged[i] = value
            assert state.from_words(damaged) == "EFORMAT" and state.save() == saved, (op, i, value)
    many = State("count", "u8")
    assert many.from_words(np.array([(1 << 63) - 1])) == "OK" and many.count() == (1 << 63) - 1
    many.merge(State("count", "u8").feed(np.zeros(1, np.uint8)))
    room = np.zeros(4, np.int64)
    assert tally.state_to_words(many.handle, room.ctypes.data) == tally.ERANGE and not room.any()


# ---- Over the canonical tree ----------------------------------------------------------------------

def tree_problem(g, type_, commutative):
    """A float product, or a user's operator: (problem's op, the value that raw must have)."""
    if commutative is None:
        return "prod", lambda raw: oracle.answer("prod", type_, raw)
    f = mixing(type_, commutative)
    identity = int(data.random_bits(g, type_, 1)[0])
    operator = tally.UserOperator(f, type_, identity, commutative)
    return operator, lambda raw: (type_, oracle.tree_bits(type_, f, raw, commutative, identity))


@pytest.mark.parametrize("type_,commutative", [("f16", None), ("bf16", None), ("f32", None), ("f64", None),
                                               ("u8", True), ("f32", True), ("i16", False), ("f64", False)])
def test_neighbours_over_the_tree(type_, commutative, few_devices):
    """Parts of an array, each a state that says where it begins, merged in any nesting."""
    g = data.rng(f"neighbours {type_} {commutative}")
    op, answer = tree_problem(g, type_, commutative)
    for n in (0, 1, 5, 4095, 4096, 4097, 8192, 9000, 20000, 70001):
        raw = data.make(g, "near-one", type_, n) if type_ in FLOATS else data.make(g, "full", type_, n)
        whole = State(op, type_).feed(raw, device=pick(g, few_devices))
        assert whole.value() == answer(raw)
        saved = whole.save()
        for _ in range(4):
            points = g.integers(0, n + 1, int(g.integers(0, 7))).tolist()
            points += (g.integers(0, n // 4096 + 1, 2) * 4096).tolist() if g.random() < .5 else []
            points = sorted(min(p, n) for p in points)
            parts = []
            for a, b in zip([0] + points, points + [n]):
                part = State(op, type_)
                assert part.begin_at(a) == "OK"
                middle = int(g.integers(a, b + 1))
                part.feed(raw[a:middle], device=pick(g, few_devices))
                part.feed(raw[middle:b], device=pick(g, few_devices))
                if b > a:
                    assert part.begin_at(a) == "EINVAL"
                    if a > 0:
                        assert part.value() == "EINVAL"
                    assert part.try_merge(part) == "EINVAL"
                parts.append(part)
            while len(parts) > 1:
                i = int(g.integers(0, len(parts) - 1))
                if g.random() < .3:
                    had = parts[i].save()
                    parts[i] = parts[i].load(had)
                    assert parts[i].save() == had
                if g.random() < .2:
                    parts[i] = parts[i].copy()
                had = parts[i].save(), parts[i + 1].save()
                if parts[i].count() and parts[i + 1].count():
                    assert parts[i + 1].try_merge(parts[i]) == "EINVAL"
                    assert (parts[i].save(), parts[i + 1].save()) == had
                right = parts.pop(i + 1)
                parts[i].merge(right)
                assert right.save() == had[1]
            assert parts[0].value() == answer(raw), (type_, commutative, n, points, data.SEED)
            assert parts[0].save() == saved, (type_, commutative, n, points, data.SEED)
    if commutative is not None:
        assert not op.problems, op.problems[0]


def test_far_along_the_tree():
    """A part that begins near 2^64: it can be fed, saved, loaded and merged, and ends at 2^64 - 1."""
    g = data.rng("far along")
    end = (1 << 64) - 1
    for first in (end - 9000, 3 << 40, (1 << 52) + 4097, 1):
        raw = data.make(g, "near-one", "f32", 9000)
        whole = State("prod", "f32")
        assert whole.begin_at(first) == "OK"
        whole.feed(raw)
        parts = []
        for a, b in ((0, 100), (100, 5000), (5000, 9000)):
            part = State("prod", "f32")
            assert part.begin_at(first + a) == "OK"
            parts.append(part.feed(raw[a:b]))
        parts[1] = parts[1].load(parts[1].save())
        parts[0].merge(parts[1]).merge(parts[2])
        assert parts[0].save() == whole.save()
        assert whole.load(whole.save()).save() == whole.save()
        assert whole.feed_at(NOBODY, raw.ctypes.data, 1) == ("ERANGE" if first == end - 9000 else "OK")
    for op in ("sum", "prod"):
        state = State(op, "f32")
        assert state.begin_at(end) == "OK"
        assert state.feed_at(NOBODY, raw.ctypes.data, 1) == "ERANGE" and state.count() == 0
        assert state.begin_at(end - 1) == "OK"
        assert state.feed_at(NOBODY, raw.ctypes.data, 1) == "OK"
        assert state.feed_at(NOBODY, raw.ctypes.data, 1) == "ERANGE" and state.count() == 1
    assert tally.state_begin_at(None, 0) == tally.EINVAL


@pytest.mark.parametrize("type_", ["f32", "i32"])
def test_trees_beside_other_parts(type_, few_devices):
    """A problem of a user's operator and of sums and extremes, in one state."""
    g = data.rng("beside " + type_)
    op, answer = tree_problem(g, type_, False)
    also = ["mean", "argmin", "nonzero", "std"]
    for n in (0, 3, 5000, 20000):
        raw = data.make(g, "normal" if type_ in FLOATS else "small", type_, n)
        want = [answer(raw)] + [None if isinstance(v, str) else v for v in
                                (oracle.statistic(each, type_, raw) for each in also)]
        assert tally.reduce_array(NOBODY, op, type_, raw, also=also) == want
        points = sorted(g.integers(0, n + 1, 3).tolist())
        parts = []
        for a, b in zip([0] + points, points + [n]):
            part = State(op, type_, also=also)
            part.begin_at(a)
            parts.append(part.feed(raw[a:b], device=pick(g, few_devices)))
        while len(parts) > 1:
            i = int(g.integers(0, len(parts) - 1))
            parts[i].merge(parts.pop(i + 1))
        assert parts[0].value() == want, (n, points, data.SEED)
        assert parts[0].load(parts[0].save()).value() == want
        assert parts[0].subtract(parts[0].copy()) == "EUNSUPPORTED"
        assert parts[0].negate() == "EUNSUPPORTED" and parts[0].words() is None


def test_a_user_operator_is_copied():
    """The struct, the identity and the text may be gone once a state has been made."""
    operator = tally.UserOperator(lambda a, b: a * b + a, "u32", 77, False)
    text = tally.ctypes.create_string_buffer(b"a * b + a")
    operator.struct.source = tally.ctypes.cast(text, tally.c_char_p)
    asked = tally.problem(operator, "u32")
    made = State(operator, "u32")
    operator._identity[0] = 99
    asked.user.contents.identity = None
    text.raw = b"#" * 10
    operator.struct.source = None
    copy = made.copy()
    for state in (made, copy):
        assert state.value() == ("u32", 77)
        state.clear()
        assert state.value() == ("u32", 77)
    copy.feed(np.array([3, 4], np.uint32))
    made.close()
    assert copy.value() == ("u32", 15)


def test_users_states_that_do_not_go_together():
    raw = np.arange(5, dtype=np.uint32)
    add = tally.UserOperator(lambda a, b: a + b, "u32", 0, True)
    state = State(add, "u32").feed(raw)
    saved = state.save()
    with pytest.raises(ValueError, match="EFORMAT"):
        state.load(saved, given=False)
    ordered = tally.UserOperator(lambda a, b: a + b, "u32", 0, False)
    with pytest.raises(ValueError, match="EFORMAT"):
        State(ordered, "u32").load(saved)
    with pytest.raises(ValueError, match="EFORMAT"):
        State("sum", "u32").load(saved)
    with pytest.raises(ValueError, match="EFORMAT"):
        State(add, "u32").load(State("sum", "u32").feed(raw).save())
    assert State(add, "u32").load(saved).value() == ("u32", 10)
    other = tally.UserOperator(lambda a, b: a * b, "u32", 0, True)
    another = tally.UserOperator(lambda a, b: a + b, "u32", 1, True)
    for wrong in (ordered, other, another):
        part = State(wrong, "u32")
        part.begin_at(5)
        assert state.try_merge(part.feed(raw)) == "EINVAL"
    assert state.save() == saved


# ---- Saved and loaded -----------------------------------------------------------------------------

@pytest.mark.parametrize("type_", TYPES)
def test_loading_says_which_problem(type_):
    raw = data.make(data.rng("which " + type_), kinds(type_)[0], type_, 30)
    state = State("var", type_, ddof=1, also=["min"]).feed(raw)
    saved = state.save()
    assert State("var", type_, ddof=1, also=["min"]).load(saved).value() == state.value()
    other_type = TYPES[(TYPES.index(type_) + 1) % len(TYPES)]
    for wrong in (State("std", type_, ddof=1, also=["min"]), State("var", type_, ddof=0, also=["min"]),
                  State("var", type_, ddof=1, also=["max"]), State("var", type_, ddof=1),
                  State("var", type_, ddof=1, also=["min", "max"]), State("var", other_type, ddof=1, also=["min"]),
                  State("var", type_, ddof=1, also=["min"], out="f64"),
                  State("var", type_, ddof=1, also=["min"], fast=True)):
        with pytest.raises(ValueError, match="EFORMAT"):
            wrong.load(saved)
    assert tally.state_size(None) == 0
    room = np.zeros(len(saved) + 8, np.uint8)
    for size in (0, 1, len(saved) - 1):
        assert tally.state_save(state.handle, room.ctypes.data, size) == tally.EINVAL and not room.any()
    assert tally.state_save(state.handle, None, len(saved)) == tally.EINVAL
    assert tally.state_save(None, room.ctypes.data, len(saved)) == tally.EINVAL
    assert tally.state_save(state.handle, room.ctypes.data, len(saved) + 8) == tally.OK
    assert room.tobytes()[:len(saved)] == saved and not room[len(saved):].any()
    made = tally.P()
    assert tally.state_load(None, 10, None, made) == tally.EINVAL
    assert tally.state_load(room.ctypes.data, len(saved), None, None) == tally.EINVAL


@pytest.mark.parametrize("type_", TYPES)
def test_forged_states(type_):
    """Bytes changed under a right hash: what is accepted can be used, and is saved as it came."""
    g = data.rng("forged states " + type_)
    accepted = 0
    for op in OPS + STATISTICS:
        for n in (0, 1, 40):
            raw = data.make(g, str(g.choice(kinds(type_))), type_, n)
            state = State(op, type_).feed(raw, raw if op == "dot" else None)
            saved = state.save()
            for _ in range(40):
                changes = []
                for _ in range(int(g.integers(1, 4))):
                    at = int(g.integers(4, (len(saved) - 8) // 8)) * 8
                    changes.append((at, word(int(g.choice([0, 1, 2, n, n + 1, (1 << 32) - 1, 1 << 32, -1, -2])))
                                    if g.random() < .5 else g.bytes(int(g.integers(1, 9)))))
                bad = forged(saved, *changes)
                try:
                    loaded = state.load(bad)
                except ValueError as e:
                    assert str(e) == "EFORMAT"
                    continue
                accepted += 1
                assert loaded.save() == bad, (op, changes)
                loaded.value()
                if not is_tree(op, type_):
                    loaded.try_merge(state)
                    loaded.try_merge(loaded)
                loaded.subtract(state)
                loaded.value()
                loaded.copy().close()
    assert accepted > 20


def test_impossible_states_are_refused():
    """One by one what each monoid's words cannot be."""
    def refused(state, *changes):
        with pytest.raises(ValueError, match="EFORMAT"):
            state.load(forged(state.save(), *changes))

    def taken(state, *changes):
        state.load(forged(state.save(), *changes))

    at = [48 + 8 * i for i in range(12)]
    # a count of what is not zero: at most n; for any 0 or 1, for all n or 0
    three = State("nonzero", "u8").feed(np.array([1, 0, 2], np.uint8))
    taken(three, (at[0], word(3)))
    refused(three, (at[0], word(4)))
    any_, all_, both = (new(ops, "u8").feed(np.array([1, 0, 2], np.uint8))
                        for ops in (["any"], ["all"], ["any", "all"]))
    taken(any_, (at[0], word(0)))
    refused(any_, (at[0], word(2)))
    taken(all_, (at[0], word(3)))
    refused(all_, (at[0], word(1)))
    taken(both, (at[0], word(3)))
    taken(both, (at[0], word(1)))
    refused(both, (at[0], word(2)))
    # bits: no more than the type has; the identity where there are none
    for op, identity in (("and", 0xff), ("or", 0), ("xor", 0)):
        refused(State(op, "u8").feed(np.ones(1, np.uint8)), (at[0], word(0x100)))
        refused(State(op, "u8"), (at[0], word(identity ^ 1)))
    # a product: its magnitude and its flags
    for type_ in ("i64", "u64"):
        two = State("prod", type_).feed(np.array([2], DTYPE[type_]))
        taken(two, (at[0], word(5)))
        refused(two, (at[0], word(0)))
        refused(two, (at[1], word(2)))            # zero, with a magnitude
        taken(two, (at[0], word(0)), (at[1], word(2)))
        refused(two, (at[0], word(0)), (at[1], word(6)))
        refused(two, (at[0], word(0)), (at[1], word(3)))
        refused(two, (at[0], word(0)), (at[1], word(5)))  # the sign of what overflowed does not matter
        taken(two, (at[0], word(0)), (at[1], word(4)))
        refused(two, (at[0], word(2)), (at[1], word(4)))
        refused(two, (at[0], word(0)), (at[1], word(8)))
        (taken if type_ == "i64" else refused)(two, (at[1], word(1)))
        refused(State("prod", type_), (at[0], word(2)))
        refused(State("prod", type_), (at[1], word(1)))
    # a fast sum of nothing is 0
    refused(State("sum", "f64", fast=True), (at[0], word(1)))
    # extremes: least, greatest, their indices, the first NaN's, and whether there is one
    none = (1 << 64) - 1
    low = State("argmin", "f32").feed(data.floats("f32", [3, 1, 2]))
    taken(low, (at[2], word(2)))
    refused(low, (at[2], word(3)))
    refused(low, (at[2], word(none)))
    refused(low, (at[1], word(1)))
    refused(low, (at[3], word(1)))
    refused(low, (at[0], word(1 << 32)))
    refused(low, (at[0], word(0x7fc00000)))
    refused(low, (at[0], word(0x7f800001)))
    refused(low, (at[0], word(0xff800001)))
    taken(low, (at[0], word(0x7f800000)))
    taken(low, (at[0], word(0xff800000)))
    refused(low, (at[4], word(1)))
    refused(low, (at[4], word(3)))
    refused(low, (at[4], word(none - 1)))
    refused(low, (at[5], word(1)))
    refused(low, (at[5], word(2)))
    nan = State("argmin", "f32").feed(data.floats("f32", [3, np.nan, 2]))
    taken(nan, (at[4], word(2)))
    refused(nan, (at[4], word(3)))
    refused(nan, (at[4], word(none)))
    refused(nan, (at[5], word(0)))
    refused(nan, (at[0], word(1)))
    refused(nan, (at[2], word(1)))
    least = State("min", "f32").feed(data.floats("f32", [3, 1, 2]))
    taken(least, (at[0], word(0)))
    refused(least, (at[2], word(1)))
    refused(least, (at[4], word(1)))
    refused(State("min", "f32"), (at[0], word(0)))
    refused(State("max", "i8"), (at[1], word(0)))
    refused(State("argmax", "i8"), (at[3], word(0)))
    refused(State("min", "f32"), (at[5], word(1)))
    refused(State("min", "i32").feed(np.ones(3, np.int32)), (at[5], word(1)))  # no integer is a NaN
    refused(State("min", "i32").feed(np.ones(3, np.int32)), (at[0], word(-1)))
    taken(State("min", "i32").feed(np.ones(3, np.int32)), (at[0], word((1 << 32) - 1)))


def test_saved_over_the_tree():
    """A node's unused bytes are 0, and the bytes are as many as n and the first index say."""
    raw = data.make(data.rng("saved tree"), "near-one", "f32", 5 * 4096 + 10)
    state = State("prod", "f32")
    assert state.begin_at(4090) == "OK"
    state.feed(raw)
    saved = state.save()
    # the head is 6 elements long; leaves 1 and 2-3 and 4-5 are whole; the rest, 4, begin the seventh
    assert len(saved) == 48 + 8 * 3 + 4 * (6 + 4) + 8
    head = np.frombuffer(saved, np.uint32, 6, 48 + 24)
    tail = np.frombuffer(saved, np.uint32, 4, 48 + 24 + 24)
    assert (head == raw[:6]).all() and (tail == raw[-4:]).all()
    for node, (a, b) in enumerate(((6, 4102), (4102, 12294), (12294, 20486))):
        value = oracle.answer("prod", "f32", raw[a:b])[1]
        assert saved[48 + 8 * node:56 + 8 * node] == word(value)
        for byte in range(4, 8):
            with pytest.raises(ValueError, match="EFORMAT"):
                state.load(forged(saved, (48 + 8 * node + byte, b"\1")))
        assert state.load(forged(saved, (48 + 8 * node, b"\1\2"))).count() == len(raw)
    assert state.load(forged(saved, (40, word(8186)))).count() == len(raw)  # one leaf further: as many nodes
    for at, value in ((32, len(raw) + 1), (32, len(raw) - 1), (32, 0), (40, 0), (40, 12282)):
        with pytest.raises(ValueError, match="EFORMAT"):
            state.load(forged(saved, (at, word(value))))


# ---- Single calls ---------------------------------------------------------------------------------

def test_nothing_given():
    state = State("mean", "f32")
    value = tally.fresh_value()
    assert tally.state_value(None, value) == tally.state_value(state.handle, None) == tally.EINVAL
    assert tally.state_divided(None, 1, 0, value) == tally.state_divided(state.handle, 1, 0, None) == \
        tally.EINVAL
    assert tally.state_count(None) == 0 and tally.state_feed(None, None, None, None, 0) == tally.EINVAL
    assert tally.state_copy(None, tally.P()) == tally.state_copy(state.handle, None) == tally.EINVAL
    assert tally.state_create(None, tally.P()) == tally.EINVAL
    assert tally.state_create(state.problem, None) == tally.EINVAL
    tally.state_destroy(None)
    tally.state_clear(None)
    assert tally.untouched(value)
    with pytest.raises(ValueError, match="ETYPE"):
        State("min", "f32", out="f64")
    with pytest.raises(ValueError, match="EINVAL"):
        State("var", "f32", ddof=-1.0)
    for op in ("argmin", "argmax"):
        assert State(op, "f64").value() == "EINVAL"
    assert State("describe", "f32").value() == oracle.several(["describe"], "f32", np.zeros(0, np.uint32))


def test_a_refused_feed_changes_nothing():
    raw = data.make(data.rng("refused"), "near-one", "f32", 5000)
    for op in ("sum", "prod", "dot", "argmin"):
        y = raw if op == "dot" else None
        state = State(op, "f32").feed(raw, y)
        saved = state.save()
        for bad in ((None, 1, y), (raw.ctypes.data, 1 << 62, y), (raw.ctypes.data, 1, None if y is not None else raw)):
            address, n, other = bad
            status = state.feed_at(NOBODY, address, n, None if other is None else other.ctypes.data)
            assert status == "EINVAL" and state.save() == saved, (op, bad)
        assert state.feed_at(NOBODY, None, 0) == "OK" and state.save() == saved


def test_indices_count_from_the_start_of_the_left():
    """However far along a state stands: argmin and argmax are about its own elements."""
    left = State("argmin", "f32", also=["argmax"])
    assert left.begin_at(1000) == "OK"
    left.feed(data.floats("f32", [5, 4, 6]))
    right = State("argmin", "f32", also=["argmax"]).feed(data.floats("f32", [4, 3, 9, 9, 3]))
    assert left.copy().merge(right).value() == [("u64", 4), ("u64", 5)]
    assert right.copy().merge(left).value() == [("u64", 1), ("u64", 2)]
    nans = State("argmin", "f32", also=["argmax"]).feed(data.floats("f32", [1, np.nan]))
    assert left.copy().merge(nans).value() == [("u64", 4), ("u64", 4)]
    assert left.copy().merge(nans).merge(nans).value() == [("u64", 4), ("u64", 4)]
    assert nans.copy().merge(left).value() == [("u64", 1), ("u64", 1)]
    assert State("argmin", "f32", also=["argmax"]).merge(left).value() == [("u64", 1), ("u64", 2)]
    assert left.merge(left).value() == [("u64", 1), ("u64", 2)]
