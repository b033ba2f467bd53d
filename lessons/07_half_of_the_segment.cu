/*
 * A lecture lets each thread add 8 elements before the tree begins, so that a block has a segment of
 * 8 * blockDim elements. Does the loop come to all of them?
 *
 *     tally explain --kernel lessons/07_half_of_the_segment.cu
 */
#define BLOCK_DIM     64
#define COARSE_FACTOR 4

__global__ void half_of_the_segment(float *input, float *output, int n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int segment = COARSE_FACTOR * 2 * blockDim.x * blockIdx.x;
    unsigned int i = segment + threadIdx.x;
    float sum = i < n ? input[i] : 0.0f;
    for (unsigned int tile = 1; tile < COARSE_FACTOR; ++tile)
        if (i + tile * BLOCK_DIM < n) sum += input[i + tile * BLOCK_DIM];
    input_s[threadIdx.x] = sum;
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (threadIdx.x < stride) input_s[threadIdx.x] += input_s[threadIdx.x + stride];
    }
    if (threadIdx.x == 0) atomicAdd(output, input_s[0]);
}
