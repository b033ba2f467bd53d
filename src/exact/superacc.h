/*
 * superacc.h - the superaccumulator: a fixed-point number wide enough for every float, and for the product of
 * any two.
 *
 * A finite double is an integer multiple of 2^-1074 below 2^1024; the product of two is one of 2^-2148 below
 * 2^2048. A number with a bit for each of those powers, and 64 more, holds any sum of up to 2^64 of them without
 * rounding (Kulisch; Neal 2015, "Fast exact summation using small and large
 * superaccumulators"). It is kept as signed 64-bit limbs; limb i weighs 2^(32*i - 2176) and is worth 32
 * bits, so each limb has 31 bits to spare: additions go to limbs without carrying, and two accumulators are
 * merged by adding limb to limb. Carries are settled by superacc_normalise(), once in about 2^29 additions.
 *
 * Only the limbs in [low, high) have been touched: the others are 0 and are not stored as such. So a sum of
 * floats near 1 costs a handful of limbs to clear, merge and round, not all of them.
 *
 * Invariant (superacc_is_valid()): 0 <= low <= high <= SUPERACC_LIMBS, |limb[i]| <= used * 2^32 and
 * used <= SUPERACC_USED_MAX, so no limb overflows.
 */
#ifndef TALLY_SUPERACC_H
#define TALLY_SUPERACC_H

#include <stdint.h>

#define SUPERACC_LIMBS    136     /* 32 * 136 = 4352 bits: 2176 below the point, 2176 above */
#define SUPERACC_LOWEST   (-2176) /* the exponent of limb 0's lowest bit */
#define SUPERACC_USED_MAX (1u << 29)

struct superacc {
    int low, high; /* limb[low ... high - 1] have been touched */
    uint32_t used; /* additions since the last normalisation, and 1: the bound of every limb */
    int64_t limb[SUPERACC_LIMBS];
};

/* a = 0, with no limb touched. */
void superacc_clear(struct superacc *a);

/* a += value * 2^exponent. The bits of value lie at or above 2^-2176, and the sum stays below 2^2175 in
 * magnitude: both hold for any 2^64 products of two floats, and for partial sums of them. */
void superacc_add(struct superacc *a, __int128 value, int exponent);

/* a += b. The two may be one. */
void superacc_merge(struct superacc *a, const struct superacc *b);

/* a = -a. */
void superacc_negate(struct superacc *a);

/* Settles all carries: afterwards every limb but the last touched one lies in [0, 2^32), and that one lies in
 * [-2^32, 2^32) and carries the sign. The value is unchanged. */
void superacc_normalise(struct superacc *a);

/* Returns limb i; 0 if it is untouched. */
static inline int64_t superacc_limb(const struct superacc *a, int i) {
    return i >= a->low && i < a->high ? a->limb[i] : 0;
}

/* Returns whether the invariant holds. */
int superacc_is_valid(const struct superacc *a);

#endif
