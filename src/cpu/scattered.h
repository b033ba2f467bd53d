/*
 * cpu/scattered.h - groups of vectors whose states stay in the caches: rows are taken as they come, and each is added to the
 * columns of its group. So nothing is sorted, and rows are read one behind another.
 */
#ifndef TALLY_CPU_SCATTERED_H
#define TALLY_CPU_SCATTERED_H

#include "cpu/blocks.h"

/* A reduction: its blocks, of which there is one, and where its rows lie. */
struct scattered {
    struct blocks *a;
    const struct shaped *s;
    ptrdiff_t x_row, y_row; /* bytes from one row to the next */
};

/* Returns whether this way is for the problem: the states of all groups fit, and there are rows enough. */
int scattered_suits(const struct scattered *r, unsigned threads);

/* Adds all rows, and writes the results; marks those that are left, as block_lower() does. TALLY_EINVAL, with no line: an id is
 * outside of all groups and should not be, or there is no memory; nothing has been written. */
tally_status scattered_reduce(struct cpu_device *d, const struct scattered *r);

#endif
