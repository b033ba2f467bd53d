/*
 * whole.h - reductions of whole arrays in a device's memory: to records that the host lowers, or to values.
 *
 * The launches of a reduction share one buffer, in words:
 *     its head    for each launch its counter and the records of the monoids that it is for, unless these are in a head of
 *                 the queue's (heads.h)
 *     behind      a board for each launch that needs one, and the values of a tree's nodes
 * The head must be 0 at first.
 */
#ifndef TALLY_GPU_WHOLE_H
#define TALLY_GPU_WHOLE_H

#include "gpu/queue.h"

struct lower_plan; /* kernels/plan.h */

/* Returns the most elements that one launch may be given. */
uint64_t whole_launch_max(const struct queue *queue);

/* ---- Records: clear, fold any number of times, take ---- */

/* Begins records of no elements in queue->work, for all monoids but MONOID_TREE. */
tally_status whole_clear(struct queue *queue, const struct problem *p);
/* Adds elements to these records. */
tally_status whole_fold(struct queue *queue, const struct problem *p, const struct inputs *in);
/* Waits for the records, and merges them into a state, but does not change its n. Indices count from where those of the
 * inputs do. */
tally_status whole_take(struct queue *queue, const struct problem *p, struct state *into);

/* ---- From memory of the device to values ---- */

/* Reduces n > 0 elements to the values of a problem for which whole_gives_values(), and waits for them. Where
 * `seconds` is not NULL, it is given the device's time for the launches. */
tally_status whole_reduce(struct queue *queue, const struct problem *p, const struct inputs *in,
                          tally_value *out, double *seconds);

/* ---- Without the host ---- */

/* Finds all kernels that whole_enqueue() needs and, once, makes the heads, for which it waits. *bytes is how much
 * memory whole_enqueue() works in for n elements or fewer. */
tally_status whole_prepare(struct queue *queue, const struct problem *p, uint64_t n, size_t *bytes);
/* Returns the bytes that whole_enqueue() works in for n elements or fewer. */
size_t whole_workspace(const struct queue *queue, const struct problem *p, uint64_t n);
/* Enqueues the reduction of any problem, in memory `work` of any content, a buffer that stands for the caller's
 * `workspace`; its values go to `results`, a tally_result each. */
tally_status whole_enqueue(struct queue *queue, const struct problem *p, const struct inputs *in,
                           struct gpu_memory *work, const void *workspace,
                           struct gpu_memory *results);

/* ---- For ranks (words.c) ---- */

/* The place of the counters and records of all monoids: from word `from` of `memory` on. If `head` is
 * not NULL, they are in a head of the queue's: the reader of the records makes them 0 again, or gives
 * the head up (heads_give_up()). */
struct records {
    struct gpu_memory *memory;
    uint32_t from;
    struct known_head *head;
};

/* Finds the kernels for records of a problem without the canonical tree and, where `heads`, makes the heads, for
 * which it waits. Then whole_enqueue_records() enqueues the records: to a head of the queue's where there is
 * nothing but sums, else to the first words of `work`, a buffer that stands for the caller's `workspace`. */
tally_status whole_prepare_records(struct queue *queue, const struct problem *p, bool heads);
tally_status whole_enqueue_records(struct queue *queue, const struct problem *p,
                                   const struct inputs *in, struct gpu_memory *work,
                                   const void *workspace, struct records *out);
/* Makes the plan that lowers such records of n elements, with each monoid's place counted from the
 * first counter; returns how many words all of them are. */
uint32_t whole_records_plan(const struct queue *queue, const struct problem *p, uint64_t n,
                            struct lower_plan *plan);

#endif
