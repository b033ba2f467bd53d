/*
 * float_sum.h - the exact sum of floats, or of magnitudes; that of their squares; or both: a double-double each. A batch is
 * of one sum at a time. state/README says what a state defines.
 *
 * Sums of floats of up to 32 bits have precision levels, from cheap to exact:
 *   plain           Elements are added as doubles, or with IN_FLOATS in chains of floats (float_chain_sum.h), and the
 *                   batch's bounds say whether that loses anything (certain/batch.h).
 *   approximate     Otherwise the plain sum has a bound, and Ziv's rounding test may decide.
 *   compensated     Sums that it does not decide are added again, with a sum of the errors. Sums in floats have that already,
 *                   and go on to the last level.
 *   double-double   The last level notes the bits that it loses. A sum that a double-double does
 *                   not hold is lost.
 *
 * Sums of f64, and those for norms and variances, are approximate first (near_sums.h). What the bound does not decide
 * takes the next level: plain sums with their errors for squares of up to 32 bits, else double-doubles.
 *
 * Before including this header, include widen.h, doubles.h, certain/batch.h, halves.h and pack.h, and
 * define VALUES, the type of the plan that says which values are wanted, and one or none of
 *   LIFT_MAGNITUDE, LIFT_SQUARE or LIFT_MOMENTS   sums of magnitudes, of squares, or of elements and of squares; else of
 *                                                 elements
 */
#ifndef TALLY_STATE_FLOAT_SUM_H
#define TALLY_STATE_FLOAT_SUM_H

#include "../element_type.h"

#if defined(TYPE_F64)
#define LONG 1
#else
#define LONG 0
#endif
#if defined(TYPE_F32)
#define IS_F32 1
#else
#define IS_F32 0
#endif
#if defined(LIFT_SQUARE)
#define HAS_SUM 0
#else
#define HAS_SUM 1
#endif
#if defined(LIFT_SQUARE) || defined(LIFT_MOMENTS)
#define HAS_SQUARES 1
#else
#define HAS_SQUARES 0
#endif
#if defined(IN_FLOATS)
#define HAS_FLOATS 1
#else
#define HAS_FLOATS 0
#endif
#if defined(LIFT_MAGNITUDE)
#define OF_MAGNITUDES 1
#else
#define OF_MAGNITUDES 0
#endif
#define HAS_PLAIN       (!LONG)                          /* the first exact level is plain */
#define HAS_COMPENSATED (!LONG && !HAS_SQUARES)          /* and the second one compensated */
#define HAS_APPROXIMATE (HAS_SQUARES || HAS_COMPENSATED) /* states may be approximate */

#define PAIRS               (HAS_SUM + HAS_SQUARES)
#define SQUARES             (2 * HAS_SUM * HAS_SQUARES) /* the place of the squares' pair */
#define STATE_WORDS         (2 * PAIRS + 1)
#define SHORT_WORD          (2 * PAIRS) /* the tag */
#define FIRST_COUNTS        0
#define SEVERAL_VALUES      HAS_SQUARES
#define VALUES_ARE_ELEMENTS 1
#define NEVER_LOST          NULL

/* The tag of an exact sum has the flags TAG_.... Where HAS_COMPENSATED its other bits are those of an
 * f32: the largest magnitude of an element, rounded up. */
typedef struct state {
    u64 w
        [2 *
         PAIRS]; /* high and low of each pair, as bits: compilers keep fewer words in local memory than doubles */
    u32 tag;
} state;

#define TAG_LOST        1u /* the state has lost bits: it determines no value */
#define TAG_APPROXIMATE 2u /* a sum: approximate_sum_rounds() has its bound */
#define TAG_ROUGH       4u /* sums with squares have lost bits: rough_bound() is theirs */
#define TAG_FLAGS       (TAG_LOST | TAG_APPROXIMATE)
/* The flag that an addition of finite double-doubles sets if it loses a bit. */
#define TAG_OF_LOSS (HAS_SQUARES ? TAG_ROUGH : TAG_LOST)

/* ---- Double-doubles ---- */

PURE state none(void) {
    state s;
    UNROLL
    for (u32 k = 0; k < 2 * PAIRS; k += 2) {
        s.w[k] = double_bits(-0.0);
        s.w[k + 1] = 0;
    }
    s.tag = 0;
    return s;
}

