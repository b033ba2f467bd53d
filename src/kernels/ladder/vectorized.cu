/*
 * vectorized - wider loads, and several of them under way.
 *
 * Memory has a long latency, but delivers much at once. grid-stride asks for one element at a time
 * and adds it before it asks for the next. Here a thread reads 16 bytes with one instruction, a
 * pack, and asks for four packs before it needs the first. The array must start at a multiple of 16
 * bytes; the elements that do not fill a pack come last, one by one.
 */
#ifndef TALLY_LADDER_VECTORIZED
#define TALLY_LADDER_VECTORIZED
#include "../operators.h"

#define PACK      (16 / (u32)sizeof(element))
#define IN_FLIGHT 4u

typedef union pack {
    uint4 bits; /* for the load of 16 bytes */
    element e[16 / sizeof(element)];
} pack;

__device__ accumulator combine_pack(accumulator v, pack p) {
    for (u32 k = 0; k < PACK; k++)
        v = combine(v, load(p.e[k]));
    return v;
}

/* Returns the combination of this thread's share of the array: packs, then single elements, a grid's width apart. */
__device__ accumulator combine_share(const GLOBAL element *x, u64 n) {
    const GLOBAL uint4 *wide = (const GLOBAL uint4 *)x;
    const u64 packs = n / PACK;
    const u64 threads = (u64)gridDim.x * blockDim.x;
    const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;

    accumulator v = neutral();
    u64 i = thread;
    for (; i + (IN_FLIGHT - 1) * threads < packs; i += IN_FLIGHT * threads) {
        pack p[IN_FLIGHT];
        for (u32 k = 0; k < IN_FLIGHT; k++)
            p[k].bits = wide[i + k * threads];
        for (u32 k = 0; k < IN_FLIGHT; k++)
            v = combine_pack(v, p[k]);
    }
    for (; i < packs; i += threads) {
        pack p;
        p.bits = wide[i];
        v = combine_pack(v, p);
    }
    for (i = packs * PACK + thread; i < n; i += threads)
        v = combine(v, load(x[i]));
    return v;
}

__global__ void vectorized(const GLOBAL element *x, u64 n, GLOBAL accumulator *partials,
                           GLOBAL word *total) {
    __shared__ accumulator values[BLOCK_MAX];
    const u32 t = threadIdx.x;

    values[t] = combine_share(x, n);
    __syncthreads();
    for (u32 stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) values[t] = combine(values[t], values[t + stride]);
        __syncthreads();
    }
    if (t == 0) deliver(values[0], &partials[blockIdx.x], total);
}

#endif
