/*
 * kernels.h - the CPU's kernels, one set per instruction set.
 *
 * A fold adds n <= FOLD_MAX elements at x (and, of a pair, those at y), of any alignment, to the state of a
 * monoid (monoid.h). A leaf kernel evaluates leaves of the canonical tree. All run on the calling thread, in
 * the default floating environment (fpenv.h), and are safe to call from many threads at once.
 */
#ifndef TALLY_CPU_KERNELS_H
#define TALLY_CPU_KERNELS_H

#include "base/types.h"
#include "cpu/columns.h"
#include "tally.h"
#include <stddef.h>

/* The most elements of one fold: lets kernels count in 32 bits and bound what their lanes hold. */
#define FOLD_MAX ((size_t)1 << 30)

/* The two sums of a kernel that makes both: of elements, and of their squares. */
struct exact_sum;
struct moments {
    struct exact_sum *sum, *squares;
};

typedef void fold_kernel(const void *x, size_t n, void *state);
typedef void pair_kernel(const void *x, const void *y, size_t n, void *state);
/* Returns the index of the first element with these bits (for NaNs of the first NaN), or n if there
 * is none. */
typedef size_t find_kernel(const void *x, size_t n, uint64_t bits);

#define TYPES TYPE_ROWS /* tables are by element type; NULL without a kernel */

struct cpu_kernels {
    const char *isa;
    /* To a struct exact_sum, but for its `mixed` (some term was not -0), which the caller sets. */
    fold_kernel *sum[TYPES], *squares[TYPES], *magnitudes[TYPES];
    pair_kernel *products[TYPES];
    /* To a struct moments, in one pass; NULL for types where two passes are as fast. */
    fold_kernel *moments[TYPES];
    fold_kernel *fast[TYPES];    /* to a double */
    fold_kernel *factors[TYPES]; /* to a struct factors */
    /* To a struct extremes, but for its indices: the least, the greatest, both. */
    fold_kernel *least[TYPES], *greatest[TYPES], *extremes[TYPES];
    find_kernel *find[TYPES], *find_nan[TYPES];
    fold_kernel *bits[3][TYPES]; /* and, or, xor, to a uint64_t */
    fold_kernel *nonzero[TYPES]; /* adds the number of elements that are not zero to a uint64_t */
    /* Products of the leaves of x[0..n), to out[] as f32, or f64 for f64 (see tree.h). */
    void (*product_leaves[TYPES])(const void *x, size_t n, void *out);
    /* Reads size bytes as fast as can be and returns something that depends on all of them. */
    uint64_t (*read[3])(const void *bytes, size_t size);
    const struct column_kernels *columns;
};

/* Returns the best set that this machine can run; never NULL. */
const struct cpu_kernels *cpu_kernels_best(void);
/* Returns the set of that name, or NULL where this machine or this build lacks it. */
const struct cpu_kernels *cpu_kernels_named(const char *isa);

#endif
