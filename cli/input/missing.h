/*
 * missing.h - elements of arrays that --skip-na leaves out: NaN, and the numbers of --na.
 */
#ifndef TALLY_CLI_MISSING_H
#define TALLY_CLI_MISSING_H

#include "input/spelling.h"

#include <stdint.h>

/* Returns whether an element of this type can be missing. */
bool missing_can_be(const struct spelling *s, tally_type type);

/* Clears mask[i] where x[i] is missing. Returns how many of mask[0..n) are not 0 then. */
size_t missing_mark(const struct spelling *s, tally_type type, const void *x, size_t n,
                    unsigned char *mask);

/* Maps indices among the elements that are kept to indices among all elements, which argmin and
 * argmax count. All fields start as 0. */
enum { INDEXES_MOST = 2 };
struct index_map {
    uint64_t seen, kept;          /* elements so far; those of them that are kept */
    uint64_t index[INDEXES_MOST]; /* of argmin and argmax, among all elements */
    bool is_known[INDEXES_MOST];
};

/* A run of elements without those that are missing. Zero at first; free with kept_free(). */
struct kept {
    unsigned char *mask, *x, *y; /* owned */
    size_t n;
};
enum { KEPT_MOST = 1 << 19 }; /* elements of a run */

/* Leaves missing elements out of (*x)[0..n), n <= KEPT_MOST. With partners *y, or NULL, both
 * elements of a pair are left out if one is missing. *x and *y become the remaining elements,
 * kept->n of them. Returns false, with a message, if memory is short. */
bool kept_choose(struct kept *kept, const struct spelling *s, tally_type type, const void **x,
                 const void **y, size_t n);
void kept_free(struct kept *kept);

/* Notes that the run, of n elements, has been fed to the state. */
void index_map_note(struct index_map *p, const tally_problem *problem, const tally_state *state,
                    const struct kept *kept, size_t n);
/* Replaces the indices of argmin and argmax in `values` by those among all elements. */
void index_map_apply(const struct index_map *p, const tally_problem *problem, tally_value *values,
                     size_t count);

#endif
