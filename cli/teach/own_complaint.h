/*
 * own_complaint.h - turns the compiler's message about a student's text into a sentence about that text.
 */
#ifndef TALLY_CLI_OWN_COMPLAINT_H
#define TALLY_CLI_OWN_COMPLAINT_H

#include "teach/own_text.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads the compiler's messages from the file `log` and writes one line about the first error in `file`, with its line
 * number, to `out`. Returns false where there is no message. */
bool own_complaint(const char *log, const char *file, const struct own_text *text, char *out,
                   size_t room);

#endif
