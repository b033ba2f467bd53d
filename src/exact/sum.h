/*
 * sum.h - the state of an exact sum: of floats, of products of two, of magnitudes, of integers.
 *
 * The exact finite part, how many NaNs and infinities there were, and whether all terms were -0: enough to
 * give the correctly rounded sum, or to be merged with another.
 *
 * The finite part starts as one 128-bit integer times a power of two, which is all that a short array and
 * most sums of integers need; only a second contribution on another scale, or one with which the sum would not fit,
 * opens the superaccumulator.
 */
#ifndef TALLY_EXACT_SUM_H
#define TALLY_EXACT_SUM_H

#include "exact/superacc.h"

struct exact_sum {
    __int128 pending;           /* while !spread: the finite part is pending * 2^pending_exponent */
    int pending_exponent;       /*   (unused when pending is 0) */
    unsigned char spread;       /* the finite part is in `limbs` */
    unsigned char mixed;        /* some term was not -0 */
    uint64_t nans, plus, minus; /* terms that were NaN, +inf, -inf */
    struct superacc limbs;      /* undefined until `spread` */
};

void exact_sum_clear(struct exact_sum *s);
/* Adds value * 2^exponent to the finite part; bounds as for superacc_add(). `mixed` and the counts are the caller's to
 * set. */
void exact_sum_add(struct exact_sum *s, __int128 value, int exponent);
/* Makes `limbs` hold the finite part and returns it, for callers that add to it directly. */
struct superacc *exact_sum_limbs(struct exact_sum *s);
/* s += from. The two may be one. */
void exact_sum_merge(struct exact_sum *s, const struct exact_sum *from);
/* s = -s: each term with the other sign. A sum of zeros becomes one of +0. */
void exact_sum_negate(struct exact_sum *s);
/* s -= from: takes away terms that have been added. Returns 0, and leaves s unchanged, if a count would fall below 0:
 * then they cannot have been added. A sum of nothing but zeros is +0 afterwards. */
int exact_sum_subtract(struct exact_sum *s, const struct exact_sum *from);

#endif
