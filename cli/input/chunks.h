/*
 * chunks.h - a text, read in chunks of whole lines that several threads work on.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_CHUNKS_H
#define TALLY_CLI_CHUNKS_H

#include "input/decimal.h"
#include "input/scan.h"
#include "input/source.h"

enum {
    LINE_BYTES = 1 << 20, /* the longest line of a chunk that is not cut, without its end */
    CHUNK_SPARE = 64      /* bytes behind a chunk that can be read */
};
_Static_assert((int)CHUNK_SPARE >= (int)DECIMAL_SPARE && (int)CHUNK_SPARE >= (int)SCAN_SPARE,
               "the reader of a chunk may look so far behind it");

struct chunk {
    char *text;        /* behind its end, CHUNK_SPARE bytes are 0 */
    size_t begin, end; /* text[begin, end) are the lines, with their ends; a cut line has none */
    bool is_first;
    bool is_cut;    /* its last line goes on in the next chunk */
    bool continues; /* the chunk before is cut: this one begins within a line */
    void *made;     /* the result of chunk_work.make() */

    size_t room,
        rest; /* bytes of text; a part of a line, [end, end + rest), belongs to the next chunk */
    bool done;
};

/* The functions that a reader of text runs on each chunk, and their context. */
struct chunk_work {
    void *context;
    enum { CUT_AT_BLANKS, CUT_ANYWHERE } cut; /* where lines longer than LINE_BYTES are cut */
    size_t made_bytes;                        /* of chunk->made, which are 0 at first */
    /* Readies chunk->made. The caller's thread calls it, for one chunk after the other. */
    bool (*prepare)(void *context, struct chunk *chunk);
    /* Makes chunk->made. Threads call it, each with a chunk of its own. */
    void (*make)(void *context, struct chunk *chunk);
    void (*release)(void *made); /* frees what it owns */
};

struct chunks;
bool chunks_open(struct source *source, const struct chunk_work *work, struct chunks **out);
/* Sets *out to the next chunk in order, whose `made` is ready, until the next call; to NULL at the
 * end. */
bool chunks_next(struct chunks *chunks, struct chunk **out);
/* Returns true if the text ends early, at a line that is longer than LINE_BYTES. The caller reports
 * that line. */
bool chunks_too_long(const struct chunks *chunks);
void chunks_close(struct chunks *chunks); /* also NULL */

#endif
