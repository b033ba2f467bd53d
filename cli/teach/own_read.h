/*
 * own_read.h - reads a student's text: what of it is the device's, and what it says of its kernels (own_text.h).
 */
#ifndef TALLY_CLI_OWN_READ_H
#define TALLY_CLI_OWN_READ_H

#include "teach/own_text.h"

/* Reads the text of a file. What is the host's (other functions, #include, #pragma) becomes blanks, so that
 * every line keeps its number. On failure false: `why` says what is wrong, in line *line. */
bool own_text_read(const char *bytes, size_t length, struct own_text *out, char *why, size_t room,
                   unsigned *line);
void own_text_forget(struct own_text *t);

#endif
