/*
 * form.c - see form.h.
 *
 * The first rows are parted by each delimiter that may be meant. Where the first row has a word above numbers, it is a header.
 * R's write.table() writes one name fewer than fields: then every row has one field more than the first line.
 */
#include "input/form.h"

#include "common/message.h"
#include "input/decimal.h"
#include "input/drawn.h"
#include "input/fields.h"
#include "input/money.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MOST = 200,   /* rows that are looked at */
    WORD_BYTES = 128,  /* of a field, to see what it is; a longer one is no number */
    YEAR_FIRST = 1800, /* numbers that may name columns */
    YEAR_LAST = 2199
};

struct row {
    const char *text;
    size_t first, count; /* its fields, in sample.field */
    size_t filled;       /* fields up to the last one that is not empty */
};

struct sample {
    const struct form_told *told;
    char delimiter;
    struct row row[ROWS_MOST];
    size_t rows;
    struct field *field; /* owned */
    size_t fields, room;
    const char *comment, *comment_end; /* the last comment line above the first row */
};

/* ---- Rows ---- */

static bool add_field(struct sample *s, struct row *r, const struct field *f) {
    if (s->fields == s->room) {
        const size_t room = s->room ? 2 * s->room : 1024;
        struct field *grown = realloc(s->field, room * sizeof *grown);
        if (!grown) return false;
        s->field = grown;
        s->room = room;
    }
    s->field[s->fields++] = *f;
    r->count++;
    if (f->last > f->first) r->filled = r->count;
    return true;
}

static const char *line_end(const char *at, const char *end) {
    while (at < end && *at != '\n' && *at != '\r')
        at++;
    return at;
}

/* Finds a field, which may be quoted and then hold line ends; returns the byte behind it. NULL: it is not all there. */
static const char *delimited_field(const struct sample *s, const char *at, const char *end,
                                   struct field *f) {
    const bool trims = s->delimiter != ' ';
    while (trims && at < end && *at == ' ')
        at++;
    if (at < end && *at == '"') {
        *f = (struct field){.first = at + 1, .is_quoted = true};
        for (at++; at < end && (*at != '"' || (at + 1 < end && at[1] == '"')); at++)
            at += *at == '"';
        if (at >= end) return NULL;
        f->last = at++;
        while (at < end && *at != s->delimiter && *at != '\n' && *at != '\r')
            at++;
        return at;
    }
    *f = (struct field){.first = at};
    while (at < end && *at != s->delimiter && *at != '\n' && *at != '\r')
        at++;
    for (f->last = at; trims && f->last > f->first && f->last[-1] == ' ';)
        f->last--;
    return at;
}

/* Parts the row that begins at `at`; returns where the next line begins. NULL: the row is not all there. */
static const char *part_row(struct sample *s, const char *at, const char *end, bool *fits) {
    struct row *r = &s->row[s->rows];
    struct field f;
    *r = (struct row){.text = at, .first = s->fields};
    if (s->delimiter == BY_BLANKS) {
        const char *last = line_end(at, end);
        if (last == end) return NULL;
        while (*fits && (at = field_between_blanks(at, last, &f)))
            *fits = add_field(s, r, &f);
        return last + 1;
    }
    for (;; at++) {
        if (!(at = delimited_field(s, at, end, &f)) || at == end) return NULL;
        if (!(*fits = add_field(s, r, &f)) || *at != s->delimiter) return at + 1;
    }
}

static bool is_empty_line(const struct sample *s, const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\r' || (*at == '\t' && s->delimiter == BY_BLANKS)))
        at++;
    return at == end || *at == '\n';
}

/* Parts the first rows. False where there is no memory. */
static bool part_rows(struct sample *s, const char *text, const char *end) {
    bool fits = true;
    s->rows = s->fields = 0;
    s->comment = NULL;
    for (const char *at = text; at && at < end && s->rows < ROWS_MOST && fits;) {
        const char *last = line_end(at, end);
        if (is_empty_line(s, at, last)) {
            at = last + 1;
        } else if (field_opens_comment(at, last, s->delimiter)) {
            if (!s->rows) s->comment = at, s->comment_end = last;
            at = last + 1;
        } else {
            at = part_row(s, at, end, &fits);
            if (at) s->rows++;
        }
    }
    return fits || (failed("no memory to read %s", s->told->name), false);
}

