/*
 * strategy.h - the ways in which parts.c has a reduction in parts done: choice.c has a table of them, of which the first
 * that takes a problem and a shape is asked to do it.
 *
 * A strategy puts launches on the queue that write the results of rows. For a row that it cannot do it sets a bit in
 * `left` (kernels/parts.h, leave_row()), and the general kernels `fold` and `join` then do that row; where is_certain()
 * says so, it leaves none, and no launch follows. Before it,
 * offsets have been checked, unless it checks them itself; and elements have been brought into the order of groups,
 * unless it is `unordered`.
 */
#ifndef TALLY_GPU_STRATEGY_H
#define TALLY_GPU_STRATEGY_H

#include "exact/kernel_words.h"
#include "gpu/queue.h"
#include "kernels/plan.h"
#include "problem/shape.h"

#include "kernels/parts.h"

/* The memory of a reduction in parts. The pointers of the shape are not used. */
struct parts_call {
    const struct shaped *s;
    struct gpu_memory *x, *y, *mask, *offsets, *ids, *means; /* NULL where there is none */
    int64_t first_x, first_y, first_mask; /* the index of the first element in each */
    struct gpu_memory *work;              /* parts_workspace() bytes, of any content */
    struct gpu_memory *out;               /* for results; NULL: at[] are addresses */
    uint64_t at[TALLY_VALUES_MAX]; /* the byte of `out` at which each value's results begin */
    unsigned only;                 /* the first of the values that are wanted */
    unsigned values;               /* how many values are wanted */
    bool ignore_errors;            /* the caller wants no outcome */
    int keep_outcome; /* the outcome in the work is added to: another value of the same reduction */
};

/* A strategy's call: the reduction, its plan, and its part of the workspace. */
struct parts_run {
    struct queue *queue;
    const struct parts_call *call;
    struct gpu_memory *offsets; /* where rows begin, if plan.rows.kind is not 0 */
    struct parts_plan plan;
    uint64_t own; /* the first of its words in the workspace: an even one */
    /* Two words of its own that are 0 before or, where rows are marked (kernels/parts.h), anything. A strategy that has
     * something to note writes plan.left there. */
    uint64_t flags;
};

struct strategy {
    /* Whether it does the problem, on rows of this shape, on this queue's device. */
    bool (*takes)(const struct queue *queue, const struct shaped *s);
    /* How many words of the workspace it wants; NULL: none. */
    uint64_t (*words)(const struct queue *queue, const struct shaped *s);
    /* Finds its kernels, so that nothing has to be compiled later; NULL: nothing to do. */
    tally_status (*prepare)(struct queue *queue, const struct shaped *s);
    /* Enqueues its launches. The bits of `left` are 0 before. */
    tally_status (*enqueue)(struct parts_run *run);
    /* Groups: their elements need no sort, and it reduces all groups itself; its words of the workspace are 0
     * before. */
    bool unordered;
    /* Segments: whether it finds the first wrong offset itself; NULL: it never does. */
    bool (*checks)(const struct shaped *s);
    /* Rows that have elements: whether it leaves none of them; NULL: it may leave some. */
    bool (*is_certain)(const struct queue *queue, const struct shaped *s);
};

/* Returns how many blocks of most kernels the device runs at once. */
unsigned parts_blocks_at_once(const struct queue *queue);
/* Returns the threads of a block of kernels that have their `own` number of them unless the caller asked for another. */
unsigned block_or(const struct queue *queue, unsigned own);
/* Returns the grid for `blocks` equal pieces of work, at most the blocks that the device runs at
 * once. */
unsigned parts_grid(const struct queue *queue, uint64_t blocks);
/* Returns whether an array of n elements is worth a kernel that must be compiled first. */
bool parts_are_many(const struct queue *queue, uint64_t n);
/* Returns whether the sort by ids leaves out what a mask hides: not if it hides other elements of each vector. */
bool parts_drop_hidden(const struct shaped *s);
/* Returns how many elements all rows have, at most. */
uint64_t parts_elements(const struct shaped *s);
/* Returns whether rows lie in x side by side, one after the other. */
bool parts_are_contiguous(const struct shaped *s);

/* Returns the number of extremes of a problem, 0, 1 or 2, and WANT_INDEX if it wants an index. */
unsigned problem_ends(const struct problem *p);
/* Returns the bits to flip in elements so that the wanted extreme has the greatest key
 * (kernels/end_keys.h). */
uint64_t problem_flip(const struct problem *p);

#endif
