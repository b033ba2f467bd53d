/*
 * gpu_read.c - the plain read kernels, compiled for the model with its instrumentation.
 */
#include "model/gpu.h"

#include "kernels/read.cu"

#include "model/lane.h"

MODEL_KERNEL3(read_all, const pack *, u64, u32 *);
MODEL_KERNEL3(read_pieces, const pack *, u64, u32 *);

const model_kernel *const model_read_kernels[MODEL_READ_KERNELS] = {&read_all_kernel,
                                                                    &read_pieces_kernel};
