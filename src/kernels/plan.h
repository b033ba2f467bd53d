/*
 * plan.h - the argument of lower.h: which values to lower from which records.
 * Kernels and the host read it alike. Types and operators are numbered as in include/tally.h.
 *
 * Before including this header, define u32, i32 and u64.
 */
#ifndef TALLY_PLAN_H
#define TALLY_PLAN_H

/* Monoids of a problem, as src/problem/problem.h numbers them. */
enum {
    PLAN_SUM,
    PLAN_SQUARES,
    PLAN_PRODUCTS,
    PLAN_MAGNITUDES,
    PLAN_FAST,
    PLAN_FACTORS,
    PLAN_EXTREMES,
    PLAN_BITS,
    PLAN_NONZERO,
    PLAN_TREE,
    PLAN_MONOIDS
};

#define PLAN_VALUES 32
#define PLAN_NONE   (~0u)

typedef struct lower_plan {
    u64 n;
    u64 identity; /* the tree's value where n is 0 */
    u64 ddof;     /* the correction is ddof * 2^exponent */
    i32 exponent; /* see ddof */
    u32 about;    /* variances are about the mean whose parts have these bits, as doubles: */
    u64 mean[2];
    u32 is_complex; /* the elements are complex: PLAN_MAGNITUDES is the sum of their imaginary parts, and PLAN_PRODUCTS
                       * that of the squares of these */
    u32 type;         /* of the elements */
    u32 indexed;      /* the record of extremes has indices */
    u32 complemented; /* the record of bits is the complement of what is asked for */
    u32 user;         /* the tree is a user's operator's: its values are elements */
    u32 values;       /* how many there are */
    u32 at
        [PLAN_MONOIDS]; /* the word at which each monoid's record begins, PLAN_NONE for others. The tree's: its
                          * root, counted in tree values */
    u32 value[PLAN_VALUES]; /* each value's operator, and from bit 8 on its type */
} lower_plan;

/* Words of records. */
#define FLOAT_LIMBS      68  /* sums of floats: limbs from 2^-1088 on, */
#define WIDE_FLOAT_LIMBS 136 /* of products of f64 from 2^-2176 on, */
#define FLOAT_COUNTS                                                                               \
    4 /* and four counts behind them: NaNs, +infinities, -infinities, and whether mixed */

#endif
