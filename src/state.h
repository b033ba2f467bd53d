/*
 * state.h - what a public tally_state holds.
 */
#ifndef TALLY_STATE_H
#define TALLY_STATE_H

#include "fold.h"

/* A part of an array that is to be evaluated over the canonical tree: whole leaves as a run, and the elements
 * of the leaf that it begins in the middle of and of the leaf that it ends in. */
struct stretch {
    struct tree tree;
    size_t
        head; /* elements in head_at[]: of the leaf in which the stretch begins, where that is not its
                    start; the leaf's other elements are somebody else's */
    size_t tail; /* elements in tail_at[]: of the leaf behind the run, which has begun */
    _Alignas(64) unsigned char head_at[TREE_LEAF * sizeof(union tree_value)];
    _Alignas(64) unsigned char tail_at[TREE_LEAF * sizeof(union tree_value)];
};

struct tally_state {
    tally_problem asked;       /* a copy, which owns what it points to */
    tally_operator user;       /* asked.user points here, to a copy of the caller's, */
    union tree_value identity; /* and that here */
    struct problem plan;
    uint64_t first; /* the index of the first element in the whole array */
    struct state state;
    struct stretch *stretch; /* PART_TREE; else NULL */
};

/* How many elements the head of a stretch that begins at `first` has room for. */
static inline size_t stretch_head_room(uint64_t first) {
    return (size_t)((TREE_LEAF - first % TREE_LEAF) % TREE_LEAF);
}

/* The index of the first leaf that the stretch may hold whole. */
static inline uint64_t stretch_first_leaf(uint64_t first) {
    return first / TREE_LEAF + (first % TREE_LEAF != 0);
}

#endif