/* Adds double-double b to a; sets a flag in *tag if that loses a bit. The low double of an infinity
 * or a NaN is 0. */
PURE void merge_pair(u64 *a, const u64 *b, u32 *tag) {
    double e, f, g;
    const double high = two_sum(double_from(a[0]), double_from(b[0]), &e);
    if (e == 0 && (a[1] | b[1]) == 0) {
        a[0] = double_bits(high);
        return;
    }
    const u32 is_finite = high - high == 0;
    const double both = two_sum(double_from(a[1]), double_from(b[1]), &f);
    const double low = two_sum(both, e, &g);
    if (is_finite && !(f == 0 && g == 0)) *tag |= TAG_OF_LOSS;
    a[0] = double_bits(high);
    a[1] = 0;
    if (is_finite && low != 0) { /* `low` may be the larger one, as additions leave it so */
        double rest;
        a[0] = double_bits(two_sum(high, low, &rest));
        a[1] = double_bits(rest);
    }
}

/* Returns sum + rest, without a rest of 0, which would make +0 of -0. */
PURE double with_rest(double sum, double rest) {
    return rest == 0 ? sum : sum + rest;
}

/* Returns the tag of two sums together: flags, and the larger magnitude. */
PURE u32 merged_tag(u32 a, u32 b) {
    if (!HAS_COMPENSATED) return a | b;
    return ((a > b ? a : b) & ~TAG_FLAGS) | ((a | b) & TAG_FLAGS);
}

PURE state merge(state a, state b) {
    a.tag = merged_tag(a.tag, b.tag);
    if (HAS_COMPENSATED && a.tag & TAG_APPROXIMATE) {
        a.w[0] = double_bits(with_rest(double_from(a.w[0]) + double_from(b.w[0]),
                                       double_from(a.w[1]) + double_from(b.w[1])));
        a.w[1] = 0;
        return a;
    }
    UNROLL
    for (u32 k = 0; k < 2 * PAIRS; k += 2)
        merge_pair(a.w + k, b.w + k, &a.tag);
    return a;
}

PURE u64 state_word(const state *a, u32 k) {
    return k == SHORT_WORD ? a->tag : a->w[k];
}
PURE state state_of_words(const u64 *words) {
    state a;
    UNROLL
    for (u32 k = 0; k < 2 * PAIRS; k++)
        a.w[k] = words[k];
    a.tag = (u32)words[SHORT_WORD];
    return a;
}

/* Adds x to a double-double; sets a flag in *tag if that loses a bit. */
PURE void add_to_pair(u64 *a, double x, u32 *tag) {
    double e, f;
    const double high = two_sum(double_from(a[0]), x, &e);
    const double low = two_sum(double_from(a[1]), e, &f);
    a[0] = double_bits(high);
    a[1] = double_bits(low);
    if (!(f == 0)) *tag |= HAS_SQUARES && f - f == 0 ? TAG_ROUGH : TAG_LOST;
}

/* Adds an element to the double-doubles of a state. The square of an f64 is a double-double, if it is
 * not too small (lift.h). */
PURE void add_double_double(double x, state *s) {
    if (OF_MAGNITUDES) x = magnitude_of(x);
    if (HAS_SUM) add_to_pair(s->w, x, &s->tag);
    if (!HAS_SQUARES) return;
    const double square = x * x;
    add_to_pair(s->w + SQUARES, square, &s->tag);
    if (!LONG) return;
    add_to_pair(s->w + SQUARES, fused(x, x, -square), &s->tag);
    if (x != 0 && exponent_field(square) < 1023 - 960) s->tag |= TAG_LOST;
}

/* ---- Batches ---- */

/* Returns the element that changes no sum in the place of one that is not `inside`. */
#if defined(TYPE_F64) || defined(TYPE_F32)
#define PADDING (-(element)0)
#else
#define PADDING ((element)SIGN)
#endif
PURE real taken(element e, u32 inside) {
    return widen(inside ? e : (element)PADDING);
}

#define SUMS_IN_FLOATS (HAS_COMPENSATED && HAS_FLOATS)

#if HAS_PLAIN
/* Returns what an element adds to the sum. */
PURE double lifted(real x) {
    return OF_MAGNITUDES ? (double)float_from(float_bits(x) & 0x7fffffffu) : (double)x;
}

