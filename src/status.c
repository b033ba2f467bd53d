/* status.c - see status.h. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char line[512];

tally_status fail(tally_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *c = line; *c; c++) /* a caller's text may be in it, but it stays one line */
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    return status;
}

const char *tally_error(void) {
    return line;
}

const char *tally_status_text(tally_status s) {
    switch (s) {
    case TALLY_OK:
        return "no error";
    case TALLY_EINVAL:
        return "invalid argument";
    case TALLY_ETYPE:
        return "operator, element type and result type do not go together";
    case TALLY_EDEVICE:
        return "no such device";
    case TALLY_ENOMEM:
        return "out of memory";
    case TALLY_ERANGE:
        return "the exact result does not fit its type";
    case TALLY_EFORMAT:
        return "not a saved state";
    case TALLY_EUNSUPPORTED:
        return "not supported by the device";
    case TALLY_ECOMPILE:
        return "the kernel does not compile";
    case TALLY_ELOST:
        return "the device failed";
    case TALLY_ESTOPPED:
        return "stopped by the caller";
    }
    return "unknown status";
}
