/*
 * whole_kernels.h - the kernels that reduce whole arrays (capability.h), as a queue has found them.
 */
#ifndef TALLY_GPU_WHOLE_KERNELS_H
#define TALLY_GPU_WHOLE_KERNELS_H

#include "gpu/capability.h"
#include "gpu/queue.h"

/* Returns whether the queue's device has kernels for arrays of one tile, `alone` (sum.cu, fold.h). */
bool whole_has_alone(const struct queue *queue);
/* Finds the kernels of a row of the table for the problem. */
tally_status whole_kernels(struct queue *queue, const struct problem *p, const struct capability *c,
                           struct kernels *out);
/* Finds the kernels of the problem's canonical tree. */
tally_status whole_tree_kernels(struct queue *queue, const struct problem *p, struct kernels *out);
/* Finds queue->lower. */
tally_status whole_lower_kernel(struct queue *queue);

#endif