static const struct field *field_of(const struct sample *s, size_t row, size_t i) {
    return &s->field[s->row[row].first + i];
}

/* ---- What a field is ---- */

enum kind {
    EMPTY,
    MISSING, /* a word that says that there is no value */
    NUMBER,
    OTHER, /* neither, but it begins as numbers do: 5%, €5, <0.5 */
    NAME
};

static bool word_of(const struct field *f, char out[WORD_BYTES + DECIMAL_SPARE]) {
    const size_t length = (size_t)(f->last - f->first);
    if (length >= WORD_BYTES || memchr(f->first, 0, length)) return false;
    memset(out, 0, WORD_BYTES + DECIMAL_SPARE);
    memcpy(out, f->first, length);
    return true;
}

/* Returns whether a field begins with a digit, before which only signs stand, such as a currency, a
 * minus or a quote: those of ASCII but _, U+0080 to U+00BF and U+2000 to U+22FF. */
static bool begins_as_number(const char *at, const char *end) {
    while (at < end) {
        const unsigned char c = (unsigned char)*at, next = at + 1 < end ? (unsigned char)at[1] : 0;
        if (c < 0x80 && !isalnum(c) && c != '_')
            at++;
        else if (c == 0xc2)
            at += 2;
        else if (c == 0xe2 && next <= 0x8b)
            at += 3;
        else
            return c >= '0' && c <= '9';
    }
    return false;
}

static enum kind kind_of(const struct sample *s, const struct field *f, double *value) {
    char word[WORD_BYTES + DECIMAL_SPARE];
    double x;
    struct spelling told = *s->told->spelling;
    told.skip_na = false;
    if (f->last == f->first) return EMPTY;
    if (!word_of(f, word)) return NAME;
    if (spelling_is_missing(s->told->spelling, word) || strspn(word, ".?*-_") == strlen(word))
        return MISSING;
    if (spelling_read(&told, TALLY_F64, word, (size_t)(f->last - f->first), &x) ==
        SPELLING_NUMBER) {
        if (value) *value = x;
        return NUMBER;
    }
    return begins_as_number(f->first, f->last) ? OTHER : NAME;
}

/* ---- The delimiter ---- */

/* Returns true if all rows of the sample have the same number of fields, at least two. The first
 * row may have one fewer. Returns false if a field has a quote inside: then this delimiter stands
 * in the quoted fields of another one. */
static bool is_even(const struct sample *s) {
    if (!s->rows) return false;
    for (size_t i = 0; i < s->fields; i++) {
        const struct field *f = &s->field[i];
        if (!f->is_quoted && memchr(f->first, '"', (size_t)(f->last - f->first))) return false;
    }
    const size_t n = s->row[s->rows - 1].count;
    for (size_t i = 1; i + 1 < s->rows; i++)
        if (s->row[i].count != n) return false;
    return n > 1 && (s->row[0].count == n || (s->row[0].count + 1 == n && s->rows > 1));
}

/* Returns true if the table is aligned: its first line begins with a blank or has two blanks in a row. */
static bool is_aligned(const struct sample *s) {
    const char *at = s->row[0].text, *end = field_of(s, 0, s->row[0].count - 1)->last;
    if (field_is_blank(*at)) return true;
    for (; at + 1 < end; at++)
        if (*at == ' ' && at[1] == ' ') return true;
    return false;
}

/* Returns true if each row of an aligned table has a label, to the left of the first column. */
static bool are_labelled(const struct sample *s) {
    const size_t n = s->row[0].count;
    bool is_wider = false;
    if (s->delimiter != BY_BLANKS || s->rows < 2 || !is_aligned(s)) return false;
    const size_t first = field_place(s->row[0].text, field_of(s, 0, 0)->first);
    for (size_t i = 1; i < s->rows; i++) {
        if (s->row[i].count > n + 1 || field_place(s->row[i].text, field_of(s, i, 0)->last) > first)
            return false;
        is_wider |= s->row[i].count == n + 1;
    }
    return is_wider;
}

/* Returns true if blanks part the fields: the first line has several words, or the rows have labels, and some later row has
 * several words. */
