/* error.c - see error.h. */
#include "error.h"

#include "tally_mpi.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char line[512];

tally_status explain(tally_status status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    return status;
}

const char *tally_mpi_error(void) {
    return line;
}
