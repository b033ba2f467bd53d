/*
 * Task: Write the host's part: what does it pass for n?
 * Hint: The host launches a block for every 2 * blockDim elements. How many elements are there in all?
 * Hint: The kernel compares i + stride with n, and i counts from the start of the whole array.
 * Why: n is the number of elements of the array, and a block's threads are another number that happens to be at
 *   hand. With blockDim for n only the first block's elements pass the test, and each later segment keeps its first
 *   element alone. The kernel cannot see that, so that the host must be tested with more than one block.
 */
__global__ void wrong_length(float *input, float *output, int n) {
    unsigned int i = 2 * blockDim.x * blockIdx.x + threadIdx.x;
    for (unsigned int stride = blockDim.x; stride > 0; stride /= 2) {
        if (threadIdx.x < stride && i + stride < n) input[i] += input[i + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) output[blockIdx.x] = input[i];
}

void host(float *input, float *output, int n) {
    int threads = 64, blocks = (n + 2 * threads - 1) / (2 * threads);
    wrong_length<<<blocks, threads>>>(input, output, n); /* n, and not threads */
}
