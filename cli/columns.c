/*
 * columns.c - see columns.h. Several threads read pieces of the table (pieces.c, rows.c).
 *
 * A piece is taken to begin with a row. Where a row goes on from the piece before, in quotes or because it is very
 * long, what was made of the piece is dropped, and the reading of the one before goes on in it. The elements of a piece
 * are handed on by key, piece by piece: so every group gets its elements in the order of their rows, and groups come
 * in order of first appearance, whatever the threads.
 */
#include "columns.h"

#include "message.h"
#include "names.h"
#include "rows.h"
#include "text.h"
#include "types.h"

#include <csv.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_BYTES = 4096 };
static const size_t NOWHERE = SIZE_MAX;

struct table {
    const struct columns *columns;
    struct source *source;
    struct groups *groups;
    struct layout layout;
    bool apart; /* each value column has groups of its own */

    /* The header. */
    bool in_header, failed;
    struct csv_parser parser;
    size_t field;
    uint64_t header_lines, header_line; /* line ends read; where the header begins, from 1 */
    size_t names_bytes;
    char names[NAMES_BYTES]; /* for messages */

    /* In order. */
    uint64_t line; /* the number of the line that the next piece begins with, from 1 */
    struct progress_of_rows *open; /* the row that goes on in it, or NULL; owned */
    char *key;                     /* with room for a key and a column's name; owned */
};

static bool wrong(struct table *t) {
    t->failed = true;
    return false;
}

static bool no_memory(const struct table *t) {
    return failed("no memory to read %s", t->source->name), false;
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

bool columns_differ(const struct columns *columns) {
    for (const char *at = columns_apart(columns) ? columns->value : NULL, *other; at;) {
        const size_t length = strcspn(at, ",");
        for (other = columns->value; other < at; other += strcspn(other, ",") + 1)
            if (strcspn(other, ",") == length && memcmp(other, at, length) == 0)
                return failed("-c names column %.*s twice", (int)length, at), false;
        at = at[length] ? at + length + 1 : NULL;
    }
    return true;
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
        struct column *c = &t->layout.column[t->layout.count++];
        c->name = text;
        c->length = strcspn(text, ",");
        c->field = by_number(c);
        t->in_header |= c->field == NOWHERE;
        text += c->length + 1;
    }
}

static int compare_fields(const void *a, const void *b) {
    const struct column *const *one = a, *const *other = b;
    return ((*one)->field > (*other)->field) - ((*one)->field < (*other)->field);
}

static void order_columns(struct layout *l) {
    for (size_t i = 0; i < l->count; i++)
        l->order[i] = &l->column[i];
    qsort(l->order, l->count, sizeof *l->order, compare_fields);
}

/* ---- The header ---- */

/* libcsv calls this with each name ... */
static void on_name(void *data, size_t length, void *context) {
    struct table *t = context;
    const char *name = data ? data : "";
    for (size_t i = 0; i < t->layout.count; i++) {
        struct column *c = &t->layout.column[i];
        if (c->field == NOWHERE && c->length == length && memcmp(name, c->name, length) == 0)
            c->field = t->field;
    }
    t->field++;
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
    for (size_t i = 0; i < t->layout.count; i++)
        if (t->layout.column[i].field == NOWHERE) return no_column(t, &t->layout.column[i]);
    order_columns(&t->layout);
    return true;
}

/* ... and this at each line's end, also of a line without anything. */
static void on_names_end(int end, void *context) {
    struct table *t = context;
    if (t->field) end_header(t);
    t->field = 0;
    t->header_line = t->header_lines + (end == '\n') + 1;
}

/* Reads on, up to the header's end or the piece's; the piece then begins behind it. *lines becomes how many line ends
 * that were. */
static bool read_header(struct table *t, struct piece *piece, uint64_t *lines) {
    const uint64_t before = t->header_lines;
    while (t->in_header && !t->failed && piece->begin < piece->end) {
        const char *at = piece->text + piece->begin;
        const size_t length = piece->end - piece->begin;
        size_t n = 0;
        while (n < length && at[n] != '\n' && at[n] != '\r')
            n++;
        n += n < length; /* one row at most ends with that */
        if (csv_parse(&t->parser, at, n, on_name, on_names_end, t) != n) return no_memory(t);
        t->header_lines += at[n - 1] == '\n';
        piece->begin += n;
    }
    *lines = t->header_lines - before;
    return !t->failed;
}

