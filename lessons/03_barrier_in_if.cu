/*
 * The idle threads have nothing to wait for: why not let only the others come to the barrier?
 *
 *     tally explain --kernel lessons/03_barrier_in_if.cu
 */
#define BLOCK_DIM 128

__global__ void barrier_in_if(float *input, float *output) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * BLOCK_DIM + t];
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) {
            input_s[t] += input_s[t + stride];
            __syncthreads();
        }
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
