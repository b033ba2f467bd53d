/*
 * Task: Make every thread come to every barrier.
 * Hint: Count the threads that come to the barrier in the first step. For how many does it wait?
 * Hint: What must stay inside the if, and what need not?
 * Why: A barrier waits for all threads of the block, those that do not add among them. Those outside the if never
 *   come, so that the standard calls it undefined: hardware may hang, or go on too early. Only the addition belongs
 *   inside the if, and the barrier behind it.
 */
#define BLOCK_DIM 128

__global__ void barrier_in_if(float *input, float *output) {
    __shared__ float input_s[BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * BLOCK_DIM + t];
    __syncthreads();
    for (unsigned int stride = BLOCK_DIM / 2; stride > 0; stride /= 2) {
        if (t < stride) input_s[t] += input_s[t + stride];
        __syncthreads();
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
