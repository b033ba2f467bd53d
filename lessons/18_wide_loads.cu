/*
 * The kernel takes element 0, which stands alone, and then loads four elements at a time. Which address does the
 * first float4 have?
 *
 *     tally explain --kernel lessons/18_wide_loads.cu
 */
__global__ void wide_loads(const float *input, float *output, int n) {
    const float4 *fours = (const float4 *)(input + 1);
    unsigned int t = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    float sum = 0.0f;
    for (unsigned int i = t; i < (n - 1) / 4; i += threads) {
        float4 v = fours[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (t == 0) {
        sum += input[0];
        for (unsigned int i = 1 + (n - 1) / 4 * 4; i < n; ++i)
            sum += input[i];
    }
    atomicAdd(output, sum);
}
