/*
 * sum.h - the model's program of kernels/sum.cu. It stands behind that text; the build defines PROGRAM and
 * PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL9(reduce, const element *, const element *, u64, u64, u64 *, u64 *, u64, u32, u64 *);
MODEL_KERNEL9(alone, const element *, const element *, u64, u64, u64 *, u64 *, u64, u32, u64 *);

static const model_kernel *const kernels[] = {&reduce_kernel, &alone_kernel, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
