/*
 * timing.c - see timing.h.
 */
#include "gpu/timing.h"

#include <stdlib.h>
#include <time.h>

enum { FEWEST_RUNS = 3, MOST_RUNS = 25 };
static const double budget = 0.7; /* seconds */

double clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

tally_status time_median(tally_status (*run)(void *context, double *seconds), void *context,
                         double *median) {
    double seconds[MOST_RUNS], warm;
    int runs = 0;
    tally_status status = run(context, &warm);
    const double start = clock_now();
    while (status == TALLY_OK && runs < MOST_RUNS &&
           (runs < FEWEST_RUNS || clock_now() - start < budget))
        status = run(context, &seconds[runs++]);
    if (status != TALLY_OK) return status;
    qsort(seconds, (size_t)runs, sizeof *seconds, compare);
    *median = (seconds[(runs - 1) / 2] + seconds[runs / 2]) / 2;
    return TALLY_OK;
}
