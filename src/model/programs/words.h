/*
 * words.h - the model's program of words.cu. It stands behind that text; the build defines PROGRAM
 * and PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL5(pack, u64 *, words_plan, u64 *, u64 *, u64 *);
MODEL_KERNEL5(settle, const u64 *, const u64 *, const i64 *, words_plan, u64 *);

MODEL_KERNEL5(allreduce, u64 *, words_plan, u64 *, u64 *, u64 *);
MODEL_KERNEL6(allreduce_few, const u8 *, u64 *, words_plan, u64 *, u64 *, u64 *);

static const model_kernel *const kernels[] = {&pack_kernel, &settle_kernel, &allreduce_kernel,
                                              &allreduce_few_kernel, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
