/*
 * coarsened - more work for each thread before the tree begins.
 *
 * A tree keeps fewer and fewer threads busy, and each of its steps ends with a barrier. `shared`
 * pays for that again and again: it launches many more blocks than the device can hold at once.
 * Here each thread first adds 2 * coarsen elements, while all threads are busy and none has to
 * wait. One tree then takes the place of `coarsen` trees. A thread's elements are blockDim apart,
 * so that in each round a warp still reads neighbours.
 */
#include "../operators.h"

__global__ void coarsened(const GLOBAL element *x, u64 n, GLOBAL accumulator *partials,
                          GLOBAL word *total, u32 coarsen) {
    __shared__ accumulator values[BLOCK_MAX];
    const u32 t = threadIdx.x;
    const u64 i = (u64)blockIdx.x * 2 * coarsen * blockDim.x + t;

    accumulator v = fetch(x, i, n);
    for (u32 k = 1; k < 2 * coarsen; k++)
        v = combine(v, fetch(x, i + (u64)k * blockDim.x, n));
    values[t] = v;
    __syncthreads();
    for (u32 stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) values[t] = combine(values[t], values[t + stride]);
        __syncthreads();
    }
    if (t == 0) deliver(values[0], &partials[blockIdx.x], total);
}
