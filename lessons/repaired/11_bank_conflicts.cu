/*
 * Task: Write the kernel conflicts without a bank conflict. Leave the other kernel out of your file.
 * Hint: Word w lies in bank w % 32. In which banks are the words of threads 0, 1 and 2 when the stride is 16?
 * Hint: Let neighbouring threads use neighbouring words.
 * Why: 32 words that follow each other lie in 32 banks, and one pass reads them all. With words 32 apart all lie
 *   in one bank, and the warp pays for 32 passes. The additions are the same; only which thread does which of them
 *   differs.
 */
#define BLOCK_DIM 512

__global__ void conflicts(float *input, float *output) {
    __shared__ float input_s[2 * BLOCK_DIM];
    unsigned int t = threadIdx.x;
    input_s[t] = input[blockIdx.x * 2 * BLOCK_DIM + t];
    input_s[t + BLOCK_DIM] = input[blockIdx.x * 2 * BLOCK_DIM + t + BLOCK_DIM];
    for (unsigned int stride = BLOCK_DIM; stride > 0; stride /= 2) {
        __syncthreads();
        if (t < stride) input_s[t] += input_s[t + stride];
    }
    if (t == 0) output[blockIdx.x] = input_s[0];
}
