/* cpu/groups.c - see groups.h. */
#include "cpu/groups.h"

#include "cpu/rows.h"
#include "status.h"
#include "types.h"

#include <stdlib.h>
#include <string.h>

/* Elements whose groups are counted before threads are asked to help. */
#define PART_MIN ((size_t)1 << 16)

struct sort_job {
    const struct shaped *s;
    size_t parts, part; /* how many, and the elements of each but the last */
    int64_t *count;     /* [parts][groups]: how many elements, then where the next one goes */
    size_t *bad;        /* [parts]: the first id that is wrong; SIZE_MAX */
    size_t *fall;       /* [parts]: the first id below the one before it, or that is not there */
    char *x, *y;
    uint64_t *position;
    size_t element;
};

static size_t part_end(const struct sort_job *job, size_t part) {
    return part + 1 == job->parts ? job->s->n : (part + 1) * job->part;
}

static void count_task(void *context, size_t part, unsigned worker) {
    struct sort_job *job = context;
    const struct shaped *s = job->s;
    const size_t groups = s->results, begin = part * job->part, end = part_end(job, part);
    int64_t *count = job->count + part * groups;
    size_t bad = SIZE_MAX, fall = SIZE_MAX;
    (void)worker;
    memset(count, 0, groups * sizeof *count);
    uint64_t before = begin > 0 ? id_at(s->ids, s->ids_type, begin - 1) : 0;
    for (size_t i = begin; i < end; i++) {
        const uint64_t id = id_at(s->ids, s->ids_type, i);
        if (fall == SIZE_MAX && (id < before || id >= groups || (s->mask && !s->mask[i]))) fall = i;
        before = id;
        if (s->mask && !s->mask[i]) continue;
        if (id < groups)
            count[id]++;
        else if (!s->skip_outside && bad == SIZE_MAX)
            bad = i;
    }
    job->bad[part] = bad;
    job->fall[part] = fall;
}

#define SCATTER(type)                                                                              \
    do {                                                                                           \
        type *to = (type *)(void *)job->x;                                                         \
        for (size_t i = begin; i < end; i++) {                                                     \
            const uint64_t id = id_at(s->ids, s->ids_type, i);                                     \
            if ((s->mask && !s->mask[i]) || id >= groups) continue;                                \
            const int64_t at = next[id]++;                                                         \
            memcpy(to + at, s->x + i * sizeof(type), sizeof(type));                                \
            if (job->y)                                                                            \
                memcpy((type *)(void *)job->y + at, s->y + i * sizeof(type), sizeof(type));        \
            if (job->position) job->position[at] = i;                                              \
        }                                                                                          \
    } while (0)

static void scatter_task(void *context, size_t part, unsigned worker) {
    struct sort_job *job = context;
    const struct shaped *s = job->s;
    const size_t groups = s->results, begin = part * job->part, end = part_end(job, part);
    int64_t *next = job->count + part * groups;
    (void)worker;
    switch (job->element) {
    case 1:
        SCATTER(uint8_t);
        break;
    case 2:
        SCATTER(uint16_t);
        break;
    case 4:
        SCATTER(uint32_t);
        break;
    default:
        SCATTER(uint64_t);
    }
}

/* The first element that something is wrong with. */
static size_t first_of(const size_t *found, size_t parts) {
    for (size_t i = 0; i < parts; i++)
        if (found[i] != SIZE_MAX) return found[i];
    return SIZE_MAX;
}

static tally_status no_memory(void) {
    return fail(TALLY_ENOMEM, "no memory to bring elements into the order of their groups");
}

/* Where each group begins, and where each part's elements of it go. */
static void place_groups(struct sort_job *job, int64_t *start) {
    const size_t groups = job->s->results;
    int64_t at = 0;
    for (size_t g = 0; g < groups; g++) {
        start[g] = at;
        for (size_t p = 0; p < job->parts; p++) {
            const int64_t n = job->count[p * groups + g];
            job->count[p * groups + g] = at;
            at += n;
        }
    }
    start[groups] = at;
}

static tally_status sort(struct cpu_device *d, struct sort_job *job, struct sorted *out) {
    const struct shaped *s = job->s;
    const size_t id_bytes = s->n * type_size(s->ids_type);
    const int index = (s->p->extremes & WANT_INDEX) != 0;
    cpu_share(d, id_bytes, job->parts, count_task, job);
    const size_t bad = first_of(job->bad, job->parts), fall = first_of(job->fall, job->parts);
    if (bad != SIZE_MAX) return shape_bad_id(s, bad);
    if (s->sorted && fall != SIZE_MAX && !s->skip_outside && !s->mask) return shape_bad_id(s, fall);
    place_groups(job, out->start);
    if (fall == SIZE_MAX) { /* they come so */
        out->x = s->x;
        out->y = s->y;
        return TALLY_OK;
    }
    const size_t bytes = (size_t)out->start[s->results] * job->element,
                 room = (bytes + 63) / 64 * 64;
    out->owned = aligned_alloc(64, (s->y ? 2 : 1) * room + 64);
    if (index) out->position = malloc((size_t)out->start[s->results] * sizeof(uint64_t) + 1);
    if (!out->owned || (index && !out->position)) return no_memory();
    out->x = job->x = out->owned;
    out->y = job->y = s->y ? job->x + room : NULL;
    job->position = out->position;
    cpu_share(d, s->n * job->element, job->parts, scatter_task, job);
    return TALLY_OK;
}

tally_status cpu_sort(tally_device *device, const struct shaped *s, struct sorted *out) {
    struct cpu_device *d = (struct cpu_device *)device;
    struct sort_job job = {.s = s, .parts = 1, .element = type_size(s->p->type)};
    if (d->threads > 1 && s->n / PART_MIN > 1 && s->results <= s->n / 4)
        job.parts = s->n / PART_MIN < d->threads ? s->n / PART_MIN : d->threads;
    job.part = s->n / job.parts;
    *out = (struct sorted){.start = malloc((s->results + 1) * sizeof *out->start)};
    job.count = malloc(job.parts * s->results * sizeof *job.count + 1);
    job.bad = malloc(2 * job.parts * sizeof *job.bad);
    job.fall = job.bad + job.parts;
    tally_status status = out->start && job.count && job.bad ? sort(d, &job, out) : no_memory();
    free(job.count);
    free(job.bad);
    if (status != TALLY_OK) sorted_free(out);
    return status;
}

tally_status cpu_groups(struct cpu_device *d, const struct shaped *s, struct absence *absence) {
    struct sorted sorted;
    struct shaped segments = *s;
    tally_status status = cpu_sort(&d->base, s, &sorted);
    if (status != TALLY_OK) return status;
    segments.cut = TALLY_SEGMENTS;
    segments.mask = NULL; /* the others are gone */
    segments.offsets = sorted.start;
    segments.offsets_type = TALLY_I64;
    const struct rows rows = {.s = &segments,
                              .start = sorted.start,
                              .start_type = TALLY_I64,
                              .x = sorted.x,
                              .y = sorted.y,
                              .absolute = 1,
                              .position = sorted.position};
    status = cpu_rows(d, &rows, absence);
    sorted_free(&sorted);
    return status;
}
