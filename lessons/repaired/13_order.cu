/*
 * Task: Write a kernel that combines neighbours only, with threads side by side: each value that a thread stores or
 *   passes on is of elements that follow each other. (--draw shows the order.)
 * Hint: Which elements does growing combine in step 2, and which of its threads are at work?
 * Hint: left = 2 * stride * threadIdx.x keeps the first threads at work, whatever the stride is.
 * Why: With strides that grow, each value stands for a run of neighbours, and a step joins two runs that touch,
 *   the left one first. With strides that shrink, element 0 meets element n / 2 at once, so that the operands change
 *   places. Sums do not care; the product of matrices does.
 */
__global__ void growing(float *array, int n) {
    for (unsigned int stride = 1; stride < n; stride *= 2) {
        unsigned int left = 2 * stride * threadIdx.x;
        if (left + stride < n) array[left] += array[left + stride];
        __syncthreads();
    }
}