static bool is_by_blanks(const struct sample *s) {
    if (!s->rows || (s->row[0].count < 2 && !are_labelled(s))) return false;
    bool has_words = s->rows == 1;
    for (size_t i = 1; i < s->rows; i++)
        has_words |= s->row[i].count > 1;
    return has_words;
}

/* Chooses the comma if nothing else separates the fields. A comma that is also a mark of numbers is
 * chosen only if some field has quotes or the first line has names. Otherwise the delimiter is a
 * tab, which the first line does not have: the table has one column. */
static bool find_comma(struct sample *s, const char *text, const char *end) {
    const struct spelling *spelling = s->told->spelling;
    s->delimiter = ',';
    if (spelling->mark != ',' && *spelling->thousands != ',') return true;
    if (!part_rows(s, text, end)) return false;
    bool is_comma = false;
    for (size_t i = 0; i < s->fields; i++)
        is_comma |= s->field[i].is_quoted;
    for (size_t i = 0; s->rows && s->row[0].count > 1 && i < s->row[0].count; i++)
        is_comma |= kind_of(s, field_of(s, 0, i), NULL) == NAME;
    if (!is_comma) s->delimiter = '\t';
    return true;
}

/* Returns whether a digit stands on both sides of a character within a field. */
static bool is_within_numbers(const struct sample *s, char c) {
    for (size_t i = 0; i < s->fields; i++)
        for (const char *at = s->field[i].first + 1; at + 1 < s->field[i].last; at++)
            if (*at == c && strchr("0123456789", at[-1]) && strchr("0123456789", at[1]))
                return true;
    return false;
}

/* Returns true if the comma gives more fields than the chosen delimiter, which then stands only in
 * words. Sets *fits to false if memory is short. */
static bool has_more_commas(struct sample *s, const char *text, const char *end, bool *fits) {
    const char chosen = s->delimiter;
    const size_t fields = s->row[0].count;
    s->delimiter = ',';
    *fits = part_rows(s, text, end);
    const bool has_more =
        *fits && s->rows && is_even(s) && s->row[0].count > fields && !is_within_numbers(s, chosen);
    s->delimiter = chosen;
    *fits = *fits && part_rows(s, text, end);
    return has_more;
}

/* Returns true if R has written one column with quotes: the first row is a quoted name, and the
 * others have two fields, of which the first is quoted. */
static bool is_named_column(const struct sample *s) {
    if (s->rows < 2 || s->row[0].count != 1 || !field_of(s, 0, 0)->is_quoted) return false;
    for (size_t i = 1; i < s->rows; i++)
        if (s->row[i].count != 2 || !field_of(s, i, 0)->is_quoted) return false;
    return true;
}

/* Chooses a delimiter if none occurs in the first row: one that shows R's form (is_named_column()),
 * else blanks, else the comma. */
static bool find_below(struct sample *s, const char *text, const char *end) {
    static const char known[] = {'\t', ';', ',', BY_BLANKS};
    for (size_t i = 0; i < sizeof known; i++) {
        s->delimiter = known[i];
        if (!part_rows(s, text, end)) return false;
        if (is_named_column(s)) return true;
    }
    return is_by_blanks(s) || find_comma(s, text, end);
}

/* Returns whether a field is a number such as 1,5 or 1,234.50. */
static bool has_comma_mark(const struct field *f) {
    static const struct spelling decimal = {.mark = ','}, thousands = {.thousands = ","};
    char word[WORD_BYTES + DECIMAL_SPARE];
    return *f->first != ',' && f->last[-1] != ',' && word_of(f, word) &&
           (spelling_is_number(&decimal, word) || spelling_is_number(&thousands, word));
}

/* Chooses the comma. Fails if blanks part all rows into equally many fields, and each comma stands
 * within a number. */
static bool choose_comma(struct sample *s, const char *text, const char *end) {
    s->delimiter = BY_BLANKS;
    if (!part_rows(s, text, end)) return false;
    bool is_clear = s->fields < 2 * s->rows;
    for (size_t i = 0; i < s->rows && !is_clear; i++)
        is_clear = s->row[i].count != s->row[0].count;
    for (size_t i = 0; i < s->fields && !is_clear; i++) {
        const struct field *f = &s->field[i];
        is_clear = memchr(f->first, ',', (size_t)(f->last - f->first)) && !has_comma_mark(f);
    }
    s->delimiter = ',';
    return is_clear || (failed("%s: fields may stand between commas, or numbers such as 1,5 "
                               "between blanks; say -F , or -F blank",
                               s->told->name),
                        false);
}

