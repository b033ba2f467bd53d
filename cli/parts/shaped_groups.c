/*
 * shaped_groups.c - reductions by group: each element has an id, which is the number of its result.
 *
 * Ids are checked before they are used: a message names the first id outside, and its place. The
 * elements of each group are counted, so that groups without any can be left out. Arrays that are
 * whole in memory are one call if there is room to sort them by id; others are fed to states, chunk
 * by chunk.
 */
#include "parts/shaped_cuts.h"

#include "common/message.h"
#include "common/types.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_GROUPS = 1 << 16 }; /* up to so many groups each have a place, also without elements */

struct ids {
    const struct job *job;
    uint64_t most;  /* one more than the greatest */
    uint64_t place; /* of the first id that is outside, or UINT64_MAX */
    uint64_t bad;   /* that id */
    uint64_t *copy; /* copy_one(): where the ids go */
};

/* Visits each id as a number of 64 bits, in which a negative one is large. */
#define SCAN(NAME, name, kind, bits) SCAN_##kind(NAME, bits)
#define SCAN_FLOATING(NAME, bits)
#define SCAN_SIGNED(NAME, bits)   SCAN_AS(NAME, int##bits##_t)
#define SCAN_UNSIGNED(NAME, bits) SCAN_AS(NAME, uint##bits##_t)
#define SCAN_AS(NAME, TYPE)                                                                        \
    case TALLY_##NAME:                                                                             \
        for (size_t i = 0; i < n; i++) {                                                           \
            TYPE id;                                                                               \
            memcpy(&id, x + i * sizeof id, sizeof id);                                             \
            if (mask && !mask[i]) continue;                                                        \
            visit(out, first + i, (uint64_t)(int64_t)id);                                          \
        }                                                                                          \
        break;

/* Finds the greatest id, and the first negative one, if --groups is not given. */
static inline void find_most(struct ids *out, uint64_t place, uint64_t id) {
    if (id > INT64_MAX) {
        if (out->place == UINT64_MAX) out->place = place, out->bad = id;
    } else if (id >= out->most) {
        out->most = id + 1;
    }
}

static inline void count_one(struct ids *out, uint64_t place, uint64_t id) {
    if (id < out->job->groups)
        out->job->group_count[id]++;
    else if (out->place == UINT64_MAX)
        out->place = place, out->bad = id;
}

static inline void copy_one(struct ids *out, uint64_t place, uint64_t id) {
    out->copy[place] = id;
}

/* Defines a function that calls `visitor` for the ids x[0..n), but for those that the mask leaves
 * out. first: the place of the first id. */
#define EACH(function, visitor)                                                                    \
    static void function(struct ids *out, tally_type type, const unsigned char *x,                 \
                         const unsigned char *mask, uint64_t first, size_t n) {                    \
        void (*const visit)(struct ids *, uint64_t, uint64_t) = visitor;                           \
        switch (type) {                                                                            \
            CLI_TYPES(SCAN)                                                                        \
        default:                                                                                   \
            break;                                                                                 \
        }                                                                                          \
    }
EACH(find_most_of, find_most)
EACH(count_of, count_one)
EACH(copy_of, copy_one)

static bool outside(const struct job *job, const struct ids *ids) {
    const bool is_signed = type_is_signed(job->key.source.type);
    char text[32], what[64];
    snprintf(text, sizeof text, is_signed ? "%" PRId64 : "%" PRIu64, ids->bad);
    snprintf(what, sizeof what, job->groups ? "outside of the %" PRIu64 " groups" : "below 0",
             job->groups);
    return failed("%s: id %" PRIu64 " is %s, %s; --skip-outside leaves such elements out%s",
                  job->key.source.name, ids->place, text, what,
                  job->groups ? ", or say a larger --groups" : ""),
           false;
}

static bool make_counts(struct job *job) {
    const double bytes =
        (double)job->groups * ((double)sizeof *job->group_count + (double)job->results.record);
    if (job_fits(bytes)) job->group_count = calloc(job->groups + 1, sizeof *job->group_count);
    return job->group_count ||
           (failed("no memory for %" PRIu64 " groups, which take %.3g GB; --groups with "
                   "--skip-outside leaves the highest ids out",
                   job->groups, bytes * 1e-9),
            false);
}

