/*
 * task.h - one call, as a row of steps, each of which is one collective of MPI's.
 *
 * The first step is always the frame, in which the ranks agree; what comes after it is the same on all ranks,
 * since it follows from what they agreed on. A route says which steps a call takes:
 *
 *   words    states that additions combine: in the frame, or in one message behind it. A frame has only
 *            a range of a long number's bits (bit_ranges.h). If all ranks' numbers fit it, no message follows
 *   keys     and, or, xor, min, max, minmax, norminf of one array: each rank's values in the frame, as words (keys.h).
 *            0.72 to 0.78 of the time of `merged` at 2 to 8 ranks
 *   triple   argmin, argmax, integer prod of one array: three words of each rank in the frame (triples.h). 0.83 to 0.88
 *            of the time of `merged`
 *   merged   all of these but many groups, and all other states whose words an operator of ours can merge without memory
 *            (merged.h): in the frame, where that is merged and has room, or in one message behind it
 *   blocks   all other states: merged by our operator to rank 0 and sent to all from there, so that all have the
 *            same outcome. Of arrays rank 0 sends the values; of the caller's states it sends those, and the ranks
 *            agree once more whether all of them had the memory to read them
 *   tree     the same for arrays over the canonical tree: each rank first finds where its elements stand, by the frame where
 *            that has words for all ranks
 *
 * A task begins (begin.h). A step is issued (run.h), completed by MPI, and then taken in (take.h). A blocking call does that
 * for each step in turn; request.c does it for calls that do not wait.
 */
#ifndef TALLY_MPI_TASK_H
#define TALLY_MPI_TASK_H

#include "bit_ranges.h"
#include "blocks.h"
#include "communicator.h"
#include "frame.h"
#include "merged.h"
#include "shaped.h"
#include "triples.h"

enum route { ROUTE_WORDS, ROUTE_KEYS, ROUTE_TRIPLE, ROUTE_MERGED, ROUTE_BLOCKS, ROUTE_TREE };

enum step {
    STEP_FRAME,
    STEP_WORDS,
    STEP_MERGED,
    STEP_PLACE,
    STEP_MERGE,
    STEP_VALUES,
    STEP_SHARE,
    STEP_AGREE,
    STEP_REASON, /* the one rank that failed tells the others why */
    STEP_DONE
};

/* FEW_WORDS: the longest message that a task has room for in itself: a state of all operators, with its head. */
enum { ALL_RANKS = -1, VALUES_MAX = TALLY_VALUES_MAX, FEW_WORDS = FRAME_MOST };

/* The arguments of a call: on an array, on states, on the states of groups, or on a shape. */
struct ask {
    enum { OF_ARRAY = 'v', OF_STATES = 's', OF_GROUPS = 'g', OF_SHAPE = 'm' } of;
    int root;                     /* ALL_RANKS, or the only rank that gets the results */
    const tally_problem *problem; /* NULL where the caller gave none */
    /* An array, or a shape of arrays. */
    tally_device *device;
    int is_resident; /* the arrays lie on the device */
    const void *x, *y;
    /* An array: its elements, and where its values go. */
    size_t n;
    tally_value *out;
    const tally_shape *shape; /* a shape of arrays */
    void *const *outs;        /* where the results of a shape go */
    /* States, or those of groups. */
    size_t count;
    tally_state *const *state;
    tally_groups **groups;
};

static inline struct ask ask_array(tally_device *device, int is_resident,
                                   const tally_problem *problem, const void *x, const void *y,
                                   size_t n, tally_value *out, int root) {
    return (struct ask){.of = OF_ARRAY,
                        .root = root,
                        .problem = problem,
                        .device = device,
                        .is_resident = is_resident,
                        .x = x,
                        .y = y,
                        .n = n,
                        .out = out};
}

static inline struct ask ask_states(const tally_problem *problem, tally_state *const state[],
                                    size_t count, int root) {
    return (struct ask){
        .of = OF_STATES, .root = root, .problem = problem, .count = count, .state = state};
}

static inline struct ask ask_groups(const tally_problem *problem, size_t count,
                                    tally_groups **groups, int root) {
    return (struct ask){
        .of = OF_GROUPS, .root = root, .problem = problem, .count = count, .groups = groups};
}

static inline struct ask ask_shape(tally_device *device, int is_resident,
                                   const tally_problem *problem, const tally_shape *shape,
                                   const void *x, const void *y, void *const outs[], int root) {
    return (struct ask){.of = OF_SHAPE,
                        .root = root,
                        .problem = problem,
                        .device = device,
                        .is_resident = is_resident,
                        .x = x,
                        .y = y,
                        .shape = shape,
                        .outs = outs};
}

