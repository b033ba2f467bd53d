/*
 * timing.h - how long something takes: the median of several runs.
 */
#ifndef TALLY_GPU_TIMING_H
#define TALLY_GPU_TIMING_H

#include "tally.h"

/* Returns the seconds on a clock that only moves forward. */
double clock_now(void);

/* Times run(), which returns its seconds in *seconds: once to warm up and then 3 to 25 times, as
 * many as 0.7 seconds allow. *median is their median. Returns the first failure of run() at
 * once. */
tally_status time_median(tally_status (*run)(void *context, double *seconds), void *context,
                         double *median);

#endif
