/*
 * Task: Make it right for odd n, and keep it within its arrays.
 * Hint: For n = 5, thread 2 reads input[4] and what else?
 * Hint: Two elements need two tests: one for i, one for i + 1.
 * Why: The test of i says nothing of i + 1, which for odd n lies one past the end. What stands there is another
 *   array's or nobody's, so that the sum is wrong, or the GPU ends the launch. Every access has a test of its own,
 *   unless another test says the same.
 */
#define BLOCK_DIM 64

__global__ void odd_lengths(float *input, float *output, int n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    unsigned int i = blockIdx.x * 2 * BLOCK_DIM + 2 * t;
    input_s[t] = 0;
    if (i < n) input_s[t] = input[i];
    if (i + 1 < n) input_s[t] += input[i + 1];
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
