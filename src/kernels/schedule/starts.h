/*
 * starts.h - finds where rows begin, for elements that lie in the order of their groups or have been brought into it
 * (sort.cu).
 *
 * Before including this header, include spots.h.
 */
#ifndef TALLY_SCHEDULE_STARTS_H
#define TALLY_SCHEDULE_STARTS_H

#define LOOKS 4u  /* a thread's loads of 16 bytes of ids under way at once */
#define APART 64u /* threads search for every APART-th start */

/* Returns the first of n places whose id, or whose number among those that a mask shows, is not below `wanted`. */
__device__ u64 first_not_below(const GLOBAL u8 *ids, const GLOBAL u64 *work, const parts_plan *p,
                               u64 n, u64 wanted) {
    u64 low = 0, high = n;
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        const u64 nth = p->shown ? number_in_order(work, p->shown, p->wide_shown, middle)
                                 : id_of(ids, p, middle);
        if (nth < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#define PROBES 7u /* ids that a step of LOWER_BOUND() loads at once */

/* Adds to `at`, which is 0, the number of ids of `type` below `wanted`, of n that do not fall: std::lower_bound(), but in
 * steps to an eighth. One of those takes as long as a step to a half, as both wait for memory once. For any ids it ends,
 * and reads inside. */
#define LOWER_BOUND(type, wanted, at)                                                              \
    for (u64 many = n, step, below; many > 0;) {                                                   \
        type probe[PROBES];                                                                        \
        step = many / (PROBES + 1) + 1;                                                            \
        below = 0;                                                                                 \
        UNROLL                                                                                     \
        for (u32 k = 0; k < PROBES; k++)                                                           \
            probe[k] = ((const GLOBAL type *)                                                      \
                            ids)[at + ((k + 1) * step < many ? (k + 1) * step : many) - 1];        \
        UNROLL                                                                                     \
        for (u32 k = 0; k < PROBES; k++)                                                           \
            below += (u64)(i64)probe[k] < (wanted);                                                \
        at += below * step < many ? below * step : many;                                           \
        many -= below * step < many ? below * step : many;                                         \
        if (below < PROBES && many > step - 1) many = step - 1;                                    \
    }

/* Ids a and b are those of elements i - 1 and i; behind the last element b is the number of rows. Rows a + 1 to b then
 * begin at i, from 0 on for i = 0: writes that for those before the first multiple of APART among them. Where b falls,
 * or is outside, notes i in work[PARTS_BAD]. */
__device__ void look_at(GLOBAL u64 *work, u64 to, const parts_plan *p, u64 n, u64 i, u64 a, u64 b) {
    if (i < n && (b >= p->rows.count || (i > 0 && b < a)))
        note_least(&work[PARTS_BAD], i);
    else
        for (u64 row = i > 0 ? a + 1 : 0; row % APART != 0 && row <= b; row++)
            write_word(&work[to + row], i); /* twice, where ids fall */
}

/* Looks at the ids of whole packs, each beside the one before it; sets `looked` to their number. */
#define LOOK_AT_PACKS(type)                                                                        \
    if ((size_t)ids % 16 == 0) {                                                                   \
        typedef union pack_of_ids {                                                                \
            uint4 all;                                                                             \
            type id[16 / sizeof(type)];                                                            \
        } pack_of_ids;                                                                             \
        const u32 each = 16 / sizeof(type);                                                        \
        const u64 packs = n / each, step = (u64)gridDim.x * (BLOCK * LOOKS);                       \
        for (u64 j = (u64)blockIdx.x * (BLOCK * LOOKS) + threadIdx.x; j < packs; j += step) {      \
            pack_of_ids pack[LOOKS];                                                               \
            type before[LOOKS];                                                                    \
            UNROLL                                                                                 \
            for (u32 k = 0; k < LOOKS; k++) {                                                      \
                const u64 at = j + k * BLOCK < packs ? j + k * BLOCK : j;                          \
                pack[k].all = ((const GLOBAL pack_of_ids *)ids)[at].all;                           \
                before[k] = ((const GLOBAL type *)ids)[at > 0 ? at * each - 1 : 0];                \
            }                                                                                      \
            UNROLL                                                                                 \
            for (u32 k = 0; k < LOOKS; k++) {                                                      \
                const u64 at = j + k * BLOCK < packs ? j + k * BLOCK : j;                          \
                type differs = (type)(pack[k].id[0] ^ before[k]);                                  \
                UNROLL                                                                             \
                for (u32 e = 1; e < each; e++)                                                     \
                    differs |= (type)(pack[k].id[e] ^ pack[k].id[e - 1]);                          \
                if (differs == 0 && at > 0) continue; /* most */                                   \
                for (u32 e = 0; e < each; e++)                                                     \
                    look_at(work, to, p, n, at *each + e,                                          \
                            (u64)(i64)(e > 0 ? pack[k].id[e - 1] : before[k]),                     \
                            (u64)(i64)pack[k].id[e]);                                              \
            }                                                                                      \
        }                                                                                          \
        looked = packs * each;                                                                     \
    }

/* Writes where rows begin, or notes the id that falls or lies outside. A thread with neighbouring
 * ids a < b knows where rows a + 1 to b begin. It writes that for the rows before the first
 * multiple of APART. Each multiple has a thread that searches for it, and writes the starts of the
 * rows behind it. So no thread writes more than APART starts, however many rows are empty. */
__device__ void sorted_starts(const GLOBAL u8 *ids, GLOBAL u64 *work, u64 to, u64 n,
                              const parts_plan *p) {
    const u64 count = p->rows.count, thread = (u64)blockIdx.x * BLOCK + threadIdx.x;
    u64 looked = 0;
    for (u64 row = thread * APART; row <= count; row += (u64)gridDim.x * BLOCK * APART) {
        u64 at = 0;
        if (p->ids == I32)
            LOWER_BOUND(i32, row, at)
        else if (p->ids == I64 || p->ids == U64)
            LOWER_BOUND(i64, row, at)
        else
            at = first_not_below(ids, work, p, n, row);
        const u64 id = at < n ? id_of(ids, p, at) : count;
        for (u64 i = row; i < row + APART && i <= id && i <= count; i++)
            write_word(&work[to + i], at);
    }
    if (p->ids == I32) {
        LOOK_AT_PACKS(i32)
    } else if (p->ids == I64 || p->ids == U64) {
        LOOK_AT_PACKS(i64)
    }
    for (u64 i = looked + thread; i <= n; i += (u64)gridDim.x * BLOCK)
        look_at(work, to, p, n, i, i > 0 ? id_of(ids, p, i - 1) : 0,
                i < n ? id_of(ids, p, i) : count);
}

#endif
