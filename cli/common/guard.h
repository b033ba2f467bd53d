/*
 * guard.h - work that other people's drivers take part in.
 */
#ifndef TALLY_CLI_GUARD_H
#define TALLY_CLI_GUARD_H

#include <stdbool.h>

/* Calls run(argument), which prints only when all else is done, in a process of its own, and returns what it
 * returns: an exit status. Where the process dies of an OpenCL driver, a line names the driver; then, where
 * `again` says so, the call is made once more, without OpenCL. */
int guarded(int (*run)(void *argument), void *argument, bool again);

#endif
