/*
 * lower.h - from the states of exact sums to values: sums, quotients, roots and variances, each the exact
 * real number rounded once. The arithmetic is that of kernels/number.h.
 *
 * NaNs, infinities and signed zeros follow the rules of include/tally.h.
 */
#ifndef TALLY_EXACT_LOWER_H
#define TALLY_EXACT_LOWER_H

#include "exact/sum.h"
#include "tally.h"

/* Returns the sum of n terms, in a floating type. */
tally_value exact_round(const struct exact_sum *s, uint64_t n, tally_type type);
/* Returns the sum of n terms divided by (negative ? -1 : 1) * divisor, which is not 0. */
tally_value exact_quotient(const struct exact_sum *s, uint64_t n, int negative, uint64_t divisor,
                           tally_type type);
/* Returns the square root of a sum of squares. */
tally_value exact_root(const struct exact_sum *s, tally_type type);
/* The sums that a variance follows from: those of real numbers, or of the real or the imaginary parts of complex
 * ones. */
struct exact_moments {
    const struct exact_sum *sum, *squares;
    const double *mean; /* the mean that the variance is about; NULL: the elements' own */
};

/* Returns the variance of n elements of `parts` parts, 1 or 2, or if `root` the standard deviation. ddof is finite and not
 * negative; means are given for all parts or for none. */
tally_value exact_variance(const struct exact_moments *part, unsigned parts, uint64_t n,
                           double ddof, int root, tally_type type);
/* Makes *out a sum of integers as an i64 or u64. Returns whether it fits; if not, *out stays. */
int exact_integer(const struct exact_sum *s, tally_type type, tally_value *out);

#endif
