/*
 * roof.h - the read roof: the time in which a GPU can read an array and do nothing else.
 */
#ifndef TALLY_GPU_ROOF_H
#define TALLY_GPU_ROOF_H

#include "gpu/gpu.h"

/* Reads the first `size` bytes of a buffer with each plain read kernel of kernels/read.cu, in grids
 * of several sizes; *seconds is the shortest of their medians, in the device's time. */
tally_status roof_measure(const struct gpu_api *api, struct gpu *gpu, struct gpu_memory *memory,
                          size_t size, double *seconds);

#endif
