/*
 * masked.h - many results of a few elements each, of what a mask lets pass.
 */
#ifndef TALLY_CPU_MASKED_H
#define TALLY_CPU_MASKED_H

#include "cpu/cpu.h"

/* Reduces along axes or by segment, with a mask, and returns 1, with *status; or does nothing and returns 0 where that is
 * better done row by row. Results that are left to cpu_rows() are marked in *todo, a byte a result in the order of rows,
 * which the caller frees; NULL: none. Offsets have been checked. */
int cpu_masked(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
               tally_status *status);

/* Copies those of n elements of `element` bytes, `x_step` of them apart, whose bytes of the mask, `mask_step` apart, are not 0.
 * Returns how many these are; there is room for n. */
size_t mask_pass(char *to, const char *x, ptrdiff_t x_step, size_t element,
                 const unsigned char *mask, ptrdiff_t mask_step, size_t n);

#endif
