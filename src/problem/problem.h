/*
 * problem.h - what is asked, planned: which monoids an array is folded into, and which values come of them.
 *
 * A tally_problem names operators. Each operator needs the states of no, one or two monoids (monoid.h) and lowers
 * them to a value; a plan is the set of those monoids and the list of those values. Mean and variance share
 * the monoid of the sum, so that a problem that asks for both folds it once.
 */
#ifndef TALLY_PROBLEM_H
#define TALLY_PROBLEM_H

#include "base/paths.h"
#include "tally.h"

/* The monoids, in the order in which a saved state holds them. */
enum part {
    PART_SUM,        /* the exact sum of x */
    PART_SQUARES,    /* of x^2 */
    PART_PRODUCTS,   /* of x y */
    PART_MAGNITUDES, /* of |x| */
    PART_FAST,       /* the sum of floats in any order, with rounding */
    PART_FACTORS,    /* the product of integers */
    PART_EXTREMES,   /* the least and the greatest element, and where they are */
    PART_BITS,       /* and, or, xor */
    PART_NONZERO,    /* how many elements are not zero */
    PART_TREE, /* what is evaluated over the canonical tree: float products, users' operators */
    PARTS
};
#define PART_BIT(part) (1u << (part))

/* The wanted words of PART_EXTREMES. */
enum { WANT_LEAST = 1, WANT_GREATEST = 2, WANT_INDEX = 4 };

struct problem {
    tally_type type;
    int fast;
    double ddof;
    tally_op bits_op; /* PART_BITS: TALLY_AND, TALLY_OR or TALLY_XOR */
    const tally_operator
        *user;         /* PART_TREE: the user's operator, or NULL for the product of floats */
    unsigned parts;    /* the parts that the values need, as PART_BIT()s */
    unsigned extremes; /* PART_EXTREMES: what is wanted, as WANT_...s */
    unsigned values;   /* how many values it has */
    struct {
        tally_op op;
        tally_type type;
    } value[TALLY_VALUES_MAX];
};

/* Plans a problem, or says with TALLY_EINVAL or TALLY_ETYPE why it makes no sense; *out is then undefined. The
 * plan borrows the user's operator. */
tally_status problem_plan(const tally_problem *asked, struct problem *out);

static inline int problem_has(const struct problem *p, enum part part) {
    return (p->parts & PART_BIT(part)) != 0;
}

/* Returns whether one of the values is that of `op`. */
int problem_asks(const struct problem *p, tally_op op);

#if defined(TALLY_DEBUG)
/* Counts a path (paths.h) of a problem with one value, in a table whose axes are those given, operators and types. Of
 * several values each would have the paths of the others, too. */
#define TALLY_PATH_OF_VALUE(table, p, ...)                                                         \
    do {                                                                                           \
        if ((p)->values == 1)                                                                      \
            TALLY_PATH_OF(table, __VA_ARGS__, (unsigned)(p)->value[0].op, (unsigned)(p)->type);    \
    } while (0)
/* Plans a problem of this operator and type alone; returns why none has a value of it, or NULL. */
const char *problem_path(unsigned op, unsigned type, struct problem *out);
#else
#define TALLY_PATH_OF_VALUE(table, p, ...) ((void)0)
#endif

#endif
