/*
 * guard.h - protects the command from drivers that crash.
 */
#ifndef TALLY_CLI_GUARD_H
#define TALLY_CLI_GUARD_H

#include <stdbool.h>

/* Calls run(argument) in a child process and returns its exit status. If an OpenCL driver crashes
 * the child, a message names the driver; with `again` run(argument) is then called once more,
 * without OpenCL. run() must print only after all other work, so that nothing is printed twice. */
int guarded(int (*run)(void *argument), void *argument, bool again);

#endif
