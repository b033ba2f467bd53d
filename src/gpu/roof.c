/*
 * roof.c - the plain reads, with as few and as many threads as different devices like.
 */
#include "gpu/roof.h"

#include "gpu/timing.h"

#include <math.h>
#include <stdint.h>

enum { BLOCK = 256, BLOCKS_MAX = 32 };
static const unsigned blocks_per_unit[] = {1, 4, 8, BLOCKS_MAX};
static const char *const kernels[] = {"read_all", "read_pieces"};

struct read {
    const struct gpu_api *api;
    struct gpu *gpu;
    struct gpu_kernel *kernel;
    struct gpu_memory *from, *out;
    uint64_t packs; /* of 16 bytes */
    unsigned units; /* at least 1 */
    unsigned grid, block;
};

static tally_status read_once(void *context, double *seconds) {
    const struct read *r = context;
    const struct gpu_argument arguments[] = {
        {.memory = r->from}, {.size = sizeof r->packs, .value = &r->packs}, {.memory = r->out}};
    tally_status status = r->api->mark(r->gpu, 0);
    if (status == TALLY_OK)
        status = r->api->launch(r->gpu, r->kernel, r->grid, r->block, arguments, 3);
    if (status == TALLY_OK) status = r->api->mark(r->gpu, 1);
    return status == TALLY_OK ? r->api->elapsed(r->gpu, seconds) : status;
}

/* Lowers *seconds to what the best grid takes, if that is less. */
static tally_status best_grid(struct read *r, double *seconds) {
    for (size_t i = 0; i < sizeof blocks_per_unit / sizeof *blocks_per_unit; i++) {
        double median;
        r->grid = r->units * blocks_per_unit[i];
        tally_status status = time_median(read_once, r, &median);
        if (status != TALLY_OK) return status;
        if (median < *seconds) *seconds = median;
    }
    return TALLY_OK;
}

static tally_status best_kernel(struct read *r, double *seconds) {
    struct gpu_program *program;
    tally_status status = r->api->build(r->gpu, "read.cu", NULL, NULL, 0, &program);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels && status == TALLY_OK; i++) {
        status = r->api->kernel(r->gpu, program, kernels[i], &r->kernel);
        if (status == TALLY_OK) status = best_grid(r, seconds);
    }
    return status;
}

tally_status roof_measure(const struct gpu_api *api, struct gpu *gpu, struct gpu_memory *memory,
                          size_t size, double *seconds) {
    const struct gpu_facts *facts = api->facts(gpu);
    struct read r = {.api = api,
                     .gpu = gpu,
                     .from = memory,
                     .packs = size / 16,
                     .units = facts->units ? facts->units : 1,
                     .block = facts->block_max < BLOCK ? facts->block_max : BLOCK};
    tally_status status =
        api->allocate(gpu, sizeof(uint32_t) * r.units * BLOCKS_MAX * r.block, &r.out);
    if (status != TALLY_OK) return status;
    *seconds = (double)INFINITY;
    status = best_kernel(&r, seconds);
    api->release(gpu, r.out);
    return status;
}
