/*
 * queue.h - one queue of a device, with all that a reduction on it needs: kernels, the memory that they work
 * in, buffers for data that has to be brought, and the place where results arrive.
 *
 * A device has two (opened.h): one for its own work, and one whose launches go to queues of the caller's. A struct
 * queue is one thread's at a time.
 *
 * Work. The launches of a reduction share one buffer, in words:
 *     [0, WORK_HEAD)   for each launch its counter and the records of the monoids that it is for
 *     behind           a board for each launch that needs one, and the values of a tree's nodes
 * The head must be 0 at first. struct layout says where everything is.
 *
 * Heads. A launch that gives values leaves its head 0, and so does the one that lowers records to one value. To clear
 * a caller's workspace before such a launch would take as long as the launch. So the launch has its head in memory of
 * the queue's own, which was cleared once: each address of a workspace has a head there from its first call on, for
 * good. Calls with one workspace come one after another - that is the caller's to see to -, and so do the uses of its
 * head, in streams and in graphs alike. Where a call fails, the workspace loses its head, and nobody gets that head
 * again: it may hold anything. When there are no more heads, a fill clears one in the workspace.
 */
#ifndef TALLY_GPU_QUEUE_H
#define TALLY_GPU_QUEUE_H

#include "base/types.h"
#include "gpu/area.h"
#include "gpu/recipe.h"
#include "gpu/tuning.h"
#include "problem/monoid.h"

#include <stdbool.h>

/* Words of the head: more than one of each recipe's need (queue.c). */
#define WORK_HEAD 512

#define HEADS 1024 /* the queue's heads for callers' workspaces */
/* Words of each: enough for the launches of one value, and for sums whose records are wanted. */
#define LAUNCH_HEAD 256

struct layout {
    unsigned launches;
    const struct recipe *recipe[MONOIDS]; /* of each launch */
    uint64_t place[MONOIDS];              /* of each launch, as kernels/request.h has it */
    uint32_t at[MONOIDS];                 /* where each monoid's record begins */
    uint32_t head;                        /* words of counters and records */
    size_t bytes;                         /* of all */
    struct area area; /* all but the tree, whose values lie behind: lay_out_tree() */
};

#define QUEUE_CACHES  2 /* strategy.h */
#define PARTS_KERNELS 8 /* of kernels/parts.cu */
#define SORT_KERNELS  4 /* of kernels/sort.cu */

/* Of a recipe: `reduce` and, where there is one, `alone`; of the canonical tree's `leaves` and `nodes`, and the same
 * two for the trees of many rows (parts.h). */
struct kernels {
    struct gpu_kernel *first, *second;
    struct gpu_kernel *part_leaves, *part_nodes;
};

struct lower_plan; /* kernels/plan.h */

#define FILLED_KERNELS 4 /* filled.c */
#define TERMS_KERNELS  5 /* terms.c */

/* A user's operator whose kernels have been found before. */
struct known_user {
    char *source;
    int commutative;
    tally_type type;
    struct kernels kernels;
};

/* The head of a caller's workspace. */
struct known_head {
    const void *workspace;
    uint32_t number; /* HEADS: it has none any more */
    struct known_head *next;
};

/* A reduction's elements, in memory of the device's. */
struct inputs {
    struct gpu_memory *x, *y; /* y is NULL but for products */
    uint64_t first;           /* the index of x's first element in the whole slice */
    uint64_t n;
};

struct queue {
    const struct gpu_api *api;
    struct gpu *gpu;
    const struct gpu_facts *facts;
    unsigned block; /* threads of a block */

    struct gpu_memory *heads;             /* HEADS of LAUNCH_HEAD words, or NULL */
    uint32_t heads_given;                 /* so many of them have been given to workspaces */
    struct known_head *known_head[HEADS]; /* lists, by a hash of the workspace's address */

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

    struct kernels known[RECIPES_MAX][TYPE_ROWS]; /* found before: by recipe and type */
    struct known_user users[KNOWN_USERS];
    unsigned next_user; /* the one to be forgotten next */
    struct gpu_kernel *lower;
    struct gpu_kernel *part[PARTS_KERNELS];    /* parts.c */
    struct gpu_kernel *sort[SORT_KERNELS];     /* parts.c */
    struct gpu_kernel *filled[FILLED_KERNELS]; /* filled.c */
    void *caches[QUEUE_CACHES];                /* what others keep with the queue; it frees them */
    struct gpu_kernel *terms[TERMS_KERNELS], *rank_barrier, *add_up; /* terms.c */
    struct gpu_kernel *pack, *settle, *allreduce, *allreduce_few;    /* words.c */
};

