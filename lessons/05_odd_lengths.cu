/*
 * What does the last thread read when n is odd?
 *
 *     tally explain --kernel lessons/05_odd_lengths.cu
 */
#define BLOCK_DIM 64

__global__ void odd_lengths(float *input, float *output, int n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    unsigned int i = blockIdx.x * 2 * BLOCK_DIM + 2 * t;
    input_s[t] = 0;
    if (i < n) input_s[t] = input[i] + input[i + 1];
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
