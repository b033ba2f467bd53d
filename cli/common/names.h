/*
 * names.h - lists of names for messages, and the name that somebody may have meant.
 */
#ifndef TALLY_CLI_NAMES_H
#define TALLY_CLI_NAMES_H

#include <stddef.h>

/* Return all names of types, or of operators, with a blank between two of them. */
const char *names_of_types(void);
const char *names_of_ops(void);

/* Finds the name in `list` that `word` may mean: by its letters, as "mean" for "maen", or as
 * another program's word, as "mean" for "average". `between` separates the names of the list.
 * Writes the name to text[0..size) and returns text; returns NULL if no name is near. */
const char *names_nearest(const char *word, const char *list, char between, char *text,
                          size_t size);

#endif
