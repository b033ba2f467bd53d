/*
 * roof.h - how fast a GPU can read an array at all.
 */
#ifndef TALLY_GPU_ROOF_H
#define TALLY_GPU_ROOF_H

#include "gpu/gpu.h"

/* Reads bytes[0..size) of the memory with each plain read kernel of read.cu, in grids of several
 * sizes; *seconds is the shortest of their medians. */
tally_status roof_measure(const struct gpu_api *api, struct gpu *gpu, struct gpu_memory *memory,
                          size_t size, double *seconds);

#endif
