/*
 * thirds.h - argmin, argmax and the product of integers of one array: three words say all that other ranks have to know
 * of a rank's part.
 *
 *                      of        a                                b
 *     argmin, argmax   n         the key (keys.h) of the winner   its index, from the rank's first element on
 *     product          n         the magnitude                    1 negative, 2 zero, 4 overflow
 *
 * Merging them, in the order of ranks, takes no memory and cannot fail.
 */
#ifndef TALLY_MPI_THIRDS_H
#define TALLY_MPI_THIRDS_H

#include "tally_mpi.h"

enum { THIRD_WORDS = 3 };
struct third {
    int64_t n, a, b;
};
_Static_assert(sizeof(struct third) == 8 * THIRD_WORDS, "they are words of a message");

/* Returns whether three words do for the problem, alone. */
int is_third(const tally_problem *problem);

/* Of a state of the problem that knows this rank's elements. */
tally_status third_of(const tally_problem *problem, const tally_state *state, struct third *out);
/* *left becomes what is known of its elements and of those of *right, which come behind. */
void third_merge(const tally_problem *problem, struct third *left, const struct third *right);
/* The value; TALLY_ERANGE where a product does not fit its type, TALLY_EINVAL for the index of nothing, with libtally's
 * line. */
tally_status third_value(const tally_problem *problem, const struct third *all, tally_value *out);

#endif
