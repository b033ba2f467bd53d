/*
 * doubles.h - a sum in two doubles, high + low, that keeps the sign of zeros by itself: a sum that starts at high = -0, low
 * = 0 keeps high = -0 as long as all terms are -0, since only -0 + -0 is -0. How it is rounded is pair.h's.
 *
 * Whoever includes this has included kernel.h and lower.h.
 */
#ifndef TALLY_DOUBLES_H
#define TALLY_DOUBLES_H

#include "pair.h"

#define HUGE_FIELD                                                                                 \
    2023 /* of 2^1000: a thread adds fewer than 2^23 smaller numbers before it flushes */

PURE i32 exponent_field(double x) {
    return (i32)(double_bits(x) >> 52 & 2047);
}

/* a + b, and its error. An infinity or a NaN makes a NaN of that. */
PURE double two_sum(double a, double b, double *error) {
    const double sum = a + b, t = sum - a;
    *error = (a - (sum - t)) + (b - t);
    return sum;
}

/* The bits of the sum, or of the mean of n > 0 terms, whose exact sum is high + low; `zero` are those of a sum that is
 * 0. *lost where they cannot be had so. */
PURE u64 doubles_value(double high, double low, u64 n, u32 mean, u32 to, u64 zero, u32 *lost) {
    double r;
    const double a = two_sum(high, low, &r);
    if (exponent_field(a) >= HUGE_FIELD) *lost = 1;
    if (a == 0) return zero;
    if (mean) return pair_quotient(a, r, n, to, lost);
    return to == F64 ? double_bits(a) : pair_shorter(pair_to_odd(a, r), to);
}

#endif
