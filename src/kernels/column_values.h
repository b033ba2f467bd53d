/*
 * column_values.h - the values that the states of columns become (column_states.h), and their parameters. Kernels and
 * the host read it alike.
 *
 * Before including this header, define u32, i32 and u64.
 */
#ifndef TALLY_COLUMN_VALUES_H
#define TALLY_COLUMN_VALUES_H

#define COLUMNS_VALUES 4 /* the most values of a plan */

typedef struct column_values {
    u64 out[COLUMNS_VALUES];   /* the byte where each value's results begin */
    u32 value[COLUMNS_VALUES]; /* each value's operator, and from bit 8 on its type */
    u32 count;                 /* of values */
    i32 exponent;              /* see ddof */
    u64 ddof;                  /* variances: the correction is ddof * 2^exponent */
    /* Variances: the bits of a double. It is 1 / (n (n - ddof)) if all results are of n rows, and 1 if their numbers of
     * rows differ; 0 if the correction, or n, is out of the usual range. */
    u64 scale;
    u64 neutral; /* the bits of the element that replaces each that a mask hid */
    u64 flip;    /* extremes: the `flip` of key_of() (certain/order.h) */
    u32 filled;  /* neutral elements have been filled in */
} column_values;

#endif
