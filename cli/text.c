/*
 * text.c - numbers as text, one a line.
 *
 * The text passes through one buffer. Whole lines are taken from its front; the part of a line that
 * is left at its end is moved to the front before more is read. The elements collect in a second
 * buffer, which is fed whenever it is full.
 */
#include "text.h"

#include "decimal.h"
#include "message.h"
#include "progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_BYTES = 1 << 20,   /* the longest line, with its end */
    ELEMENT_BYTES = 1 << 20 /* fed at a time */
};

struct text_reader {
    struct source *source;
    uint64_t line;   /* the number of the line that is being read, from 1 */
    size_t elements; /* bytes of `element` in use */
    size_t used;     /* bytes of `text` that have been read ... */
    size_t at;       /* ... and of these, the ones before the next line */
    bool ended;
    char text[TEXT_BYTES + 1];
    unsigned char element[ELEMENT_BYTES];
};

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Reads the line at text[0..length), whose byte after the last may be overwritten. */
static bool read_line(struct text_reader *r, char *text, size_t length) {
    r->line++;
    while (length && is_space(text[length - 1]))
        length--;
    while (length && is_space(*text))
        text++, length--;
    if (!length || *text == '#') return true;
    text[length] = 0;
    const char *name = r->source->name, *type = tally_type_name(r->source->type);
    enum decimal_result result = DECIMAL_MALFORMED;
    if (!memchr(text, 0, length))
        result = decimal_read(r->source->type, text, r->element + r->elements);
    if (result == DECIMAL_RANGE)
        return failed("%s:%" PRIu64 ": %.40s does not fit %s; choose a wider --dtype", name,
                      r->line, text, type),
               false;
    if (result == DECIMAL_MALFORMED)
        return failed("%s:%" PRIu64 ": '%.40s' is no %s number; one number a line is expected",
                      name, r->line, text, type),
               false;
    r->elements += tally_type_size(r->source->type);
    return true;
}

/* Reads lines that are in the buffer, until there are none or the elements are full. */
static bool read_lines(struct text_reader *r) {
    char *stop;
    while (r->elements < ELEMENT_BYTES && (stop = memchr(r->text + r->at, '\n', r->used - r->at))) {
        char *line = r->text + r->at;
        r->at = (size_t)(stop + 1 - r->text);
        if (!read_line(r, line, (size_t)(stop - line))) return false;
    }
    return true;
}

/* Moves what is left to the front, and reads more behind it. */
static bool read_more(struct text_reader *r) {
    size_t got;
    r->used -= r->at;
    memmove(r->text, r->text + r->at, r->used);
    r->at = 0;
    if (r->used == TEXT_BYTES)
        return failed("%s:%" PRIu64 ": the line is longer than %d bytes; "
                      "one number a line is expected",
                      r->source->name, r->line + 1, TEXT_BYTES),
               false;
    if (!source_read(r->source, r->text + r->used, TEXT_BYTES - r->used, &got)) return false;
    r->used += got;
    progress_add(got);
    if (got) return true;
    r->ended = true;
    return !r->used || read_line(r, r->text, r->used); /* a last line without its end */
}

static bool open_reader(struct source *s) {
    if (s->text) return true;
    s->text = malloc(sizeof *s->text);
    if (!s->text) return failed("no memory for a buffer of %zu bytes", sizeof *s->text), false;
    s->text->source = s;
    s->text->line = 0;
    s->text->used = s->text->at = 0;
    s->text->ended = false;
    return true;
}

bool text_next(struct source *s, const void **x, size_t *n) {
    if (!open_reader(s)) return false;
    struct text_reader *r = s->text;
    r->elements = 0;
    do {
        if (!read_lines(r)) return false;
        if (r->elements == ELEMENT_BYTES || r->ended) break;
        if (!read_more(r)) return false;
    } while (true);
    *x = r->element;
    *n = r->elements / tally_type_size(s->type);
    return true;
}

void text_close(struct source *s) {
    free(s->text);
    s->text = NULL;
}
