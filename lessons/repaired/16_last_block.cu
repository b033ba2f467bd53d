/*
 * Task: Make sure that a block's value arrives before it is counted as finished.
 * Hint: Two writes go out: the value, and the count. What says that they arrive in this order?
 * Hint: __threadfence() holds back what follows until what stands before it can be seen by all blocks.
 * Why: A GPU may let another block see the count before the value, as nothing orders the two. Then the last block
 *   adds what has not arrived: seldom, and on another GPU. A fence between the value and the atomic orders them for
 *   the whole grid.
 */
__device__ unsigned int finished = 0;
__device__ volatile float partials[65536];

__global__ void last_block(const float *input, float *output, int n) {
    __shared__ float input_s[128];
    __shared__ bool is_last;
    unsigned int t = threadIdx.x;
    float sum = 0.0f;
    for (unsigned int i = blockIdx.x * 128 + t; i < n; i += gridDim.x * 128)
        sum += input[i];
    for (int round = 0; round < 2; ++round) {
        input_s[t] = sum;
        __syncthreads();
        for (unsigned int stride = 64; stride > 0; stride /= 2) {
            if (t < stride) input_s[t] += input_s[t + stride];
            __syncthreads();
        }
        if (t == 0 && round == 0) {
            partials[blockIdx.x] = input_s[0];
            __threadfence();
            is_last = atomicAdd(&finished, 1) == gridDim.x - 1;
        }
        __syncthreads();
        if (!is_last) return;
        sum = 0.0f;
        for (unsigned int b = t; b < gridDim.x; b += 128)
            sum += partials[b];
    }
    if (t == 0) {
        output[0] = input_s[0];
        finished = 0;
    }
}
