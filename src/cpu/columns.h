/*
 * columns.h - many results side by side: kernels that keep the state of each column of an array in a lane.
 *
 * A form is one part of a state, small enough to be kept for hundreds of columns in the first-level cache. It has
 * a few planes, each of which has a lane of `lane` bytes for every column of a block. Exact sums are
 * kept as two doubles, s + e, and a bound b on the error of that: additions are error-free (TwoSum), what does
 * not go into s goes into e, and what does not go into e is added to b. Where b is 0, s + e is the exact sum.
 * Where not, it is so near that rounding s + e - b and s + e + b almost always gives the same value, and if so
 * that is the right one (Ziv's rounding test). Only the other columns are done again exactly.
 */
#ifndef TALLY_CPU_COLUMNS_H
#define TALLY_CPU_COLUMNS_H

#include "base/types.h"
#include "cpu/tuning.h"
#include "problem/problem.h"

#include <stddef.h>
#include <stdint.h>

#define COLUMN_TYPES TYPE_ROWS
/* The words that summing SEGMENTS_PIECE elements by running totals takes (segments.c). */
#define SEGMENTS_ROOM (2 * (SEGMENTS_PIECE + 2 * COLUMN_STEP))

/* Most rows that are written behind the longest segment where segments become columns, in blocks of up to 16 rows. */
#define GATHER_MORE 15

enum form {
    FORM_SUM1, /* a sum in one double: s and b; e is 0 */
    FORM_SUM2, /* a sum: s, e and b; so are the next three */
    FORM_MAGNITUDES,
    FORM_SQUARES,
    FORM_PRODUCTS,
    FORM_MOMENTS,  /* s, e, b of the elements, and of their squares: approximate, for variances */
    FORM_WIDE,     /* of 64-bit integers: the sums of their lower and of their upper halves */
    FORM_ORDER,    /* the least and the greatest, as keys that sort as signed integers */
    FORM_LEAST,    /* the least key, NaNs first, and its index */
    FORM_GREATEST, /* the least inverted key, NaNs first, and its index */
    FORM_AND,
    FORM_OR,
    FORM_XOR,
    FORM_NONZERO, /* how many elements are not zero */
    FORM_NANS,    /* how many are NaNs */
    FORMS
};

/* Rows of columns in memory. Row r has the index first + r * step. */
struct column_rows {
    const char *x, *y;
    ptrdiff_t x_row, y_row; /* bytes */
    size_t rows;
    uint64_t first, step;
    int starts; /* these are the first rows: add() ignores what the planes hold (column_form.starts) */
};

struct column_form {
    unsigned planes, lane; /* 0 where there is no such form */
    int starts;            /* add() heeds in->starts; other forms are cleared before */
    unsigned changed;      /* how many planes each() changes for most rows */
    /* Makes columns [0, width) the states of no elements; indices start at `first`. */
    void (*clear)(uint64_t *planes, size_t stride, size_t width, uint64_t first);
    /* Adds rows to columns [0, width). */
    void (*add)(uint64_t *planes, size_t stride, const struct column_rows *in, size_t width);
    /* Adds each row to columns of its own: row r to the `width` columns from group[r] * width on, which have been cleared; `width`
     * is a multiple of COLUMN_STEP, and step is 1. NULL: moments have no such kernel. */
    void (*each)(uint64_t *planes, size_t stride, const struct column_rows *in,
                 const uint32_t *group, size_t width);
    /* Merges columns [from, from + width) of `other` into columns [to, to + width) of `into`. */
    void (*merge)(uint64_t *into, size_t to, const uint64_t *other, size_t from, size_t stride,
                  size_t width);
};

/* Most rows that are reduced at once, without planes (few_rows.c). */
#define FEW_ROWS 8

/* The arguments for columns of two to FEW_ROWS elements. */
struct few_rows {
    const char *x;
    ptrdiff_t row; /* bytes */
    size_t rows;
    ptrdiff_t ahead; /* prefetch distance of each row, in bytes; 0: rows are in the caches */
    double ddof;     /* of variances: less than `rows` */
};

/* Reduces `width` columns, COLUMN_STEP or more, to values of the elements' type, or indices of 64
 * bits, which it writes to `out`. Returns 1 if these are certain, or 0 if they mean
 * nothing. */
typedef int few_kernel(const struct few_rows *in, size_t width, char *out);

/* How unkey() turns keys into bits. */
struct key_bits {
    int greatest;       /* 1: the greatest keys are wanted, 0: the least */
    int64_t flip, turn; /* the bits that change in a negative key, and in every one */
    int64_t infinity;   /* a key above it, or below its complement, is a NaN's */
    uint64_t all, nan;  /* a mask of an element's bits; the NaN that is returned */
};

/* The forms of all types. */
typedef const struct column_form column_forms[COLUMN_TYPES];

