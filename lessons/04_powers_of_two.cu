/*
 * A tutorial says that this kernel "works for even sizes". For which n does it?
 *
 *     tally explain --kernel lessons/04_powers_of_two.cu
 */
__global__ void powers_of_two(int *array, int n) {
    unsigned int t = threadIdx.x;
    for (unsigned int stride = n / 2; stride > 0; stride /= 2) {
        if (t < stride) array[t] += array[t + stride];
        __syncthreads();
    }
}
