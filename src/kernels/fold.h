/*
 * fold.h - the kernel of the simpler reductions: every tile is added to the thread's record, and records
 * meet (records.h).
 *
 * A kernel file defines WORDS, merge(), PAD - an element that changes nothing -, add_tile(tile, record)
 * and value_of(total, n, request, status): the value's bits, and RESULT_OK or RESULT_RANGE. Then it
 * includes this.
 */
#include "records.h"

/* A GPU's thread has its next tile on the way while it adds one. */
__device__ void add_tiles(share s, u64 *record) {
#if BLOCK > 1
    const u64 step = BLOCK * IN_FLIGHT;
    if (s.tiles == 0) return;
    tile next;
    load_tile(&next, s.packs);
    UNROLL_NOT
    for (u32 i = 1; i < s.tiles; i++) {
        const tile t = next;
        load_tile(&next, s.packs + i * step);
        add_tile(&t, record);
    }
    add_tile(&next, record);
#else
    for (u32 i = 0; i < s.tiles; i++) {
        tile t;
        load_tile(&t, s.packs + (u64)i * IN_FLIGHT);
        add_tile(&t, record);
    }
#endif
}

KERNEL reduce(const GLOBAL element *x, u64 n, GLOBAL u64 *work, u32 request, GLOBAL u64 *result) {
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    __shared__ u32 number;

    const share s = find_share(x, n);
    u64 record[WORDS];
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;

    add_tiles(s, record);
    for (u32 i = 0; i < s.loose; i += BLOCK * TILE) {
        tile t;
        load_loose(&t, x, s, i, PAD);
        add_tile(&t, record);
    }
    merge_block(record, warps, exchange);
    const u32 last = merge_grid(record, work, request, warps, exchange, &number);
    if (last && request && threadIdx.x == 0) {
        u32 status = RESULT_OK;
        const u64 bits = value_of(record, n, request, &status);
        put_result(result, request, bits, status);
    }
}
