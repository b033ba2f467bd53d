/*
 * production.c - the one place where the ladder meets the production reductions on GPUs.
 */
#include "ladder/production.h"

#include "gpu/piece.h"

bool production_has(const struct gpu_api *api, tally_op op, tally_type type) {
    struct reduction plan;
    (void)api;
    return reduction_plan(op, type, NULL, &plan) == TALLY_OK;
}

tally_status production_reduce(const struct gpu_api *api, struct gpu *gpu, tally_op op,
                               tally_type type, struct gpu_memory *x, size_t n, tally_value *out,
                               double *seconds) {
    struct reduction plan;
    tally_status s = reduction_plan(op, type, NULL, &plan);
    if (s == TALLY_OK && n > 0) return gpu_reduce_piece(api, gpu, &plan, x, n, out, seconds);
    if (s == TALLY_OK) s = tally_reduce(NULL, op, type, NULL, 0, NULL, out);
    if (s == TALLY_OK) *seconds = 0;
    return s;
}
