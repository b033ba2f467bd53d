/*
 * stop.h - tells a long call whether its caller wants it to end early: tally_stop_when().
 *
 * Long loops call stop_asked() between tasks and pieces, on the thread that made the call. Threads of a pool never ask.
 */
#ifndef TALLY_STOP_H
#define TALLY_STOP_H

#include "tally.h"

/* Returns whether this thread's function of tally_stop_when() asks to stop. It is cheap: it calls
 * the function at most once in 10 ms, and returns 0 in between, and on a thread without one. */
int stop_asked(void);

/* Returns whether threads that share work are to stop. The thread with a function of tally_stop_when() sets
 * `halt`, and all threads read `halt`. */
static inline int stop_shared(int *halt) {
    if (stop_asked()) __atomic_store_n(halt, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(halt, __ATOMIC_RELAXED);
}

/* Returns whether this thread has a function of tally_stop_when(). Work that a stop would leave half done must then
 * be done on a copy. */
int stop_possible(void);

/* Between stop_pause() and stop_resume() of its result, this thread's function is not called. */
struct stop {
    int (*when)(void *context);
    void *context;
};
struct stop stop_pause(void);
void stop_resume(struct stop stop);

/* Returns TALLY_ESTOPPED, and stores a line for tally_error(). */
tally_status stop_status(void);

#endif
