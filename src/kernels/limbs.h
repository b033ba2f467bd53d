/*
 * limbs.h - the superaccumulator on a GPU: the same limbs as on the host, in a block's shared memory.
 *
 * Limb i weighs 2^(32 i - 1088) and is worth 32 bits of a signed 64-bit integer, so additions do not
 * carry (src/exact/superacc.h). All threads of a block add to one accumulator by atomic additions, which
 * commute. At the end its limbs are added to those in global memory, limb by limb, by as many threads.
 *
 * Bounds. One addition changes a limb by less than 2^32. A block makes at most 3 for an element and 3
 * for each of a handful of totals a tile, and is given fewer than 2^28 elements (the host sees to that):
 * a limb stays below 2^62. Before it goes to global memory it hands its carry to the next limb, which
 * leaves it below 2^32 + 2^31; so global limbs have room for 2^29 blocks.
 */
#ifndef TALLY_LIMBS_H
#define TALLY_LIMBS_H

#include "dialect.h"

#define LIMBS       68
#define LIMB_LOWEST (-1088) /* exponent of limb 0's lowest bit */

__device__ void add_limb(SHARED u64 *limbs, u32 i, u64 amount) {
#if BLOCK == 1
    limbs[i] += amount;
#else
    if (amount != 0) atomicAdd(&limbs[i], amount);
#endif
}

/* limbs += value * 2^exponent, whose bits lie within the accumulator's. */
__device__ void add_limbs(SHARED u64 *limbs, i64 value, i32 exponent) {
    const u32 offset = (u32)(exponent - LIMB_LOWEST), i = offset / 32, shift = offset % 32;
    const i64 rest = value >> (32 - shift); /* floor: the digits are those of two's complement */

    add_limb(limbs, i, ((u64)value << shift) & 0xffffffffu);
    add_limb(limbs, i + 1, (u64)rest & 0xffffffffu);
    add_limb(limbs, i + 2, (u64)(rest >> 32));
}

__device__ void clear_limbs(SHARED u64 *limbs) {
    for (u32 i = threadIdx.x; i < LIMBS; i += BLOCK)
        limbs[i] = 0;
}

/* Limb i once every limb has handed what is above its 32 bits to the next one; the last keeps all. */
PURE u64 carried(u64 own, u64 below, u32 i) {
    const i64 carry = (i64)below >> 32; /* floor */
    return (i < LIMBS - 1 ? own & 0xffffffffu : own) + (i > 0 ? (u64)carry : 0);
}

/* total += limbs, by all threads of the block. */
__device__ void deliver_limbs(const SHARED u64 *limbs, GLOBAL u64 *total) {
    for (u32 i = threadIdx.x; i < LIMBS; i += BLOCK) {
        const u64 limb = carried(limbs[i], i > 0 ? limbs[i - 1] : 0, i);
        if (limb != 0) atomicAdd(&total[i], limb);
    }
}

#endif
