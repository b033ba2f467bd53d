/*
 * shaped_axes.c - reductions along axes.
 *
 * Arrays that are whole in memory are reduced in blocks of results, a call each. The calls have the
 * array's own strides, so Fortran's order needs no copy, and results come in C order.
 *
 * Other arrays are read in the order of their elements. The dimensions before the first reduced one
 * are all kept: each of their indices has a run of elements with results of its own. As many runs
 * as fit a slab are one call. If a run is larger, each of its results has a state, and each element
 * gets the number of its result as its id.
 */
#include "parts/shaped_cuts.h"

#include "common/message.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Whole arrays ---- */

struct walk {
    struct job *job;
    tally_shape shape;
    size_t length[NPY_DIMS]; /* of the block */
    ptrdiff_t x[NPY_DIMS], y[NPY_DIMS], mask[NPY_DIMS];
    ptrdiff_t at_x, at_y, at_mask; /* where the block begins */
};

static bool call_block(struct walk *w, size_t count) {
    const struct job *job = w->job;
    const ptrdiff_t size = (ptrdiff_t)job->x.element;
    tally_shape shape = w->shape;
    if (job->mask.is_open) shape.mask = job->mask.all + w->at_mask;
    return job_call(w->job, &shape, job->x.all ? job->x.all + w->at_x * size : NULL,
                    job->y.all ? job->y.all + w->at_y * size : NULL, count);
}

/* Reduces the dimensions from d on, which have `inner` results, in blocks of at most BLOCK_RESULTS. */
static bool walk(struct walk *w, unsigned d, uint64_t inner) {
    const struct source *s = &w->job->x.source;
    while (d < s->dims && w->job->axes >> d & 1)
        d++;
    if (d == s->dims) return call_block(w, 1);
    if (s->length[d]) inner /= s->length[d];
    const uint64_t step = inner >= BLOCK_RESULTS ? 1 : BLOCK_RESULTS / inner;
    const struct walk before = *w;
    for (uint64_t i = 0; i < s->length[d]; i += step) {
        const uint64_t n = s->length[d] - i < step ? s->length[d] - i : step;
        w->length[d] = (size_t)n;
        w->at_x = before.at_x + (ptrdiff_t)i * w->x[d];
        w->at_y = before.at_y + (ptrdiff_t)i * w->y[d];
        w->at_mask = before.at_mask + (ptrdiff_t)i * w->mask[d];
        const bool done = inner > BLOCK_RESULTS && n == 1 ? walk(w, d + 1, inner)
                                                          : call_block(w, (size_t)(n * inner));
        if (!done) return false;
    }
    w->length[d] = (size_t)s->length[d];
    return true;
}

static bool reduce_whole(struct job *job, uint64_t results) {
    const struct source *s = &job->x.source;
    struct walk w = {.job = job};
    if (results == 0) return true;
    for (unsigned d = 0; d < s->dims; d++)
        w.length[d] = (size_t)s->length[d];
    if (job->x.n) { /* without elements the product of the other lengths may overflow */
        operand_strides(&job->x, w.x);
        if (job->y.is_open) operand_strides_like(&job->y, s, w.y);
        if (job->mask.is_open) operand_strides_like(&job->mask, s, w.mask);
    }
    w.shape = (tally_shape){.cut = TALLY_AXES,
                            .dims = s->dims,
                            .length = w.length,
                            .x_stride = w.x,
                            .y_stride = w.y,
                            .mask_stride = w.mask,
                            .axes = job->axes};
    job->r->bytes += job->x.n * job->x.element * (job->y.is_open ? 2 : 1);
    return walk(&w, 0, results);
}

/* ---- Read in order ---- */

/* A dimension of a run, in the order of the elements: the outermost is level 0. */
struct level {
    uint64_t length;
    uint64_t id;    /* a step along it adds this to the result's number; 0 for a reduced one */
    uint64_t place; /* and this to the index within the reduced axes; 0 for a kept one */
};

struct order {
    unsigned levels;
    struct level level[NPY_DIMS];
    uint64_t index[NPY_DIMS]; /* of the next element */
    uint64_t each;            /* elements of a run */
    uint64_t results;         /* results of a run */
};

/* Plans the levels of a run: all dimensions from the first reduced one on, or in Fortran's order
 * all. Leaves out those of length 1. Returns how many runs follow one another. */
