/*
 * Every block adds its sum to output[0]. What happens if two of them do that at the same time?
 *
 *     tally explain --kernel lessons/21_blocks_add.cu
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
    if (t == 0) output[0] += input_s[0];
}
