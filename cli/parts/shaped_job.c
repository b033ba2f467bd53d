/*
 * shaped_job.c - see shaped_job.h: the steps that the cuts share.
 */
#include "parts/shaped_job.h"

#include "common/memory.h"
#include "common/message.h"
#include "common/types.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool job_failed(const struct job *job, uint64_t first, tally_status status) {
    size_t number;
    const char *words = tally_error_result(&number);
    if (!words) return failed("%s: %s", job->x.source.name, tally_error()), false;
    return failed("%s: result %" PRIu64 "%s%s", job->x.source.name,
                  job->label ? job->label[first + number] : first + number, words,
                  status == TALLY_ERANGE && !job->r->problem.out
                      ? "; --out f64 rounds what is a sum"
                      : ""),
           false;
}

bool job_call(struct job *job, const tally_shape *shape, const void *x, const void *y,
              size_t count) {
    if (!results_room(&job->results, count)) return false;
    const tally_status status =
        tally_reduce_shaped(job->r->device, &job->r->problem, shape, x, y, job->results.out);
    if (status != TALLY_OK) return job_failed(job, job->results.count, status);
    return results_put(&job->results, count);
}

static bool tell_lengths(const struct job *job, const struct operand *other) {
    return failed("%s has %" PRIu64 " elements but %s has %s; each needs a partner",
                  job->x.source.name, job->x.at, other->source.name,
                  other->at < job->x.at ? "fewer" : "more"),
           false;
}

/* Sets there[0..n) to 0 for elements that are missing in x, or in y if that is not NULL, and for
 * those that `mask` leaves out; NULL leaves out none. */
static bool mark_missing(struct job *job, const void *x, const void *y, const void *mask,
                         size_t n) {
    const tally_type type = job->r->problem.type;
    if (n > job->there_room) {
        free(job->there);
        job->there = malloc(n);
        job->there_room = job->there ? n : 0;
    }
    if (n && !job->there) return failed("no memory for a mask of %zu bytes", n), false;
    if (!n) return true;
    if (mask)
        memcpy(job->there, mask, n);
    else
        memset(job->there, 1, n);
    missing_mark(job->r->how.spelling, type, x, n, job->there);
    if (y) missing_mark(job->r->how.spelling, type, y, n, job->there);
    return true;
}

/* Makes the mask of whole arrays leave out missing elements, too. Without --mask it becomes a mask
 * of x's shape. */
static bool mark_all(struct job *job) {
    struct operand *mask = &job->mask;
    if (!job->skips || (mask->all && mask->all == job->there) || !job->x.n) return true;
    if (!mark_missing(job, job->x.all, job->y.all, mask->all, (size_t)job->x.n)) return false;
    if (!mask->is_open) {
        const struct source *s = &job->x.source;
        mask->source.name = s->name;
        mask->source.has_shape = s->has_shape;
        mask->source.is_fortran = s->is_fortran;
        mask->source.dims = s->dims;
        memcpy(mask->source.length, s->length, sizeof s->length);
        mask->n = job->x.n;
        mask->element = 1;
        mask->is_open = true;
    }
    mask->all = job->there;
    return true;
}

bool job_next(struct job *job, size_t wanted, struct chunk *out) {
    size_t n;
    *out = (struct chunk){.n = 0};
    if (!operand_next(&job->x, wanted, &out->x, &out->n)) return false;
    job->r->bytes += (uint64_t)out->n * job->x.element;
    if (job->y.is_open) {
        if (!operand_next(&job->y, wanted, &out->y, &n)) return false;
        if (n != out->n) return tell_lengths(job, &job->y);
        job->r->bytes += (uint64_t)out->n * job->x.element;
    }
    if (job->mask.is_open) {
        if (!operand_next(&job->mask, wanted, &out->mask, &n)) return false;
        if (n != out->n) return tell_lengths(job, &job->mask);
    }
    if (!job->skips || (job->there && job->mask.all == job->there)) return true;
    if (!mark_missing(job, out->x, out->y, out->mask, out->n)) return false;
    out->mask = job->there;
    return true;
}

bool job_skip(struct job *job, uint64_t count) {
    return operand_skip(&job->x, count) &&
           (!job->y.is_open || operand_skip(&job->y, job->x.at - job->y.at)) &&
           (!job->mask.is_open || operand_skip(&job->mask, job->x.at - job->mask.at));
}

static bool drain(const struct job *job, struct operand *o) {
    if (!o->is_open || o->all) return true;
    if (!operand_skip(o, UINT64_MAX - o->at)) return false;
    return o->at == job->x.at || tell_lengths(job, o);
}

bool job_drain(struct job *job) {
    return (job->x.all || operand_skip(&job->x, UINT64_MAX - job->x.at)) && drain(job, &job->y) &&
           drain(job, &job->mask);
}

