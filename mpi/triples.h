/*
 * triples.h - argmin, argmax and the product of integers of one array: three words hold the state of a
 * rank's elements.
 *
 *                      of        a                                b
 *     argmin, argmax   n         the key (keys.h) of the winner   its index, from the rank's first element on
 *     product          n         the magnitude                    1 negative, 2 zero, 4 overflow
 *
 * Merging them, in the order of ranks, takes no memory and cannot fail.
 */
#ifndef TALLY_MPI_TRIPLES_H
#define TALLY_MPI_TRIPLES_H

#include "tally_mpi.h"

enum { TRIPLE_WORDS = 3 };
struct triple {
    int64_t n, a, b;
};
_Static_assert(sizeof(struct triple) == 8 * TRIPLE_WORDS, "they are words of a message");

/* Returns whether the problem's states are triples. */
int has_triple(const tally_problem *problem);

/* Makes the triple of a state of this rank's elements. */
tally_status triple_of(const tally_problem *problem, const tally_state *state, struct triple *out);
/* Merges *right, whose elements come behind those of *left, into *left. */
void triple_merge(const tally_problem *problem, struct triple *left, const struct triple *right);
/* Lowers a triple. TALLY_ERANGE if a product does not fit its type; TALLY_EINVAL, with libtally's line,
 * for the index of nothing. */
tally_status triple_value(const tally_problem *problem, const struct triple *all, tally_value *out);

#endif
