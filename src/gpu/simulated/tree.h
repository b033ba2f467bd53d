/*
 * tree.h - after tree.cu: its program for the model.
 */
#include "gpu/simulated/programs.h"

#include "model/lane.h"

MODEL_KERNEL7(leaves, const element *, u64, accumulator *, u64, u64, u32, u64 *);
MODEL_KERNEL7(nodes, accumulator *, u64, u64, u32, u64, u32, u64 *);

extern const struct simulated_program PROGRAM;
const struct simulated_program PROGRAM = {PROGRAM_NAME, {&leaves_kernel, &nodes_kernel}};
