/*
 * own_sandbox.h - limits for a process that runs somebody else's code.
 */
#ifndef TALLY_CLI_OWN_SANDBOX_H
#define TALLY_CLI_OWN_SANDBOX_H

#include <stdbool.h>

/* Limits processor time (to `seconds`), memory and the size of files, for this process from now on and for those it
 * starts. */
void own_limit(unsigned seconds);

/* From now on this process can compute, ask for memory, write to what is open and end. It opens no file,
 * starts no process, and reaches no network: the system refuses. Closes all files but standard output and error,
 * and `kept`. False where the system has no such guard. */
bool own_shut(int kept);

#endif
