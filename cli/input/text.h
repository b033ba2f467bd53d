/*
 * text.h - the numbers of a text, as elements.
 */
#ifndef TALLY_CLI_TEXT_H
#define TALLY_CLI_TEXT_H

#include "input/source.h"

/* What is read of one text; opened at the first text_next(), and freed by text_close(). */
struct text_reader;

/* As source_next(), of a source that is text: the numbers, with blanks or line ends between them; lines
 * that start with # are left out, and with --skip-na words that say that a value is missing. False, with the line that says why,
 * where something else stands there. */
bool text_next(struct source *source, const void **x, size_t *n);
void text_close(struct source *source);

#endif
