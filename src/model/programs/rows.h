/*
 * rows.h - after rows.cu: its program for the model. PROGRAM and PROGRAM_NAME are the build's.
 */
#include "model/programs/programs.h"

MODEL_KERNEL5(rows, const u8 *, const u8 *, u64 *, u8 *, parts_plan);
MODEL_KERNEL5(short_rows, const u8 *, const u8 *, u64 *, u8 *, parts_plan);
MODEL_KERNEL4(join_rows, const u8 *, u64 *, u8 *, parts_plan);

static const model_kernel *const kernels[] = {&rows_kernel, &short_rows_kernel, &join_rows_kernel,
                                              NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
