/*
 * Task: Write the tree so that the threads that add stand side by side.
 * Hint: Print threadIdx.x of the threads that add in step 3. How many of each warp are they?
 * Hint: Let thread t own element t, and let the far element be half of what is left away.
 * Why: A warp pays for 32 threads, whether 32 of them add or one does. With threads side by side whole warps run
 *   out of work, and cost nothing. The number of additions stays n - 1, and the warps that diverge become few.
 */
__global__ void first_tree(float *array, int n) {
    for (unsigned int left = n; left > 1;) {
        unsigned int half = (left + 1) / 2;
        if (threadIdx.x + half < left) array[threadIdx.x] += array[threadIdx.x + half];
        __syncthreads();
        left = half;
    }
}
