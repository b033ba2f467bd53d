/*
 * shaped_job.h - one run of `tally OP` in parts: its inputs and results, and the steps that the
 * cuts share.
 *
 * Each of the three cuts has two ways. Arrays that are whole in memory, which mapped files are, are
 * handed to tally_reduce_shaped() in blocks of results. All others are read in order: parts that
 * fit a slab are reduced by one call, and the elements of others are fed to states, which are a
 * tally_groups.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_SHAPED_JOB_H
#define TALLY_CLI_SHAPED_JOB_H

#include "parts/operand.h"
#include "parts/results.h"
#include "reduce/reduction.h"

enum {
    SLAB_BYTES = 16 << 20,  /* read at a time of an array that is read in order */
    BLOCK_RESULTS = 1 << 18 /* of a call, at most; a call for one run may have more */
};

struct job {
    struct reduction *r;
    struct shaping ask;
    struct operand x, y, mask, key; /* y is open for dot; key: offsets or ids */
    struct results results;
    unsigned dims; /* of the results' shape */
    uint64_t length[NPY_DIMS];

    uint32_t axes;         /* bit d is set if axis d is reduced */
    uint64_t each;         /* the length of equal segments, or 0 */
    uint64_t groups;       /* number of groups */
    uint64_t *group_count; /* [groups]: elements of each; owned */
    uint64_t *label;       /* [groups]: ids, if only those that occur have a number; NULL; owned */
    uint64_t span;         /* ids lie below this */

    bool skips;           /* --skip-na: elements may be missing */
    unsigned char *there; /* of a chunk, or of all: 0 where an element is left out; owned */
    size_t there_room;
};

/* Says why a call returned `status`; `first` is the number of its result 0. Returns false. */
bool job_failed(const struct job *job, uint64_t first, tally_status status);
/* Reduces x (and y) to `count` results, and appends them. */
bool job_call(struct job *job, const tally_shape *shape, const void *x, const void *y,
              size_t count);

/* Elements of x, of y and of the mask, n of each. y and mask are NULL if there are none. */
struct chunk {
    const void *x, *y, *mask;
    size_t n;
};
/* Gives the next elements: `wanted`, or fewer at the end only. */
bool job_next(struct job *job, size_t wanted, struct chunk *out);
bool job_skip(struct job *job, uint64_t count);
/* Reads all inputs to the end. Fails if they differ in length, or if something follows an array. */
bool job_drain(struct job *job);

/* No cut: all elements that the mask leaves are one result. */
bool job_masked(struct job *job);

/* Makes states for so many results. Returns false, with a message, if memory does not hold them. */
bool job_states(const struct job *job, uint64_t count, tally_groups **out);
/* Bytes that so many states take. */
double job_states_bytes(const struct job *job, uint64_t count);
/* Feeds the chunk to the states. ids: the state of each element; NULL: all belong to state 0. */
bool job_feed(const struct job *job, tally_groups *states, uint64_t count,
              const struct chunk *chunk, const void *ids, tally_type ids_type);
/* Lowers the states and appends the values. */
bool job_lower(struct job *job, const tally_groups *states, uint64_t count);
/* Appends one result, that of the next `count` elements, or of all up to the end. */
bool job_feed_run(struct job *job, uint64_t count);

/* Maps the arrays that can be mapped. Returns whether all are whole in memory now. With --skip-na
 * the mask is then whole, too, and leaves out missing elements. */
bool job_map(struct job *job);
bool job_is_whole(const struct job *job);
/* Makes the arrays whole in memory; reads those that cannot be mapped. */
bool job_load(struct job *job);
/* Returns whether `bytes` are less than half of the available memory: a reduction needs memory of
 * its own. */
bool job_fits(double bytes);

size_t job_slab(const struct job *job); /* elements */

#endif
