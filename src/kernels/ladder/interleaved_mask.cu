/*
 * interleaved-mask - the same threads, found without a division.
 *
 * interleaved-modulo computes `t % stride`. A compiler does not know that strides are powers of
 * two, so it divides: some twenty instructions in every turn of the loop, in idle threads, too. The
 * remainder by a power of two is the low bits, which one `and` gives. Nothing else changes. So the
 * time saved here is the cost of the division, and what interleaved-index saves beyond that has
 * another cause.
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
