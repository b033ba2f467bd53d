/*
 * communicator.h - what a rank keeps with a communicator: the form of its next frame (form.h), learnt from its calls.
 */
#ifndef TALLY_MPI_COMMUNICATOR_H
#define TALLY_MPI_COMMUNICATOR_H

#include "form.h"

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
