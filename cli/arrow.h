/*
 * arrow.h - a column of an Arrow or Parquet file, by those who can read one.
 *
 * No library for C that reads them is packaged where this command is. Whoever has such files has Python's pyarrow,
 * as a rule; so Python hands the column over through a pipe (arrow.py), and where it cannot, a line says how to convert
 * the file.
 */
#ifndef TALLY_CLI_ARROW_H
#define TALLY_CLI_ARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether a file that begins with these bytes is one. */
bool arrow_recognise(const unsigned char *bytes, size_t size);
bool arrow_is_file(const char *path);

/* Starts the helper that writes a column of the file, a name or a number from 1 ("": the only one), to a pipe:
 * its type's name, a line end, and raw elements. *file is the pipe's end to read, *helper the process. With skip_na
 * missing values and NaN are left out; else a missing one is an error. False, with the line that says why. */
bool arrow_open(const char *path, const char *column, bool skip_na, int *file, pid_t *helper);

/* To be called at the pipe's end: waits for the helper. False where it failed; a line has said why. */
bool arrow_end(const char *path, pid_t *helper);
/* Ends it earlier; 0: there is none. */
void arrow_close(pid_t *helper);

#endif
