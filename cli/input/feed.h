/*
 * feed.h - an input's elements, window by window.
 */
#ifndef TALLY_CLI_FEED_H
#define TALLY_CLI_FEED_H

#include "input/source.h"

/* Gives the next elements: *n of them at *x, in this machine's byte order, until the next call or
 * source_close(). At the end *n is 0. */
bool source_next(struct source *source, const void **x, size_t *n);

/* Returns all elements, until source_close(), if the file can be mapped and used as it is. Returns
 * NULL if not; nothing has been read then. To be called before source_next(). */
const void *source_map(struct source *source);
/* Returns whether a mapped file is still as long as it was. */
bool source_is_whole(const struct source *source);

/* Closes the source, also after source_next() failed. */
void source_close(struct source *source);

#endif
