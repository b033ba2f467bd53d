/*
 * float_sums.h - the exact sums of floats side by side; with FOLD_MOMENTS those of their squares, too: a double-double each,
 * and notes of infinities and NaNs. README.md says what a state defines. float_batches.h and float_later.h add tiles to it.
 *
 * Before including this header, include widen.h, doubles.h, certain/batch.h and schedule/units.h.
 */
#ifndef TALLY_STATE_FLOAT_SUMS_H
#define TALLY_STATE_FLOAT_SUMS_H

/* A value's bits; `lost` is not 0 if the state does not determine them. */
typedef struct lowered {
    u64 bits;
    u32 lost;
} lowered;

#if defined(FOLD_MOMENTS)
#define HAS_SQUARES 1
#define STATE_WORDS 5
#else
#define HAS_SQUARES 0
#define STATE_WORDS 3
#endif
#define PAD 1
#define TESTS_EXPONENTS                                                                            \
    (HAS_SQUARES || !LONG) /* tiles' exponents are tested before they are added */
#if !HAS_SQUARES
#define BATCH_ROWS 256u
#elif LONG
#define BATCH_ROWS 32u
#else
#define BATCH_ROWS 64u
#endif
#if !LONG
/* A batch has at most 2^BATCH_LOG rows (certain/batch.h). */
#define BATCH_LOG (HAS_SQUARES ? 6 : 8)
/* Fails to compile unless that is so. */
typedef char batches_are_short_enough[BATCH_ROWS <= 1u << BATCH_LOG ? 1 : -1];
#endif

/* The sum of elements, and that of squares. sum.s is -0 as long as all elements are, as additions
 * of doubles keep that. So `seen` needs no PAIR_MIXED. */
typedef struct state {
    pair sum;
#if HAS_SQUARES
    double square, rest;
#elif LONG
    float off; /* how far the sum may be off, at most */
#endif
} state;

/* Flags of `seen` besides PAIR_...s.
 *
 * ROUGH, with squares only: the sums may have errors within rough_bound() (certain/variance.h). Batches of 64 shorter
 * floats that are too far apart to be exact begin at 0, and lose less than f64. */
#define ROUGH    32u
#define SIGNLESS 64u /* a batch's zeros may all have been -0 */

PURE state none(void) {
    state a;
    a.sum.s = -0.0;
    a.sum.e = 0;
    a.sum.seen = 0;
#if HAS_SQUARES
    a.square = a.rest = 0;
#elif LONG
    a.off = 0;
#endif
    return a;
}

#if LONG && !HAS_SQUARES
/* Returns a bound that is at least as large as both together. */
PURE float increased_bound(float off, double by) {
    return by == 0 ? off : (off + (float)by) * 1.000001f + 0x1p-100f;
}
#endif

PURE element pad(void) {
#if defined(TYPE_F64) || defined(TYPE_F32)
    return -(element)0;
#else
    return (element)SIGN;
#endif
}

/* Adds the square of a finite number. Returns not 0 if that loses a bit, as pair_add() does. The
 * square of an f64 is a double-double, if it is not too small (lift.h). */
PURE u64 add_square(double x, state *a) {
#if HAS_SQUARES
    const double square = x * x;
    u64 wrong = pair_add(square, &a->square, &a->rest);
#if LONG
    wrong |= pair_add(fused(x, x, -square), &a->square, &a->rest);
    wrong |= x != 0 && exponent_field(square) < 1023 - 960;
#endif
    return wrong;
#else
    return 0;
#endif
}

/* Adds any element, and notes infinities, NaNs and lost bits in `seen`. */
PURE void add_any(state *a, double x) {
#if HAS_SQUARES
    if (exponent_field(x) == NOT_FINITE)
        pair_add_any(&a->sum, x);
    else if (exponent_field(x) >= 1023 + 450)
        a->sum.seen |= PAIR_LOST; /* its square might be infinite */
    else if ((pair_add(x, &a->sum.s, &a->sum.e) | add_square(x, a)) != 0)
        a->sum.seen |= ROUGH;
#else
    pair_add_any(&a->sum, x);
#endif
}

/* Makes the second doubles less than half of the first ones' last bits. */
PURE void settle_pairs(state *a) {
#if HAS_SQUARES
    a->square = two_sum(a->square, a->rest, &a->rest);
    if (a->sum.seen & ROUGH) a->sum.s = two_sum(a->sum.s, a->sum.e, &a->sum.e);
#endif
}

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
            wrong |= pair_add(x[k], &sum.sum.s, &sum.sum.e) | add_square(x[k], &sum);
        if (wrong == 0)
            *a = sum;
        else
            UNROLL
        for (u32 k = 0; k < ROWS_MOST; k++)
            add_any(a, x[k]);
    }
    settle_pairs(a);
}

PURE state merge(state a, state b) {
#if HAS_SQUARES
    a.sum.seen |= b.sum.seen;
    u64 rough = pair_add(b.sum.s, &a.sum.s, &a.sum.e);
    if (b.sum.e != 0) rough |= pair_add(b.sum.e, &a.sum.s, &a.sum.e); /* 0 would make 0 of -0 */
    rough |= pair_add(b.square, &a.square, &a.rest) | pair_add(b.rest, &a.square, &a.rest);
    if (rough != 0) a.sum.seen |= ROUGH;
    settle_pairs(&a);
#elif LONG
    double error, f, g;
    a.sum.seen |= b.sum.seen;
    a.sum.s = two_sum(a.sum.s, b.sum.s, &error);
    a.sum.e = two_sum(two_sum(a.sum.e, b.sum.e, &f), error, &g);
    if (!(a.sum.e - a.sum.e == 0)) a.sum.seen |= PAIR_LOST; /* it has overflowed */
    a.off =
        increased_bound(increased_bound(a.off, (double)b.off), magnitude_of(f) + magnitude_of(g));
#else
    pair_merge(&a.sum, &b.sum);
#endif
    return a;
}

