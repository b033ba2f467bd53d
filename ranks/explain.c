/* explain.c - see explain.h. */
#include "explain.h"

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

tally_status explained(tally_status status) {
    return status == TALLY_OK ? status : explain(status, "%s", tally_error());
}

const char *explanation(void) {
    return line;
}
