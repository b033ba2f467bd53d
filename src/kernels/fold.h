/*
 * fold.h - the kernel `reduce` of the simpler reductions: every tile is added to the thread's record, and
 * records meet (records.h).
 *
 * A kernel file defines WORDS, merge(), PAD - an element that changes nothing -, and
 *     add_tile(tile, record)
 *     value_of(total, n, request, status)   returns the value's bits; *status, RESULT_OK at first, may become another
 * and includes this. Where it defines GIVES_BOTH, a request may be for both extremes. Where it defines PAIRS,
 * add_tile() has a second tile, of y; PAD_BESIDE is what that is filled up with. Where it defines INDEXED, it has two
 * functions more:
 *     add_tile_at(tile, record, start)      the thread's element k has the index start + INDEX_IN_TILE(k)
 *     add_at(element, record, index)        one element
 * and may define SEARCHES_KEPT, and then
 *     find_kept(x, first, request, record)     called once after the last tile, before loose elements: makes indices of
 *                                              what add_tile_at() has kept in the record
 */
#include "records.h"

#if defined(PAIRS)

/* Loads the thread's parts of the block's tile number `at`, of x and of y. */
#define LOAD_PAIR(at)                                                                              \
    load_tile(&next, s.packs + (u64)(at) * (BLOCK * IN_FLIGHT));                                   \
    load_anywhere(&beside, y + s.start + (u64)(at) * (BLOCK * TILE))

__device__ void add_all(const GLOBAL element *x, const GLOBAL element *y, u64 first, even_share s,
                        u32 request, u64 *record) {
    tile next, beside;
    UNROLL_NOT
    for (u32 i = 0; i < s.tiles; i++) {
        LOAD_PAIR(i);
        add_tile(&next, &beside, record);
    }
    for (u32 i = 0; i < s.loose; i += BLOCK * TILE) {
        load_loose(&next, x, s, i, PAD);
        load_loose(&beside, y, s, i, PAD_BESIDE);
        add_tile(&next, &beside, record);
    }
}

#else

#if defined(INDEXED)
#define ADD_TILE(t, i) add_tile_at(t, record, first + s.start + (u64)(i) * (BLOCK * TILE))
#else
#define ADD_TILE(t, i) add_tile(t, record)
#endif

/* Adds the block's tiles. On a GPU a thread has its next tile on the way while it adds one. */
__device__ void add_tiles(u64 first, even_share s, u64 *record) {
#if BLOCK > 1
    const u64 step = BLOCK * IN_FLIGHT;
    if (s.tiles == 0) return;
    tile next;
    load_tile(&next, s.packs);
    UNROLL_NOT
    for (u32 i = 1; i < s.tiles; i++) {
        const tile t = next;
        load_tile(&next, s.packs + i * step);
        ADD_TILE(&t, i - 1);
    }
    ADD_TILE(&next, s.tiles - 1);
#else
    for (u32 i = 0; i < s.tiles; i++) {
        tile t;
        load_tile(&t, s.packs + (u64)i * IN_FLIGHT);
        ADD_TILE(&t, i);
    }
#endif
}

__device__ void add_all(const GLOBAL element *x, const GLOBAL element *y, u64 first, even_share s,
                        u32 request, u64 *record) {
    add_tiles(first, s, record);
#if defined(SEARCHES_KEPT)
    find_kept(x, first, request, record);
#endif
#if defined(INDEXED)
    for (u32 i = threadIdx.x; i < s.loose; i += BLOCK)
        add_at(x[loose_index(s, i)], record, first + loose_index(s, i));
#else
    for (u32 i = 0; i < s.loose; i += BLOCK * TILE) {
        tile t;
        load_loose(&t, x, s, i, PAD);
        add_tile(&t, record);
    }
#endif
}

#endif

/* Writes the values that the request asks for, from the total. */
__device__ void put_values(const u64 *total, u64 n, u32 request, GLOBAL u64 *result) {
    u32 status = RESULT_OK;
    const u64 bits = value_of(total, n, request, &status);
    put_result(result, request, bits, status);
#if defined(GIVES_BOTH)
    if (request & REQUEST_BOTH) {
        const u64 other = value_of(total, n, request ^ REQUEST_LEAST, &status);
        put_result(result + 2, request, other, status);
    }
#endif
}

BEGINS_EARLY

KERNEL reduce(const GLOBAL element *x, const GLOBAL element *y, u64 n, u64 first, GLOBAL u64 *heads,
              GLOBAL u64 *boards, u64 place, u32 request, GLOBAL u64 *result) {
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    __shared__ u32 number;

    /* This kernel does not let the next launch begin before its own blocks end. Where registers
     * leave room on a multiprocessor for more blocks than this grid has for it, early blocks of the
     * next launch would take that room. The later ones would go wherever a block ends, and too many
     * of them to some multiprocessors. */
    wait_for_end_of_earlier();
    const even_share s = find_even_share(x, n);
    u64 record[WORDS];
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;

    add_all(x, y, first, s, request, record);
    merge_block(record, warps, exchange);
    const u32 last = merge_grid(record, heads + (u32)place, boards + (place >> 32), request, warps,
                                exchange, &number);
    if (last && request && threadIdx.x == 0) put_values(record, n, request, result);
}

#if BLOCK > 1 && !defined(__OPENCL_VERSION__) && !defined(PAIRS) && !defined(INDEXED)
#define HAS_ALONE 1

/* Merges the records of all threads into thread 0's, in a block of as many threads as the launch
 * has. */
INLINED void merge_alone(u64 *record, SHARED u64 *warps, SHARED u64 *exchange) {
    const u32 lane = threadIdx.x % WARP, there = blockDim.x / WARP;
    MERGE_WARP(BLOCK < WARP ? BLOCK : WARP);
    if (!UNIFORM(there > 1)) return;
    if (lane == 0)
        for (u32 k = 0; k < WORDS; k++)
            warps[threadIdx.x / WARP * WORDS + k] = record[k];
    __syncthreads();
    if (!UNIFORM(threadIdx.x < WARP)) return;
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = lane < there ? warps[lane * WORDS + k] : 0;
    MERGE_WARP(WARPS); /* the other lanes' are records of no elements */
}

/* Reduces n <= blockDim.x * TILE elements in one block, of as few warps as that takes. It loads a
 * part of a tile as packs, too, and looks for no other block. */
KERNEL alone(const GLOBAL element *x, const GLOBAL element *y, u64 n, u64 first, GLOBAL u64 *heads,
             GLOBAL u64 *boards, u64 place, u32 request, GLOBAL u64 *result) {
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    const u32 count = (u32)n;
    u64 record[WORDS];
    wait_for_earlier();
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;
    if (UNIFORM(count > 0)) {
        tile t;
        load_alone(&t, x, count, blockDim.x, count % PACK == 0 && (size_t)x % 16 == 0, PAD);
        add_tile(&t, record);
    }
    merge_alone(record, warps, exchange);
    if (threadIdx.x == 0) put_values(record, n, request, result);
}
#endif
