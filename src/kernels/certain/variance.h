/*
 * variance.h - variances, standard deviations and norms of sums in doubles: exact sums, rough ones, near ones.
 *
 * The variance of n elements with the sum S and the sum of squares Q is (n Q - S^2) / (n (n - ddof)). Sums are known in
 * one of these ways, from the dearest to the cheapest:
 *
 *   exact   as two doubles each: variance_value() and norm_value() with rough = 0
 *   rough   as two doubles each, within rough Q and rough sqrt(n Q): the same with rough_bound()
 *   near    as one or two doubles each, within a bound that grows with n: near_sums_round(), near_doubles_round()
 *
 * All of it rests on Cauchy and Schwarz: S^2 <= n Q, and the same holds for the sum of magnitudes, so the error of any sum
 * of elements can be measured by Q. A value that its bound does not decide is lost.
 *
 * Before including this header, include what certain/rounding.h needs.
 */
#ifndef TALLY_CERTAIN_VARIANCE_H
#define TALLY_CERTAIN_VARIANCE_H

#include "rounding.h"

/* Returns the correction of a variance, correction * 2^exponent, as a double. Sets *lost where that is out of the range
 * that variances are worked out in here. */
PURE double ddof_of(u64 correction, i32 exponent, u32 *lost) {
    const u32 is_far = exponent > 64 || exponent < -64 || correction >> 53 != 0;
    if (is_far && correction != 0) *lost = 1;
    return (double)correction * double_from((u64)(is_far ? 1023 : 1023 + exponent) << 52);
}

/* ---- Exact and rough sums -------------------------------------------------------------------------------- */

/* Returns the bound of rough sums of n elements: Q is off by at most rough Q, S by at most rough sqrt(n Q).
 *
 * 1. A thread adds at most m = 2^11 elements to a double-double before that is merged. Each of the 2 m additions to the
 *    second double, which is at most m 2^-53 of the sum, loses at most 2^-53 of it: 2 m^2 2^-106 = 2^-83 in all. That is
 *    of Q, or of the sum of magnitudes, which is at most sqrt(n Q).
 * 2. A batch of 32 f64 above a base (columns.cu) has a window 2^w, and its largest element is at least 2^(w - 3). Sums
 *    lie below 2^(w + 7), those of squares below 2^(2 w + 6), so an addition loses at most 2^(w - 47), or 2^(2 w - 48).
 *    Plain additions of 32 such errors are off by less than 2^(w - 89) and 2^(2 w - 90): less than 2^-84 of the largest
 *    element and of its square. Over all batches that is less than 2^-84 sqrt(n Q) and 2^-84 Q.
 * 3. A merge of two double-doubles makes two additions to a second double, each with an error of 2^-105 of the sum. There
 *    are fewer than 4 n of them: 4 n 2^-105 = n 2^-103. */
