/*
 * masked.c - see masked.h.
 *
 * Rows are taken in blocks. A thread packs the elements of a block that the mask shows, one row behind
 * another. The packed block stays in the caches; the thread reduces it as segments without a mask. Rows
 * that run across memory, as columns do, are packed together, so that memory is read in its order.
 */
#include "cpu/masked.h"

#include "base/paths.h"
#include "base/scratch.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "base/unaligned.h"
#include "cpu/rows.h"
#include "cpu/tuning.h"

#include <stdlib.h>
#include <string.h>

#define PADDING 256 /* bytes behind an array, as kernels read whole vectors */

/* Indices of the first element of a row, or of a run of its elements. */
struct spot {
    ptrdiff_t x, y, mask;
};

/* A worker's arrays: one block. */
struct worker {
    struct cpu_device alone; /* the thread as a device of its own */
    struct scratch scratch;  /* has the arrays below */
    char *x, *y;
    /* Each element's index in its row, hidden elements counted; NULL where no index is wanted. */
    uint32_t *position;
    int64_t *start; /* [rows + 1] */
    uint32_t cursor[MASKED_COLUMNS];
    void *out[TALLY_VALUES_MAX]; /* the block's results */
};

struct job {
    const struct shaped *s;
    size_t element, room;        /* bytes of an element; most elements of a block */
    size_t group;                /* rows of a task */
    int together;                /* rows run across memory */
    int adjacent;                /* each row begins where the one before it ends */
    struct extent kept, reduced; /* the innermost of each kind; length 1 where there is none */
    struct worker *workers;
    unsigned char *todo; /* [results] */
    int is_left;         /* some row is marked in it */
    tally_status failed;
    int halt; /* the flag of stop_shared() */
};

/* ---- Brought side by side -------------------------------------------------------------------- */

/* Packs n elements of each of `rows` rows at once; row c goes on at to[cursor[c]]. Hidden elements go to
 * to[spare], so that there is no branch per element. x_step and mask_step lead to the next element of a
 * row, x_row and mask_row to the next row. */
#define SPREAD(type)                                                                               \
    for (size_t i = 0; i < n; i++) {                                                               \
        const type *from = (const type *)(const void *)x + (ptrdiff_t)i * x_step;                  \
        const unsigned char *shown = mask + (ptrdiff_t)i * mask_step;                              \
        type *into = (type *)(void *)to;                                                           \
        if (i + MASKED_AHEAD < n && x_row == 1)                                                    \
            for (size_t c = 0; c < rows; c += 64 / sizeof(type))                                   \
                __builtin_prefetch(from + (ptrdiff_t)MASKED_AHEAD * x_step + c);                   \
        for (size_t c = 0; c < rows; c++) {                                                        \
            const uint32_t at = cursor[c];                                                         \
            const uint32_t passes = shown[(ptrdiff_t)c * mask_row] != 0;                           \
            into[spare ^ ((spare ^ at) & -passes)] = from[(ptrdiff_t)c * x_row];                   \
            cursor[c] = at + passes;                                                               \
        }                                                                                          \
    }

static void spread(char *to, uint32_t spare, uint32_t *cursor, const char *x, ptrdiff_t x_step,
                   ptrdiff_t x_row, size_t element, const unsigned char *mask, ptrdiff_t mask_step,
                   ptrdiff_t mask_row, size_t n, size_t rows) {
    switch (element) {
    case 1:
        SPREAD(unaligned_u8);
        break;
    case 2:
        SPREAD(unaligned_u16);
        break;
    case 4:
        SPREAD(unaligned_u32);
        break;
    default:
        SPREAD(unaligned_u64);
    }
}

/* ---- Where elements lie ---------------------------------------------------------------------- */

static struct spot spot_of_row(const struct shaped *s, size_t row) {
    struct spot at = {0, 0, 0};
    for (unsigned k = s->keeps; k-- > 0;) {
        const struct extent *e = &s->kept[k];
        const ptrdiff_t i = (ptrdiff_t)(row % e->length);
        row /= e->length;
        at.x += i * e->x;
        at.y += i * e->y;
        at.mask += i * e->mask;
    }
    return at;
}

