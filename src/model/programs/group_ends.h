/*
 * group_ends.h - the model's program of group_ends.cu. It stands behind that text; the build defines PROGRAM and
 * PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL5(many, const element *, const u8 *, const u8 *, u64 *, groups_plan);
MODEL_KERNEL5(few, const element *, const u8 *, const u8 *, u64 *, groups_plan);
#if defined(TWICE)
MODEL_KERNEL5(indices, const element *, const u8 *, const u8 *, u64 *, groups_plan);
#endif
MODEL_KERNEL3(lower_groups, u64 *, u8 *, groups_plan);

static const model_kernel *const kernels[] = {&many_kernel, &few_kernel, &lower_groups_kernel,
#if defined(TWICE)
                                              &indices_kernel,
#endif
                                              NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
