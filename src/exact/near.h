/*
 * near.h - the fast path from exact sums to variances, deviations and norms: interval arithmetic in double-doubles
 * (kernels/certain/variance.h). It takes a few dozen operations, where quotients and roots of large integers take
 * hundreds.
 *
 * A double-double holds the highest bits of each sum, within an error bound. If every real number within the resulting
 * bound rounds to the same float, that float is the value (Ziv's test). Otherwise the caller divides the integers.
 */
#ifndef TALLY_EXACT_NEAR_H
#define TALLY_EXACT_NEAR_H

#include "exact/kernel_words.h"
#include "tally.h"

#include "kernels/number.h"

/* Computes the variance of n > 0 elements, or if `root` its root, from their exact sum and that of their squares.
 * Returns 1 and sets *out if doubles decide the value, and else 0. ddof is finite and not negative. */
int near_variance(const number *sum, const number *squares, u64 n, double ddof, int root,
                  tally_type type, tally_value *out);
/* Does the same for the square root of a sum of squares. */
int near_root(const number *squares, tally_type type, tally_value *out);

#endif
