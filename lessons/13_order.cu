/*
 * Two trees over the same elements: strides that grow, and strides that shrink. Which of the two combines
 * neighbours only, so that an operator for which a b is not b a is safe with it?
 *
 *     tally explain --kernel lessons/13_order.cu:growing -n 8 --draw
 *     tally explain --kernel lessons/13_order.cu:shrinking -n 8 --draw
 */
__global__ void growing(float *array, int n) {
    for (unsigned int stride = 1; stride < n; stride *= 2) {
        unsigned int left = 2 * stride * threadIdx.x;
        if (left + stride < n) array[left] += array[left + stride];
        __syncthreads();
    }
}

__global__ void shrinking(float *array, int n) {
    unsigned int left = threadIdx.x;
    for (unsigned int count = n; count > 1; count = (count + 1) / 2) {
        unsigned int half = (count + 1) / 2;
        if (left + half < count) array[left] += array[left + half];
        __syncthreads();
    }
}
