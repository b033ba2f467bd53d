/*
 * reduce_buffer.h - the production reduction of an array that lies in a GPU's memory, for code that has opened a
 * struct gpu itself: the ladder's top rung.
 */
#ifndef TALLY_GPU_REDUCE_BUFFER_H
#define TALLY_GPU_REDUCE_BUFFER_H

#include "gpu/gpu.h"
#include "problem/problem.h"

/* Reduces the n > 0 elements at the start of x to the values of a problem for which whole_gives_values(), and
 * waits for them; *seconds is the device's time for the launches. Fails as tally_reduce() does. */
tally_status gpu_reduce_buffer(const struct gpu_api *api, struct gpu *gpu, const struct problem *p,
                               struct gpu_memory *x, size_t n, tally_value *out, double *seconds);

#endif
