/*
 * kernels.h - the CPU's kernels, one set per instruction set.
 *
 * A fold adds n <= FOLD_MAX elements at x, of any alignment, to a partial. A leaf kernel evaluates leaves of the
 * canonical tree. All run on the calling thread, in the default floating environment (fpenv.h), and
 * are safe to call from many threads at once.
 */
#ifndef TALLY_CPU_KERNELS_H
#define TALLY_CPU_KERNELS_H

#include "partial.h"
#include <stddef.h>

/* The most elements of one fold: lets kernels count in 32 bits and bound what their lanes hold. */
#define FOLD_MAX ((size_t)1 << 30)

typedef void fold_kernel(const void *x, size_t n, struct partial *into);

struct cpu_kernels {
    const char *isa;
    fold_kernel *exact_sum[TALLY_F64 + 1];   /* by type, floats */
    fold_kernel *fast_sum[TALLY_F64 + 1];    /* by type, floats */
    fold_kernel *integer_sum[TALLY_F64 + 1]; /* by type, integers */
    fold_kernel *integer_prod[TALLY_F64 + 1];
    fold_kernel *order[2][TALLY_F64 + 1]; /* [0] min, [1] max; by type */
    fold_kernel *bits[3][TALLY_F64 + 1];  /* and, or, xor; by type */
    /* Products of the leaves of x[0..n), to out[] as f32, or f64 for f64 (see tree.h). */
    void (*product_leaves[TALLY_F64 + 1])(const void *x, size_t n, void *out);
    /* Reads size bytes as fast as can be and returns something that depends on all of them. */
    uint64_t (*read[3])(const void *bytes, size_t size);
};

/* The best set this machine can run. */
const struct cpu_kernels *cpu_kernels_best(void);
/* The set of that name, or NULL where this machine or this build lacks it. */
const struct cpu_kernels *cpu_kernels_named(const char *isa);

#endif
