/*
 * Task: Make the loop come to all elements of the segment.
 * Hint: A segment has 4 * 2 * 64 elements, and 64 threads. How many does each thread add?
 * Hint: The loop runs to COARSE_FACTOR, and the segment is COARSE_FACTOR * 2 blocks long.
 * Why: Each thread is to add 8 elements, and the loop stops after 4, so that the second half of every segment is
 *   left out. The result is right while n is no longer than half a segment, which small tests never exceed. A test
 *   that counts each element by a single 1 among zeros shows what is left out.
 */
#define BLOCK_DIM     64
#define COARSE_FACTOR 4

__global__ void half_of_the_segment(float *input, float *output, int n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int segment = COARSE_FACTOR * 2 * blockDim.x * blockIdx.x;
    unsigned int i = segment + threadIdx.x;
    float sum = i < n ? input[i] : 0.0f;
    for (unsigned int tile = 1; tile < COARSE_FACTOR * 2; ++tile)
        if (i + tile * BLOCK_DIM < n) sum += input[i + tile * BLOCK_DIM];
    input_s[threadIdx.x] = sum;
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        __syncthreads();
        if (threadIdx.x < stride) input_s[threadIdx.x] += input_s[threadIdx.x + stride];
    }
    if (threadIdx.x == 0) atomicAdd(output, input_s[0]);
}
