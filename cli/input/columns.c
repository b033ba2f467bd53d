/*
 * columns.c - see columns.h. Several threads read chunks of the table (chunks.c, rows.c).
 *
 * A thread assumes that its chunk begins with a row. If a row goes on from the chunk before, in quotes or because it is
 * very long, the result of the chunk is dropped, and the chunk is read again as the rest of that row and what follows
 * it. Elements are handed on by key, chunk by chunk. So every group gets its elements in the order of their rows, and
 * groups come in order of first appearance, for any number of threads.
 */
#include "input/columns.h"

#include "common/message.h"
#include "common/names.h"
#include "common/types.h"
#include "input/fields.h"
#include "input/form.h"
#include "input/rows.h"
#include "input/spelling.h"

#include <csv.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_BYTES = 4096 };
static const size_t NOWHERE = SIZE_MAX;

struct table {
    struct columns *columns;
    struct source *source;
    struct groups *groups;
    struct layout layout;
    bool apart; /* each value column has groups of its own */

    /* The header. */
    bool in_header, failed;
    struct form form;
    struct csv_parser parser;
    bool has_begun;          /* a part of the header line has been read */
    enum quoting quoting;    /* of the header line */
    size_t value_at, key_at; /* the field whose name is the whole text of the list; else NOWHERE */
    size_t field;
    uint64_t header_lines, header_line; /* line ends read; where the header begins, from 1 */
    size_t names_bytes;
    char names[NAMES_BYTES]; /* for messages, with line ends between them */

    /* In order. */
    uint64_t line; /* the number of the line that the next chunk begins with, from 1 */
    struct progress_of_rows *open; /* the row that goes on there, or NULL; owned */
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

bool columns_apart(const struct columns *columns) {
    return !columns->in_pairs && columns->value.count > 1;
}

bool columns_differ(const struct columns *columns) {
    const struct list *value = &columns->value;
    for (size_t i = 1; i < value->count && columns_apart(columns); i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(value->item[i], value->item[k]) == 0)
                return failed("-c names column %s twice", value->item[i]), false;
    return true;
}

/* Returns the field, from 0, of a column that is given by number; NOWHERE for a name. */
static size_t by_number(const char *name) {
    size_t number = 0;
    for (; *name; name++) {
        if (*name < '0' || *name > '9' || number > 1000000) return NOWHERE;
        number = 10 * number + (size_t)(*name - '0');
    }
    return number - 1; /* 0 is no column's number: it gives NOWHERE, as a name does */
}

static void add_columns(struct table *t, const struct list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const struct source *s = t->source;
        struct column *c = &t->layout.column[t->layout.count++];
        *c = (struct column){.name = list->item[i],
                             .length = strlen(list->item[i]),
                             .field = NOWHERE,
                             .type = t->groups->is_decimal ? 0
                                     : s->is_rows          ? s->found.type[i % s->found.count]
                                                           : s->type};
        c->element = c->type ? tally_type_size(c->type) : sizeof(struct short_decimal);
    }
}

