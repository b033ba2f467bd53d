/*
 * form.h - the form of a table: its delimiter, whether its first line has names, and how many
 * fields a row has.
 *
 * All of it is decided here, from the first rows and from the options.
 */
#ifndef TALLY_CLI_FORM_H
#define TALLY_CLI_FORM_H

#include "input/spelling.h"

#include <stdbool.h>
#include <stddef.h>

/* The options that describe a table. */
struct form_told {
    const char *name;  /* the table's name in messages */
    char delimiter;    /* 0: not given */
    bool header;       /* the first line has names */
    bool no_header;    /* the first line has no names */
    bool needs_header; /* a column is given by a name that is no number */
    const struct spelling *spelling;
    size_t number_count;
    const char *const *number; /* columns that are given by number, as typed: each may be a name */
    size_t name_count;
    const char *const *column; /* columns that are given by a name that is no number */
};

struct form {
    char delimiter;      /* a character, or BY_BLANKS */
    bool has_header;     /* the first row has names */
    const char *comment; /* the comment line whose words are the names; else NULL */
    const char *comment_end;
    size_t skip;  /* bytes before the table: those of a line sep=; */
    size_t lines; /* line ends in these bytes */
    size_t shift; /* fields before the named ones: R writes no name for those of the rows */
    size_t width; /* fields of the first row and the shift; 0: the text ends before that row does */
};

/* Decides from text[0..length), which ends with a whole line. False, with the line that says why, where the text
 * can be read in several ways. */
bool form_find(const struct form_told *told, const char *text, size_t length, struct form *out);

#endif