/* Chooses a delimiter that occurs in the first row outside quotes: the only one; else the first in
 * `order` that gives all rows as many fields, unless the comma gives more; else the first in
 * `known`. If none occurs, find_below() chooses. */
static bool find_delimiter(struct sample *s, const char *text, const char *end) {
    static const char known[] = ",\t;|", order[] = "\t;|,";
    const struct spelling *spelling = s->told->spelling;
    bool is_there[sizeof known] = {false}, fits = true;
    size_t count = 0, only = 0;
    for (size_t i = 0; i < sizeof known - 1; i++) {
        s->delimiter = known[i];
        if (!part_rows(s, text, end)) return false;
        is_there[i] = s->rows && s->row[0].count > 1 && spelling->mark != known[i] &&
                      *spelling->thousands != known[i];
        count += is_there[i];
        if (is_there[i]) only = i;
    }
    if (count == 1 && known[only] == ',') return choose_comma(s, text, end);
    if (count == 1) return s->delimiter = known[only], true;
    for (size_t i = 0; i < sizeof order - 1 && count; i++) {
        s->delimiter = order[i];
        if (!is_there[strchr(known, order[i]) - known]) continue;
        if (!part_rows(s, text, end)) return false;
        if (is_even(s) && !(is_there[0] && has_more_commas(s, text, end, &fits))) return fits;
        if (!fits) return false;
    }
    for (size_t i = 0; i < sizeof known - 1 && count; i++)
        if (is_there[i]) return s->delimiter = known[i], true;
    return find_below(s, text, end);
}

/* ---- Rows that are wider than the first line ---- */

/* Returns true if the words that a row has too many belong to the last column of an aligned table:
 * its words begin where the column's name does, or behind that. */
static bool ends_in_words(const struct sample *s, size_t row) {
    const struct row *first = &s->row[0], *r = &s->row[row];
    if (s->delimiter != BY_BLANKS || r->count <= first->count || !is_aligned(s)) return false;
    return field_place(r->text, field_of(s, row, first->count - 1)->first) >=
           field_place(first->text, field_of(s, 0, first->count - 1)->first);
}

/* Returns true if the field has `least` to `most` digits and no quotes, as a part of a number has
 * that was split at its mark. is_first: it is the number's first part. */
static bool are_digits(const struct field *f, size_t least, size_t most, bool is_first) {
    const char *at = f->first + (is_first && f->first < f->last && strchr("+-", *f->first));
    size_t digits = 0;
    while (at + digits < f->last && at[digits] >= '0' && at[digits] <= '9')
        digits++;
    if (f->is_quoted || digits < least || digits > most) return false;
    return at + digits == f->last || (!is_first && digits == 3 && strchr(".,", at[digits]));
}

/* Returns whether a number such as 1,234.50 may have been parted at its thousands, or as 1,5 at any mark. */
static bool may_be_parted(const struct sample *s, size_t row, bool at_thousands) {
    const size_t least = at_thousands ? 3 : 1, most = at_thousands ? 3 : WORD_BYTES;
    if (s->delimiter != ',' && !(at_thousands && s->delimiter == BY_BLANKS)) return false;
    if (field_of(s, row, 0)->is_quoted) return false;
    for (size_t i = 0; i + 1 < s->row[row].count; i++)
        if (are_digits(field_of(s, row, i), 1, most, true) &&
            are_digits(field_of(s, row, i + 1), least, most, false))
            return true;
    return false;
}

/* Returns whether one blank alone stands between the first two fields, if blanks part them. */
static bool is_tight(const struct sample *s, size_t row) {
    return s->delimiter != BY_BLANKS || s->row[row].count < 2 ||
           field_of(s, row, 1)->first - field_of(s, row, 0)->last == 1;
}

