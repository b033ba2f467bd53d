/*
 * rows.h - the rows in a chunk of a table: the cells of some columns as elements, sorted by the rows' keys.
 */
#ifndef TALLY_CLI_ROWS_H
#define TALLY_CLI_ROWS_H

#include "input/chunks.h"
#include "input/decimal.h"
#include "input/scan.h"
#include "input/spelling.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CELL_BYTES = 4096 }; /* a cell that is read is shorter */

struct column {
    const char *name;
    size_t length;
    size_t field;    /* its number in a row, from 0 */
    tally_type type; /* of the elements; 0: decimals, which are short_decimals */
    size_t element;  /* bytes of one */
    /* With BY_BLANKS: its name's place in the first line, where the name before it ends, and where
     * the one behind it begins. */
    size_t at, end, before, behind;
};

/* The columns that are read from each row, and how. */
struct layout {
    const struct spelling *spelling;
    bool in_pairs;  /* the two value columns are x and y */
    char delimiter; /* or BY_BLANKS */
    scan_line *scan;
    size_t width;          /* most fields of a row, without empty ones behind them */
    size_t least;          /* least fields of a row */
    bool is_aligned;       /* with BY_BLANKS: columns stand below their names */
    size_t last_at;        /* if aligned: where the last name begins; its column may hold blanks */
    size_t count, values;  /* columns; the first `values` have the values, the others the key */
    size_t lists;          /* of elements: one for each value column, or for the pair */
    struct column *column; /* [count]; owned, as is `order` */
    const struct column **order; /* [count]: the columns in order of their fields */
};

/* digits * 10^-places; or, where places < 0, the text that begins at keys.text + digits. */
struct short_decimal {
    int64_t digits, places;
};

/* Different keys, in order of first appearance. */
struct keys {
    struct key {
        uint64_t hash;
        size_t at, bytes; /* of its text: its fields, each ended by a zero byte */
    } * list;
    size_t count, room;
    char *text; /* the texts of all keys */
    size_t used, text_room;
    uint32_t *slots; /* a hash table of indices into the list, plus 1 */
    size_t slot_count;
};

/* A list of elements; y are the partners of x, of dot. */
struct values {
    unsigned char *x, *y;               /* in order of their rows */
    unsigned char *x_sorted, *y_sorted; /* by key; without key columns the same as x and y */
    uint32_t *key;                      /* the number of each element's key */
    size_t *first;                      /* each key's first sorted element; behind them the end */
    size_t count, first_room;
};

/* The fault that ends the reading of a chunk. */
struct fault {
    enum fault_kind {
        NOTHING,
        BAD_CELL,
        NO_COLUMN,
        WIDE_ROW,
        NARROW_ROW,
        DISPLACED, /* the field does not stand below the column's name */
        ZERO_IN_KEY,
        LONG_FIELD,
        LONG_ROW,
        BEHIND_QUOTE,
        NO_MEMORY
    } kind;
    enum spelling_result result; /* of the cell */
    const struct column *column;
    uint64_t line;         /* line ends of the chunk before the row */
    size_t fields;         /* of the row, as far as it has been read */
    size_t bytes;          /* of the cell */
    char cell[CELL_BYTES]; /* ended by a zero byte */
};

/* The progress of reading a chunk. */
struct progress_of_rows;

/* The elements and keys that are made of a chunk. All but the layout is owned. */
struct made_rows {
    const struct layout *layout;
    struct progress_of_rows *at;
    bool is_slow;          /* decimal_quick() cannot read the numbers as they are spelled */
    bool goes_on;          /* the last row goes on in the next chunk */
    uint64_t header_lines; /* line ends before the first row; to be set after rows_prepare() */
    uint64_t lines;        /* line ends */
    struct keys keys;
    struct values *list;
    size_t room; /* elements that each list has room for */
    char *key;   /* room for a row's key */
    struct fault fault;
};

/* Makes room for the elements of `bytes` of text, and clears what was made before. Returns false if
 * memory is short. */
bool rows_prepare(struct made_rows *made, const struct layout *layout, size_t bytes);
/* Reads the chunk, which begins with a row, up to its end or the first fault. */
void rows_read(struct made_rows *made, const struct chunk *chunk);
/* Reads a chunk that begins within a row, up to its end or the first fault. `open` is how far the
 * chunk before has been read; `made` owns it from then on. */
void rows_read_on(struct made_rows *made, const struct chunk *chunk, struct progress_of_rows *open);
/* Returns how far the chunk has been read, for rows_read_on(), if its last row goes on in the next
 * one. The caller owns it. */
struct progress_of_rows *rows_leave(struct made_rows *made);
/* Returns how many line ends the row that is open has behind its first line, in chunks that have
 * been left. */
uint64_t rows_open_lines(const struct progress_of_rows *open);
void rows_progress_free(struct progress_of_rows *at); /* also NULL */
void rows_release(struct made_rows *made);

struct csv_parser;
/* Opens libcsv's parser so that a tab is no blank, as it may be the delimiter, and so that its
 * buffer grows by more than 128 bytes at a time, as each growth copies a long field. csv_free()
 * closes it. Returns false if memory is short. */
bool rows_open_parser(struct csv_parser *parser);

#endif