PURE double rough_bound(u64 n) {
    return 0x1p-81 + (double)n * 0x1p-102;
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
    if (n >> 53 != 0) *lost = 1; /* `count` may be rounded, to ddof even */
    if (ddof >= count) return float_nan_bits(format_of(to));
    if (off != 0 || (v != 0 && !(v > 0x1p-700)) || !(v < 0x1p900 / (count * count))) *lost = 1;
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

/* The sums of n elements and of their squares, exact or rough: high + low and square + rest. */
typedef struct moment_sums {
    double high, low, square, rest;
    double rough; /* as rough_bound() gives it, or 0 */
    double off;   /* how far the sum of squares may be off at most, besides */
} moment_sums;

/* Returns the bits of a value of n > 0 elements that squares have a part in: SUMSQ, NORM2, VAR or STD. A variance's ddof is
 * correction * 2^exponent. */
PURE u64 squares_value(moment_sums s, u64 n, u32 op, u64 correction, i32 exponent, u32 to,
                       u32 *lost) {
    const ball squares = {s.square, s.rest, s.rough * s.square + s.off};
    if ((s.rough != 0 || s.off != 0) && s.square == 0) *lost = 1;
    if (op == NORM2) return norm_value(s.square, s.rest, to, squares.b, lost);
    if (op == SUMSQ) /* a bound that underflows is 0, and is none */
        return s.rough == 0 && s.off == 0 ? doubles_value(s.square, s.rest, n, 0, to, 0, lost)
                                          : ball_value(squares, to, lost);
    const double ddof = ddof_of(correction, exponent, lost);
    return variance_value(s.high, s.low, s.square, s.rest, n, ddof, op == STD, to, s.rough, lost);
}

/* ---- Near sums ------------------------------------------------------------------------------------------- */

/* Returns whether n elements decide a variance, or its root, without sums: it is NaN for n <= ddof, and 0 for a single finite
 * element, which is `sum`. *bits are its bits then. */
PURE u32 variance_needs_no_sums(double sum, u32 n, u32 op, double ddof, u32 to, u64 *bits) {
    const u32 is_none = ddof >= (double)n;
    *bits = is_none ? float_nan_bits(format_of(to)) : 0;
    return (op == VAR || op == STD) && (is_none || (n == 1 && sum - sum == 0));
}

/* Returns whether sums in one double each determine a value of n elements; *bits are its bits. An element of the sums has
 * gone through at most depth + 5 additions, the squares were exact, and `has_sum` says whether there is a sum of elements.
 * The error of Q is less than (depth + 8) 2^-53 Q. The numerator's is less than (4 depth + 16) 2^-53 n Q: depth + 5 for
 * n Q, twice that for S^2, and 2 for the arithmetic. */
PURE u32 near_sums_round(double sum, double square, u32 n, double depth, u32 has_sum, u32 op,
                         double ddof, u32 to, u64 *bits) {
    double v = square, off = square * ((depth + 8) * 0x1p-53);
    if (has_sum && variance_needs_no_sums(sum, n, op, ddof, to, bits)) return 1;
    if (!(square - square == 0)) return 0;
    if (square == 0) { /* all elements are 0 */
        *bits = 0;
        return 1;
    }
    if (has_sum && (op == VAR || op == STD)) {
        const double count = (double)n, r = 1 / (count * (count - ddof));
        v = fused(count, square, -(sum * sum)) * r;
        off = (count * square) * ((4 * depth + 16) * 0x1p-53) * r;
    }
    if (!(v > 4 * off)) return 0;
    /* |sqrt(V) - sqrt(v)| = |V - v| / (sqrt(V) + sqrt(v)). As V > 3/4 v, that is less than |V - v| / ((1 + sqrt(3/4)) sqrt(v)),
     * and 1 / (1 + sqrt(3/4)) < 0.54. */
    if (op == STD || op == NORM2) {
        v = square_root(v);
        off = 0.54 * off / v;
    }
    /* The root, v - off and v + off are off by 2^-53 v each; a variance's product of three by some more. */
    off += v * (op == NORM2 || op == SUMSQ ? 0x1p-51 : 0x1p-50);
    return rounds_the_same(v - off, v + off, to, bits);
}

/* Does the same with sums in two doubles each, the second of which is the plain sum of the errors of the first. Their
 * errors are at most (n + 32)^2 2^-106 sqrt(n Q) and (4 n + 64) (n + 8) 2^-106 Q. The numerator's is less than
 * (6 n + 128) (n + 32) 2^-106 n Q, with the square of S's second double, which is left out. */
PURE u32 near_doubles_round(double sum, double low, double square, double rest, u32 n, u32 has_sum,
                            u32 op, double ddof, u32 to, u64 *bits) {
    const double count = (double)n;
    ball a = {square, rest, square * ((4 * count + 64) * (count + 8) * 0x1p-106)};
    u32 lost = 0;
    if (has_sum && variance_needs_no_sums(sum, n, op, ddof, to, bits)) return 1;
    if (!(square > 0x1p-800 && square < 0x1p800)) return 0;
    if (has_sum && (op == VAR || op == STD)) {
        const double left = count - ddof, by = count * left, r = 1 / by;
        double e;
        const double nq = count * square, ss = sum * sum;
        const double r2 = fused(-by, r, 1.0) * r;
        if (left + ddof != count || count - left != ddof || fused(count, left, -by) != 0) return 0;
        const double top = two_sum(nq, -ss, &e);
        const double more = e + ((fused(count, square, -nq) + count * rest) -
                                 (fused(sum, sum, -ss) + 2 * (sum * low)));
        a.s = top * r;
        a.e = fused(top, r, -a.s) + (top * r2 + more * r);
        a.b =
            (nq * ((6 * count + 128) * (count + 32) * 0x1p-106)) * r + magnitude_of(a.s) * 0x1p-100;
    }
    if (!(a.s > 4 * (a.b + magnitude_of(a.e)))) return 0;
    if (op == STD || op == NORM2) a = ball_root(a);
    *bits = ball_value(a, to, &lost);
    return !lost;
}

#endif
