/*
 * state.h - the contents of a public tally_state.
 */
#ifndef TALLY_STATE_H
#define TALLY_STATE_H

#include "base/paths.h"
#include "device/fold.h"

/* A state's knowledge over the canonical tree of neighbouring elements: a run of whole leaves, and
 * the elements of the two unfinished leaves at its ends. */
struct stretch {
    struct tree tree;
    /* The number of elements in head_at[]. They belong to a leaf in whose middle the stretch begins; the leaf's
     * elements before them are in another state. */
    size_t head;
    size_t tail; /* the number of elements in tail_at[]: the begun leaf behind the run */
    _Alignas(64) unsigned char head_at[TREE_LEAF * sizeof(union tree_value)];
    _Alignas(64) unsigned char tail_at[TREE_LEAF * sizeof(union tree_value)];
};

struct tally_state {
    tally_problem asked;       /* a copy, which owns what it points to */
    tally_operator user;       /* a copy of the caller's operator, to which asked.user points, */
    union tree_value identity; /* and of its identity, to which user.identity points */
    struct problem plan;
    uint64_t first; /* the index of the first element in the whole array */
    struct state state;
    struct stretch *stretch; /* MONOID_TREE; else NULL */
};

/* Returns whether a state is nothing but words that can be merged where they lie: a stretch of the
 * tree is more, and fast sums depend on the order. */
int state_has_merge_words(const struct problem *p);

/* Writes a problem in words, such as "var of f64, ddof 1", for errors. (Nine names of operators and all options have less than
 * 256 characters.) */
struct question {
    char text[256];
};
void state_question(const tally_problem *p, struct question *q);

/* Returns whether state_settle() leaves a state as it is, as it does one that was saved. */
int state_is_settled(const struct problem *p, const struct state *s);

#if defined(TALLY_DEBUG)
/* The operations on states, by operator and type. */
enum {
    STATE_MERGED,
    STATE_SUBTRACTED,
    STATE_NEGATED,
    STATE_LOWERED,
    STATE_DIVIDED,
    STATE_PRINTED,
    STATE_SAVED,
    STATE_LOADED,
    STATE_TO_WORDS,
    STATE_FROM_WORDS,
    STATE_TO_PARTS,
    STATE_FROM_PARTS,
    STATE_PARTS_MERGED
};
extern struct path_table state_paths;
#endif

/* Returns the most elements that the head of a stretch from element `first` on holds: those up to
 * the next leaf. */
static inline size_t stretch_head_room(uint64_t first) {
    return (size_t)((TREE_LEAF - first % TREE_LEAF) % TREE_LEAF);
}

/* Returns the index of the first leaf that the stretch can hold whole. */
static inline uint64_t stretch_first_leaf(uint64_t first) {
    return first / TREE_LEAF + (first % TREE_LEAF != 0);
}

#endif
