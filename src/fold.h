/*
 * fold.h - arrays become states: what tally_reduce() and tally_state_feed() have in common.
 */
#ifndef TALLY_FOLD_H
#define TALLY_FOLD_H

#include "device.h"
#include "tree.h"

/* Whether the inputs are there and their sizes possible; y is for problems with two inputs, and no others. */
tally_status fold_check(const struct problem *p, const void *x, const void *y, size_t n);

/* Folds a slice into all parts of the state but the tree. device NULL is the calling thread. */
tally_status fold_slice(tally_device *device, const struct problem *p, const struct slice *in,
                        struct state *into);

/* Appends x[0..n), which begins at a leaf's start, to the tree. On failure some of it may have been. */
tally_status fold_leaves(tally_device *device, const struct problem *p, const void *x, size_t n,
                         struct tree *into);

#endif
