/*
 * parts.h - a reduction in parts on a queue: from arrays in the device's memory to results there, without the host
 * (kernels/parts.h).
 *
 * The launches, in order: whatever says where rows begin (a check of offsets, or the order of groups), the canonical
 * tree's leaves and nodes where the problem has it, the fold of all else, and the rows that were cut.
 */
#ifndef TALLY_GPU_PARTS_H
#define TALLY_GPU_PARTS_H

#include "gpu/queue.h"
#include "shape.h"

/* Where a reduction finds and leaves things. The pointers of the shape are not looked at. */
struct parts_call {
    const struct shaped *s;
    struct gpu_memory *x, *y, *mask, *offsets, *ids; /* NULL where there is none */
    int64_t first_x, first_y, first_mask;            /* the index of the first element in each */
    struct gpu_memory *work;                         /* parts_workspace() bytes, of any content */
    struct gpu_memory *out;                          /* NULL: what follows are addresses */
    uint64_t at[TALLY_VALUES_MAX]; /* the byte of `out` at which each value's results begin */
    unsigned only;                 /* the values that are wanted: from `only` on ... */
    unsigned values;               /* ... so many */
    bool unasked;                  /* nobody will look at what became of it */
    int keep_outcome; /* what is in the work is added to: another value of the same reduction */
};

/* What the reduction left in the first words of its work. */
struct parts_outcome {
    uint64_t bad; /* the first offset or id that is wrong; UINT64_MAX: none */
    struct absence absence;
};
#define PARTS_OUTCOME_BYTES 24

/* Finds all kernels. TALLY_EUNSUPPORTED where the device cannot do it. */
tally_status parts_prepare(struct queue *queue, const struct shaped *s);
/* How many bytes the reduction works in. */
size_t parts_workspace(const struct queue *queue, const struct shaped *s);
/* Puts the reduction under way. */
tally_status parts_enqueue(struct queue *queue, const struct parts_call *call);
/* A reduction of so few elements that one launch is best, which clears nothing and works in no memory: of whole arrays,
 * and of rows where nobody asks what became of them. */
bool parts_are_few(const struct problem *p, uint64_t results, uint64_t each);
/* Puts that of a whole array under way; `result` is given a tally_result for each value. */
tally_status parts_prepare_few(struct queue *queue);
tally_status parts_enqueue_few(struct queue *queue, const struct problem *p,
                               const struct inputs *in, struct gpu_memory *results);
/* Puts what became of it, as a tally_outcome, under way to `to`. */
tally_status parts_report(struct queue *queue, struct gpu_memory *work, struct gpu_memory *to);
/* Reads what became of it from the first bytes of its work. */
struct parts_outcome parts_outcome(const uint64_t *word);

#endif