static uint64_t plan(const struct job *job, struct order *o) {
    const struct source *s = &job->x.source;
    uint64_t id = 1, place = 1, outer = 1;
    struct level all[NPY_DIMS], kept[NPY_DIMS];
    *o = (struct order){.each = 1, .results = 1};
    for (unsigned d = s->dims; d-- > 0;) {
        const bool reduced = job->axes >> d & 1;
        all[d] = (struct level){s->length[d], reduced ? 0 : id, reduced ? place : 0};
        *(reduced ? &place : &id) *= s->length[d];
    }
    bool starts = s->is_fortran;
    unsigned count = 0;
    for (unsigned i = 0; i < s->dims; i++) {
        const struct level l = all[s->is_fortran ? s->dims - 1 - i : i];
        if (l.length == 1) continue;
        starts |= l.place != 0;
        if (starts)
            kept[count++] = l;
        else
            outer *= l.length;
    }
    for (unsigned i = 0; i < count; i++) {
        o->level[o->levels++] = kept[i];
        o->each *= kept[i].length;
        if (kept[i].id) o->results *= kept[i].length;
    }
    return outer;
}

/* Returns the shape of `count` runs, as an array whose first dimension counts the runs. */
static tally_shape slab_shape(const struct order *o, size_t count, size_t length[NPY_DIMS + 1]) {
    tally_shape shape = {.cut = TALLY_AXES, .dims = 1, .length = length};
    length[0] = count;
    for (unsigned i = 0; i < o->levels; i++) {
        if (!o->level[i].id) shape.axes |= 1u << shape.dims;
        length[shape.dims++] = (size_t)o->level[i].length;
    }
    return shape;
}

static bool reduce_slabs(struct job *job, const struct order *o, uint64_t outer) {
    size_t length[NPY_DIMS + 1];
    uint64_t most = job_slab(job) / o->each;
    if (most > BLOCK_RESULTS / o->results + 1) most = BLOCK_RESULTS / o->results + 1;
    while (outer) {
        const size_t count = (size_t)(outer < most ? outer : most);
        struct chunk chunk;
        if (!job_next(job, count * (size_t)o->each, &chunk)) return false;
        if (chunk.n < count * o->each) return false; /* the source has said why */
        tally_shape shape = slab_shape(o, count, length);
        shape.mask = chunk.mask;
        if (!job_call(job, &shape, chunk.x, chunk.y, count * (size_t)o->results)) return false;
        outer -= count;
    }
    return true;
}

/* Writes to id[0..n) the numbers of the results that the next n elements belong to. */
static void number(struct order *o, uint32_t *id, size_t n) {
    const struct level *last = &o->level[o->levels - 1];
    uint64_t *index = o->index;
    for (size_t i = 0; i < n;) {
        uint64_t first = 0;
        for (unsigned k = 0; k < o->levels; k++)
            first += index[k] * o->level[k].id;
        uint64_t run = last->length - index[o->levels - 1];
        if (run > n - i) run = n - i;
        for (uint64_t k = 0; k < run; k++)
            id[i + k] = (uint32_t)(first + k * last->id);
        i += run;
        index[o->levels - 1] += run;
        for (unsigned k = o->levels; k-- > 0 && index[k] == o->level[k].length && k > 0;) {
            index[k] = 0;
            index[k - 1]++;
        }
    }
}

/* Replaces the indices of argmin and argmax. A state counts all elements that it is fed, those of a
 * run; a result counts those within the reduced axes. */
static void place(const struct job *job, const struct order *o) {
    for (size_t v = 0; v < job->results.values; v++) {
        const tally_op op = job->results.op[v];
        uint64_t *at = job->results.out[v];
        if (op != TALLY_ARGMIN && op != TALLY_ARGMAX) continue;
        for (uint64_t i = 0; i < o->results; i++) {
            uint64_t rest = at[i], found = 0;
            if (rest == UINT64_MAX) continue;
            for (unsigned k = o->levels; k-- > 0; rest /= o->level[k].length)
                found += rest % o->level[k].length * o->level[k].place;
            at[i] = found;
        }
    }
}

static bool feed_states(struct job *job, struct order *o, tally_groups *states, uint32_t *id,
                        size_t most) {
    uint64_t left = o->each, period = o->each / (o->levels ? o->level[0].length : 1);
    const bool repeats = period && most % period == 0 && !o->level[0].id;
    struct chunk chunk;
    memset(o->index, 0, sizeof o->index);
    for (bool first = true; left; first = false) {
        const size_t n = (size_t)(left < most ? left : most);
        if (!job_next(job, n, &chunk) || chunk.n < n) return false;
        if (first || !repeats) number(o, id, n);
        if (!job_feed(job, states, o->results, &chunk, id, TALLY_U32)) return false;
        left -= n;
    }
    return true;
}

