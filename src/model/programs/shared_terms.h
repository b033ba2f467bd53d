/*
 * shared_terms.h - the model's program of shared_terms.cu. It stands behind that text; the build defines PROGRAM and
 * PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL4(rank_barrier, u64 *, shared_terms_plan, u32, u64 *);
MODEL_KERNEL3(add_up, terms_plan, shared_terms_plan, const u64 *);

static const model_kernel *const kernels[] = {&rank_barrier_kernel, &add_up_kernel, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
