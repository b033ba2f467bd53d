/*
 * columns.h - columns of a table of comma-separated values, and the keys in others.
 */
#ifndef TALLY_CLI_COLUMNS_H
#define TALLY_CLI_COLUMNS_H

#include "input/groups.h"
#include "input/list.h"
#include "input/source.h"

struct columns {
    struct list value; /* names, or numbers from 1; not given where the input is no table */
    struct list by;    /* those of the keys */
    bool has_header;   /* the first line has names, also where numbers are given */
    bool no_header;    /* it has none */
    char delimiter;    /* BY_BLANKS, or 0: the form of the table tells */
    bool in_pairs;     /* of the two value columns, for dot: they are not apart, but x and y */
};

/* Returns whether several value columns are reduced, each for itself. */
bool columns_apart(const struct columns *columns);

/* Returns whether none of those is named twice; else a line says which is. */
bool columns_differ(const struct columns *columns);

/* Adds the columns of a table, which is text, to the groups. A group's key has the fields of the columns in `by`,
 * and behind them the column's name where several are reduced apart; it is "" where there are neither. A list whose whole
 * text is the name of one column becomes that column. False, with the line that says why, where that cannot be done. */
bool columns_feed(struct columns *columns, struct source *source, struct groups *groups);

#endif
