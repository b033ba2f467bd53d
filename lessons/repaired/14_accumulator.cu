/*
 * Task: Make it right for all numbers.
 * Hint: Add 0.5 and 0.5 by hand, as the kernel does.
 * Hint: What type do the elements have, and what type does the shared array have?
 * Why: An int keeps no fraction, so that 0.5 is stored as 0. Tests with small whole numbers do not see that. Test
 *   with fractions, both signs and large numbers, and keep every value in the elements' own type or a wider one.
 */
#define BLOCK_DIM 128

__global__ void accumulator(const float *input, float *output, int n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    unsigned int i = blockIdx.x * BLOCK_DIM + t;
    input_s[t] = i < n ? input[i] : 0;
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
