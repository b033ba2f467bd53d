/*
 * fold.h - the kernel of the simpler reductions: every tile is added to the thread's record, and records
 * meet (grid.h).
 *
 * A kernel file defines WORDS, merge(), PAD - an element that changes nothing - and
 * add_tile(tile, record), and includes this.
 */
#include "records.h"

KERNEL reduce(const GLOBAL element *x, u64 n, GLOBAL u64 *work) {
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    __shared__ u32 last;

    const share s = find_share(x, n);
    u64 record[WORDS];
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;

    for (u32 i = 0; i < s.tiles; i++) {
        tile t;
        load_tile(&t, s.packs + (u64)i * (BLOCK * IN_FLIGHT));
        add_tile(&t, record);
    }
    for (u32 i = 0; i < s.loose; i += BLOCK * TILE) {
        tile t;
        load_loose(&t, x, s, i, PAD);
        add_tile(&t, record);
    }
    merge_block(record, warps, exchange);
    merge_grid(record, work, warps, exchange, &last);
}
