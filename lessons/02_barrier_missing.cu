/*
 * The same tree, and one line is missing. Which two threads come into each other's way, and at which element?
 *
 *     tally explain --kernel lessons/02_barrier_missing.cu
 */
#define BLOCK_DIM 128

__global__ void barrier_missing(float *input, float *output) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * BLOCK_DIM + t];
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
