/*
 * guard.h - work that other people's drivers take part in.
 */
#ifndef TALLY_CLI_GUARD_H
#define TALLY_CLI_GUARD_H

/* Calls run(argument), which prints only when all else is done, in a process of its own, and returns what it
 * returns: an exit status. Where the process dies of an OpenCL driver, a line names the driver; the call is
 * then made again without OpenCL. */
int guarded(int (*run)(void *argument), void *argument);

#endif
