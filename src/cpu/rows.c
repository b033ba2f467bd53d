/* rows.c - see rows.h. */
#include "cpu/rows.h"

#include "base/paths.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "base/unaligned.h"
#include "cpu/tuning.h"
#include "device/fold.h"
#include "device/vectors.h"

#include <stdlib.h>
#include <string.h>

/* Elements that are gathered before they are folded: a leaf of the canonical tree. */
#define PIECE TREE_LEAF

tally_status cpu_share(struct cpu_device *d, size_t bytes, size_t tasks,
                       void (*body)(void *context, size_t task, unsigned worker), void *context) {
    int stopped = 0;
    if (d->threads > 1 && tasks > 1 && bytes >= ROWS_ALONE_BYTES && pool_claim(d->pool)) {
        stopped = pool_loop(d->pool, tasks, body, context);
        TALLY_PATH("all threads");
        pool_release(d->pool);
    } else {
        TALLY_PATH("the calling thread");
        for (size_t t = 0; t < tasks && !stopped; t++) {
            body(context, t, 0);
            stopped = stop_asked();
        }
    }
    return stopped ? stop_status() : TALLY_OK;
}

/* A worker's state, tree and gathered elements. */
struct worker {
    struct cpu_device alone; /* the thread as a device of its own */
    struct absence absence;
    struct state state, piece;
    struct tree tree;
    size_t filled;         /* elements that have been gathered */
    uint64_t index[PIECE]; /* gathered elements' indices in the part, where there is a mask */
    uint64_t shown[PIECE]; /* places of elements that a mask shows */
    _Alignas(64) char x[PIECE * 8];
    _Alignas(64) char y[PIECE * 8];
};

/* The part of a cut row that lies in one task. */
struct edge {
    size_t row, from, to; /* from == to: none */
    struct state state;   /* of elements [from, to) of the row, whose indices count from `from` */
    struct tree tree;
};

struct job {
    const struct rows *rows;
    const struct problem *p;
    size_t element, count;
    int tree, whole;     /* `whole`: rows cannot be cut */
    size_t weight, task; /* of all rows, and of one task: see row_weight() */
    struct worker *workers;
    struct edge *edges; /* two a task: of the row it begins in, of the row it ends in */
    tally_status failed;
    int *halt; /* the flag of stop_shared() */
};

/* ---- Gathering ------------------------------------------------------------------------------ */

/* n elements at even distances, in elements, from x on. */
struct run {
    const char *x, *y;
    const unsigned char *mask;
    ptrdiff_t x_step, y_step, mask_step;
    size_t n;
    uint64_t index;       /* of the first, in the part that is being folded */
    const uint64_t *list; /* NULL, or of each element how many steps it stands behind x */
};

#if defined(TALLY_DEBUG)
enum { IN_PLACE, GATHERED, MASKED };
static const char *const run_names[] = {
    [IN_PLACE] = "where they lie", [GATHERED] = "gathered", [MASKED] = "gathered behind a mask"};
static const struct path_axis run_axis = PATH_AXIS(run_names);
static const char *never_in_rows(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    (void)t;
    return problem_path(at[1], at[2], &p);
}
PATH_TABLE(rows_paths, "rows", never_in_rows, &run_axis, &path_ops, &path_types);
#endif

#define COPY_STRIDED(type)                                                                         \
    for (size_t i = 0; i < n; i++)                                                                 \
        memcpy(to + i * sizeof(type), from + (ptrdiff_t)i * step * (ptrdiff_t)sizeof(type),        \
               sizeof(type));

static void copy_strided(char *to, const char *from, ptrdiff_t step, size_t n, size_t element) {
    if (step == 1) {
        memcpy(to, from, n * element);
        return;
    }
    switch (element) {
    case 1:
        COPY_STRIDED(uint8_t);
        break;
    case 2:
        COPY_STRIDED(uint16_t);
        break;
    case 4:
        COPY_STRIDED(uint32_t);
        break;
    default:
        COPY_STRIDED(uint64_t);
    }
}

