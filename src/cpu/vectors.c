/*
 * cpu/vectors.c - see vectors.h.
 *
 * A row holds the elements of one number along the axis, one of each vector. A part - a segment or a group - is some
 * rows, and its results are their columns (blocks.h). Rows of a segment are added where they lie, and those of groups as
 * they come, where the states of these fit in the caches (scattered.h). Those of other groups are gathered first, in the
 * order of a sort that all vectors share; so are rows whose elements lie apart. Parts of few columns become units of one
 * block, which are lowered together.
 *
 * Tasks are equal numbers of rows. A part that several of them share has a state in each of them, an edge; these are
 * merged, in the order of their rows, when all tasks are done. Results that are not certain are left to cpu_rows().
 */
#include "cpu/vectors.h"

#include "base/paths.h"
#include "base/status.h"
#include "base/types.h"
#include "base/unaligned.h"
#include "cpu/blocks.h"
#include "cpu/groups.h"
#include "cpu/kernels.h"
#include "cpu/rows.h"
#include "cpu/scattered.h"
#include "device/vectors.h"
#include "problem/lower.h"

#include <stdlib.h>
#include <string.h>

/* A state of rows [from, to) of a part; from == to: none. */
struct edge {
    size_t part, from, to;
    uint64_t *planes;
};

struct job {
    struct blocks a, exact;
    const struct shaped *s;
    const void *start; /* where parts begin: in the order of the rows */
    tally_type start_type;
    const uint64_t *order; /* NULL: rows are taken as they come */
    size_t ordered;        /* how many rows order[] has: not those outside of all groups */
    ptrdiff_t x_row, y_row, x_step, y_step; /* strides of rows and of columns, in elements */
    int gathers;
    size_t tile_rows;
    size_t cuts,
        weight;         /* tasks that share the rows of a block of columns, and the weight of one */
    size_t all;         /* the weight of all parts */
    struct edge *edges; /* two for each such task */
    struct part_worker *workers;
};

/* The parts whose columns a worker has in its block, one behind another. */
struct part_worker {
    size_t filled, first;           /* how many parts, and the first of them */
    size_t start[ACROSS_WIDTH + 1]; /* each part's first row; then the end of the last */
};

/* A block of columns: of one index of the outer kept dimensions. */
struct columns {
    const char *x, *y; /* of row 0 */
    ptrdiff_t out;
    size_t number, row, width; /* of part 0's first result, as in blocks.h; how many columns */
};

static size_t start_of(const struct job *job, size_t part) {
    return (size_t)offset_at(job->start, job->start_type, part);
}

static struct columns columns_of(const struct job *job, size_t block) {
    const struct shaped *s = job->s;
    const struct blocks *a = &job->a;
    const ptrdiff_t element = (ptrdiff_t)a->element;
    const size_t length = a->inner_kept.length, first = block % a->blocks * a->width,
                 vector = block / a->blocks * length + first;
    const struct extent at = vector_at(s, vector);
    return (struct columns){.x = s->x + at.x * element,
                            .y = s->y ? s->y + at.y * element : NULL,
                            .out = at.out,
                            .number = at.number,
                            .row = vector,
                            .width = length - first < a->width ? length - first : a->width};
}

/* ---- Adding --------------------------------------------------------------------------------- */

