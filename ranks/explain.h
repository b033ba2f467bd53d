/*
 * explain.h - the line that explains a failure, kept for each thread. A file of libtally_mpi and of libtally_nccl alike, which
 * have a line each.
 */
#ifndef TALLY_RANKS_EXPLAIN_H
#define TALLY_RANKS_EXPLAIN_H

#include "tally.h"

/* Keeps the line and returns `status`. */
tally_status explain(tally_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same with tally_error()'s line, where `status` is that of a call of tally.h's. */
tally_status explained(tally_status status);

/* The line that was kept last; "" at first. */
const char *explanation(void);

#endif
