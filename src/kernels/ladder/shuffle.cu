/*
 * shuffle - the tree without memory.
 *
 * The threads of a warp can read each other's registers. So each warp runs its tree by itself, with
 * no memory and no barrier, and leaves one value. The first warp gathers these values, at most 32,
 * and runs the same tree once more. A block has one barrier, where vectorized has one in each step.
 */
#ifndef TALLY_LADDER_SHUFFLE
#define TALLY_LADDER_SHUFFLE
#include "vectorized.cu"

/* Combines the v of all threads of the block, which all call this. Returns the result to thread 0,
 * and an unspecified value to the other threads. `warps` has room for a value of each warp. */
__device__ accumulator combine_block(accumulator v, SHARED accumulator *warps,
                                     SHARED word *exchange) {
    const u32 lane = threadIdx.x % WARP, count = (blockDim.x + WARP - 1) / WARP;

    for (u32 stride = (blockDim.x < WARP ? blockDim.x : WARP) / 2; stride > 0; stride /= 2)
        v = combine(v, from_word(__shfl_down_sync(FULL_WARP, to_word(v), stride)));
    if (lane == 0) warps[threadIdx.x / WARP] = v;
    __syncthreads();
    if (UNIFORM(threadIdx.x < WARP)) {
        v = lane < count ? warps[lane] : neutral();
        for (u32 stride = count / 2; stride > 0; stride /= 2)
            v = combine(v, from_word(__shfl_down_sync(FULL_WARP, to_word(v), stride)));
    }
    return v;
}

__global__ void shuffled(const GLOBAL element *x, u64 n, GLOBAL accumulator *partials,
                         GLOBAL word *total) {
    __shared__ accumulator warps[WARP];
    __shared__ word exchange[EXCHANGE];

    const accumulator v = combine_block(combine_share(x, n), warps, exchange);
    if (threadIdx.x == 0) deliver(v, &partials[blockIdx.x], total);
}

#endif
