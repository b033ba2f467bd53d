/*
 * columns.c - see columns.h. libcsv parses.
 */
#include "columns.h"

#include "message.h"
#include "names.h"
#include "progress.h"
#include "text.h"
#include "types.h"

#include <csv.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BYTES = 1 << 18, CELL_BYTES = 4096, NAMES_BYTES = 4096 };
static const size_t NOWHERE = SIZE_MAX;

struct column {
    const char *name; /* not ended by a zero byte */
    size_t length;
    size_t field;   /* where it is in a row, from 0 */
    bool is_in_row; /* the row that is being read has it */
    size_t bytes;   /* of the cell */
    char cell[CELL_BYTES + DECIMAL_SPARE];
};

struct table {
    const struct columns *columns;
    struct source *source;
    struct groups *groups;
    uint64_t line; /* the line that is being read, from 1 */
    uint64_t row_line;
    size_t field; /* of the row, from 0 */
    bool in_header, failed;
    bool apart, in_pairs; /* of the value columns: each has groups of its own, or two are x and y */
    size_t count, values; /* of the columns that are looked at; the first of them have the values */
    struct column *column;
    char *key; /* with room for the keys of all columns */
    size_t names_bytes;
    char names[NAMES_BYTES]; /* of the header, for messages */
};

static bool wrong(struct table *t) {
    t->failed = true;
    return false;
}

/* ---- Which columns ---- */

size_t columns_count(const char *text) {
    size_t count = 0;
    for (const char *at = text; at; count++) {
        const size_t length = strcspn(at, ",");
        if (!length || count == COLUMNS_MOST) return 0;
        at = at[length] ? at + length + 1 : NULL;
    }
    return count;
}

bool columns_apart(const struct columns *columns) {
    return !columns->in_pairs && columns_count(columns->value) > 1;
}

/* A column that is given by its number; NOWHERE for a name. */
static size_t by_number(const struct column *c) {
    size_t number = 0;
    for (size_t i = 0; i < c->length; i++) {
        if (c->name[i] < '0' || c->name[i] > '9' || number > 1000000) return NOWHERE;
        number = 10 * number + (size_t)(c->name[i] - '0');
    }
    return number - 1; /* of 0 NOWHERE, which is no name either */
}

static void add_columns(struct table *t, const char *text) {
    for (size_t left = columns_count(text); left; left--) {
        struct column *c = &t->column[t->count++];
        c->name = text;
        c->length = strcspn(text, ",");
        c->field = by_number(c);
        t->in_header |= c->field == NOWHERE;
        text += c->length + 1;
    }
}

/* ---- The header ---- */

static void see_name(struct table *t, const char *name, size_t length) {
    for (size_t i = 0; i < t->count; i++) {
        struct column *c = &t->column[i];
        if (c->field == NOWHERE && c->length == length && memcmp(name, c->name, length) == 0)
            c->field = t->field;
    }
    if (t->names_bytes + length + 2 > NAMES_BYTES) return;
    if (t->names_bytes) t->names[t->names_bytes++] = ' ';
    memcpy(t->names + t->names_bytes, name, length);
    t->names_bytes += length;
    t->names[t->names_bytes] = 0;
}

static bool no_column(struct table *t, const struct column *c) {
    char name[128], near[64];
    snprintf(name, sizeof name, "%.*s", (int)c->length, c->name);
    if (names_nearest(name, t->names, near, sizeof near))
        failed("%s has no column %s; did you mean %s?", t->source->name, name, near);
    else
        failed("%s has no column %s; its columns are %.400s", t->source->name, name, t->names);
    return wrong(t);
}

static bool end_header(struct table *t) {
    t->in_header = false;
    for (size_t i = 0; i < t->count; i++)
        if (t->column[i].field == NOWHERE) return no_column(t, &t->column[i]);
    return true;
}

/* ---- Rows ---- */

static bool bad_cell(struct table *t, const struct column *c, enum decimal_result result) {
    char shown[QUOTED_BYTES];
    const char *type = t->groups->is_decimal ? "decimal" : tally_type_name(t->source->type);
    const int length = (int)c->length;
    quoted(c->cell, c->bytes, shown);
    if (result == DECIMAL_RANGE)
        failed("%s:%" PRIu64 ": %s does not fit %s", t->source->name, t->row_line, shown, type);
    else if (!c->bytes || text_is_missing(c->cell))
        failed("%s:%" PRIu64
               ": column %.*s has no number, but '%s'; --skip-na leaves such rows out",
               t->source->name, t->row_line, length, c->name, shown);
    else if (t->row_line == 1 && !t->columns->has_header)
        failed("%s:1: '%s' is no %s number; where the first line has names, add --header",
               t->source->name, shown, type);
    else
        failed("%s:%" PRIu64 ": '%s' in column %.*s is no %s number", t->source->name, t->row_line,
               shown, length, c->name, type);
    return wrong(t);
}

