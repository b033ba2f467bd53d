/*
 * recipe.h - which kernel file, with which defines, folds a part of a problem; and what is asked of its
 * kernels.
 */
#ifndef TALLY_GPU_RECIPE_H
#define TALLY_GPU_RECIPE_H

#include "gpu/gpu.h"
#include "problem.h"

/* Compiles what folds a part of the problem, for blocks of `block` threads. TALLY_EUNSUPPORTED where the
 * device cannot do it. */
tally_status recipe_build(const struct gpu_api *api, struct gpu *gpu, unsigned block,
                          const struct problem *p, enum part part, struct gpu_program **out);

/* Whether the kernel of the problem's only part can give the problem's only value. */
int recipe_gives_value(const struct problem *p);
/* The request (kernels/request.h) for that value. */
uint32_t recipe_request(const struct problem *p);

#endif
