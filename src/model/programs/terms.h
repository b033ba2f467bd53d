/*
 * terms.h - the model's program of terms.cu. It stands behind that text; the build defines PROGRAM
 * and PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL3(bounds, const u8 *, terms_plan, i32 *);
MODEL_KERNEL3(rows, const i32 *, terms_plan, u64 *);
MODEL_KERNEL3(offsets, const i32 *, terms_plan, u64 *);
MODEL_KERNEL6(words, const u8 *, const i32 *, const u64 *, terms_plan, u8 *, u8 *);
MODEL_KERNEL8(values, const u8 *, const u8 *, const u8 *, const i32 *, const u64 *, terms_plan,
              u8 *, u64 *);

static const model_kernel *const kernels[] = {&bounds_kernel, &rows_kernel,   &offsets_kernel,
                                              &words_kernel,  &values_kernel, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
