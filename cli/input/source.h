/*
 * source.h - one input of a reduction: a file, a pipe or standard input, whose bytes have been
 * recognised as an array, raw elements or text, and that gives its elements chunk by chunk.
 *
 * Every function that returns false has already written the line that says why.
 */
#ifndef TALLY_CLI_SOURCE_H
#define TALLY_CLI_SOURCE_H

#include "input/arrow.h"
#include "input/money.h"
#include "input/npy.h"
#include "input/spelling.h"
#include "tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SOURCE_UNKNOWN UINT64_MAX /* a size that is known only at the end of the data */

/* The options about the inputs. */
struct reading {
    tally_type said; /* the type of --dtype, or 0 */
    bool is_text;
    const char *text_option;         /* the option that says that they are text, for messages */
    bool is_raw;                     /* they are raw elements, whatever they look like */
    const struct spelling *spelling; /* how numbers and missing values are written */
    uint64_t threads;                /* threads that may read text */
    bool is_decimal;                 /* they are decimals, whose sum is exact */
    struct arrow_asked arrow;        /* the part of an Arrow file to read */
};

struct source {
    const char *name;   /* the name in messages */
    struct reading how; /* the options */
    tally_type type;    /* of its elements */
    uint64_t bytes;     /* of data, after any header; or SOURCE_UNKNOWN */
    uint64_t elements;  /* handed on so far */
    bool is_text;       /* numbers as text */
    bool swapped;       /* the elements' bytes are in the other order than this machine's */
    bool has_shape;     /* a .npy file: the next members describe its array */
    bool is_fortran;    /* the first index runs fastest, not the last */
    unsigned dims;      /* the first NPY_DIMS have these lengths */
    uint64_t length[NPY_DIMS];
    size_t record,
        offset; /* of a structured array: bytes of an element, and where its field is; else 0 */
    const char *field;            /* the field's name in a.npy:NAME; else NULL */
    bool can_map;                 /* a regular file: its data may be mapped */
    int file;                     /* descriptor; owned unless it is standard input's */
    uint64_t data;                /* offset of the data in a regular file */
    unsigned char *ahead;         /* bytes read while the header was looked for; owned */
    size_t ahead_next, ahead_end; /* of those, the ones not yet handed on are [next, end) */

    struct unpacker *unpacker; /* of a compressed file: `ahead` has unpacked bytes; owned */
    unsigned char *before;     /* packed bytes that were read first; owned */
    size_t before_next, before_end;
    char path[1024]; /* of an archive whose member it is */
    char base[1024]; /* the name without the field's */

    pid_t helper;             /* the process that reads an Arrow file for this one; or 0 */
    struct arrow_found found; /* the helper's first line */
    bool is_rows;             /* rows of these columns, without a header */
    bool is_decimal;          /* a text of decimals, whose sum is exact */

    /* The progress of source_next(). */
    uint64_t done;               /* bytes of data that have been in a window */
    const unsigned char *window; /* whole elements, as they lie in the file: not yet handed on */
    size_t left;                 /* bytes of the window */
    unsigned char *pages;        /* the mapped part of the file; owned */
    size_t pages_bytes;
    unsigned char *buffer;    /* the part of the file that has been read; owned */
    unsigned char *chunk;     /* byte-swapped or gathered elements; owned */
    struct text_reader *text; /* owned */
    struct money *money;      /* of text: its numbers are added to this, and no elements given */
    bool ended;
};

/* Bytes from one element to the next, in the file. */
static inline size_t source_step(const struct source *s) {
    return s->record ? s->record : tally_type_size(s->type);
}

/* Writes to `path` the file that a name such as a.npy:x means, where x is a field of a structured
 * array. Returns the field, or NULL for a plain name. */
const char *source_field(const char *name, char path[1024]);

/* Returns whether the name is that of an archive's member, such as a.npz:x or a.zip:x, and of no
 * file. */
bool source_is_member(const char *name);

/* Returns whether the name stands for standard input. */
bool source_is_stdin(const char *name);
/* Opens a file ("-": standard input; a.npz:x: a member of an archive; a.npy:x: a field) and
 * recognises it. Close with source_close() (feed.h). */
bool source_open(struct source *source, const char *name, const struct reading *how);

/* Returns how many elements there are in all, where that is known before the end; else
 * SOURCE_UNKNOWN. */
uint64_t source_count(const struct source *source);

/* Returns whether elements at the same place of both arrays have the same index. Writes a message
 * if not: arrays of several dimensions, one in Fortran's order, the other in C's. */
bool source_lies_like(const struct source *source, const struct source *other);

/* Gives back what source_open() has taken. */
void source_drop(struct source *source);

/* Reads up to `size` bytes of data in order, fewer only at the end; *got says how many. */
bool source_read(struct source *source, void *bytes, size_t size, size_t *got);

#endif
