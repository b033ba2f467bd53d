/*
 * read.h - after read.cu: its program for the model. PROGRAM and PROGRAM_NAME are the build's.
 */
#include "model/programs/programs.h"

MODEL_KERNEL3(read_all, const pack *, u64, u32 *);
MODEL_KERNEL3(read_pieces, const pack *, u64, u32 *);

static const model_kernel *const kernels[] = {&read_all_kernel, &read_pieces_kernel, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
