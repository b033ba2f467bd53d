/*
 * tree.h - after tree.cu: its program for the model.
 */
#include "gpu/simulated/programs.h"

#include "model/lane.h"

MODEL_KERNEL3(leaves, const element *, u64, accumulator *);
MODEL_KERNEL4(nodes, const accumulator *, u64, u32, accumulator *);

extern const struct simulated_program PROGRAM;
const struct simulated_program PROGRAM = {PROGRAM_NAME, {&leaves_kernel, &nodes_kernel}};
