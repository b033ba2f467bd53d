/*
 * lower.h - the model's program of lower.cu. It stands behind that text; the build defines PROGRAM
 * and PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL5(lower, u64 *, lower_plan, u32, u32, u64 *);

static const model_kernel *const kernels[] = {&lower_kernel, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
