/*
 * read.h - the model's program of read.cu. It stands behind that text; the build defines PROGRAM
 * and PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL3(read_all, const pack *, u64, u32 *);
MODEL_KERNEL3(read_pieces, const pack *, u64, u32 *);

static const model_kernel *const kernels[] = {&read_all_kernel, &read_pieces_kernel, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