/* Transposes rows of x, which are `row` bytes apart, to `out`, where columns are `width` elements apart:
 * out[c * width + r] = x[r][c] for r < rows, c < columns. rows <= width. */
typedef void transpose_kernel(const char *x, ptrdiff_t row, size_t rows, size_t columns,
                              size_t width, char *out);

/* Transposes count <= COLUMN_STEP segments of x to columns of `out`, whose rows have COLUMN_STEP elements. Segment c
 * has length[c] >= 1 elements, from start[c] on. Its column is filled up to `longest` rows: with the segment's first
 * element if `again`, else with `fill`. Columns without a segment get `fill`. There is room for GATHER_MORE rows
 * more. */
typedef void gather_kernel(const char *x, const size_t *start, const size_t *length, size_t count,
                           size_t longest, int again, uint64_t fill, char *out);

/* Returns whether one of the signed integers o[1..n) is less than the one before it. */
typedef int falls_kernel(const void *o, size_t n);

/* Returns whether each of the integers o[1..n] is `each` more than the one before it. */
typedef int even_kernel(const void *o, size_t n, size_t each);

/* Sums segments [start[i], start[i + 1]) of x, i < count, which have SEGMENTS_PIECE elements or fewer together, as
 * s[i] + e[i], exactly, and returns whether it could; sums of no elements are 0. `running` has room for SEGMENTS_ROOM
 * words. Whole vectors are read from start, and written to s and e, also behind `count`. */
typedef int segments_kernel(const char *x, const size_t *start, size_t count, uint64_t *running,
                            double *s, double *e);

/* Writes the bits of `width` extremes, from the two planes of FORM_ORDER, whose lanes have `lane` bytes. */
typedef void unkey_kernel(const uint64_t *low, const uint64_t *high, unsigned lane, size_t width,
                          const struct key_bits *how, uint64_t *bits);

/* Writes elements, each from a word; where `past`, past the caches, and then a fence is needed before another thread
 * may read them. */
typedef void put_kernel(char *out, const uint64_t *bits, size_t count, int past);

/* Copies bytes; where `past`, past the caches, and then a fence is needed as for a put_kernel. */
typedef void copy_kernel(char *to, const char *from, size_t bytes, int past);

/* Writes ids of 8 bytes as ids of 4. Ids of 2^31 and more, and negative ones, become 2^32 - 1. */
typedef void narrow_kernel(const void *ids, size_t n, uint32_t *out);

/* Splits x[0..n) into integers, x[i] = high[i] 2^(E - 40) + low[i] 2^(E - 80), for a window of the
 * exponent E: all magnitudes are below 2^(E - 1), and E is in [-900, 900]. Returns whether that was exact and
 * no element is -0. Whole vectors are read and written. */
typedef int split_kernel(const double *x, size_t n, int exponent, int64_t *high, int64_t *low);

/* The following read and write whole vectors of their arrays, also behind `count`. */

/* Rounds s + e +- b to bits of the type; ok[i] says whether that is certain, the result whether all are. */
typedef int round_kernel(const double *s, const double *e, const double *b, size_t count,
                         tally_type type, uint64_t *bits, unsigned char *ok);

/* Divides s + e +- b by n[i], in place. */
typedef void mean_kernel(double *s, double *e, double *b, size_t count, const double *n);

/* Takes the square roots of s + e +- b, in place. */
typedef void root_kernel(double *s, double *e, double *b, size_t count);

/* Computes the variances of n[i] elements, or if `root` their square roots, from the sums of the elements, s + e +-
 * b, and of their squares, q + qe +- qb; in place of s, e, b. The sums of the elements have a further error, up to
 * `near` times the sum of magnitudes: `near` is 0, or for FORM_MOMENTS column_kernels.near[type]. */
typedef void variance_kernel(double *s, double *e, double *b, const double *q, const double *qe,
                             const double *qb, size_t count, const double *n, double ddof, int root,
                             double near);

/* The kernels of columns of an instruction set. An array of 9 is indexed by the bytes of an element. */
struct column_kernels {
    const struct column_form *form[FORMS]; /* of each type */
    transpose_kernel *transpose[9];
    gather_kernel *gather[9];
    falls_kernel *falls[9];
    even_kernel *even[9];
    segments_kernel *const *segments;       /* of each type; NULL for 64-bit integers */
    few_kernel *const (*few)[COLUMN_TYPES]; /* of each operator and type; NULL: there is none */
    unkey_kernel *unkey;
    put_kernel *put[9];
    copy_kernel *copy;
    narrow_kernel *narrow;
    split_kernel *split;
    round_kernel *round;
    mean_kernel *mean;
    root_kernel *root;
    variance_kernel *variance;
    double near[COLUMN_TYPES];
};

#endif