/* To be called at the table's end. */
static bool has_header(struct table *t) {
    if (!t->in_header) return true;
    csv_set_opts(&t->parser, CSV_REPALL_NL | CSV_STRICT | CSV_STRICT_FINI);
    if (csv_fini(&t->parser, on_name, on_names_end, t) != 0)
        failed("%s:%" PRIu64 ": a quote is opened in this line and not closed", t->source->name,
               t->header_line);
    else
        failed("%s is empty: it has no line with the columns' names", t->source->name);
    return false;
}

/* ---- What is wrong ---- */

static bool tell_cell(const struct table *t, const struct fault *f, uint64_t line) {
    char shown[QUOTED_BYTES];
    const char *name = t->source->name;
    const char *type = t->layout.is_decimal ? "decimal" : tally_type_name(t->layout.type);
    const int length = (int)f->column->length;
    quoted(f->cell, f->bytes, shown);
    if (f->result == DECIMAL_RANGE)
        failed("%s:%" PRIu64 ": %s does not fit %s", name, line, shown, type);
    else if (!f->bytes || text_is_missing(f->cell))
        failed("%s:%" PRIu64
               ": column %.*s has no number, but '%s'; --skip-na leaves such rows out",
               name, line, length, f->column->name, shown);
    else if (line == 1 && !t->columns->has_header)
        failed("%s:1: '%s' is no %s number; where the first line has names, add --header", name,
               shown, type);
    else
        failed("%s:%" PRIu64 ": '%s' in column %.*s is no %s number", name, line, shown, length,
               f->column->name, type);
    return false;
}

static bool tell(const struct table *t, const struct fault *f) {
    const char *name = t->source->name;
    const uint64_t line = t->line + f->line;
    if (!f->column || f->kind == NO_MEMORY) return no_memory(t); /* all else is in a column */
    const int length = (int)f->column->length;
    if (f->kind == BAD_CELL) return tell_cell(t, f, line);
    if (f->kind == NO_COLUMN)
        failed("%s:%" PRIu64 ": the line has %zu field%s, and no column %.*s", name, line,
               f->fields, f->fields == 1 ? "" : "s", length, f->column->name);
    else if (f->kind == ZERO_IN_KEY)
        failed("%s:%" PRIu64 ": the key in column %.*s has a zero byte", name, line, length,
               f->column->name);
    else
        failed("%s:%" PRIu64 ": a field is longer than %d bytes", name, line, CELL_BYTES - 1);
    return false;
}

/* ---- Handing on ---- */

static bool add_decimals(const struct group *group, const struct keys *keys,
                         const struct short_decimal *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (x[i].places < 0)
            money_add(group->money, keys->text + x[i].digits);
        else
            money_add_short(group->money, x[i].digits, (int)x[i].places);
    return true;
}

/* The group of a piece's key, or of it and a value column. */
static struct group *find_group(struct table *t, const struct keys *keys, size_t key,
                                const struct column *c) {
    size_t used = keys->list[key].bytes;
    memcpy(t->key, keys->text + keys->list[key].at, used);
    if (t->apart) {
        if (t->layout.count > t->layout.values) t->key[used++] = 0;
        memcpy(t->key + used, c->name, c->length);
        used += c->length;
    }
    return groups_find(t->groups, t->key, used);
}