static bool is_left_out(const struct table *t, const struct column *c) {
    return t->source->how.skip_na && (!c->bytes || text_is_missing(c->cell));
}

static bool read_cell(struct table *t, const struct column *c, uint64_t *element) {
    enum decimal_result result = DECIMAL_MALFORMED;
    if (strlen(c->cell) == c->bytes) {
        const char *end = decimal_quick(t->source->type, c->cell, element);
        result = end && !*end ? DECIMAL_OK : decimal_read(t->source->type, c->cell, element);
    }
    return result == DECIMAL_OK || bad_cell(t, c, result);
}

/* Adds a cell, or the two of a pair, to the group of the row's key. */
static bool add_value(struct table *t, const struct column *c, size_t key_bytes) {
    uint64_t x, y;
    struct group *group = groups_find(t->groups, t->key, key_bytes);
    if (!group) return wrong(t);
    if (is_left_out(t, c) || (t->in_pairs && is_left_out(t, &c[1]))) return true;
    if (t->groups->is_decimal) {
        const enum decimal_result result =
            strlen(c->cell) == c->bytes ? money_add(group->money, c->cell) : DECIMAL_MALFORMED;
        if (result != DECIMAL_OK) return bad_cell(t, c, result);
    } else if (!read_cell(t, c, &x) || (t->in_pairs && !read_cell(t, &c[1], &y))) {
        return false;
    } else if (!group_add(t->groups, group, &x, t->in_pairs ? &y : NULL)) {
        return wrong(t);
    }
    t->source->elements++;
    return true;
}

/* Writes the key's fields, each ended by a zero byte but for the last; returns their bytes. */
static size_t make_key(const struct table *t) {
    size_t used = 0;
    for (size_t i = t->values; i < t->count; i++) {
        if (i > t->values) t->key[used++] = 0;
        memcpy(t->key + used, t->column[i].cell, t->column[i].bytes);
        used += t->column[i].bytes;
    }
    return used;
}

/* Adds the name of a column to the key's fields. */
static size_t add_name(const struct table *t, size_t used, const struct column *c) {
    if (t->count > t->values) t->key[used++] = 0;
    memcpy(t->key + used, c->name, c->length);
    return used + c->length;
}

static bool check_row(struct table *t) {
    for (size_t i = 0; i < t->count; i++) {
        const struct column *c = &t->column[i];
        if (!c->is_in_row) {
            failed("%s:%" PRIu64 ": the line has %zu field%s, and no column %.*s", t->source->name,
                   t->row_line, t->field, t->field == 1 ? "" : "s", (int)c->length, c->name);
            return wrong(t);
        }
        if (i < t->values || !memchr(c->cell, 0, c->bytes)) continue;
        failed("%s:%" PRIu64 ": the key in column %.*s has a zero byte", t->source->name,
               t->row_line, (int)c->length, c->name);
        return wrong(t);
    }
    return true;
}

static bool end_row(struct table *t) {
    if (t->in_header) return end_header(t);
    if (!check_row(t)) return false;
    const size_t used = make_key(t);
    if (!t->apart) return add_value(t, t->column, used);
    for (size_t i = 0; i < t->values; i++)
        if (!add_value(t, &t->column[i], add_name(t, used, &t->column[i]))) return false;
    return true;
}

static bool keep(struct table *t, struct column *c, const char *data, size_t length) {
    if (length >= CELL_BYTES) {
        failed("%s:%" PRIu64 ": a field is longer than %d bytes", t->source->name, t->row_line,
               CELL_BYTES - 1);
        return wrong(t);
    }
    memcpy(c->cell, data, length);
    c->cell[length] = 0;
    c->bytes = length;
    return c->is_in_row = true;
}

/* libcsv calls this with each field ... */
static void on_field(void *data, size_t length, void *context) {
    struct table *t = context;
    const char *text = data ? data : "";
    if (t->failed) return;
    if (t->field == 0) t->row_line = t->line;
    for (size_t i = 0; i < length; i++)
        t->line += text[i] == '\n';
    if (t->in_header) see_name(t, text, length);
    for (size_t i = 0; i < t->count && !t->in_header && !t->failed; i++)
        if (t->column[i].field == t->field) keep(t, &t->column[i], text, length);
    t->field++;
}

