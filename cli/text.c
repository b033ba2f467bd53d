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

struct reader {
    struct source *source;
    tally_stream *stream;
    uint64_t line;   /* the number of the line that is being read, from 1 */
    size_t elements; /* bytes of `element` in use */
    char text[TEXT_BYTES + 1];
    unsigned char element[ELEMENT_BYTES];
};

static bool feed_elements(struct reader *r) {
    size_t n = r->elements / tally_type_size(r->source->type);
    r->source->elements += n;
    r->elements = 0;
    if (tally_stream_feed(r->stream, r->element, n) == TALLY_OK) return true;
    return failed("%s: %s", r->source->name, tally_error()), false;
}

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Reads the line at text[0..length), whose byte after the last may be overwritten. */
static bool read_line(struct reader *r, char *text, size_t length) {
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
    return r->elements < ELEMENT_BYTES || feed_elements(r);
}

/* Reads all whole lines of r->text[0..*used), and keeps what is left at its front. */
static bool read_lines(struct reader *r, size_t *used) {
    char *at = r->text, *end = r->text + *used, *stop;
    while ((stop = memchr(at, '\n', (size_t)(end - at)))) {
        if (!read_line(r, at, (size_t)(stop - at))) return false;
        at = stop + 1;
    }
    *used = (size_t)(end - at);
    memmove(r->text, at, *used);
    return true;
}

static bool read_all(struct reader *r) {
    size_t used = 0, got;
    do {
        size_t room = TEXT_BYTES - used;
        if (!room)
            return failed("%s:%" PRIu64 ": the line is longer than %d bytes; "
                          "one number a line is expected",
                          r->source->name, r->line + 1, TEXT_BYTES),
                   false;
        if (!source_read(r->source, r->text + used, room, &got)) return false;
        used += got;
        progress_add(got);
        if (!read_lines(r, &used)) return false;
    } while (got);
    if (used && !read_line(r, r->text, used)) return false; /* a last line without its end */
    return feed_elements(r);
}

bool text_feed(struct source *source, tally_stream *stream) {
    struct reader *r = malloc(sizeof *r);
    if (!r) return failed("no memory for a buffer of %zu bytes", sizeof *r), false;
    r->source = source;
    r->stream = stream;
    r->line = 0;
    r->elements = 0;
    bool fed = read_all(r);
    free(r);
    return fed;
}
