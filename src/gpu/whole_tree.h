/*
 * whole_tree.h - the canonical tree of a whole array (docs/canonical-tree.md): the values of its leaves, and of the nodes
 * above them.
 */
#ifndef TALLY_GPU_WHOLE_TREE_H
#define TALLY_GPU_WHOLE_TREE_H

#include "gpu/queue.h"

/* Returns the level of the node that all leaves of n elements are below. */
unsigned whole_tree_root(uint64_t n);
/* Returns the bytes of a buffer that has the arrays of an area and, behind them, the values of a tree up to a level. */
size_t whole_tree_bytes(const struct area *area, const struct problem *p, uint64_t n,
                        unsigned level);
/* Enqueues the values of leaves, and of subtrees of up to 2^level of them, to `values`, behind the arrays of `area`;
 * *at becomes the number of the first node of that level. The last launch has the request, and so gives the value. */
tally_status whole_tree_enqueue(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                                uint64_t n, unsigned level, const struct area *area,
                                struct gpu_memory *values, uint32_t request,
                                struct gpu_memory *result, uint64_t *at);
/* Enqueues the values of n > 0 elements' subtrees of 2^level leaves to queue->values; *at is the byte at which
 * they begin there. */
tally_status whole_tree_leaves(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                               uint64_t n, unsigned level, size_t *at);

#endif
