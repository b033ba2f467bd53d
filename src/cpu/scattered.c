/*
 * cpu/scattered.c - see scattered.h.
 *
 * Each worker has a share of the rows, in their order, and columns of its own for all groups, one group behind another.
 * Then tasks of some groups each merge these columns, and lower them. (If workers shared the columns, each would
 * read pieces of rows; that takes three times as long.)
 *
 * Groups have whole steps of columns: the elements behind a row, which are those of its neighbour, are added to columns that
 * nobody lowers. Where the array ends, rows are copied first. Behind the last group there is one more, of rows that are
 * skipped, or that a mask does not show.
 */
#include "cpu/scattered.h"

#include "base/paths.h"
#include "base/status.h"
#include "base/types.h"
#include "cpu/groups.h"
#include "cpu/rows.h"
#include "device/vectors.h"

#include <string.h>

struct scatter_job {
    const struct scattered *r;
    size_t width, unit, stride; /* columns of a row, of a group, and of all groups */
    const char *x_end, *y_end;  /* where the arrays end */
    size_t shares, rows;        /* shares of the rows; the rows of each but the last */
    size_t batch;               /* rows that are added at once */
    size_t groups;              /* of a task that lowers */
    struct scratch scratch;     /* has planes[] and counts[] */
    uint64_t *planes;           /* [shares][planes][stride] */
    uint32_t *counts;           /* [shares][s->count + 1]: how many rows */
    int outside;                /* an id is outside of all groups */
};

/* A worker's part of the result: the columns that it adds rows to, and how many rows of each group it has added. */
struct share {
    uint64_t *planes;
    uint32_t *count;
};

static struct share share_of(const struct scatter_job *job, size_t nth) {
    return (struct share){job->planes + nth * job->stride * job->r->a->planes,
                          job->counts + nth * (job->r->s->count + 1)};
}

/* ---- Adding --------------------------------------------------------------------------------- */

/* A form of the problem, and a share's columns of it. */
struct adder {
    const struct column_form *form;
    uint64_t *columns;
};

/* All forms of the problem: a row that is added to a share is added to the columns of each. */
struct adders {
    size_t count;
    struct adder of[FORMS];
};

static struct adders find_adders(const struct blocks *a, const struct share *to, size_t stride) {
    struct adders adders = {0};
    for_forms(f, a) adders.of[adders.count++] =
        (struct adder){form_of(a, f), to->planes + a->plane_of[f] * stride};
    return adders;
}

/* Clears the columns of a group, whose first row is that of number `first`. */
static void clear_group(const struct scatter_job *job, const struct adders *to, uint32_t group,
                        uint64_t first) {
    for (size_t k = 0; k < to->count; k++) {
        const struct column_form *form = to->of[k].form;
        char *columns = (char *)to->of[k].columns + group * job->unit * form->lane;
        form->clear((uint64_t *)(void *)columns, job->stride, job->unit, first);
    }
}

static int is_shown(const struct shaped *s, size_t row) {
    return !s->mask || s->mask[(ptrdiff_t)row * s->reduced[0].mask];
}

/* Sets group[] to the groups of `rows` rows from number `first` on, counts the rows of each group, and clears the
 * columns of new groups. Returns 0 if an id is outside of all groups and should not be. */
static int find_groups(const struct scatter_job *job, const struct share *to,
                       const struct adders *adders, size_t first, size_t rows, uint32_t *group) {
    const struct shaped *s = job->r->s;
    const uint32_t count = (uint32_t)s->count;
    cpu_narrow_ids(s, job->r->a->k, first, rows, group);
    for (size_t i = 0; i < rows; i++) {
        const int shown = is_shown(s, first + i);
        if (group[i] >= count && shown && !s->skip_outside) return 0;
        if (group[i] >= count || !shown) group[i] = count;
        if (to->count[group[i]]++ == 0) clear_group(job, adders, group[i], first + i);
    }
    return 1;
}

