/*
 * lost_sums.h - the exact sums of short floats whose state has lost bits: a warp adds the row or column up again, as an
 * integer, so that no launch has to follow.
 *
 * The unit is 2^UNIT_BIT, the smallest float. Each lane adds its elements to limbs of its own, in local memory: limb i
 * weighs 2^(32 i) units. Then lane FIRST_DIGIT + i gets the sum of all lanes' limbs i, and the lanes hand on their
 * carries, so that each has a digit. The lanes below FIRST_DIGIT have the digits of a quotient's fraction.
 *
 * Before including this header, include widen.h, lower.h, parts.h and warps.h.
 */
#ifndef TALLY_SCHEDULE_LOST_SUMS_H
#define TALLY_SCHEDULE_LOST_SUMS_H

#define UNIT_BIT    (-149)
#define FIRST_DIGIT 3u   /* three digits of a fraction make a quotient's leading 65 bits */
#define LANE_LIMBS  9u   /* the highest bit of a finite float weighs 2^276 units */
#define WARP_DIGITS 14u  /* of a fraction, of a sum below 2^277 SUMS_AGAIN_MOST units, of a sign */
#define ADDED_AGAIN 4u   /* loads of a lane that are under way at once */
#define NO_FINITE   255u /* the exponent field of infinities and NaNs */

/* A lane's limb grows by less than 2^32 for each of its elements, and it has at most 2^11. */
typedef char sums_fit_limbs[277 < 32 * LANE_LIMBS &&
                                    277 + 16 < 32 * (WARP_DIGITS - FIRST_DIGIT - 1) &&
                                    SUMS_AGAIN_MOST <= 1 << 16
                                ? 1
                                : -1];

/* A sum, of which each lane has a digit. `special` is an infinity or a NaN where the sum is, else 0. */
typedef struct lost_sum {
    u64 digit;
    u32 negative;
    float special;
} lost_sum;

/* Returns what an element adds to the sum: itself, or its magnitude. */
PURE float addend(element e) {
    const float x = widen(e);
#if defined(LIFT_MAGNITUDE)
    return float_from(float_bits(x) & 0x7fffffffu);
#else
    return x;
#endif
}

/* Adds a number to a lane's limbs, or to *special if it is an infinity or a NaN. */
INLINED void add_to_limbs(u64 *limb, float *special, float x) {
    const u32 bits = float_bits(x), field = bits >> 23 & 255;
    const u32 place = field > 0 ? field - 1 : 0;
    const u64 fraction = (bits & 0x7fffffu) | (field > 0 ? 1u << 23 : 0);
    const u64 all = fraction << place % 32, own = bits >> 31 ? 0 - all : all;
    if (field == NO_FINITE) {
        *special += x;
        return;
    }
    limb[place / 32] += own & 0xffffffffu;
    limb[place / 32 + 1] += (u64)((i64)own >> 32);
}

/* Returns to the lane FIRST_DIGIT + i the sum of all lanes' limbs i. */
INLINED u64 spread_limbs(const u64 *limb) {
    u64 own = 0;
    UNROLL_NOT
    for (u32 i = 0; i < LANE_LIMBS; i++) {
        u64 all = limb[i];
        UNROLL
        for (u32 lanes = 1; lanes < WARP; lanes *= 2)
            all += __shfl_xor_sync(FULL_WARP, all, lanes);
        if (threadIdx.x % WARP == FIRST_DIGIT + i) own = all;
    }
    return own;
}

/* Returns the digits of limbs: each lane hands what its limb has above 32 bits to the next lane. The last one is negative if
 * the sum is. */
INLINED u64 with_carries(u64 limb) {
    const u32 lane = threadIdx.x % WARP;
    UNROLL_NOT
    for (u32 i = FIRST_DIGIT; i + 1 < WARP_DIGITS; i++) {
        const u64 carry = (u64)((i64)__shfl_sync(FULL_WARP, limb, i) >> 32); /* floor */
        if (lane == i) limb &= 0xffffffffu;
        if (lane == i + 1) limb += carry;
    }
    return limb;
}

/* Returns the sum of x[0], x[step], ..., of n <= SUMS_AGAIN_MOST elements. All lanes of a warp call this, for the same
 * elements. */
OUTLINED lost_sum add_again(const GLOBAL element *x, i64 step, u32 n) {
    lost_sum s = {0, 0, 0};
    u64 limb[LANE_LIMBS];
    UNROLL_NOT
    for (u32 i = 0; i < LANE_LIMBS; i++)
        limb[i] = 0;
    UNROLL_NOT
    for (u32 first = threadIdx.x % WARP; first < n; first += ADDED_AGAIN * WARP) {
        float e[ADDED_AGAIN];
        UNROLL
        for (u32 i = 0; i < ADDED_AGAIN; i++) {
            const u32 k = first + i * WARP;
            e[i] = k < n ? addend(x[(i64)k * step]) : 0;
        }
        UNROLL
        for (u32 i = 0; i < ADDED_AGAIN; i++)
            add_to_limbs(limb, &s.special, e[i]);
    }
    UNROLL
    for (u32 lanes = 1; lanes < WARP; lanes *= 2)
        s.special += float_from(__shfl_xor_sync(FULL_WARP, float_bits(s.special), lanes));
    s.digit = with_carries(spread_limbs(limb));
    s.negative = (i64)__shfl_sync(FULL_WARP, s.digit, WARP_DIGITS - 1) < 0;
    if (s.negative) s.digit = with_carries(0 - s.digit);
    TALLY_PATH("");
    return s;
}

/* Returns to all lanes the bits of the float of type `to` nearest to a sum, divided by n. */
OUTLINED u64 lost_sum_value(lost_sum s, u32 n, u32 to) {
    const float_format f = format_of(to);
    const u32 lane = threadIdx.x % WARP;
    u64 rest = 0;
    if (s.special != 0)
        return s.special == s.special ? float_infinity_bits(f, s.special < 0) : float_nan_bits(f);
    UNROLL_NOT
    for (u32 i = WARP_DIGITS; n > 1 && i-- > 0;) {
        const u64 all = rest << 32 | __shfl_sync(FULL_WARP, s.digit, i);
        if (lane == i) s.digit = all / n;
        rest = all % n;
    }
    const u32 votes = warp_votes(s.digit != 0);
    if (votes == 0) return 0;
    /* The leading digit and the two below it, which are there as n < 2^32, give 65 bits at least. Of the others it only
     * matters whether any is not 0. */
    const u32 top = 31 - leading_zeros(votes);
    const u64 first = __shfl_sync(FULL_WARP, s.digit, top);
    const u64 second = __shfl_sync(FULL_WARP, s.digit, top - 1);
    const u32 shift = leading_zeros((u32)first);
    const u64 third = __shfl_sync(FULL_WARP, s.digit, top - 2) << shift;
    const u32 sticky =
        rest != 0 || (third & 0xffffffffu) != 0 || (votes & ((1u << (top - 2)) - 1)) != 0;
    return round_bits(f, s.negative, (first << 32 | second) << shift | third >> 32,
                      UNIT_BIT + 32 * ((i32)top - 1 - (i32)FIRST_DIGIT) - (i32)shift, sticky);
}

#endif
