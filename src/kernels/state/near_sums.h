/*
 * near_sums.h - near, or approximate, float sums (float_sum.h): how a lane adds them cheaply, and whether they
 * determine the value (certain/rounding.h, certain/variance.h).
 *
 * A plain sum without squares is near where its batch was not exact: TAG_APPROXIMATE. Sums with squares are near
 * on a level of their own: floats of up to 32 bits have one double for each sum, f64 two, the second of which is the plain
 * sum of all errors.
 *
 * Before including this header, include halves.h, pack.h and float_sum.h.
 */
#ifndef TALLY_STATE_NEAR_SUMS_H
#define TALLY_STATE_NEAR_SUMS_H

#define APPROXIMATE_MOST (1u << 20) /* near sums have fewer elements: docs/exactness.md */

/* Adds an element to near sums. If `tells`, the tag of sums of f64 becomes other than 0 when they
 * are not exact.
 * Floats of up to 32 bits: the error of the sum of n squares is at most n 2^-53 of itself, that of the
 * sum n 2^-53 of the sum of magnitudes.
 * f64: errors are at most 2 n (n + 1) 2^-106 and n^2 2^-106 of the same. */
INLINED void add_approximate(state *s, element e, u32 inside, u32 tells) {
    const double x = (double)taken(e, inside);
    if (!LONG) {
        if (HAS_SUM) s->w[0] = double_bits(double_from(s->w[0]) + x);
        if (HAS_SQUARES) s->w[SQUARES] = double_bits(fused(x, x, double_from(s->w[SQUARES])));
        return;
    }
    u64 lost = 0;
    if (HAS_SUM && HAS_SQUARES) {
        double error;
        s->w[0] = double_bits(two_sum(double_from(s->w[0]), x, &error));
        s->w[1] = double_bits(double_from(s->w[1]) + error);
        lost = double_bits(error);
    }
    double error;
    const double square = x * x, rest = fused(x, x, -square);
    s->w[SQUARES] = double_bits(two_sum(double_from(s->w[SQUARES]), square, &error));
    lost |= double_bits(error) | double_bits(rest);
    if (exponent_field(square) < 1023 - 960)
        lost |= double_bits(x) << 1; /* as in add_double_double() */
    if (tells) s->tag |= (u32)lost | (u32)(lost >> 32);
    s->w[SQUARES + 1] = double_bits(double_from(s->w[SQUARES + 1]) + (error + rest));
}

/* The sum of squares of a few elements in floats. `high` is their sum by TwoSum, and `low` the plain sum of its
 * errors and, of f32, of the squares' errors. Or `high` is their sum above a base, a power of two that is no less
 * than any of the squares, so that FastTwoSum gives an addition's error. */
#define SQUARES_IN_FLOATS (HAS_FLOATS && HAS_SQUARES && !HAS_SUM && !LONG)
#define NEAR_MOST         64u /* elements, at most */
typedef struct near_squares {
    float high, low;
} near_squares;

/* Returns the base for squares of elements up to `most`, the bits of an f32. Where that is too large for a float, it is an
 * infinity, and no value is near. */
PURE float base_of_squares(u32 most) {
    const i32 exponent = 2 * ((i32)(most >> 23) - 126);
    return float_from((u32)((exponent < -100  ? -100
                             : exponent > 120 ? 128
                                              : exponent) +
                            127)
                      << 23);
}

/* Adds the square of x to sum->high, and the error of that to sum->low. The square is less than the base, which is at
 * most sum->high. */
INLINED void add_above_base(near_squares *sum, float x) {
    const float before = sum->high;
    sum->high = fused_float(x, x, before);
    sum->low += fused_float(x, x, before - sum->high);
}

/* Notes the largest magnitude of a pack in *most; most_noted() is that as the bits of an f32. */
INLINED void note_most(u32 *most, const pack *p) {
#if ELEMENT_WIDTH == 16
    UNROLL
    for (u32 i = 0; i < 4; i++)
        UNROLL
    for (u32 up = 0; up < NUMBER_BITS; up += 16)
        *most = greatest_unsigned(*most, (p->pair[i] & 0x7fff7fffu) << up);
#else
    UNROLL
    for (u32 j = 0; j < PACK; j++) {
        const u32 magnitude = float_bits(widen(p->e[j])) & 0x7fffffffu;
        *most = magnitude > *most ? magnitude : *most;
    }
#endif
}
PURE u32 most_noted(u32 most) {
#if ELEMENT_WIDTH == 16
    return float_bits(widen((element)UPPER_HALF(greatest_unsigned, most)));
#else
    return most;
#endif
}

/* Adds a sum above a base. */
INLINED void add_sum_above(near_squares *k, const near_squares *above, float base) {
    float error;
    k->high = two_sum_float(k->high, above->high - base, &error);
    k->low += error + above->low;
}

INLINED void add_near(near_squares *k, element e, u32 inside) {
    const float x = (float)taken(e, inside), square = x * x;
    float error;
    k->high = two_sum_float(k->high, square, &error);
    k->low += error;
    if (IS_F32) k->low += fused_float(x, x, -square);
}

