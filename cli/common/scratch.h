/*
 * scratch.h - the one output file while it is being written.
 *
 * It has a temporary name in the folder of its final name, so that a file that already has the
 * final name stays whole until everything is written. It is removed if the process ends early, but
 * for signals that cannot be caught.
 */
#ifndef TALLY_CLI_SCRATCH_H
#define TALLY_CLI_SCRATCH_H

#include <stdbool.h>

/* Creates the scratch file for the output `path`. Returns a descriptor, or -1 with errno. */
int scratch_create(const char *path);
/* Renames the scratch file to `path`. Returns false, with errno, on failure. */
bool scratch_keep(const char *path);
/* Removes the scratch file, if there is one. A signal handler may call this. */
void scratch_remove(void);

#endif