static size_t length_of_row(const struct shaped *s, size_t row) {
    if (s->cut != TALLY_SEGMENTS) return s->each;
    return (size_t)(offset_at(s->offsets, s->offsets_type, row + 1) -
                    offset_at(s->offsets, s->offsets_type, row));
}

/* Returns the place of a row's result in memory. */
static ptrdiff_t result_of_row(const struct shaped *s, size_t row) {
    ptrdiff_t place = s->out_first;
    if (s->cut == TALLY_SEGMENTS) return (ptrdiff_t)row;
    for (unsigned k = s->keeps; k-- > 0;) {
        place += (ptrdiff_t)(row % s->kept[k].length) * s->kept[k].out;
        row /= s->kept[k].length;
    }
    return place;
}

/* A place among the runs of a row's elements, in C order. A run is the elements of the innermost reduced
 * dimension. */
struct runs {
    size_t index[TALLY_DIMS_MAX];
    struct spot at;
    size_t done; /* elements before this run */
};

static int next_run(const struct shaped *s, struct runs *r, size_t length) {
    r->done += length;
    for (unsigned k = s->reduces; k-- > 1;) {
        const struct extent *e = &s->reduced[k - 1];
        r->at.x += e->x;
        r->at.y += e->y;
        r->at.mask += e->mask;
        if (++r->index[k - 1] < e->length) return 1;
        r->index[k - 1] = 0;
        r->at.x -= (ptrdiff_t)e->length * e->x;
        r->at.y -= (ptrdiff_t)e->length * e->y;
        r->at.mask -= (ptrdiff_t)e->length * e->mask;
    }
    return 0;
}

static const char *element_at(const struct job *job, const char *x, ptrdiff_t at) {
    return x + at * (ptrdiff_t)job->element;
}

/* ---- A block --------------------------------------------------------------------------------- */

/* Writes to h->position[], from `to` on and before `end`, the indices in their row of those of n elements
 * that the mask shows. `first` is the index of the first of the n. Does nothing if no index is wanted. */
static void note_positions(struct worker *h, size_t to, size_t end, const unsigned char *mask,
                           ptrdiff_t step, size_t n, size_t first) {
    for (size_t i = 0; h->position && i < n && to < end; i++) {
        h->position[to] = (uint32_t)(first + i);
        to += mask[(ptrdiff_t)i * step] != 0;
    }
}

/* Brings a run of elements to place `to`, and returns how many the mask lets pass. `first` is the
 * place of the first one in its row. */
static size_t bring_run(const struct job *job, struct worker *h, size_t to, struct spot at,
                        size_t n, size_t first) {
    const struct shaped *s = job->s;
    const struct extent *e = &job->reduced;
    const unsigned char *mask = s->mask + at.mask;
    const size_t k = mask_pass(h->x + to * job->element, element_at(job, s->x, at.x), e->x,
                               job->element, mask, e->mask, n);
    if (s->y)
        mask_pass(h->y + to * job->element, element_at(job, s->y, at.y), e->y, job->element, mask,
                  e->mask, n);
    note_positions(h, to, SIZE_MAX, mask, e->mask, n, first);
    return k;
}

static size_t bring_row(const struct job *job, struct worker *h, size_t to, struct spot at) {
    struct runs r = {.at = at};
    size_t k = 0;
    do
        k += bring_run(job, h, to + k, r.at, job->reduced.length, r.done);
    while (next_run(job->s, &r, job->reduced.length));
    return k;
}

/* Brings `rows` rows that lie side by side, the first at `at`, to places `to` and behind; their
 * ends are written to end[]. */