/* Returns whether the first line has names, or every row begins with one: else a row that is wider is wrong. */
static bool has_some_names(const struct sample *s) {
    bool all = true;
    for (size_t i = 0; i < s->row[0].count; i++) {
        const struct field *f = field_of(s, 0, i);
        if (f->is_quoted || kind_of(s, f, NULL) >= OTHER) return true;
    }
    for (size_t i = 1; i < s->rows; i++)
        all &= kind_of(s, field_of(s, i, 0), NULL) == NAME || field_of(s, i, 0)->is_quoted;
    return all;
}

/* Returns true if blanks part the fields, and each row has a word behind its first field, and no
 * quotes. Then it is not clear whether that field is the row's name, or a later one has two words. */
static bool may_have_blanks(const struct sample *s) {
    for (size_t i = 1; i < s->rows; i++) {
        bool has_word = false;
        for (size_t k = 0; k < s->row[i].count; k++) {
            const struct field *f = field_of(s, i, k);
            if (f->is_quoted || s->delimiter != BY_BLANKS) return false;
            has_word |= k && kind_of(s, f, NULL) == NAME;
        }
        if (!has_word) return false;
    }
    return true;
}

/* Returns true if the field stands below name i of the first line. */
static bool is_below(const struct sample *s, size_t row, size_t field, size_t i) {
    const struct row *first = &s->row[0], *r = &s->row[row];
    const struct field *f = field_of(s, row, field), *name = field_of(s, 0, i);
    return field_place(r->text, f->first) < field_place(first->text, name->last) &&
           field_place(first->text, name->first) < field_place(r->text, f->last);
}

/* Returns how many blanks stand before a field that is not the first of its row. */
static size_t gap_before(const struct sample *s, size_t row, size_t field) {
    return (size_t)(field_of(s, row, field)->first - field_of(s, row, field - 1)->last);
}

/* Returns true if the first two of n + 1 fields may be one label of two words, such as Area 51: one
 * blank parts them, and two or more part the others; or both end before the second of n aligned
 * names, and the third stands below it. */
static bool has_two_words(const struct sample *s, size_t row) {
    const size_t n = s->row[0].count;
    if (s->delimiter != BY_BLANKS || n < 2 || gap_before(s, row, 1) > 1) return false;
    if (is_aligned(s) && is_below(s, row, 2, 1) &&
        field_place(s->row[row].text, field_of(s, row, 1)->last) <=
            field_place(s->row[0].text, field_of(s, 0, 1)->first))
        return true;
    for (size_t i = 2; i <= n; i++)
        if (gap_before(s, row, i) < 2) return false;
    return true;
}

static bool tell_words(const struct sample *s) {
    const size_t n = s->row[0].count;
    return failed("%s: all rows have %zu fields, and the first line has %zu: words with a blank "
                  "between them must stand in quotes; if the first field names the row, put a name "
                  "for it into the first line",
                  s->told->name, n + 1, n),
           false;
}

/* Sets *shift to 1 if each row begins with a field that has no name in the first line, else to 0.
 * Returns false, with a message, if that is not clear. */
static bool find_shift(const struct sample *s, size_t *shift) {
    const size_t n = s->row[0].count;
    bool is_filled = false, is_words = true, is_thousands = true, is_parted = true;
    bool are_labels = true;
    const bool is_labelled = are_labelled(s);
    *shift = is_labelled;
    if (s->told->no_header) return true;
    for (size_t i = 1; i < s->rows; i++) {
        if (s->row[i].count != n + 1) return true;
        is_filled |= s->row[i].filled == n + 1;
        is_words &= ends_in_words(s, i);
        is_thousands &= may_be_parted(s, i, true) && is_tight(s, i);
        is_parted &= may_be_parted(s, i, false);
        are_labels &= has_two_words(s, i);
    }
    if (s->rows < 2 || !is_filled) return true;
    if (!is_labelled && (is_words || !has_some_names(s))) return true;
    const bool is_number = is_thousands || is_parted;
    if (!is_labelled && (may_have_blanks(s) || (are_labels && !is_number))) return tell_words(s);
    if (is_number)
        return failed("%s: all rows have %zu fields, and the first line has %zu: numbers such as "
                      "%s must stand in quotes; if the first field names the row, put a name for "
                      "it into the first line",
                      s->told->name, n + 1, n,
                      s->delimiter == BY_BLANKS ? "1 234"
                      : is_thousands            ? "1,234.50"
                                                : "1,5"),
               false;
    *shift = 1;
    return true;
}

