/*
 * text.c - numbers as text, with blanks and line ends between them.
 *
 * The text passes through one buffer. Whole lines are taken from its front; the part of a line that
 * is left at its end is moved to the front before more is read. The elements collect in a second
 * buffer, which is handed on when it is full.
 */
#include "text.h"

#include "decimal.h"
#include "message.h"
#include "progress.h"
#include "types.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    TEXT_BYTES = 1 << 20,    /* the longest line, without its end */
    ELEMENT_BYTES = 1 << 20, /* handed on at a time */
    SPARE_BYTES = 16         /* behind the text: a sentinel, and what decimal_quick() may look at */
};

struct text_reader {
    struct source *source;
    uint64_t line;   /* the number of the line that is being read, from 1 */
    bool in_line;    /* something of it has been read */
    size_t elements; /* bytes of `element` in use */
    size_t used;     /* bytes of `text` that have been read ... */
    size_t at;       /* ... of these, the ones that are done with ... */
    size_t whole;    /* ... and the ones of whole lines */
    bool ended;
    char text[TEXT_BYTES + 1 + SPARE_BYTES];
    unsigned char element[ELEMENT_BYTES];
};

static bool is_blank(char c) { /* within a line */
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool ends_word(char c) {
    return c == '\n' || is_blank(c);
}

/* What is written where there is no value. */
bool text_is_missing(const char *word) {
    static const char *const words[] = {"NA", "N/A", "nan", "+nan", "-nan", "null", "none", "-"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(word, words[i]) == 0) return true;
    return false;
}

/* How a word that is no number of the type may be mended. */
static const char *hint(const struct source *s, const char *word) {
    double x;
    if (text_is_missing(word)) return "--skip-na leaves such words out";
    if (!type_is_floating(s->type) && decimal_read(TALLY_F64, word, &x) == DECIMAL_OK)
        return "choose --dtype f64";
    if (strchr(word, ',') || strchr(word, ';'))
        return "numbers stand between blanks; of a table, -c 1 takes the first column";
    return "numbers with blanks between them are expected";
}

/* Reads a word into r->element, by the long way; the byte behind it may be overwritten. */
static bool read_word(struct text_reader *r, char *word, size_t length) {
    const struct source *s = r->source;
    char shown[QUOTED_BYTES], after = word[length];
    enum decimal_result result = DECIMAL_MALFORMED;
    word[length] = 0;
    const bool is_text = !memchr(word, 0, length);
    if (is_text && s->how.skip_na && text_is_missing(word)) return word[length] = after, true;
    if (is_text && s->money)
        result = money_add(s->money, word);
    else if (is_text)
        result = decimal_read(s->type, word, r->element + r->elements);
    if (result == DECIMAL_OK) {
        if (s->money)
            r->source->elements++;
        else
            r->elements += tally_type_size(s->type);
        return word[length] = after, true;
    }
    const char *type = s->money ? "decimal" : tally_type_name(s->type);
    quoted(word, length, shown);
    if (result == DECIMAL_RANGE)
        return failed("%s:%" PRIu64 ": %s does not fit %s; choose a wider --dtype", s->name,
                      r->line, shown, type),
               false;
    return failed("%s:%" PRIu64 ": '%s' is no %s number; %s", s->name, r->line, shown, type,
                  hint(s, is_text ? word : "")),
           false;
}

/* Reads words up to the end of the whole lines, or until the elements are full. */
static bool read_words(struct text_reader *r) {
    const tally_type type = r->source->type;
    const size_t size = tally_type_size(type);
    char *at = r->text + r->at, *const end = r->text + r->whole;
    while (at < end && r->elements < ELEMENT_BYTES) {
        if (is_blank(*at)) {
            at++;
            continue;
        }
        if (*at == '\n') {
            at++, r->line++, r->in_line = false;
            continue;
        }
        if (*at == '#' && !r->in_line) {
            at = memchr(at, '\n', (size_t)(end - at));
            continue;
        }
        r->in_line = true;
        const char *next =
            r->source->money ? NULL : decimal_quick(type, at, r->element + r->elements);
        if (next && ends_word(*next)) {
            r->elements += size;
            at += next - at;
            continue;
        }
        char *word = at;
        while (!ends_word(*at))
            at++;
        if (!read_word(r, word, (size_t)(at - word))) return false;
    }
    r->at = (size_t)(at - r->text);
    return true;
}

/* The mark that some programs open a text with; and the texts of two-byte characters, which some write. */
static bool check_start(struct text_reader *r) {
    if (r->used >= 3 && memcmp(r->text, "\xef\xbb\xbf", 3) == 0) r->at = 3;
    if (r->used < 2 || (memcmp(r->text, "\xff\xfe", 2) != 0 && memcmp(r->text, "\xfe\xff", 2) != 0))
        return true;
    return failed("%s is text in UTF-16; convert it: iconv -f UTF-16 -t UTF-8 FILE | tally ...",
                  r->source->name),
           false;
}

/* Moves what is left to the front, and reads more behind it. */
static bool read_more(struct text_reader *r) {
    const bool is_first = !r->line;
    size_t got;
    r->used -= r->at;
    memmove(r->text, r->text + r->at, r->used);
    r->at = 0;
    if (!source_read(r->source, r->text + r->used, TEXT_BYTES + 1 - r->used, &got)) return false;
    progress_add(got);
    const char *last = got ? memrchr(r->text + r->used, '\n', got) : NULL;
    r->used += got;
    if (got && !last && r->used == TEXT_BYTES + 1)
        return failed("%s:%" PRIu64 ": the line is longer than %d bytes; is this text?",
                      r->source->name, r->line + is_first, TEXT_BYTES),
               false;
    r->ended = !got;
    if (r->ended && r->used) { /* a last line without its end */
        r->text[r->used++] = '\n';
        last = r->text + r->used - 1;
    }
    r->whole = last ? (size_t)(last + 1 - r->text) : 0;
    memset(r->text + r->used, 0, SPARE_BYTES - 1);
    if (!is_first) return true;
    r->line = 1;
    return check_start(r);
}

static bool open_reader(struct source *s) {
    if (s->text) return true;
    s->text = malloc(sizeof *s->text);
    if (!s->text) return failed("no memory for a buffer of %zu bytes", sizeof *s->text), false;
    s->text->source = s;
    s->text->line = 0;
    s->text->in_line = s->text->ended = false;
    s->text->used = s->text->at = s->text->whole = 0;
    return true;
}

bool text_next(struct source *s, const void **x, size_t *n) {
    if (!open_reader(s)) return false;
    struct text_reader *r = s->text;
    r->elements = 0;
    for (;;) {
        if (!read_words(r)) return false;
        if (r->elements == ELEMENT_BYTES || (r->ended && r->at == r->used)) break;
        if (!read_more(r)) return false;
    }
    *x = r->element;
    *n = r->elements / tally_type_size(s->type);
    return true;
}

void text_close(struct source *s) {
    free(s->text);
    s->text = NULL;
}
