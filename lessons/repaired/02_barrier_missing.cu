/*
 * Task: Put the missing line in.
 * Hint: Thread 0 reads input_s[64] in the first step. Which thread writes it, and in which warp is that thread?
 * Hint: The tree's own barriers stand behind each step. What stands between the load and the first step?
 * Why: Warps run at their own pace, so that warp 0 may read input_s[64] before warp 2 has written it. A barrier
 *   makes every thread wait until all have come, and what they wrote before it can be read behind it. Where one
 *   thread writes and another of the block reads, there must be a barrier between.
 */
#define BLOCK_DIM 128

__global__ void barrier_missing(float *input, float *output) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * BLOCK_DIM + t];
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