/* ---- The header ---- */

/* Evidence that the first row is a header: how many of its fields are of one kind above fields of another. */
struct evidence {
    size_t names_above_numbers, others_above_numbers, texts;
    size_t dates;             /* of the others above numbers */
    size_t numbers, years;    /* numbers above numbers; those that may be years above others */
    bool rise, fall, is_near; /* these numbers rise; fall; differ by at most ten */
    bool are_next;            /* differ by one */
    double last;
    bool is_counted; /* the first name is empty, and the others are 0, 1, 2 ... */
};

/* Finds the kinds of words that the later rows have in field i. */
static void look_below(const struct sample *s, size_t i, bool *has_numbers, bool *has_names,
                       bool *are_years) {
    *has_numbers = *has_names = false;
    *are_years = true;
    for (size_t row = 1; row < s->rows; row++) {
        double x = 0;
        if (i >= s->row[row].count) continue;
        const struct field *f = field_of(s, row, i);
        const enum kind kind = kind_of(s, f, &x);
        *has_numbers |= kind == NUMBER;
        *has_names |= kind == NAME || kind == OTHER;
        if (kind == NUMBER) *are_years &= x >= YEAR_FIRST && x <= YEAR_LAST;
    }
}

static bool is_whole(double x) {
    return x >= -1e15 && x <= 1e15 && (double)(int64_t)x == x;
}

static bool is_date(const struct field *f) {
    char word[WORD_BYTES + DECIMAL_SPARE];
    return word_of(f, word) && spelling_is_date(word);
}

static void weigh_number(struct evidence *e, double x, bool are_years) {
    if (e->numbers) {
        const double step = x - e->last;
        e->rise &= step > 0;
        e->fall &= step < 0;
        e->is_near &= step >= -10 && step <= 10;
        e->are_next &= step == -1 || step == 1;
    }
    e->years += is_whole(x) && x >= YEAR_FIRST && x <= YEAR_LAST && !are_years;
    e->last = x;
    e->numbers++;
}

static struct evidence weigh(const struct sample *s, size_t shift) {
    struct evidence e = {
        .rise = true, .fall = true, .is_near = true, .are_next = true, .is_counted = true};
    const struct row *first = &s->row[0];
    for (size_t i = 0; i < first->count; i++) {
        const struct field *f = field_of(s, 0, i);
        bool has_numbers, has_names, are_years;
        double x = 0;
        enum kind kind = kind_of(s, f, &x);
        look_below(s, i + shift, &has_numbers, &has_names, &are_years);
        const bool is_number = kind == NUMBER;
        e.is_counted &= i ? is_number && x == (double)(i - 1) : kind == EMPTY;
        if (!has_numbers || has_names)
            e.texts += kind == NAME || kind == OTHER || kind == EMPTY;
        else if (kind == NAME ||
                 (f->is_quoted && is_number && !field_of(s, s->rows - 1, i + shift)->is_quoted))
            e.names_above_numbers++;
        else if (kind == OTHER) {
            e.others_above_numbers++;
            e.dates += is_date(f);
        } else if (is_number)
            weigh_number(&e, x, are_years);
    }
    e.is_counted &= first->count > 1;
    return e;
}

static bool is_unclear(const struct sample *s) {
    char shown[QUOTED_BYTES];
    const struct row *first = &s->row[0];
    quoted(first->text,
           (size_t)(line_end(first->text, field_of(s, 0, first->count - 1)->last) - first->text),
           shown);
    return failed(
               "%s: the first line, '%s', may have names or numbers; say --header or --no-header",
               s->told->name, shown),
           false;
}

/* Returns true if a number given for a column is a name: a field of the first line equals it, and
 * the line has fewer fields than that number. */
static bool is_named_by_number(const struct sample *s) {
    for (size_t n = 0; n < s->told->number_count; n++) {
        const char *word = s->told->number[n];
        const size_t length = strlen(word);
        if (strtoull(word, NULL, 10) <= s->row[0].count) continue;
        for (size_t i = 0; i < s->row[0].count; i++) {
            const struct field *f = field_of(s, 0, i);
            if ((size_t)(f->last - f->first) == length && memcmp(f->first, word, length) == 0)
                return true;
        }
    }
    return false;
}

