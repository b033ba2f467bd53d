/*
 * partial.h - what is known of a reduction after some of its elements: the partial result.
 *
 * Every device adds elements to a partial; partials of one reduction are merged; the last one is turned
 * into a value. Except for the canonical tree (tree.h) that is the whole contract between the engine
 * and a device, and merging is exact and commutative, so the value cannot depend on who did what.
 */
#ifndef TALLY_PARTIAL_H
#define TALLY_PARTIAL_H

#include "exact/float_sum.h"
#include "tally.h"

/* How a reduction is carried out: decided once from operator, type and options. */
enum method {
    METHOD_FLOAT_SUM,   /* exact sum of floats */
    METHOD_FAST_SUM,    /* floats added in any order, in f32, or f64 for f64 */
    METHOD_INTEGER_SUM, /* exact, in 128 bits */
    METHOD_INTEGER_PROD,
    METHOD_ORDER, /* min, max */
    METHOD_BITS,  /* and, or, xor */
    METHOD_TREE   /* float products and user operators */
};

struct reduction {
    tally_op op; /* 0 for a user operator */
    tally_type type;
    tally_type out;
    enum method method;
    const tally_operator *user; /* or NULL */
};

struct partial {
    union {
        struct float_sum sum; /* METHOD_FLOAT_SUM */
        double fast;          /* METHOD_FAST_SUM */
        __int128
            integer; /* METHOD_INTEGER_SUM; below 2^127 for any n elements of 64 bits, n < 2^63 */
        struct {
            uint64_t magnitude; /* of the product of all nonzero elements, while !overflow */
            unsigned char negative, zero, overflow;
        } product;     /* METHOD_INTEGER_PROD */
        uint64_t bits; /* METHOD_BITS: the element's bits, zero-extended */
        struct {
            uint64_t bits;     /* the least or greatest so far, as an element's bits */
            unsigned char nan; /* floats: a NaN was met */
        } order;               /* METHOD_ORDER */
    } u;
};

/* Whether these go together, and how it is done: TALLY_ETYPE with a text, or TALLY_OK. */
tally_status reduction_plan(tally_op op, tally_type type, const tally_options *options,
                            struct reduction *out);

/* The partial of no elements. */
void partial_clear(const struct reduction *r, struct partial *p);
/* p += from; exact, in any order (but for METHOD_FAST_SUM, whose order is free). */
void partial_merge(const struct reduction *r, struct partial *p, const struct partial *from);
/* The value: TALLY_ERANGE where an exact integer does not fit. */
tally_status partial_value(const struct reduction *r, const struct partial *p, tally_value *out);

/* The value that a device has worked out by itself, from its bits; or TALLY_ERANGE where `range`. */
tally_status partial_result(const struct reduction *r, uint64_t bits, int range, tally_value *out);

/* An unsigned integer for an element's bits that sorts as the elements do, with -0 below +0. */
uint64_t order_key(tally_type type, uint64_t bits);

int type_is_float(tally_type type);
int type_is_signed(tally_type type);

#endif
