/*
 * stop.h - whether the calling thread's call is to end before it is done: tally_stop_when().
 *
 * Long loops ask between tasks and pieces, on the thread that made the call; threads of a pool are never asked.
 */
#ifndef TALLY_STOP_H
#define TALLY_STOP_H

#include "tally.h"

/* Returns whether this thread's function of tally_stop_when() asks to stop. It is cheap: it calls
 * the function at most once in 10 ms, and returns 0 in between, and on a thread without one. */
int stop_asked(void);

/* Does the same for threads that share work: the one with a function sets `halt`, and all read
 * it. */
static inline int stop_shared(int *halt) {
    if (stop_asked()) __atomic_store_n(halt, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(halt, __ATOMIC_RELAXED);
}

/* Returns whether this thread has such a function. Work that a stop would leave half done must then
 * be done on a copy. */
int stop_possible(void);

/* Between stop_pause() and stop_resume() of its result, this thread's function is not called. */
struct stop {
    int (*when)(void *context);
    void *context;
};
struct stop stop_pause(void);
void stop_resume(struct stop stop);

/* Returns TALLY_ESTOPPED, and stores its line. */
tally_status stop_status(void);

#endif
