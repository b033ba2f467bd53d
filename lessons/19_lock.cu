/*
 * Every thread waits for the lock, adds its element and gives the lock back. Who gives it back if the threads of a
 * warp run in step?
 *
 *     tally explain --kernel lessons/19_lock.cu
 */
__device__ int lock_taken = 0;

__global__ void locked_sum(const float *input, float *output, int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        while (atomicCAS(&lock_taken, 0, 1) != 0)
            ;
        output[0] += input[i];
        __threadfence();
        atomicExch(&lock_taken, 0);
    }
}
