/*
 * The kernel was tested with the numbers 1, 2, 3 ... and every sum was right. For which numbers is it wrong?
 *
 *     tally explain --kernel lessons/14_accumulator.cu
 */
#define BLOCK_DIM 128

__global__ void accumulator(const float *input, float *output, int n) {
    __shared__ int input_s[BLOCK_DIM];
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
