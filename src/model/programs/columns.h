/*
 * columns.h - after columns.cu: its program for the model. PROGRAM and PROGRAM_NAME are the build's.
 */
#include "model/programs/programs.h"

MODEL_KERNEL4(wide, const element *, u64 *, u8 *, columns_plan);
MODEL_KERNEL4(narrow, const element *, u64 *, u8 *, columns_plan);
MODEL_KERNEL3(join, u64 *, u8 *, columns_plan);

static const model_kernel *const kernels[] = {&wide_kernel, &narrow_kernel, &join_kernel, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
