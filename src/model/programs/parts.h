/*
 * parts.h - the model's program of parts.cu. It stands behind that text; the build defines PROGRAM
 * and PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL8(fold, const u8 *, const u8 *, const u8 *, const u8 *, const u64 *, u64 *, u8 *,
              parts_plan);
MODEL_KERNEL5(join, const u8 *, const u64 *, u64 *, u8 *, parts_plan);
MODEL_KERNEL3(check, const u8 *, u64 *, parts_plan);
MODEL_KERNEL6(starts, const u8 *, const u8 *, u64 *, u64, u64, parts_plan);
MODEL_KERNEL5(gather, const u8 *, const u8 *, u64 *, u64, parts_plan);
MODEL_KERNEL6(quick, const u8 *, const u8 *, const u8 *, u64 *, u8 *, parts_plan);
MODEL_KERNEL6(few, const u8 *, const u8 *, const u8 *, const u64 *, u8 *, parts_plan);
MODEL_KERNEL2(report, const u64 *, u64 *);

static const model_kernel *const kernels[] = {&fold_kernel,   &join_kernel,   &check_kernel,
                                              &starts_kernel, &gather_kernel, &report_kernel,
                                              &quick_kernel,  &few_kernel,    NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
