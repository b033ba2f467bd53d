/*
 * shaped_segments.c - reductions by segment: between offsets, or of equal length.
 *
 * Whole arrays: blocks of segments, each a call with its part of the offsets. Arrays that are read in order:
 * as many whole segments as fit a slab are a call, and one that does not fit is fed to a state.
 */
#include "parts/shaped_cuts.h"

#include "common/message.h"
#include "input/feed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Offsets ---- */

/* Returns where segment i begins, and i - 1 ends. */
static uint64_t offset(const struct job *job, uint64_t i) {
    int32_t narrow;
    int64_t wide;
    uint64_t at;
    if (job->each) return __builtin_mul_overflow(job->each, i, &at) ? UINT64_MAX : at;
    if (job->key.source.type == TALLY_I32)
        return memcpy(&narrow, job->key.all + 4 * i, 4), (uint64_t)(int64_t)narrow;
    return memcpy(&wide, job->key.all + 8 * i, 8), (uint64_t)wide;
}

static bool outside(const struct job *job, uint64_t i) {
    return failed("%s: offset %" PRIu64 " is %" PRId64 ", outside of the %" PRIu64
                  " elements of %s; offsets lie between 0 and the number of elements",
                  job->key.source.name, i, (int64_t)offset(job, i), job->x.n, job->x.source.name),
           false;
}

/* Returns whether the offsets never fall and lie within the array. Writes a message if not. */
static bool check_offsets(const struct job *job, uint64_t count) {
    int64_t before = 0;
    for (uint64_t i = 0; i < count; i++) {
        const int64_t at = (int64_t)offset(job, i);
        if (at < 0 || (job->x.n != SOURCE_UNKNOWN && (uint64_t)at > job->x.n))
            return job->x.n == SOURCE_UNKNOWN
                       ? (failed("%s: offset %" PRIu64 " is %" PRId64 "; offsets count from 0 up",
                                 job->key.source.name, i, at),
                          false)
                       : outside(job, i);
        if (at < before)
            return failed("%s: offset %" PRIu64 " falls: it is %" PRId64 " behind %" PRId64
                          "; sort the offsets",
                          job->key.source.name, i, at, before),
                   false;
        before = at;
    }
    return true;
}

/* Reads the offsets, and sets *count to the number of segments. */
static bool read_offsets(struct job *job, uint64_t *count) {
    if (job->key.source.dims != 1) {
        char text[SHAPE_TEXT];
        return failed("%s has shape %s; offsets are an array of one dimension",
                      job->key.source.name, operand_shape(&job->key, text)),
               false;
    }
    if (!operand_load(&job->key)) return false;
    if (job->key.n == 0)
        return failed("%s holds no offsets; N segments have N + 1", job->key.source.name), false;
    *count = job->key.n - 1;
    return check_offsets(job, job->key.n);
}

static bool no_whole_segments(const struct job *job) {
    return failed("%s has %" PRIu64 " elements, which are not whole segments of %" PRIu64
                  "; a file of offsets may have segments of any length",
                  job->x.source.name, job->x.n, job->each),
           false;
}

/* Reads the segments' length. Sets *count to their number, or to SOURCE_UNKNOWN if the array's
 * length is not known yet. */
static bool read_length(struct job *job, uint64_t *count) {
    char *end;
    job->each = strtoull(job->ask.segments, &end, 10);
    if (strlen(job->ask.segments) > 18 || !job->each)
        return failed("--segments %s: segments have a length from 1 up; ./%s would be a file",
                      job->ask.segments, job->ask.segments),
               false;
    *count = SOURCE_UNKNOWN;
    if (job->x.n == SOURCE_UNKNOWN) return true;
    *count = job->x.n / job->each;
    return job->x.n % job->each == 0 || no_whole_segments(job);
}

/* ---- Whole arrays ---- */

static bool reduce_whole(struct job *job, uint64_t count) {
    const size_t size = job->each ? 0 : tally_type_size(job->key.source.type);
    for (uint64_t i = 0; i < count; i += BLOCK_RESULTS) {
        const uint64_t n = count - i < BLOCK_RESULTS ? count - i : BLOCK_RESULTS;
        const uint64_t first = job->each ? i * job->each : 0;
        const tally_shape block = {.cut = TALLY_SEGMENTS,
                                   .n = (size_t)(job->each ? n * job->each : job->x.n),
                                   .count = (size_t)n,
                                   .offsets = job->each ? NULL : job->key.all + i * size,
                                   .offsets_type = job->key.source.type,
                                   .mask = job->mask.is_open ? job->mask.all + first : NULL};
        const size_t at = (size_t)first * job->x.element;
        if (!job_call(job, &block, job->x.all ? job->x.all + at : NULL,
                      job->y.is_open ? job->y.all + at : NULL, (size_t)n))
            return false;
    }
    job->r->bytes += job->x.n * job->x.element * (job->y.is_open ? 2 : 1);
    return true;
}