static void bring_together(const struct job *job, struct worker *h, size_t to, struct spot at,
                           size_t rows, int64_t *end) {
    const struct shaped *s = job->s;
    const struct extent *inner = &job->reduced, *row = &job->kept;
    const uint32_t spare = (uint32_t)job->room;
    struct runs r = {.at = at};
    uint32_t count[MASKED_COLUMNS] = {0};
    do
        for (size_t i = 0; i < inner->length; i++) {
            const unsigned char *mask = s->mask + r.at.mask + (ptrdiff_t)i * inner->mask;
            for (size_t c = 0; c < rows; c++)
                count[c] += mask[(ptrdiff_t)c * row->mask] != 0;
        }
    while (next_run(s, &r, inner->length));
    for (size_t c = 0, next = to; c < rows; c++) {
        h->cursor[c] = (uint32_t)next;
        next += count[c];
        end[c] = (int64_t)next;
    }
    r = (struct runs){.at = at};
    do {
        const unsigned char *mask = s->mask + r.at.mask;
        for (size_t c = 0; c < rows; c++)
            note_positions(h, h->cursor[c], (size_t)end[c], mask + (ptrdiff_t)c * row->mask,
                           inner->mask, inner->length, r.done);
        if (s->y) {
            uint32_t cursor[MASKED_COLUMNS];
            memcpy(cursor, h->cursor, sizeof cursor);
            spread(h->y, spare, cursor, element_at(job, s->y, r.at.y), inner->y, row->y,
                   job->element, mask, inner->mask, row->mask, inner->length, rows);
        }
        spread(h->x, spare, h->cursor, element_at(job, s->x, r.at.x), inner->x, row->x,
               job->element, mask, inner->mask, row->mask, inner->length, rows);
    } while (next_run(s, &r, inner->length));
}

/* Brings `rows` rows, each of which begins where the one before ends, to places `to` and behind; their
 * ends are written to end[]. */
static void bring_adjacent(const struct job *job, struct worker *h, size_t to, struct spot at,
                           size_t row, size_t rows, int64_t *end) {
    const struct shaped *s = job->s;
    const unsigned char *mask = s->mask + at.mask;
    size_t n = 0;
    for (size_t c = 0; c < rows; c++) {
        const size_t length = length_of_row(s, row + c);
        size_t shown = 0;
        for (size_t i = 0; i < length; i++)
            shown += mask[n + i] != 0;
        note_positions(h, to, SIZE_MAX, mask + n, 1, length, 0);
        n += length;
        end[c] = (int64_t)(to += shown);
    }
    to = (size_t)end[-1];
    mask_pass(h->x + to * job->element, element_at(job, s->x, at.x), 1, job->element, mask, 1, n);
    if (s->y)
        mask_pass(h->y + to * job->element, element_at(job, s->y, at.y), 1, job->element, mask, 1,
                  n);
}

#if defined(TALLY_DEBUG)
enum { SEGMENTS, ADJACENT, TOGETHER, ONE_BY_ONE };
static const char *const way_names[] = {[SEGMENTS] = "segments",
                                        [ADJACENT] = "rows one behind another",
                                        [TOGETHER] = "rows side by side",
                                        [ONE_BY_ONE] = "rows one by one"};
static const struct path_axis way_axis = PATH_AXIS(way_names);
static const char *never_masked(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    (void)t;
    return problem_path(at[1], at[2], &p);
}
PATH_TABLE(masked_paths, "behind a mask", never_masked, &way_axis, &path_ops, &path_types);
#endif

/* Brings rows [row, row + rows) side by side, as the worker's block. */
static void bring_block(const struct job *job, struct worker *h, size_t row, size_t rows) {
    const struct shaped *s = job->s;
    h->start[0] = 0;
    if (s->cut == TALLY_SEGMENTS) {
        TALLY_PATH_OF_VALUE(masked_paths, s->p, SEGMENTS);
        const ptrdiff_t at = (ptrdiff_t)offset_at(s->offsets, s->offsets_type, row);
        bring_adjacent(job, h, 0, (struct spot){at, at, at}, row, rows, h->start + 1);
        return;
    }
    for (size_t i = 0; i < rows;) {
        const size_t most = job->together ? MASKED_COLUMNS : rows;
        struct spot at = spot_of_row(s, row + i);
        size_t beside = job->kept.length - (row + i) % job->kept.length;
        if (beside > rows - i) beside = rows - i;
        if (beside > most) beside = most;
        int64_t *end = h->start + i + 1;
        i += beside;
        TALLY_PATH_OF_VALUE(masked_paths, s->p,
                            job->adjacent                                     ? ADJACENT
                            : job->together && beside >= MASKED_COLUMNS_LEAST ? TOGETHER
                                                                              : ONE_BY_ONE);
        if (job->adjacent) {
            bring_adjacent(job, h, (size_t)end[-1], at, row, beside, end);
        } else if (job->together && beside >= MASKED_COLUMNS_LEAST) {
            bring_together(job, h, (size_t)end[-1], at, beside, end);
        } else
            for (; end <= h->start + i; end++) {
                *end = end[-1] + (int64_t)bring_row(job, h, (size_t)end[-1], at);
                at.x += job->kept.x;
                at.y += job->kept.y;
                at.mask += job->kept.mask;
            }
    }
}

