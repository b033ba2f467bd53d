/*
 * strategy.h - the ways in which parts.c has a reduction in parts done: a table, of which the first row that takes a
 * problem and a shape is asked to do it.
 *
 * A strategy puts launches on the queue that write the results of all rows, or, of rows that it cannot do, set bits in
 * `left` (kernels/parts.h, leave_row()). The general kernels `fold` and `join` then do those. It finds offsets that
 * have been checked, and groups in their order, unless it says that it wants none.
 */
#ifndef TALLY_GPU_STRATEGY_H
#define TALLY_GPU_STRATEGY_H

#include "exact/kernel_words.h"
#include "gpu/parts.h"
#include "kernels/plan.h"

#include "kernels/parts.h"

/* What a strategy is given to work with. */
struct parts_run {
    struct queue *queue;
    const struct parts_call *call;
    struct gpu_memory *offsets; /* where rows begin, if the plan's rows have a kind */
    struct parts_plan plan;
    uint64_t own; /* the first of its words in the work */
};

struct strategy {
    /* Whether it does the problem, of rows of this shape, on this queue's device. */
    bool (*takes)(const struct queue *queue, const struct shaped *s);
    /* How many words of the work it wants; NULL: none. */
    uint64_t (*words)(const struct queue *queue, const struct shaped *s);
    /* Finds its kernels, so that nothing has to be compiled later; NULL: nothing to do. */
    tally_status (*prepare)(struct queue *queue, const struct shaped *s);
    tally_status (*enqueue)(struct parts_run *run);
    bool
        unordered; /* groups: it wants no order, and does all of them itself, in words that are 0 before it */
    /* Segments: whether it finds the first wrong offset itself; NULL: it does not. */
    bool (*checks)(const struct shaped *s);
};

/* Blocks for `blocks` equal pieces of work, as many as the device has at once at most. */
unsigned parts_grid(const struct queue *queue, uint64_t blocks);
/* Whether rows lie in x side by side, one after the other. */
bool parts_are_contiguous(const struct shaped *s);

/* How many ends of an order a problem wants, 1 or 2, and WANT_INDEX. */
unsigned problem_ends(const struct problem *p);
/* What turns elements' bits into keys of which the greatest is wanted (kernels/end_keys.h). */
uint64_t problem_flip(const struct problem *p);

/* An argument of a launch, by value and as a piece of memory, which may be NULL. */
extern void *const parts_nothing;
#define VALUE(v)                                                                                   \
    { .size = sizeof(v), .value = &(v) }
#define PIECE(m)                                                                                   \
    { .memory = (m), .size = sizeof parts_nothing, .value = &parts_nothing }

#endif
