/*
 * warps.h - votes of a warp's lanes.
 */
#ifndef TALLY_SCHEDULE_WARPS_H
#define TALLY_SCHEDULE_WARPS_H

#include "../kernel.h"

/* Returns to all lanes a word with bit i set if lane i's `yes` is not 0. */
INLINED u32 warp_votes(u32 yes) {
#if HAS_BALLOT
    return __ballot_sync(FULL_WARP, yes);
#else
    u32 votes = (u32)(yes != 0) << (threadIdx.x % WARP);
    for (u32 lanes = 1; lanes < WARP; lanes *= 2)
        votes |= __shfl_xor_sync(FULL_WARP, votes, lanes);
    return votes;
#endif
}

/* Returns the number of the lowest set bit; 32 if none is. */
PURE u32 lowest_bit(u32 w) {
    return w == 0 ? 32 : 31 - leading_zeros(w & (0 - w));
}

#endif
