/*
 * message.h - how the command speaks of what went wrong: one line on stderr, and an exit status.
 */
#ifndef TALLY_CLI_MESSAGE_H
#define TALLY_CLI_MESSAGE_H

#include <stddef.h>

enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

/* Writes "tally: ..." as exactly one line, whatever the text holds; returns STATUS_FAILED. */
int failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a command line that cannot be understood; returns STATUS_USAGE. */
int misused(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* text[0..length) as a message shows it, cut where it is long: what would not be seen is written out, as
 * \x00 or \ufeff. Returns out. */
enum { QUOTED_BYTES = 80 };
const char *quoted(const char *text, size_t length, char out[QUOTED_BYTES]);
/* Flushes stdout: STATUS_OK, or the line and STATUS_FAILED where the output could not be written. */
int finish_output(void);

#endif