PURE u64 state_word(const state *a, u32 k) {
#if HAS_SQUARES
    if (k > 2) return double_bits(k == 3 ? a->square : a->rest);
#endif
#if LONG && !HAS_SQUARES
    if (k == 2) return (u64)float_bits(a->off) << 32 | a->sum.seen;
#endif
    return k == 0 ? double_bits(a->sum.s) : k == 1 ? double_bits(a->sum.e) : a->sum.seen;
}

PURE state state_of_words(const u64 *words) {
    state a;
    a.sum.s = double_from(words[0]);
    a.sum.e = double_from(words[1]);
    a.sum.seen = (u32)words[2];
#if HAS_SQUARES
    a.square = double_from(words[3]);
    a.rest = double_from(words[4]);
#elif LONG
    a.off = float_from((u32)(words[2] >> 32));
#endif
    return a;
}

/* Returns the value of n > 0 elements. A variance's ddof is correction * 2^exponent, as in the
 * plan. */
SELDOM lowered lower_floats(state a, u64 n, u32 op, u32 to, u64 correction, i32 exponent) {
    lowered r = {0, 0};
#if HAS_SQUARES
    const u32 special = a.sum.seen & (PAIR_NAN | PAIR_PLUS | PAIR_MINUS);
    if (a.sum.seen & ROUGH && a.square == 0) r.lost = 1;
    const double rough = a.sum.seen & ROUGH ? rough_bound(n) : 0;
    r.lost |= (a.sum.seen & PAIR_LOST) != 0;
    if (rough != 0)
        TALLY_PATH("rough sums");
    else
        TALLY_PATH("exact sums");
    if (op == VAR || op == STD) {
        const double ddof = ddof_of(correction, exponent, &r.lost);
        r.bits = special ? float_nan_bits(format_of(to))
                         : variance_value(a.sum.s, a.sum.e, a.square, a.rest, n, ddof, op == STD,
                                          to, rough, &r.lost);
        return r;
    }
    if (op == SUMSQ || op == NORM2) {
        if (special)
            r.bits = special & PAIR_NAN ? float_nan_bits(format_of(to))
                                        : float_infinity_bits(format_of(to), 0);
        else if (op == SUMSQ && rough == 0)
            r.bits = doubles_value(a.square, a.rest, n, 0, to, 0, &r.lost);
        else if (op == SUMSQ) {
            const ball sum = {a.square, a.rest, rough * a.square};
            r.bits = ball_value(sum, to, &r.lost);
        } else
            r.bits = norm_value(a.square, a.rest, to, rough * a.square, &r.lost);
        return r;
    }
    if (rough != 0) r.lost = 1;
    if (a.sum.seen & SIGNLESS && a.square == 0) r.lost = 1;
    a.sum.seen &= ~(ROUGH | SIGNLESS);
#endif
    if (double_bits(a.sum.s) << 1 != 0 || double_bits(a.sum.s) == 0 || a.sum.e != 0)
        a.sum.seen |= PAIR_MIXED;
#if LONG && !HAS_SQUARES
    if (a.off != 0 && (a.sum.seen & (PAIR_NAN | PAIR_PLUS | PAIR_MINUS)) == 0) {
        ball sum;
        TALLY_PATH("a sum within a bound");
        sum.s = two_sum(a.sum.s, a.sum.e, &sum.e);
        sum.b = (double)a.off;
        const u32 is_negative = sum.s < 0;
        if (is_negative) {
            sum.s = -sum.s;
            sum.e = -sum.e;
        }
        r.lost = (a.sum.seen & PAIR_LOST) != 0;
        r.bits = ball_value(op == MEAN ? ball_quotient(sum, (double)n) : sum, to, &r.lost) |
                 (is_negative ? float_sign(format_of(to)) : 0);
        return r;
    }
#endif
    TALLY_PATH("a pair");
    r.bits = pair_value(&a.sum, n, op == MEAN, to, &r.lost);
    return r;
}

#if HAS_SQUARES && defined(TYPE_F32)
/* Whether results may be of different numbers of rows. */
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
#endif

PURE u64 state_value(const state *a, const VALUES *p, u64 n, u64 first, u32 op, u32 to, u32 *lost) {
#if defined(TYPE_F64)
    const double nearest = a->sum.e == 0 ? a->sum.s : a->sum.s + a->sum.e; /* -0 remains */
    if (a->sum.seen == 0 && op == SUM && to == F64 && exponent_field(nearest) < HUGE_FIELD
#if !HAS_SQUARES
        && a->off == 0
#endif
    ) {
        TALLY_PATH("one rounding");
        return double_bits(nearest); /* most sums */
    }
#elif defined(TYPE_F32)
    if (a->sum.seen == 0 && a->sum.e == 0 && op == SUM && to == F32) {
        TALLY_PATH("one rounding");
        return float_bits((float)a->sum.s);
    }
#if HAS_SQUARES
    u64 bits;
    const double scale = scale_of(p, n);
    if ((op == VAR || op == STD) && (a->sum.seen & ~ROUGH) == 0 && to == F32 && scale != 0 &&
        quick_variance(a->sum.s + a->sum.e, a->square + a->rest, (double)n, scale, op == STD,
                       &bits)) {
        TALLY_PATH("a quick variance");
        return bits;
    }
    if (op == NORM2 && a->sum.seen == 0 && to == F32 &&
        quick_float(square_root(a->square + a->rest), &bits)) {
        TALLY_PATH("a quick norm");
        return bits;
    }
#endif
#endif
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