/* Returns the state of a sum without squares. */
PURE state state_of_sum(double sum, double rest, u32 most) {
    state s = none();
    s.w[0] = double_bits(sum);
    s.w[1] = double_bits(rest);
    s.tag = HAS_COMPENSATED ? (most + TAG_FLAGS) & ~TAG_FLAGS : 0;
    return s;
}
#endif

#if SUMS_IN_FLOATS
#include "float_chain_sum.h"
#elif HAS_PLAIN
typedef struct batch {
    double sum, square, rest;  /* of elements; of squares, and the errors of either */
    u32 least, most;           /* the bounds of certain/batch.h ... */
#if ELEMENT_WIDTH == 16
    u32 least_half, most_half; /* ... and those of halves.h, of whole packs */
#endif
} batch;

PURE void begin(batch *k, u32 at) {
    k->sum = k->square = -0.0;
    k->rest = 0;
    k->least = NO_LEAST;
    k->most = NO_MOST;
#if ELEMENT_WIDTH == 16
    k->least_half = k->most_half = NO_HALVES;
#endif
}
/* Adds a number plainly, and its square with the error. */
INLINED void add_number(batch *k, real x) {
    if (HAS_SUM) k->sum += lifted(x);
    if (HAS_SQUARES) {
        double error;
        k->square = two_sum(k->square, (double)x * (double)x, &error);
        k->rest += error;
    }
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    const real x = taken(e, inside);
    add_number(k, x);
    note_magnitude(float_bits(x), &k->most, &k->least);
}
#if ELEMENT_WIDTH == 16
#define HAS_ADD_PACK 1
/* Adds a pack, whose magnitudes are noted two at a time. */
INLINED void add_pack(batch *k, const pack *p, u32 at) {
    UNROLL
    for (u32 i = 0; i < PACK / 2; i++)
        note_halves(p->pair[i], &k->most_half, &k->least_half);
    UNROLL
    for (u32 j = 0; j < PACK; j++)
        add_number(k, widen(p->e[j]));
}
/* Returns a batch with the bounds of its packs among those of its elements. */
PURE batch with_bounds(batch k) {
    note_magnitude(float_bits(widen((element)greatest_half(k.most_half))), &k.most, &k.least);
    note_magnitude(float_bits(widen((element)smallest_half(k.least_half))), &k.most, &k.least);
    return k;
}
#else
PURE batch with_bounds(batch k) {
    return k;
}
#endif
/* Adds an element, and the error of that to the other errors, plainly. */
INLINED void add_compensated(batch *k, element e, u32 inside) {
    double error;
    const real x = taken(e, inside);
    k->sum = two_sum(k->sum, lifted(x), &error);
    k->rest += error;
    note_magnitude(float_bits(x), &k->most, &k->least);
}

/* Returns whether plain additions of at most 2^power elements, and of their squares, give the right
 * sums. */
PURE u32 plain_sum_is_exact(const batch *k, u32 power) {
    const batch b = with_bounds(*k);
    return plain_sums_are_exact(spread_of(b.most, b.least, OF_ONE_SUM), (i32)power);
}
/* Returns the same of compensated additions of elements. */
PURE u32 compensated_sum_is_exact(const batch *k, u32 power) {
    return compensated_sums_are_exact(spread_of(k->most, k->least, OF_ONE_SUM), (i32)power);
}

/* Returns the state of a batch, right if compensated_sum_is_exact(). */
PURE state finish_compensated(const batch *k) {
    state s = state_of_sum(k->sum, HAS_SQUARES ? 0 : k->rest, with_bounds(*k).most);
    if (HAS_SQUARES) {
        s.w[SQUARES] = double_bits(k->square);
        s.w[SQUARES + 1] = double_bits(k->rest);
    }
    return s;
}
/* Returns the state of a batch, right if plain_sum_is_exact(). */
PURE state finish(const batch *k, u64 start) {
    return finish_compensated(k);
}
#else
typedef state batch;
PURE void begin(batch *k, u32 at) {
    *k = none();
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    add_double_double((double)taken(e, inside), k);
}
PURE state finish(const batch *k, u64 start) {
    return *k;
}
#endif

/* ---- Values ---- */

/* Why sums with squares do not occur, or NULL. */
#define NO_SQUARES (HAS_SQUARES ? NULL : "a sum without squares is exact or lost")

/* A value's bits; `lost` is not 0 if the state does not determine them. */
typedef struct lowered {
    u64 bits;
    u32 lost;
} lowered;

