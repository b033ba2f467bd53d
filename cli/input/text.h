/*
 * text.h - the numbers of a text, as elements.
 */
#ifndef TALLY_CLI_TEXT_H
#define TALLY_CLI_TEXT_H

#include "input/source.h"

/* The reader of one text; opened at the first text_next(), and freed by text_close(). */
struct text_reader;

/* Does what source_next() does, for a source that is text: gives its numbers, between which blanks
 * or line ends stand. Lines that start with # are left out, and with --skip-na words that say that
 * a value is missing. Returns false, with a message, if the text has anything else. */
bool text_next(struct source *source, const void **x, size_t *n);
void text_close(struct source *source);

#endif
