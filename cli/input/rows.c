/*
 * rows.c - see rows.h.
 *
 * A line whose fields have no quotes, or one on each side, is split at its delimiters here. Any
 * other line goes to libcsv, up to a line end that is also the end of a row. A line in which
 * something is wrong with the fields goes to libcsv, too.
 */
#include "input/rows.h"

#include "input/fields.h"
#include "input/groups.h"
#include "input/money.h"

#include <csv.h>
#include <stdlib.h>
#include <string.h>

/* One cell of the current row. A byte that cannot continue a number follows within DECIMAL_SPARE
 * bytes, so the number parser needs no length check. */
struct cell {
    const char *text;
    size_t bytes;
    bool is_in_row;
    char *own; /* CELL_BYTES + DECIMAL_SPARE, for a field that libcsv reads; owned */
};

struct progress_of_rows {
    bool has_parser;
    struct csv_parser parser;
    bool in_row;          /* libcsv is within a row */
    enum quoting quoting; /* of that row */
    bool in_comment;      /* the line is a comment */
    size_t field;         /* fields of the row before the next one */
    size_t filled;        /* fields up to the last one that is not empty */
    uint64_t line;        /* line ends of the chunk before what is read now */
    uint64_t row_line;    /* line ends before the row; wraps below 0 if it began in another chunk */
    size_t cells;
    struct cell *cell; /* of each column */
};

union element {
    unsigned char bytes[16];
    struct short_decimal decimal;
};

static bool wrong(struct made_rows *m, enum fault_kind kind, size_t column) {
    const struct cell *c = &m->at->cell[column];
    m->fault.kind = kind;
    m->fault.column = &m->layout->column[column];
    m->fault.line = m->at->row_line;
    m->fault.fields = m->at->field;
    m->fault.bytes = kind == BAD_CELL ? c->bytes : 0;
    if (m->fault.bytes) memcpy(m->fault.cell, c->text, m->fault.bytes);
    m->fault.cell[m->fault.bytes] = 0;
    return false;
}

static bool no_memory(struct made_rows *m) {
    m->fault.kind = NO_MEMORY;
    return false;
}

/* ---- Keys ---- */

/* Makes room for `wanted` things of so many bytes at *memory. */
static bool widen(void *memory, size_t *room, size_t wanted, size_t bytes) {
    void *old;
    if (wanted <= *room) return true;
    memcpy(&old, memory, sizeof old);
    const size_t more = wanted < 64 ? 64 : 2 * wanted;
    void *grown = realloc(old, more * bytes);
    if (!grown) return false;
    memcpy(memory, &grown, sizeof grown);
    *room = more;
    return true;
}

static uint32_t *find_slot(const struct keys *k, uint64_t hash, const char *text, size_t bytes) {
    size_t i = (size_t)hash & (k->slot_count - 1);
    for (;; i = (i + 1) & (k->slot_count - 1)) {
        if (!k->slots[i]) return &k->slots[i];
        const struct key *found = &k->list[k->slots[i] - 1];
        if (found->hash == hash && found->bytes == bytes &&
            memcmp(k->text + found->at, text, bytes) == 0)
            return &k->slots[i];
    }
}

/* Makes more slots if with another key more than half of them would be full. */
static bool add_slots(struct keys *k) {
    if (2 * (k->count + 1) <= k->slot_count) return true;
    const size_t count = k->slot_count ? 2 * k->slot_count : 256;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots) return false;
    free(k->slots);
    k->slots = slots;
    k->slot_count = count;
    for (size_t i = 0; i < k->count; i++) {
        const struct key *key = &k->list[i];
        *find_slot(k, key->hash, k->text + key->at, key->bytes) = (uint32_t)i + 1;
    }
    return true;
}

/* Appends a text, and a zero byte, to those of the keys. */
static bool keep_text(struct keys *k, const char *text, size_t bytes, size_t *at) {
    if (!widen(&k->text, &k->text_room, k->used + bytes + 1, 1)) return false;
    *at = k->used;
    if (bytes) memcpy(k->text + k->used, text, bytes);
    k->text[k->used + bytes] = 0;
    k->used += bytes + 1;
    return true;
}

