/*
 * fold.h - after a kernel file with `reduce`: its program for the model. PROGRAM and PROGRAM_NAME are
 * the build's.
 */
#include "gpu/simulated/programs.h"

#include "model/lane.h"

MODEL_KERNEL8(reduce, const element *, const element *, u64, u64, u64 *, u64, u32, u64 *);

extern const struct simulated_program PROGRAM;
const struct simulated_program PROGRAM = {PROGRAM_NAME, {&reduce_kernel, NULL}};