/* Makes w ready for a part of a row, from element `from` on. */
static tally_status begin_part(const struct job *job, struct worker *w, size_t from) {
    state_clear(job->p, &w->state);
    if (job->tree) tree_clear(&w->tree, from / TREE_LEAF);
    w->filled = 0;
    return TALLY_OK;
}

/* Returns the index in the part being folded of the gathered element number `at`. */
static uint64_t placed(const struct worker *w, uint64_t at) {
    return at == NO_INDEX ? NO_INDEX : w->index[at];
}

/* Folds the gathered elements into w's state and tree. */
static tally_status flush(const struct job *job, struct worker *w) {
    const struct problem *p = job->p;
    const struct slice in = {w->x, job->rows->s->y ? w->y : NULL, w->filled};
    tally_status s = TALLY_OK;
    if (w->filled == 0) return TALLY_OK;
    w->filled = 0;
    if (job->rows->s->mask && p->extremes & WANT_INDEX) {
        struct extremes *e = &w->piece.extremes;
        state_clear(p, &w->piece);
        s = fold_slice(&w->alone.base, p, &in, &w->piece);
        e->at_least = placed(w, e->at_least);
        e->at_greatest = placed(w, e->at_greatest);
        e->at_nan = placed(w, e->at_nan);
        TALLY_PATH("an index behind a mask");
        if (s == TALLY_OK) state_merge(p, &w->state, &w->piece, 0);
    } else
        s = fold_slice(&w->alone.base, p, &in, &w->state);
    if (s == TALLY_OK && job->tree) s = fold_leaves(&w->alone.base, p, in.x, in.n, &w->tree);
    return s;
}

/* Folds as much of a run as can be folded where it lies, and returns how many elements that is; *s says how it went. */
static size_t fold_direct(const struct job *job, struct worker *w, const struct run *r,
                          tally_status *s) {
    size_t n = r->n;
    if (r->mask || r->list || r->x_step != 1 || (r->y && r->y_step != 1)) return 0;
    if (job->tree && w->filled > 0) return 0;
    if (n > DIRECT_BYTES_MAX / job->element) n = DIRECT_BYTES_MAX / job->element;
    if (job->tree) n = n / TREE_LEAF * TREE_LEAF;
    if (n * job->element < DIRECT_BYTES) return 0;
    TALLY_PATH_OF_VALUE(rows_paths, job->p, IN_PLACE);
    const struct slice in = {r->x, r->y, n};
    *s = flush(job, w);
    if (*s == TALLY_OK) *s = fold_slice(&w->alone.base, job->p, &in, &w->state);
    if (*s == TALLY_OK && job->tree) *s = fold_leaves(&w->alone.base, job->p, r->x, n, &w->tree);
    return n;
}

static void skip(struct run *r, size_t n, size_t element) {
    r->index += n;
    r->n -= n;
    if (r->list) {
        r->list += n;
        return;
    }
    r->x += (ptrdiff_t)n * r->x_step * (ptrdiff_t)element;
    if (r->y) r->y += (ptrdiff_t)n * r->y_step * (ptrdiff_t)element;
    if (r->mask) r->mask += (ptrdiff_t)n * r->mask_step;
}

/* Writes every element, but moves on only after one that the mask shows, so that there is no branch per element. */
#define PASS(type)                                                                                 \
    do {                                                                                           \
        const type *from = (const type *)(const void *)x;                                          \
        type *into = (type *)(void *)to;                                                           \
        if (x_step == 1 && mask_step == 1)                                                         \
            for (size_t i = 0; i < n; i++) {                                                       \
                into[k] = from[i];                                                                 \
                k += mask[i] != 0;                                                                 \
            }                                                                                      \
        else                                                                                       \
            for (size_t i = 0; i < n; i++) {                                                       \
                into[k] = from[(ptrdiff_t)i * x_step];                                             \
                k += mask[(ptrdiff_t)i * mask_step] != 0;                                          \
            }                                                                                      \
    } while (0)

