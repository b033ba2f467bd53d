/*
 * The last warp's threads run together, an old text says, and need no barrier between them. What orders their
 * reads and writes?
 *
 *     tally explain --kernel lessons/09_warp_without_sync.cu
 */
#define BLOCK_DIM 64

__global__ void warp_without_sync(float *input, float *output) {
    __shared__ volatile float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * BLOCK_DIM + t];
    __syncthreads();
    if (t < 32) {
        input_s[t] += input_s[t + 32];
        input_s[t] += input_s[t + 16];
        input_s[t] += input_s[t + 8];
        input_s[t] += input_s[t + 4];
        input_s[t] += input_s[t + 2];
        input_s[t] += input_s[t + 1];
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
