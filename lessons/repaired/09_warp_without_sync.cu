/*
 * Task: Order what the lanes of the last warp read and write.
 * Hint: Lane 0 reads input_s[16] in the second line. Who wrote it, and in which line?
 * Hint: __syncwarp() is a barrier of one warp. One stands between reading and writing, and one between writing and
 *   reading.
 * Why: Since Volta each lane has a program counter of its own, and the lanes of a warp need not run in step.
 *   volatile keeps values out of registers, and orders nothing between lanes. __syncwarp() orders what the lanes did
 *   before it before what they do behind it.
 */
#define BLOCK_DIM 64

__global__ void warp_without_sync(float *input, float *output) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * BLOCK_DIM + t];
    __syncthreads();
    if (t < 32) {
        float v = input_s[t];
        for (unsigned int stride = 32; stride > 0; stride /= 2) {
            v += input_s[t + stride];
            __syncwarp();
            input_s[t] = v;
            __syncwarp();
        }
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
