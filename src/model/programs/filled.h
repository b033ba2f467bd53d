/*
 * filled.h - the model's program of filled.cu. It stands behind that text; the build defines
 * PROGRAM and PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL4(fill_in, const u8 *, const u8 *, u64 *, filled_plan);
MODEL_KERNEL4(count_there, const u8 *, u64 *, parts_plan, filled_plan);
MODEL_KERNEL5(show, const u8 *, const u8 *, const u8 *, u64 *, filled_plan);
MODEL_KERNEL4(tell, const u64 *, u64 *, u64, lower_plan);

static const model_kernel *const kernels[] = {&fill_in_kernel, &count_there_kernel, &show_kernel,
                                              &tell_kernel, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
