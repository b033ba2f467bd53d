/*
 * single-pass - the last block to finish does the rest.
 *
 * Every rung so far leaves a value a block, and somebody - another launch, the host, an atomic - has
 * to combine them. Here each block puts its value on a board and takes a number. The block that draws
 * the last one knows that all values are on the board, and combines them: one launch in all.
 *
 * board[0] counts the blocks that are done, and is 0 before and after; board[1 + b] is block b's
 * value. The fence keeps the order: the value is on the board before the number is drawn.
 */
#ifndef TALLY_LADDER_SINGLE_PASS
#define TALLY_LADDER_SINGLE_PASS
#include "shuffle.cu"

__global__ void single_pass(const GLOBAL element *x, u64 n, GLOBAL accumulator *partials,
                            GLOBAL word *total, GLOBAL word *board) {
    __shared__ accumulator warps[WARP];
    __shared__ word exchange[EXCHANGE];
    __shared__ u32 last;

    accumulator v = combine_block(combine_share(x, n), warps, exchange);
    if (threadIdx.x == 0) {
        atomicStore(&board[1 + blockIdx.x], to_word(v));
        __threadfence();
        last = atomicAdd(&board[0], (word)1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (UNIFORM(last)) {
        const u32 count = last ? gridDim.x : 0;
        v = neutral();
        for (u32 b = threadIdx.x; b < count; b += blockDim.x)
            v = combine(v, from_word(atomicLoad(&board[1 + b])));
        v = combine_block(v, warps, exchange);
        if (threadIdx.x == 0 && last) {
            atomicStore(&board[0], (word)0);
            deliver(v, &partials[0], total);
        }
    }
}

#endif