/* ... and this at each line's end, also of a line without anything. */
static void on_row(int end, void *context) {
    struct table *t = context;
    if (!t->failed && t->field) end_row(t);
    if (end == '\n') t->line++;
    t->field = 0;
    for (size_t i = 0; i < t->count; i++)
        t->column[i].is_in_row = false;
}

/* ---- The whole table ---- */

/* By the first line, but for what is in quotes. */
static char find_delimiter(const char *text, size_t length) {
    static const char known[] = ",\t;";
    bool seen[sizeof known] = {false}, quoted = false;
    for (size_t i = 0; i < length && (quoted || text[i] != '\n'); i++) {
        const char *at = text[i] ? strchr(known, text[i]) : NULL;
        if (text[i] == '"') quoted = !quoted;
        if (at && !quoted) seen[at - known] = true;
    }
    for (size_t i = 0; i < sizeof known - 1; i++)
        if (seen[i]) return known[i];
    return ',';
}

/* So that a tab that parts fields is not taken for a blank. */
static int is_blank(unsigned char c) {
    return c == ' ';
}

static bool parse_all(struct table *t, struct csv_parser *parser, char *buffer) {
    size_t got, start;
    bool is_first = true;
    do {
        if (!source_read(t->source, buffer, READ_BYTES, &got)) return false;
        progress_add(got);
        start = is_first && got >= 3 && memcmp(buffer, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        if (is_first)
            csv_set_delim(parser,
                          (unsigned char)(t->columns->delimiter ? t->columns->delimiter
                                                                : find_delimiter(buffer, got)));
        if (is_first && memchr(buffer, 0, got))
            return failed("%s is no text, but -c wants a table", t->source->name), false;
        is_first = false;
        if (csv_parse(parser, buffer + start, got - start, on_field, on_row, t) != got - start)
            return failed("%s:%" PRIu64 ": %s", t->source->name, t->line,
                          csv_strerror(csv_error(parser))),
                   false;
    } while (got && !t->failed);
    if (t->failed) return false;
    csv_set_opts(parser, CSV_REPALL_NL | CSV_STRICT | CSV_STRICT_FINI);
    if (csv_fini(parser, on_field, on_row, t) != 0)
        return failed("%s:%" PRIu64 ": a quote is opened in this line and not closed",
                      t->source->name, t->field ? t->row_line : t->line),
               false;
    if (!t->failed && t->in_header)
        return failed("%s is empty: it has no line with the columns' names", t->source->name),
               false;
    return !t->failed;
}

static bool parse(struct table *t) {
    struct csv_parser parser;
    char *buffer = malloc(READ_BYTES);
    if (!buffer || csv_init(&parser, CSV_REPALL_NL) != 0)
        return free(buffer), failed("no memory to read %s", t->source->name), false;
    csv_set_space_func(&parser, is_blank);
    bool done = parse_all(t, &parser, buffer);
    csv_free(&parser);
    free(buffer);
    return done;
}

/* Columns that are reduced apart have a group each, also where there are no rows; so none is named twice. */
static bool begin_groups(struct table *t) {
    for (size_t i = 0; i < t->values && t->apart; i++) {
        const struct column *c = &t->column[i];
        for (size_t k = 0; k < i; k++)
            if (t->column[k].length == c->length &&
                memcmp(t->column[k].name, c->name, c->length) == 0)
                return failed("-c names column %.*s twice", (int)c->length, c->name), false;
        if (t->values == t->count && !groups_find(t->groups, c->name, c->length)) return false;
    }
    return true;
}

bool columns_feed(const struct columns *columns, struct source *source, struct groups *groups) {
    struct table *t = calloc(1, sizeof *t);
    const size_t most = 1 + columns_count(columns->value) + columns_count(columns->by);
    struct column *column = calloc(most, sizeof *column);
    char *key = malloc(most * CELL_BYTES + strlen(columns->value));
    bool fed = t && column && key;
    if (!fed) failed("no memory to read %s", source->name);
    if (fed) {
        *t = (struct table){.columns = columns, .source = source, .groups = groups, .line = 1};
        t->in_header = columns->has_header;
        t->column = column;
        t->key = key;
        t->apart = columns_apart(columns);
        t->in_pairs = columns->in_pairs;
        add_columns(t, columns->value);
        t->values = t->count;
        add_columns(t, columns->by);
        fed = begin_groups(t) && parse(t);
    }
    free(t);
    free(column);
    free(key);
    return fed;
}
