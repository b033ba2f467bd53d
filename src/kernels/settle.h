/*
 * settle.h - the limbs of a sum become digits, by all threads of a block at once: each digit is below 2^32 and not
 * negative, but for the last one, which has all that is above the others, with the sign.
 *
 * A carry may run through all digits, so one thread would need as many steps as there are digits. Here every digit's
 * thread says whether its digit makes a carry, and whether it passes on one that comes in, a bit of a mask each; an
 * addition of the masks' words then tells all threads where carries come in, as carries run through an adder.
 *
 * That takes carries which are 0 or 1. After each limb has handed what is above its 32 bits to the next one, twice,
 * digits are between -1 and 2^32. So 1 is added to every digit but the last, carries run, and the ones are taken away
 * again, which borrows 0 or 1.
 */
#ifndef TALLY_SETTLE_H
#define TALLY_SETTLE_H

#include "tuning.h"

#include "kernel.h"

#include "plan.h"

#define MASK ((WIDE_FLOAT_LIMBS + 31) / 32) /* words of a mask of a bit a digit */

/* A sum's masks of a bit a digit, all 0 at first: digits that make a carry, that pass one on; the
 * same of borrows; digits that are not 0, and that are not all ones. */
enum {
    MAKES,
    PASSES = MAKES + MASK,
    BORROWS = PASSES + MASK,
    LENDS = BORROWS + MASK,
    NOT_ZERO = LENDS + MASK,
    NOT_ONES = NOT_ZERO + MASK,
    MASKS = NOT_ONES + MASK
};

INLINED void mark(SHARED u32 *mask, u32 i) {
    atomicAdd(&mask[i / 32], 1u << i % 32);
}

/* Returns the carry into digit i, 0 or 1, from the masks of digits that make and pass carries. */
INLINED u32 comes_in(const SHARED u32 *makes, const SHARED u32 *passes, u32 i) {
    u64 sum = 0;
    u32 into = 0;
    for (u32 w = 0; w <= i / 32; w++) {
        sum = (sum >> 32) + (makes[w] | passes[w]) + makes[w];
        into = (u32)sum ^ passes[w];
    }
    return into >> i % 32 & 1;
}

/* Returns limb i of a number whose limbs from `first` on are limb[0..known), after each has passed
 * the bits above its 32 to the next. The last of its `limbs` limbs keeps those. */
INLINED i64 handed_on(const GLOBAL u64 *limb, u32 first, u32 known, u32 limbs, u32 i) {
    const u32 k = i - first; /* modulo 2^32: none below `first` is known */
    const u64 own = k < known ? limb[k] : 0, below = k - 1 < known ? limb[k - 1] : 0;
    return (i64)(i < limbs - 1 ? own & 0xffffffffu : own) + ((i64)below >> 32); /* floor */
}

/* Makes digit[0..limbs) of limb[0..known), the first of which is digit `first`. |limb| < 2^62, and
 * their sum fits. All threads call this, and then see the digits and the last two masks. Without
 * limbs it does nothing. */
INLINED void settle_sum(const GLOBAL u64 *limb, u32 first, u32 known, u32 limbs, SHARED u64 *digit,
                        SHARED u32 *masks) {
    const u32 last = limbs - 1;
    for (u32 i = threadIdx.x; i < limbs; i += BLOCK) {
        const i64 own = handed_on(limb, first, known, limbs, i);
        const i64 below = i > 0 ? handed_on(limb, first, known, limbs, i - 1) : 0;
        const i64 d = (i < last ? own & 0xffffffff : own) + (below >> 32);
        const u64 more = (u64)d + 1; /* 0 to 2^32 + 1 */
        digit[i] = i < last ? more & 0xffffffffu : (u64)d;
        if (i < last && more >> 32) mark(masks + MAKES, i);
        if (i < last && more == 0xffffffffu) mark(masks + PASSES, i);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < limbs; i += BLOCK) {
        const u64 sum = digit[i] + comes_in(masks + MAKES, masks + PASSES, i);
        const u64 d = i < last ? sum & 0xffffffffu : sum;
        digit[i] = d;
        if (i < last && d == 0) mark(masks + BORROWS, i);
        if (i < last && d == 1) mark(masks + LENDS, i);
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < limbs; i += BLOCK) {
        const u64 less = digit[i] - comes_in(masks + BORROWS, masks + LENDS, i);
        const u64 d = i < last ? (less - 1) & 0xffffffffu : less;
        digit[i] = d;
        if (d != 0) mark(masks + NOT_ZERO, i);
        if (i < last && d != 0xffffffffu) mark(masks + NOT_ONES, i);
    }
    __syncthreads();
}

#if defined(SETTLED)
/* Returns the significant digits of digit[0..limbs), which are settled; digit 0 weighs 2^lowest.
 * One thread calls this. */
__device__ digit_range digit_range_of(const SHARED u64 *digit, u32 limbs, i32 lowest,
                                      const SHARED u32 *masks) {
    const i64 last = (i64)digit[limbs - 1];
    const i32 above = last < 0 ? -1 : 0;
    const SHARED u32 *unlike = masks + (above ? NOT_ONES : NOT_ZERO);
    u32 first = 0, past = 0;
    for (u32 w = MASK; w-- > 0;)
        if (masks[NOT_ZERO + w])
            first = 32 * w + 31 - leading_zeros(masks[NOT_ZERO + w] & (0 - masks[NOT_ZERO + w]));
    for (u32 w = 0; w < MASK; w++)
        if (unlike[w]) past = 32 * w + 32 - leading_zeros(unlike[w]);
    if (last != above) past = limbs;
    const digit_range s = {digit + first, past > first ? past - first : 0, lowest + 32 * (i32)first,
                           last != above ? 0 : above};
    return s;
}
#endif

#endif
