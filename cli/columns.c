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

enum { READ_BYTES = 1 << 18, CELL_BYTES = 4096, KEY_BYTES = 4096, NAMES_BYTES = 4096 };
static const size_t NOWHERE = SIZE_MAX;

struct table {
    const struct columns *columns;
    struct source *source;
    struct groups *groups;
    uint64_t line; /* the line that is being read, from 1 */
    uint64_t row_line;
    size_t field; /* of the row, from 0 */
    size_t value, by;
    bool in_header, failed;
    bool has_value, has_key;
    size_t value_bytes, key_bytes, names_bytes;
    char cell[CELL_BYTES + 16]; /* decimal_quick() looks beyond */
    char key[KEY_BYTES];
    char names[NAMES_BYTES]; /* of the header, for messages */
};

static bool wrong(struct table *t) {
    t->failed = true;
    return false;
}

/* A column that is given by its number; NOWHERE for a name. */
static size_t by_number(const char *text) {
    char *end;
    if (*text < '0' || *text > '9') return NOWHERE;
    unsigned long number = strtoul(text, &end, 10);
    return *end || number == 0 || number > 1000000 ? NOWHERE : number - 1;
}

/* ---- The header ---- */

static void see_name(struct table *t, const char *name, size_t length) {
    if (t->value == NOWHERE && strlen(t->columns->value) == length &&
        memcmp(name, t->columns->value, length) == 0)
        t->value = t->field;
    if (t->columns->by && t->by == NOWHERE && strlen(t->columns->by) == length &&
        memcmp(name, t->columns->by, length) == 0)
        t->by = t->field;
    if (t->names_bytes + length + 2 > NAMES_BYTES) return;
    if (t->names_bytes) t->names[t->names_bytes++] = ' ';
    memcpy(t->names + t->names_bytes, name, length);
    t->names_bytes += length;
    t->names[t->names_bytes] = 0;
}

static bool no_column(struct table *t, const char *name) {
    char near[64];
    if (names_nearest(name, t->names, near, sizeof near))
        failed("%s has no column %s; did you mean %s?", t->source->name, name, near);
    else
        failed("%s has no column %s; its columns are %.400s", t->source->name, name, t->names);
    return wrong(t);
}

static bool end_header(struct table *t) {
    t->in_header = false;
    if (t->value == NOWHERE) return no_column(t, t->columns->value);
    if (t->columns->by && t->by == NOWHERE) return no_column(t, t->columns->by);
    return true;
}

/* ---- Rows ---- */

static bool bad_cell(struct table *t, enum decimal_result result) {
    char shown[QUOTED_BYTES];
    const char *type = t->groups->is_decimal ? "decimal" : tally_type_name(t->source->type);
    quoted(t->cell, t->value_bytes, shown);
    if (result == DECIMAL_RANGE)
        failed("%s:%" PRIu64 ": %s does not fit %s", t->source->name, t->row_line, shown, type);
    else if (!t->value_bytes || text_is_missing(t->cell))
        failed("%s:%" PRIu64 ": column %s has no number, but '%s'; --skip-na leaves such rows out",
               t->source->name, t->row_line, t->columns->value, shown);
    else if (t->row_line == 1 && !t->columns->has_header)
        failed("%s:1: '%s' is no %s number; where the first line has names, add --header",
               t->source->name, shown, type);
    else
        failed("%s:%" PRIu64 ": '%s' in column %s is no %s number", t->source->name, t->row_line,
               shown, t->columns->value, type);
    return wrong(t);
}

static bool add_value(struct table *t, struct group *group) {
    uint64_t element;
    enum decimal_result result;
    if (t->source->how.skip_na && (!t->value_bytes || text_is_missing(t->cell))) return true;
    if (strlen(t->cell) != t->value_bytes) return bad_cell(t, DECIMAL_MALFORMED);
    if (t->groups->is_decimal) {
        result = money_add(group->money, t->cell);
    } else {
        const char *end = decimal_quick(t->source->type, t->cell, &element);
        result = end && !*end ? DECIMAL_OK : decimal_read(t->source->type, t->cell, &element);
        if (result == DECIMAL_OK && !group_add(t->groups, group, &element)) return wrong(t);
    }
    if (result != DECIMAL_OK) return bad_cell(t, result);
    t->source->elements++;
    return true;
}

static bool end_row(struct table *t) {
    if (t->in_header) return end_header(t);
    if (!t->has_value || (t->columns->by && !t->has_key)) {
        failed("%s:%" PRIu64 ": the line has %zu field%s, and no column %s", t->source->name,
               t->row_line, t->field, t->field == 1 ? "" : "s",
               t->has_value ? t->columns->by : t->columns->value);
        return wrong(t);
    }
    struct group *group = groups_find(t->groups, t->key, t->key_bytes);
    return group ? add_value(t, group) : wrong(t);
}

static bool keep(struct table *t, char *to, size_t room, const char *data, size_t length) {
    if (length >= room) {
        failed("%s:%" PRIu64 ": a field is longer than %zu bytes", t->source->name, t->row_line,
               room - 1);
        return wrong(t);
    }
    memcpy(to, data, length);
    to[length] = 0;
    return true;
}

/* libcsv calls this with each field ... */
static void on_field(void *data, size_t length, void *context) {
    struct table *t = context;
    const char *text = data ? data : "";
    if (t->failed) return;
    if (t->field == 0) t->row_line = t->line;
    for (size_t i = 0; i < length; i++)
        t->line += text[i] == '\n';
    if (t->in_header) {
        see_name(t, text, length);
    } else if (t->field == t->value) {
        t->has_value = keep(t, t->cell, CELL_BYTES, text, length);
        t->value_bytes = length;
    }
    if (!t->in_header && t->field == t->by) {
        t->has_key = keep(t, t->key, KEY_BYTES, text, length);
        t->key_bytes = length;
    }
    t->field++;
}

/* ... and this at each line's end, also of a line without anything. */
static void on_row(int end, void *context) {
    struct table *t = context;
    if (!t->failed && t->field) end_row(t);
    if (end == '\n') t->line++;
    t->field = 0;
    t->has_value = t->has_key = false;
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

bool columns_feed(const struct columns *columns, struct source *source, struct groups *groups) {
    struct table *t = calloc(1, sizeof *t);
    if (!t) return failed("no memory to read %s", source->name), false;
    t->columns = columns;
    t->source = source;
    t->groups = groups;
    t->line = 1;
    t->value = by_number(columns->value);
    t->by = columns->by ? by_number(columns->by) : NOWHERE;
    t->in_header = columns->has_header || t->value == NOWHERE || (columns->by && t->by == NOWHERE);
    bool fed = parse(t);
    free(t);
    return fed;
}
