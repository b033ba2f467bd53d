/*
 * across.h - many results at once: the columns of an array, or short rows, transposed.
 */
#ifndef TALLY_CPU_ACROSS_H
#define TALLY_CPU_ACROSS_H

#include "cpu/cpu.h"

/* Reduces an array along axes (s->cut is TALLY_AXES), and returns 1, with *status; or does nothing and returns 0
 * where that is better done row by row. Results that are left to cpu_rows(), as their rounding is not certain, are
 * marked in *todo, a byte a result in the order of rows, which the caller frees; NULL: none. The first result that
 * does not exist is noted in *absence. */
int cpu_across(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
               struct absence *absence, tally_status *status);

#endif
