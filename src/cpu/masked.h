/*
 * masked.h - many results of a few elements each, behind a mask.
 */
#ifndef TALLY_CPU_MASKED_H
#define TALLY_CPU_MASKED_H

#include "cpu/cpu.h"

/* Reduces along axes or by segment, with a mask, and returns 1, with *status; or does nothing and returns 0 where that is
 * better done row by row. Results that are left to cpu_rows() are marked in *todo, a byte a result in the order of rows,
 * which the caller frees; NULL: none. Offsets have been checked. */
int cpu_masked(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
               tally_status *status);

#endif
