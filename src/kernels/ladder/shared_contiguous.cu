/*
 * shared-contiguous - shared memory, and the tree that suits it.
 *
 * Shared memory has 32 banks, each of which serves one word at a time. In shared-modulo the threads
 * of a warp work 2, 4, 8 ... words apart, so that many ask the same bank and queue up. With the tree
 * of `contiguous` a warp works on 32 neighbouring words, one in each bank, and whole warps fall idle
 * together.
 */
#include "../operators.h"

__global__ void shared_contiguous(const GLOBAL element *x, u64 n, GLOBAL accumulator *partials,
                                  GLOBAL word *total) {
    __shared__ accumulator values[2 * BLOCK_MAX];
    const u64 segment = (u64)blockIdx.x * 2 * blockDim.x;
    const u32 t = threadIdx.x;

    values[t] = fetch(x, segment + t, n);
    values[t + blockDim.x] = fetch(x, segment + t + blockDim.x, n);
    __syncthreads();
    for (u32 stride = blockDim.x; stride > 0; stride /= 2) {
        if (t < stride) values[t] = combine(values[t], values[t + stride]);
        __syncthreads();
    }
    if (t == 0) deliver(values[0], &partials[blockIdx.x], total);
}
