/*
 * rounding.h - rounds sums in one or two doubles to floats of any type, and tests whether an approximate sum decides
 * the float.
 *
 * An exact sum s + e is rounded once: to a shorter type by way of a double that is rounded to odd, to f64 by the remainder
 * of the quotient. What is only known within a bound - a ball - is rounded at both ends: if these are the same float, so is
 * all that lies between them, as rounding is monotonic (Ziv's rounding test). Otherwise the value is lost, and an exact way
 * has to find it.
 *
 * Rounding integers of any length is another header's (kernels/rounding.h).
 *
 * Before including this header, define BF16, F32 and F64, format_of(), fused() and square_root(), as kernel.h and lower.h do.
 */
#ifndef TALLY_CERTAIN_ROUNDING_H
#define TALLY_CERTAIN_ROUNDING_H

#include "two_sum.h"

/* Returns the exponent field of a double: 2047 for infinities and NaNs. */
PURE i32 exponent_field(double x) {
    return (i32)(double_bits(x) >> 52 & 2047);
}

#define NOT_FINITE 2047
#define HUGE_FIELD 2023 /* of 2^1000: fewer than 2^23 smaller numbers cannot overflow a double */

PURE double magnitude_of(double x) {
    return double_from(double_bits(x) & ~((u64)1 << 63));
}

/* ---- Exact sums ----------------------------------------------------------------------------------------- */

/* Returns the bits of x as an f32 that is rounded to odd: so it rounds to shorter types as x does. */
PURE u32 float_bits_to_odd(double x) {
    const float nearest = (float)x;
    const u32 is_larger = magnitude_of((double)nearest) > magnitude_of(x);
    return (double)nearest == x ? float_bits(nearest) : (float_bits(nearest) - is_larger) | 1;
}

/* Returns the bits of a double that was rounded to odd and is no NaN, as a float of the type `to`. */
PURE u64 pair_shorter(double odd, u32 to) {
    const float_format wide = {52, 1023};
    if (to == F64) return double_bits(odd);
    if (to == F32) return (u64)float_bits((float)odd);
    if (to == BF16) { /* the upper half of an f32 */
        const u32 bits = float_bits_to_odd(odd);
        return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    }
    return round_float(format_of(to), wide, double_bits(odd));
}

/* Ziv's rounding test: returns 1 if `low` and `high`, which are finite, round to the same value of
 * the type `to`, so that every number between them does. *bits are that value's. -0 and +0 are
 * different values. If an end is an infinity or a NaN, the result is 0, and the fallback decides.
 * */
PURE u32 rounds_the_same(double low, double high, u32 to, u64 *bits) {
    *bits = pair_shorter(low, to);
    return low - low == 0 && high - high == 0 && pair_shorter(high, to) == *bits;
}

/* Returns the bits of the double nearest to q + (rest + more) / n. q is that double or a neighbour
 * of it, |more| is less than half of rest's last bit, and n < 2^50 is an integer. */
PURE u64 pair_nearest(double q, double rest, double more, double n) {
    const u64 sign = double_bits(q) & (u64)1 << 63, bits = double_bits(q) ^ sign;
    const double left = sign ? -rest : rest, next = sign ? -more : more;
    const u64 other =
        left > 0 ? bits + 1 : bits - 1; /* q's neighbour in the direction of the rest */
    const double gap = double_from(other) - double_from(bits), middle = 0.5 * gap * n; /* exact */
    const double beyond =
        (left - middle) + next; /* its sign is right: near 0 the difference is exact */
    const u32 outwards = left > 0 ? beyond > 0 : beyond < 0;
    return sign | (left != 0 && (outwards || (beyond == 0 && bits & 1)) ? other : bits);
}

/* Returns the bits of (a + r) / n in the type `to`, where |r| is at most half of a's last bit. Sets
 * *lost if this way does not give them. a / n, corrected by d, is a double q: the nearest to the
 * quotient, or a neighbour of that. The remainder a - q n + r has at most 53 bits before r. */
PURE u64 pair_quotient(double a, double r, u64 n, u32 to, u32 *lost) {
    const double count = (double)n;
    if ((n & (n - 1)) == 0) { /* a power of two: a / n is exact, and r matters by its sign only */
        const double q = a / count;
        if (exponent_field(q) < 200) *lost = 1;
        return to == F64 ? double_bits(q) : pair_shorter(pair_to_odd(q, r), to);
    }
    if (r == 0 && to == F64 && n >> 53 == 0) return double_bits(a / count);
    const double first = a / count, d = (fused(-first, count, a) + r) / count, q = first + d;
    double more;
    const double rest = two_sum(fused(-q, count, a), r, &more);
    if (exponent_field(q) < 200 || n >> 50 != 0)
        *lost = 1; /* what is left over might not be a double */
    if (to == F64) return pair_nearest(q, rest, more, count);
    return pair_shorter(pair_to_odd(q, rest), to);
}

