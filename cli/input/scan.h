/*
 * scan.h - the end of a line, and the delimiters before it, in one pass.
 */
#ifndef TALLY_CLI_SCAN_H
#define TALLY_CLI_SCAN_H

#include <stddef.h>
#include <stdint.h>

enum {
    SCAN_WORDS = 16, /* words of marks, for 64 bytes each; bytes behind them have none */
    SCAN_SPARE = 64  /* bytes behind the end that can be read */
};

struct scanned {
    const char *end;            /* the first line end, or the text's end */
    size_t count;               /* delimiters before it */
    size_t words;               /* words of `marks` that are set */
    uint64_t marks[SCAN_WORDS]; /* bit i of word k: byte 64 k + i of the line is a delimiter */
};

/* Scans the line that begins at `at`, in a text that ends at `end`. */
typedef void scan_line(const char *at, const char *end, char delimiter, struct scanned *out);

/* Returns the fastest scan_line of this machine. */
scan_line *scan_best(void);

#endif