static bool hand_on(struct table *t, const struct made_rows *m) {
    const struct layout *l = &t->layout;
    for (size_t k = 0; k < m->keys.count; k++)
        for (size_t i = 0; i < l->lists; i++) {
            const struct values *v = &m->list[i];
            const size_t first = v->key ? v->first[k] : 0;
            const size_t n = (v->key ? v->first[k + 1] : v->count) - first;
            const unsigned char *x = v->x_sorted + first * l->element;
            const unsigned char *y = v->y ? v->y_sorted + first * l->element : NULL;
            struct group *group = find_group(t, &m->keys, k, &l->column[i]);
            if (!group || !(l->is_decimal ? add_decimals(group, &m->keys, (const void *)x, n)
                                          : group_add(t->groups, group, x, y, n)))
                return false;
            t->source->elements += n;
        }
    return true;
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

/* Finds out about the table, from its first piece. */
static bool begin_table(struct table *t, const struct piece *piece) {
    const size_t size = piece->end + piece->rest - piece->begin;
    const char *text = piece->text + piece->begin;
    t->layout.delimiter =
        t->columns->delimiter ? t->columns->delimiter : find_delimiter(text, size);
    csv_set_delim(&t->parser, (unsigned char)t->layout.delimiter);
    if (!memchr(text, 0, size)) return true;
    return failed("%s is no text, but -c wants a table", t->source->name), false;
}

static bool prepare(void *context, struct piece *piece) {
    struct table *t = context;
    struct made_rows *m = piece->made;
    uint64_t lines;
    if (piece->is_first && !begin_table(t, piece)) return false;
    if (!read_header(t, piece, &lines)) return false;
    if (!rows_prepare(m, &t->layout, t->in_header ? 0 : piece->end - piece->begin))
        return no_memory(t);
    m->header_lines = lines;
    return true;
}

static void make(void *context, struct piece *piece) {
    (void)context;
    if (!piece->continues) rows_read(piece->made, piece);
}

static void release(void *made) {
    rows_release(made);
}

static bool take(struct table *t, const struct piece *piece) {
    struct made_rows *m = piece->made;
    if (t->open)
        rows_read_on(m, piece, t->open);
    else if (piece->continues)
        rows_read(m, piece);
    t->open = NULL;
    if (m->fault.kind) return tell(t, &m->fault);
    t->line += m->lines;
    if (m->goes_on) t->open = rows_leave(m);
    return hand_on(t, m);
}

static bool read_all(struct table *t, struct pieces *pieces) {
    struct piece *piece;
    do {
        if (!pieces_next(pieces, &piece) || (piece && !take(t, piece))) return false;
    } while (piece);
    if (t->open)
        return failed("%s:%" PRIu64 ": a quote is opened in this line and not closed",
                      t->source->name, t->line - rows_open_lines(t->open)),
               false;
    return has_header(t);
}

static bool parse(struct table *t) {
    const struct piece_work work = {.context = t,
                                    .cuts_lines = true,
                                    .made_bytes = sizeof(struct made_rows),
                                    .prepare = prepare,
                                    .make = make,
                                    .release = release};
    struct pieces *pieces;
    if (!rows_open_parser(&t->parser)) return no_memory(t);
    const bool done = pieces_open(t->source, &work, &pieces) && read_all(t, pieces);
    pieces_close(pieces);
    rows_progress_free(t->open);
    csv_free(&t->parser);
    return done;
}

/* Columns that are reduced apart have a group each, also where there are no rows. */
static bool begin_groups(struct table *t) {
    const struct layout *l = &t->layout;
    for (size_t i = 0; i < l->values && t->apart && l->values == l->count; i++)
        if (!groups_find(t->groups, l->column[i].name, l->column[i].length)) return false;
    return true;
}

static bool feed(struct table *t) {
    struct layout *l = &t->layout;
    const struct columns *columns = t->columns;
    t->in_header = columns->has_header;
    t->apart = columns_apart(columns);
    t->line = t->header_line = 1;
    l->type = t->source->type;
    l->is_decimal = t->groups->is_decimal;
    l->skip_na = t->source->how.skip_na;
    l->in_pairs = columns->in_pairs;
    add_columns(t, columns->value);
    l->values = l->count;
    add_columns(t, columns->by);
    l->lists = l->in_pairs ? 1 : l->values;
    l->element = l->is_decimal ? sizeof(struct short_decimal) : tally_type_size(l->type);
    order_columns(l);
    return begin_groups(t) && parse(t);
}

bool columns_feed(const struct columns *columns, struct source *source, struct groups *groups) {
    struct table *t = calloc(1, sizeof *t);
    const size_t most = 1 + columns_count(columns->value) + columns_count(columns->by);
    struct column *column = calloc(most, sizeof *column);
    const struct column **order = calloc(most, sizeof *order);
    char *key = malloc(most * CELL_BYTES + strlen(columns->value));
    bool fed = t && column && order && key;
    if (!fed) failed("no memory to read %s", source->name);
    if (fed) {
        *t = (struct table){.columns = columns, .source = source, .groups = groups, .key = key};
        t->layout.column = column;
        t->layout.order = order;
        fed = feed(t);
    }
    free(t);
    free(column);
    free(order);
    free(key);
    return fed;
}
