/*
 * fields.h - where the fields of a line begin and end.
 */
#ifndef TALLY_CLI_FIELDS_H
#define TALLY_CLI_FIELDS_H

#include "input/spelling.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The delimiter of a table whose fields stand between runs of blanks and tabs: a byte that is in no text of
 * UTF-8. */
enum { BY_BLANKS = (char)0xff };

struct field {
    const char *first, *last; /* its text is [first, last), without quotes around it */
    bool is_quoted;
};

static inline bool field_is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* The place of a byte among the quotes of a delimited row: at the beginning of a field, in text
 * without quotes, in text within quotes, right behind a closing quote, or behind blanks that follow
 * one. */
enum quoting { FIELD_BEGINS, UNQUOTED, IN_QUOTES, CLOSED, BEHIND_CLOSED };

/* Follows the quotes of a row through a part of it. Returns false if text stands behind a closing
 * quote: libcsv would take it, and rows behind it, for the same field. */
static inline bool field_follow_quotes(enum quoting *q, char delimiter, const char *at,
                                       size_t bytes) {
    for (const char *end = at + bytes; at < end; at++) {
        if (*q == IN_QUOTES)
            *q = *at == '"' ? CLOSED : IN_QUOTES;
        else if (*at == delimiter || *at == '\n' || *at == '\r')
            *q = FIELD_BEGINS;
        else if (*q == CLOSED && *at == '"')
            *q = IN_QUOTES;
        else if (*at == ' ')
            *q = *q == CLOSED ? BEHIND_CLOSED : *q;
        else if (*q >= CLOSED)
            return false;
        else
            *q = *q == FIELD_BEGINS && *at == '"' ? IN_QUOTES : UNQUOTED;
    }
    return true;
}

/* Returns how many characters of UTF-8 stand before `at` in its line: aligned tables are aligned by
 * them. */
static inline size_t field_place(const char *line, const char *at) {
    size_t place = 0;
    for (; line < at; line++)
        place += (*line & 0xc0) != 0x80;
    return place;
}

/* Returns the closing quote of a field that opens at `at` in a line of runs of blanks: a blank or
 * the end stands behind it. Doubled quotes and those behind a backslash belong to the field. NULL:
 * the quote is a character like others. */
static inline const char *field_close(const char *at, const char *end) {
    for (const char *close = at + 1; close < end; close++) {
        if (*close == '\\' && close + 1 < end) {
            close++;
        } else if (*close == '"') {
            if (close + 1 == end || field_is_blank(close[1])) return close;
            if (close[1] != '"') return NULL;
            close++;
        }
    }
    return NULL;
}

/* Finds the next field between runs of blanks; returns the byte behind it, or NULL where there is none. */
static inline const char *field_between_blanks(const char *at, const char *end, struct field *f) {
    while (at < end && field_is_blank(*at))
        at++;
    if (at == end) return NULL;
    const char *close = *at == '"' ? field_close(at, end) : NULL;
    *f = (struct field){.first = at + (close != NULL), .last = close, .is_quoted = close};
    if (close) return close + 1;
    while (at < end && !field_is_blank(*at))
        at++;
    return f->last = at;
}

/* Returns whether a line is a comment: # opens it, and it is none of Excel's words, such as #N/A. */
static inline bool field_opens_comment(const char *at, const char *end, char delimiter) {
    size_t length;
    while (at < end && field_is_blank(*at) && *at != delimiter)
        at++;
    if (at == end || *at != '#' || delimiter == '#') return false;
    return !spelling_is_excel_error(at, end, &length) ||
           !(at + length == end || at[length] == delimiter || at[length] == '\n' ||
             field_is_blank(at[length]));
}

#endif
