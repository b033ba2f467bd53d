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

enum { CELL_BYTES = 4096 }; /* a cell that is looked at is shorter */

struct column {
    const char *name;
    size_t length;
    size_t field;    /* where it is in a row, from 0 */
    tally_type type; /* of the elements; 0: decimals, which are short_decimals */
    size_t element;  /* bytes of one */
    size_t at, end;  /* of runs of blanks: where its name stands in the first line */
};

/* What is read of each row. */
struct layout {
    const struct spelling *spelling;
    bool in_pairs;  /* the two value columns are x and y */
    char delimiter; /* or BY_BLANKS */
    scan_line *scan;
    size_t width;    /* a row has at most so many fields, but for empty ones behind them */
    size_t least;    /* and at least so many */
    bool is_aligned; /* of runs of blanks: columns stand below their names, and */
    size_t last_at;  /* the last one, whose name begins there, may hold blanks */
    size_t count,
        values;   /* of the columns; the first of them have the values, the others the key */
    size_t lists; /* of elements: one for each value column, or for the pair */
    struct column *column;       /* owned, as is */
    const struct column **order; /* the same, by their fields */
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
    char *text; /* of all */
    size_t used, text_room;
    uint32_t *slots; /* a hash table of indices into the list, plus 1 */
    size_t slot_count;
};

/* A list of elements; y are the partners of x, of dot. */
struct values {
    unsigned char *x, *y;               /* as they come */
    unsigned char *x_sorted, *y_sorted; /* by key; the same where there are no key columns */
    uint32_t *key;                      /* of each, the number of its key */
    size_t *first; /* of each key, the first of the sorted; one more ends them */
    size_t count, first_room;
};

/* What is wrong with a row. */
struct fault {
    enum fault_kind {
        NOTHING,
        BAD_CELL,
        NO_COLUMN,
        WIDE_ROW,
        NARROW_ROW,
        ZERO_IN_KEY,
        LONG_FIELD,
        NO_MEMORY
    } kind;
    enum spelling_result result; /* of the cell */
    const struct column *column;
    uint64_t line;         /* line ends of the chunk before the row */
    size_t fields;         /* of the row, as far as it has been read */
    size_t bytes;          /* of the cell */
    char cell[CELL_BYTES]; /* ended by a zero byte */
};

/* How far a chunk has been read. */
struct progress_of_rows;

/* The results of a chunk, which owns all of them. */
struct made_rows {
    const struct layout *layout;
    struct progress_of_rows *at;
    bool is_slow;          /* decimal_quick() does not read all numbers as they are spelled */
    bool goes_on;          /* the last row goes on in the next chunk */
    uint64_t header_lines; /* line ends before the first row; to be set after rows_prepare() */
    uint64_t lines;        /* line ends */
    struct keys keys;
    struct values *list;
    size_t room; /* elements that each of them has room for */
    char *key;   /* a row's */
    struct fault fault;
};

/* Makes room for what `bytes` of text may become. False where there is no memory. */
bool rows_prepare(struct made_rows *made, const struct layout *layout, size_t bytes);
/* Reads the chunk, which begins with a row, up to what is wrong. */
void rows_read(struct made_rows *made, const struct chunk *chunk);
/* The same, of a chunk that begins within a row: `open` is how the chunk before was left. It is taken over. */
void rows_read_on(struct made_rows *made, const struct chunk *chunk, struct progress_of_rows *open);
/* How the reading of a chunk that goes on ended, for rows_read_on(). The caller is to free it. */
struct progress_of_rows *rows_leave(struct made_rows *made);
/* Returns how many line ends the row that is open has behind its first line, in chunks that have
 * been left. */
uint64_t rows_open_lines(const struct progress_of_rows *open);
void rows_progress_free(struct progress_of_rows *at); /* also NULL */
void rows_release(struct made_rows *made);

struct csv_parser;
/* Opens libcsv's parser: a tab is no blank, as it may part fields, and a long field is not copied for every 128 bytes of it.
   csv_free() closes it; false where memory is short. */
bool rows_open_parser(struct csv_parser *parser);

#endif
