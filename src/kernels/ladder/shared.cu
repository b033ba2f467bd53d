/*
 * shared - the first addition happens on the way in.
 *
 * shared-contiguous stores two values a thread only to add these same two in its first step. Here a
 * thread adds them in a register and stores the result: half the shared memory, one step and one
 * barrier less.
 */
#include "../operators.h"

__global__ void shared(const GLOBAL element *x, u64 n, GLOBAL accumulator *partials,
                       GLOBAL word *total) {
    __shared__ accumulator values[BLOCK_MAX];
    const u32 t = threadIdx.x;
    const u64 i = (u64)blockIdx.x * 2 * blockDim.x + t;

    values[t] = combine(fetch(x, i, n), fetch(x, i + blockDim.x, n));
    __syncthreads();
    for (u32 stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) values[t] = combine(values[t], values[t + stride]);
        __syncthreads();
    }
    if (t == 0) deliver(values[0], &partials[blockIdx.x], total);
}
