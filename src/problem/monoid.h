/*
 * monoid.h - states and how they are combined: one row a monoid.
 *
 * A monoid has a state, which knows some elements; the state of none; and a way to combine two. Code that folds
 * elements into states - a thread, a GPU, another process - combines them by these rows, and since all but the
 * fast sum are exact and associative, the result cannot depend on who did what. (The canonical tree is the
 * exception that has rules of its own: tree.h.)
 *
 * A struct state holds a state of every monoid, side by side; a problem uses some of them. The others are
 * left as they are, without a meaning.
 */
#ifndef TALLY_MONOID_H
#define TALLY_MONOID_H

#include "exact/sum.h"
#include "problem/problem.h"

#include <stddef.h>

#define NO_INDEX UINT64_MAX

/* The state of MONOID_EXTREMES. Elements are kept as their bits. A NaN is neither the least nor the
 * greatest. Indices count from the state's first element; NO_INDEX if there is none. Without
 * WANT_INDEX the indices mean nothing, and only `nan` tells of NaNs. */
struct extremes {
    uint64_t least, greatest; /* of no elements: the type's greatest value, and its least */
    uint64_t at_least, at_greatest, at_nan;
    uint64_t
        skipped; /* elements that are not among the state's n, but which its indices count: skip_nan */
    unsigned char nan; /* a NaN was met */
};

/* The state of MONOID_FACTORS, a product of integers. While no factor is 0 its magnitude never falls.
 * So it is exact in 64 bits until it overflows, and then stays overflowed; a zero still makes it
 * 0. */
struct factors {
    uint64_t magnitude; /* of the product of all factors but 0, while !overflow */
    unsigned char negative, zero, overflow;
};

struct state {
    uint64_t n; /* elements it knows */
    struct exact_sum sum, squares, products, magnitudes;
    double fast; /* MONOID_FAST: the sum */
    struct factors factors;
    struct extremes extremes;
    uint64_t bits;    /* MONOID_BITS: the elements' combined bits, zero-extended */
    uint64_t nonzero; /* MONOID_NONZERO: the count */
};

struct monoid {
    const char *name;
    size_t at; /* the offset of its state in a struct state, in bytes */
    void (*clear)(const struct problem *p, void *state); /* to the state of no elements */
    /* Adds to `into` what `from` knows; index 0 of `from` is index `shift` of `into`, not counting elements that `into` has
     * skipped. The two may be one. */
    void (*merge)(const struct problem *p, void *into, const void *from, uint64_t shift);
    /* Takes away what `from` knows. Returns 0, and changes nothing, if `from` cannot be a part of the state. NULL if
     * the monoid has no subtraction. */
    int (*subtract)(const struct problem *p, void *state, const void *from);
    void (*negate)(void *state); /* to the state of the negated elements; or NULL */

    /* The state as 64-bit words, of which there are `words`: the saved form. Equal states have equal words.
     * Those of up to 2^31 states of an additive monoid are combined by plain addition, word by word; unpack() takes
     * such sums. */
    unsigned (*words)(const struct problem *p);
    int additive;
    void (*pack)(const struct problem *p, const void *state, uint64_t *word);
    /* Makes a state of words; returns whether they can be those of n elements, and if not leaves *state undefined. */
    int (*unpack)(const struct problem *p, const uint64_t *word, uint64_t n, void *state);
};

/* A row for each monoid but MONOID_TREE. */
extern const struct monoid monoids[MONOID_TREE];

static inline void *monoid_state(struct state *s, enum monoid_id monoid) {
    return (char *)s + monoids[monoid].at;
}
static inline const void *monoid_state_of(const struct state *s, enum monoid_id monoid) {
    return (const char *)s + monoids[monoid].at;
}

/* for_monoids(monoid, p) statement: a loop over each monoid of the problem but MONOID_TREE. */
#define for_monoids(monoid, p)                                                                     \
    for (unsigned monoid##_left = (p)->monoids & (MONOID_BIT(MONOID_TREE) - 1), monoid;            \
         monoid##_left && (monoid = (unsigned)__builtin_ctz(monoid##_left), 1);                    \
         monoid##_left &= monoid##_left - 1)

/* A bound on the words of all monoids together: four exact sums, the fast sum, the factors, the extremes, the bits and
 * the count. */
#define STATE_WORDS_MAX (4 * (4 + SUPERACC_LIMBS) + 1 + 2 + 7 + 1 + 1)

/* Returns whether indices of the problem's states count elements that are skipped. */
static inline int problem_counts_skipped(const struct problem *p) {
    return p->skip_nan && (p->extremes & WANT_INDEX);
}

/* Returns how many elements the state's indices count: fewer than 2^64. */
static inline uint64_t state_extent(const struct problem *p, const struct state *s) {
    return s->n + (problem_counts_skipped(p) ? s->extremes.skipped : 0);
}

/* Makes *s the state of no elements. */
void state_clear(const struct problem *p, struct state *s);
/* Merges `from` into `into`, for each of the problem's monoids. Index 0 of `from` is index `shift` of `into`, not
 * counting elements that `into` has skipped. */
void state_merge(const struct problem *p, struct state *into, const struct state *from,
                 uint64_t shift);
/* Settles a state after folds and merges, so that states with the same answers are equal. For any
 * and all alone a device may stop its count of nonzero elements early; the count then becomes 0, 1
 * or n. */
void state_settle(const struct problem *p, struct state *s);

/* Returns whether some s->n elements can have this state, each monoid by itself and all together. A
 * loaded state must pass, and a state after a subtraction. */
int state_is_possible(const struct problem *p, const struct state *s);

/* Returns whether the monoids' states, each possible by itself, can all be of the same elements. */
int monoid_states_agree(const struct problem *p, const struct state *s);

/* Returns whether additions combine the words of this problem's states: all its monoids are
 * additive. */
int state_is_additive(const struct problem *p);

/* Return an element's order-preserving key from its bits, and the bits from the key. Keys sort as
 * elements do, with -0 below +0, and NaNs beyond the infinities. */
uint64_t order_key(tally_type type, uint64_t bits);
uint64_t order_bits(tally_type type, uint64_t key);

#endif