/* Sets *number to the number of the key. A new key gets the next one. */
static bool find_key(struct made_rows *m, const char *text, size_t bytes, uint32_t *number) {
    struct keys *k = &m->keys;
    if (!add_slots(k)) return no_memory(m);
    const uint64_t hash = groups_hash(text, bytes);
    uint32_t *slot = find_slot(k, hash, text, bytes);
    if (!*slot) {
        struct key new = {.hash = hash, .bytes = bytes};
        if (!widen(&k->list, &k->room, k->count + 1, sizeof new) ||
            !keep_text(k, text, bytes, &new.at))
            return no_memory(m);
        k->list[k->count++] = new;
        *slot = (uint32_t)k->count;
    }
    *number = *slot - 1;
    return true;
}

/* Sets *number to the number of the row's key. */
static bool row_key(struct made_rows *m, uint32_t *number) {
    const struct layout *l = m->layout;
    const struct cell *cell = m->at->cell;
    size_t used = 0;
    if (l->count == l->values && m->keys.count) return *number = 0, true; /* one key, "" */
    if (l->count == l->values + 1)
        return find_key(m, cell[l->values].text, cell[l->values].bytes, number);
    for (size_t i = l->values; i < l->count; i++) {
        memcpy(m->key + used, cell[i].text, cell[i].bytes);
        used += cell[i].bytes;
        m->key[used++] = 0;
    }
    return find_key(m, m->key, used ? used - 1 : 0, number);
}

/* ---- Cells ---- */

/* Reads a cell by the long way. A decimal that is not short is kept as text. */
static enum spelling_result read_slowly(struct made_rows *m, const struct column *column,
                                        const struct cell *c, union element *out) {
    char text[CELL_BYTES + DECIMAL_SPARE];
    const char *decimal = NULL;
    size_t at = 0;
    int places = 0;
    if (c->bytes) memcpy(text, c->text, c->bytes);
    const enum spelling_result result =
        spelling_read(m->layout->spelling, column->type, text, c->bytes,
                      column->type ? (void *)out->bytes : (void *)&decimal);
    if (column->type || result != SPELLING_NUMBER) return result;
    const char *end = decimal_split(decimal, &out->decimal.digits, &places);
    out->decimal.places = places;
    if (end && !*end) return result;
    if (!keep_text(&m->keys, decimal, strlen(decimal), &at)) no_memory(m);
    out->decimal = (struct short_decimal){.digits = (int64_t)at, .places = -1};
    return result;
}

static inline enum spelling_result read_cell(struct made_rows *m, const struct column *column,
                                             const struct cell *c, union element *out) {
    int places = 0;
    const char *end = m->is_slow     ? NULL
                      : column->type ? decimal_quick(column->type, c->text, out->bytes)
                                     : decimal_split(c->text, &out->decimal.digits, &places);
    if (!end || end != c->text + c->bytes) return read_slowly(m, column, c, out);
    if (!column->type) out->decimal.places = places;
    return SPELLING_NUMBER;
}

/* Adds the cell of a value column, or those of a pair, to its list. */
static bool add_value(struct made_rows *m, size_t column, uint32_t key) {
    const struct layout *l = m->layout;
    const struct cell *c = &m->at->cell[column];
    const struct column *of = &l->column[column];
    struct values *v = &m->list[column];
    union element x, y;
    const enum spelling_result one = read_cell(m, of, c, &x);
    const enum spelling_result other =
        l->in_pairs ? read_cell(m, &of[1], &c[1], &y) : SPELLING_NUMBER;
    const bool is_wrong = one > SPELLING_MISSING;
    if (is_wrong || other > SPELLING_MISSING) {
        m->fault.result = is_wrong ? one : other;
        return wrong(m, BAD_CELL, column + !is_wrong);
    }
    if (one == SPELLING_MISSING || other == SPELLING_MISSING) return m->fault.kind == NOTHING;
    memcpy(v->x + v->count * of->element, x.bytes, sizeof x);
    if (l->in_pairs) memcpy(v->y + v->count * of->element, y.bytes, sizeof y);
    if (v->key) v->key[v->count] = key;
    v->count++;
    return m->fault.kind == NOTHING;
}

static bool end_row(struct made_rows *m) {
    const struct layout *l = m->layout;
    uint32_t key;
    for (size_t i = 0; i < l->count; i++) {
        const struct cell *c = &m->at->cell[i];
        if (!c->is_in_row) return wrong(m, NO_COLUMN, i);
        if (i >= l->values && c->bytes && memchr(c->text, 0, c->bytes))
            return wrong(m, ZERO_IN_KEY, i);
    }
    if (!row_key(m, &key)) return false;
    for (size_t i = 0; i < l->lists; i++)
        if (!add_value(m, i, key)) return false;
    return true;
}

