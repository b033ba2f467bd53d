/*
 * status.h - how a call fails: a status code, and one line for the calling thread to read.
 */
#ifndef TALLY_STATUS_H
#define TALLY_STATUS_H

#include "tally.h"

/* Stores the line that tally_error() returns, and returns `status`: `return fail(TALLY_EINVAL, ...)`. */
__attribute__((format(printf, 2, 3))) tally_status fail(tally_status status, const char *format,
                                                        ...);

#endif
