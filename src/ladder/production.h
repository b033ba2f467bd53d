/*
 * production.h - the top rung on a GPU: its production reduction.
 */
#ifndef TALLY_LADDER_PRODUCTION_H
#define TALLY_LADDER_PRODUCTION_H

#include "gpu/gpu.h"

#include <stdbool.h>

/* Returns whether the machine has a production reduction for this operator and type. */
bool production_has(const struct gpu_api *api, tally_op op, tally_type type);

/* Reduces n elements that lie in the GPU's memory to *out; *seconds is the device's time, 0 for no elements. Only
 * where production_has() says so. */
tally_status production_reduce(const struct gpu_api *api, struct gpu *gpu, tally_op op,
                               tally_type type, struct gpu_memory *x, size_t n, tally_value *out,
                               double *seconds);

#endif