size_t job_slab(const struct job *job) {
    return SLAB_BYTES / job->x.element;
}

static double saved_bytes(const tally_problem *problem, size_t count) {
    tally_groups *groups;
    if (tally_groups_create(problem, count, &groups) != TALLY_OK) return 0;
    const size_t size = tally_groups_size(groups);
    tally_groups_destroy(groups);
    return (double)size;
}

/* An estimate: a state in memory is about as large as a saved one; over the canonical tree it has
 * some kilobytes more. */
double job_states_bytes(const struct job *job, uint64_t count) {
    const tally_problem *p = &job->r->problem;
    const bool is_tree = type_is_floating(p->type) && reduction_asks(job->r, TALLY_PROD);
    return (double)count * (1.25 * (saved_bytes(p, 2) - saved_bytes(p, 1)) + (is_tree ? 8192 : 64));
}

bool job_fits(double bytes) {
    return bytes < (double)memory_available() / 2;
}

bool job_states(const struct job *job, uint64_t count, tally_groups **out) {
    const double bytes = job_states_bytes(job, count);
    *out = NULL;
    if (!job_fits(bytes))
        return failed("%s is read in order, and the states of %" PRIu64 " results take %.3g GB, "
                      "more than there is room for; a plain .npy file of this machine's byte "
                      "order is read where it lies",
                      job->x.source.name, count, bytes * 1e-9),
               false;
    if (tally_groups_create(&job->r->problem, (size_t)count, out) == TALLY_OK) return true;
    return failed("%s", tally_error()), false;
}

bool job_feed(const struct job *job, tally_groups *states, uint64_t count, const struct chunk *p,
              const void *ids, tally_type ids_type) {
    const tally_shape shape = {.cut = TALLY_GROUPS,
                               .n = p->n,
                               .count = (size_t)count,
                               .ids = ids ? ids : calloc(p->n + 1, 1),
                               .ids_type = ids ? ids_type : TALLY_U8,
                               .mask = p->mask,
                               .sorted = !ids,
                               .skip_outside = job->ask.skip_outside};
    if (!shape.ids) return failed("no memory for %zu ids", p->n), false;
    const tally_status status = tally_groups_feed(states, job->r->device, &shape, p->x, p->y);
    if (!ids) free((void *)(uintptr_t)shape.ids);
    return status == TALLY_OK || job_failed(job, job->results.count, status);
}

bool job_lower(struct job *job, const tally_groups *states, uint64_t count) {
    if (!results_room(&job->results, (size_t)count)) return false;
    const tally_status status = tally_groups_values(states, job->results.out);
    if (status != TALLY_OK) return job_failed(job, job->results.count, status);
    return results_put(&job->results, (size_t)count);
}

bool job_feed_run(struct job *job, uint64_t count) {
    tally_groups *state;
    struct chunk chunk;
    const size_t slab = job_slab(job);
    bool done = job_states(job, 1, &state);
    while (done && count) {
        const size_t wanted = count < slab ? (size_t)count : slab;
        done = job_next(job, wanted, &chunk) && job_feed(job, state, 1, &chunk, NULL, 0);
        if (done && chunk.n < wanted) break;
        count -= wanted;
    }
    if (done) done = job_lower(job, state, 1);
    tally_groups_destroy(state);
    return done;
}

bool job_is_whole(const struct job *job) {
    return job->x.all && (job->y.all || !job->y.is_open) && (job->mask.all || !job->mask.is_open);
}

bool job_map(struct job *job) {
    operand_map(&job->x);
    if (job->y.is_open) operand_map(&job->y);
    if (job->mask.is_open) operand_map(&job->mask);
    return job_is_whole(job) && (!job->skips || job_fits((double)job->x.n)) && mark_all(job);
}

bool job_load(struct job *job) {
    if (!operand_load(&job->x) || (job->y.is_open && !operand_load(&job->y)) ||
        (job->mask.is_open && !operand_load(&job->mask)))
        return false;
    /* The length of an array from a pipe is known only after it has been read. */
    return (!job->y.is_open || operand_matches(&job->y, &job->x)) &&
           (!job->mask.is_open || operand_matches(&job->mask, &job->x)) && mark_all(job);
}

/* Reduces the elements that the mask leaves to one result. */
bool job_masked(struct job *job) {
    job->dims = 0;
    if (!job_map(job)) return job_feed_run(job, UINT64_MAX) && job_drain(job);
    const size_t n = (size_t)job->x.n;
    const tally_shape all = {
        .cut = TALLY_AXES, .dims = 1, .length = &n, .axes = 1, .mask = job->mask.all};
    job->r->bytes += job->x.n * job->x.element * (job->y.is_open ? 2 : 1);
    return job_call(job, &all, job->x.all, job->y.all, 1);
}