/* ---- Lines with quotes ---- */

static int is_blank(unsigned char c) {
    return c == ' ';
}

bool rows_open_parser(struct csv_parser *parser) {
    if (csv_init(parser, CSV_REPALL_NL) != 0) return false;
    csv_set_space_func(parser, is_blank);
    csv_set_blk_size(parser, 1 << 16); /* by which its buffer grows */
    return true;
}

static void begin_row(const struct layout *l, struct progress_of_rows *r) {
    r->field = r->filled = 0;
    r->quoting = FIELD_BEGINS;
    r->row_line = r->line;
    for (size_t i = 0; i < l->count; i++)
        r->cell[i].is_in_row = false;
}

/* libcsv calls this with each field. */
static void on_field(void *data, size_t length, void *context) {
    struct made_rows *m = context;
    const struct layout *l = m->layout;
    for (size_t i = 0; i < l->count && !m->fault.kind; i++) {
        struct cell *c = &m->at->cell[i];
        if (l->column[i].field != m->at->field) continue;
        if (length >= CELL_BYTES) {
            wrong(m, LONG_FIELD, i);
            return;
        }
        if (length) memcpy(c->own, data, length);
        c->own[length] = 0;
        c->text = c->own;
        c->bytes = length;
        c->is_in_row = true;
    }
    m->at->field++;
    if (length) m->at->filled = m->at->field;
}

/* Returns whether the row has neither more fields than the first line nor too few. */
static bool check_width(struct made_rows *m) {
    const struct layout *l = m->layout;
    if (m->at->filled > l->width) {
        m->at->field = m->at->filled;
        return wrong(m, WIDE_ROW, 0);
    }
    return m->at->field >= l->least || wrong(m, NARROW_ROW, 0);
}

/* libcsv calls this at each row's end, also of an empty one. The text given to libcsv ends with a
 * row, or within one. */
static void on_row(int end, void *context) {
    struct made_rows *m = context;
    (void)end;
    if (!m->fault.kind && m->at->field && check_width(m)) end_row(m);
    begin_row(m->layout, m->at);
    m->at->in_row = false;
}

/* Reads a line, with its end if that is there. */
static bool read_by_library(struct made_rows *m, const char *text, size_t bytes) {
    struct progress_of_rows *r = m->at;
    if (!r->has_parser) {
        if (!rows_open_parser(&r->parser)) return no_memory(m);
        csv_set_delim(&r->parser, (unsigned char)m->layout->delimiter);
        r->has_parser = true;
    }
    if (!r->in_row) begin_row(m->layout, r);
    r->in_row = true;
    if (!field_follow_quotes(&r->quoting, m->layout->delimiter, text, bytes))
        return wrong(m, BEHIND_QUOTE, 0);
    return csv_parse(&r->parser, text, bytes, on_field, on_row, m) == bytes || no_memory(m);
}

/* ---- Simple lines ---- */

/* Returns the first byte in [at, end) that is one of two, or end. `one` and `other` have the byte
 * eight times. Reads eight bytes at a time, so up to seven behind the end. */
