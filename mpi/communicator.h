/*
 * communicator.h - what a rank keeps with a communicator: the layout of its next frame (frame_layout.h),
 * learnt from its calls.
 */
#ifndef TALLY_MPI_COMMUNICATOR_H
#define TALLY_MPI_COMMUNICATOR_H

#include "frame_layout.h"

/* The words that a call needs to be done in one frame, added or merged: NO_FRAME where none will do. */
struct need {
    int added, merged;
};

/* The attribute that MPI caches with a communicator: a rank's knowledge of it. */
struct duplicates; /* request.c */
struct attribute {
    int rank, ranks;
    struct frame_layout layout;
    struct need most; /* the greatest of the last `calls` calls */
    int calls;
    MPI_Datatype type; /* of a merged frame of typed_words words, if that is not 0 */
    MPI_Op op;
    int typed_words;
    struct duplicates *duplicates;
};

/* Returns TALLY_OK if ranks can reduce over the communicator. Else all of them get TALLY_EINVAL, and have sent nothing. */
tally_status check_communicator(MPI_Comm comm);
/* Gets the communicator's attribute, or makes it. Without memory *out is NULL, and MPI_ERR_NO_MEM is
 * returned. Then all ranks use FIRST_LAYOUT, as no call has succeeded on this communicator. */
int attribute_of(MPI_Comm comm, struct attribute **out);
/* Gets MPI's type and operator for the communicator's frame, which is a merged one; an MPI error code. */
int frame_datatype(struct attribute *m, MPI_Datatype *type, MPI_Op *op);
/* Learns from a call with this need. It has succeeded on all ranks, as far as its frame tells. */
void learn_layout(struct attribute *m, struct need need);

#endif