static bool find_header(const struct sample *s, size_t shift, bool *has_header) {
    const struct form_told *told = s->told;
    *has_header = told->header || told->needs_header;
    if (told->header || told->needs_header || told->no_header || s->rows < 1) return true;
    *has_header = shift || is_named_by_number(s);
    if (*has_header || s->rows < 2) return true;
    const struct evidence e = weigh(s, shift);
    const bool is_sequence = e.numbers < 2 || e.rise || e.fall;
    const bool are_years = e.numbers && e.years == e.numbers;
    /* Numbers beside a word above numbers are data, unless they count, or the words are more. */
    const bool do_count = e.numbers > 2 ? e.is_near : e.numbers == 2 && e.are_next;
    const bool are_names = !e.numbers || are_years || do_count ||
                           (e.names_above_numbers > 2 && e.names_above_numbers > e.numbers);
    if (e.is_counted) return *has_header = true;
    if (e.names_above_numbers)
        return is_sequence && are_names ? (*has_header = true) : is_unclear(s);
    if (e.others_above_numbers) {
        if (e.numbers && !are_years)
            return true; /* a damaged number: reported when its cell is read */
        return e.dates == e.others_above_numbers ? (*has_header = true) : is_unclear(s);
    }
    const bool are_years_in_order = are_years && e.numbers > 1 && e.is_near && is_sequence;
    if (!are_years || (!e.texts && !are_years_in_order)) return true;
    return e.texts && are_years_in_order ? (*has_header = true) : is_unclear(s);
}

/* Finds the next word of the comment line. Returns the byte behind it, or NULL at the end. */
static const char *comment_word(const struct sample *s, const char *at, struct field *f) {
    if (s->delimiter == BY_BLANKS) return field_between_blanks(at, s->comment_end, f);
    if (at > s->comment_end) return NULL;
    while (at < s->comment_end && *at == ' ')
        at++;
    f->first = at;
    while (at < s->comment_end && *at != s->delimiter)
        at++;
    for (f->last = at; f->last > f->first && f->last[-1] == ' ';)
        f->last--;
    return at + 1;
}

/* Returns whether a column of this name is asked for. */
static bool is_asked(const struct sample *s, const struct field *f) {
    for (size_t n = 0; n < s->told->name_count; n++)
        if (strlen(s->told->column[n]) == (size_t)(f->last - f->first) &&
            memcmp(s->told->column[n], f->first, (size_t)(f->last - f->first)) == 0)
            return true;
    return false;
}

/* Returns whether the names stand in the comment line above the first row, as NumPy's savetxt() writes them: it has as many words
 * as the row, which has numbers alone, or one of them is asked for. */
static bool has_named_comment(const struct sample *s) {
    const struct row *first = &s->row[0];
    size_t words = 0;
    bool has_asked = false, is_text = false;
    struct field f;
    if (!s->comment || !s->rows || s->told->no_header) return false;
    for (size_t i = 0; i < first->count; i++) {
        if (is_asked(s, field_of(s, 0, i))) return false;
        is_text |= kind_of(s, field_of(s, 0, i), NULL) >= OTHER;
    }
    const char *at = s->comment + strspn(s->comment, " \t#");
    while ((at = comment_word(s, at, &f))) {
        words++;
        has_asked |= is_asked(s, &f);
    }
    return words == first->count && (has_asked || !is_text);
}

/* ---- Blanks between thousands ---- */

/* Returns true if a field and the one before it may be one number, such as 59 000: one blank parts
 * them, the last column does not hold both, and not each stands below its own name. goes_on: the
 * field before is joined, too. */
static bool may_be_joined(const struct sample *s, size_t row, size_t i, size_t shift,
                          bool goes_on) {
    const size_t n = s->row[0].count;
    const struct field *f = field_of(s, row, i), *before = field_of(s, row, i - 1);
    if (i <= shift || gap_before(s, row, i) > 1 || (*before->first == '0' && !goes_on) ||
        !are_digits(before, 1, 3, true) || !are_digits(f, 3, 3, false))
        return false;
    if (field_place(s->row[row].text, before->first) >=
        field_place(s->row[0].text, field_of(s, 0, n - 1)->first))
        return false;
    return i - shift >= n || !is_below(s, row, i - 1, i - 1 - shift) ||
           !is_below(s, row, i, i - shift);
}

