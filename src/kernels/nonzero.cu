/*
 * nonzero - how many elements are not zero; -0 is zero, a NaN is not.
 *
 * Only an element's bits matter, so integers of one size share a program. Elements of 8 and 16 bits are tested four
 * and two at a time in words of 32 bits: adding all ones below a field's highest bit carries into that bit unless the
 * field's other bits are all 0. The record is the count.
 */
#include "tuning.h"

#include "operators.h"

#define WORDS 1
#include "grid.h"

#include "result.h"

#define PAD 0

PURE void merge(u64 *a, const u64 *b) {
    a[0] += b[0];
}

#if WARP_AT_ONCE
#define MERGES_AT_ONCE 1
PURE void merge_at_once(u64 *record) {
    record[0] = warp_sum(record[0]);
}
#endif

#if ELEMENT_WIDTH == 8
#define FIELD_REST 0x7f7f7f7fu
#elif ELEMENT_WIDTH == 16
#define FIELD_REST 0x7fff7fffu
#endif
#define FIELD_BITS ELEMENT_WIDTH

#if defined(FLOATING)
#define WITH_SIGN(w) 0u
#define IS_ZERO(e)   (((e) & (SIGN - 1)) == 0)
#else
#define WITH_SIGN(w) (w)
#define IS_ZERO(e)   ((e) == 0)
#endif

PURE void add_tile(const tile *t, u64 *record) {
    u32 count = 0;
#if defined(FIELD_REST)
    /* `count` has a counter in each field. None overflows: a tile has at most 2^8 elements, and so fewer than 2^8
     * words. */
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++) {
        const u32 w = t->word[i];
        count +=
            ((((w & FIELD_REST) + FIELD_REST) | WITH_SIGN(w)) & ~FIELD_REST) >> (FIELD_BITS - 1);
    }
#if FIELD_BITS == 8
    count = (count & 0x00ff00ffu) + (count >> 8 & 0x00ff00ffu);
#endif
    count = (count & 0xffffu) + (count >> 16);
#else
    UNROLL
    for (u32 i = 0; i < TILE; i++)
        count += !IS_ZERO(t->e[i]);
#endif
    record[0] += count;
}

PURE u64 value_of(const u64 *total, u64 n, u32 request, u32 *status) {
    if (request & REQUEST_ANY) return total[0] != 0;
    if (request & REQUEST_ALL) return total[0] == n;
    return total[0];
}

#include "fold.h"
