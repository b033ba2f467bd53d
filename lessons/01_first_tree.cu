/*
 * How can 512 threads add up 1024 numbers in 10 steps, and why are so many of them idle?
 *
 *     tally explain --kernel lessons/01_first_tree.cu -n 1024
 */
__global__ void first_tree(float *array, int n) {
    unsigned int i = 2 * threadIdx.x;
    for (unsigned int stride = 1; stride < n; stride *= 2) {
        if (threadIdx.x % stride == 0 && i + stride < n) array[i] += array[i + stride];
        __syncthreads();
    }
}
