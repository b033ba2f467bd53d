/*
 * shared-modulo - the block's elements move into shared memory first.
 *
 * The rungs before read and write global memory in every step. Shared memory lies on the chip, next
 * to the block: each element comes from global memory once, the tree runs in shared memory, and
 * nothing but the block's result goes back - the array needs no working copy. The tree is
 * interleaved-modulo's, faults and all, to show what the move alone is worth.
 */
#include "../operators.h"

__global__ void shared_modulo(const GLOBAL element *x, u64 n, GLOBAL accumulator *partials,
                              GLOBAL word *total) {
    __shared__ accumulator values[2 * BLOCK_MAX];
    const u64 segment = (u64)blockIdx.x * 2 * blockDim.x;
    const u32 t = threadIdx.x, left = 2 * t;

    values[t] = fetch(x, segment + t, n);
    values[t + blockDim.x] = fetch(x, segment + t + blockDim.x, n);
    __syncthreads();
    for (u32 stride = 1; stride <= blockDim.x; stride *= 2) {
        if (t % stride == 0) values[left] = combine(values[left], values[left + stride]);
        __syncthreads();
    }
    if (t == 0) deliver(values[0], &partials[blockIdx.x], total);
}
