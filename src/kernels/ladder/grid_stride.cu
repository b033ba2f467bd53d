/*
 * grid-stride - as many blocks as the device can run at once, however long the array.
 *
 * coarsened still launches more blocks the longer the array gets. Here the grid is sized to the
 * device, and all its threads walk the array together, a grid's width at a time. So no block waits
 * for its turn, and there are no more trees and partials than blocks that the device runs at once.
 */
#include "../operators.h"

__global__ void grid_stride(const GLOBAL element *x, u64 n, GLOBAL accumulator *partials,
                            GLOBAL word *total) {
    __shared__ accumulator values[BLOCK_MAX];
    const u32 t = threadIdx.x;
    const u64 threads = (u64)gridDim.x * blockDim.x;

    accumulator v = neutral();
    for (u64 i = (u64)blockIdx.x * blockDim.x + t; i < n; i += threads)
        v = combine(v, load(x[i]));
    values[t] = v;
    __syncthreads();
    for (u32 stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) values[t] = combine(values[t], values[t + stride]);
        __syncthreads();
    }
    if (t == 0) deliver(values[0], &partials[blockIdx.x], total);
}
