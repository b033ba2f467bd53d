/*
 * Task: Let the blocks add without losing a sum.
 * Hint: `output[0] += v` reads, adds and writes. What if another block reads in between?
 * Hint: Blocks have no barrier between them, but there is an addition that is one step.
 * Why: Two blocks may both read the old value, and the one that writes last wipes out the other's sum. Blocks run
 *   in any order and at the same time, and __syncthreads() is a barrier of one block only. atomicAdd() reads, adds
 *   and writes in one step.
 */
#define BLOCK_DIM 128

__global__ void blocks_add(const float *input, float *output, int n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    unsigned int i = blockIdx.x * BLOCK_DIM + t;
    input_s[t] = i < n ? input[i] : 0;
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) atomicAdd(output, input_s[0]);
}
