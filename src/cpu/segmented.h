/*
 * segmented.h - many segments at once, as columns of blocks.
 */
#ifndef TALLY_CPU_SEGMENTED_H
#define TALLY_CPU_SEGMENTED_H

#include "cpu/cpu.h"

/* Reduces segments, whose offsets have been checked, as cpu_across() does rows (across.h). Also marks
 * segments that are too long. */
int cpu_segments(struct cpu_device *d, const struct shaped *s, unsigned char **todo,
                 struct absence *absence, tally_status *status);

#endif
