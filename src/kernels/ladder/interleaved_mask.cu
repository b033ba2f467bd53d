/*
 * interleaved-mask - the same threads, found without a division.
 *
 * interleaved-modulo asks `t % stride`. A compiler does not know that strides are powers of two, so
 * it divides, at the cost of some twenty instructions, in every turn of the loop and for threads at
 * work and idle ones alike. For a power of two the remainder is what the low bits say, and one `and`
 * tells it. Everything else stays: whatever is gained here was the division's cost, and whatever
 * interleaved-index gains after it is not.
 */
#include "../operators.h"

__global__ void interleaved_mask(GLOBAL accumulator *x, u64 n, GLOBAL accumulator *partials,
                                 GLOBAL word *total) {
    const u64 segment = (u64)blockIdx.x * 2 * blockDim.x;
    const u64 left = segment + 2 * threadIdx.x;

    for (u32 stride = 1; stride <= blockDim.x; stride *= 2) {
        if ((threadIdx.x & (stride - 1)) == 0 && left + stride < n)
            x[left] = combine(x[left], x[left + stride]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        deliver(segment < n ? x[segment] : neutral(), &partials[blockIdx.x], total);
}
