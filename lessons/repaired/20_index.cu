/*
 * Task: Make it right for every n that its type holds.
 * Hint: An int holds numbers up to 2147483647. What comes after that?
 * Hint: The product is computed in the type of its factors, before it is stored. One factor must be a size_t.
 * Why: blockIdx.x * BLOCK_DIM + t is more than an int holds from 2^31 elements on, and comes out negative.
 *   Compared with a size_t, a negative int is a huge number, so that the elements are left out in silence. A size_t
 *   on the left is not enough: the product must be computed in it.
 */
#define BLOCK_DIM 128

__global__ void index_of(const float *input, float *output, size_t n) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    size_t i = (size_t)blockIdx.x * BLOCK_DIM + t;
    input_s[t] = i < n ? input[i] : 0;
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
