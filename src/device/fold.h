/*
 * fold.h - folds arrays in host memory into states, for tally_reduce() and tally_state_feed().
 */
#ifndef TALLY_FOLD_H
#define TALLY_FOLD_H

#include "device/device.h"
#include "problem/tree.h"

/* Returns TALLY_OK if the inputs are there and their sizes possible, else TALLY_EINVAL. Only
 * problems with dot or complex elements take a y. */
tally_status fold_check(const struct problem *p, const void *x, const void *y, size_t n);

/* Folds a slice into the states of all monoids but the tree. On failure the state is as it was. A device of NULL is the
 * calling thread, here and below. Where the problem has skip_nan, NaNs are left out, but indices count them. */
tally_status fold_slice(tally_device *device, const struct problem *p, const struct slice *in,
                        struct state *into);

/* Appends the leaves of x[0..n) to the tree; x[0] begins a leaf. On failure some leaves may have been appended. All
 * elements are in the tree: skip_nan is not looked at. */
tally_status fold_leaves(tally_device *device, const struct problem *p, const void *x, size_t n,
                         struct tree *into);

/* Folds a slice into a state and, unless `tree` is NULL, appends its leaves to the tree. NaNs that the problem skips
 * are in neither. */
tally_status fold_all(tally_device *device, const struct problem *p, const struct slice *in,
                      struct state *into, struct tree *tree);

#endif
