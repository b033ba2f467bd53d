/*
 * tree.h - the model's program of tree.cu. It stands behind that text; the build defines PROGRAM
 * and PROGRAM_NAME.
 */
#include "model/programs/programs.h"

MODEL_KERNEL7(leaves, const element *, u64, accumulator *, u64, u64, u32, u64 *);
MODEL_KERNEL7(nodes, accumulator *, u64, u64, u32, u64, u32, u64 *);
MODEL_KERNEL5(part_leaves, const element *, const u8 *, accumulator *, const u64 *,
              part_leaves_plan);
MODEL_KERNEL4(part_nodes, const u8 *, accumulator *, const u64 *, part_leaves_plan);

static const model_kernel *const kernels[] = {&leaves_kernel, &nodes_kernel, &part_leaves_kernel,
                                              &part_nodes_kernel, NULL};
extern const struct model_program PROGRAM;
const struct model_program PROGRAM = {PROGRAM_NAME, kernels};
