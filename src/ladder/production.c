/*
 * production.c - the one place where the ladder meets the production reductions on GPUs.
 */
#include "ladder/production.h"

#include "gpu/reduce_buffer.h"

bool production_has(const struct gpu_api *api, tally_op op, tally_type type) {
    const tally_problem problem = {.op = op, .type = type};
    struct problem plan;
    (void)api;
    return problem_plan(&problem, &plan) == TALLY_OK;
}

tally_status production_reduce(const struct gpu_api *api, struct gpu *gpu, tally_op op,
                               tally_type type, struct gpu_memory *x, size_t n, tally_value *out,
                               double *seconds) {
    const tally_problem problem = {.op = op, .type = type};
    struct problem plan;
    tally_status s = problem_plan(&problem, &plan);
    if (s == TALLY_OK && n > 0) return gpu_reduce_buffer(api, gpu, &plan, x, n, out, seconds);
    if (s == TALLY_OK) s = tally_reduce(NULL, &problem, NULL, NULL, 0, out);
    if (s == TALLY_OK) *seconds = 0;
    return s;
}
