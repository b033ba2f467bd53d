/*
 * lower.h - after lower.cu: its program for the model.
 */
#include "gpu/simulated/programs.h"

#include "model/lane.h"

MODEL_KERNEL3(lower, const u64 *, lower_plan, u64 *);

extern const struct simulated_program PROGRAM;
const struct simulated_program PROGRAM = {PROGRAM_NAME, {&lower_kernel, NULL}};
