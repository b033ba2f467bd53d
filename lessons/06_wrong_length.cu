/*
 * The kernel is right. A set of slides has the host pass the threads of a block for n. Which elements are then
 * left out?
 *
 *     tally explain --kernel lessons/06_wrong_length.cu
 *     tally explain --kernel lessons/06_wrong_length.cu --block 64 --length block
 */
__global__ void wrong_length(float *input, float *output, int n) {
    unsigned int i = 2 * blockDim.x * blockIdx.x + threadIdx.x;
    for (unsigned int stride = blockDim.x; stride > 0; stride /= 2) {
        if (threadIdx.x < stride && i + stride < n) input[i] += input[i + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) output[blockIdx.x] = input[i];
}
