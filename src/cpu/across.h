/*
 * across.h - many results at once: the columns of an array, or short rows turned into columns.
 */
#ifndef TALLY_CPU_ACROSS_H
#define TALLY_CPU_ACROSS_H

#include "cpu/cpu.h"

/* Reduces an array along axes (s->cut is TALLY_AXES), and says so; or does nothing and returns 0 where that is
 * better done row by row. What is left over for the long way - results whose rounding is not certain - is marked
 * in *todo, a byte a result in the order of rows, or NULL: to be freed. */
int cpu_across(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
               struct absence *absence, tally_status *status);

/* The same for segments, whose offsets have been checked. */
int cpu_segments(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
                 struct absence *absence, tally_status *status);

#endif
