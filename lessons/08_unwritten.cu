/*
 * Shared memory begins with what is left there from before. Who reads what nobody wrote?
 *
 *     tally explain --kernel lessons/08_unwritten.cu
 */
#define BLOCK_DIM 128

__global__ void unwritten(float *input, float *output, int n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    unsigned int i = blockIdx.x * BLOCK_DIM + t;
    if (i < n) input_s[t] = input[i];
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
