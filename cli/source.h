/*
 * source.h - one input of a reduction: a file, a pipe or standard input, whose bytes have been
 * recognised as an array, raw elements or text, and can be fed to a stream.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_SOURCE_H
#define TALLY_CLI_SOURCE_H

#include "tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCE_UNKNOWN UINT64_MAX /* a size that only the end of the data will tell */

struct source {
    const char *name;     /* how messages call it */
    tally_type type;      /* of its elements */
    uint64_t bytes;       /* of data, after any header; or SOURCE_UNKNOWN */
    uint64_t elements;    /* fed so far */
    bool is_text;         /* numbers as text, one a line */
    bool swapped;         /* the elements' bytes are in the other order than this machine's */
    bool can_map;         /* a regular file: its data may be mapped */
    int file;             /* descriptor; owned unless it is standard input's */
    uint64_t data;        /* where the data begin in a regular file */
    unsigned char *ahead; /* bytes read while the header was looked for; owned */
    size_t ahead_next, ahead_end; /* of those, the ones not yet handed on are [next, end) */
};

/* Whether the name stands for standard input. */
bool source_is_stdin(const char *name);
/* Opens a file ("-": standard input) and recognises it. type: what the user said its elements are,
 * or 0. is_text: the user said it is text. Close with source_close(). */
bool source_open(struct source *source, const char *name, tally_type type, bool is_text);
void source_close(struct source *source);

/* Feeds all of its elements to the stream. */
bool source_feed(struct source *source, tally_stream *stream);

/* Reads up to `size` bytes of data in order, fewer only at the end; *got says how many. */
bool source_read(struct source *source, void *bytes, size_t size, size_t *got);

#endif