/* Returns the first field of a row that may be joined to the one before it. Returns 0 if there is
 * none, or if two other fields are as close and neither is a word: then so may be all columns. */
static size_t joined_field(const struct sample *s, size_t row, size_t shift) {
    size_t found = 0, joined = 0;
    for (size_t i = 1; i < s->row[row].count; i++)
        if (may_be_joined(s, row, i, shift, joined && joined + 1 == i)) {
            joined = i;
            if (!found) found = i;
        } else if (gap_before(s, row, i) < 2 && kind_of(s, field_of(s, row, i - 1), NULL) != NAME &&
                   kind_of(s, field_of(s, row, i), NULL) != NAME)
            return 0;
    return found;
}

/* Returns true if a field and the one before it stand below one name, the same, alone. */
static bool are_below_one(const struct sample *s, size_t row, size_t field) {
    size_t names = 0;
    for (size_t i = 0; i < s->row[0].count; i++)
        names += is_below(s, row, field - 1, i) || is_below(s, row, field, i);
    return names == 1;
}

/* Fails if all rows of an aligned table may have a number such as 59 000, or if one has it below one
 * name. -F blank says that it has two fields. */
static bool check_thousands(const struct sample *s, size_t shift) {
    size_t row, field = 0;
    if (s->delimiter != BY_BLANKS || s->told->delimiter || s->rows < 2 || !is_aligned(s))
        return true;
    bool all = true, one = false;
    for (row = 1; row < s->rows && !one; row++) {
        field = joined_field(s, row, shift);
        one = field && are_below_one(s, row, field);
        all &= field > 0;
    }
    if (!one && !all) return true;
    const char *first = field_of(s, row - 1, field - 1)->first;
    return failed(
               "%s: '%.*s' may be one number or two fields; -F blank takes it for two; of columns "
               "with two blanks or more between them, sed 's/   */\\t/g' FILE | tally ... "
               "--thousands ' ' reads it",
               s->told->name, (int)(field_of(s, row - 1, field)->last - first), first),
           false;
}

/* ---- All of it ---- */

/* Skips a first line such as sep=; which Excel understands, and takes the delimiter from it. */
static void skip_separator(struct form *out, char *delimiter, const char *text, const char *end) {
    const char *last = line_end(text, end);
    if (last - text != 5 || memcmp(text, "sep=", 4) != 0 || last == end) return;
    *delimiter = text[4];
    out->lines = 1;
    last += *last == '\r' && last + 1 < end && last[1] == '\n';
    out->skip = (size_t)(last + 1 - text);
}

static bool find(struct sample *s, const char *text, const char *end, struct form *out) {
    char said = s->told->delimiter;
    *out = (struct form){.delimiter = ','};
    if (!said) skip_separator(out, &said, text, end);
    text += out->skip;
    if (!drawn_check(s->told->name, s->told->spelling, text, end, out->lines + 1)) return false;
    if (said)
        s->delimiter = said;
    else if (!find_delimiter(s, text, end))
        return false;
    out->delimiter = s->delimiter;
    if (!part_rows(s, text, end)) return false;
    if (!s->rows) return find_header(s, 0, &out->has_header);
    if (!find_shift(s, &out->shift) || !find_header(s, out->shift, &out->has_header)) return false;
    if (out->has_header && !check_thousands(s, out->shift)) return false;
    if (!out->has_header) out->shift = 0;
    if (out->has_header && has_named_comment(s)) {
        out->comment = s->comment;
        out->comment_end = s->comment_end;
        out->has_header = false;
        out->shift = 0;
    }
    out->width = s->row[0].count + out->shift;
    return true;
}

bool form_find(const struct form_told *told, const char *text, size_t length, struct form *out) {
    struct sample *s = calloc(1, sizeof *s);
    if (!s) return failed("no memory to read %s", told->name), false;
    s->told = told;
    const bool found = find(s, text, text + length, out);
    free(s->field);
    free(s);
    return found;
}
