/*
 * A warp can add up 32 registers without shared memory. How many additions does it take, and how many of
 * them does nobody need?
 *
 *     tally explain --kernel lessons/12_shuffles.cu --block 32
 */
__global__ void shuffles(const float *input, float *output, int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? input[i] : 0.0f;
    for (unsigned int delta = 16; delta > 0; delta /= 2)
        v += __shfl_down_sync(0xffffffff, v, delta);
    if (threadIdx.x % 32 == 0) atomicAdd(output, v);
}
