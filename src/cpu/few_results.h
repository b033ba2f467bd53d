/*
 * few_results.h - results of two to FEW_ROWS elements each, without states (few_rows.c): tried block by block, and less often
 * where it has failed.
 */
#ifndef TALLY_CPU_FEW_RESULTS_H
#define TALLY_CPU_FEW_RESULTS_H

#include "cpu/blocks.h"

/* Elements from one transposed row of FEW_COLUMNS to the next: no power of two. */
#define FEW_PITCH (FEW_COLUMNS + COLUMN_STEP)
#define FEW_TILE  ((size_t)FEW_ROWS * FEW_PITCH) /* elements of all such rows */

/* Returns the kernel for results of `each` elements that gives all values at once, or NULL. */
few_kernel *plan_few(const struct blocks *a, size_t each);

/* Writes `width` results of `each` elements to `out`, and returns 1. Returns 0 if the results are to be
 * done with states: `few` is NULL, they are too few, the block is not tried, or a result is uncertain.
 * Results are `column` bytes apart, and their elements `row`; if results do not lie side by side,
 * elements do. */
int reduce_few(const struct blocks *a, struct block_worker *h, few_kernel *few, const char *x,
               ptrdiff_t row, ptrdiff_t column, size_t each, size_t width, char *out);

#endif
