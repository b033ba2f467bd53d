/*
 * reduction.h - a reduction in parts while its launches are enqueued, and the plan that all its kernels are given
 * (kernels/parts.h).
 */
#ifndef TALLY_GPU_REDUCTION_H
#define TALLY_GPU_REDUCTION_H

#include "gpu/parts_layout.h"

struct reduction {
    struct queue *queue;
    const struct parts_call *c; /* the caller's, or `aside` */
    struct parts_layout l;
    struct parts_plan plan;
    bool may_leave;             /* the strategy may leave rows, which `fold` and `join` then do */
    struct parts_call aside;    /* the call on a copy of the elements: sorted, or filled */
    struct shaped shape_aside;  /* the shape of `aside` */
    struct part_rows tree_rows; /* where the rows of the tree's elements begin */
    struct gpu_memory *tree_offsets; /* the offsets for tree_rows */
};

/* Makes the plan of a call. Of the layout it uses the pieces of `fold` and the places of arrays. */
void reduction_plan(const struct parts_call *c, const struct parts_layout *l,
                    struct parts_plan *plan);
/* Returns the buffer with the offsets at which rows begin. */
struct gpu_memory *reduction_offsets(const struct reduction *r);
/* Returns the grid for `n` things, of which a thread takes one at a time. */
unsigned reduction_grid(const struct reduction *r, uint64_t n);

#endif
