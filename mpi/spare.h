/*
 * spare.h - a state of each thread's that its next call may use: for a small array, making one takes longer than all
 * else that a rank does by itself.
 */
#ifndef TALLY_MPI_SPARE_H
#define TALLY_MPI_SPARE_H

#include "tally_mpi.h"

/* A state of no elements of the problem: the thread's spare one, if it is of that problem, or a new
 * one. *words and *merge_words become what tally_state_words() and tally_state_merge_words() say of
 * it. */
tally_status spare_take(const tally_problem *problem, tally_state **out, size_t *words,
                        size_t *merge_words);
/* Keeps the state, which was taken for that problem, instead of the one that is kept; NULL is allowed. */
void spare_give(const tally_problem *problem, tally_state *state);

#endif
