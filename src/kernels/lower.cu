/*
 * lower - turns the records of a problem's monoids into its values (lower.h), with a block for each value.
 *
 * A block's threads settle the sums (settle.h). Its first thread lowers: by doubles where they determine the value
 * (quick.h), else by all digits. If there is one value only, its block then clears the words of `work` in which the
 * records were: [first, first + clear).
 */
#define RECORD_SPACE GLOBAL
#define SETTLED
#include "lower.h"

#include "settle.h"

/* Devices behind OpenCL may have no doubles. */
#if defined(__OPENCL_VERSION__)
#define HAS_QUICK 0
#else
#define HAS_QUICK 1
#include "doubles.h"

#include "quick.h"
#endif

BEGINS_EARLY

/* Digits of all sums of a state, as many as records have limbs. */
#define SETTLED_DIGITS (2 * FLOAT_LIMBS + 2 * WIDE_FLOAT_LIMBS)

KERNEL lower(GLOBAL u64 *work, const lower_plan plan, u32 first, u32 clear, GLOBAL u64 *results) {
    __shared__ u64 digits[SETTLED_DIGITS];
    __shared__ u32 masks[SUMS * MASKS];
    SHARED_LOWER_SCRATCH numbers;
    wait_for_earlier();
    for (u32 i = threadIdx.x; i < SUMS * MASKS; i += BLOCK)
        masks[i] = 0;
    __syncthreads();
    u32 known = 0;
    for (u32 monoid = 0; monoid < SUMS; monoid++) {
        const u32 there = plan.at[monoid] != PLAN_NONE;
        const limb_layout s = limb_layout_of(plan.type, monoid);
        const u32 limbs = there ? s.limbs : 0;
        if (UNIFORM(there)) {
            settle_sum(work + (there ? plan.at[monoid] : 0), 0, limbs, limbs, digits + known,
                       masks + monoid * MASKS);
            if (there && threadIdx.x == 0)
                numbers.digit_ranges[monoid] =
                    digit_range_of(digits + known, limbs, s.lowest, masks + monoid * MASKS);
            known += limbs;
        }
    }
    const u32 i = blockIdx.x;
    if (threadIdx.x == 0 && i < plan.values) {
        const u32 type = plan.value[i] >> 8;
        u32 status = RESULT_OK, lost = !HAS_QUICK;
        u64 bits = 0;
#if HAS_QUICK
        bits = quick_value(work, &plan, plan.value[i] & 255, type, &numbers, &lost);
#endif
        if (lost) {
            TALLY_PATH("by digits");
            bits = lower_value(work, &plan, plan.value[i] & 255, type, &status, &numbers);
        } else
            TALLY_PATH("by doubles");
        put_result(results + 2 * i, type, bits, status);
    }
    __syncthreads();
    for (u32 k = threadIdx.x; k < clear; k += BLOCK)
        work[first + k] = 0;
}
