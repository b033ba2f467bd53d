/*
 * pieces.h - a text, read in pieces of whole lines that several threads work on.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_PIECES_H
#define TALLY_CLI_PIECES_H

#include "input/decimal.h"
#include "input/scan.h"
#include "input/source.h"

enum {
    LINE_BYTES = 1 << 20, /* the longest line of a piece, without its end */
    PIECE_SPARE = 64      /* bytes behind a piece that can be read */
};
_Static_assert((int)PIECE_SPARE >= (int)DECIMAL_SPARE && (int)PIECE_SPARE >= (int)SCAN_SPARE,
               "whoever reads a piece may look so far behind it");

struct piece {
    char *text; /* behind its end, PIECE_SPARE bytes are 0 */
    size_t begin,
        end; /* the lines are [begin, end); the last one's end is there, too, but for a cut */
    bool is_first;
    bool is_cut;    /* its last line is longer than LINE_BYTES, and goes on in the next piece */
    bool continues; /* the one before is such */
    void *made;     /* what is made of it, of the work's */

    size_t room,
        rest; /* bytes of text; a part of a line, [end, end + rest), belongs to the next piece */
    bool done;
};

/* What is done with a text's pieces. */
struct piece_work {
    void *context;
    bool cuts_lines;   /* longer lines are cut; else they are an error */
    size_t made_bytes; /* of piece->made, which are 0 at first */
    /* Readies piece->made. The caller's thread calls it, for one piece after the other. */
    bool (*prepare)(void *context, struct piece *piece);
    /* Makes piece->made. Threads call it, each with a piece of its own. */
    void (*make)(void *context, struct piece *piece);
    void (*release)(void *made); /* frees what it owns */
};

struct pieces;
bool pieces_open(struct source *source, const struct piece_work *work, struct pieces **out);
/* *out becomes the next piece in order, made, until the next call; NULL at the end. */
bool pieces_next(struct pieces *pieces, struct piece **out);
/* Returns whether the text's end came within a line that is too long; its line is to be told. */
bool pieces_too_long(const struct pieces *pieces);
void pieces_close(struct pieces *pieces); /* also NULL */

#endif
