/* part_kernels.c - see part_kernels.h. */
#include "gpu/part_kernels.h"
#include "gpu/programs.h"

#include "base/status.h"

#include <string.h>

static const char *const names[PARTS_KERNELS] = {
    [PART_FOLD] = "fold",     [PART_JOIN] = "join",     [PART_CHECK] = "check",
    [PART_STARTS] = "starts", [PART_GATHER] = "gather", [PART_REPORT] = "report",
    [PART_QUICK] = "quick",   [PART_FEW] = "few"};

tally_status part_kernels_find(struct queue *queue) {
    struct gpu_program *program = NULL;
    if (queue->part[0]) return TALLY_OK;
    if (!queue->facts->doubles)
        return fail(TALLY_EUNSUPPORTED, "%s has no f64 arithmetic", queue->facts->name);
    if (!queue->facts->atomics64)
        return fail(TALLY_EUNSUPPORTED, "%s has no 64-bit atomics", queue->facts->name);
    struct gpu_kernel *found[PARTS_KERNELS] = {0};
    tally_status s = program_build_plain(queue, "parts.cu", &program);
    if (s == TALLY_OK) s = program_find(queue, program, names, PARTS_KERNELS, found);
    if (s == TALLY_OK) memcpy(queue->part, found, sizeof found);
    return s;
}

tally_status part_launch(struct queue *queue, enum part_kernel kernel, unsigned grid,
                         const struct gpu_argument *arguments, size_t count) {
    return queue->api->launch(queue->gpu, queue->part[kernel], grid, queue->block, arguments,
                              count);
}
