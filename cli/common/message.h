/*
 * message.h - error messages: one line on stderr, and an exit status.
 */
#ifndef TALLY_CLI_MESSAGE_H
#define TALLY_CLI_MESSAGE_H

#include <stddef.h>

enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

/* Writes "tally: ..." as exactly one line, whatever the text holds; returns STATUS_FAILED. */
int failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Does what failed() does for a wrong command line; returns STATUS_USAGE. */
int misused(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes text[0..length) to `out` as messages show it: a long text is cut, and invisible characters
 * are escaped, as \x00 or \ufeff. Returns out. */
enum { QUOTED_BYTES = 80 };
const char *quoted(const char *text, size_t length, char out[QUOTED_BYTES]);
/* Flushes stdout. Returns STATUS_OK; after a message STATUS_FAILED if the output could not be
 * written. */
int finish_output(void);

#endif
