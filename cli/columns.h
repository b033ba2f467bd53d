/*
 * columns.h - columns of a table of comma-separated values, and the keys in others.
 */
#ifndef TALLY_CLI_COLUMNS_H
#define TALLY_CLI_COLUMNS_H

#include "groups.h"
#include "source.h"

enum { COLUMNS_MOST = 64 };

struct columns {
    const char *value; /* names, or numbers from 1, with commas between them */
    const char *by;    /* those of the keys, or NULL */
    bool has_header;   /* the first line has names, also where numbers are given */
    char delimiter;    /* 0: the comma, or the tab or semicolon that the first line has instead */
    bool in_pairs;     /* of the two value columns, for dot: they are not apart, but x and y */
};

/* How many columns a text such as "price,quantity" names; 0 for NULL, and where one is missing or there are more
 * than COLUMNS_MOST. */
size_t columns_count(const char *text);

/* Whether several value columns are reduced, each for itself. */
bool columns_apart(const struct columns *columns);

/* Whether none of those is named twice; else a line says which is. */
bool columns_differ(const struct columns *columns);

/* Adds the columns of a table, which is text, to the groups. A group's key has the fields of the columns in `by`,
 * and behind them the column's name where several are reduced apart; it is "" where there are neither. False,
 * with the line that says why, where that cannot be done. */
bool columns_feed(const struct columns *columns, struct source *source, struct groups *groups);

#endif
