/*
 * pool.h - a few threads that wait for loops to share.
 *
 * Threads are started by the first loop and sleep between loops. The caller works too, and a loop is over when its
 * last task is: a thread that wakes late finds nothing to do and keeps nobody waiting. The pool has one owner at a
 * time; another caller is told so and does its own work alone.
 */
#ifndef TALLY_POOL_H
#define TALLY_POOL_H

#include <stddef.h>

struct pool;

/* Returns how many cores this process may run on. */
unsigned pool_cores(void);

/* Returns a pool for loops of up to `threads` threads, the caller included; NULL if there is no
 * memory. */
struct pool *pool_create(unsigned threads);
/* Ends the threads and frees the pool, which must have no owner; NULL is allowed. */
void pool_destroy(struct pool *p);

/* Makes the calling thread the pool's owner until pool_release(), and returns 1. Returns 0 at once
 * if the pool has an owner. */
int pool_claim(struct pool *p);
void pool_release(struct pool *p);

/* Runs body(context, task, worker) for every task in [0, tasks), on threads numbered by worker in
 * [0, threads); worker 0 is the caller, who has claimed the pool. If the system refuses to start some threads,
 * the others run all tasks.
 * Returns 0, or 1 where the caller has been told to stop (stop.h): some tasks have then not been run. */
int pool_loop(struct pool *p, size_t tasks,
              void (*body)(void *context, size_t task, unsigned worker), void *context);

#endif