size_t mask_pass(char *to, const char *x, ptrdiff_t x_step, size_t element,
                 const unsigned char *mask, ptrdiff_t mask_step, size_t n) {
    size_t k = 0;
    switch (element) {
    case 1:
        PASS(unaligned_u8);
        break;
    case 2:
        PASS(unaligned_u16);
        break;
    case 4:
        PASS(unaligned_u32);
        break;
    default:
        PASS(unaligned_u64);
    }
    return k;
}

/* Gathers those of a run's first n elements that the mask lets pass. */
static void gather_masked(const struct job *job, struct worker *w, const struct run *r, size_t n) {
    const size_t to = w->filled * job->element;
    size_t at = w->filled;
    if (job->p->extremes & WANT_INDEX)
        for (size_t i = 0; i < n; i++) {
            w->index[at] = r->index + i;
            at += r->mask[(ptrdiff_t)i * r->mask_step] != 0;
        }
    if (r->y) mask_pass(w->y + to, r->y, r->y_step, job->element, r->mask, r->mask_step, n);
    w->filled += mask_pass(w->x + to, r->x, r->x_step, job->element, r->mask, r->mask_step, n);
}

/* Returns the places, in the run's list, of those of its first n elements that the mask lets pass; sets *count to
 * how many these are. */
static const uint64_t *shown_of(const struct job *job, struct worker *w, const struct run *r,
                                size_t n, size_t *count) {
    *count = n;
    if (!r->mask) return r->list;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        w->shown[k] = r->list[i];
        if (job->p->extremes & WANT_INDEX) w->index[w->filled + k] = r->index + i;
        k += r->mask[(ptrdiff_t)r->list[i] * r->mask_step] != 0;
    }
    *count = k;
    return w->shown;
}

#define COPY_LISTED(type)                                                                          \
    for (size_t i = 0; i < n; i++)                                                                 \
        memcpy(to + i * sizeof(type), from + (ptrdiff_t)at[i] * step * (ptrdiff_t)sizeof(type),    \
               sizeof(type));

static void copy_listed(char *to, const char *from, ptrdiff_t step, const uint64_t *at, size_t n,
                        size_t element) {
    switch (element) {
    case 1:
        COPY_LISTED(uint8_t);
        break;
    case 2:
        COPY_LISTED(uint16_t);
        break;
    case 4:
        COPY_LISTED(uint32_t);
        break;
    default:
        COPY_LISTED(uint64_t);
    }
}

/* Gathers a run's first n elements, which a list names. */
static void gather_listed(const struct job *job, struct worker *w, const struct run *r, size_t n) {
    const size_t to = w->filled * job->element;
    size_t count;
    const uint64_t *at = shown_of(job, w, r, n, &count);
    copy_listed(w->x + to, r->x, r->x_step, at, count, job->element);
    if (r->y) copy_listed(w->y + to, r->y, r->y_step, at, count, job->element);
    w->filled += count;
}

