/*
 * own_sandbox.h - what a process may do that runs somebody else's code.
 */
#ifndef TALLY_CLI_OWN_SANDBOX_H
#define TALLY_CLI_OWN_SANDBOX_H

#include <stdbool.h>

/* Limits for this process from now on, and for those it starts: processor time, memory, size of a file. */
void own_limit(unsigned seconds);

/* From now on this process can compute, ask for memory, write to what is open and end. It opens no file,
 * starts no process, and reaches no network: the system refuses. Closes all files but standard output and error,
 * and `kept`. False where the system has no such guard. */
bool own_shut(int kept);

#endif
