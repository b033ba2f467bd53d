/*
 * form.h - what the next frame of a communicator is like: learnt from its calls so far.
 *
 * A frame has the same length whatever is asked, since the ranks do not know before whether they ask for the same. But they
 * know what they all have asked for in the calls before: every call that succeeds had one question and one verdict on all
 * ranks, and collectives are issued in one order. So each rank notes what a frame would have had to be for the last calls to need
 * no further message, and all ranks note the same. The next frame is of that form:
 *
 *   added    `words` words under MPI_SUM (frame.h): at first, and as long as sums, bits, and extremes of not too many ranks do
 *   merged   `words` words under an operator of ours (merged.h), where something else is asked for again and again
 *
 * Only calls that wait learn, and use what has been learnt: when a call that does not wait begins, the calls before it may be
 * complete on one rank and not on another. Those have a form of their own, in which every single sum has room.
 */
#ifndef TALLY_MPI_FORM_H
#define TALLY_MPI_FORM_H

#include "tally_mpi.h"

enum {
    FRAME_WORDS = 32, /* the shortest frame */
    FRAME_MOST = 512, /* the longest */
    SLOTS_MOST = 128, /* the longest in which each rank has words of its own */
    NO_FRAME = 1 << 30
};

struct form {
    int words, is_merged;
};
#define FIRST_FORM ((struct form){FRAME_WORDS, 0})
#define LATER_FORM ((struct form){FRAME_WORDS + 208, 0})

/* The words that a call needs to be done in one frame, added or merged: NO_FRAME where none will do. */
struct need {
    int added, merged;
};

/* What a rank keeps of a communicator. */
struct lanes; /* request.c */
struct memory {
    int rank, ranks;
    struct form form;
    struct need most;  /* of the last calls */
    int calls;         /* so many */
    MPI_Datatype type; /* of a merged frame of typed_words words, if that is not 0 */
    MPI_Op op;
    int typed_words;
    struct lanes *lanes;
};

/* The communicator's; made where there is none. MPI_ERR_NO_MEM where there is no memory: then *out is NULL, and so is the form
 * the first one on all ranks, as no call has succeeded on this communicator. */
int memory_of(MPI_Comm comm, struct memory **out);
/* MPI's type of the communicator's frame, which is a merged one, and the operator; an MPI error code. */
int memory_type(struct memory *m, MPI_Datatype *type, MPI_Op *op);
/* A call that needs this has succeeded on all ranks, as far as its frame tells. */
void memory_learn(struct memory *m, struct need need);

#endif
