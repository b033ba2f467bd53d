/*
 * Two kernels do the same additions in shared memory. In the first, neighbouring threads use words that are
 * 2, 4, 8, 16 and then 32 words apart. How many of the 32 words wait for one bank in the worst step?
 *
 *     tally explain --kernel lessons/11_bank_conflicts.cu:conflicts
 *     tally explain --kernel lessons/11_bank_conflicts.cu:no_conflicts
 */
#define BLOCK_DIM 512

__global__ void conflicts(float *input, float *output) {
    __shared__ float input_s[2 * BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * 2 * BLOCK_DIM + t];
    input_s[t + BLOCK_DIM] = input[blockIdx.x * 2 * BLOCK_DIM + t + BLOCK_DIM];
    for (unsigned int stride = 1; stride <= BLOCK_DIM; stride *= 2) {
        unsigned int left = 2 * stride * t;
        __syncthreads();
        if (left < 2 * BLOCK_DIM) input_s[left] += input_s[left + stride];
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}

__global__ void no_conflicts(float *input, float *output) {
    __shared__ float input_s[2 * BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * 2 * BLOCK_DIM + t];
    input_s[t + BLOCK_DIM] = input[blockIdx.x * 2 * BLOCK_DIM + t + BLOCK_DIM];
    for (unsigned int stride = BLOCK_DIM; stride > 0; stride /= 2) {
        __syncthreads();
        if (t < stride) input_s[t] += input_s[t + stride];
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
