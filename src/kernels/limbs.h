/*
 * limbs.h - a block's superaccumulator, in its shared memory: the same limbs as on the host.
 *
 * Limb i weighs 2^(32 i + LIMB_LOWEST) and is worth 32 bits of a signed 64-bit integer, so additions do not
 * carry (src/exact/superacc.h). All threads of a block add to one accumulator by atomic additions, which
 * commute: of 32 bits, as GPUs have no others in shared memory that are quick. At the end the limbs are
 * added to those in global memory, limb by limb, by as many threads. Behind the limbs stand counts: how many
 * terms were NaN, +infinity and -infinity.
 *
 * WIDE_LIMBS is defined for sums of products of two f64, which reach from 2^-2148 to 2^2048.
 *
 * Bounds. One addition changes a limb by less than 2^32. A block adds to one limb at most twice for an element
 * and a few times for each of a handful of totals, and is given fewer than 2^28 elements (the host sees to
 * that): a limb stays below 2^62. Before it goes to global memory it hands its carry to the next limb, which
 * leaves it below 2^32 + 2^31; so global limbs have room for 2^29 blocks.
 */
#ifndef TALLY_LIMBS_H
#define TALLY_LIMBS_H

#include "tuning.h"

#include "result.h"

#if defined(WIDE_LIMBS)
#define LIMBS       136
#define LIMB_LOWEST (-2176) /* exponent of limb 0's lowest bit */
#else
#define LIMBS       68
#define LIMB_LOWEST (-1088)
#endif

/* The places of the counts behind the limbs. Records have a word more: MIXED, whether some term was not -0. */
#define COUNT_NANS  LIMBS
#define COUNT_PLUS  (LIMBS + 1)
#define COUNT_MINUS (LIMBS + 2)
#define LIMB_WORDS  (LIMBS + 3)
#define MIXED       LIMB_WORDS

/* Adds `amount`, |amount| < 2^32, to limbs[i]: first to the low word, then the sign and the low
 * word's carry to the high word, where the two often cancel. Sums are modulo 2^64, so the order
 * cannot matter. */
__device__ void add_limb(SHARED u64 *limbs, u32 i, i64 amount) {
#if BLOCK == 1
    limbs[i] += (u64)amount;
#else
    if (amount == 0) return;
    SHARED u32 *words = (SHARED u32 *)&limbs[i]; /* low, high */
    const u32 low = (u32)amount, before = atomicAdd(&words[0], low);
    const u32 high = (u32)(amount >> 32) + (before + low < before);
    if (high != 0) atomicAdd(&words[1], high);
#endif
}

/* limbs += value * 2^exponent, whose bits lie within the accumulator's. The magnitude's digits go to three limbs; in
 * two's complement there would be a fourth. */
__device__ void add_limbs(SHARED u64 *limbs, i64 value, i32 exponent) {
    const u32 offset = (u32)(exponent - LIMB_LOWEST), i = offset / 32, shift = offset % 32;
    const u64 magnitude = value < 0 ? 0 - (u64)value : (u64)value;
    const u64 rest = magnitude >> (32 - shift);
    const i64 sign = value < 0 ? -1 : 1;

    add_limb(limbs, i, sign * (i64)((magnitude << shift) & 0xffffffffu));
    add_limb(limbs, i + 1, sign * (i64)(rest & 0xffffffffu));
    add_limb(limbs, i + 2, sign * (i64)(rest >> 32));
}

__device__ void clear_limbs(SHARED u64 *limbs) {
    for (u32 i = threadIdx.x; i < LIMB_WORDS; i += BLOCK)
        limbs[i] = 0;
}

/* Returns limb i after every limb has passed the bits above its 32 to the next one; the last limb
 * keeps all. */
PURE u64 carried(u64 own, u64 below, u32 i) {
    const i64 carry = (i64)below >> 32; /* floor */
    return (i < LIMBS - 1 ? own & 0xffffffffu : own) + (i > 0 ? (u64)carry : 0);
}

/* An integer of 32-bit digits with a sign: limbs[low ... high] hold its magnitude, and `top` the
 * bits above them. Digits below low are 0. */
typedef struct digits {
    u32 low, high; /* low > high: the number is 0 */
    u32 negative;
    u64 top; /* < 2^32 */
} digits;

/* Makes digits of the limbs, which are signed and below 2^62 in magnitude. One thread calls this. */
__device__ digits settle_limbs(SHARED u64 *limbs) {
    digits d = {LIMBS, 0, 0, 0};
    for (u32 i = 0; i < LIMBS; i++)
        if (limbs[i] != 0) {
            if (d.low == LIMBS) d.low = i;
            d.high = i;
        }
    i64 carry = 0;
    for (u32 i = d.low; i <= d.high; i++) {
        const i64 sum = (i64)limbs[i] + carry;
        limbs[i] = (u64)sum & 0xffffffffu;
        carry = sum >> 32; /* floor */
    }
    d.negative = carry < 0;
    d.top = (u64)carry;
    if (!d.negative) return d;
    u64 one = 1; /* two's complement, digit by digit */
    for (u32 i = d.low; i <= d.high; i++) {
        const u64 digit = (limbs[i] ^ 0xffffffffu) + one;
        limbs[i] = digit & 0xffffffffu;
        one = digit >> 32;
    }
    d.top = ~d.top + one;
    return d;
}

/* Returns digit i of a settled number. */
__device__ u64 digit(const SHARED u64 *limbs, digits d, i32 i) {
    if (i == (i32)d.high + 1) return d.top;
    return i >= (i32)d.low && i <= (i32)d.high ? limbs[i] : 0;
}

/* Returns the bits of the float of format f nearest to the limbs' sum, and destroys the limbs. One thread calls
 * this. */
__device__ u64 round_limbs(SHARED u64 *limbs, float_format f) {
    const digits d = settle_limbs(limbs);
    i32 i = (i32)d.high + 1;
    while (i >= (i32)d.low && digit(limbs, d, i) == 0)
        i--;
    if (i < (i32)d.low) return 0;

    /* The leading digit and the two below it give 65 bits at least. Of the digits further down it
     * only matters whether any is not 0. */
    const u32 shift = leading_zeros((u32)digit(limbs, d, i));
    const u64 rest = digit(limbs, d, i - 2) << shift; /* 32 bits and what is shifted out of them */
    const u64 two = digit(limbs, d, i) << 32 | digit(limbs, d, i - 1);
    u32 sticky = (rest & 0xffffffffu) != 0;
    for (i32 k = (i32)d.low; k < i - 2; k++)
        sticky |= limbs[k] != 0;
    return round_bits(f, d.negative, two << shift | rest >> 32,
                      LIMB_LOWEST + 32 * (i - 1) - (i32)shift, sticky);
}

/* total += limbs and counts, by all threads of the block. */
__device__ void deliver_limbs(const SHARED u64 *limbs, GLOBAL u64 *total) {
    for (u32 i = threadIdx.x; i < LIMB_WORDS; i += BLOCK) {
        const u64 limb = i < LIMBS ? carried(limbs[i], i > 0 ? limbs[i - 1] : 0, i) : limbs[i];
        if (limb != 0) atomicAdd(&total[i], limb);
    }
}

/* Adds `total` to limbs and counts, and makes `total` 0. */
__device__ void collect_limbs(SHARED u64 *limbs, GLOBAL u64 *total) {
    for (u32 i = threadIdx.x; i < LIMB_WORDS; i += BLOCK) {
        limbs[i] += read_word(&total[i]);
        write_word(&total[i], (u64)0);
    }
}

#endif
