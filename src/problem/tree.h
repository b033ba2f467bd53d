/*
 * tree.h - the canonical tree: one bracketing for every device.
 *
 * An operator that is only nearly associative - a floating product, a user's operator - gives the same
 * bits everywhere only if everybody brackets alike. This is the bracketing; its shape depends on n alone
 * (docs/canonical-tree.md):
 *
 *   leaves   The array is cut into leaves of TREE_LEAF elements; the last may be shorter.
 *   lanes    A leaf has TREE_LANES lanes. Commutative: lane j takes elements j, j + 32, j + 64 ... in
 *            that order, then lanes are combined by halves: for h = 16, 8, 4, 2, 1 lane j < h takes lane j + h.
 *            Not commutative: lane j takes the run of elements [128 j, 128 (j+1)), then neighbours meet:
 *            lanes 2i and 2i + 1 become lane i, five times over.
 *   tree     Leaf values meet in a binary tree over leaf index: nodes 2i and 2i + 1 of one level make
 *            node i of the next.
 * What is absent is skipped: a lane, leaf or node without a partner goes up as it is, and the identity
 * is never combined with anything.
 *
 * Products of f16, bf16 and f32 are evaluated in f32, those of f64 in f64; user operators see elements.
 */
#ifndef TALLY_TREE_H
#define TALLY_TREE_H

#include "problem/problem.h"
#include <stddef.h>

#define TREE_LEAF  4096
#define TREE_LANES 32
#define TREE_RUN   (TREE_LEAF / TREE_LANES)

/* The value of a leaf or node: a float or double for products, an element for user operators. */
union tree_value {
    double f64;
    float f32;
    unsigned char element[8];
};

/* A run of whole leaves, as the fewest nodes that cover it. Those nodes are of rising levels and then of
 * falling ones, at most one of a level in each half; a run that begins at leaf 0 has falling ones only. */
#define TREE_NODES 128
struct tree {
    uint64_t next; /* the index of the leaf behind the run */
    int count;
    struct tree_node {
        union tree_value value;
        unsigned level; /* it stands for 2^level leaves, and begins at a multiple of that */
    } node[TREE_NODES];
};

/* Returns the bytes of a leaf's or node's value of this problem. */
size_t tree_value_size(const struct problem *p);

/* Makes a product that is a NaN the canonical NaN, since its sign and payload depend on the
 * machine. A user's operator's values stay, as the operator sees them again. */
void tree_settle(const struct problem *p, union tree_value *value);
/* Makes *t the run of no leaves that begins at leaf `first`. */
void tree_clear(struct tree *t, uint64_t first);
/* Appends the value of the next 2^level leaves; t->next is a multiple of 2^level. All values are settled by
 * tree_settle(). */
void tree_append(const struct problem *p, struct tree *t, const void *value, unsigned level);
/* Returns whether the nodes are the fewest that cover a run ending at t->next, each at a multiple
 * of its size. */
int tree_is_valid(const struct tree *t);
/* Returns the value of the whole tree of a run that begins at leaf 0; without leaves the
 * identity. */
tally_value tree_value(const struct problem *p, const struct tree *t);

/* Returns the identity's bits, as tree_value() gives it. */
uint64_t tree_identity_bits(const struct problem *p);

/* Evaluates the leaves of x[0..n) by the user's operator, on the calling thread. Writes their
 * values, as elements, to out. */
void tree_user_leaves(const struct problem *p, const void *x, size_t n, void *out);

#endif
