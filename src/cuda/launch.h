/*
 * launch.h - one kernel, put on the queue of a struct gpu.
 */
#ifndef TALLY_CUDA_LAUNCH_H
#define TALLY_CUDA_LAUNCH_H

#include "cuda/context.h"

/* Launches a kernel; parameters[i] points at its i-th argument. The context is current. */
CUresult launch_kernel(struct gpu *gpu, const struct gpu_kernel *kernel, unsigned grid,
                       unsigned block, void **parameters);

/* Returns whether a caller captures a stream; true if the driver does not say. The context is current. */
bool launch_is_captured(CUstream queue);

#endif
