/*
 * float_sums.h - the exact sums of floats side by side; with FOLD_MOMENTS those of their squares, too: a double-double each,
 * and notes of infinities and NaNs. README.md says what a state defines. float_batches.h and float_later.h add tiles to it.
 *
 * Before including this header, define TILE_ROWS (schedule/units.h) and VALUES, the type of the plan that says which
 * values are wanted, and include widen.h, element_type.h, doubles.h, certain/batch.h and schedule/units.h.
 */
#ifndef TALLY_STATE_FLOAT_SUMS_H
#define TALLY_STATE_FLOAT_SUMS_H

/* A value's bits; `lost` is not 0 if the state does not determine them. */
typedef struct lowered {
    u64 bits;
    u32 lost;
} lowered;

#if defined(FOLD_MOMENTS) || defined(FOLD_SQUARES)
#define HAS_SQUARES 1
#else
#define HAS_SQUARES 0
#endif
#if defined(FOLD_SQUARES)
#define HAS_SUM 0
#else
#define HAS_SUM 1
#endif
/* The reason why paths for sums of elements are never taken, or NULL. */
#define ONLY_SQUARES (HAS_SUM ? NULL : "there are squares only")
#if defined(TYPE_F32)
#define IS_F32 1
#else
#define IS_F32 0
#endif
#define PAD        1
#define NEVER_LOST NULL
#define TESTS_EXPONENTS                                                                            \
    (HAS_SQUARES || !LONG) /* tiles' exponents are tested before they are added */
/* A batch has at most 2^BATCH_LOG rows. */
#if defined(IN_FLOATS)
#define BATCH_LOG (HAS_SQUARES ? 6 : 7)
#elif HAS_SQUARES
#define BATCH_LOG (LONG ? 5 : 6)
#else
#define BATCH_LOG 8
#endif
#define BATCH_ROWS (1u << BATCH_LOG)
/* The squares of batches in floats may be off by a bound of their own. */
#if HAS_SQUARES && defined(IN_FLOATS)
#define SQUARES_ARE_OFF 1
#else
#define SQUARES_ARE_OFF 0
#endif
#define STATE_WORDS (3 + (HAS_SQUARES && HAS_SUM ? 2 : SQUARES_ARE_OFF))

/* Flags of `seen` besides PAIR_...s.
 *
 * ROUGH, with squares only: the sums may have errors within rough_bound() (certain/variance.h). Batches of 64 shorter
 * floats that are too far apart to be exact begin at 0, and lose less than f64. */
#define ROUGH    32u
#define SIGNLESS 64u /* a batch's zeros may all have been -0 */

PURE element pad(void) {
#if defined(TYPE_F64) || defined(TYPE_F32)
    return -(element)0;
#else
    return (element)SIGN;
#endif
}

/* Each kind of sums defines, besides none(), merge(), state_word() and state_of_words(): add_finite(), which adds a finite
 * number and returns not 0 if that loses a bit; add_any(), which adds any number, and notes infinities, NaNs and lost bits
 * in `seen`; settle_pairs(), which makes the second doubles less than half of the first ones' last bits. sum.s is -0 as
 * long as all elements are, as additions of doubles keep that. So `seen` needs no PAIR_MIXED. */

PURE pair no_pair(void) {
    const pair p = {-0.0, 0, 0};
    return p;
}
PURE pair pair_of_words(const u64 *words) {
    const pair p = {double_from(words[0]), double_from(words[1]), (u32)words[2]};
    return p;
}
PURE u64 pair_word(const pair *p, u32 k) {
    return k == 0 ? double_bits(p->s) : k == 1 ? double_bits(p->e) : p->seen;
}

#if HAS_SQUARES /* ---- sums of elements, and of squares ---- */

typedef struct state {
    pair sum;
    double square, rest;
    double off; /* how far `square` may be off at most, where SQUARES_ARE_OFF; else 0 */
} state;

PURE state none(void) {
    const state a = {no_pair(), 0, 0, 0};
    return a;
}

/* The square of an f64 is a double-double, if it is not too small (lift.h). */
PURE u64 add_finite(double x, state *a) {
    const double square = x * x;
    u64 wrong = HAS_SUM ? pair_add(x, &a->sum.s, &a->sum.e) : 0;
    wrong |= pair_add(square, &a->square, &a->rest);
    if (!LONG) return wrong;
    wrong |= pair_add(fused(x, x, -square), &a->square, &a->rest);
    return wrong | (x != 0 && exponent_field(square) < 1023 - 960);
}

PURE void add_any(state *a, double x) {
    if (exponent_field(x) == NOT_FINITE)
        pair_add_any(&a->sum, x);
    else if (exponent_field(x) >= 1023 + 450)
        a->sum.seen |= PAIR_LOST; /* its square might be infinite */
    else if (add_finite(x, a) != 0)
        a->sum.seen |= ROUGH;
}

