/*
 * guess.h - what the first bytes of an input look like.
 */
#ifndef TALLY_CLI_GUESS_H
#define TALLY_CLI_GUESS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the bytes may be text: no control bytes but those that text has. Of no bytes:
 * true. */
bool guess_text(const unsigned char *bytes, size_t size);
/* Returns whether the bytes are lines of ASCII, as elements of two bytes or more hardly are. */
bool guess_lines(const unsigned char *bytes, size_t size);
/* Returns whether the bytes are numbers as text, and comments, and nothing else. is_cut: more bytes
 * follow. */
bool guess_numbers(const unsigned char *bytes, size_t size, bool is_cut);

#endif