static void add_each(const struct scatter_job *job, const struct adders *to,
                     const struct column_rows *in, const uint32_t *group) {
    for (size_t k = 0; k < to->count; k++)
        to->of[k].form->each(to->of[k].columns, job->stride, in, group, job->unit);
}

/* Returns whether whole steps of all rows from the one at `at` to the one at `last` lie in their array, which ends at
 * `end`. */
static int has_steps(const struct scatter_job *job, const char *at, const char *last,
                     const char *end) {
    const size_t bytes = job->unit * job->r->a->element;
    return !at || ((size_t)(end - at) >= bytes && (size_t)(end - last) >= bytes);
}

/* Adds rows, one by one where the whole steps of some do not lie in the arrays. */
static void add_batch(const struct scatter_job *job, const struct adders *to,
                      const struct column_rows *in, const uint32_t *group) {
    const ptrdiff_t more = (ptrdiff_t)in->rows - 1;
    if (has_steps(job, in->x, in->x + more * in->x_row, job->x_end) &&
        has_steps(job, in->y, in->y ? in->y + more * in->y_row : NULL, job->y_end)) {
        add_each(job, to, in, group);
        return;
    }
    const size_t bytes = job->width * job->r->a->element;
    for (size_t i = 0; i < in->rows; i++) {
        char x[SCATTERED_MOST] = {0}, y[SCATTERED_MOST] = {0};
        memcpy(x, in->x + (ptrdiff_t)i * in->x_row, bytes);
        if (in->y) memcpy(y, in->y + (ptrdiff_t)i * in->y_row, bytes);
        const struct column_rows row = {x, in->y ? y : NULL, 0, 0, 1, in->first + i, 1, 0};
        add_each(job, to, &row, group + i);
    }
}

static void add_share(void *context, size_t nth, unsigned worker) {
    struct scatter_job *job = context;
    const struct scattered *r = job->r;
    const struct shaped *s = r->s;
    const struct share to = share_of(job, nth);
    const size_t begin = nth * job->rows, end = nth + 1 == job->shares ? s->n : begin + job->rows;
    const struct adders adders = find_adders(r->a, &to, job->stride);
    uint32_t group[SCATTERED_BATCH];
    memset(to.count, 0, (s->count + 1) * sizeof *to.count);
    for (size_t rows, i = begin; i < end; i += rows) {
        rows = end - i < job->batch ? end - i : job->batch;
        if (block_halts(r->a, &r->a->workers[worker], rows * job->width) ||
            __atomic_load_n(&job->outside, __ATOMIC_RELAXED))
            return;
        if (!find_groups(job, &to, &adders, i, rows, group)) {
            __atomic_store_n(&job->outside, 1, __ATOMIC_RELAXED);
            return;
        }
        const struct column_rows in = {s->x + (ptrdiff_t)i * r->x_row,
                                       s->y ? s->y + (ptrdiff_t)i * r->y_row : NULL,
                                       r->x_row,
                                       r->y_row,
                                       rows,
                                       i,
                                       1,
                                       0};
        add_batch(job, &adders, &in, group);
    }
}

/* ---- Lowering ------------------------------------------------------------------------------- */

/* Merges a group's columns of all shares into those of the first one; returns how many rows it has. Padding is copied, too, as
 * merges read whole vectors. */
