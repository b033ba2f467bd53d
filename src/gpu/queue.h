/*
 * queue.h - one queue of a device, with all that a reduction on it needs: kernels, the memory that they work
 * in, pieces for data that has to be brought, and the place where results arrive.
 *
 * A device has a queue, and one whose launches go to queues of the caller's. A struct queue is one thread's at a time.
 *
 * Work. The launches of a reduction share one piece of memory, in words:
 *     [0, WORK_HEAD)   for each launch its counter and the records of the parts that it is for
 *     behind           a board for each launch, and the values of a tree's nodes
 * What the head holds must be 0 at first. struct layout says where everything is.
 *
 * Heads. A launch that gives a value leaves its head 0, and so does the one that lowers records to one value. So that nothing has to make a caller's workspace 0 before,
 * which would take as long as the launch, such a launch has its head in memory of the queue's own: each address of a
 * workspace has a head there from its first call on, for good. Calls with one workspace come one after another - that
 * is the caller's to see to -, and so do the uses of its head, in streams and in graphs alike. A call that fails gives
 * its head up, whatever that holds. When there are no more heads, a fill clears one in the workspace.
 */
#ifndef TALLY_GPU_QUEUE_H
#define TALLY_GPU_QUEUE_H

#include "gpu/gpu.h"
#include "gpu/recipe.h"
#include "monoid.h"

#include <stdbool.h>

/* Words of the head: more than one of each recipe's need (queue.c). */
#define WORK_HEAD 512

#define HEADS 1024 /* workspaces whose heads are the queue's */
#define LAUNCH_HEAD                                                                                \
    256 /* of each: those of one value's launches, or of sums whose records are wanted */

struct layout {
    unsigned launches;
    const struct recipe *recipe[PARTS]; /* of each launch */
    uint64_t place[PARTS];              /* of each launch, as kernels/request.h has it */
    uint32_t at[PARTS];                 /* where each part's record begins */
    uint32_t head;                      /* words of counters and records */
    uint64_t tree;                      /* the byte where the tree's values begin */
    size_t bytes;                       /* of all */
};

#define PARTS_KERNELS 11 /* of kernels/parts.cu */
#define COLUMNS_FOLDS 7  /* columns.c */
#define GROUPS_FOLDS  7  /* groups.c */

struct kernels { /* of a recipe: `reduce` and perhaps `alone`, or `leaves` and `nodes` */
    struct gpu_kernel *first, *second;
    struct gpu_kernel *part_leaves, *part_nodes; /* and those of rows (parts.h) */
};

struct lower_plan; /* kernels/plan.h */

/* Of a program of kernels/rows.cu. */
struct rows_kernels {
    struct gpu_kernel *rows, *shorts, *join;
};
#define ROWS_KINDS    9 /* rows.c */
#define TERMS_KERNELS 5 /* terms.c */

/* A user's operator whose kernels have been found before. */
struct known_user {
    char *source;
    int commutative;
    tally_type type;
    struct kernels kernels;
};
#define KNOWN_USERS 8

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

    struct gpu_memory *heads;             /* HEADS of them, or NULL */
    uint32_t heads_given;                 /* so many of them have had a workspace */
    struct known_head *known_head[HEADS]; /* lists, by the workspace's address */

    struct gpu_memory *work;
    size_t work_bytes;
    bool clean;                    /* the head of `work` is 0 */
    struct gpu_memory *parts_work; /* for parts.h */
    size_t parts_bytes;
    struct gpu_memory *values; /* of a tree's nodes */
    size_t values_bytes;
    struct gpu_memory *staging[2]; /* chunks of arrays: of x, and of y */
    size_t staging_bytes[2];
    struct gpu_memory *result; /* two words, ... */
    volatile uint64_t *seen;   /* ... here, where the host can see them; or NULL */

    struct kernels known[RECIPES_MAX][TALLY_F64 + 1]; /* found before: by recipe and type */
    struct known_user users[KNOWN_USERS];
    unsigned next_user; /* the one to be forgotten next */
    struct gpu_kernel *lower;
    struct gpu_kernel *part[PARTS_KERNELS];                      /* parts.c */
    struct gpu_kernel *columns[COLUMNS_FOLDS][TALLY_F64 + 1][3]; /* columns.c: wide, narrow, join */
    struct gpu_kernel *groups[GROUPS_FOLDS][TALLY_F64 + 1][6];   /* groups.c */
    struct rows_kernels rows[ROWS_KINDS][TALLY_F64 + 1];         /* rows.c */
    struct gpu_kernel *terms[TERMS_KERNELS];                     /* terms.c */
    struct gpu_kernel *pack, *settle;                            /* words.c */
};

