/*
 * load - the working copy.
 *
 * The first rungs reduce in place, in global memory. They work on a copy, so that the caller's array
 * stays as it was, and the copy is of accumulators, so that a sum of bytes has room to grow.
 * Each thread copies one element.
 */
#include "../operators.h"

__global__ void load_elements(const GLOBAL element *x, u64 n, GLOBAL accumulator *copy) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) copy[i] = load(x[i]);
}
