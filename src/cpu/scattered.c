/*
 * cpu/scattered.c - see scattered.h.
 *
 * Each worker has a share of the rows, in their order, and columns of its own for all groups, one group behind another.
 * Then tasks of some groups each merge these columns, and lower them. (Workers that share the columns take three times as
 * long: they read pieces of rows.)
 *
 * Groups have whole steps of columns, as kernels are slow at parts of one: the elements behind a row, which are those of its
 * neighbour, are added to columns that nobody lowers. Only where the array ends a row's own are taken alone; if they are a
 * group's first, all its columns are cleared before.
 */
#include "cpu/scattered.h"

#include "base/paths.h"
#include "base/status.h"
#include "base/types.h"
#include "cpu/rows.h"
#include "device/vectors.h"

#include <stdlib.h>
#include <string.h>

/* A worker's part of the result: the columns that it adds rows to, and how many rows of each group it has added. */
struct share {
    uint64_t *planes;
    uint32_t *count;
};

struct scatter_job {
    const struct scattered *r;
    size_t width, unit, stride; /* columns of a row, of a group, and of all groups */
    const char *x_end, *y_end;  /* where the arrays end */
    size_t shares, rows;        /* and the rows of each but the last */
    size_t groups;              /* of a task that lowers */
    struct share *share;        /* [shares] */
    int outside;                /* an id is outside of all groups */
};

/* ---- Adding --------------------------------------------------------------------------------- */

/* Returns whether whole steps of rows, from the one at `at` to the one at `last`, which are equally far apart, lie in their
 * array. */
static int has_steps(const struct scatter_job *job, const char *at, const char *last,
                     const char *end) {
    const size_t bytes = job->unit * job->r->a->element;
    return !at || ((size_t)(end - at) >= bytes && (size_t)(end - last) >= bytes);
}

/* A form of the problem, and a share's columns of it. */
struct adder {
    const struct column_form *form;
    char *columns;
};

static size_t find_adders(const struct blocks *a, const struct share *to, size_t stride,
                          struct adder *adders) {
    size_t count = 0;
    for_forms(f, a) adders[count++] =
        (struct adder){form_of(a, f), (char *)(to->planes + a->plane_of[f] * stride)};
    return count;
}

/* Adds rows to `width` columns of a group's `unit`, which are those from `at` on. (With one or few rows a call, it matters that
 * forms have been looked up before, which block_add_rows() does anew.) */
static void add_to_group(const struct adder *adders, size_t count, size_t stride, size_t at,
                         const struct column_rows *in, size_t width, size_t unit) {
    for (size_t k = 0; k < count; k++) {
        const struct column_form *form = adders[k].form;
        uint64_t *columns = (uint64_t *)(void *)(adders[k].columns + at * form->lane);
        if (in->starts && (!form->starts || width < unit))
            form->clear(columns, stride, unit, in->first);
        form->add(columns, stride, in, width);
    }
}

static void add_share(void *context, size_t nth, unsigned worker) {
    struct scatter_job *job = context;
    const struct scattered *r = job->r;
    const struct shaped *s = r->s;
    struct blocks *a = r->a;
    const struct share *to = &job->share[nth];
    const size_t begin = nth * job->rows, end = nth + 1 == job->shares ? s->n : begin + job->rows;
    struct adder adders[FORMS];
    const size_t forms = find_adders(a, to, job->stride, adders);
    memset(to->count, 0, s->count * sizeof *to->count);
    uint64_t id, next = begin < end ? id_at(s->ids, s->ids_type, begin) : 0;
    for (size_t rows, i = begin; i < end; i += rows) {
        const size_t most = end - i < SCATTERED_RUN ? end - i : SCATTERED_RUN;
        id = next;
        for (rows = 1; i + rows < end; rows++) {
            next = id_at(s->ids, s->ids_type, i + rows);
            if (next != id || rows == most) break;
        }
        if (block_halts(a, &a->workers[worker], rows * job->width) ||
            __atomic_load_n(&job->outside, __ATOMIC_RELAXED))
            return;
        if (id >= s->count) {
            if (s->skip_outside) continue;
            __atomic_store_n(&job->outside, 1, __ATOMIC_RELAXED);
            return;
        }
        const char *x = s->x + (ptrdiff_t)i * r->x_row,
                   *y = s->y ? s->y + (ptrdiff_t)i * r->y_row : NULL;
        const ptrdiff_t more = (ptrdiff_t)rows - 1;
        const size_t width = has_steps(job, x, x + more * r->x_row, job->x_end) &&
                                     has_steps(job, y, y ? y + more * r->y_row : NULL, job->y_end)
                                 ? job->unit
                                 : job->width;
        const struct column_rows in = {x, y, r->x_row, r->y_row, rows, i, 1, to->count[id] == 0};
        to->count[id] += (uint32_t)rows;
        add_to_group(adders, forms, job->stride, id * job->unit, &in, width, job->unit);
    }
}

