/*
 * fiber.h - stacks that take turns on one thread.
 *
 * fiber_switch() stops one fiber and goes on with another where that one was stopped. It saves
 * what a function call must preserve and nothing else, so that a switch costs some nanoseconds.
 */
#ifndef TALLY_MODEL_FIBER_H
#define TALLY_MODEL_FIBER_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#define FIBER_UCONTEXT 1
#include <ucontext.h>
#endif

typedef struct fiber {
#ifdef FIBER_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer;
#endif
} fiber;

/* Makes a fiber that will begin with a call of entry(), which must not return, on the given stack. */
void fiber_prepare(fiber *f, void *stack, size_t size, void (*entry)(void));
void fiber_switch(fiber *from, fiber *to);

/* Tell valgrind of stacks, as it otherwise takes a switch for the wild growth of one.
 * fiber_announce() announces `count` stacks of `size` bytes from `stacks` on, and fiber_withdraw()
 * their end. ids has room for `count`. Without valgrind's header at build time they do nothing. */
void fiber_announce(void *stacks, size_t size, unsigned count, unsigned *ids);
void fiber_withdraw(unsigned count, const unsigned *ids);

#endif