/* Turns an index among a row's shown elements into one among all of them. */
static void restore_indices(const struct worker *h, uint64_t *index, size_t rows) {
    for (size_t i = 0; i < rows; i++)
        if (index[i] != UINT64_MAX) index[i] = h->position[(size_t)h->start[i] + index[i]];
}

static void mark(struct job *job, size_t row, size_t rows) {
    memset(job->todo + row, 1, rows);
    __atomic_store_n(&job->is_left, 1, __ATOMIC_RELAXED);
}

/* Writes results of rows that lie side by side. */
static void put_run(const struct job *job, char *to, const char *from, size_t size, size_t rows) {
    if (job->kept.out == 1)
        memcpy(to, from, rows * size);
    else
        for (size_t i = 0; i < rows; i++)
            memcpy(to + (ptrdiff_t)i * job->kept.out * (ptrdiff_t)size, from + i * size, size);
}

/* Reduces the block and writes its results. Marks a block with a result that does not exist. */
static tally_status reduce_block(struct job *job, struct worker *h, size_t row, size_t rows) {
    const struct shaped *s = job->s;
    struct absence absence = {.number = UINT64_MAX};
    const struct shaped segments = {.p = s->p,
                                    .cut = TALLY_SEGMENTS,
                                    .x = h->x,
                                    .y = s->y ? h->y : NULL,
                                    .out = h->out,
                                    .results = rows,
                                    .n = (size_t)h->start[rows],
                                    .offsets = h->start,
                                    .offsets_type = TALLY_I64};
    const tally_status status = cpu_parts(&h->alone, &segments, &absence);
    if (status != TALLY_OK) return status;
    if (absence.number != UINT64_MAX) {
        TALLY_PATH("a result that does not exist");
        mark(job, row, rows);
        return TALLY_OK;
    }
    for (unsigned v = 0; v < s->p->values; v++) {
        const tally_op op = s->p->value[v].op;
        const size_t size = type_size(s->p->value[v].type);
        const char *from = h->out[v];
        if (op == TALLY_ARGMIN || op == TALLY_ARGMAX) restore_indices(h, h->out[v], rows);
        for (size_t i = 0, beside; i < rows; i += beside) {
            beside = job->kept.length - (row + i) % job->kept.length;
            if (beside > rows - i) beside = rows - i;
            put_run(job, (char *)s->out[v] + result_of_row(s, row + i) * (ptrdiff_t)size,
                    from + i * size, size, beside);
        }
    }
    return TALLY_OK;
}

/* ---- Tasks ----------------------------------------------------------------------------------- */

/* Returns how many rows from this one on make a block; 0 if this one is too long for a block. */
static size_t rows_of_block(const struct job *job, size_t row, size_t end) {
    size_t rows = 0, n = 0;
    for (; row + rows < end && rows < MASKED_ROWS; rows++) {
        const size_t length = length_of_row(job->s, row + rows);
        if (length > MASKED_EACH || n + length > job->room) break;
        n += length;
    }
    return rows;
}

static void masked_task(void *context, size_t task, unsigned worker) {
    struct job *job = context;
    const size_t results = job->s->results;
    size_t row = task * job->group;
    const size_t end = results - row < job->group ? results : row + job->group;
    while (row < end && !stop_shared(&job->halt)) {
        struct worker *h = &job->workers[worker];
        const size_t rows = rows_of_block(job, row, end);
        if (rows == 0) {
            TALLY_PATH("a row that is too long");
            mark(job, row++, 1);
            continue;
        }
        bring_block(job, h, row, rows);
        const tally_status status = reduce_block(job, h, row, rows);
        if (status != TALLY_OK) {
            __atomic_store_n(&job->failed, status, __ATOMIC_RELAXED);
            return;
        }
        row += rows;
    }
}

