/*
 * recipe.h - which kernel file, with which defines, does a reduction; and what is asked of its kernels.
 */
#ifndef TALLY_GPU_RECIPE_H
#define TALLY_GPU_RECIPE_H

#include "gpu/gpu.h"
#include "partial.h"

/* Compiles what a reduction needs, for blocks of `block` threads. TALLY_EUNSUPPORTED where the device
 * cannot do it. */
tally_status recipe_build(const struct gpu_api *api, struct gpu *gpu, unsigned block,
                          const struct reduction *r, struct gpu_program **out);

/* The request (kernels/request.h) for the reduction's value. */
uint32_t recipe_request(const struct reduction *r);

#endif
