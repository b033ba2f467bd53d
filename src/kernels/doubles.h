/*
 * doubles.h - values of sums in two doubles, high + low: sums, means, variances and roots.
 *
 * A sum that starts at high = -0, low = 0 keeps high = -0 as long as all terms are -0, since only -0 + -0 is -0. So a
 * sum of zeros has the right sign without a test.
 *
 * Before including this header, include kernel.h and lower.h.
 */
#ifndef TALLY_DOUBLES_H
#define TALLY_DOUBLES_H

#include "pair.h"

#include "certain/variance.h"

/* Returns 2^exponent, a normal number. */
PURE double power_of_two(i32 exponent) {
    return double_from((u64)(1023 + exponent) << 52);
}

#endif