/* Opens a queue of device `index`, in the caller's context or NULL (struct gpu_api, open), for blocks of `block`
 * threads. On failure it is closed. */
tally_status queue_open(struct queue *queue, const struct gpu_api *api, size_t index, void *context,
                        unsigned block);
/* The same without the memory in which queue_reduce() finds its result: for launches that go to queues of the
 * caller's. */
tally_status queue_open_bare(struct queue *queue, const struct gpu_api *api, size_t index,
                             void *context, unsigned block);
void queue_close(struct queue *queue); /* also one that was never opened */

/* Makes *buffer, of *has bytes, one of at least `bytes` bytes; where it is made anew, what it held is lost. After a
 * failure it is NULL. */
tally_status queue_reserve(struct queue *queue, struct gpu_memory **buffer, size_t *has,
                           size_t bytes);

/* Returns the most elements that one launch may be given. */
uint64_t queue_launch_max(const struct queue *queue);

/* ---- Records: clear, fold any number of times, take ---- */

/* Begins records of no elements in queue->work, for all monoids but MONOID_TREE. */
tally_status queue_clear(struct queue *queue, const struct problem *p);
/* Adds elements to them. */
tally_status queue_fold(struct queue *queue, const struct problem *p, const struct inputs *in);
/* Waits, and merges them into a state, whose indices count from where those of the inputs do, but for its n. */
tally_status queue_take(struct queue *queue, const struct problem *p, struct state *into);

/* ---- Trees ---- */

/* Enqueues the values of n > 0 elements' subtrees of 2^level leaves to queue->values; *at is the byte at which
 * they begin there. */
tally_status queue_leaves(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                          uint64_t n, unsigned level, size_t *at);

/* ---- From memory of the device to values ---- */

/* Reduces n > 0 elements to the values of a problem for which recipe_gives_values(), and waits for them. Where
 * `seconds` is not NULL, it is given the device's time for the launches. */
tally_status queue_reduce(struct queue *queue, const struct problem *p, const struct inputs *in,
                          tally_value *out, double *seconds);

/* ---- Without the host ---- */

/* Finds all kernels that queue_enqueue() needs and, once, makes the heads, for which it waits. *bytes is how much
 * memory queue_enqueue() works in for n elements or fewer. */
tally_status queue_prepare(struct queue *queue, const struct problem *p, uint64_t n, size_t *bytes);
/* Returns that number of bytes. */
size_t queue_workspace(const struct queue *queue, const struct problem *p, uint64_t n);
/* Enqueues the reduction of any problem, in memory `work` of any content, a buffer that stands for the caller's
 * `workspace`; its values go to `results`, a tally_result each. */
tally_status queue_enqueue(struct queue *queue, const struct problem *p, const struct inputs *in,
                           struct gpu_memory *work, const void *workspace,
                           struct gpu_memory *results);

/* ---- For ranks (words.c) ---- */

/* Where the counters and records of all monoids are left: from word `from` of `memory` on. Where
 * `head` is not NULL, that is a head of the queue's: the reader of the records makes them 0 again,
 * or gives the head up (queue_give_up()). */
struct records {
    struct gpu_memory *memory;
    uint32_t from;
    struct known_head *head;
};

/* Finds the kernels for records of a problem without the canonical tree and, where `heads`, makes the heads, for
 * which it waits. Then queue_enqueue_records() enqueues the records: to a head of the queue's where there is
 * nothing but sums, else to the first words of `work`, a buffer that stands for the caller's `workspace`. */
tally_status queue_prepare_records(struct queue *queue, const struct problem *p, bool heads);
tally_status queue_enqueue_records(struct queue *queue, const struct problem *p,
                                   const struct inputs *in, struct gpu_memory *work,
                                   const void *workspace, struct records *out);
/* Takes a workspace's head away, whatever it holds; does nothing for NULL. */
void queue_give_up(struct known_head *head);
/* Makes the plan that lowers such records of n elements, with each monoid's place counted from the
 * first counter; returns how many words all of them are. */
uint32_t queue_records_plan(const struct queue *queue, const struct problem *p, uint64_t n,
                            struct lower_plan *plan);

/* ---- For reductions in parts (parts.c) ---- */

/* Finds the kernels of the problem's canonical tree. */
tally_status queue_tree_kernels(struct queue *queue, const struct problem *p, struct kernels *out);
/* Makes *out the plan for lowering all values of a problem; the caller fills in n and the places of
 * parts. */
void queue_lower_plan(const struct problem *p, struct lower_plan *out);

#endif
