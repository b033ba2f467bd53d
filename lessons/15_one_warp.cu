/*
 * With blocks of 32 threads this kernel is right. With which blocks is it wrong, and what is lost?
 *
 *     tally explain --kernel lessons/15_one_warp.cu
 */
__global__ void one_warp(const float *input, float *output, int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? input[i] : 0.0f;
    for (unsigned int delta = 16; delta > 0; delta /= 2)
        v += __shfl_down_sync(0xffffffff, v, delta);
    if (threadIdx.x == 0) atomicAdd(output, v);
}
