/*
 * problem.h - plans of problems: the monoids that an array is folded into, and the values that are lowered from them.
 *
 * A tally_problem names operators. Each operator needs the states of none, one or several monoids (monoid.h) and lowers
 * them to a value; a plan is the set of those monoids and the list of those values. Mean and variance share
 * the monoid of the sum, so that a problem that asks for both folds it once.
 */
#ifndef TALLY_PROBLEM_H
#define TALLY_PROBLEM_H

#include "base/paths.h"
#include "tally.h"

/* The monoids, in the order in which a saved state holds them. */
enum monoid_id {
    MONOID_SUM,        /* the exact sum of x */
    MONOID_SQUARES,    /* of x^2 */
    MONOID_PRODUCTS,   /* of x y */
    MONOID_MAGNITUDES, /* of |x| */
    MONOID_FAST,       /* the sum of floats in any order, with rounding */
    MONOID_FACTORS,    /* the product of integers */
    MONOID_EXTREMES,   /* the least and the greatest element, and where they are */
    MONOID_BITS,       /* and, or, xor */
    MONOID_NONZERO,    /* how many elements are not zero */
    MONOID_TREE,       /* the value over the canonical tree: float products, users' operators */
    MONOIDS
};
#define MONOID_BIT(monoid) (1u << (monoid))

/* The wanted words of MONOID_EXTREMES. */
enum { WANT_LEAST = 1, WANT_GREATEST = 2, WANT_INDEX = 4 };

struct problem {
    tally_type type;
    int fast;
    int skip_nan; /* NaNs are skipped (device/shown.h); 0 for integers */
    double ddof;
    int about; /* a value is a variance, or a deviation, about `mean` */
    double mean[2];
    int is_complex; /* the values are variances of complex numbers: MONOID_MAGNITUDES is then the sum of their imaginary
                     * parts, and MONOID_PRODUCTS that of the squares of these */
    tally_op bits_op; /* MONOID_BITS: TALLY_AND, TALLY_OR or TALLY_XOR */
    const tally_operator
        *user;         /* MONOID_TREE: the user's operator, or NULL for the product of floats */
    unsigned monoids;  /* the monoids that the values need, as MONOID_BIT()s */
    unsigned extremes; /* MONOID_EXTREMES: what is wanted, as WANT_...s */
    unsigned values;   /* how many values it has */
    struct {
        tally_op op;
        tally_type type;
    } value[TALLY_VALUES_MAX];
};

/* Plans a problem, or says with TALLY_EINVAL or TALLY_ETYPE why it makes no sense; *out is then undefined. The
 * plan borrows the user's operator. */
tally_status problem_plan(const tally_problem *asked, struct problem *out);

static inline int problem_has(const struct problem *p, enum monoid_id monoid) {
    return (p->monoids & MONOID_BIT(monoid)) != 0;
}

/* Makes variances and standard deviations be about p->mean. They are then lowered from exact sums, as no device has
 * another way to them. */
void problem_about(struct problem *p);

/* Returns whether one of the values is that of `op`. */
int problem_asks(const struct problem *p, tally_op op);

#if defined(TALLY_DEBUG)
/* Counts a path (paths.h) for a problem with one value. The table's axes are those given here, then operators, then
 * types. A problem with several values is not counted: each value would get the paths of the others, too. */
#define TALLY_PATH_OF_VALUE(table, p, ...)                                                         \
    do {                                                                                           \
        if ((p)->values == 1)                                                                      \
            TALLY_PATH_OF(table, __VA_ARGS__, (unsigned)(p)->value[0].op, (unsigned)(p)->type);    \
    } while (0)
/* Plans a problem with this operator and type only. Returns NULL, or why no problem has one value of that operator. */
const char *problem_path(unsigned op, unsigned type, struct problem *out);
#else
#define TALLY_PATH_OF_VALUE(table, p, ...) ((void)0)
#endif

#endif
