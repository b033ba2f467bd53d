/*
 * gpu_read.c - the plain read kernel, compiled for the model with its instrumentation.
 */
#include "model/gpu.h"

#include "kernels/read.cu"

#include "model/lane.h"

MODEL_KERNEL3(read_all, const pack *, u64, u32 *);

const model_kernel *const model_read_kernel = &read_all_kernel;