PURE void settle_pairs(state *a) {
    a->square = two_sum(a->square, a->rest, &a->rest);
    if (a->sum.seen & ROUGH) a->sum.s = two_sum(a->sum.s, a->sum.e, &a->sum.e);
}

PURE state merge(state a, state b) {
    a.sum.seen |= b.sum.seen;
    u64 rough = pair_add(b.sum.s, &a.sum.s, &a.sum.e);
    if (b.sum.e != 0) rough |= pair_add(b.sum.e, &a.sum.s, &a.sum.e); /* 0 would make 0 of -0 */
    rough |= pair_add(b.square, &a.square, &a.rest) | pair_add(b.rest, &a.square, &a.rest);
    if (rough != 0) a.sum.seen |= ROUGH;
    if (SQUARES_ARE_OFF) a.off = (a.off + b.off) * (1 + 0x1p-50);
    settle_pairs(&a);
    return a;
}

#if HAS_SUM
PURE u64 state_word(const state *a, u32 k) {
    return k > 2 ? double_bits(k == 3 ? a->square : a->rest) : pair_word(&a->sum, k);
}
PURE state state_of_words(const u64 *words) {
    const state a = {pair_of_words(words), double_from(words[3]), double_from(words[4]), 0};
    return a;
}
#else
PURE u64 state_word(const state *a, u32 k) {
    return k == 0   ? double_bits(a->square)
           : k == 1 ? double_bits(a->rest)
           : k == 2 ? a->sum.seen
                    : double_bits(a->off);
}
PURE state state_of_words(const u64 *words) {
    state a = none();
    a.square = double_from(words[0]);
    a.rest = double_from(words[1]);
    a.sum.seen = (u32)words[2];
    if (SQUARES_ARE_OFF) a.off = double_from(words[3]);
    return a;
}
#endif

#elif LONG /* ---- sums of f64, within a bound ---- */

typedef struct state {
    pair sum;
    float off; /* how far the sum may be off, at most */
} state;

PURE state none(void) {
    const state a = {no_pair(), 0};
    return a;
}

/* Returns a bound that is at least as large as both together. */
PURE float increased_bound(float off, double by) {
    return by == 0 ? off : (off + (float)by) * 1.000001f + 0x1p-100f;
}

PURE u64 add_finite(double x, state *a) {
    return pair_add(x, &a->sum.s, &a->sum.e);
}
PURE void add_any(state *a, double x) {
    pair_add_any(&a->sum, x);
}
PURE void settle_pairs(state *a) {}

PURE state merge(state a, state b) {
    double error, f, g;
    a.sum.seen |= b.sum.seen;
    a.sum.s = two_sum(a.sum.s, b.sum.s, &error);
    a.sum.e = two_sum(two_sum(a.sum.e, b.sum.e, &f), error, &g);
    if (!(a.sum.e - a.sum.e == 0)) a.sum.seen |= PAIR_LOST; /* it has overflowed */
    a.off =
        increased_bound(increased_bound(a.off, (double)b.off), magnitude_of(f) + magnitude_of(g));
    return a;
}

PURE u64 state_word(const state *a, u32 k) {
    return k == 2 ? (u64)float_bits(a->off) << 32 | a->sum.seen : pair_word(&a->sum, k);
}
PURE state state_of_words(const u64 *words) {
    const state a = {pair_of_words(words), float_from((u32)(words[2] >> 32))};
    return a;
}

#else /* ---- sums of shorter floats ---- */

typedef struct state {
    pair sum;
} state;

PURE state none(void) {
    const state a = {no_pair()};
    return a;
}
PURE u64 add_finite(double x, state *a) {
    return pair_add(x, &a->sum.s, &a->sum.e);
}
PURE void add_any(state *a, double x) {
    pair_add_any(&a->sum, x);
}
PURE void settle_pairs(state *a) {}
PURE state merge(state a, state b) {
    pair_merge(&a.sum, &b.sum);
    return a;
}
PURE u64 state_word(const state *a, u32 k) {
    return pair_word(&a->sum, k);
}
PURE state state_of_words(const u64 *words) {
    const state a = {pair_of_words(words)};
    return a;
}
#endif

/* Adds the first `count` rows of one column to a double-double, ROWS_MOST at a time. Elements at which it loses a bit
 * are added once more by add_any(). */
