/*
 * error.h - the line that explains a failure.
 */
#ifndef TALLY_MPI_ERROR_H
#define TALLY_MPI_ERROR_H

#include "tally.h"

/* Keeps the line for tally_mpi_error() and returns `status`. */
tally_status explain(tally_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
