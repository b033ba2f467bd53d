/*
 * The same with __syncwarp(), once after each reading and once after each writing. Why are both needed?
 * (Take one line out and try.)
 *
 *     tally explain --kernel lessons/10_warp_with_sync.cu
 */
#define BLOCK_DIM 64

__global__ void warp_with_sync(float *input, float *output) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * BLOCK_DIM + t];
    __syncthreads();
    if (t < 32) {
        float v = input_s[t];
        for (unsigned int stride = 32; stride > 0; stride /= 2) {
            v += input_s[t + stride];
            __syncwarp();
            input_s[t] = v;
            __syncwarp();
        }
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
