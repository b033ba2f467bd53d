/*
 * parts.h - a reduction in parts on a queue: from arrays in the device's memory to results there, without the host
 * (kernels/parts.h).
 *
 * The launches, in order. The first ones find where rows begin: a check of offsets, or the sort of groups. Then come
 * the leaves and nodes of the canonical tree, if the problem has it, and the launches of the strategy, if there is
 * one (strategy.h). `fold` reduces the rows that the strategy leaves, and `join` those that `fold` has cut. A few
 * elements need one launch only (few.h).
 */
#ifndef TALLY_GPU_PARTS_H
#define TALLY_GPU_PARTS_H

#include "gpu/strategy.h"

/* The outcome, which the reduction leaves in the first words of its work. */
struct parts_outcome {
    uint64_t bad;           /* the first offset or id that is wrong; UINT64_MAX: none */
    struct absence absence; /* the first result that does not exist */
};
#define PARTS_OUTCOME_BYTES 24

/* Finds all kernels. TALLY_EUNSUPPORTED where the device cannot do it. */
tally_status parts_prepare(struct queue *queue, const struct shaped *s);
/* Returns the bytes of the reduction's workspace. */
size_t parts_workspace(const struct queue *queue, const struct shaped *s);
/* Enqueues the reduction. */
tally_status parts_enqueue(struct queue *queue, const struct parts_call *call);
/* Enqueues the outcome to `to`, as a tally_outcome. */
tally_status parts_report(struct queue *queue, struct gpu_memory *work, struct gpu_memory *to);
/* Returns the outcome, from the first PARTS_OUTCOME_BYTES of the workspace. */
struct parts_outcome parts_outcome(const uint64_t *word);

#endif