/* A queue of a device, opened in the caller's context (or NULL): struct gpu_api. */
tally_status queue_open(struct queue *queue, const struct gpu_api *api, size_t index, void *context,
                        unsigned block);
/* The same of one that only queue_prepare() and queue_enqueue() are called for: it has no memory. */
tally_status queue_open_bare(struct queue *queue, const struct gpu_api *api, size_t index,
                             void *context, unsigned block);
void queue_close(struct queue *queue); /* also one that was never opened */

/* Makes *piece one of at least `bytes` bytes; what it held is lost. */
tally_status queue_reserve(struct queue *queue, struct gpu_memory **piece, size_t *has,
                           size_t bytes);

/* The most elements that one launch may be given. */
uint64_t queue_launch_max(const struct queue *queue);

/* ---- Records: clear, fold any number of times, take ---- */

/* Begins records of nothing in queue->work, for all parts but PART_TREE. */
tally_status queue_clear(struct queue *queue, const struct problem *p);
/* Adds elements to them. */
tally_status queue_fold(struct queue *queue, const struct problem *p, const struct inputs *in);
/* Waits, and merges them into a state, whose indices count from where those of the inputs do. */
tally_status queue_take(struct queue *queue, const struct problem *p, struct state *into);

/* ---- Trees ---- */

/* The values of n > 0 elements' leaves, joined to subtrees of 2^level of them, to queue->values; *at is
 * where there. */
tally_status queue_leaves(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                          uint64_t n, unsigned level, size_t *at);

/* ---- From memory of the device to a value ---- */

/* Reduces n > 0 elements to the only value of a problem for which recipe_gives_value(), and waits for it. Where
 * `seconds` is not NULL, it is given the device's time for the launches. */
tally_status queue_reduce(struct queue *queue, const struct problem *p, const struct inputs *in,
                          tally_value *out, double *seconds);

/* ---- Without the host ---- */

/* Finds all kernels that queue_enqueue() needs, and says how many bytes it works in for n elements or fewer. */
tally_status queue_prepare(struct queue *queue, const struct problem *p, uint64_t n, size_t *bytes);
/* How many bytes these are. */
size_t queue_workspace(const struct queue *queue, const struct problem *p, uint64_t n);
/* Puts the reduction of any problem under way, in memory `work` of any content, which is the caller's `workspace`; its
 * values go to `results`, a tally_result each. */
tally_status queue_enqueue(struct queue *queue, const struct problem *p, const struct inputs *in,
                           struct gpu_memory *work, const void *workspace,
                           struct gpu_memory *results);

/* ---- For ranks (words.c) ---- */

/* Where records of sums, or of all parts, have been left: from word `from` of `memory` on. Where `head` is not NULL, whoever
 * reads them makes them 0 again, or gives the head up (queue_give_up()). */
struct records {
    struct gpu_memory *memory;
    uint32_t from;
    struct known_head *head;
};

/* Puts records of a problem without the canonical tree under way: in a head of the queue's, or in the first words of `work`,
 * which is the caller's `workspace`. Prepared by queue_prepare_records(), where need be with the heads. */
tally_status queue_prepare_records(struct queue *queue, const struct problem *p, bool heads);
tally_status queue_enqueue_records(struct queue *queue, const struct problem *p,
                                   const struct inputs *in, struct gpu_memory *work,
                                   const void *workspace, struct records *out);
void queue_give_up(struct known_head *head);
/* Where each part's are among them, and how many words. */
uint32_t queue_records_plan(const struct queue *queue, const struct problem *p, uint64_t n,
                            struct lower_plan *plan);

/* ---- For reductions in parts (parts.c) ---- */

/* The kernels of the problem's canonical tree. */
tally_status queue_tree_kernels(struct queue *queue, const struct problem *p, struct kernels *out);
/* What lowering has to know of a problem; n, places and values are left to the caller. */
void queue_lower_plan(const struct problem *p, struct lower_plan *out);

#endif
