/*
 * progress.h - the line on stderr that shows how far a long reduction has come.
 *
 * There is one such line in a process, so its state is this module's own.
 */
#ifndef TALLY_CLI_PROGRESS_H
#define TALLY_CLI_PROGRESS_H

#include <signal.h>
#include <stdint.h>

/* Starts the clock. total: the bytes to come, 0 where that is not known. */
void progress_begin(uint64_t total);
/* Adds `bytes` to those that are done. Shows or renews the line if it is time. */
void progress_add(uint64_t bytes);
/* Erases the line if it is there. May be called at any time, also without a begin. */
void progress_end(void);

/* True while the line is on the terminal. Only the handler of SIGBUS uses this: a signal handler
 * may not call progress_end(), and writes PROGRESS_ERASE itself. */
extern volatile sig_atomic_t progress_visible;
#define PROGRESS_ERASE "\r\033[K"

/* Seconds on a clock that only goes forward. */
double clock_seconds(void);

#endif
