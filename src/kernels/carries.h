/*
 * carries.h - merges records of exact sums of integers. A sum is a few words. All but the last lie in
 * [0, 2^32); the last one has the bits above these, and the sign.
 *
 * Before including this header, include operators.h, and define WORDS, a record's words, and CARRY_ALL(record), which calls
 * carry() for each of a record's sums.
 */
#ifndef TALLY_CARRIES_H
#define TALLY_CARRIES_H

#include "grid.h"

/* Makes all words of a sum but the last one lie in [0, 2^32): carries are floors. */
PURE void carry(u64 *sum, u32 words) {
    UNROLL
    for (u32 k = 0; k + 1 < words; k++) {
        sum[k + 1] += (u64)((i64)sum[k] >> 32);
        sum[k] &= 0xffffffffu;
    }
}

PURE void merge(u64 *a, const u64 *b) {
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        a[k] += b[k];
    CARRY_ALL(a);
}

#if WARP_AT_ONCE
#define MERGES_AT_ONCE 1
/* Adds up the records of a warp, word by word. The words of a whole block add up to less than 2^60
 * in magnitude, so no word overflows before its carries are settled. */
PURE void merge_at_once(u64 *record) {
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = warp_sum(record[k]);
    CARRY_ALL(record);
}
#endif

#endif
