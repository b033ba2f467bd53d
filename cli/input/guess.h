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
/* Returns the encoding, as iconv names it, if the bytes are text in UTF-16 or UTF-32: with a
 * byte-order mark, or as UTF-16 of one-byte characters without one. Else returns NULL. */
const char *guess_wide_text(const unsigned char *bytes, size_t size);
/* Returns whether the bytes are lines of ASCII, as elements of two bytes or more hardly are. */
bool guess_lines(const unsigned char *bytes, size_t size);
/* Returns whether the bytes are numbers as text, and comments, and nothing else. is_cut: more bytes
 * follow. */
bool guess_numbers(const unsigned char *bytes, size_t size, bool is_cut);

#endif
