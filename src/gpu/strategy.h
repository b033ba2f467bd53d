/*
 * strategy.h - strategies: the ways to do a reduction in parts (parts.c). choice.c has a table of them, and asks the
 * first one that takes the problem and the shape.
 *
 * A strategy puts launches on the queue that write the results of rows. For a row that it cannot do it sets a bit in
 * `left` (kernels/parts.h, leave_row()), and the general kernels `fold` and `join` then do that row. If is_certain()
 * is true, it leaves no row, and no such launch follows. Before the strategy's launches offsets are checked, unless
 * it checks them itself, and elements are brought into the order of groups, unless it is `unordered`.
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
    int keep_outcome; /* `work` has the outcome of other values of this reduction: it is kept */
};

/* A strategy's call: the reduction, its plan, and its part of the workspace. */
struct parts_run {
    struct queue *queue;
    const struct parts_call *call;
    struct gpu_memory *offsets; /* where rows begin, if plan.rows.kind is not 0 */
    struct parts_plan plan;
    uint64_t own; /* the first of its words in the workspace: an even one */
    /* The first of two more words of the strategy. They are 0 before its launches or, where rows are marked
     * (kernels/parts.h), hold anything. A kernel that writes plan.left there sets a flag. */
    uint64_t flags;
};

struct strategy {
    /* Returns whether it does the problem, on rows of this shape, on this queue's device. */
    bool (*takes)(const struct queue *queue, const struct shaped *s);
    /* Returns how many words of the workspace it wants; NULL: none. */
    uint64_t (*words)(const struct queue *queue, const struct shaped *s);
    /* Finds its kernels, so that nothing has to be compiled later; NULL: nothing to do. */
    tally_status (*prepare)(struct queue *queue, const struct shaped *s);
    /* Enqueues its launches. The bits of `left` are 0 before. */
    tally_status (*enqueue)(struct parts_run *run);
    /* Groups: their elements need no sort, and it reduces all groups itself; its words of the workspace are 0
     * before. */
    bool unordered;
    /* Segments: returns whether it finds the first wrong offset itself; NULL: it never does. */
    bool (*checks)(const struct shaped *s);
    /* Returns whether it leaves no row that has elements; NULL: it may leave some. */
    bool (*is_certain)(const struct queue *queue, const struct shaped *s);
};

/* Returns how many blocks of most kernels the device runs at once. */
unsigned parts_blocks_at_once(const struct queue *queue);
/* Returns the threads of a block of kernels that prefer `own` threads: these, unless the caller asked for others. */
unsigned block_or(const struct queue *queue, unsigned own);
/* Returns the grid for `blocks` equal pieces of work, at most the blocks that the device runs at
 * once. */
unsigned parts_grid(const struct queue *queue, uint64_t blocks);
/* Returns whether an array of n elements is worth a kernel that must be compiled first. */
bool parts_are_many(const struct queue *queue, uint64_t n);
/* Returns whether the sort by ids leaves out the elements that a mask hides. It cannot if the mask differs between
 * vectors. */
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