static inline const char *find_either(const char *at, const char *end, uint64_t one,
                                      uint64_t other) {
    for (; at < end; at += 8) {
        uint64_t w;
        memcpy(&w, at, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        w = __builtin_bswap64(w);
#endif
        /* Marks the lowest byte that is 0, and perhaps bytes behind it that are not 0. */
        const uint64_t a = w ^ one, b = w ^ other;
        const uint64_t marks =
            (((a - 0x0101010101010101u) & ~a) | ((b - 0x0101010101010101u) & ~b)) &
            0x8080808080808080u;
        if (!marks) continue;
        at += __builtin_ctzll(marks) / 8;
        return at < end ? at : end;
    }
    return end;
}

static inline const char *skip_blanks(const char *at, const char *end) {
    while (at < end && *at == ' ')
        at++;
    return at;
}

/* The way a line is split: its delimiter eight times, whether blanks around a field are left out,
 * and whether the line has quotes. */
struct parting {
    uint64_t delimiters;
    bool trims, has_quotes;
};

/* Finds the field that begins at `at`. Returns the delimiter behind it, or end. Returns NULL if a
 * quote stands within the field, also a doubled one: libcsv reads such a line. */
static inline const char *part(const struct parting *by, const char *at, const char *end,
                               struct field *f) {
    static const uint64_t quotes = 0x0101010101010101u * '"';
    if (by->has_quotes && by->trims) at = skip_blanks(at, end);
    f->is_quoted = by->has_quotes && at < end && *at == '"';
    f->first = at + f->is_quoted;
    if (f->is_quoted) {
        f->last = find_either(at + 1, end, quotes, quotes);
        if (f->last == end) return NULL; /* the row goes on in the next line */
        at = by->trims ? skip_blanks(f->last + 1, end) : f->last + 1;
        return at == end || *at == (char)by->delimiters ? at : NULL;
    }
    f->last = find_either(at, end, by->delimiters, by->has_quotes ? quotes : by->delimiters);
    return by->has_quotes && f->last < end && *f->last == '"' ? NULL : f->last;
}

static inline void trim(struct field *f) {
    f->first = skip_blanks(f->first, f->last);
    while (f->first < f->last && f->last[-1] == ' ')
        f->last--;
}

/* Returns whether nothing but delimiters and blanks stands behind the most fields that a row may have. */
static bool ends_empty(const struct layout *l, const char *at, const char *end, size_t delimiters) {
    while (delimiters >= l->width && end > at &&
           (end[-1] == l->delimiter || end[-1] == ' ' || end[-1] == '\r'))
        delimiters -= *--end == l->delimiter;
    return delimiters < l->width;
}

/* Reads a line, up to its end, in which so many delimiters stand. False, and nothing is read, where
 * libcsv has to do it, or to say what is wrong. */
static inline bool read_parted(struct made_rows *m, const char *at, const char *end,
                               size_t delimiters, bool has_quotes) {
    const struct layout *l = m->layout;
    const struct parting by = {.delimiters = 0x0101010101010101u * (unsigned char)l->delimiter,
                               .trims = l->delimiter != ' ',
                               .has_quotes = has_quotes};
    if (end > at && end[-1] == '\r') end--;
    if (by.trims) at = skip_blanks(at, end);
    if (at == end) return true; /* no row */
    if (!has_quotes && delimiters >= l->width && !ends_empty(l, at, end, delimiters)) return false;
    if (!has_quotes && delimiters + 1 < l->least) return false;
    struct field f;
    const char *stop = part(&by, at, end, &f);
    size_t field = 0;
    for (size_t i = 0; i < l->count; i++) {
        for (; stop && field < l->order[i]->field; field++) {
            if (stop == end) return false;
            stop = part(&by, stop + 1, end, &f);
        }
        if (!stop) return false;
        if (by.trims && !f.is_quoted) trim(&f);
        if (f.last - f.first >= CELL_BYTES) return false;
        struct cell *c = &m->at->cell[l->order[i] - l->column];
        c->text = f.first;
        c->bytes = (size_t)(f.last - f.first);
        c->is_in_row = true;
    }
    for (; has_quotes && stop && stop != end; field++)
        stop = part(&by, stop + 1, end, &f);
    if (!stop || (has_quotes && (field >= l->width || field + 1 < l->least))) return false;
    m->at->row_line = m->at->line;
    end_row(m);
    return true;
}

/* A place among the marks of a line's delimiters, and the marks behind it. */
struct marks {
    const char *at; /* the byte of the word's bit 0 */
    uint64_t word;
    size_t next; /* index of the next word of marks */
};

/* Finds the next delimiter, or NULL where none is marked. */
static inline const char *next_mark(struct marks *ahead, const struct scanned *line) {
    while (!ahead->word && ahead->next < line->words) {
        ahead->at += 64;
        ahead->word = line->marks[ahead->next++];
    }
    return ahead->word ? ahead->at + __builtin_ctzll(ahead->word) : NULL;
}

/* Reads a line without quotes by the marks of its delimiters. Returns false, and reads nothing, if
 * read_other_line() must do it: for example, not all delimiters before the last column are marked. */
static inline bool read_marked(struct made_rows *m, const char *at, const struct scanned *line) {
    const struct layout *l = m->layout;
    const bool trims = l->delimiter != ' ';
    const char *end = line->end, *stop;
    struct marks ahead = {.at = at, .word = line->marks[0], .next = 1};
    size_t field = 0;
    if (line->count >= l->width || line->count + 1 < l->least) return false;
    if (end > at && end[-1] == '\r') end--;
    if (at == end || (trims && *at == ' ')) return false;
    for (size_t i = 0; i < l->count; i++) {
        const struct column *column = l->order[i];
        for (; field < column->field; field++) {
            if (!(stop = next_mark(&ahead, line))) return false;
            at = stop + 1;
            ahead.word &= ahead.word - 1;
        }
        stop = next_mark(&ahead, line);
        if (!stop && field < line->count) return false;
        struct field f = {.first = at, .last = stop ? stop : end};
        if (trims) trim(&f);
        if (f.last - f.first >= CELL_BYTES) return false;
        struct cell *c = &m->at->cell[column - l->column];
        c->text = f.first;
        c->bytes = (size_t)(f.last - f.first);
        c->is_in_row = true;
    }
    m->at->row_line = m->at->line;
    end_row(m);
    return true;
}

/* ---- Runs of blanks ---- */

static void set_cell(struct made_rows *m, const struct column *column, const char *first,
                     const char *last) {
    struct cell *c = &m->at->cell[column - m->layout->column];
    while (last > first && field_is_blank(last[-1]))
        last--;
    *c = (struct cell){
        .text = first, .bytes = (size_t)(last - first), .is_in_row = true, .own = c->own};
    if (c->bytes < CELL_BYTES) return;
    c->bytes = 0;
    wrong(m, LONG_FIELD, (size_t)(column - m->layout->column));
}

/* Returns whether a row with fewer fields than the first line has a field below the column's name,
 * and below no other one. */
static bool is_below(const struct layout *l, const struct column *column, const struct cell *c,
                     const char *line) {
    if (!l->is_aligned || !c->is_in_row) return false;
    const size_t at = field_place(line, c->text), end = field_place(line, c->text + c->bytes);
    return at < column->end && end > column->at && at >= column->before && end <= column->behind;
}

/* Returns whether no field stands below the column's name, or that of another column, and below no
 * other name, as fields of wide rows do. */
static bool is_displaced(const struct column *column, const struct cell *c, const char *line,
                         const char *end) {
    const char *at = line;
    struct field f;
    while ((at = field_between_blanks(at, end, &f))) {
        const size_t first = field_place(line, f.first), last = field_place(line, f.last);
        const bool is_below = first < column->end && last > column->at;
        if (is_below && (f.first == c->text || first < column->before || last > column->behind))
            return false;
    }
    return true;
}

static void read_between_blanks(struct made_rows *m, const char *line, const char *end) {
    const struct layout *l = m->layout;
    struct progress_of_rows *r = m->at;
    const char *at = line, *last = line, *before = line; /* the last two columns */
    size_t next = 0;
    struct field f;
    begin_row(l, r);
    for (; (at = field_between_blanks(at, end, &f)); r->field++) {
        if (r->field + 2 == l->width) before = f.first;
        if (r->field + 1 == l->width) last = f.first;
        for (; next < l->count && l->order[next]->field == r->field; next++)
            set_cell(m, l->order[next], f.first, f.last);
    }
    if (!r->field || m->fault.kind) return;
    /* Words of the last column may stand in for a field that is missing before it. */
    const bool has_words =
        l->is_aligned && r->field >= l->width && field_place(line, before) >= l->last_at;
    for (size_t i = 0; i < l->count && has_words; i++)
        if (is_displaced(&l->column[i], &r->cell[i], line, end)) {
            wrong(m, DISPLACED, i);
            return;
        }
    if (r->field > l->width) {
        if (!l->is_aligned || field_place(line, last) < l->last_at) {
            wrong(m, WIDE_ROW, 0);
            return;
        }
        for (size_t i = 0; i < l->count; i++)
            if (l->column[i].field + 1 == l->width) set_cell(m, &l->column[i], last, end);
    }
    for (size_t i = 0; i < l->count && r->field < l->least; i++)
        if (!is_below(l, &l->column[i], &r->cell[i], line)) {
            wrong(m, NARROW_ROW, 0);
            return;
        }
    if (!m->fault.kind) end_row(m);
}

/* ---- Lines ---- */

/* Returns the first quote, or end. */
static const char *find_quote(const char *at, const char *end) {
    const char *quote = memchr(at, '"', (size_t)(end - at));
    return quote ? quote : end;
}

/* Returns the first carriage return that does not stand before a line end, or end. */
static const char *find_return(const char *at, const char *end) {
    while ((at = memchr(at, '\r', (size_t)(end - at))) && at + 1 < end && at[1] == '\n')
        at++;
    return at ? at : end;
}

/* Returns the number of delimiters in a part of a line. */
static size_t count_delimiters(const struct layout *l, const char *at, const char *end) {
    size_t count = 0;
    for (; at < end; at++)
        count += *at == l->delimiter;
    return count;
}

/* Reads a line that is no simple one; the next begins at `next`. */
static void read_other_line(struct made_rows *m, const char *at, const struct scanned *line,
                            const char *next, bool has_quotes) {
    struct progress_of_rows *r = m->at;
    const char *end = line->end;
    if (r->in_comment || (!r->in_row && field_opens_comment(at, end, m->layout->delimiter))) {
        r->in_comment = next == end; /* the comment goes on in the next chunk */
        return;
    }
    if (m->layout->delimiter == BY_BLANKS) {
        r->row_line = r->line;
        if (next == end && line->end == end)
            wrong(m, LONG_ROW, 0); /* it goes on in the next chunk */
        else
            read_between_blanks(m, at, end);
        return;
    }
    if (r->in_row || next == end ||
        !(has_quotes ? read_parted(m, at, end, line->count, true)
                     : read_parted(m, at, end, line->count, false)))
        read_by_library(m, at, (size_t)(next - at));
}

static void read_lines(struct made_rows *m, const struct chunk *p) {
    struct progress_of_rows *r = m->at;
    const struct layout *l = m->layout;
    const char *at = p->text + p->begin, *const end = p->text + p->end;
    const char *quote = find_quote(at, end), *lone = find_return(at, end);
    const bool is_parted = l->delimiter != BY_BLANKS;
    const char blank =
        l->delimiter == '\t' ? '#' : '\t'; /* behind which a comment may begin, too */
    r->line = m->header_lines;
    while (at < end && !m->fault.kind) {
        struct scanned line;
        l->scan(at, end, l->delimiter, &line);
        const char *next = line.end < end ? line.end + 1 : end;
        if (quote < at) quote = find_quote(at, end);
        if (lone < at) lone = find_return(at, end);
        const bool ends = lone >= line.end && line.end < end;
        if (lone < line.end) {
            line.end = lone;
            next = lone + 1;
            line.count = count_delimiters(l, at, lone);
        }
        const bool is_simple = ends && is_parted && !r->in_row && !r->in_comment &&
                               quote >= line.end && *at != '#' && *at != blank;
        if (!is_simple || !read_marked(m, at, &line))
            read_other_line(m, at, &line, next, quote < line.end);
        r->line += ends;
        at = next;
    }
    m->lines = r->line;
    m->goes_on = r->in_row || r->in_comment;
}

/* ---- By key ---- */

/* Puts each element at the place of its key, which moves on by one. */
static void scatter(const struct values *v, size_t *place, size_t element,
                    const unsigned char *from, unsigned char *to) {
    for (size_t i = 0; element == 8 && i < v->count; i++)
        memcpy(to + 8 * place[v->key[i]]++, from + 8 * i, 8);
    for (size_t i = 0; element != 8 && i < v->count; i++)
        memcpy(to + element * place[v->key[i]]++, from + element * i, element);
}

/* Sorts by counting, so that each key's elements stay in their order. */
static bool sort_by_key(struct made_rows *m, struct values *v, size_t element) {
    const size_t keys = m->keys.count;
    if (!widen(&v->first, &v->first_room, keys + 2, sizeof *v->first)) return no_memory(m);
    for (int side = 0; side < (v->y ? 2 : 1); side++) {
        memset(v->first, 0, (keys + 2) * sizeof *v->first);
        for (size_t i = 0; i < v->count; i++)
            v->first[v->key[i] + 2]++;
        for (size_t k = 2; k < keys + 2; k++)
            v->first[k] += v->first[k - 1];
        /* first[k + 1] is where key k begins; when its elements are in place, where it ends. */
        scatter(v, v->first + 1, element, side ? v->y : v->x, side ? v->y_sorted : v->x_sorted);
    }
    return true;
}

static void finish(struct made_rows *m) {
    for (size_t i = 0; i < m->layout->lists && m->list[i].key && !m->fault.kind; i++)
        sort_by_key(m, &m->list[i], m->layout->column[i].element);
}

/* ---- The whole chunk ---- */

static void clear(struct made_rows *m) {
    m->goes_on = false;
    m->lines = 0;
    m->keys.count = m->keys.used = 0;
    if (m->keys.slots) memset(m->keys.slots, 0, m->keys.slot_count * sizeof *m->keys.slots);
    for (size_t i = 0; i < m->layout->lists; i++)
        m->list[i].count = 0;
    m->fault.kind = NOTHING;
}

/* Drops the row or the comment that has been begun. */
static void restart(struct progress_of_rows *r) {
    if (r->in_row && r->has_parser) csv_free(&r->parser);
    r->has_parser &= !r->in_row;
    r->in_row = r->in_comment = false;
}

static struct progress_of_rows *new_progress(const struct layout *l) {
    struct progress_of_rows *r = calloc(1, sizeof *r);
    if (r) r->cell = calloc(l->count, sizeof *r->cell);
    for (size_t i = 0; r && r->cell && i < l->count; i++) {
        r->cell[i].own = calloc(1, CELL_BYTES + DECIMAL_SPARE);
        if (r->cell[i].own) r->cells++;
    }
    if (r && r->cells == l->count) return r;
    rows_progress_free(r);
    return NULL;
}

void rows_progress_free(struct progress_of_rows *r) {
    if (!r) return;
    if (r->has_parser) csv_free(&r->parser);
    for (size_t i = 0; i < r->cells; i++)
        free(r->cell[i].own);
    free(r->cell);
    free(r);
}

static void free_list(struct values *v) {
    if (v->x_sorted != v->x) free(v->x_sorted);
    if (v->y_sorted != v->y) free(v->y_sorted);
    free(v->x);
    free(v->y);
    free(v->key);
    v->x = v->y = v->x_sorted = v->y_sorted = NULL;
    v->key = NULL;
}

static bool new_list(const struct layout *l, struct values *v, size_t element, size_t room) {
    const size_t bytes = room * element + sizeof(union element);
    const bool by_key = l->count > l->values;
    free_list(v);
    v->x = v->x_sorted = malloc(bytes);
    if (l->in_pairs) v->y = v->y_sorted = malloc(bytes);
    if (by_key) v->key = malloc(room * sizeof *v->key);
    if (by_key) v->x_sorted = malloc(bytes);
    if (by_key && l->in_pairs) v->y_sorted = malloc(bytes);
    return v->x && v->x_sorted && (!l->in_pairs || (v->y && v->y_sorted)) && (!by_key || v->key);
}

bool rows_prepare(struct made_rows *m, const struct layout *l, size_t bytes) {
    /* Each element takes a row of at least field + 2 bytes: the delimiters before the last column,
     * a digit and a line end. */
    const size_t room = bytes / (l->order[l->count - 1]->field + 2) + 2;
    m->layout = l;
    m->is_slow = !spelling_is_plain(l->spelling) || l->spelling->has_na_number;
    m->header_lines = 0;
    if (!m->at) m->at = new_progress(l);
    if (!m->list) m->list = calloc(l->lists, sizeof *m->list);
    if (!m->key) m->key = malloc((l->count - l->values + 1) * CELL_BYTES);
    if (!m->at || !m->list || !m->key) return false;
    for (size_t i = 0; i < l->lists && room > m->room; i++)
        if (!new_list(l, &m->list[i], l->column[i].element, room)) return m->room = 0, false;
    if (room > m->room) m->room = room;
    clear(m);
    restart(m->at);
    return true;
}

void rows_read(struct made_rows *m, const struct chunk *chunk) {
    read_lines(m, chunk);
    finish(m);
}

void rows_read_on(struct made_rows *m, const struct chunk *chunk, struct progress_of_rows *open) {
    clear(m);
    rows_progress_free(m->at);
    m->at = open;
    rows_read(m, chunk);
}

struct progress_of_rows *rows_leave(struct made_rows *m) {
    struct progress_of_rows *r = m->at;
    r->row_line -= m->lines;
    m->at = NULL;
    return r;
}

uint64_t rows_open_lines(const struct progress_of_rows *open) {
    return -open->row_line;
}

void rows_release(struct made_rows *m) {
    rows_progress_free(m->at);
    for (size_t i = 0; m->list && i < m->layout->lists; i++) {
        free_list(&m->list[i]);
        free(m->list[i].first);
    }
    free(m->list);
    free(m->key);
    free(m->keys.list);
    free(m->keys.text);
    free(m->keys.slots);
}