/* ---- Lowering ------------------------------------------------------------------------------- */

/* Merges a group's columns of all shares into those of the first one; returns how many rows it has. */
static size_t merge_shares(const struct scatter_job *job, size_t group) {
    const struct blocks *a = job->r->a;
    const struct share *into = &job->share[0];
    const size_t at = group * job->unit;
    size_t n = into->count[group];
    for (size_t k = 1; k < job->shares; k++) {
        const struct share *from = &job->share[k];
        if (from->count[group] == 0) continue;
        if (n == 0)
            block_copy_columns(a, into->planes, job->stride, at, from->planes, job->stride, at,
                               job->width);
        else
            block_merge(a, into->planes, from->planes, job->stride, at, job->width);
        n += from->count[group];
    }
    return n;
}

/* Returns the block of groups [first, first + groups). */
static struct block block_of(const struct scatter_job *job, size_t first, size_t groups) {
    const struct shaped *s = job->r->s;
    const struct extent *axis = &s->reduced[0], origin = vector_at(s, 0);
    return (struct block){.out = origin.out + (ptrdiff_t)first * axis->out,
                          .number = origin.number + first * axis->number,
                          .row = first * s->vectors,
                          .width = groups * job->width,
                          .unit = job->width,
                          .unit_row = s->vectors,
                          .unit_number = axis->number,
                          .unit_out = axis->out};
}

/* Lowers groups [first, first + groups), all of which have rows. */
static void lower_groups(struct scatter_job *job, struct block_worker *h, size_t first,
                         size_t groups) {
    struct blocks *a = job->r->a;
    const size_t stride = a->width + COLUMN_STEP;
    const struct block at = block_of(job, first, groups);
    if (groups == 0) return;
    for (size_t i = 0; i < groups; i++)
        block_copy_columns(a, h->planes, stride, i * job->width, job->share[0].planes, job->stride,
                           (first + i) * job->unit, job->width);
    (void)block_lower(a, h, h->planes, stride, &at); /* there are no exact states besides */
}

static void lower_task(void *context, size_t task, unsigned worker) {
    struct scatter_job *job = context;
    struct blocks *a = job->r->a;
    struct block_worker *h = &a->workers[worker];
    const size_t begin = task * job->groups, count = job->r->s->count;
    const size_t end = count - begin < job->groups ? count : begin + job->groups;
    size_t first = begin;
    for (size_t group = begin; group < end; group++) {
        const size_t n = merge_shares(job, group), at = (group - first) * job->width;
        for (size_t i = 0; i < job->width && job->r->counts; i++)
            h->value[3][at + i] = (double)n;
        if (n > 0 && at + 2 * job->width <= a->width) continue; /* there is room for one more */
        lower_groups(job, h, first, group - first + (n > 0));
        if (n == 0) {
            const struct block at_nothing = block_of(job, group, 1);
            block_lower_nothing(a, h, &at_nothing);
        }
        first = group + 1;
    }
    lower_groups(job, h, first, end - first);
    block_finish_writing();
}

/* ---- The call ------------------------------------------------------------------------------- */

static size_t unit_of(const struct scattered *r) {
    return (r->s->vectors + COLUMN_STEP - 1) / COLUMN_STEP * COLUMN_STEP;
}

