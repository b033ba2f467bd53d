/*
 * roof.c - measures the read roof by plain read kernels, in grids of several sizes.
 *
 * A grid that suits one device is many times slower on another. So each kernel first runs once in each grid, a look,
 * and only the reads whose look came near the fastest one are timed. A kernel whose first look is far behind
 * is not looked at in other grids.
 */
#include "gpu/roof.h"

#include "gpu/timing.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { BLOCK = 256, BLOCKS_MAX = 32 };
static const unsigned blocks_per_unit[] = {1, 4, 8, BLOCKS_MAX};
static const char *const kernels[] = {"read_all", "read_pieces"};
enum {
    GRIDS = sizeof blocks_per_unit / sizeof *blocks_per_unit,
    KERNELS = sizeof kernels / sizeof *kernels
};
static const double far_behind = 2; /* times the fastest look: the kernel is given up */
static const double near = 1.25;    /* times the fastest look: the read is timed */

struct read {
    const struct gpu_api *api;
    struct gpu *gpu;
    struct gpu_kernel *kernel[KERNELS];
    struct gpu_memory *from, *out;
    uint64_t packs; /* of 16 bytes */
    unsigned units; /* at least 1 */
    unsigned block;
    unsigned which, grid; /* indices of the kernel and the grid that read_once() runs */
};

static tally_status read_once(void *context, double *seconds) {
    const struct read *r = context;
    const unsigned grid = r->units * blocks_per_unit[r->grid];
    const struct gpu_argument arguments[] = {
        {.memory = r->from}, {.size = sizeof r->packs, .value = &r->packs}, {.memory = r->out}};
    tally_status status = r->api->mark(r->gpu, 0);
    if (status == TALLY_OK)
        status = r->api->launch(r->gpu, r->kernel[r->which], grid, r->block, arguments, 3);
    if (status == TALLY_OK) status = r->api->mark(r->gpu, 1);
    return status == TALLY_OK ? r->api->elapsed(r->gpu, seconds) : status;
}

/* Runs kernel r->which once in each grid, and notes the times in look[]; *best is the shortest so
 * far. An extra run comes first, for a driver's one-time work such as compiling. */
static tally_status look(struct read *r, double look[GRIDS], double *best) {
    tally_status status = TALLY_OK;
    for (unsigned i = 0; i < GRIDS; i++)
        look[i] = (double)INFINITY;
    for (r->grid = 0; r->grid < GRIDS && status == TALLY_OK; r->grid++) {
        if (r->grid == 0) status = read_once(r, &look[0]);
        if (status == TALLY_OK) status = read_once(r, &look[r->grid]);
        if (look[r->grid] < *best) *best = look[r->grid];
        if (r->grid == 0 && look[0] > far_behind * *best) break;
    }
    return status;
}

/* Makes *seconds the shortest median of the reads that come near the fastest. */
static tally_status time_all(struct read *r, double *seconds) {
    double looks[KERNELS][GRIDS], best = (double)INFINITY, median;
    const unsigned first = r->api->facts(r->gpu)->is_cpu; /* the kernel that is likely the faster */
    tally_status status = TALLY_OK;
    for (unsigned i = 0; i < KERNELS && status == TALLY_OK; i++) {
        r->which = (first + i) % KERNELS;
        status = look(r, looks[r->which], &best);
    }
    *seconds = (double)INFINITY;
    for (r->which = 0; r->which < KERNELS; r->which++)
        for (r->grid = 0; r->grid < GRIDS && status == TALLY_OK; r->grid++) {
            if (!(looks[r->which][r->grid] <= near * best)) continue;
            status = time_median(read_once, r, &median);
            if (status == TALLY_OK && median < *seconds) *seconds = median;
        }
    return status;
}

static tally_status build(struct read *r) {
    struct gpu_program *program;
    tally_status status = r->api->build(r->gpu, "read.cu", NULL, NULL, 0, &program);
    for (size_t i = 0; i < KERNELS && status == TALLY_OK; i++)
        status = r->api->kernel(r->gpu, program, kernels[i], &r->kernel[i]);
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
    status = build(&r);
    if (status == TALLY_OK) status = time_all(&r, seconds);
    api->release(gpu, r.out);
    return status;
}
