/*
 * lower - from the records of a problem's parts to its values (lower.h): a block a value, by its first thread.
 */
#define RECORD_SPACE GLOBAL
#include "lower.h"

BEGINS_EARLY

KERNEL lower(const GLOBAL u64 *work, const lower_plan plan, GLOBAL u64 *results) {
#if defined(__CUDACC__)
    __shared__ room numbers;
#else
    room numbers;
#endif
    wait_for_earlier();
    const u32 i = blockIdx.x;
    if (threadIdx.x != 0 || i >= plan.values) return;
    const u32 type = plan.value[i] >> 8;
    u32 status = RESULT_OK;
    const u64 bits = lower_value(work, &plan, plan.value[i] & 255, type, &status, &numbers);
    put_result(results + 2 * i, type, bits, status);
}
