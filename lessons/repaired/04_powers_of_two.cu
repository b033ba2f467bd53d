/*
 * Task: Make it right for every n.
 * Hint: Take n = 6 and write down each stride. Which element does no step add?
 * Hint: Where n is odd, n / 2 pairs leave one element over. Round the other way, and test whether the far element
 *   is there.
 * Why: n / 2 rounds down, so that an odd number of values loses its last one. With (n + 1) / 2 the middle value
 *   stays for the next step, and the bound keeps the last thread from an element that is not there. A power of two
 *   halves without a rest at every step, which is why the first kernel is right for those.
 */
__global__ void powers_of_two(int *array, int n) {
    unsigned int t = threadIdx.x;
    for (unsigned int left = n; left > 1;) {
        unsigned int half = (left + 1) / 2;
        if (t + half < left) array[t] += array[t + half];
        __syncthreads();
        left = half;
    }
}
