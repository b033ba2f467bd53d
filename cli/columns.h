/*
 * columns.h - one column of a table of comma-separated values, and the keys in another.
 */
#ifndef TALLY_CLI_COLUMNS_H
#define TALLY_CLI_COLUMNS_H

#include "groups.h"
#include "source.h"

struct columns {
    const char *value; /* its name, or its number from 1 */
    const char *by;    /* that of the keys, or NULL */
    bool has_header;   /* the first line has names, also where numbers are given */
    char delimiter;    /* 0: the comma, or the tab or semicolon that the first line has instead */
};

/* Adds the column of a table, which is text, to the groups: all to one, of the key "", or by their keys.
 * False, with the line that says why, where that cannot be done. */
bool columns_feed(const struct columns *columns, struct source *source, struct groups *groups);

#endif
