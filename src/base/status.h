/*
 * status.h - how a call fails: a status code, and one line for the calling thread to read.
 */
#ifndef TALLY_STATUS_H
#define TALLY_STATUS_H

#include "tally.h"

/* Stores the line that tally_error() returns on this thread, cut off at 511 bytes, and returns `status`:
 * `return fail(TALLY_EINVAL, ...)`. */
__attribute__((format(printf, 2, 3))) tally_status fail(tally_status status, const char *format,
                                                        ...);
/* Does the same as fail() for one result of a reduction in parts. The line is "result", its number,
 * and the printed text. */
__attribute__((format(printf, 3, 4))) tally_status fail_result(tally_status status, size_t result,
                                                               const char *format, ...);

#endif
