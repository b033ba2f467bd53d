/*
 * columns.h - reads columns of a table for a reduction, and the keys in other columns.
 */
#ifndef TALLY_CLI_COLUMNS_H
#define TALLY_CLI_COLUMNS_H

#include "input/groups.h"
#include "input/list.h"
#include "input/source.h"

struct columns {
    struct list value; /* names, or numbers from 1; not given where the input is no table */
    struct list by;    /* names or numbers of the key columns */
    bool has_header;   /* the first line has names, also where numbers are given */
    bool no_header;    /* the first line has no names */
    char delimiter;    /* a character or BY_BLANKS; 0: found from the first lines */
    bool in_pairs;     /* the two value columns are x and y of dot, not reduced apart */
};

/* Returns whether several value columns are reduced, each for itself. */
bool columns_apart(const struct columns *columns);

/* Returns whether no column is named twice among those that are reduced apart; else a message names
 * it. */
bool columns_differ(const struct columns *columns);

/* Adds the columns of a table, which is text, to the groups. A group's key has the fields of the columns in `by`,
 * and behind them the column's name where several are reduced apart; it is "" where there are neither. A list whose whole
 * text is the name of one column becomes that column. False, with the line that says why, where that cannot be done. */
bool columns_feed(struct columns *columns, struct source *source, struct groups *groups);

#endif
