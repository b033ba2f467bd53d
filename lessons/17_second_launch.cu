/*
 * The first launch is right. What does the second one find in finished?
 *
 *     tally explain --kernel lessons/17_second_launch.cu
 */
__device__ unsigned int finished = 0;
__device__ volatile float partials[65536];

__global__ void second_launch(const float *input, float *output, int n) {
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
    }
}
