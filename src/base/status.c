/* status.c - see status.h. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char line[512];
static _Thread_local size_t about;  /* the result that `line` is about, if behind > 0 */
static _Thread_local size_t behind; /* the index in `line` of the words behind that number, or 0 */

/* Prints behind the line's first `used` bytes, which are there, and makes it one line. */
static void finish_line(size_t used, const char *format, va_list arguments) {
    behind = used;
    vsnprintf(line + used, sizeof line - used, format, arguments);
    for (char *c = line; *c; c++) /* a caller's text may be in it */
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
}

tally_status fail(tally_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    finish_line(0, format, arguments);
    va_end(arguments);
    return status;
}

tally_status fail_result(tally_status status, size_t result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    about = result;
    finish_line((size_t)snprintf(line, sizeof line, "result %zu", result), format, arguments);
    va_end(arguments);
    return status;
}

const char *tally_error(void) {
    return line;
}

const char *tally_error_result(size_t *result) {
    if (!behind || !result) return NULL;
    *result = about;
    return line + behind;
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
