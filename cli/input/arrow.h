/*
 * arrow.h - reads columns of an Arrow or Parquet file, by a Python process with pyarrow.
 *
 * No C library that reads such files is packaged where this command is, but their users usually
 * have pyarrow. So Python writes columns to a pipe (arrow.py). If it cannot, a message says how to
 * convert the file. One column of numbers comes as elements. Keys, decimals and pairs come as text
 * in which every number has all its digits; the readers of text and tables read it.
 */
#ifndef TALLY_CLI_ARROW_H
#define TALLY_CLI_ARROW_H

#include "input/list.h"
#include "tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Return whether these first bytes, or this file's, are those of an Arrow or Parquet file. */
bool arrow_recognise(const unsigned char *bytes, size_t size);
bool arrow_is_file(const char *path);

/* The form of what the helper writes after its first line. */
enum arrow_kind {
    ARROW_ARRAY, /* one column: raw elements; of decimals a line each */
    ARROW_TEXT,  /* one column: a line each */
    ARROW_ROWS,  /* comma-separated values: the columns of the values, then those of the keys */
    ARROW_PAIRS  /* comma-separated values of two columns, x and y */
};

struct arrow_asked {
    enum arrow_kind kind;
    const char *column;               /* of one column: its name or number; NULL: the only one */
    const struct list *values, *keys; /* as they were typed, or NULL */
};

/* Starts the helper. It writes the columns that are asked for to a pipe, behind a line with their
 * types. *file becomes the pipe's end to read, *helper the process. With skip_na missing values and
 * NaN are left out of a single column; otherwise a missing value is an error. Returns false, with a
 * message, if the helper cannot be started. */
bool arrow_open(const char *path, const struct arrow_asked *asked, bool skip_na, int *file,
                pid_t *helper);

/* The contents of the helper's first line. */
struct arrow_found {
    size_t count;
    tally_type type[LIST_MOST];        /* of the values; 0: decimals */
    bool is_value_whole, is_key_whole; /* that list, as it was typed, is the name of one column */
};
/* Reads the helper's first line, which ends at `end`. Returns false if it is not well-formed. */
bool arrow_read_line(const char *line, const char *end, struct arrow_found *out);

/* Waits for the helper after the pipe's end. Returns false if it failed; a message has said why. */
bool arrow_end(const char *path, pid_t *helper);
/* Ends the helper before the pipe's end; does nothing if *helper is 0. */
void arrow_close(pid_t *helper);

#endif
