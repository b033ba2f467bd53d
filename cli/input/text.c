/*
 * text.c - numbers as text, with blanks and line ends between them, read by several threads
 * (chunks.c).
 *
 * A thread turns a chunk of lines into elements, and counts its lines. So neither the elements nor
 * a message about a word that is no number depends on the number of threads.
 */
#include "input/text.h"

#include "common/message.h"
#include "common/types.h"
#include "input/chunks.h"
#include "input/decimal.h"
#include "input/spelling.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_WORD = 256 }; /* bytes; a longer word is copied to the heap */

/* The elements read from a chunk, and where the reading stopped. */
struct words {
    unsigned char *element; /* owned */
    size_t room;            /* bytes */

    size_t elements; /* bytes */
    size_t at;       /* the chunk's end, or where a word is no number */
    size_t length;   /* of the word at `at` */
    uint64_t lines;  /* line ends before `at` */
    uint64_t added;  /* numbers that are in `money` */
    struct money money;
    enum spelling_result result; /* of the last word */
};

struct text_reader {
    struct chunks *chunks;
    uint64_t line; /* the number of the line that is handed on next, from 1 */
};

/* ---- One chunk ---- */

static bool is_blank(char c) { /* within a line */
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool ends_word(char c) {
    return c == '\n' || is_blank(c);
}

/* Returns whether nothing but blanks stands before `at` in its line, which may begin in the chunk before. A carriage return
 * ends a line, too. */
static bool opens_line(const struct chunk *chunk, const char *at) {
    const char *first = chunk->text + chunk->begin;
    while (at > first && is_blank(at[-1]) && at[-1] != '\r')
        at--;
    return at == first ? !chunk->continues : at[-1] == '\n' || at[-1] == '\r';
}

/* Returns the end of the line that `at` stands in: its \n or lone \r, or `end`. */
static char *line_end(char *at, char *end) {
    char *last = memchr(at, '\n', (size_t)(end - at));
    char *lone = memchr(at, '\r', (size_t)((last ? last : end) - at));
    return lone && lone + 1 != last ? lone : last ? last : end;
}

/* Returns whether the # at `at` opens a comment, and none of Excel's words, such as #N/A. */
static bool is_comment(const char *at, const char *end) {
    size_t length;
    return !spelling_is_excel_error(at, end, &length) || !ends_word(at[length]);
}

/* Reads a word by the long way, from a copy: behind the chunk's end the next one's text may stand. */
static enum spelling_result read_word(const struct source *s, struct words *p, const char *word,
                                      size_t length) {
    char stack_word[SHORT_WORD + DECIMAL_SPARE];
    char *copy = length < SHORT_WORD ? stack_word : malloc(length + DECIMAL_SPARE);
    unsigned char *element = s->money ? NULL : p->element + p->elements;
    const char *decimal = NULL;
    if (!copy) return SPELLING_MALFORMED;
    memcpy(copy, word, length);
    const enum spelling_result result =
        spelling_read(s->how.spelling, s->money ? 0 : s->type, copy, length,
                      s->money ? (void *)&decimal : element);
    if (result == SPELLING_NUMBER && s->money) {
        money_add(&p->money, decimal);
        p->added++;
    } else if (result == SPELLING_NUMBER) {
        p->elements += tally_type_size(s->type);
    }
    if (copy != stack_word) free(copy);
    return result;
}

/* Makes elements of the chunk, up to its end or to a word that is no number. */
static void read_chunk(void *context, struct chunk *chunk) {
    const struct source *s = context;
    struct words *p = chunk->made;
    char *at = chunk->text + chunk->begin, *const end = chunk->text + chunk->end;
    const bool is_quick =
        !s->money && spelling_is_plain(s->how.spelling) && !s->how.spelling->has_na_number;
    p->result = SPELLING_NUMBER;
    while (at < end && p->result <= SPELLING_MISSING) {
        if (is_quick) {
            unsigned char *element = p->element + p->elements;
            at += decimal_many(s->type, at, end, &element, &p->lines) - at;
            p->elements = (size_t)(element - p->element);
            if (at >= end) break;
        }
        if (*at == '\n') {
            at++, p->lines++;
        } else if (is_blank(*at)) {
            at++;
        } else if (*at == '#' && opens_line(chunk, at) && is_comment(at, end)) {
            at = line_end(at, end);
        } else {
            char *word = at;
            while (!ends_word(*at))
                at++;
            p->length = (size_t)(at - word);
            p->result = read_word(s, p, word, p->length);
            if (p->result > SPELLING_MISSING) at = word;
        }
    }
    p->at = (size_t)(at - chunk->text);
}

/* ---- What is wrong ---- */

/* Returns whether a word may be the name of a column. */
static bool is_name(const char *word) {
    return strlen(word) < 64 && (isalpha((unsigned char)*word) || *word == '_') &&
           !strpbrk(word, ",;|\"'");
}

/* Returns advice on a word that is no number of the type. */
static const char *hint(const struct source *s, uint64_t line, const char *word, char out[160]) {
    double x;
    const char *known = spelling_hint(s->how.spelling, word, out);
    if (!s->how.spelling->skip_na && spelling_is_known_missing(word))
        return "--skip-na leaves such words out";
    if (!type_is_floating(s->type) && decimal_read(TALLY_F64, word, &x) == DECIMAL_OK)
        return "choose --dtype f64";
    if (*known) return known;
    if (line == 1 && is_name(word)) {
        snprintf(out, 160, "of a table with names in its first line, -c %s takes a column", word);
        return out;
    }
    if (strchr(word, ',') || strchr(word, ';'))
        return "numbers stand between blanks; of a table, -c 1 takes the first column";
    return "numbers with blanks between them are expected";
}

static bool tell_word(const struct source *s, uint64_t line, const struct chunk *chunk) {
    const struct words *p = chunk->made;
    char shown[QUOTED_BYTES], hint_text[160], *word = chunk->text + p->at;
    const char *type = s->money ? "decimal" : tally_type_name(s->type);
    word[p->length] = 0;
    quoted(word, p->length, shown);
    if (p->result == SPELLING_RANGE && s->money)
        return failed("%s:%" PRIu64 ": %s has too large an exponent for --decimal", s->name, line,
                      shown),
               false;
    if (p->result == SPELLING_RANGE)
        return failed("%s:%" PRIu64 ": %s does not fit %s; choose a wider --dtype", s->name, line,
                      shown, type),
               false;
    return failed("%s:%" PRIu64 ": '%s' is no %s number; %s", s->name, line, shown, type,
                  hint(s, line, strlen(word) == p->length ? word : "", hint_text)),
           false;
}

static bool tell_line(const struct source *s, uint64_t line) {
    return failed("%s:%" PRIu64 ": a word or a comment is longer than %d bytes; is this text?",
                  s->name, line, LINE_BYTES),
           false;
}

/* ---- All of it ---- */

static bool prepare(void *context, struct chunk *chunk) {
    const struct source *s = context;
    struct words *p = chunk->made;
    const size_t wanted = s->money ? 0 : (chunk->end / 2 + 1) * tally_type_size(s->type);
    p->elements = 0;
    p->lines = p->added = 0;
    if (s->money) p->money = (struct money){.places = 0};
    if (wanted <= p->room) return true;
    free(p->element);
    p->element = malloc(wanted);
    p->room = p->element ? wanted : 0;
    return p->element || (failed("no memory for a buffer of %zu bytes", wanted), false);
}

static void release(void *made) {
    free(((struct words *)made)->element);
}

static bool open_reader(struct source *s) {
    const struct chunk_work work = {.context = s,
                                    .made_bytes = sizeof(struct words),
                                    .prepare = prepare,
                                    .make = read_chunk,
                                    .release = release};
    if (s->text) return true;
    s->text = calloc(1, sizeof *s->text);
    if (!s->text) return failed("no memory to read %s", s->name), false;
    s->text->line = 1;
    return chunks_open(s, &work, &s->text->chunks);
}

bool text_next(struct source *s, const void **x, size_t *n) {
    struct chunk *chunk;
    *n = 0;
    if (!open_reader(s)) return false;
    struct text_reader *r = s->text;
    while (!*n) {
        if (!chunks_next(r->chunks, &chunk)) return false;
        if (!chunk) return !chunks_too_long(r->chunks) || tell_line(s, r->line);
        struct words *p = chunk->made;
        r->line += p->lines;
        if (p->result > SPELLING_MISSING) return tell_word(s, r->line, chunk);
        if (s->money) money_merge(s->money, &p->money);
        s->elements += p->added;
        *x = p->element;
        *n = p->elements / tally_type_size(s->type);
    }
    return true;
}

void text_close(struct source *s) {
    if (s->text) chunks_close(s->text->chunks);
    free(s->text);
    s->text = NULL;
}
