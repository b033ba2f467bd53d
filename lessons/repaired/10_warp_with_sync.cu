/*
 * Task: Do the same without shared memory in the last warp.
 * Hint: Where does a lane keep its sum? Another lane can take a value from there.
 * Hint: __shfl_down_sync(0xffffffff, v, stride) gives each lane the v of the lane that is stride further.
 * Why: A shuffle moves a value from one lane's register to another's, and all lanes of its mask meet there. So
 *   nothing stands in memory that could be read too early, and no __syncwarp() is needed. The first step still takes
 *   input_s[t + 32], which other warps have written before the barrier.
 */
#define BLOCK_DIM 64

__global__ void warp_with_sync(float *input, float *output) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * BLOCK_DIM + t];
    __syncthreads();
    float v = 0.0f;
    if (t < 32) {
        v = input_s[t] + input_s[t + 32];
        for (unsigned int stride = 16; stride > 0; stride /= 2)
            v += __shfl_down_sync(0xffffffff, v, stride);
    }
    if (t == 0) output[blockIdx.x] = v;
}