#define COPY_ROW(type)                                                                             \
    for (size_t c = 0; c < width; c++)                                                             \
        ((unaligned_##type *)to)[c] = ((const unaligned_##type *)from)[(ptrdiff_t)c * step];

static void copy_row(char *to, const char *from, ptrdiff_t step, size_t width, size_t element) {
    if (step == 1) {
        memcpy(to, from, width * element);
        return;
    }
    switch (element) {
    case 1:
        COPY_ROW(u8);
        break;
    case 2:
        COPY_ROW(u16);
        break;
    case 4:
        COPY_ROW(u32);
        break;
    default:
        COPY_ROW(u64);
    }
}

/* Copies rows [from, from + rows), in their order, to a tile. */
static void gather(const struct job *job, char *to, const char *x, ptrdiff_t row, ptrdiff_t step,
                   size_t from, size_t rows, size_t width) {
    const size_t element = job->a.element, bytes = width * element;
    const size_t fetched = bytes < VECTORS_AHEAD_BYTES ? bytes : VECTORS_AHEAD_BYTES;
    const ptrdiff_t size = row * (ptrdiff_t)element;
    for (size_t r = 0; r < rows; r++, to += bytes) {
        const size_t at = from + r, ahead = at + VECTORS_AHEAD;
        if (job->order && ahead < job->ordered && step == 1)
            for (size_t b = 0; b < fetched; b += 64)
                __builtin_prefetch(x + (ptrdiff_t)job->order[ahead] * size + b);
        copy_row(to, x + (ptrdiff_t)(job->order ? job->order[at] : at) * size, step, width,
                 element);
    }
}

/* Makes columns from `at` on the states of rows [from, to), in their order; the first of them has the index `first`.
 * Returns 0 where the call has to stop. */
static int add_rows(const struct job *job, const struct blocks *a, struct block_worker *h,
                    uint64_t *planes, size_t at, const struct columns *c, size_t from, size_t to,
                    uint64_t first) {
    const size_t width = c->width, stride = a->width + COLUMN_STEP;
    const ptrdiff_t element = (ptrdiff_t)a->element, row = job->x_row * element;
    const int is_dense = job->gathers || (job->x_row == (ptrdiff_t)width && !c->y);
    const int folds = a->fold > 1 && is_dense && !c->y && to - from >= VECTORS_FOLDS * a->fold;
    const size_t most = job->gathers
                            ? job->tile_rows
                            : ACROSS_STOP_ELEMENTS / width / ACROSS_STOP_ROWS * ACROSS_STOP_ROWS;
    for (size_t m, i = from; i < to; i += m) {
        m = to - i < most ? to - i : most;
        if (block_halts(a, h, m * width)) return 0;
        struct column_rows in = {c->x + (ptrdiff_t)i * row,
                                 c->y ? c->y + (ptrdiff_t)i * job->y_row * element : NULL,
                                 row,
                                 job->y_row * element,
                                 m,
                                 first + (i - from),
                                 1,
                                 i == from};
        if (job->gathers) {
            const size_t bytes = m * width * a->element;
            char *x = room_for(h->tile, bytes), *y = c->y ? room_for(h->tile2, bytes) : NULL;
            gather(job, x, c->x, job->x_row, job->x_step, i, m, width);
            if (y) gather(job, y, c->y, job->y_row, job->y_step, i, m, width);
            in.x = x;
            in.y = y;
            in.x_row = in.y_row = (ptrdiff_t)width * element;
        }
        if (folds)
            block_add_folded(a, h->fold, 0, in.x, NULL, m, in.first, i == from);
        else
            block_add_rows(a, planes, stride, at, &in, width);
    }
    if (folds) {
        block_merge_folded(a, h->fold);
        block_copy_columns(a, planes, stride, at, h->fold, FOLD_STRIDE, 0, width);
    }
    return 1;
}

/* ---- Lowering ------------------------------------------------------------------------------- */

/* Returns the block whose units are parts from number `part` on, of which start[] has the first rows. */
static struct block block_of(const struct job *job, const struct columns *c, size_t part,
                             size_t parts, const size_t *start) {
    const struct extent *axis = &job->s->reduced[0];
    return (struct block){.out = c->out + (ptrdiff_t)part * axis->out,
                          .number = c->number + part * axis->number,
                          .row = c->row + part * job->s->vectors,
                          .width = parts * c->width,
                          .unit = c->width,
                          .unit_row = job->s->vectors,
                          .unit_number = axis->number,
                          .unit_out = axis->out,
                          .start = start};
}

static void count_elements(const struct job *job, struct block_worker *h, size_t at, size_t width,
                           size_t n) {
    for (size_t i = 0; i < width && job->a.counts; i++)
        h->value[3][at + i] = (double)n;
}

/* Lowers the parts that a worker has in its block. Returns 0 where the call has to stop. */
static int lower_parts(struct job *job, struct block_worker *h, struct part_worker *w,
                       const struct columns *c) {
    const struct block at = block_of(job, c, w->first, w->filled, w->start);
    if (w->filled == 0) return 1;
    for (size_t i = 0; i < w->filled; i++)
        count_elements(job, h, i * c->width, c->width, w->start[i + 1] - w->start[i]);
    for (struct blocks *a = &job->a; a; a = a->exact) {
        if (a != &job->a) {
            TALLY_PATH("again, with exact states");
            for (size_t i = 0; i < w->filled; i++)
                if (!add_rows(job, a, h, h->planes, i * c->width, c, w->start[i], w->start[i + 1],
                              0))
                    return 0;
        }
        if (block_lower(a, h, h->planes, a->width + COLUMN_STEP, &at)) break;
    }
    w->filled = 0;
    return 1;
}

/* ---- Tasks ---------------------------------------------------------------------------------- */

static size_t weight_of(const struct job *job, size_t part) {
    return start_of(job, part) - start_of(job, 0) + part * VECTORS_PART_WEIGHT;
}

/* Returns the part in which a cut at `weight` lies. */
static size_t find_part(const struct job *job, size_t weight) {
    size_t low = 0, high = job->s->count; /* weight_of(low) <= weight < weight_of(high) */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (weight_of(job, middle) <= weight)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Adds a whole part, and lowers those before it where the block has no room for it. Returns 0 where the call has to
 * stop. */
static int take_part(struct job *job, struct block_worker *h, struct part_worker *w,
                     const struct columns *c, size_t part, size_t start, size_t end) {
    if (start == end) {
        if (!lower_parts(job, h, w, c)) return 0;
        const struct block at = block_of(job, c, part, 1, NULL);
        block_lower_nothing(&job->a, h, &at);
        return 1;
    }
    if (w->filled == 0) w->first = part;
    w->start[w->filled] = start;
    w->start[w->filled + 1] = end;
    if (!add_rows(job, &job->a, h, h->planes, w->filled * c->width, c, start, end, 0)) return 0;
    w->filled++;
    return (w->filled + 1) * c->width <= job->a.width || lower_parts(job, h, w, c);
}

/* Reduces the parts of weights [begin, end) of a block of columns. The states of parts that are cut go to edges[0]
 * and edges[1]; `edges` is NULL if no part is cut. */
static void take_parts(struct job *job, struct block_worker *h, struct part_worker *w, size_t block,
                       size_t begin, size_t end, struct edge *edges) {
    const struct columns c = columns_of(job, block);
    w->filled = 0;
    for (size_t part = find_part(job, begin); part < job->s->count; part++) {
        const size_t at = weight_of(job, part), start = start_of(job, part),
                     rows = start_of(job, part + 1) - start;
        size_t from = 0, to = rows;
        if (at >= end) break;
        if (at < begin) from = begin - at < rows ? begin - at : rows;
        if (end - at < rows) to = end - at;
        if (at < begin && from == rows) continue;
        if (from == 0 && to == rows) {
            if (!take_part(job, h, w, &c, part, start, start + rows)) return;
        } else if (from < to && edges) {
            struct edge *edge = &edges[from == 0];
            TALLY_PATH("a part that is cut");
            if (!add_rows(job, &job->a, h, edge->planes, 0, &c, start + from, start + to, from))
                return;
            edge->part = part;
            edge->from = from;
            edge->to = to;
        }
    }
    (void)lower_parts(job, h, w, &c);
}

static void vectors_task(void *context, size_t task, unsigned worker) {
    struct job *job = context;
    struct block_worker *h = &job->a.workers[worker];
    struct part_worker *w = &job->workers[worker];
    if (job->cuts > 1) {
        const size_t begin = task % job->cuts * job->weight;
        take_parts(job, h, w, task / job->cuts, begin, begin + job->weight, &job->edges[2 * task]);
    } else
        for (size_t i = 0, block = task * job->a.group; i < job->a.group && block < job->a.total;
             i++, block++)
            take_parts(job, h, w, block, 0, job->all, NULL);
    block_finish_writing();
}

/* Merges the edges of the parts of a block of columns that were cut, and lowers these parts. */
static void merge_task(void *context, size_t block, unsigned worker) {
    struct job *job = context;
    struct block_worker *h = &job->a.workers[worker];
    const struct columns c = columns_of(job, block);
    const size_t stride = job->a.width + COLUMN_STEP;
    struct edge *edges = &job->edges[2 * block * job->cuts], *into = NULL;
    for (size_t i = 0; i < 2 * job->cuts; i++) {
        struct edge *edge = &edges[i];
        if (edge->from == edge->to) continue;
        if (edge->from == 0)
            into = edge;
        else if (into)
            block_merge(&job->a, into->planes, edge->planes, stride, 0, c.width);
        const size_t start = start_of(job, edge->part);
        if (!into || start + edge->to != start_of(job, edge->part + 1)) continue;
        const struct block at = block_of(job, &c, edge->part, 1, &start);
        count_elements(job, h, 0, c.width, edge->to);
        if (!block_lower(&job->a, h, into->planes, stride, &at)) {
            TALLY_PATH("again, all of it");
            __atomic_store_n(&job->a.again, 1, __ATOMIC_RELAXED);
        }
    }
    block_finish_writing();
}

/* ---- The call ------------------------------------------------------------------------------- */

static size_t magnitude(ptrdiff_t stride) {
    return stride < 0 ? 0 - (size_t)stride : (size_t)stride;
}

int cpu_takes_vectors(const struct shaped *s) {
    return s->keeps > 0 && s->n > 0 &&
           magnitude(s->kept[s->keeps - 1].x) < magnitude(s->reduced[0].x);
}

/* Returns whether columns of planes can do the problem. (With a mask only by_scattering()
 * can: by_planes() heeds no mask.) */
static int has_planes(struct job *job) {
    const struct shaped *s = job->s;
    return !problem_has(s->p, MONOID_TREE) && s->n < (size_t)1 << 31 && block_plan_forms(&job->a);
}

static void plan_columns(struct job *job) {
    struct blocks *a = &job->a;
    const struct extent *inner = &a->inner_kept, *axis = &job->s->reduced[0];
    const size_t length = inner->length, most = 4096 / a->element;
    job->x_row = axis->x;
    job->y_row = axis->y;
    job->x_step = inner->x;
    job->y_step = inner->y;
    job->gathers = job->order || inner->x != 1 || (job->s->y && inner->y != 1);
    a->width = most < ACROSS_WIDTH ? most : ACROSS_WIDTH;
    a->blocks = (length + a->width - 1) / a->width;
    a->fold = a->unit = 1;
    if (a->blocks > 1)
        a->width =
            ((length + a->blocks - 1) / a->blocks + COLUMN_STEP - 1) / COLUMN_STEP * COLUMN_STEP;
    if (length < FOLD_COLS && !job->s->y) {
        a->unit = length;
        while (a->fold * a->unit < FOLD_COLS)
            a->fold *= 2;
    }
    const size_t width = length < a->width ? length : a->width;
    job->tile_rows = VECTORS_TILE / (width * a->element) / a->fold * a->fold;
    if (job->tile_rows < a->fold) job->tile_rows = a->fold;
    if (job->tile_rows < 8) job->tile_rows = 8;
    a->tile = job->gathers ? job->tile_rows * width : 0;
    a->total = job->s->vectors / length * a->blocks;
}

/* Cuts the rows into tasks where there are few blocks of columns. */
static void plan_cuts(struct job *job, unsigned threads) {
    struct blocks *a = &job->a;
    const size_t width = a->inner_kept.length < a->width ? a->inner_kept.length : a->width;
    const size_t bytes = job->all * width * a->element, wanted = (size_t)threads * 8;
    size_t cuts = threads > 1 && a->total < wanted ? (wanted + a->total - 1) / a->total : 1;
    if (cuts > bytes / PART_BYTES) cuts = bytes / PART_BYTES;
    if (cuts < bytes / ACROSS_TASK_BYTES) cuts = bytes / ACROSS_TASK_BYTES;
    if (cuts < 1) cuts = 1;
    job->weight = (job->all + cuts - 1) / cuts;
    job->cuts = (job->all + job->weight - 1) / job->weight;
    a->group = blocks_of_task(a->total, bytes, threads);
}

/* Allocates the edges, and all planes of theirs behind them; free() frees both. */
static int make_edges(struct job *job) {
    const size_t count = 2 * job->cuts * job->a.total, words = block_words(&job->a);
    if (job->cuts == 1) return 1;
    const size_t room = (count * sizeof *job->edges + 63) / 64 * 64;
    job->edges = aligned_alloc(64, (room + count * words * 8 + 63) / 64 * 64);
    for (size_t i = 0; job->edges && i < count; i++)
        job->edges[i] =
            (struct edge){.planes = (uint64_t *)(void *)((char *)job->edges + room) + i * words};
    return job->edges != NULL;
}

static tally_status run_tasks(struct cpu_device *d, struct job *job) {
    const size_t bytes = job->s->n * job->s->vectors * job->a.element;
    for (size_t i = 0; job->edges && i < 2 * job->cuts * job->a.total; i++)
        job->edges[i].from = job->edges[i].to = 0;
    const size_t tasks =
        job->cuts > 1 ? job->cuts * job->a.total : (job->a.total + job->a.group - 1) / job->a.group;
    tally_status status = cpu_share(d, bytes, tasks, vectors_task, job);
    if (status == TALLY_OK && blocks_are_halted(&job->a)) status = stop_status();
    if (status != TALLY_OK || job->cuts == 1) return status;
    return cpu_share(d, job->a.total * block_words(&job->a) * 8, job->a.total, merge_task, job);
}

/* Reduces by planes; marks results that are left in *todo. */
static tally_status by_planes(struct cpu_device *d, struct job *job, unsigned char **todo,
                              struct absence *absence) {
    struct blocks *a = &job->a;
    tally_status status = TALLY_OK;
    plan_columns(job);
    plan_cuts(job, d->threads);
    job->workers = calloc(d->threads, sizeof *job->workers);
    if (!job->workers || !make_edges(job) || !blocks_make_workers(a, d->threads))
        status = fail(TALLY_ENOMEM, "no memory for a reduction in parts");
    else {
        job->exact = *a;
        if (blocks_want_moments(a)) {
            a->forms = FORM_BIT(FORM_MOMENTS);
            a->plane_of[FORM_MOMENTS] = 0;
            a->exact = &job->exact;
        }
        status = run_tasks(d, job);
        if (status == TALLY_OK && a->again) {
            unsigned char *marked = job->exact.todo;
            const int failed = job->exact.failed;
            *a = job->exact;
            a->todo = marked;
            a->failed = failed;
            status = run_tasks(d, job);
        } else if (a->exact) {
            a->todo = job->exact.todo;
            a->failed = job->exact.failed;
        }
    }
    blocks_finish(a, d->threads, absence, &status);
    free(job->workers);
    free(job->edges);
    *todo = a->todo;
    return status;
}

/* Reduces groups as their rows come, if scattered_suits(), and returns 1. Returns 0 if another way has to do it: this
 * one does not suit, has no memory for its states, or has met an id outside of all groups. */
static int by_scattering(struct cpu_device *d, struct job *job, unsigned char **todo,
                         struct absence *absence, tally_status *status) {
    plan_columns(job); /* without an order; by_planes() plans anew */
    struct blocks a = job->a;
    const ptrdiff_t element = (ptrdiff_t)a.element;
    const struct scattered r = {
        .a = &a, .s = job->s, .x_row = job->x_row * element, .y_row = job->y_row * element};
    if (job->s->cut != TALLY_GROUPS || job->gathers || !scattered_suits(&r, d->threads)) return 0;
    a.absolute = 0; /* a row's number is its index */
    *status = TALLY_OK;
    if (blocks_make_workers(&a, d->threads))
        *status = scattered_reduce(d, &r);
    else
        *status = fail(TALLY_ENOMEM, "no memory for a reduction in parts");
    blocks_finish(&a, d->threads, absence, status);
    if (*status != TALLY_EINVAL) {
        *todo = a.todo;
        return 1;
    }
    *status = TALLY_OK; /* the sort says which id is outside of all groups, or needs less memory */
    return 0;
}

/* Brings the numbers of rows into the order of their groups. */
static tally_status sort_rows(struct cpu_device *d, struct job *job, struct sorted *sorted) {
    const tally_status status = cpu_sort_positions(d, job->s, sorted);
    if (status != TALLY_OK) return status;
    job->start = sorted->start;
    job->start_type = TALLY_I64;
    job->order = job->a.order = sorted->position;
    job->ordered = start_of(job, job->s->count);
    return TALLY_OK;
}

tally_status cpu_vectors(struct cpu_device *d, const struct shaped *s, struct absence *absence) {
    int halt = 0;
    struct job job = {.s = s,
                      .start = s->offsets,
                      .start_type = s->offsets_type,
                      .a = {.s = s,
                            .p = s->p,
                            .k = d->kernels->columns,
                            .way = DIRECT,
                            .element = type_size(s->p->type),
                            .inner_kept = s->kept[s->keeps - 1],
                            .parts = 1,
                            .absolute = s->cut == TALLY_GROUPS,
                            .halt = &halt}};
    struct sorted sorted = {0};
    unsigned char *todo = NULL;
    tally_status status = TALLY_OK;
    const int planes = s->results > 0 && has_planes(&job);
    int done = planes && by_scattering(d, &job, &todo, absence, &status);
    if (status == TALLY_OK && s->cut == TALLY_GROUPS && (!done || todo))
        status = sort_rows(d, &job, &sorted);
    if (status == TALLY_OK && planes && !s->mask && !done) {
        job.all = weight_of(&job, s->count);
        status = by_planes(d, &job, &todo, absence);
        done = 1;
    }
    if (status == TALLY_OK && s->results > 0 && (!done || todo)) {
        const struct rows rows = {.s = s,
                                  .start = job.start,
                                  .start_type = job.start_type,
                                  .vectors = 1,
                                  .absolute = s->cut == TALLY_GROUPS,
                                  .position = job.order,
                                  .only = todo};
        status = cpu_rows(d, &rows, absence);
    }
    sorted_free(&sorted);
    free(todo);
    return status;
}