/* Adds the squares in floats to the near sum in doubles, and begins anew. */
INLINED void end_near(near_squares *k, state *s) {
    const double sum = (double)k->high + (double)k->low;
    s->w[SQUARES] = double_bits(double_from(s->w[SQUARES]) + sum);
    k->high = k->low = 0;
}

/* The number of additions of doubles whose error is that of adding NEAR_MOST = m elements in floats. One to `high`
 * rounds by at most 2^-24 of the sum Q, so `low` is at most 2 m 2^-24 Q, and each of 2 m additions to it rounds by 2^-24 of
 * that: (2 m + 4)^2 2^-48 Q covers them.
 *
 * Above a base B <= 4 Q, sums are at most B + Q <= 5 Q, so what an addition leaves is at most 5 2^-24 Q. `low` is at most
 * 5 n 2^-24 Q for n elements, and each of n additions to it, of a number that was rounded, is off by 5 (n + 1) 2^-48 Q at
 * most: 5 n (n + 1) 2^-48 Q more, where sums above a base are added up by TwoSum. */
#define NEAR_DEPTH                                                                                 \
    (SQUARES_IN_FLOATS                                                                             \
         ? ((2.0 * NEAR_MOST + 4) * (2.0 * NEAR_MOST + 4) + 5.0 * NEAR_MOST * (NEAR_MOST + 1)) *   \
               32 /* 2^-48 / 2^-53 */                                                              \
         : 0.0)
/* The limit above which a sum of squares in floats is near. Below it, squares may have lost bits below 2^-149, or the
 * base of 2^-100 may be more than 4 Q. 2^14 times NEAR_MOST elements then lose less than 2^-122, so
 * less than 2^11 2^-53 Q. NEAR_DEPTH has room for that: of its (2 m + 4)^2 the additions need 4 m^2, and 16 m are 2^15
 * units of 2^-53 Q. A base that is an infinity makes the sum a NaN, which is not above it. */
#define NEAR_LEAST 0x1p-80

/* Adds the near sums of another lane. */
PURE void merge_near_pair(u64 *high, u64 *low, double other, double other_low) {
    double error;
    if (LONG) {
        *high = double_bits(two_sum(double_from(*high), other, &error));
        *low = double_bits((double_from(*low) + other_low) + error);
    } else
        *high = double_bits(double_from(*high) + other);
}

#if HAS_SQUARES
/* Returns two near sums together. */
PURE state merge_near(state a, state b) {
    UNROLL
    for (u32 k = 0; k < 2 * PAIRS; k += 2)
        merge_near_pair(&a.w[k], &a.w[k + 1], double_from(b.w[k]), double_from(b.w[k + 1]));
    return a;
}
#endif

/* Returns whether a near sum of n elements determines the sum or the mean; *bits are its bits. Each element goes through at
 * most 4 n + 16 additions, which round numbers of at most n times the greatest element m. */
PURE u32 approximate_sum_rounds(double sum, u32 tag, u32 n, u32 op, u32 to, u64 *bits) {
    const double count = (double)n, most = (double)float_from(tag & ~TAG_FLAGS);
    const double off = (4 * count + 16) * count * 0x1p-53;
    return n < APPROXIMATE_MOST && near_sum_rounds(sum, off * most, n, op == MEAN, to, bits);
}

/* Returns the value that approximate_sum_rounds() finds; it is lost if there is none. */
SELDOM lowered lower_approximate(double sum, u32 tag, u32 n, u32 op, u32 to) {
    lowered r;
    r.lost = !approximate_sum_rounds(sum, tag, n, op, to, &r.bits);
    return r;
}

/* Returns whether near sums of n elements can give a problem's values: it has only one, of squares, and a correction
 * in the range of ddof_of(). */
PURE u32 can_approximate(const VALUES *p, u64 n) {
    const u32 op = p->value[0] & 255;
    u32 is_far = 0;
    ddof_of(p->ddof, p->exponent, &is_far);
    return HAS_SQUARES && n < APPROXIMATE_MOST && p->values == 1 && op != SUM && op != MEAN &&
           !is_far;
}

/* Returns whether near sums with squares of n elements determine the value; *bits are its bits. An element goes through
 * `depth` additions, and at most 5 merges of lanes. */
PURE u32 approximate_value_rounds(const VALUES *p, u32 to, const state *s, u32 n, u32 depth,
                                  u64 *bits) {
    const u32 op = p->value[0] & 255;
    u32 is_far = 0; /* it is not: can_approximate() */
    const double ddof = ddof_of(p->ddof, p->exponent, &is_far);
    if (n >= APPROXIMATE_MOST) return 0;
    if (LONG)
        return near_doubles_round(double_from(s->w[0]), double_from(s->w[1]),
                                  double_from(s->w[SQUARES]), double_from(s->w[SQUARES + 1]), n,
                                  HAS_SUM, op, ddof, to, bits);
    if (SQUARES_IN_FLOATS && !(double_from(s->w[SQUARES]) > NEAR_LEAST)) return 0;
    return near_sums_round(double_from(s->w[0]), double_from(s->w[SQUARES]), n,
                           (double)depth + NEAR_DEPTH, HAS_SUM, op, ddof, to, bits);
}

#endif
