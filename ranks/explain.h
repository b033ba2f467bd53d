/*
 * explain.h - the line that explains a failure, kept for each thread.
 *
 * libtally_mpi and libtally_nccl are each built with this file, and each has a line of its own.
 */
#ifndef TALLY_RANKS_EXPLAIN_H
#define TALLY_RANKS_EXPLAIN_H

#include "tally.h"

/* Keeps the line, formatted as by printf() and cut where it is too long, and returns `status`. */
tally_status explain(tally_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Keeps the line of tally_error(), unless `status`, that of a call of tally.h's, is TALLY_OK. Returns `status`. */
tally_status explained(tally_status status);

/* Returns the line that this thread kept last, "" at first. It stays until the thread keeps another. */
const char *explanation(void);

#endif
