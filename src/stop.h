/*
 * stop.h - whether the calling thread's call is to end before it is done: tally_stop_when().
 *
 * Long loops ask between tasks and pieces, on the thread that made the call; threads of a pool are never asked.
 */
#ifndef TALLY_STOP_H
#define TALLY_STOP_H

#include "tally.h"

/* Whether the function that this thread gave to tally_stop_when() says to stop. Cheap: the function is called once in
 * 10 ms at most; between two calls, and on a thread that has none, the answer is 0. */
int stop_asked(void);

/* The same for threads that share work: the one that has a function sets `halt`, and all of them read it. */
static inline int stop_shared(int *halt) {
    if (stop_asked()) __atomic_store_n(halt, 1, __ATOMIC_RELAXED);
    return __atomic_load_n(halt, __ATOMIC_RELAXED);
}

/* Whether this thread has a function: what a stop would leave half done must then be done on a copy. */
int stop_possible(void);

/* From stop_pause() on this thread's function is not called, until stop_resume() is given what that returned. */
struct stop {
    int (*when)(void *context);
    void *context;
};
struct stop stop_pause(void);
void stop_resume(struct stop stop);

/* Returns TALLY_ESTOPPED, and stores its line. */
tally_status stop_status(void);

#endif
