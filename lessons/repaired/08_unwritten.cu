/*
 * Task: Let every thread write its element of the shared array.
 * Hint: For n = 100, which threads write nothing, and who reads their elements?
 * Hint: Which number can be added to a sum without changing it?
 * Why: Shared memory holds what the block before left there, so that the sum has parts that belong to nobody. The
 *   tree reads all 128 elements, whatever n is. Threads without an element write the identity of the operator, which
 *   for a sum is 0.
 */
#define BLOCK_DIM 128

__global__ void unwritten(float *input, float *output, int n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    unsigned int i = blockIdx.x * BLOCK_DIM + t;
    input_s[t] = i < n ? input[i] : 0.0f;
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
