/*
 * columns.h - the model's program of columns.cu. It stands behind that text; the build defines PROGRAM and
 * PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL4(wide, const element *, u64 *, u8 *, columns_plan);
MODEL_KERNEL4(narrow, const element *, u64 *, u8 *, columns_plan);
MODEL_KERNEL4(join, const element *, u64 *, u8 *, columns_plan);
#if HAS_FEW
MODEL_KERNEL4(few, const element *, u64 *, u8 *, columns_plan);
#define FEW_KERNEL &few_kernel
#else
#define FEW_KERNEL NULL
#endif

static const model_kernel *const kernels[] = {&wide_kernel, &narrow_kernel, &join_kernel,
                                              FEW_KERNEL, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