/* Makes columns of the lists. */
static void set_columns(struct table *t) {
    struct layout *l = &t->layout;
    l->count = 0;
    add_columns(t, &t->columns->value);
    l->values = l->count;
    add_columns(t, &t->columns->by);
    l->lists = l->in_pairs ? 1 : l->values;
    t->apart = columns_apart(t->columns);
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

/* Makes a group for each column that is reduced apart, if there are no keys: a column has a result
 * also in a table without rows. */
static bool begin_groups(struct table *t) {
    const struct layout *l = &t->layout;
    for (size_t i = 0; i < l->values && t->apart && l->values == l->count; i++)
        if (!groups_find(t->groups, l->column[i].name, l->column[i].length, l->column[i].type))
            return false;
    return true;
}

/* ---- The header ---- */

static bool is_name(const char *text, size_t length, const char *name) {
    return strlen(name) == length && memcmp(text, name, length) == 0;
}

/* Returns whether a name is a list's whole text, which is not its only item. */
static bool is_whole_name(const struct list *list, const char *name, size_t length) {
    const bool is_item = list->count == 1 && strcmp(list->item[0], list->whole) == 0;
    return list->whole && !is_item && is_name(name, length, list->whole);
}

static bool two_of_a_name(struct table *t, const struct column *c) {
    failed("%s has two columns %s, %zu and %zu; give the number of one of them", t->source->name,
           c->name, c->field + 1, t->field + t->form.shift + 1);
    return wrong(t);
}

/* libcsv calls this with each name of the header. */
static void on_name(void *data, size_t length, void *context) {
    struct table *t = context;
    const char *name = data ? data : "";
    const struct columns *asked = t->columns;
    for (size_t i = 0; i < t->layout.count && !t->failed; i++) {
        struct column *c = &t->layout.column[i];
        if (!is_name(name, length, c->name)) continue;
        if (c->field != NOWHERE) two_of_a_name(t, c);
        c->field = t->field + t->form.shift;
    }
    if (!asked->in_pairs && is_whole_name(&asked->value, name, length))
        t->value_at = t->field + t->form.shift;
    if (is_whole_name(&asked->by, name, length)) t->key_at = t->field + t->form.shift;
    t->field++;
    if (t->names_bytes + length + 2 > NAMES_BYTES) return;
    if (t->names_bytes) t->names[t->names_bytes++] = '\n';
    memcpy(t->names + t->names_bytes, name, length);
    t->names_bytes += length;
    t->names[t->names_bytes] = 0;
}

static bool no_column(struct table *t, const struct column *c) {
    char near[64], names[NAMES_BYTES];
    if (names_nearest(c->name, t->names, '\n', near, sizeof near))
        return failed("%s has no column %s; did you mean %s?", t->source->name, c->name, near),
               wrong(t);
    memcpy(names, t->names, sizeof names);
    for (char *at = names; (at = strchr(at, '\n'));)
        *at = ' ';
    failed("%s has no column %s; its columns are %.400s", t->source->name, c->name, names);
    return wrong(t);
}

/* A list whose whole text is a name becomes that column. */
static void take_whole_lists(struct table *t) {
    struct layout *l = &t->layout;
    size_t field[2 * LIST_MOST] = {0};
    const size_t values = l->values;
    const bool is_value = t->value_at != NOWHERE, is_key = t->key_at != NOWHERE;
    for (size_t i = 0; i < l->count; i++)
        field[i] = l->column[i].field;
    if (is_value) list_take_whole(&t->columns->value);
    if (is_key) list_take_whole(&t->columns->by);
    if (is_value || is_key) set_columns(t);
    for (size_t i = 0; i < l->count; i++)
        l->column[i].field = i < l->values ? is_value ? t->value_at : field[i]
                             : is_key ? t->key_at
                                           : field[values + i - l->values];
}

/* Ends the header: a column without a field gets the one that its number says. Fails if a column
 * has none, and orders the columns by field. */
static bool settle_columns(struct table *t) {
    struct layout *l = &t->layout;
    t->in_header = false;
    for (size_t i = 0; i < l->count; i++) {
        struct column *c = &l->column[i];
        if (c->field == NOWHERE) c->field = by_number(c->name);
        if (c->field == NOWHERE) return no_column(t, c);
    }
    order_columns(l);
    return begin_groups(t);
}

static bool end_header(struct table *t) {
    if (t->failed) return false;
    take_whole_lists(t);
    if (!t->form.width) t->layout.width = t->field + t->form.shift;
    return settle_columns(t) || wrong(t);
}

/* libcsv calls this at each line's end, also of an empty line. */
static void on_names_end(int end, void *context) {
    struct table *t = context;
    if (t->field && t->in_header) end_header(t);
    t->field = 0;
    t->has_begun = false;
    t->header_line = t->header_lines + (end == '\n') + 1;
}

/* Reads names between runs of blanks. Their places in the line show later which words of an aligned
 * table belong to which name. */
static bool read_blank_names(struct table *t, const char *line, const char *end) {
    struct layout *l = &t->layout;
    const char *at = line;
    size_t before = 0;
    struct field f, behind;
    l->is_aligned = field_is_blank(*line);
    for (const char *next; (next = field_between_blanks(at, end, &f)); at = next) {
        l->is_aligned |= t->field && f.first - at > 1 + f.is_quoted;
        l->last_at = before + field_place(at, f.first);
        const size_t place = l->last_at + field_place(f.first, next);
        for (size_t i = 0; i < l->count; i++)
            if (t->form.shift && !t->field && by_number(l->column[i].name) == 0)
                l->column[i].end = l->column[i].behind = l->last_at; /* of the rows' names */
            else if (is_name(f.first, (size_t)(f.last - f.first), l->column[i].name) ||
                     by_number(l->column[i].name) == t->field + t->form.shift) {
                l->column[i].at = l->last_at;
                l->column[i].end = l->last_at + field_place(f.first, f.last);
                l->column[i].before = before;
                l->column[i].behind = field_between_blanks(next, end, &behind)
                                          ? place + field_place(next, behind.first)
                                          : SIZE_MAX;
            }
        on_name((void *)(uintptr_t)f.first, (size_t)(f.last - f.first), t);
        before = place;
    }
    return !t->field || end_header(t);
}

static bool tell_quote(const struct table *t, uint64_t line) {
    return failed("%s:%" PRIu64 ": text stands behind a field's closing quote; a quote within a "
                  "field is doubled",
                  t->source->name, line),
           false;
}

/* Reads a part of a line, up to its end or the chunk's. */
static bool read_names(struct table *t, const char *at, size_t n) {
    const char *end = at + n;
    const char *last = end - (end[-1] == '\n' || end[-1] == '\r');
    if (!t->has_begun && field_opens_comment(at, last, t->layout.delimiter)) {
        t->header_line = t->header_lines + 2;
        return true;
    }
    t->has_begun = true;
    if (t->layout.delimiter != BY_BLANKS) {
        if (!field_follow_quotes(&t->quoting, t->layout.delimiter, at, n))
            return tell_quote(t, t->header_line);
        return csv_parse(&t->parser, at, n, on_name, on_names_end, t) == n || no_memory(t);
    }
    const bool is_read = read_blank_names(t, at, last);
    t->field = 0;
    t->has_begun = false;
    return is_read;
}

/* Reads on, up to the header's end or the chunk's; the chunk then begins behind it. */
static bool read_header(struct table *t, struct chunk *chunk) {
    while (t->in_header && !t->failed && chunk->begin < chunk->end) {
        const char *at = chunk->text + chunk->begin;
        const size_t length = chunk->end - chunk->begin;
        size_t n = 0;
        while (n < length && at[n] != '\n' && at[n] != '\r')
            n++;
        n += n < length; /* with it: so at most one row ends in these bytes */
        if (!read_names(t, at, n)) return false;
        t->header_lines += at[n - 1] == '\n';
        chunk->begin += n;
    }
    return !t->failed;
}

/* Reads the names of a comment line, behind its #. */
static bool read_comment(struct table *t) {
    const char *at = t->form.comment, *end = t->form.comment_end;
    const char delimiter[] = {t->layout.delimiter, 0};
    while (*at == '#' || *at == ' ' || *at == '\t')
        at++;
    if (t->layout.delimiter == BY_BLANKS) return read_blank_names(t, at, end);
    for (;; at++) {
        const char *first = at + strspn(at, " "), *last;
        at += strcspn(at, delimiter);
        if (at > end) at = end;
        for (last = at; last > first && (last[-1] == ' ' || last[-1] == '\r');)
            last--;
        on_name((void *)(uintptr_t)first, (size_t)(last - first), t);
        if (at == end) return end_header(t);
    }
}

/* Returns false, with a message, if the table has ended before its header has. */
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

/* Returns true if a cell has several words and all begin as numbers do: the fields may be parted by blanks. */
static bool are_numbers(const char *cell) {
    size_t words = 0;
    for (; *cell; words++) {
        if (!strchr("0123456789+-.", *cell)) return false;
        cell += strcspn(cell, " \t");
        cell += strspn(cell, " \t");
    }
    return words > 1;
}

static bool tell_cell(const struct table *t, const struct fault *f, uint64_t line) {
    char shown[QUOTED_BYTES], hint_text[160];
    const char *name = t->source->name, *column = f->column->name;
    const char *type = f->column->type ? tally_type_name(f->column->type) : "decimal";
    const bool is_whole = strlen(f->cell) == f->bytes; /* the cell has no zero byte */
    const char *hint = is_whole ? spelling_hint(t->source->how.spelling, f->cell, hint_text) : "";
    if (!*hint && are_numbers(f->cell) && t->layout.delimiter != BY_BLANKS)
        hint = "-F blank has fields between runs of blanks";
    quoted(f->cell, f->bytes, shown);
    if (f->result == SPELLING_RANGE)
        failed("%s:%" PRIu64 ": %s does not fit %s", name, line, shown, type);
    else if (is_whole && spelling_is_known_missing(f->cell))
        failed("%s:%" PRIu64 ": column %s has no number, but '%s'; --skip-na leaves such rows out",
               name, line, column, shown);
    else if (line == 1 && !*hint && !t->form.has_header)
        failed("%s:1: '%s' is no %s number; where the first line has names, add --header", name,
               shown, type);
    else
        failed("%s:%" PRIu64 ": '%s' in column %s is no %s number%s%s", name, line, shown, column,
               type, *hint ? "; " : "", hint);
    return false;
}

static bool tell_width(const struct table *t, const struct fault *f, uint64_t line) {
    const struct layout *l = &t->layout;
    const size_t first = l->width - t->form.shift;
    const char *what = l->delimiter == BY_BLANKS ? "blanks" : "the delimiter";
    if (f->kind == NARROW_ROW)
        failed("%s:%" PRIu64 ": the line has %zu field%s, but %s %zu", t->source->name, line,
               f->fields, f->fields == 1 ? "" : "s",
               t->form.shift ? "rows above have" : "the first line has", l->least);
    else
        failed("%s:%" PRIu64 ": the line has %zu fields, but the first line has %zu; a field with "
               "%s in it must stand in quotes",
               t->source->name, line, f->fields, first, what);
    return false;
}

static bool tell(const struct table *t, const struct fault *f) {
    const char *name = t->source->name;
    const uint64_t line = t->line + f->line;
    if (!f->column || f->kind == NO_MEMORY) return no_memory(t); /* other faults name a column */
    if (f->kind == BAD_CELL) return tell_cell(t, f, line);
    if (f->kind == WIDE_ROW || f->kind == NARROW_ROW) return tell_width(t, f, line);
    if (f->kind == NO_COLUMN)
        failed("%s:%" PRIu64 ": the line has %zu field%s, and no column %s", name, line, f->fields,
               f->fields == 1 ? "" : "s", f->column->name);
    else if (f->kind == DISPLACED)
        failed("%s:%" PRIu64 ": no field of column %s stands below its name; a field with blanks "
               "in it must stand in quotes",
               name, line, f->column->name);
    else if (f->kind == LONG_ROW)
        failed("%s:%" PRIu64 ": the line is longer than %d bytes; only lines whose fields stand "
               "between delimiters (-F) may be",
               name, line, LINE_BYTES);
    else if (f->kind == BEHIND_QUOTE)
        tell_quote(t, line);
    else if (f->kind == ZERO_IN_KEY)
        failed("%s:%" PRIu64 ": the key in column %s has a zero byte", name, line, f->column->name);
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

/* Returns the group of a chunk's key, or of it and a value column; `before` is that of the column before, or NULL. */
static struct group *find_group(struct table *t, const struct keys *keys, size_t key,
                                const struct column *c, const struct group *before) {
    size_t used = keys->list[key].bytes;
    memcpy(t->key, keys->text + keys->list[key].at, used);
    if (t->apart) {
        if (t->layout.count > t->layout.values) t->key[used++] = 0;
        memcpy(t->key + used, c->name, c->length);
        used += c->length;
    }
    return groups_find_behind(t->groups, before, t->key, used, c->type);
}

static bool hand_on(struct table *t, const struct made_rows *m) {
    const struct layout *l = &t->layout;
    for (size_t k = 0; k < m->keys.count; k++) {
        struct group *group = NULL;
        for (size_t i = 0; i < l->lists; i++) {
            const struct values *v = &m->list[i];
            const size_t first = v->key ? v->first[k] : 0;
            const size_t n = (v->key ? v->first[k + 1] : v->count) - first;
            const struct column *c = &l->column[i];
            const unsigned char *x = v->x_sorted + first * c->element;
            const unsigned char *y = v->y ? v->y_sorted + first * c->element : NULL;
            group = find_group(t, &m->keys, k, c, group);
            if (!group || !(!c->type ? add_decimals(group, &m->keys, (const void *)x, n)
                                     : group_add(t->groups, group, x, y, n)))
                return false;
            t->source->elements += n;
        }
    }
    return true;
}

/* ---- The whole table ---- */

/* Prepares for the rows that Python sends of an Arrow file: without a header, and with the wanted
 * columns alone, in order. */
static bool begin_rows(struct table *t) {
    struct layout *l = &t->layout;
    l->delimiter = ',';
    l->width = l->least = l->count;
    for (size_t i = 0; i < l->count; i++)
        l->column[i].field = i;
    return settle_columns(t);
}

/* Decides on the form of the table, from its first chunk. */
static bool begin_table(struct table *t, struct chunk *chunk) {
    struct layout *l = &t->layout;
    const struct columns *c = t->columns;
    const char *number[2 * LIST_MOST], *column[2 * LIST_MOST], *text = chunk->text + chunk->begin;
    struct form_told told = {.name = t->source->name,
                             .delimiter = c->delimiter,
                             .header = c->has_header,
                             .no_header = c->no_header,
                             .spelling = t->source->how.spelling,
                             .number = number,
                             .column = column};
    if (t->source->is_rows) return begin_rows(t);
    if (memchr(text, 0, chunk->end + chunk->rest - chunk->begin))
        return failed("%s is no text, but -c wants a table", t->source->name), false;
    for (size_t i = 0; i < l->count; i++)
        if (by_number(l->column[i].name) == NOWHERE)
            column[told.name_count++] = l->column[i].name;
        else
            number[told.number_count++] = l->column[i].name;
    told.needs_header = told.name_count > 0;
    if (!form_find(&told, text, chunk->end - chunk->begin, &t->form)) return false;
    chunk->begin += t->form.skip;
    t->header_lines = t->form.lines;
    t->header_line += t->form.lines;
    l->delimiter = t->form.delimiter;
    l->width = t->form.width ? t->form.width : SIZE_MAX;
    l->least = t->form.width && (t->form.shift || l->delimiter == BY_BLANKS) ? l->width : 0;
    csv_set_delim(&t->parser, (unsigned char)l->delimiter);
    t->in_header = t->form.has_header;
    if (t->form.comment) return read_comment(t);
    return t->in_header || settle_columns(t);
}

static bool prepare(void *context, struct chunk *chunk) {
    struct table *t = context;
    struct made_rows *m = chunk->made;
    const uint64_t before = t->header_lines;
    if (chunk->is_first && !begin_table(t, chunk)) return false;
    if (!read_header(t, chunk)) return false;
    if (!rows_prepare(m, &t->layout, t->in_header ? 0 : chunk->end - chunk->begin))
        return no_memory(t);
    m->header_lines = t->header_lines - before;
    return true;
}

static void make(void *context, struct chunk *chunk) {
    (void)context;
    if (!chunk->continues) rows_read(chunk->made, chunk);
}

static void release(void *made) {
    rows_release(made);
}

static bool take(struct table *t, const struct chunk *chunk) {
    struct made_rows *m = chunk->made;
    if (t->open)
        rows_read_on(m, chunk, t->open);
    else if (chunk->continues)
        rows_read(m, chunk);
    t->open = NULL;
    if (m->fault.kind) return tell(t, &m->fault);
    t->line += m->lines;
    if (m->goes_on) t->open = rows_leave(m);
    return hand_on(t, m);
}

static bool read_all(struct table *t, struct chunks *chunks) {
    struct chunk *chunk;
    do {
        if (!chunks_next(chunks, &chunk) || (chunk && !take(t, chunk))) return false;
    } while (chunk);
    if (t->open)
        return failed("%s:%" PRIu64 ": a quote is opened in this line and not closed",
                      t->source->name, t->line - rows_open_lines(t->open)),
               false;
    return has_header(t);
}

static bool parse(struct table *t) {
    const struct chunk_work work = {.context = t,
                                    .cut = CUT_ANYWHERE,
                                    .made_bytes = sizeof(struct made_rows),
                                    .prepare = prepare,
                                    .make = make,
                                    .release = release};
    struct chunks *chunks;
    if (!rows_open_parser(&t->parser)) return no_memory(t);
    const bool done = chunks_open(t->source, &work, &chunks) && read_all(t, chunks);
    chunks_close(chunks);
    rows_progress_free(t->open);
    csv_free(&t->parser);
    return done;
}

static bool feed(struct table *t) {
    struct layout *l = &t->layout;
    t->line = t->header_line = 1;
    t->value_at = t->key_at = NOWHERE;
    l->spelling = t->source->how.spelling;
    l->in_pairs = t->columns->in_pairs;
    l->scan = scan_best();
    if (t->source->found.is_value_whole) list_take_whole(&t->columns->value);
    if (t->source->found.is_key_whole) list_take_whole(&t->columns->by);
    set_columns(t);
    order_columns(l);
    return parse(t);
}

bool columns_feed(struct columns *columns, struct source *source, struct groups *groups) {
    struct table *t = calloc(1, sizeof *t);
    const size_t most = 1 + columns->value.count + columns->by.count;
    struct column *column = calloc(most, sizeof *column);
    const struct column **order = calloc(most, sizeof *order);
    char *key = malloc(most * CELL_BYTES + strlen(columns->value.whole) + 1);
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