/* Returns the value of a sum that is an infinity or a NaN. A sum of f64 may have overflowed only on the way, so it is
 * lost. */
PURE lowered lower_special(state s, u32 op, u32 to) {
    const u32 of_squares = HAS_SQUARES && (op == SUMSQ || op == NORM2);
    const double v = of_squares ? double_from(s.w[SQUARES]) : double_from(s.w[0]);
    const float_format f = format_of(to);
    lowered r = {0, LONG || (s.tag & TAG_LOST) != 0};
    if (!LONG)
        r.bits =
            v == v && op != VAR && op != STD ? float_infinity_bits(f, v < 0) : float_nan_bits(f);
    return r;
}

/* Returns the value of n > 0 elements. A variance's ddof is correction * 2^exponent, as in the
 * plan. */
SELDOM lowered lower_floats(state s, u64 n, u32 op, u64 correction, i32 exponent) {
    const u32 to = ELEMENT_TYPE;
    lowered r = {0, (s.tag & TAG_LOST) != 0};
    if (double_from(s.w[0]) - double_from(s.w[0]) != 0) {
        TALLY_PATH("not finite");
        return lower_special(s, op, to);
    }
    if (HAS_SQUARES) {
        if (s.tag & TAG_ROUGH)
            TALLY_PATH_UNLESS("rough sums", NULL, NO_SQUARES);
        else
            TALLY_PATH_UNLESS("exact sums", NULL, NO_SQUARES);
        if (op == SUMSQ || op == NORM2 || op == VAR || op == STD) {
            const moment_sums m = {double_from(s.w[0]),
                                   double_from(s.w[1]),
                                   double_from(s.w[SQUARES]),
                                   double_from(s.w[SQUARES + 1]),
                                   s.tag & TAG_ROUGH ? rough_bound(n) : 0,
                                   0};
            r.bits = squares_value(m, n, op, correction, exponent, to, &r.lost);
            return r;
        }
        if (s.tag & TAG_ROUGH) r.lost = 1;
    }
    const u64 zero = s.w[0] == double_bits(-0.0) ? float_sign(format_of(to)) : 0;
    r.bits =
        doubles_value(double_from(s.w[0]), double_from(s.w[1]), n, op == MEAN, to, zero, &r.lost);
    return r;
}

#if IS_F32 && !HAS_SQUARES
/* Most sums are one double. A mean lies on the same side of a point half way between two floats as the double nearest to it,
 * if that is not the point itself. */
PURE u64 state_value(const state *a, const VALUES *p, u64 n, u64 first, u32 op, u32 to, u32 *lost) {
    const double sum = double_from(a->w[0]);
    if (a->w[1] == 0 && !(a->tag & TAG_LOST)) {
        if (op != MEAN) return float_bits(sum == sum ? (float)sum : float_from(0x7fc00000u));
        const double mean = sum / (double)n;
        const i32 field = exponent_field(mean);
        if (field > 1023 - 126 && field < 1023 + 127 && (u32)double_bits(mean) << 3 != 0x80000000u)
            return float_bits((float)mean);
    }
    const lowered r = lower_floats(*a, n, op, p->ddof, p->exponent);
    *lost |= r.lost;
    return r.bits;
}
#elif LONG && !HAS_SQUARES
/* Most sums are a double-double, rounded once. */
PURE u64 state_value(const state *a, const VALUES *p, u64 n, u64 first, u32 op, u32 to, u32 *lost) {
    const double sum = double_from(a->w[0]) + double_from(a->w[1]);
    if (op != MEAN && !(a->tag & TAG_LOST) && sum != 0 && exponent_field(sum) < HUGE_FIELD)
        return double_bits(sum);
    const lowered r = lower_floats(*a, n, op, p->ddof, p->exponent);
    *lost |= r.lost;
    return r.bits;
}
#else
PURE u64 state_value(const state *a, const VALUES *p, u64 n, u64 first, u32 op, u32 to, u32 *lost) {
    const lowered r = lower_floats(*a, n, op, p->ddof, p->exponent);
    *lost |= r.lost;
    return r.bits;
}
#endif
PURE u64 value_of_none(const VALUES *p, u32 op, u32 to, u32 *lost) {
    return op == MEAN || op == VAR || op == STD ? float_nan_bits(format_of(to)) : 0;
}
PURE u32 may_be_filled(const state *a) {
    return 0;
}

#endif
