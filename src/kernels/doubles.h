/*
 * doubles.h - values of sums in two doubles, high + low: sums, means, variances and roots.
 *
 * A sum that starts at high = -0, low = 0 keeps high = -0 as long as all terms are -0, since only -0 + -0 is -0. So it
 * keeps the sign of zeros by itself. How a sum and a mean are rounded is pair.h's.
 *
 * A variance, or a root, is a ball: a double-double s + e, and a bound b of its error. If s + (e - b)
 * and s + (e + b) round to the same float, that is the value, as rounding is monotonic (Ziv's rounding
 * test); otherwise the value is lost. b is 0 if no step has rounded.
 *
 * Before including this header, include kernel.h and lower.h.
 */
#ifndef TALLY_DOUBLES_H
#define TALLY_DOUBLES_H

#include "pair.h"

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

/* A ball: the exact value lies within b of s + e. */
typedef struct ball {
    double s, e, b;
} ball;

PURE double magnitude_of(double x) {
    return double_from(double_bits(x) & ~((u64)1 << 63));
}

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

/* Returns whether plain arithmetic determines the variance, or its root, as an f32; *bits are its
 * bits. t and v are within 2^-52 of the sum of `count` elements and of that of their squares,
 * relatively. `scale` is within 2^-50 of 1 / (n (n - ddof)). So the numerator's error is at most
 * 2^-50 of the minuend. */
PURE u32 quick_variance(double t, double v, double count, double scale, u32 root, u64 *bits) {
    const double nv = count * v, tt = t * t, a = nv - tt, x = a * scale;
    return 512 * a >= nv + tt && quick_float(root ? square_root(x) : x, bits);
}

/* Returns the bits of the root of the sum of squares high + low >= 0, whose error is at most
 * `off`. */
PURE u64 norm_value(double high, double low, u32 to, double off, u32 *lost) {
    const ball sum = {high, low, off};
    u64 bits;
    if (to == F32 && off <= high * 0x1p-60 && quick_float(square_root(high + low), &bits))
        return bits;
    if (high == 0) return 0;
    if (!(high > 0x1p-700 && high < 0x1p900)) *lost = 1;
    return ball_value(ball_root(sum), to, lost);
}

/* Adds x to *s. Returns the addition's error. */
PURE double add_noting(double *s, double x) {
    double error;
    *s = two_sum(*s, x, &error);
    return error;
}

/* Returns the bits of the variance of n > 0 elements, or of its root: (n Q - S^2) / (n (n - ddof)),
 * where S = t + u is their sum and Q = v + w that of their squares.
 * Given |error of Q| <= rough Q and |error of S| <= rough sqrt(n Q). As S^2 <= n Q by Cauchy and
 * Schwarz, the numerator's error is little more than 3 rough n Q.
 * Each product is taken with its error. If u is 0, the numerator's terms are added without an
 * error, or `wrong` is set. Else the terms left out are some 2^-105 of n Q and S^2; 2^-98 covers
 * them. By Cauchy and Schwarz the numerator is not negative. */
PURE u64 variance_value(double high, double low, double squares_high, double squares_low, u64 n,
                        double ddof, u32 root, u32 to, double rough, u32 *lost) {
    const double count = (double)n;
    double u, w, off, e;
    u64 bits;
    if (to == F32 && rough < 0x1p-60 && ddof < count && n >> 53 == 0 &&
        quick_variance(high + low, squares_high + squares_low, count, 1 / (count * (count - ddof)),
                       root, &bits))
        return bits;
    const double t = two_sum(high, low, &u), v = two_sum(squares_high, squares_low, &w);
    const double left = two_sum(count, -ddof, &off), by = count * left;
    if (ddof >= count) return float_nan_bits(format_of(to));
    if (off != 0 || n >> 53 != 0 || (v != 0 && !(v > 0x1p-700)) || !(v < 0x1p900 / (count * count)))
        *lost = 1;
    const double tt = t * t, nv = count * v, nw = count * w, tu = t * u;
    ball a;
    a.s = two_sum(nv, -tt, &e);
    double wrong = magnitude_of(add_noting(&e, fused(count, v, -nv)));
    wrong += magnitude_of(add_noting(&e, -fused(t, t, -tt)));
    wrong += magnitude_of(add_noting(&e, nw));
    wrong += magnitude_of(add_noting(&e, fused(count, w, -nw)));
    if (t != 0 && !(tt > 0x1p-900)) wrong = 1; /* its error might be no double */
    a.e = e - 2 * tu;
    a.b = wrong != 0 || u != 0 ? 0x1p-98 * (nv + tt) : 0;
    a.b += 4 * rough * nv;
    if (rough != 0 && v == 0) *lost = 1;
    if (a.b == 0 && a.s + a.e == 0) return 0;
    if (fused(count, left, -by) == 0) {
        a = ball_quotient(a, by);
    } else {
        a = ball_quotient(a, count);
        a = ball_quotient(a, left);
    }
    return ball_value(root ? ball_root(a) : a, to, lost);
}

#endif