/* Returns the bits of the sum, or of the mean of n > 0 terms, whose exact sum is high + low. `zero`
 * are the bits of a sum of 0. Sets *lost if this way does not give the value. */
PURE u64 doubles_value(double high, double low, u64 n, u32 mean, u32 to, u64 zero, u32 *lost) {
    double r;
    const double a = two_sum(high, low, &r);
    if (exponent_field(a) >= HUGE_FIELD) *lost = 1;
    if (a == 0) return zero;
    if (mean) return pair_quotient(a, r, n, to, lost);
    return to == F64 ? double_bits(a) : pair_shorter(pair_to_odd(a, r), to);
}

/* ---- Balls: sums within a bound -------------------------------------------------------------------------- */

/* A ball: the exact value lies within b of s + e. */
typedef struct ball {
    double s, e, b;
} ball;

/* Returns a / n with its bound; a.s is 0, or |a.s| >= 2^-900, so that no remainder of a.s
 * underflows.
 * `first` may have some wrong last bits. q is `first` corrected by its remainder: the double
 * nearest to the quotient, or a neighbour of that. So the remainder a.s - q n is a double, and
 * fused() gives it without an error.
 * If a.e adds to the remainder without an error, and the sum is a multiple of n by a double, the
 * result is exact, and a tie is known to be one. Otherwise the quotient of the remainder may
 * underflow, which 2^-1000 covers. */
PURE ball ball_quotient(ball a, double n) {
    double t;
    const double inverse = 1 / n, s = two_sum(a.s, a.e, &t), first = s * inverse;
    const double q = fused(fused(-first, n, s), inverse, first);
    double error;
    const double rest = two_sum(fused(-q, n, s), t, &error), more = rest * inverse;
    ball to = {q, more, 4 * (a.b * inverse)};
    if (error != 0 || fused(-more, n, rest) != 0 || (rest != 0 && !(magnitude_of(rest) > 0x1p-900)))
        to.b += magnitude_of(more) * 0x1p-50 + 0x1p-1000;
    return to;
}

/* Returns the root of a > 0 with its bound. */
PURE ball ball_root(ball a) {
    const double s = a.s + a.e, first = square_root(s);
    double t;
    const double sum = two_sum(a.s, a.e, &t), left = fused(-first, first, sum) + t;
    const double inverse = 1 / first;
    ball to = {first, left * (0.5 * inverse), 2 * (a.b * inverse)};
    if (left != 0) to.b += first * 0x1p-98;
    return to;
}

/* Returns s + e as a double that rounds to the type `to` as the exact sum does: rounded to odd if
 * `to` is shorter. */
PURE double double_to_round(double s, double e, u32 to) {
    double r;
    const double a = two_sum(s, e, &r);
    return to == F64 ? a : pair_to_odd(a, r);
}

/* Returns the bits of a > 0, rounded to the type `to`. Sets *lost if the bound does not decide them
 * (Ziv's rounding test). */
PURE u64 ball_value(ball a, u32 to, u32 *lost) {
    const double d = a.b == 0 ? 0 : 2 * a.b + magnitude_of(a.e) * 0x1p-51;
    const double low = double_to_round(a.s, a.e - d, to),
                 high = d == 0 ? low : double_to_round(a.s, a.e + d, to);
    u64 bits = 0;
    if (!(a.s > 0x1p-900 && a.s < 0x1p900) || !rounds_the_same(low, high, to, &bits)) *lost = 1;
    return bits;
}

/* Returns whether all numbers within 2^-40 x of x > 0 round to the same f32; *bits are its bits. */
PURE u32 quick_float(double x, u64 *bits) {
    const float low = (float)(x - x * 0x1p-40), high = (float)(x + x * 0x1p-40);
    *bits = float_bits(low);
    return low == high && x > 0x1p-600;
}

/* ---- Near sums ------------------------------------------------------------------------------------------- */

/* Returns whether a sum of n < 2^53 elements, or their mean, is the same float of the type `to` wherever it lies within
 * `off` of `sum`; *bits are its bits. The mean's quotient by way of 1 / n has an error of less than 2^-50 of itself or, where
 * it is subnormal, of less than a last bit, and each end's addition one of 2^-53. */
PURE u32 near_sum_rounds(double sum, double off, u32 n, u32 mean, u32 to, u64 *bits) {
    double v = sum;
    if (mean) {
        const double r = 1 / (double)n;
        v *= r;
        off = off * r + magnitude_of(v) * 0x1p-50 + (sum == 0 ? 0 : 0x1p-1074);
    }
    off += magnitude_of(v) * 0x1p-52;
    /* -0 + 0 would be +0: a sum of -0s alone has off = 0, and stays as it is. */
    return rounds_the_same(v - off, off == 0 ? v : v + off, to, bits);
}

#endif
