/*
 * n is a size_t, so that arrays of 3 billion elements may come. What does the int i hold for the last of them?
 *
 *     tally explain --kernel lessons/20_index.cu
 */
#define BLOCK_DIM 128

__global__ void index_of(const float *input, float *output, size_t n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    int i = blockIdx.x * BLOCK_DIM + t;
    input_s[t] = i < n ? input[i] : 0;
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