/* ---- The call -------------------------------------------------------------------------------- */

/* Lays out a worker's arrays. bring_together() writes hidden elements to place `room`. */
static void lay_out(const struct job *job, struct worker *h) {
    const struct problem *p = job->s->p;
    struct scratch *s = &h->scratch;
    const size_t elements = job->room + 1 + PADDING / job->element;
    h->x = scratch_array(s, elements, job->element);
    if (job->s->y) h->y = scratch_array(s, elements, job->element);
    if (p->extremes & WANT_INDEX) h->position = scratch_array(s, job->room, sizeof *h->position);
    h->start = scratch_array(s, MASKED_ROWS + 1, sizeof *h->start);
    for (unsigned v = 0; v < p->values; v++)
        h->out[v] = scratch_array(s, MASKED_ROWS, type_size(p->value[v].type));
}

static int make_workers(struct job *job, const struct cpu_device *d) {
    job->workers = calloc(d->threads, sizeof *job->workers);
    for (unsigned i = 0; job->workers && i < d->threads; i++) {
        struct worker *h = &job->workers[i];
        h->alone =
            (struct cpu_device){.base.kind = &cpu_device_kind, .kernels = d->kernels, .threads = 1};
        lay_out(job, h);
        if (!scratch_create(&h->scratch, 0)) return 0;
        lay_out(job, h);
    }
    return job->workers != NULL;
}

static ptrdiff_t magnitude(ptrdiff_t stride) {
    return stride < 0 ? -stride : stride;
}

/* Returns whether all arrays have this stride. */
static int is_step(const struct extent *e, size_t stride, const char *y) {
    return e->x == (ptrdiff_t)stride && e->mask == e->x && (!y || e->y == e->x);
}

int cpu_masked(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
               tally_status *status) {
    struct job job = {.s = s, .element = type_size(s->p->type), .room = MASKED_BLOCK};
    const size_t n = s->cut == TALLY_SEGMENTS ? s->n : s->results * s->each;
    *todo = NULL;
    /* A block numbers its results anew, so they would get wrong means: such rows are done one by one. */
    if (!s->mask || s->means || n == 0 || n / s->results > MASKED_EACH) return 0;
    job.kept = s->keeps ? s->kept[s->keeps - 1] : (struct extent){.length = 1};
    job.reduced = s->reduces ? s->reduced[s->reduces - 1] : (struct extent){.length = 1};
    if (s->cut == TALLY_SEGMENTS) job.kept = (struct extent){.length = s->results, .out = 1};
    job.adjacent = s->cut == TALLY_AXES && s->reduces == 1 && is_step(&job.reduced, 1, s->y) &&
                   (s->keeps == 0 || is_step(&job.kept, s->each, s->y));
    job.together = s->cut == TALLY_AXES && s->keeps > 0 && s->reduces > 0 &&
                   magnitude(job.kept.x) < magnitude(job.reduced.x);
    if (job.together && job.room < MASKED_COLUMNS * s->each) job.room = MASKED_COLUMNS * s->each;
    job.group = MASKED_TASK_BYTES / (n / s->results * job.element + 1) + 1;
    if (job.group > s->results / d->threads / 8 + 1) job.group = s->results / d->threads / 8 + 1;
    if (job.together)
        job.group = (job.group + MASKED_COLUMNS - 1) / MASKED_COLUMNS * MASKED_COLUMNS;
    job.todo = calloc(s->results, 1);
    if (!job.todo || !make_workers(&job, d))
        *status = fail(TALLY_ENOMEM, "no memory for a reduction in parts");
    else
        *status = cpu_share(d, n * job.element, (s->results + job.group - 1) / job.group,
                            masked_task, &job);
    if (*status == TALLY_OK && job.halt) *status = stop_status();
    if (*status == TALLY_OK && job.failed != TALLY_OK)
        *status = fail(job.failed, "no memory for a reduction in parts");
    for (unsigned i = 0; job.workers && i < d->threads; i++)
        scratch_destroy(&job.workers[i].scratch);
    free(job.workers);
    if (job.is_left && *status == TALLY_OK)
        *todo = job.todo;
    else
        free(job.todo);
    return 1;
}
