/*
 * text.h - feeds the numbers of a text to a stream.
 */
#ifndef TALLY_CLI_TEXT_H
#define TALLY_CLI_TEXT_H

#include "source.h"

/* Feeds the number on each line; blank lines and lines that start with # are left out. False, with
 * the line that says why, where something else stands on a line. */
bool text_feed(struct source *source, tally_stream *stream);

#endif
