/*
 * queue.h - one queue of a device, with all that a reduction on it needs: kernels, the memory that they work
 * in, buffers for data that has to be brought, and the place where results arrive.
 *
 * A device has two (opened.h): one for its own work, and one whose launches go to queues of the caller's. A struct
 * queue is one thread's at a time.
 */
#ifndef TALLY_GPU_QUEUE_H
#define TALLY_GPU_QUEUE_H

#include "base/types.h"
#include "gpu/area.h"
#include "gpu/heads.h"
#include "gpu/tuning.h"
#include "problem/monoid.h"

#include <stdbool.h>

/* A queue's caches: kernels that were found (programs.c), and columns' tiles that were laid out (columns.c). */
enum { CACHE_KERNELS, CACHE_COLUMNS, QUEUE_CACHES };
#define PARTS_KERNELS 8 /* of kernels/parts.cu */
#define SORT_KERNELS  6 /* of kernels/sort.cu */

/* Kernels for whole arrays. `first` and `second` are `reduce` and, where there is one, `alone`; of the canonical tree,
 * `leaves` and `nodes`. The other two are the leaves and nodes for the trees of many rows (row_trees.h). */
struct kernels {
    struct gpu_kernel *first, *second;
    struct gpu_kernel *part_leaves, *part_nodes;
};

#define FILLED_KERNELS 4 /* filled.c */
#define TERMS_KERNELS  5 /* terms.c */

/* A user's operator whose kernels have been found before. */
struct known_user {
    char *source;
    int commutative;
    tally_type type;
    struct kernels kernels;
};

/* A reduction's elements, in memory of the device's. */
struct inputs {
    struct gpu_memory *x, *y; /* y is NULL but for products */
    uint64_t first;           /* the index of x's first element in the whole slice */
    uint64_t n;
};

/* The most values that one launch gives, and the bytes of their results. */
#define QUEUE_VALUES       2
#define QUEUE_RESULT_BYTES (QUEUE_VALUES * sizeof(tally_result))

struct queue {
    const struct gpu_api *api;
    struct gpu *gpu;
    const struct gpu_facts *facts;
    unsigned block;        /* threads of a block */
    bool has_slow_doubles; /* short floats are added up in floats */

    struct heads heads; /* for callers' workspaces */

    struct gpu_memory *work;
    size_t work_bytes;
    bool clean;                    /* the head of `work` is 0 */
    struct gpu_memory *parts_work; /* for parts.h */
    size_t parts_bytes;
    uint64_t mark;             /* parts.c: of the rows that the last call left; 1 to 255 */
    struct gpu_memory *values; /* of a tree's nodes */
    size_t values_bytes;
    struct gpu_memory *staging[2]; /* chunks of arrays: of x, and of y */
    size_t staging_bytes[2];
    struct gpu_memory *result; /* two words for each of two values */
    volatile uint64_t *seen;   /* the same words as the host sees them; or NULL */

    struct known_user users[KNOWN_USERS];
    unsigned next_user; /* the one to be forgotten next */
    struct gpu_kernel *lower;
    struct gpu_kernel *part[PARTS_KERNELS];    /* part_kernels.h */
    struct gpu_kernel *sort[SORT_KERNELS];     /* sort.c */
    struct gpu_kernel *filled[FILLED_KERNELS]; /* filled.c */
    void *caches[QUEUE_CACHES];                /* what others keep with the queue; it frees them */
    struct gpu_kernel *terms[TERMS_KERNELS], *rank_barrier, *add_up; /* terms.c */
    struct gpu_kernel *pack, *settle, *allreduce, *allreduce_few;    /* words.c */
};

/* Opens a queue of device `index`, in the caller's context or NULL (struct gpu_api, open), for blocks of `block`
 * threads. On failure it is closed. */
tally_status queue_open(struct queue *queue, const struct gpu_api *api, size_t index, void *context,
                        unsigned block);
/* Opens a queue without the memory in which whole_reduce() finds its result: for launches that go to queues of the
 * caller's. */
tally_status queue_open_bare(struct queue *queue, const struct gpu_api *api, size_t index,
                             void *context, unsigned block);
void queue_close(struct queue *queue); /* also one that was never opened */
/* Frees a queue's memory on the host. queue_close() does that, too. */
void queue_forget(struct queue *queue);

/* Makes *buffer, of *has bytes, one of at least `bytes` bytes; where it is made anew, what it held is lost. After a
 * failure it is NULL. */
tally_status queue_reserve(struct queue *queue, struct gpu_memory **buffer, size_t *has,
                           size_t bytes);

/* Reserves queue->parts_work for a reduction in parts. New memory is cleared: kernels look at marks of rows that nothing has
 * written (kernels/parts.h). What they find does not matter, but tools that watch memory would call it a fault. */
tally_status queue_reserve_parts(struct queue *queue, size_t bytes);

/* Returns how many multiprocessors the device has, at least 1. */
static inline unsigned queue_units(const struct queue *queue) {
    return queue->facts->units ? queue->facts->units : 1;
}

/* Begins launches that go to the device together (struct gpu_api, hold). */
static inline void queue_hold(struct queue *queue) {
    if (queue->api->hold) queue->api->hold(queue->gpu);
}

/* Ends them. Returns `status`, that of the launches until here, or the error that shows up now. */
static inline tally_status queue_send(struct queue *queue, tally_status status) {
    const tally_status sent = queue->api->send ? queue->api->send(queue->gpu) : TALLY_OK;
    return status != TALLY_OK ? status : sent;
}

/* Arguments of a launch: by value, or a buffer, which may be NULL. */
extern void *const queue_no_buffer;
#define VALUE(v)                                                                                   \
    { .size = sizeof(v), .value = &(v) }
#define BUFFER(m)                                                                                  \
    { .memory = (m), .size = sizeof queue_no_buffer, .value = &queue_no_buffer }

#endif
