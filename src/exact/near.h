/*
 * near.h - values of exact sums by way of doubles, where these decide them (kernels/certain/): a few dozen operations in
 * place of quotients and roots of large integers.
 *
 * A number's highest bits are two doubles, with a bound of what these leave out. Where all that lies within the bound
 * rounds to one float, that is the value.
 */
#ifndef TALLY_EXACT_NEAR_H
#define TALLY_EXACT_NEAR_H

#include "exact/kernel_words.h"
#include "tally.h"

#include "kernels/number.h"

/* Return whether doubles decide the value, which is then *out: the variance of n > 0 elements, or if `root` its root, from
 * their sum and that of their squares; and the root of a sum of squares. ddof is finite and not negative. */
int near_variance(const number *sum, const number *squares, u64 n, double ddof, int root,
                  tally_type type, tally_value *out);
int near_root(const number *squares, tally_type type, tally_value *out);

#endif
