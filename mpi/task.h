/*
 * task.h - one call, as a row of steps, each of which is one collective of MPI's.
 *
 * The first step is always the frame, in which the ranks agree; what comes after it is the same on all ranks,
 * since it follows from what they agreed on. A route says which steps a call takes:
 *
 *   words    states that additions combine: in the frame, or in one message behind it. A frame has only
 *            a range of a long number's bits (bit_ranges.h), which does if all ranks' numbers fit it
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

/* FEW_WORDS: those of a state of everything, and its head. */
enum { ALL_RANKS = -1, VALUES_MAX = TALLY_VALUES_MAX, FEW_WORDS = FRAME_MOST };

/* What a call asks for: of an array, of states, of the states of groups, or of a shape. */
struct ask {
    enum { OF_ARRAY = 'v', OF_STATES = 's', OF_GROUPS = 'g', OF_SHAPE = 'm' } of;
    int root;                     /* ALL_RANKS, or the rank that gets what comes of it */
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

/* The root that a caller names. One that is no rank must not pass for ALL_RANKS. */
static inline int one_root(int root) {
    return root < 0 ? INT32_MAX : root;
}

struct task {
    MPI_Comm comm; /* of the first step and, unless request.c says otherwise, of the others */
    struct attribute *attribute; /* of comm; NULL where there was none to have */
    int learns; /* it waits, and comm's next frame is made by what this one needed */
    struct frame_layout layout; /* of this call's frame */
    struct need need;
    int rank, ranks;
    const tally_problem *problem; /* that of `ask` */
    enum route route;
    size_t count;               /* results */
    tally_state *const *state;  /* [count]; those of the caller, or our own one */
    tally_groups **groups;      /* in their place */
    tally_groups *spare_groups; /* those, where this rank's groups are to stay as they are */
    struct shaped *shaped;      /* of a shape: this rank's part; &part, or NULL */
    tally_state *own,
        *none; /* own: that of an array, or of one result of a shape after the other */

    /* Under way. */
    enum step step;
    tally_status status;
    size_t words, all_words; /* of a state, or of the groups; and of all of them */
    int64_t *word;           /* [all_words]: in the frame, in few_words or in own_words */
    int is_in_frame;         /* all of them are, and nothing is behind the frame */
    int64_t *own_words;
    int is_wide;    /* this rank's number has digits outside */
    int has_places; /* the frame has words for where each rank's elements stand */
    uint64_t *own_places;
    int payload;       /* where the frame's begins */
    MPI_Datatype type; /* of blocks, or of merged states; to be freed */
    MPI_Op op;
    struct block *block, *merged; /* [blocks] */
    size_t blocks;                /* one for each state, or one for the groups */
    tally_state **loaded;         /* [count]; of the merged blocks */
    tally_groups *loaded_groups;
    size_t values; /* of one array */

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
    int64_t frame[FRAME_MOST];
    char line
        [256]; /* why this rank has failed; between two arrays, so that their words are not a page apart, which */
    int64_t few_words
        [FEW_WORDS]; /* a processor that reads one and writes the other would take for one word */
};

/* memset(), called: where the compiler knows the length it writes instructions that are slow to start. */
extern void *(*const volatile task_clear)(void *, int, size_t);

/* Returns whether this rank gets what comes of the task. */
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

/* This rank cannot go on. The line that says why is `why`, or libtally's. */
void task_give_up(struct task *t, tally_status status, const char *why);
/* Returns room for `count` things of `size` bytes; where there is none, the rank gives up. */
void *task_memory(struct task *t, size_t count, size_t size);
/* MPI failed: the task is over. */
void task_lost(struct task *t, int error);
/* The task is over. Where the same went wrong on every rank, all of them are told by libtally. */
void task_outcome(struct task *t, tally_status status);
/* The values of one array are known, and the task is over. */
void task_give_values(struct task *t);
/* Frees what the task holds, and returns what became of it; the line is tally_mpi_error()'s. */
tally_status task_end(struct task *t);

#endif
