/*
 * timing.h - how long something takes: the median of several runs.
 */
#ifndef TALLY_GPU_TIMING_H
#define TALLY_GPU_TIMING_H

#include "tally.h"

/* Seconds on the clock of the wall. */
double clock_now(void);

/* run(), which says in *seconds what it took, is called once to warm up, and then for about a second:
 * 3 to 25 times. *median is of these. The first failure ends it. */
tally_status time_median(tally_status (*run)(void *context, double *seconds), void *context,
                         double *median);

#endif
