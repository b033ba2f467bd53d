/*
 * arrow.h - a column of an Arrow or Parquet file, by those who can read one.
 *
 * No library for C that reads them is packaged where this command is. A user of such files has Python's pyarrow,
 * as a rule; so Python hands columns over through a pipe (arrow.py), and where it cannot, a line says how to convert
 * the file. One column of numbers comes as elements. Keys, decimals and pairs come as a table of text, in which every
 * number has all its digits, so that whoever reads tables reads them.
 */
#ifndef TALLY_CLI_ARROW_H
#define TALLY_CLI_ARROW_H

#include "input/list.h"
#include "tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns whether a file that begins with these bytes is one. */
bool arrow_recognise(const unsigned char *bytes, size_t size);
bool arrow_is_file(const char *path);

/* The form of what the helper writes after its first line. */
enum arrow_kind {
    ARROW_ARRAY, /* one column: raw elements; of decimals a line each */
    ARROW_TEXT,  /* one column: a line each */
    ARROW_ROWS,  /* comma-separated values: the columns of the values, then those of the keys */
    ARROW_PAIRS  /* the same, of two columns that are x and y */
};

struct arrow_asked {
    enum arrow_kind kind;
    const char *column;               /* of one column: its name or number; NULL: the only one */
    const struct list *values, *keys; /* as they were typed, or NULL */
};

/* Starts the helper that writes what is asked of the file to a pipe, behind a line with the types' names. *file is the
 * pipe's end to read, *helper the process. With skip_na missing values and NaN are left out of one column; else a missing
 * one is an error. False, with the line that says why. */
bool arrow_open(const char *path, const struct arrow_asked *asked, bool skip_na, int *file,
                pid_t *helper);

/* The helper's first line, read. */
struct arrow_found {
    size_t count;
    tally_type type[LIST_MOST];        /* of the values; 0: decimals */
    bool is_value_whole, is_key_whole; /* that list, as it was typed, is the name of one column */
};
/* Reads the line, which ends at `end`. False where it is none. */
bool arrow_read_line(const char *line, const char *end, struct arrow_found *out);

/* To be called at the pipe's end: waits for the helper. False where it failed; a line has said why. */
bool arrow_end(const char *path, pid_t *helper);
/* Ends it earlier; 0: there is none. */
void arrow_close(pid_t *helper);

#endif