SELDOM void add_slowly(row_source from, u32 count, state *a) {
    for (u32 first = 0; first < count; first += ROWS_MOST) {
        double x[ROWS_MOST];
        state sum = *a;
        u64 wrong = 0;
        UNROLL
        for (u32 k = 0; k < ROWS_MOST; k++)
            x[k] = first + k < count ? (double)widen(*row_at(from, first + k)) : -0.0;
        UNROLL
        for (u32 k = 0; k < ROWS_MOST; k++)
            wrong |= add_finite(x[k], &sum);
        if (wrong == 0)
            *a = sum;
        else
            UNROLL
        for (u32 k = 0; k < ROWS_MOST; k++)
            add_any(a, x[k]);
    }
    settle_pairs(a);
}

/* ---- Values ---- */

/* Each kind of sums defines two functions. lower_by_kind() returns 1 if it has set *r, to a value that takes more
 * than a pair. quick_value() returns 1 if plain arithmetic has given the value's bits, as it does for most values. */

#if HAS_SQUARES
PURE u32 lower_by_kind(state *a, u64 n, u32 op, u32 to, u64 correction, i32 exponent, lowered *r) {
    const u32 special = a->sum.seen & (PAIR_NAN | PAIR_PLUS | PAIR_MINUS);
    const moment_sums m = {
        a->sum.s, a->sum.e, a->square, a->rest, a->sum.seen & ROUGH ? rough_bound(n) : 0, a->off};
    r->lost = (a->sum.seen & PAIR_LOST) != 0;
    if (m.rough != 0 || m.off != 0)
        TALLY_PATH("rough sums");
    else
        TALLY_PATH("exact sums");
    if (op == VAR || op == STD || op == SUMSQ || op == NORM2) {
        if (!special)
            r->bits = squares_value(m, n, op, correction, exponent, to, &r->lost);
        else if (op == VAR || op == STD || special & PAIR_NAN)
            r->bits = float_nan_bits(format_of(to));
        else
            r->bits = float_infinity_bits(format_of(to), 0);
        return 1;
    }
    r->lost |=
        m.rough != 0 || (m.off != 0 && m.square == 0) || (a->sum.seen & SIGNLESS && a->square == 0);
    a->sum.seen &= ~(ROUGH | SIGNLESS);
    return 0;
}
#elif LONG
PURE u32 lower_by_kind(state *a, u64 n, u32 op, u32 to, u64 correction, i32 exponent, lowered *r) {
    ball sum;
    if (a->off == 0 || (a->sum.seen & (PAIR_NAN | PAIR_PLUS | PAIR_MINUS)) != 0) return 0;
    TALLY_PATH("a sum within a bound");
    sum.s = two_sum(a->sum.s, a->sum.e, &sum.e);
    sum.b = (double)a->off;
    const u32 is_negative = sum.s < 0;
    if (is_negative) {
        sum.s = -sum.s;
        sum.e = -sum.e;
    }
    r->lost = (a->sum.seen & PAIR_LOST) != 0;
    r->bits = ball_value(op == MEAN ? ball_quotient(sum, (double)n) : sum, to, &r->lost) |
              (is_negative ? float_sign(format_of(to)) : 0);
    return 1;
}
#else
PURE u32 lower_by_kind(state *a, u64 n, u32 op, u32 to, u64 correction, i32 exponent, lowered *r) {
    return 0;
}
#endif

/* Returns the value of n > 0 elements. A variance's ddof is correction * 2^exponent, as in the
 * plan. */
SELDOM lowered lower_floats(state a, u64 n, u32 op, u32 to, u64 correction, i32 exponent) {
    lowered r = {0, 0};
    if (lower_by_kind(&a, n, op, to, correction, exponent, &r) || !HAS_SUM) return r;
    if (double_bits(a.sum.s) << 1 != 0 || double_bits(a.sum.s) == 0 || a.sum.e != 0)
        a.sum.seen |= PAIR_MIXED;
    TALLY_PATH_UNLESS("a pair", NULL, ONLY_SQUARES);
    r.bits = pair_value(&a.sum, n, op == MEAN, to, &r.lost);
    return r;
}

#if HAS_SQUARES && !LONG
/* Returns whether the root of a sum of squares q, which is off by at most `off` and by its own rounding, decides the norm.
 * As |sqrt(Q) - sqrt(q)| = |Q - q| / (sqrt(Q) + sqrt(q)), the root is off by less than off / sqrt(q). */
OUTLINED lowered root_within(double q, double off, u32 to) {
    const double v = square_root(q), bound = off / v + v * 0x1p-50;
    lowered r;
    r.lost = !(q > 0x1p-900 && q < 0x1p900) || !rounds_the_same(v - bound, v + bound, to, &r.bits);
    return r;
}
PURE u32 quick_norm(const state *a, u32 op, u32 to, u64 *bits) {
    if (op != NORM2 || a->sum.seen != 0) return 0;
    const lowered r = root_within(a->square + a->rest, a->off, to);
    *bits = r.bits;
    if (r.lost) return 0;
    TALLY_PATH("a quick norm");
    return 1;
}
#else
PURE u32 quick_norm(const state *a, u32 op, u32 to, u64 *bits) {
    return 0;
}
#endif

