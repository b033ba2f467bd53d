/*
 * interleaved-index - the same additions, done by the first threads.
 *
 * interleaved-modulo switches threads off all over the block: at stride 32 each warp still has one
 * thread at work and 31 idle ones, but costs as much as a full warp. Here the pairs are numbered
 * and thread t takes pair t, so that the threads at work stand side by side and whole warps fall
 * idle at once. `threads`, the number of threads at work, is halved where the stride is doubled, so
 * nothing is divided by a variable. As before, the elements of a pair, and of neighbouring pairs,
 * lie further apart in each step.
 */
#include "../operators.h"

__global__ void interleaved_index(GLOBAL accumulator *x, u64 n, GLOBAL accumulator *partials,
                                  GLOBAL word *total) {
    const u64 segment = (u64)blockIdx.x * 2 * blockDim.x;

    for (u32 stride = 1, threads = blockDim.x; threads > 0; stride *= 2, threads /= 2) {
        const u64 left = segment + (u64)threadIdx.x * 2 * stride;
        if (threadIdx.x < threads && left + stride < n)
            x[left] = combine(x[left], x[left + stride]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        deliver(segment < n ? x[segment] : neutral(), &partials[blockIdx.x], total);
}
