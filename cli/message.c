/*
 * message.c - one line for every failure.
 *
 * File names come from outside and may hold line breaks or terminal escapes, so control characters
 * are shown as '?': a message stays one line, and can do nothing to a terminal. A progress line that
 * stands on the terminal is erased first.
 */
#include "message.h"

#include "progress.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void say(const char *format, va_list arguments) {
    char line[8192];
    vsnprintf(line, sizeof line, format, arguments);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    progress_end();
    fprintf(stderr, "tally: %s\n", line);
}

int failed(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return STATUS_FAILED;
}

int misused(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return STATUS_USAGE;
}

int finish_output(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return STATUS_OK;
    return failed("cannot write to standard output: %s", strerror(errno));
}
