/*
 * queue.h - one queue of a device, with all that a reduction on it needs: kernels, the memory that they work
 * in, a piece for data that has to be brought, and the place where results arrive.
 *
 * A device has one queue, and a second one when copies and kernels are to overlap. A queue is one thread's
 * at a time.
 */
#ifndef TALLY_GPU_QUEUE_H
#define TALLY_GPU_QUEUE_H

#include "gpu/gpu.h"
#include "monoid.h"

#include <stdbool.h>

struct kernels { /* of a reduction: `reduce`, or `leaves` and `nodes` */
    struct gpu_kernel *first, *second;
};

struct queue {
    const struct gpu_api *api;
    struct gpu *gpu;
    const struct gpu_facts *facts;
    unsigned block; /* threads of a block */

    struct work {
        struct gpu_memory *memory; /* counter, record, board: kernels/records.h */
        size_t bytes;
        bool clean; /* counter and record are 0 */
    } work[PARTS];
    struct gpu_memory *values; /* of a tree's nodes */
    size_t values_bytes;
    struct gpu_memory *staging; /* a chunk of an array */
    size_t staging_bytes;
    struct gpu_memory *result; /* two words, ... */
    volatile uint64_t *seen;   /* ... here, where the host can see them; or NULL */

    struct kernels known[PARTS][3]
                        [TALLY_F64 + 1]; /* found before: by part, operator on bits, type */
};

/* A queue of a device, opened in the caller's context (or NULL): struct gpu_api. */
tally_status queue_open(struct queue *queue, const struct gpu_api *api, size_t index, void *context,
                        unsigned block);
void queue_close(struct queue *queue); /* also one that was never opened */

/* Makes *piece one of at least `bytes` bytes; what it held is lost. */
tally_status queue_reserve(struct queue *queue, struct gpu_memory **piece, size_t *has,
                           size_t bytes);

/* The kernels of a part of a problem: compiled, loaded, ready to be launched. */
tally_status queue_kernels(struct queue *queue, const struct problem *p, enum part part,
                           struct kernels *out);

/* The most elements that one launch may be given. */
uint64_t queue_launch_max(const struct queue *queue);

/* Bytes of memory that the fold of n elements into a part works in. */
size_t queue_workspace(const struct queue *queue, const struct problem *p, enum part part,
                       uint64_t n);

/* ---- Adding to a record ---- */

/* Begins a record of nothing in queue->work[part]. */
tally_status queue_clear(struct queue *queue, const struct problem *p, enum part part);
/* Adds the n elements at the start of x to it. */
tally_status queue_fold(struct queue *queue, const struct problem *p, enum part part,
                        struct gpu_memory *x, uint64_t n);
/* Waits, and merges it into a state. */
tally_status queue_take(struct queue *queue, const struct problem *p, enum part part,
                        struct state *into);

/* ---- Trees ---- */

/* The values of n > 0 elements' leaves, joined to subtrees of 2^level of them, to queue->values; *at is
 * where there. */
tally_status queue_leaves(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                          uint64_t n, unsigned level, size_t *at);

/* ---- From memory of the device to a value ---- */

/* Puts the reduction of the n elements at the start of x under way, working in `work` (of
 * queue_workspace() bytes), its value to come in `result` (kernels/request.h). `clean`: the work is known
 * to be 0 where that matters, and is again afterwards. */
tally_status queue_start(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                         uint64_t n, struct gpu_memory *work, bool clean,
                         struct gpu_memory *result);

/* The same in memory of the queue's own, and waits for the value. Where `seconds` is not NULL, it is given
 * the device's time for the launches. */
tally_status queue_reduce(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                          uint64_t n, tally_value *out, double *seconds);

#endif
