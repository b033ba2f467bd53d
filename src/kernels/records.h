/*
 * records.h - merges results: of threads, warps, blocks and the grid.
 *
 * What a thread, block or grid knows is a record: WORDS u64 words, all 0 where nothing has been seen.
 * Shuffles merge threads' records in each warp, and then those of the warps' first lanes.
 *
 * Grid. A launch has words in global memory (request.h), of which those of the head are zero at first:
 *     head[0]             blocks that are done; 0 again at the end
 *     head[1 ... WORDS]   where no value is asked for: the record of all launches since it was zero
 *     board[0 ...]        a record a block, of any content at first
 * A block writes its record to the board and then adds one to the counter. The block that finds all others
 * counted merges all of the board. A block that is ALONE has the total already.
 *
 * Before including this header, include operators.h, and define WORDS and merge(); and, where a warp can merge its lanes'
 * records at once (WARP_AT_ONCE), merge_at_once() and MERGES_AT_ONCE as 1.
 */
#ifndef TALLY_RECORDS_H
#define TALLY_RECORDS_H

#include "grid.h"

#include "result.h"

/* Merges record b into record a. The kernel file defines it. */
PURE void merge(u64 *a, const u64 *b);

#ifndef MERGES_AT_ONCE
#define MERGES_AT_ONCE 0
#endif

#if BLOCK > 1
#if MERGES_AT_ONCE
PURE void merge_at_once(u64 *record);
#define MERGE_WARP(lanes) merge_at_once(record)
#else
#define MERGE_WARP(lanes) merge_down(record, (lanes) / 2, exchange)
#endif

/* Merges the records of lanes l ... l + 2 * delta - 1 of each warp into lane l's; delta is a power
 * of two, or 0. */
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

/* Merges the records of all threads of the block into thread 0's. `warps` has WORDS words a
 * warp. */
__device__ void merge_block(u64 *record, SHARED u64 *warps, SHARED u64 *exchange) {
#if BLOCK > 1
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;

    MERGE_WARP(BLOCK < WARP ? BLOCK : WARP);
    __syncthreads();
    if (lane == 0)
        for (u32 k = 0; k < WORDS; k++)
            warps[warp * WORDS + k] = record[k];
    __syncthreads();
    if (UNIFORM(warp == 0)) {
        UNROLL
        for (u32 k = 0; k < WORDS; k++)
            record[k] = lane < WARPS ? warps[lane * WORDS + k] : 0;
        MERGE_WARP(WARPS); /* the other lanes' are records of no elements */
    }
#endif
}

/* Counts this block as done. Returns whether all blocks are, and then makes the counter 0. The last
 * block sees all writes of a block before a barrier, and those of its thread 0 after it. All
 * threads of the block call this; they share the word `last`. */
__device__ u32 is_last_block(GLOBAL u64 *head, SHARED u32 *last) {
    if (threadIdx.x == 0) {
        *last = count_one(&head[0]) == gridDim.x - 1;
        if (*last) write_word(&head[0], (u64)0);
    }
    __syncthreads();
    return *last;
}

/* Records of the board that a thread has under way at once. */
#if BLOCK > 1
#define BOARD_AT_ONCE 3u
#else
#define BOARD_AT_ONCE 1u
#endif

/* Writes the block's record, which thread 0 has, to the board; the last block merges the board. Returns whether this
 * is the last block. Its thread 0 then has the total; where no value is asked for, that is added to the head's. */
__device__ u32 merge_grid(u64 *record, GLOBAL u64 *head, GLOBAL u64 *board, u32 request,
                          SHARED u64 *warps, SHARED u64 *exchange, SHARED u32 *number) {
    if (!UNIFORM(!(request & REQUEST_ALONE))) return 1;
    if (threadIdx.x == 0)
        for (u32 k = 0; k < WORDS; k++)
            write_word(&board[(u64)blockIdx.x * WORDS + k], record[k]);
    const u32 last = is_last_block(head, number);
    if (!UNIFORM(last)) return 0;

    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;
    UNROLL_NOT
    for (u32 first = threadIdx.x; last && first < gridDim.x; first += BOARD_AT_ONCE * BLOCK) {
        u64 others[BOARD_AT_ONCE][WORDS];
        UNROLL
        for (u32 j = 0; j < BOARD_AT_ONCE; j++) {
            const u32 b = first + j * BLOCK;
            UNROLL
            for (u32 k = 0; k < WORDS; k++)
                others[j][k] = b < gridDim.x ? read_word(&board[(u64)b * WORDS + k]) : 0;
        }
        UNROLL
        for (u32 j = 0; j < BOARD_AT_ONCE; j++)
            merge(record, others[j]);
    }
    merge_block(record, warps, exchange);
    if (last && !request && threadIdx.x == 0) {
        u64 other[WORDS];
        for (u32 k = 0; k < WORDS; k++)
            other[k] = head[1 + k];
        merge(record, other);
        for (u32 k = 0; k < WORDS; k++)
            head[1 + k] = record[k];
    }
    return last;
}

#endif
