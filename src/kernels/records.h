/*
 * records.h - how results meet: thread, warp, block, grid.
 *
 * What a thread, block or grid knows is a record: WORDS u64 words, all 0 where nothing has been seen.
 * Threads' records meet by shuffles, in each warp and then among the warps' first lanes.
 *
 * Grid. A launch has words in global memory; counter and total are zero at first:
 *     work[0]             blocks that are done; 0 again at the end
 *     work[1 ... WORDS]   the total: the record of all launches since it was zero
 *     board[0 ...]        a record a block
 * A block writes its record to the board and then adds one to the counter. The block that finds all others
 * counted merges all of the board into the total. The fence makes other blocks see the record before the new
 * count. A block that is ALONE has the total already.
 *
 * Whoever includes this defines WORDS and merge().
 */
#ifndef TALLY_RECORDS_H
#define TALLY_RECORDS_H

#include "grid.h"

#include "result.h"

/* Makes a the record of what both know. The kernel file defines it. */
PURE void merge(u64 *a, const u64 *b);

#if BLOCK > 1
/* Lane l of each warp learns what lanes l ... l + 2 * delta - 1 know. */
__device__ void merge_down(u64 *record, u32 delta, SHARED u64 *exchange) {
    for (; delta > 0; delta /= 2) {
        u64 other[WORDS];
        UNROLL
        for (u32 k = 0; k < WORDS; k++)
            other[k] = __shfl_down_sync(FULL_WARP, record[k], delta);
        merge(record, other);
    }
}
#endif

/* Thread 0 learns what all threads of the block know. `warps`: WORDS words a warp. */
__device__ void merge_block(u64 *record, SHARED u64 *warps, SHARED u64 *exchange) {
#if BLOCK > 1
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;

    merge_down(record, (BLOCK < WARP ? BLOCK : WARP) / 2, exchange);
    __syncthreads();
    if (lane == 0)
        for (u32 k = 0; k < WORDS; k++)
            warps[warp * WORDS + k] = record[k];
    __syncthreads();
    if (UNIFORM(warp == 0)) {
        UNROLL
        for (u32 k = 0; k < WORDS; k++)
            record[k] = lane < WARPS ? warps[lane * WORDS + k] : 0;
        merge_down(record, WARPS / 2, exchange);
    }
#endif
}

/* Counts this block as done, once all blocks can see what it has written; returns whether all blocks are done.
 * All threads of the block call this; `last` is a word that they share. */
__device__ u32 is_last_block(GLOBAL u64 *work, SHARED u32 *last) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        *last = atomicAdd(&work[0], (u64)1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return *last;
}

/* Writes the block's record, which thread 0 has, to the board; the last block merges the board into the total.
 * Returns whether this is the last block. Its thread 0 then has the total; `work` has it only where no value
 * was asked for. */
__device__ u32 merge_grid(u64 *record, GLOBAL u64 *work, GLOBAL u64 *board, u32 request,
                          SHARED u64 *warps, SHARED u64 *exchange, SHARED u32 *number) {
    if (!UNIFORM(!(request & REQUEST_ALONE))) return 1;
    if (threadIdx.x == 0)
        for (u32 k = 0; k < WORDS; k++)
            write_word(&board[(u64)blockIdx.x * WORDS + k], record[k]);
    const u32 last = is_last_block(work, number);
    if (!UNIFORM(last)) return 0;

    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;
    for (u32 b = threadIdx.x; last && b < gridDim.x; b += BLOCK) {
        u64 other[WORDS];
        for (u32 k = 0; k < WORDS; k++)
            other[k] = read_word(&board[(u64)b * WORDS + k]);
        merge(record, other);
    }
    merge_block(record, warps, exchange);
    if (last && threadIdx.x == 0) {
        u64 other[WORDS];
        for (u32 k = 0; k < WORDS; k++)
            other[k] = work[1 + k];
        merge(record, other);
        for (u32 k = 0; k < WORDS; k++)
            work[1 + k] = request ? 0 : record[k];
        write_word(&work[0], (u64)0);
    }
    return last;
}

#endif
