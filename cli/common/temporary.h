/*
 * temporary.h - the folder for files that nobody keeps: TMPDIR, else the system's.
 */
#ifndef TALLY_CLI_TEMPORARY_H
#define TALLY_CLI_TEMPORARY_H

#include <stdlib.h>

static inline const char *temporary_folder(void) {
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

#endif
