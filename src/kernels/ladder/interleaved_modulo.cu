/*
 * interleaved-modulo - the first kernel that comes to mind.
 *
 * A block owns a segment of 2 * blockDim neighbouring elements, and thread t the one at 2t. In the
 * first step every thread adds its right neighbour to its own element. In the second every other
 * thread adds what its neighbour's neighbour has gathered. The stride doubles until thread 0 holds
 * all. A segment of n elements takes log2(n) steps; one CPU thread takes n - 1.
 *
 *     step 1   0<-1  2<-3  4<-5  6<-7        threads 0 1 2 3
 *     step 2   0<----2     4<----6           threads 0   2
 *     step 3   0<----------4                 thread  0
 */
#include "../operators.h"

__global__ void interleaved_modulo(GLOBAL accumulator *x, u64 n, GLOBAL accumulator *partials,
                                   GLOBAL word *total) {
    const u64 segment = (u64)blockIdx.x * 2 * blockDim.x;
    const u64 left = segment + 2 * threadIdx.x;

    for (u32 stride = 1; stride <= blockDim.x; stride *= 2) {
        if (threadIdx.x % stride == 0 && left + stride < n)
            x[left] = combine(x[left], x[left + stride]);
        __syncthreads();
    }
    if (threadIdx.x == 0)
        deliver(segment < n ? x[segment] : neutral(), &partials[blockIdx.x], total);
}