static size_t share_bytes(const struct scattered *r) {
    return (r->s->count * unit_of(r) + COLUMN_STEP) * r->a->planes * sizeof(uint64_t);
}

/* Returns where an array ends. */
static const char *end_of(const struct scattered *r, const char *x, ptrdiff_t row) {
    const ptrdiff_t last = ((ptrdiff_t)r->s->n - 1) * row;
    return x + (last > 0 ? last : 0) + (ptrdiff_t)(r->s->vectors * r->a->element);
}

/* Returns whether the elements behind a row are its neighbour's, or none are needed. */
static int has_neighbours(const struct scattered *r) {
    const ptrdiff_t own = (ptrdiff_t)(r->s->vectors * r->a->element);
    return r->s->vectors == unit_of(r) || ((r->x_row == own || r->x_row == -own) &&
                                           (!r->s->y || r->y_row == own || r->y_row == -own));
}

/* Returns the bytes of a column's state. */
static size_t state_bytes(const struct blocks *a) {
    size_t bytes = 0;
    for_forms(f, a) bytes += (size_t)form_of(a, f)->planes * form_of(a, f)->lane;
    return bytes;
}

/* Returns whether whole steps have few columns more than a row. */
static int has_few_more(const struct scattered *r) {
    const size_t unit = unit_of(r), width = r->s->vectors;
    return unit == COLUMN_STEP ? 2 * width >= unit : 4 * width >= 3 * unit;
}

int scattered_suits(const struct scattered *r, unsigned threads) {
    const struct shaped *s = r->s;
    const size_t element = r->a->element, state = state_bytes(r->a);
    const size_t states = unit_of(r) * state * (element > 4 ? 2 : 1);
    return r->a->total == 1 && !s->sorted && has_neighbours(r) && has_few_more(r) &&
           s->vectors <= SCATTERED_ROW / element && state <= SCATTERED_STATE &&
           state <= SCATTERED_LARGER * element &&
           s->n >= SCATTERED_LEAST / (s->vectors * element) &&
           s->count <= s->n / SCATTERED_ROWS / threads &&
           s->count * states <= SCATTERED_BYTES / threads;
}

static int make_shares(struct scatter_job *job) {
    const size_t count = job->r->s->count, bytes = (share_bytes(job->r) + 63) / 64 * 64;
    job->share = calloc(job->shares, sizeof *job->share);
    for (size_t k = 0; job->share && k < job->shares; k++) {
        job->share[k].planes = aligned_alloc(64, bytes);
        job->share[k].count = malloc(count * sizeof *job->share->count);
        if (!job->share[k].planes || !job->share[k].count) return 0;
    }
    return job->share != NULL;
}

static void free_shares(struct scatter_job *job) {
    for (size_t k = 0; job->share && k < job->shares; k++) {
        free(job->share[k].planes);
        free(job->share[k].count);
    }
    free(job->share);
}

tally_status scattered_reduce(struct cpu_device *d, const struct scattered *r) {
    const struct shaped *s = r->s;
    struct scatter_job job = {
        .r = r, .width = s->vectors, .unit = unit_of(r), .shares = d->threads};
    job.stride = s->count * job.unit + COLUMN_STEP;
    job.x_end = end_of(r, s->x, r->x_row);
    if (s->y) job.y_end = end_of(r, s->y, r->y_row);
    job.rows = s->n / job.shares;
    job.groups = (s->count + SCATTERED_TASKS - 1) / SCATTERED_TASKS;
    tally_status status = TALLY_OK;
    if (!make_shares(&job)) status = TALLY_EINVAL;
    if (status == TALLY_OK)
        status = cpu_share(d, s->n * job.width * r->a->element, job.shares, add_share, &job);
    if (status == TALLY_OK && blocks_are_halted(r->a)) status = stop_status();
    if (status == TALLY_OK && job.outside) status = TALLY_EINVAL;
    if (job.shares > 1) TALLY_PATH("shares that are merged");
    if (status == TALLY_OK)
        status = cpu_share(d, job.shares * share_bytes(r), (s->count + job.groups - 1) / job.groups,
                           lower_task, &job);
    free_shares(&job);
    return status;
}
