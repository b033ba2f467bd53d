/*
 * stop.h - whether the calling thread's call is to end before it is done: tally_stop_when().
 *
 * Long loops ask between tasks and pieces, on the thread that made the call; threads of a pool are never asked.
 */
#ifndef TALLY_STOP_H
#define TALLY_STOP_H

#include "tally.h"

/* Whether the caller's function says to stop. Cheap: it is called every few milliseconds at most, and a
 * thread that has none is told so at once. */
int stop_asked(void);

/* The same for threads that share work: `halt` is set by the one that is asked, and heard by all. */
static inline int stop_shared(int *halt) {
    if (stop_asked()) __atomic_store_n(halt, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(halt, __ATOMIC_RELAXED);
}

/* Whether this thread has such a function: what would be half done must then be done on a copy. */
int stop_possible(void);

/* From stop_pause() on nothing is asked, until stop_resume() is given what it returned. */
struct stop {
    int (*when)(void *context);
    void *context;
};
struct stop stop_pause(void);
void stop_resume(struct stop stop);

/* TALLY_ESTOPPED, with its line. */
tally_status stop_status(void);

#endif
