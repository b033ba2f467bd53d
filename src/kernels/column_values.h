/*
 * column_values.h - which values the states of columns become (column_states.h), and what these depend on. Kernels and
 * the host read it alike.
 *
 * Before including this header, define u32, i32 and u64.
 */
#ifndef TALLY_COLUMN_VALUES_H
#define TALLY_COLUMN_VALUES_H

#define COLUMNS_VALUES 4 /* at most */

typedef struct column_values {
    u64 out[COLUMNS_VALUES];   /* the byte where each value's results begin */
    u32 value[COLUMNS_VALUES]; /* each value's operator, and from bit 8 on its type */
    u32 count;                 /* of values */
    i32 exponent;              /* see ddof */
    u64 ddof;                  /* variances: the correction is ddof * 2^exponent */
    /* Variances: a double's bits. Of n rows each, 1 / (n (n - ddof)); of any numbers of rows, 1. 0 where the
     * correction, or that number, is out of the usual range. */
    u64 scale;
    u64 neutral; /* the bits of the element that stands for each that a mask hid */
    u64 flip;   /* extremes: what turns elements' bits into keys that sort as wanted (end_keys.h) */
    u32 filled; /* neutral elements have been filled in */
} column_values;

#endif
