/*
 * float_sum.h - all there is to know about the sum of some floats.
 *
 * The exact finite part, which infinities and NaNs were met, how many numbers there were, and whether
 * all of them were -0: enough to give the correctly rounded sum, or to be merged with another. This is
 * what threads hand to each other, and what a public tally_accumulator holds.
 *
 * The finite part starts as one 128-bit integer times a power of two, which is all that a short array
 * needs; only a second contribution on another scale opens the superaccumulator.
 */
#ifndef TALLY_FLOAT_SUM_H
#define TALLY_FLOAT_SUM_H

#include "exact/superacc.h"
#include "tally.h"

enum { SEEN_NAN = 1, SEEN_PLUS_INF = 2, SEEN_MINUS_INF = 4 };

struct float_sum {
    __int128 pending;       /* while !spread: the finite part is pending * 2^pending_exponent */
    int pending_exponent;   /*   (unused when pending is 0) */
    unsigned char spread;   /* the finite part is in `limbs` */
    unsigned char specials; /* SEEN_... */
    unsigned char mixed;    /* some number was not -0 */
    uint64_t count;         /* numbers added, modulo 2^64 */
    struct superacc limbs;  /* undefined until `spread` */
};

void float_sum_clear(struct float_sum *s);
/* Adds value * 2^exponent to the finite part; bounds as for superacc_add(). Leaves count, specials
 * and mixed to the caller. */
void float_sum_add(struct float_sum *s, __int128 value, int exponent);
/* Makes `limbs` hold the finite part, for callers that add to them directly. */
struct superacc *float_sum_limbs(struct float_sum *s);
void float_sum_merge(struct float_sum *s, const struct float_sum *from);
/* The sum, rounded once to nearest even, in a floating type. */
tally_value float_sum_round(const struct float_sum *s, tally_type type);

#endif
