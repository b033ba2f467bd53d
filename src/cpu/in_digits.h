/*
 * in_digits.h - makes one kernel that sums squares, or elements and squares, from the templates digits.h,
 * product_bins.h and exact_chunks.h.
 *
 * A template: the includer defines NAME, ELEMENT, TERM, TERM_ONE (of p alone), SUMS, and LEVELS and MAX_LEVELS, here
 * digits of an element (digits.h).
 */
#define PAIRED        0
#define INT           int64_t
#define REAL          double
#define FACTOR(p)     TERM(p, p)
#define FACTOR_ONE(p) (double)TERM_ONE(p, p)
#if SUMS
#define STATE         const struct moments
#define SUM_OF(s)     ((s)->sum)
#define SQUARES_OF(s) ((s)->squares)
#else
#define STATE         struct exact_sum
#define SQUARES_OF(s) (s)
#endif

#include "cpu/digits.h"

#include "cpu/product_bins.h"

#include "cpu/exact_chunks.h"

#include "cpu/undefine.h"
