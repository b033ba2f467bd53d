/*
 * few.h - reductions of few elements that no other kernels are made for: a block for each row (`few` of kernels/parts.cu).
 * That single launch clears nothing and needs no workspace.
 */
#ifndef TALLY_GPU_FEW_H
#define TALLY_GPU_FEW_H

#include "gpu/strategy.h"

/* Returns whether `results` rows of `each` elements, or a whole array as one row, are few enough for `few`. */
bool few_is_for(const struct problem *p, uint64_t results, uint64_t each);
/* Returns whether a call is for such rows, without an outcome (`ignore_errors`). */
bool few_takes(const struct parts_call *call);
/* Finds the kernels. */
tally_status few_prepare(struct queue *queue);
/* Enqueues the reduction of a call that few_takes(). */
tally_status few_enqueue(struct queue *queue, const struct parts_call *call);
/* Enqueues the reduction of a whole array; `results` gets a tally_result for each value. */
tally_status few_enqueue_array(struct queue *queue, const struct problem *p,
                               const struct inputs *in, struct gpu_memory *results);

#endif