/* Returns the root that a caller names. A negative one becomes INT32_MAX, which is no rank either, but not
 * ALL_RANKS. */
static inline int one_root(int root) {
    return root < 0 ? INT32_MAX : root;
}

struct task {
    MPI_Comm comm; /* the caller's; blocking calls issue all steps on it, request.c on duplicates */
    struct attribute *attribute; /* of comm; NULL if it could not be made */
    int learns;                  /* a blocking call: its need decides comm's next frame layout */
    struct frame_layout layout;  /* of this call's frame */
    struct need need;
    int rank, ranks;
    const tally_problem *problem; /* that of `ask` */
    enum route route;
    size_t count;               /* results */
    tally_state *const *state;  /* [count]; those of the caller, or our own one */
    tally_groups **groups;      /* the groups, in place of states */
    tally_groups *spare_groups; /* a copy of the groups, where this rank's must stay as they are */
    struct shaped *shaped;      /* of a shape: this rank's part; &part, or NULL */
    tally_state *own,
        *none; /* own: that of an array, or of one result of a shape after the other; none: one that
                  is not the caller's, of no elements at first */

    /* Under way. */
    enum step step;
    tally_status status;
    size_t words, all_words; /* of one state, or of the groups; and of all states */
    int64_t *word;           /* [all_words]: in the frame, in few_words or in own_words */
    int is_in_frame;         /* all words are in the frame, and no message follows it */
    int64_t *own_words;
    int is_wide;    /* this rank's number has bits outside of its range in the frame */
    int has_places; /* the frame has words for where each rank's elements stand */
    uint64_t *own_places;
    int payload;       /* where the frame's payload begins, in words */
    MPI_Datatype type; /* of blocks, or of merged states; to be freed */
    MPI_Op op;
    struct block *block, *merged; /* [blocks] */
    size_t blocks;                /* one for each state, or one for the groups */
    tally_state **loaded;         /* [count]; of the merged blocks */
    tally_groups *loaded_groups;
    size_t values; /* how many values one array has */

    /* The start of a task does not clear what follows, but for bit_ranges.count: it is written before it is read. */
    struct bit_ranges bit_ranges; /* of the state, in the frame; count 0: none are */
    struct ask ask;
    struct block_kind kind;
    struct triple triple;
    int64_t key[2];
    uint64_t
        *place; /* over the tree: [count] elements of this rank, and [count] of those below it */
    uint64_t place_of_one[2];
    struct shaped part;
    struct {
        int64_t status;
        tally_value value[VALUES_MAX];
    } given;         /* of this rank, and then of all; rank 0's status is everybody's */
    int reason_from; /* STEP_REASON: the rank whose line all take */
    /* `line` lies between two arrays of 4 KiB, so that their words are not 4 KiB apart: a processor that reads a word
     * of one and writes that of the other would at first take them for the same word, which costs time. */
    int64_t frame[FRAME_MOST];
    char line[256]; /* why this rank has failed */
    int64_t few_words[FEW_WORDS];
};

/* memset(), which the compiler must call: for a length that it knows, it would use instructions that are slow to
 * start. */
extern void *(*const volatile task_clear)(void *, int, size_t);

/* Returns whether this rank gets the task's results. */
static inline int task_is_wanted(const struct task *t) {
    return t->ask.root == ALL_RANKS || t->ask.root == t->rank;
}

/* Returns the words of the frame behind its header, and how many they are. */
static inline int64_t *task_payload(struct task *t) {
    return t->frame + t->payload;
}
static inline int task_room(const struct task *t) {
    return t->layout.words - t->payload;
}

/* Notes that this rank cannot go on, and why: `why`, or tally_error() if that is NULL. Only the first failure is
 * kept. */
void task_give_up(struct task *t, tally_status status, const char *why);
/* Returns room for `count` things of `size` bytes; where there is none, the rank gives up. */
void *task_memory(struct task *t, size_t count, size_t size);
/* Ends the task with TALLY_ELOST: MPI failed. */
void task_lost(struct task *t, int error);
/* Ends the task with a status that every rank has found for itself; the line of a failure is tally_error(). */
void task_outcome(struct task *t, tally_status status);
/* Ends the task, and writes the values of one array to the caller's `out`. */
void task_give_values(struct task *t);
/* Frees what the task holds, and returns its status. The line of a failure becomes tally_mpi_error(). */
tally_status task_end(struct task *t);

#endif
