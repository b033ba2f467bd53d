/*
 * superacc.h - the superaccumulator: a fixed-point number wide enough for every float.
 *
 * A finite double is an integer multiple of 2^-1074 below 2^1024, and so are a float, an f16 and a
 * bf16. A number with a bit for each of those powers, and 64 more for the count, holds any sum of up
 * to 2^64 of them without rounding (Kulisch; Neal 2015, "Fast exact summation using small and large
 * superaccumulators"). It is kept as LIMBS signed 64-bit limbs; limb i weighs 2^(32*i - 1088) and is
 * worth 32 bits, so each limb has 31 bits to spare: additions go to limbs without carrying, and two
 * accumulators are merged by adding limb to limb. Carries are settled by superacc_normalise(), once
 * in about 2^29 additions.
 *
 * Invariant: |limb[i]| <= used * 2^32, used <= SUPERACC_USED_MAX, so no limb overflows.
 */
#ifndef TALLY_SUPERACC_H
#define TALLY_SUPERACC_H

#include <stdint.h>

#define SUPERACC_LIMBS    68      /* 32 * 68 = 2176 bits: 1088 below the point, 1088 above */
#define SUPERACC_LOWEST   (-1088) /* the exponent of limb 0's lowest bit */
#define SUPERACC_USED_MAX (1u << 29)

struct superacc {
    int64_t limb[SUPERACC_LIMBS];
    uint32_t used; /* additions since the last normalisation: the bound of every limb */
};

void superacc_clear(struct superacc *a);

/* a += value * 2^exponent. The bits of value must lie at or above 2^-1088, and the sum stays below
 * 2^1087 in magnitude: both hold for any 2^64 floats and for partial sums of them. */
void superacc_add(struct superacc *a, __int128 value, int exponent);

/* a += b. */
void superacc_merge(struct superacc *a, const struct superacc *b);

/* Settles all carries: afterwards limbs 0 .. LIMBS-2 lie in [0, 2^32), and the last one, signed,
 * carries the sign of the whole. The value is unchanged and the form is unique. */
void superacc_normalise(struct superacc *a);

#endif