static tally_status add_run(const struct job *job, struct worker *w, struct run r) {
    tally_status s = TALLY_OK;
    while (r.n > 0 && s == TALLY_OK) {
        if (stop_shared(job->halt)) return stop_status();
        const size_t done = fold_direct(job, w, &r, &s);
        if (done > 0) {
            skip(&r, done, job->element);
            continue;
        }
        TALLY_PATH_OF_VALUE(rows_paths, job->p, r.mask ? MASKED : GATHERED);
        const size_t room = PIECE - w->filled, n = r.n < room ? r.n : room;
        if (r.list)
            gather_listed(job, w, &r, n);
        else if (r.mask)
            gather_masked(job, w, &r, n);
        else {
            char *to = w->x + w->filled * job->element;
            copy_strided(to, r.x, r.x_step, n, job->element);
            if (r.y) copy_strided(w->y + (to - w->x), r.y, r.y_step, n, job->element);
            w->filled += n;
        }
        skip(&r, n, job->element);
        if (w->filled == PIECE) s = flush(job, w);
    }
    return s;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

/* Returns where the part of vectors begins along the axis. */
static size_t part_start(const struct rows *rows, size_t part) {
    return (size_t)offset_at(rows->start, rows->start_type, part);
}

/* Returns how many elements lie before row i: those of all earlier rows and, for segments, those before the first
 * row. */
static size_t row_start(const struct job *job, size_t i) {
    const struct rows *rows = job->rows;
    if (!rows->start) return i * rows->s->each;
    if (!rows->vectors) return (size_t)offset_at(rows->start, rows->start_type, i);
    const size_t vectors = rows->s->vectors, part = i / vectors, start = part_start(rows, part);
    size_t at = (start - part_start(rows, 0)) * vectors;
    if (i % vectors > 0) at += i % vectors * (part_start(rows, part + 1) - start);
    return at;
}

/* Returns the weight of all rows before row i: their elements, and ROW_WEIGHT for each. Tasks have
 * equal weights. */
static size_t row_weight(const struct job *job, size_t i) {
    return row_start(job, i) - row_start(job, 0) + i * ROW_WEIGHT;
}

/* Returns the row in which a cut at `weight` lies. */
static size_t find_row(const struct job *job, size_t weight) {
    size_t low = 0, high = job->count; /* row_weight(low) <= weight < row_weight(high) */
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (row_weight(job, middle) <= weight)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Folds elements [from, to) of a row of an array, in C order. */
static tally_status fold_array(const struct job *job, struct worker *w, size_t row, size_t from,
                               size_t to) {
    const struct shaped *s = job->rows->s;
    const ptrdiff_t element = (ptrdiff_t)job->element;
    struct run base = {.x = s->x, .y = s->y, .mask = s->mask};
    for (unsigned k = s->keeps; k-- > 0;) {
        const ptrdiff_t at = (ptrdiff_t)(row % s->kept[k].length);
        row /= s->kept[k].length;
        base.x += at * s->kept[k].x * element;
        if (base.y) base.y += at * s->kept[k].y * element;
        if (base.mask) base.mask += at * s->kept[k].mask;
    }
    const struct extent one = {.length = 1},
                        *inner = s->reduces ? &s->reduced[s->reduces - 1] : &one;
    base.x_step = inner->x;
    base.y_step = inner->y;
    base.mask_step = inner->mask;
    tally_status status = TALLY_OK;
    for (size_t at = from; at < to && status == TALLY_OK;) {
        struct run r = base;
        size_t outer = at / inner->length;
        const size_t in = at % inner->length;
        for (unsigned k = s->reduces; k-- > 1;) {
            const struct extent *e = &s->reduced[k - 1];
            const ptrdiff_t i = (ptrdiff_t)(outer % e->length);
            outer /= e->length;
            r.x += i * e->x * element;
            if (r.y) r.y += i * e->y * element;
            if (r.mask) r.mask += i * e->mask;
        }
        r.n = in;
        r.index = at - from - in;
        skip(&r, in, job->element);
        r.n = inner->length - in < to - at ? inner->length - in : to - at;
        at += r.n;
        status = add_run(job, w, r);
    }
    return status;
}

/* Folds elements [from, to) of a row that is a part of a vector. */
static tally_status fold_vector(const struct job *job, struct worker *w, size_t row, size_t from,
                                size_t to) {
    const struct rows *rows = job->rows;
    const struct shaped *s = rows->s;
    const struct extent *axis = &s->reduced[0], at = vector_at(s, row % s->vectors);
    const size_t start = part_start(rows, row / s->vectors) + from;
    const ptrdiff_t element = (ptrdiff_t)job->element;
    struct run r = {.x = s->x + at.x * element,
                    .y = s->y ? s->y + at.y * element : NULL,
                    .mask = s->mask ? s->mask + at.mask : NULL,
                    .x_step = axis->x,
                    .y_step = axis->y,
                    .mask_step = axis->mask,
                    .n = start + (to - from),
                    .list = rows->position};
    skip(&r, start, job->element);
    r.index = 0;
    return add_run(job, w, r);
}

static tally_status fold_part_of(const struct job *job, struct worker *w, size_t row, size_t from,
                                 size_t to) {
    const struct rows *rows = job->rows;
    tally_status s = begin_part(job, w, from);
    if (s != TALLY_OK || from == to) return s;
    if (rows->vectors)
        s = fold_vector(job, w, row, from, to);
    else if (!rows->start)
        s = fold_array(job, w, row, from, to);
    else {
        const size_t at = row_start(job, row) + from;
        s = add_run(job, w,
                    (struct run){.x = rows->x + at * job->element,
                                 .y = rows->y ? rows->y + at * job->element : NULL,
                                 .mask = rows->mask ? rows->mask + at : NULL,
                                 .x_step = 1,
                                 .y_step = 1,
                                 .mask_step = 1,
                                 .n = to - from});
    }
    return s == TALLY_OK ? flush(job, w) : s;
}

/* Returns the caller's index of the element at index `at` of a row whose first element is number
 * `start`. */
static uint64_t position_of(const struct rows *rows, size_t start, uint64_t at) {
    if (at == NO_INDEX) return at;
    if (rows->position) TALLY_PATH("of sorted elements");
    return rows->position ? rows->position[start + at] : start + at;
}

static void lower_row(const struct job *job, size_t row, struct state *state, struct tree *tree,
                      struct absence *absence) {
    const struct shaped *s = job->rows->s;
    tally_value root = {.type = 0};
    ptrdiff_t place = s->out_first;
    size_t number = s->number_first;
    if (job->tree) root = tree_value(job->p, tree);
    if (job->rows->absolute && job->p->extremes & WANT_INDEX) {
        struct extremes *e = &state->extremes;
        const size_t start =
            job->rows->vectors ? part_start(job->rows, row / s->vectors) : row_start(job, row);
        e->at_least = position_of(job->rows, start, e->at_least);
        e->at_greatest = position_of(job->rows, start, e->at_greatest);
        e->at_nan = position_of(job->rows, start, e->at_nan);
    }
    if (job->rows->vectors) {
        const struct extent at = vector_at(s, row % s->vectors);
        const size_t part = row / s->vectors;
        place = at.out + (ptrdiff_t)part * s->reduced[0].out;
        number = at.number + part * s->reduced[0].number;
    } else if (job->rows->start) {
        place = (ptrdiff_t)row;
        number = row;
    } else
        for (unsigned k = s->keeps; k-- > 0;) {
            const size_t at = row % s->kept[k].length;
            row /= s->kept[k].length;
            place += (ptrdiff_t)at * s->kept[k].out;
            number += at * s->kept[k].number;
        }
    shaped_lower(s, state, &root, place, number, absence);
}

/* ---- Tasks ---------------------------------------------------------------------------------- */

/* Returns how many of a row's `length` elements lie before a cut at `weight` from the row's
 * start. */
static size_t cut_at(const struct job *job, size_t weight, size_t length) {
    if (weight >= length) return length;
    return job->tree ? weight / TREE_LEAF * TREE_LEAF : weight;
}

/* Folds a task's rows: lowers whole rows, and leaves the states of cut rows as edges. */
static void rows_task(void *context, size_t task, unsigned worker) {
    struct job *job = context;
    struct worker *w = &job->workers[worker];
    struct edge *edges = job->edges ? job->edges + 2 * task : NULL;
    const size_t begin = task * job->task, end = begin + job->task;
    const unsigned char *only = job->rows->only;
    tally_status s = TALLY_OK;
    size_t row = find_row(job, begin);
    const size_t last = only ? find_row(job, end < job->weight ? end : job->weight - 1) : 0;
    for (; row < job->count && s == TALLY_OK; row++) {
        if (only) { /* few rows of many may be wanted: search for the next one */
            const unsigned char *next = row <= last ? memchr(only + row, 1, last - row + 1) : NULL;
            if (!next) break;
            row = (size_t)(next - only);
            TALLY_PATH("a row that was left");
        }
        const size_t at = row_weight(job, row);
        const size_t length = row_weight(job, row + 1) - at - ROW_WEIGHT;
        if (at >= end) break;
        size_t from = 0, to = length;
        if (job->whole) {
            TALLY_PATH("a row that cannot be cut");
            if (at < begin) continue;
        } else {
            if (at < begin) from = cut_at(job, begin - at, length);
            to = cut_at(job, end - at, length);
            if (at < begin && from == length) continue;
        }
        s = fold_part_of(job, w, row, from, to);
        if (s != TALLY_OK) break;
        if (from == 0 && to == length)
            lower_row(job, row, &w->state, &w->tree, &w->absence);
        else if (edges && from < to) {
            struct edge *part = edges + (from == 0);
            if (job->tree)
                TALLY_PATH("a part of a row, of a tree");
            else
                TALLY_PATH("a part of a row");
            part->row = row;
            part->from = from;
            part->to = to;
            part->state = w->state;
            if (job->tree) part->tree = w->tree;
        }
    }
    if (s != TALLY_OK) __atomic_store_n(&job->failed, s, __ATOMIC_RELAXED);
}

/* Merges the edges of rows that were cut, and lowers these rows. */
static void merge_edges(struct job *job, size_t tasks, struct absence *absence) {
    struct worker *w = job->workers;
    for (size_t i = 0; i < 2 * tasks; i++) {
        const struct edge *part = &job->edges[i];
        if (part->from == part->to) continue;
        if (part->from == 0) begin_part(job, w, 0);
        state_merge(job->p, &w->state, &part->state, part->from);
        if (job->tree)
            for (int k = 0; k < part->tree.count; k++)
                tree_append(job->p, &w->tree, &part->tree.node[k].value, part->tree.node[k].level);
        if (part->to != row_start(job, part->row + 1) - row_start(job, part->row)) continue;
        state_settle(job->p, &w->state);
        lower_row(job, part->row, &w->state, &w->tree, absence);
    }
}

tally_status cpu_rows(struct cpu_device *d, const struct rows *rows, struct absence *absence) {
    const struct shaped *s = rows->s;
    int halt = 0;
    struct job job = {.rows = rows, .p = s->p, .count = s->results, .halt = &halt};
    job.element = type_size(s->p->type);
    job.tree = problem_has(s->p, MONOID_TREE);
    job.whole = job.tree && (s->mask || rows->mask);
    if (job.count == 0) return TALLY_OK;
    const size_t weight = job.weight = row_weight(&job, job.count);
    job.task = weight / d->threads / 16 + 1;
    if (job.task < ROWS_TASK_WEIGHT) job.task = ROWS_TASK_WEIGHT;
    if (job.task < weight / ROWS_TASKS_MOST + 1) job.task = weight / ROWS_TASKS_MOST + 1;
    if (d->threads == 1) job.task = weight;
    const size_t tasks = weight / job.task + (weight % job.task != 0);
    job.workers = aligned_alloc(64, d->threads * sizeof *job.workers);
    if (tasks > 1) job.edges = malloc(2 * tasks * sizeof *job.edges);
    if (!job.workers || (tasks > 1 && !job.edges)) {
        free(job.workers);
        free(job.edges);
        return fail(TALLY_ENOMEM, "no memory for a reduction in parts");
    }
    for (unsigned i = 0; i < d->threads; i++) {
        job.workers[i].alone =
            (struct cpu_device){.base.kind = &cpu_device_kind, .kernels = d->kernels, .threads = 1};
        job.workers[i].absence.number = UINT64_MAX;
    }
    if (job.edges)
        for (size_t i = 0; i < 2 * tasks; i++)
            job.edges[i].from = job.edges[i].to = 0;
    const tally_status shared = cpu_share(d, weight * job.element, tasks, rows_task, &job);
    if (job.failed == TALLY_OK) job.failed = shared;
    if (job.edges && job.failed == TALLY_OK) merge_edges(&job, tasks, absence);
    for (unsigned i = 0; i < d->threads; i++) {
        const struct absence *a = &job.workers[i].absence;
        if (a->number != UINT64_MAX) shaped_absent(absence, a->number, a->status, a->value);
    }
    free(job.workers);
    free(job.edges);
    return job.failed;
}