/* ---- Few groups with high ids ---- */

static int compare_ids(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns whether the ids that occur are to be numbered: there are more groups than elements by
 * far, and no array of all results is asked for. */
static bool has_gaps(const struct job *job) {
    return !job->ask.output && job->groups > FEW_GROUPS && job->groups / 8 > job->key.n &&
           job->key.n != SOURCE_UNKNOWN;
}

/* Leaves in `label` only ids below the number of groups, each once, and sorted; returns how many
 * there are. */
static uint64_t find_labels(const struct job *job, uint64_t *label) {
    uint64_t count = 0, different = 0;
    for (uint64_t i = 0; i < job->key.n; i++)
        if (label[i] < job->groups) label[count++] = label[i];
    if (count) qsort(label, (size_t)count, sizeof *label, compare_ids);
    for (uint64_t i = 0; i < count; i++)
        if (!i || label[i] != label[i - 1]) label[different++] = label[i];
    return different;
}

/* Replaces each id by its number among the ids that occur, so that memory depends on how many these
 * are, and not on the greatest id. Ids outside stay outside. */
static bool number_groups(struct job *job) {
    struct operand *key = &job->key;
    job->span = job->groups;
    if (!has_gaps(job)) return true;
    if (!operand_load(key)) return false;
    uint64_t *id = calloc((size_t)key->n + 1, sizeof *id);
    job->label = calloc((size_t)key->n + 1, sizeof *job->label);
    if (!id || !job->label) return free(id), failed("no memory for %" PRIu64 " ids", key->n), false;
    struct ids found = {.job = job, .place = UINT64_MAX, .copy = id};
    copy_of(&found, key->source.type, key->all, NULL, 0, (size_t)key->n);
    for (uint64_t i = 0; i < key->n && !job->ask.skip_outside; i++)
        if (id[i] >= job->groups && (!job->mask.all || job->mask.all[i]))
            return found.place = i, found.bad = id[i], free(id), outside(job, &found);
    memcpy(job->label, id, (size_t)key->n * sizeof *id);
    const uint64_t count = find_labels(job, job->label);
    for (uint64_t i = 0; i < key->n; i++) {
        const uint64_t *at = id[i] < job->groups ? bsearch(&id[i], job->label, (size_t)count,
                                                           sizeof *id, compare_ids)
                                                 : NULL;
        id[i] = at ? (uint64_t)(at - job->label) : UINT64_MAX;
    }
    free(key->buffer);
    key->buffer = (unsigned char *)id;
    key->all = key->buffer;
    key->source.type = TALLY_I64;
    key->element = sizeof *id;
    job->groups = count;
    return true;
}

/* Sets job->groups to the value of --groups, or, if that is not given, to the greatest id and one. */
static bool find_groups(struct job *job) {
    struct ids found = {.job = job, .place = UINT64_MAX};
    const struct operand *key = &job->key;
    if (job->ask.groups) return job->groups = job->ask.groups, true;
    const double bytes = (double)key->n * (double)key->element;
    operand_map(&job->key);
    if (!key->all && !job_fits(2 * bytes))
        return failed("%s is too large to be looked at twice; say how many groups there are, as in "
                      "--groups 1000",
                      key->source.name),
               false;
    if (!operand_load(&job->key)) return false;
    if (job->mask.is_open && !operand_load(&job->mask)) return false;
    find_most_of(&found, key->source.type, key->all, job->mask.all, 0, (size_t)key->n);
    if (found.place != UINT64_MAX && !job->ask.skip_outside) return outside(job, &found);
    job->groups = found.most;
    return true;
}

/* Counts the elements of each group. first: the place of id[0]. Returns false, with a message, if
 * an id is outside and such are not left out. */
static bool count(struct job *job, const void *id, const void *mask, uint64_t first, size_t n) {
    struct ids found = {.job = job, .place = UINT64_MAX};
    count_of(&found, job->key.source.type, id, mask, first, n);
    return found.place == UINT64_MAX || job->ask.skip_outside || outside(job, &found);
}

/* Returns true if an argmin or argmax of no elements is no error: it is the only value, and groups
 * of no elements are not printed. */
static bool is_missing_only(const struct job *job) {
    const tally_op op = job->r->problem.op;
    if (job->ask.output || job->results.values != 1) return false;
    return op == TALLY_ARGMIN || op == TALLY_ARGMAX;
}

static bool settle(struct job *job, tally_status status) {
    if (status == TALLY_OK || (status == TALLY_EINVAL && is_missing_only(job)))
        return results_put(&job->results, (size_t)job->groups);
    return job_failed(job, 0, status);
}

static bool feed(struct job *job, tally_groups *states) {
    uint64_t most = job_slab(job) / 2;
    struct chunk chunk;
    if (most < 16 * job->groups) most = 16 * job->groups;
    if (!job_fits(40.0 * (double)most)) most = job_slab(job) / 2;
    do {
        const void *id;
        size_t n;
        const uint64_t first = job->x.at;
        if (!job_next(job, (size_t)most, &chunk) || !operand_next(&job->key, chunk.n, &id, &n))
            return false;
        if (n < chunk.n)
            return failed("%s has %" PRIu64 " ids, but %s has more elements; each needs a partner",
                          job->key.source.name, job->key.at, job->x.source.name),
                   false;
        if (!count(job, id, chunk.mask, first, n) ||
            !job_feed(job, states, job->groups, &chunk, id, job->key.source.type))
            return false;
    } while (chunk.n == most);
    return job_drain(job);
}

static bool check_ids_end(struct job *job) {
    if (!operand_skip(&job->key, UINT64_MAX - job->key.at)) return false;
    if (job->key.at == job->x.at) return true;
    return failed("%s has more ids than %s has elements; each needs a partner",
                  job->key.source.name, job->x.source.name),
           false;
}

static bool reduce_by_states(struct job *job) {
    tally_groups *states;
    if (!job_states(job, job->groups, &states)) return false;
    bool done =
        feed(job, states) && check_ids_end(job) && results_room(&job->results, (size_t)job->groups);
    if (done) {
        job->x.n = job->x.at;
        done = settle(job, tally_groups_values(states, job->results.out));
    }
    tally_groups_destroy(states);
    return done;
}

static bool reduce_whole(struct job *job) {
    const tally_shape shape = {.cut = TALLY_GROUPS,
                               .n = (size_t)job->x.n,
                               .count = (size_t)job->groups,
                               .ids = job->key.all,
                               .ids_type = job->key.source.type,
                               .skip_outside = job->ask.skip_outside,
                               .mask = job->mask.all};
    if (!count(job, job->key.all, job->mask.all, 0, (size_t)job->x.n)) return false;
    if (!results_room(&job->results, (size_t)job->groups)) return false;
    const tally_status status = tally_reduce_shaped(job->r->device, &job->r->problem, &shape,
                                                    job->x.all, job->y.all, job->results.out);
    if (status != TALLY_ENOMEM) {
        job->r->bytes += job->x.n * job->x.element * (job->y.is_open ? 2 : 1);
        return settle(job, status);
    }
    memset(job->group_count, 0, (size_t)job->groups * sizeof *job->group_count);
    return reduce_by_states(job); /* this sorts a chunk at a time */
}

bool job_groups(struct job *job) {
    if (!find_groups(job) || !number_groups(job) || !make_counts(job)) return false;
    job->dims = 1;
    job->length[0] = job->span;
    const double array = (double)job->x.n * (double)job->x.element * (job->y.is_open ? 2 : 1),
                 sorted = array + (double)job->x.n * 8;
    operand_map(&job->key);
    if (job->x.n && job_map(job) && job->key.all && job_fits(array + 2 * sorted))
        return reduce_whole(job);
    return reduce_by_states(job);
}
