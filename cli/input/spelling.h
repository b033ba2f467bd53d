/*
 * spelling.h - how numbers and missing values are written in a text: the decimal mark, the mark between thousands, and the
 * words that stand where there is no value.
 */
#ifndef TALLY_CLI_SPELLING_H
#define TALLY_CLI_SPELLING_H

#include "input/decimal.h"

#include <stdbool.h>
#include <stddef.h>

enum { NA_WORDS = 64 };

struct spelling {
    char mark;         /* the decimal mark; 0: the point */
    char thousands[5]; /* one UTF-8 character; "": none */
    bool skip_na;      /* missing values are left out */
    size_t na_count;
    const char *na[NA_WORDS]; /* the words of --na */
    bool has_na_number;       /* one of them is a number */
};

/* The usual spelling: a point, nothing between thousands, and no word that is left out. */
extern const struct spelling spelling_usual;

/* Returns whether numbers have the point as their mark and nothing between thousands, so that decimal_quick() reads them. */
static inline bool spelling_is_plain(const struct spelling *s) {
    return !s->mark && !*s->thousands;
}

/* Returns whether a word, which has no blank at either end, says that a value is missing; "" does. */
bool spelling_is_missing(const struct spelling *s, const char *word);
/* Returns whether --skip-na alone leaves out the word: the words of --na do not count. */
bool spelling_is_known_missing(const char *word);
/* Returns whether the text opens with one of the words that Excel writes for an error, such as #N/A; `length` becomes its bytes. */
bool spelling_is_excel_error(const char *text, const char *end, size_t *length);

/* The numbers among the words of --na, as elements of a type. */
struct na_numbers {
    tally_type type;
    size_t count;
    unsigned char element[NA_WORDS][8];
};
void spelling_na_numbers(const struct spelling *s, tally_type type, struct na_numbers *out);
/* Returns whether an element equals one of them. */
bool spelling_is_na_number(const struct na_numbers *numbers, const void *element);

/* Writes the number with the point as its mark and nothing between thousands. False where it is not spelled so: thousands
 * stand in groups of three, before the mark. out has room for as many bytes as the word, and a zero byte. */
bool spelling_normalise(const struct spelling *s, const char *word, char *out);
/* Returns a word that is no cell, as one of --na or a key, with its marks replaced as above, in
 * `out`; the word itself if it is not spelled so, or longer. */
enum { SPELLING_PLAIN = 256 }; /* bytes */
const char *spelling_plain(const struct spelling *s, const char *word, char out[SPELLING_PLAIN]);
/* Returns whether the word is a number in this spelling. */
bool spelling_is_number(const struct spelling *s, const char *word);

/* The result of reading a cell or word. */
enum spelling_result { SPELLING_NUMBER, SPELLING_MISSING, SPELLING_MALFORMED, SPELLING_RANGE };

/* Reads a word, in which blanks may stand at either end, as an element. With type 0 it checks that
 * the word is a decimal, and sets the pointer at `element` to its text as money_add() reads it. The
 * word is changed, and DECIMAL_SPARE bytes behind its end are written. */
enum spelling_result spelling_read(const struct spelling *s, tally_type type, char *word,
                                   size_t length, void *element);

/* Returns true for a date or a time: digits with one kind of mark, as in 2020-01-31, 31.01.2020,
 * 2020-01, 12:30. */
bool spelling_is_date(const char *word);
/* Returns advice on a word that is no number of the type, as the end of a message; "" if there is none. */
const char *spelling_hint(const struct spelling *s, const char *word, char out[160]);

#endif
