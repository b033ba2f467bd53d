/*
 * timing.h - how long something takes: the median of several runs.
 */
#ifndef TALLY_LADDER_TIMING_H
#define TALLY_LADDER_TIMING_H

#include "tally.h"

/* Seconds on the clock of the wall. */
double ladder_now(void);

/* run(), which says in *seconds what it took, is called once to warm up, and then for about a second:
 * 3 to 25 times. *median is of these. The first failure ends it. */
tally_status ladder_time(tally_status (*run)(void *context, double *seconds), void *context,
                         double *median);

#endif
