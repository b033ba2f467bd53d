/*
 * lower - from the records of a problem's parts to its values (lower.h): a block a value, by its first thread. Of one value
 * the block then clears the words of `work` where the records were: [first, first + clear).
 */
#define RECORD_SPACE GLOBAL
#include "lower.h"

BEGINS_EARLY

KERNEL lower(GLOBAL u64 *work, const lower_plan plan, u32 first, u32 clear, GLOBAL u64 *results) {
#if defined(__CUDACC__)
    __shared__ room numbers;
#else
    room numbers;
#endif
    wait_for_earlier();
    const u32 i = blockIdx.x;
    if (threadIdx.x == 0 && i < plan.values) {
        const u32 type = plan.value[i] >> 8;
        u32 status = RESULT_OK;
        const u64 bits = lower_value(work, &plan, plan.value[i] & 255, type, &status, &numbers);
        put_result(results + 2 * i, type, bits, status);
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < clear; k += BLOCK)
        work[first + k] = 0;
}
