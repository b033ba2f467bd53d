/*
 * merged.h - a frame that an operator of ours merges: of states that additions do not combine.
 *
 *   hash      of the question: the ranks must have the same
 *   status    the lowest that a rank has failed with, on how many ranks, and the sum of these ranks
 *   problem   of the states, in two words, so that the operator knows how they are merged
 *   states    how many there are, and the words of each: tally_state_to_merge_words()
 *
 * Merging takes no memory and needs nothing but the message, so that it is the same on all ranks, whichever of them does it.
 * The states of lower ranks are on the left. Where a rank has failed or the questions differ, states are left as they are.
 */
#ifndef TALLY_MPI_MERGED_H
#define TALLY_MPI_MERGED_H

#include "frame.h"

enum {
    MERGED_HASH,
    MERGED_STATUS,
    MERGED_FAILED,
    MERGED_RANK,
    MERGED_APART, /* bit 0: two questions differ; bit s: two states could not be merged, with status s */
    MERGED_PROBLEM,
    MERGED_STATES = MERGED_PROBLEM + 2,
    MERGED_WORDS,
    MERGED_HEAD
};

/* Writes the head of this rank's frame, for `states` states of `merge_words` words each, which the
 * caller puts behind it. `problem` is NULL where there are none. */
void merged_fill(int64_t *frame, const tally_problem *problem, size_t states, size_t merge_words,
                 uint64_t hash, tally_status status, int rank);
struct verdict merged_read(const int64_t *frame);

/* Makes MPI's type for so many words, which the caller frees, and gets the operator. Returns an MPI error code. */
int merged_mpi(size_t words, MPI_Datatype *type, MPI_Op *op);

#endif
