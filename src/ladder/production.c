/*
 * production.c - the one place where the ladder meets the production reductions on GPUs.
 *
 * There is none yet: the rung `tally` runs on the CPU only. Where one comes, these two functions say so
 * and call it, and every table gains its row.
 */
#include "ladder/production.h"

#include "status.h"

bool production_has(const struct gpu_api *api, tally_op op, tally_type type) {
    (void)api, (void)op, (void)type;
    return false;
}

tally_status production_reduce(const struct gpu_api *api, struct gpu *gpu, tally_op op,
                               tally_type type, struct gpu_memory *x, size_t n, tally_value *out,
                               double *seconds, unsigned *launches) {
    (void)gpu, (void)op, (void)type, (void)x, (void)n, (void)out, (void)seconds, (void)launches;
    return fail(TALLY_EUNSUPPORTED, "%s has no production reduction", api->name);
}
