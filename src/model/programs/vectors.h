/*
 * vectors.h - the model's program of vectors.cu. It stands behind that text; the build defines PROGRAM and
 * PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL5(wide, const element *, const u8 *, u64 *, u8 *, vectors_plan);
MODEL_KERNEL5(narrow, const element *, const u8 *, u64 *, u8 *, vectors_plan);
MODEL_KERNEL3(join_vectors, u64 *, u8 *, vectors_plan);

static const model_kernel *const kernels[] = {&wide_kernel, &narrow_kernel, &join_vectors_kernel,
                                              NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
