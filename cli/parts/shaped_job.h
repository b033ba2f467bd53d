/*
 * shaped_job.h - what the files of `tally OP` in parts share: one run of it.
 *
 * Each of the three cuts has two ways. Arrays that are whole in memory, which mapped files are, are handed to
 * tally_reduce_shaped() in blocks of results. All others are read in order: what fits a slab is reduced in
 * one call, and what does not has states that are fed, which are a tally_groups.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_SHAPED_JOB_H
#define TALLY_CLI_SHAPED_JOB_H

#include "parts/operand.h"
#include "parts/results.h"
#include "reduce/reduction.h"

enum {
    SLAB_BYTES = 16 << 20,  /* of an array that is read in order, at a time */
    BLOCK_RESULTS = 1 << 18 /* of a call; fewer where a single one is more */
};

struct job {
    struct reduction *r;
    struct shaping ask;
    struct operand x, y, mask, key; /* y is open for dot; key: offsets or ids */
    struct results results;
    unsigned dims; /* of the results' shape */
    uint64_t length[NPY_DIMS];

    uint32_t axes;         /* those that are reduced */
    uint64_t each;         /* the length of equal segments, or 0 */
    uint64_t groups;       /* how many */
    uint64_t *group_count; /* [groups]: elements of each; owned */
    uint64_t
        *label;    /* [groups]: their ids, where only those that occur are numbered; NULL; owned */
    uint64_t span; /* ids lie below this */

    bool skips;           /* --skip-na: elements may be missing */
    unsigned char *there; /* of a chunk, or of all: 0 where an element is left out; owned */
    size_t there_room;
};

/* Says why a call returned `status`; `first` is the number of its result 0. Returns false. */
bool job_failed(const struct job *job, uint64_t first, tally_status status);
/* Reduces x (and y) to `count` results, and appends them. */
bool job_call(struct job *job, const tally_shape *shape, const void *x, const void *y,
              size_t count);

/* The next elements of the array, of y and of the mask, as many of each: *n, fewer than wanted at the end
 * only. y and mask are NULL where there are none. */
struct chunk {
    const void *x, *y, *mask;
    size_t n;
};
bool job_next(struct job *job, size_t wanted, struct chunk *out);
bool job_skip(struct job *job, uint64_t count);
/* Reads all to the end: that they have as many elements, and that nothing follows, is found there. */
bool job_drain(struct job *job);

/* No cut: all elements that the mask leaves are one result. */
bool job_masked(struct job *job);

/* Makes states for so many results. Where they are more than memory holds: a line that says so. */
bool job_states(const struct job *job, uint64_t count, tally_groups **out);
/* Bytes that so many states take. */
double job_states_bytes(const struct job *job, uint64_t count);
/* Feeds the chunk to the states; ids: of each element, or NULL where all are of state 0. */
bool job_feed(const struct job *job, tally_groups *states, uint64_t count,
              const struct chunk *chunk, const void *ids, tally_type ids_type);
/* Lowers the states and appends the values. */
bool job_lower(struct job *job, const tally_groups *states, uint64_t count);
/* The elements up to the `count`-th from here, or to the end, as one result. */
bool job_feed_run(struct job *job, uint64_t count);

/* Returns whether the arrays are whole in memory now; maps them first, where they can be. With
 * --skip-na the mask is whole, then, too, and has no place for missing elements. */
bool job_map(struct job *job);
bool job_is_whole(const struct job *job);
/* Makes them whole, read where they cannot be mapped. */
bool job_load(struct job *job);
/* Returns whether so many bytes, and what a reduction adds, leave the machine room. */
bool job_fits(double bytes);

size_t job_slab(const struct job *job); /* elements */

#endif
