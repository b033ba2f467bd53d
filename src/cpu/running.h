/*
 * running.h - exact sums of segments from running totals (segments.c): as many segments at a time as SEGMENTS_PIECE elements
 * have room for.
 */
#ifndef TALLY_CPU_RUNNING_H
#define TALLY_CPU_RUNNING_H

#include "cpu/blocks.h"

/* Returns whether all forms are sums, of a type that has running totals. */
int sums_only(const struct blocks *a);

/* Sums `count` segments of x, which begin at start[], and one by one those that are longer than a piece. Segments that
 * are too long for a column get an infinite bound. Returns 0 if some sum is not exact, or the forms are other than
 * sums. */
int add_running(const struct blocks *a, struct block_worker *h, const char *x, const size_t *start,
                size_t count);

#endif
