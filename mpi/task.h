/*
 * task.h - one call, as a row of steps, each of which is one collective of MPI's.
 *
 * The first step is always the frame, in which the ranks agree; what comes after it is the same on all ranks,
 * since it follows from what they agreed on. A route says which steps a call takes:
 *
 *   words    states that additions combine: in the frame, or in one message behind it; where the frame has room
 *            for a window (window.h), in the frame if all ranks' numbers fit that
 *   bits     and, or, xor of one array: on how many ranks each bit is set, in the frame
 *   order    min, max, minmax, norminf of one array: the keys of each rank in the frame
 *   third    argmin, argmax, integer prod of one array: three words of each rank in the frame
 *   merged   all of these but many groups, and all other states whose words an operator of ours can merge without memory
 *            (merged.h): in the frame, where that is merged and has room, or in one message behind it
 *   blocks   all other states: merged by our operator to rank 0 and sent to all from there, so that all have the
 *            same outcome. Of one array rank 0 sends the values; of many states it sends those, and the ranks agree
 *            once more whether all of them had the memory to read them
 *   tree     the same for one array over the canonical tree: each rank first finds where its elements stand, by the frame where
 *            that has a word for each rank
 *
 * A step is issued, completed by MPI, and then taken in. A blocking call does that for each step in turn;
 * request.c does it for calls that do not wait.
 */
#ifndef TALLY_MPI_TASK_H
#define TALLY_MPI_TASK_H

#include "blocks.h"
#include "frame.h"
#include "merged.h"
#include "thirds.h"
#include "window.h"

enum route {
    ROUTE_WORDS,
    ROUTE_BITS,
    ROUTE_ORDER,
    ROUTE_THIRD,
    ROUTE_MERGED,
    ROUTE_BLOCKS,
    ROUTE_TREE
};

enum step {
    STEP_FRAME,
    STEP_WORDS,
    STEP_MERGED,
    STEP_PLACE,
    STEP_MERGE,
    STEP_VALUES,
    STEP_SHARE,
    STEP_AGREE,
    STEP_DONE
};

/* FEW_WORDS: those of a state of everything, and its head. */
enum { ALL_RANKS = -1, VALUES_MAX = TALLY_VALUES_MAX, FEW_WORDS = FRAME_MOST };

struct task {
    /* What is asked. */
    MPI_Comm comm; /* of the first step and, unless request.c says otherwise, of the others */
    struct memory *memory; /* of comm; NULL where there was none to have */
    int learns;            /* it waits, and comm's next frame is made by what this one needed */
    struct form form;      /* of this one */
    struct need need;
    int rank, ranks, root;
    const tally_problem *problem; /* NULL where the caller gave none */
    enum route route;
    size_t count;              /* results */
    tally_state *const *state; /* [count]; those of the caller, or our own one */
    tally_groups **groups;     /* in their place */
    tally_value *out;          /* one array: where its values go */

    /* One array. */
    tally_device *device;
    const void *x, *y;
    size_t n;
    int is_resident; /* x and y lie on the device */
    tally_state *own, *none;

    /* Under way. */
    enum step step;
    tally_status status;
    int is_agreement;        /* it ends with the frame */
    size_t words, all_words; /* of a state, or of the groups; and of all of them */
    int64_t *word;           /* [all_words]: in the frame, in few_words or in own_words */
    int is_in_frame;         /* all of them are, and nothing is behind the frame */
    int64_t *own_words;
    int is_wide;       /* this rank's number has digits outside */
    int payload;       /* where the frame's begins */
    MPI_Datatype type; /* of blocks, or of merged states; to be freed */
    MPI_Op op;
    struct block *block, *merged; /* [blocks] */
    size_t blocks;                /* one for each state, or one for the groups */
    tally_state **loaded;         /* [count]; of the merged blocks */
    tally_groups *loaded_groups;
    size_t values; /* of one array */

    /* What follows is written before it is read, and left as it is at the start; but for the window's number of pieces. */
    struct window window; /* whose words are in the frame, if it has pieces */
    struct block_kind kind;
    struct third third;
    int64_t key[2];
    uint64_t here, before; /* elements of this rank, and of those below it */
    struct {
        int64_t status;
        tally_value value[VALUES_MAX];
    } given; /* of this rank, and then of all; rank 0's status is everybody's */
    int64_t frame[FRAME_MOST];
    char line
        [256]; /* why this rank has failed; between two arrays, so that their words are not a page apart, which */
    int64_t few_words
        [FEW_WORDS]; /* a processor that reads one and writes the other would take for one word */
};

/* Begin a task: this rank's part is reduced, and its message made. Whatever fails is in task->status, and the
 * task goes on to tell the others. The arguments must live until task_end(). `form` is that of the frame; NULL: what the
 * communicator has learnt. */
void task_begin_values(struct task *t, tally_device *device, int is_resident,
                       const tally_problem *problem, const void *x, const void *y, size_t n,
                       tally_value *out, int root, MPI_Comm comm, const struct form *form);
/* `line` is why this rank cannot go on, if `status` is a failure of what came before; NULL is libtally's line. */
void task_begin_states(struct task *t, const tally_problem *problem, tally_state *const states[],
                       size_t count, tally_status status, const char *line, MPI_Comm comm,
                       const struct form *form);
void task_begin_groups(struct task *t, const tally_problem *problem, tally_groups **groups,
                       size_t count, tally_status status, const char *line, MPI_Comm comm);
/* Only lets the ranks agree on the problem, the number of results and their statuses. */
void task_begin_nothing(struct task *t, const tally_problem *problem, size_t count,
                        tally_status status, const char *line, MPI_Comm comm);

/* Issues the step's collective on `comm`: waits for it where request is NULL. An MPI error code. */
int task_issue(struct task *t, MPI_Comm comm, MPI_Request *request);
/* Takes in what the step brought, and goes to the next. */
void task_take(struct task *t);
/* MPI failed: the task is over. */
void task_lost(struct task *t, int error);
/* Frees what the task holds, and returns what became of it; the line is tally_mpi_error()'s. */
tally_status task_end(struct task *t);

/* All of it, waiting for each step. */
tally_status task_run(struct task *t);

#endif
