/*
 * fold.h - the model's program of a kernel file with `reduce`, and perhaps `alone`. It stands behind that text; the
 * build defines PROGRAM and PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL9(reduce, const element *, const element *, u64, u64, u64 *, u64 *, u64, u32, u64 *);

#if defined(HAS_ALONE)
MODEL_KERNEL9(alone, const element *, const element *, u64, u64, u64 *, u64 *, u64, u32, u64 *);
#endif

static const model_kernel *const kernels[] = {&reduce_kernel,
#if defined(HAS_ALONE)
                                              &alone_kernel,
#endif
                                              NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
