/*
 * rows.h - the model's program of rows.cu. It stands behind that text; the build defines PROGRAM
 * and PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL5(rows, const u8 *, const u8 *, u64 *, u8 *, parts_plan);
MODEL_KERNEL5(short_rows, const u8 *, const u8 *, u64 *, u8 *, parts_plan);
MODEL_KERNEL5(block_rows, const u8 *, const u8 *, u64 *, u8 *, parts_plan);
MODEL_KERNEL4(join_rows, const u8 *, u64 *, u8 *, parts_plan);
#if HAS_ONE_WAY
MODEL_KERNEL5(few_rows, const u8 *, const u8 *, u64 *, u8 *, parts_plan);
#define FEW_ROWS_KERNEL &few_rows_kernel
#else
#define FEW_ROWS_KERNEL NULL
#endif

static const model_kernel *const kernels[] = {
    &rows_kernel, &block_rows_kernel, &short_rows_kernel, &join_rows_kernel, FEW_ROWS_KERNEL, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