/* ---- Read in order ---- */

/* Returns how many segments from i on fit a slab together. */
static uint64_t fitting(const struct job *job, uint64_t i, uint64_t count) {
    const uint64_t slab = job_slab(job), first = offset(job, i);
    uint64_t n = 0;
    if (job->each) {
        n = slab / job->each;
        if (n > BLOCK_RESULTS) n = BLOCK_RESULTS;
        return count != SOURCE_UNKNOWN && count - i < n ? count - i : n;
    }
    while (i + n < count && n < BLOCK_RESULTS && offset(job, i + n + 1) - first <= slab)
        n++;
    return n;
}

/* Handles the end of an array within the segments. Of equal segments it sets *count, and fails if
 * the last one is not whole; else it fails if an offset lies behind the end. */
static bool ended(struct job *job, uint64_t *count) {
    job->x.n = job->x.at;
    if (job->each && job->x.n % job->each) return no_whole_segments(job);
    if (job->each) return *count = job->x.n / job->each, true;
    for (uint64_t i = 0; i <= *count; i++)
        if (offset(job, i) > job->x.n) return outside(job, i);
    return true;
}

static bool reduce_slab(struct job *job, uint64_t i, uint64_t n, uint64_t *count) {
    struct chunk chunk;
    const uint64_t first = offset(job, i);
    const size_t wanted = (size_t)(offset(job, i + n) - first);
    if (!job_next(job, wanted, &chunk)) return false;
    if (chunk.n < wanted) {
        if (!ended(job, count)) return false;
        n = *count - i;
    }
    int64_t *offsets = malloc((size_t)(n + 1) * sizeof *offsets);
    if (!offsets) return failed("no memory for %" PRIu64 " offsets", n), false;
    for (uint64_t k = 0; k <= n; k++)
        offsets[k] = (int64_t)(offset(job, i + k) - first);
    const tally_shape slab = {.cut = TALLY_SEGMENTS,
                              .n = chunk.n,
                              .count = (size_t)n,
                              .offsets = offsets,
                              .mask = chunk.mask};
    const bool done = job_call(job, &slab, chunk.x, chunk.y, (size_t)n);
    free(offsets);
    return done;
}

/* Sets *more to true if the array, whose length is not known, goes on. Returns false if it cannot
 * be read. */
static bool is_there_more(struct job *job, bool *more) {
    struct operand *x = &job->x;
    *more = true;
    if (x->left_count) return true;
    const void *next;
    if (!source_next(&x->source, &next, &x->left_count)) return false;
    x->left = next;
    *more = x->left_count > 0;
    return true;
}

static bool reduce_in_order(struct job *job, uint64_t *count) {
    if (!job_skip(job, offset(job, 0))) return false;
    for (uint64_t i = 0; i < *count;) {
        const uint64_t n = fitting(job, i, *count);
        bool more = true;
        if (*count == SOURCE_UNKNOWN && !is_there_more(job, &more)) return false;
        if (!more) return *count = i, ended(job, count);
        if (n) {
            if (!reduce_slab(job, i, n, count)) return false;
            i += n;
            continue;
        }
        const uint64_t end = offset(job, i + 1);
        if (!job_feed_run(job, end - offset(job, i))) return false;
        if (job->x.at < end && !ended(job, count)) return false;
        i++;
    }
    if (!job_drain(job)) return false;
    job->x.n = job->x.at;
    for (uint64_t i = 0; i <= *count && !job->each; i++)
        if (offset(job, i) > job->x.n) return outside(job, i);
    return true;
}

bool job_segments(struct job *job) {
    uint64_t count;
    if (!(job->key.is_open ? read_offsets(job, &count) : read_length(job, &count))) return false;
    const bool is_whole = job->x.n == 0 ? operand_load(&job->x) : job_map(job);
    if (!(is_whole && job_is_whole(job) ? reduce_whole(job, count) : reduce_in_order(job, &count)))
        return false;
    job->dims = 1;
    job->length[0] = count;
    return true;
}
