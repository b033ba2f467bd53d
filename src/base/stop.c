/* stop.c - see stop.h. */
#define _GNU_SOURCE /* CLOCK_MONOTONIC_COARSE */
#include "base/stop.h"

#include "base/status.h"

#include <time.h>

/* Nanoseconds from tally_stop_when() to the first call of the function, and from each call to the next. */
#define INTERVAL INT64_C(10000000)

static _Thread_local struct stop asked;
static _Thread_local int64_t next; /* when to call asked.when() again, on the clock of now() */

static int64_t now(void) {
    struct timespec t;
#ifdef CLOCK_MONOTONIC_COARSE
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void tally_stop_when(int (*stop)(void *context), void *context) {
    asked = (struct stop){stop, context};
    next = stop ? now() + INTERVAL : 0;
}

int stop_possible(void) {
    return asked.when != NULL;
}

int stop_asked(void) {
    if (!asked.when) return 0;
    const int64_t time = now();
    if (time < next) return 0;
    next = time + INTERVAL;
    return asked.when(asked.context) != 0;
}

struct stop stop_pause(void) {
    const struct stop was = asked;
    asked = (struct stop){0};
    return was;
}

void stop_resume(struct stop stop) {
    asked = stop;
}

tally_status stop_status(void) {
    return fail(TALLY_ESTOPPED, "the caller asked to stop");
}
