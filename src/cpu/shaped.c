/*
 * shaped.c - reductions in parts on the CPU: chooses the way that suits a shape.
 */
#include "base/status.h"
#include "base/types.h"
#include "cpu/across.h"
#include "cpu/columns.h"
#include "cpu/groups.h"
#include "cpu/kernels.h"
#include "cpu/masked.h"
#include "cpu/rows.h"
#include "cpu/segmented.h"
#include "cpu/tuning.h"
#include "cpu/vectors.h"
#include "device/vectors.h"

#include <stdlib.h>

/* ---- Offsets -------------------------------------------------------------------------------- */

struct offsets_job {
    const struct shaped *s;
    const struct column_kernels *k;
    size_t bad; /* the first offset that falls or lies outside; SIZE_MAX: none */
};

static void offsets_task(void *context, size_t task, unsigned worker) {
    struct offsets_job *job = context;
    const struct shaped *s = job->s;
    size_t first = task * OFFSETS_TASK, last = first + OFFSETS_TASK;
    (void)worker;
    if (last > s->count + 1) last = s->count + 1;
    /* Where no offset falls, all lie inside if the first and the last do. */
    const size_t size = type_size(s->offsets_type), before = first > 0 ? first - 1 : 0;
    const char *offsets = s->offsets;
    size_t i = first;
    if (!job->k->falls[size](offsets + before * size, last - before) &&
        offset_at(offsets, s->offsets_type, before) >= 0 &&
        (uint64_t)offset_at(offsets, s->offsets_type, last - 1) <= s->n)
        return;
    for (; i < last; i++) {
        const int64_t at = offset_at(s->offsets, s->offsets_type, i);
        if (at < 0 || (uint64_t)at > s->n ||
            (i > 0 && at < offset_at(s->offsets, s->offsets_type, i - 1)))
            break;
    }
    size_t known = __atomic_load_n(&job->bad, __ATOMIC_RELAXED);
    while (
        i < known && i < last &&
        !__atomic_compare_exchange_n(&job->bad, &known, i, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static tally_status check_offsets(struct cpu_device *d, const struct shaped *s) {
    struct offsets_job job = {s, d->kernels->columns, SIZE_MAX};
    const size_t count = s->count + 1;
    const tally_status shared = cpu_share(
        d, count * 8, count / OFFSETS_TASK + (count % OFFSETS_TASK != 0), offsets_task, &job);
    if (shared != TALLY_OK) return shared;
    return job.bad == SIZE_MAX ? TALLY_OK : shape_bad_offset(s, job.bad);
}

/* ---- The call ------------------------------------------------------------------------------- */

tally_status cpu_parts(struct cpu_device *d, const struct shaped *s, struct absence *absence) {
    struct rows rows = {.s = s};
    unsigned char *todo = NULL;
    tally_status status = TALLY_OK;
    int done = 0;
    if (s->cut == TALLY_SEGMENTS) {
        rows.start = s->offsets;
        rows.start_type = s->offsets_type;
        rows.x = s->x;
        rows.y = s->y;
        rows.mask = s->mask;
    }
    if (s->mask)
        done = cpu_masked(d, s, &todo, &status);
    else if (s->cut == TALLY_SEGMENTS)
        done = cpu_segments(d, s, &todo, absence, &status);
    else
        done = cpu_across(d, s, &todo, absence, &status);
    rows.only = todo;
    if (status == TALLY_OK && (!done || todo)) status = cpu_rows(d, &rows, absence);
    free(todo);
    return status;
}

tally_status cpu_shaped(tally_device *device, const struct shaped *s) {
    struct cpu_device *d = (struct cpu_device *)device;
    struct absence absence = {.number = UINT64_MAX};
    tally_status status = TALLY_OK;
    if (s->cut != TALLY_AXES && !shape_is_flat(s)) {
        if (!cpu_takes_vectors(s)) return shaped_by_vectors(device, s);
        if (s->vectors == 0 || (s->results == 0 && s->cut == TALLY_SEGMENTS)) return TALLY_OK;
        if (s->cut == TALLY_SEGMENTS) status = check_offsets(d, s);
        if (status == TALLY_OK) status = cpu_vectors(d, s, &absence);
        return status == TALLY_OK ? shaped_outcome(s->p, &absence) : status;
    }
    if (s->results == 0 && s->cut != TALLY_GROUPS) return TALLY_OK;
    if (s->cut == TALLY_GROUPS)
        status = cpu_groups(d, s, &absence);
    else {
        if (s->cut == TALLY_SEGMENTS) status = check_offsets(d, s);
        if (status == TALLY_OK) status = cpu_parts(d, s, &absence);
    }
    return status == TALLY_OK ? shaped_outcome(s->p, &absence) : status;
}
