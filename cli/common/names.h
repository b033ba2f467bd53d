/*
 * names.h - lists of names for messages, and the name that somebody may have meant.
 */
#ifndef TALLY_CLI_NAMES_H
#define TALLY_CLI_NAMES_H

#include <stddef.h>

/* All names of the kind, with a blank between two of them. */
const char *names_of_types(void);
const char *names_of_ops(void);

/* The nearest name to `word` in a list such as the above, whose names `between` parts, if one is so near that it may have been meant:
 * "mean" for "maen" and for "average". NULL where there is none. Written to text[0..size). */
const char *names_nearest(const char *word, const char *list, char between, char *text,
                          size_t size);

#endif
