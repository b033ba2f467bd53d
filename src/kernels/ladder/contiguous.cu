/*
 * contiguous - the stride runs the other way.
 *
 * Thread t owns element t and adds the one a whole blockDim further on; then the stride halves. The
 * threads at work stand side by side, as in interleaved-index, and now so do their elements. A warp
 * reads 32 neighbours, which memory delivers in one piece. When strides grow, it fetches a 128-byte
 * line for each element.
 *
 *     step 1   0<----------4   1<----------5   2<----------6   3<----------7
 *     step 2   0<----2   1<----3
 *     step 3   0<-1
 */
#include "../operators.h"

__global__ void contiguous(GLOBAL accumulator *x, u64 n, GLOBAL accumulator *partials,
                           GLOBAL word *total) {
    const u64 segment = (u64)blockIdx.x * 2 * blockDim.x;
    const u64 left = segment + threadIdx.x;

    for (u32 stride = blockDim.x; stride > 0; stride /= 2) {
        if (threadIdx.x < stride && left + stride < n) x[left] = combine(x[left], x[left + stride]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        deliver(segment < n ? x[segment] : neutral(), &partials[blockIdx.x], total);
}