static bool lower_states(struct job *job, const struct order *o, const tally_groups *states) {
    if (!results_room(&job->results, (size_t)o->results)) return false;
    const tally_status status = tally_groups_values(states, job->results.out);
    if (status != TALLY_OK) return job_failed(job, job->results.count, status);
    place(job, o);
    return results_put(&job->results, (size_t)o->results);
}

/* Returns how many elements to feed at a time: at least 32 for each result, if the run has them, so
 * that the cost of a state is small beside that of its elements. */
static size_t chunk_of_states(const struct job *job, const struct order *o) {
    const uint64_t period = o->each / o->level[0].length;
    uint64_t most = job_slab(job) / 2;
    if (most < 32 * o->results) most = 32 * o->results;
    if (most > o->each) most = o->each;
    return (size_t)(most > period ? most - most % period : most);
}

static bool reduce_by_states(struct job *job, struct order *o, uint64_t outer) {
    const size_t most = chunk_of_states(job, o);
    uint32_t *id = malloc(most * sizeof *id);
    bool done = id != NULL;
    if (!done) failed("no memory for %zu ids", most);
    for (uint64_t i = 0; i < outer && done; i++) {
        tally_groups *states;
        done = job_states(job, o->results, &states) && feed_states(job, o, states, id, most) &&
               lower_states(job, o, states);
        tally_groups_destroy(states);
    }
    free(id);
    return done;
}

/* Returns whether the elements of a result must come in C order: an index, or the canonical
 * tree. */
static bool is_ordered(const struct job *job) {
    const struct reduction *r = job->r;
    return reduction_asks(r, TALLY_ARGMIN) || reduction_asks(r, TALLY_ARGMAX) ||
           reduction_asks(r, TALLY_PROD);
}

/* Returns whether the elements of each result lie in the file in C order. */
static bool is_in_order(const struct order *o) {
    uint64_t before = UINT64_MAX;
    for (unsigned i = 0; i < o->levels; i++) {
        if (!o->level[i].place) continue;
        if (o->level[i].place > before) return false;
        before = o->level[i].place;
    }
    return true;
}

static bool is_same_order(const struct job *job) {
    const bool fortran = job->x.source.is_fortran;
    const struct operand *other[] = {&job->y, &job->mask};
    for (int i = 0; i < 2; i++)
        if (other[i]->is_open && other[i]->source.is_fortran != fortran &&
            other[i]->source.dims > 1)
            return false;
    return true;
}

static bool count_results(struct job *job, uint64_t *results) {
    const struct source *s = &job->x.source;
    bool none = false;
    *results = 1;
    for (unsigned d = 0; d < s->dims; d++) {
        if (job->axes >> d & 1) continue;
        job->length[job->dims++] = s->length[d];
        none |= s->length[d] == 0;
    }
    for (unsigned i = 0; i < job->dims && !none; i++)
        if (__builtin_mul_overflow(*results, job->length[i], results) || *results > INT64_MAX)
            return failed("%s: these are more results than can be counted", s->name), false;
    if (none) *results = 0;
    return true;
}

bool job_axes(struct job *job) {
    uint64_t results;
    struct order order;
    if (!count_results(job, &results)) return false;
    if (job->x.n == 0) return job_drain(job) && reduce_whole(job, results);
    const uint64_t outer = plan(job, &order);
    const bool fits_slab = order.each <= job_slab(job);
    const double bytes = (double)job->x.n * (double)job->x.element * (job->y.is_open ? 2 : 1) +
                         (job->mask.is_open ? (double)job->x.n : 0);
    const double states = fits_slab ? 0 : job_states_bytes(job, order.results);
    const bool can_stream = is_same_order(job) && (!is_ordered(job) || is_in_order(&order)) &&
                            (fits_slab ? !job->x.source.is_fortran || outer * order.results == 1
                                       : order.results <= UINT32_MAX && job_fits(2 * states) &&
                                             (states <= bytes || !job_fits(2 * bytes)));
    /* A file that can be mapped is reduced in place if memory can hold it or its runs fit a slab,
     * or if it cannot be read in order. Otherwise it is read in order, as its results are scattered
     * over it. */
    if (job->x.source.can_map && (fits_slab || job_fits(bytes) || !can_stream) && job_map(job))
        return reduce_whole(job, results);
    if (can_stream && fits_slab) return reduce_slabs(job, &order, outer) && job_drain(job);
    if (can_stream) return reduce_by_states(job, &order, outer) && job_drain(job);
    return job_load(job) && reduce_whole(job, results);
}
