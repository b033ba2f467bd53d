/*
 * scratch.h - the one file that is being written: under a name of its own beside the one that it will get, so
 * that what had that name stays whole until all is written. It goes with the process, whatever ends it.
 */
#ifndef TALLY_CLI_SCRATCH_H
#define TALLY_CLI_SCRATCH_H

#include <stdbool.h>

/* Creates it for `path`; a descriptor, or -1 with errno. */
int scratch_create(const char *path);
/* Gives it its name; false, with errno, where that cannot be. */
bool scratch_keep(const char *path);
/* Removes it if it is there. A signal handler may call this. */
void scratch_remove(void);

#endif