#if defined(TYPE_F64)
#if HAS_SQUARES
#define IS_OFF(a) 0
#else
#define IS_OFF(a) ((a)->off != 0)
#endif
PURE u32 quick_value(const state *a, const VALUES *p, u64 n, u32 op, u32 to, u64 *bits) {
    const double nearest = a->sum.e == 0 ? a->sum.s : a->sum.s + a->sum.e; /* -0 remains */
    *bits = double_bits(nearest);
    if (a->sum.seen != 0 || op != SUM || to != F64 || exponent_field(nearest) >= HUGE_FIELD ||
        IS_OFF(a))
        return 0;
    TALLY_PATH_UNLESS("one rounding", NULL, ONLY_SQUARES);
    return 1; /* most sums */
}
#elif defined(TYPE_F32)
/* Returns whether the sum is one double. */
PURE u32 is_one_double(const state *a, u32 op, u32 to, u64 *bits) {
    *bits = float_bits((float)a->sum.s);
    if (a->sum.seen != 0 || a->sum.e != 0 || op != SUM || to != F32) return 0;
    TALLY_PATH_UNLESS("one rounding", NULL, ONLY_SQUARES);
    return 1;
}
#if HAS_SQUARES
/* HAS_OWN_SCALE() is 1 if results may be of different numbers of rows. */
#if defined(VARIES)
#define HAS_OWN_SCALE(p) 1
#else
#define HAS_OWN_SCALE(p) IS_FILLED(p)
#endif

/* Returns 1 / (n (n - ddof)) for a variance of n > 0 elements; 0 if that is unknown. */
PURE double scale_of(const VALUES *p, u64 n) {
    if (!HAS_OWN_SCALE(p) || p->scale == 0) return double_from(p->scale);
    const double count = (double)n,
                 left = count - (double)p->ddof * double_from((u64)(1023 + p->exponent) << 52);
    return left > 0 ? 1 / (count * left) : 0;
}

PURE u32 quick_value(const state *a, const VALUES *p, u64 n, u32 op, u32 to, u64 *bits) {
    const double scale = scale_of(p, n);
    if (is_one_double(a, op, to, bits)) return 1;
    if ((op == VAR || op == STD) && (a->sum.seen & ~ROUGH) == 0 && to == F32 && scale != 0 &&
        quick_variance(a->sum.s + a->sum.e, a->square + a->rest, (double)n, scale, op == STD,
                       bits)) {
        TALLY_PATH_UNLESS("a quick variance", NULL, ONLY_SQUARES);
        return 1;
    }
    return quick_norm(a, op, to, bits);
}
#else
PURE u32 quick_value(const state *a, const VALUES *p, u64 n, u32 op, u32 to, u64 *bits) {
    return is_one_double(a, op, to, bits);
}
#endif
#else
PURE u32 quick_value(const state *a, const VALUES *p, u64 n, u32 op, u32 to, u64 *bits) {
    return quick_norm(a, op, to, bits);
}
#endif

#if HAS_SUM && !HAS_SQUARES
/* Returns whether the sum or the mean of n > 0 elements, in their own type, is that of one exact double, which decides it;
 * *bits are its bits. */
#define HAS_PLAIN_VALUES 1
PURE u32 plain_value(const state *a, u32 n, u32 mean, u64 *bits) {
#if LONG
    const u32 is_one = a->sum.seen == 0 && a->sum.e == 0 && a->off == 0;
#else
    const u32 is_one = a->sum.seen == 0 && a->sum.e == 0;
#endif
    if (mean) return near_sum_rounds(a->sum.s, 0, n, 1, ELEMENT_TYPE, bits) && is_one;
    *bits = pair_shorter(a->sum.s, ELEMENT_TYPE);
    return is_one;
}
#endif

PURE u64 state_value(const state *a, const VALUES *p, u64 n, u64 first, u32 op, u32 to, u32 *lost) {
    u64 bits = 0;
    if (quick_value(a, p, n, op, to, &bits)) return bits;
    const lowered r = lower_floats(*a, n, op, to, p->ddof, p->exponent);
    *lost |= r.lost;
    return r.bits;
}

PURE u64 value_of_none(const VALUES *p, u32 op, u32 to, u32 *lost) {
    return op == MEAN || op == VAR || op == STD ? float_nan_bits(format_of(to)) : 0;
}
PURE u32 may_be_filled(const state *a) {
    return 0;
}

#endif