static size_t merge_shares(const struct scatter_job *job, size_t group) {
    const struct blocks *a = job->r->a;
    const struct share into = share_of(job, 0);
    const size_t at = group * job->unit;
    size_t n = into.count[group];
    for (size_t k = 1; k < job->shares; k++) {
        const struct share from = share_of(job, k);
        if (from.count[group] == 0) continue;
        if (n == 0)
            block_copy_columns(a, into.planes, job->stride, at, from.planes, job->stride, at,
                               job->unit);
        else
            block_merge(a, into.planes, from.planes, job->stride, at, job->width);
        n += from.count[group];
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
        block_copy_columns(a, h->planes, stride, i * job->width, job->planes, job->stride,
                           (first + i) * job->unit, job->width);
    (void)block_lower(a, h, h->planes, stride, &at); /* always 1: a->exact is NULL */
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
        for (size_t i = 0; i < job->width && a->counts; i++)
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

static size_t stride_of(const struct scattered *r) {
    return (r->s->count + 1) * unit_of(r) + COLUMN_STEP;
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

/* Returns whether a mask, if there is one, shows whole rows. */
static int masks_rows(const struct shaped *s) {
    for (unsigned k = 0; s->mask && k < s->keeps; k++)
        if (s->kept[k].mask != 0 && s->kept[k].length > 1) return 0;
    return 1;
}

/* Returns the bytes of a column that most rows touch: the planes that they change, or at least an element. */
static size_t touched_bytes(const struct blocks *a) {
    size_t bytes = 0;
    for_forms(f, a) bytes += (size_t)form_of(a, f)->changed * form_of(a, f)->lane;
    return bytes > a->element ? bytes : a->element;
}

static size_t array_bytes(const struct scattered *r) {
    return r->s->n * r->s->vectors * r->a->element;
}

/* Returns how many workers share the rows. */
static size_t shares_of(const struct scattered *r, unsigned threads) {
    const size_t most = array_bytes(r) / SCATTERED_SHARE + 1;
    return most < threads ? most : threads;
}

int scattered_suits(const struct scattered *r, unsigned threads) {
    const struct shaped *s = r->s;
    const size_t shares = shares_of(r, threads), state = touched_bytes(r->a),
                 touched = unit_of(r) * state, wide = (touched + SCATTERED_ROW - 1) / SCATTERED_ROW;
    return r->a->total == 1 && has_neighbours(r) && masks_rows(s) &&
           (wide == 1 || (touched <= SCATTERED_MOST && state <= 2 * r->a->element)) &&
           s->count <= s->n / SCATTERED_ROWS / wide / shares &&
           s->count * touched <= SCATTERED_BYTES / wide / shares &&
           s->count * unit_of(r) * r->a->planes <= SCATTERED_PLANES / sizeof(uint64_t) / shares &&
           (state <= SCATTERED_STATE || array_bytes(r) >= SCATTERED_LARGE) && !s->sorted &&
           !cpu_ids_look_sorted(s);
}

static void lay_out(struct scatter_job *job) {
    const size_t planes = job->r->a->planes, counts = job->r->s->count + 1;
    job->planes =
        scratch_array(&job->scratch, job->shares * planes * job->stride, sizeof *job->planes);
    job->counts = scratch_array(&job->scratch, job->shares * counts, sizeof *job->counts);
}

tally_status scattered_reduce(struct cpu_device *d, const struct scattered *r) {
    const struct shaped *s = r->s;
    struct scatter_job job = {
        .r = r, .width = s->vectors, .unit = unit_of(r), .shares = shares_of(r, d->threads)};
    job.stride = stride_of(r);
    const size_t batch = SCATTERED_BATCH_BYTES / (job.width * r->a->element);
    job.batch = batch < SCATTERED_BATCH ? batch : SCATTERED_BATCH;
    job.x_end = end_of(r, s->x, r->x_row);
    if (s->y) job.y_end = end_of(r, s->y, r->y_row);
    job.rows = s->n / job.shares;
    job.groups = (s->count + SCATTERED_TASKS - 1) / SCATTERED_TASKS;
    tally_status status = TALLY_OK;
    lay_out(&job);
    if (scratch_create(&job.scratch, 0))
        lay_out(&job);
    else
        status = TALLY_EINVAL;
    if (status == TALLY_OK) status = cpu_share(d, array_bytes(r), job.shares, add_share, &job);
    if (status == TALLY_OK && blocks_are_halted(r->a)) status = stop_status();
    if (status == TALLY_OK && job.outside) status = TALLY_EINVAL;
    if (job.shares > 1) TALLY_PATH("shares that are merged");
    if (status == TALLY_OK)
        status = cpu_share(d, job.scratch.size, (s->count + job.groups - 1) / job.groups,
                           lower_task, &job);
    scratch_destroy(&job.scratch);
    return status;
}
