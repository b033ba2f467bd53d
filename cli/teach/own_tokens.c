/* own_tokens.c - see own_tokens.h. */
#include "teach/own_tokens.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const own_integer_words[] = {
    "int",     "unsigned", "signed",  "long",    "short",    "char",     "uint",     "int8_t",
    "int16_t", "int32_t",  "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", NULL};
const char *const own_real_words[] = {"float", "double", NULL};

void reader_blank(char *text, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (text[i] != '\n') text[i] = ' ';
}

bool line_goes_on(const char *s, size_t i) {
    while (i > 0 && (s[i - 1] == ' ' || s[i - 1] == '\t' || s[i - 1] == '\r'))
        i--;
    return i > 0 && s[i - 1] == '\\';
}

/* Returns the end of the comment that begins at i; i if none does. */
static size_t skip_comment(const char *s, size_t i, size_t length) {
    if (s[i] != '/' || i + 1 >= length) return i;
    if (s[i + 1] == '/') {
        while (i < length && (s[i] != '\n' || line_goes_on(s, i)))
            i++;
        return i;
    }
    if (s[i + 1] != '*') return i;
    for (i += 2; i + 1 < length && !(s[i] == '*' && s[i + 1] == '/');)
        i++;
    return i + 2 < length ? i + 2 : length;
}

/* Returns the end of the string or character that begins at i; i if none does. It ends with its
 * line, at the latest. */
static size_t skip_literal(const char *s, size_t i, size_t length) {
    const char quote = s[i];
    if (quote != '"' && quote != '\'') return i;
    for (i++; i < length && s[i] != quote && s[i] != '\n'; i++)
        if (s[i] == '\\') i++;
    return i + 1 < length ? i + 1 : length;
}

bool is_of_name(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* Returns whether the ' at i stands within a number, such as 1'000, and begins no character. */
static bool is_digit_separator(const char *s, size_t i) {
    return s[i] == '\'' && i > 0 && isalnum((unsigned char)s[i - 1]);
}

void reader_clean(struct own_source *r) {
    if (r->length >= 3 && memcmp(r->bytes, "\xef\xbb\xbf", 3) == 0) {
        reader_blank(r->bytes, 0, 3);
        reader_blank(r->clean, 0, 3);
    }
    for (size_t i = 0; i < r->length;) {
        size_t end = skip_comment(r->bytes, i, r->length);
        if (end > i)
            reader_blank(r->bytes, i, end);
        else if (!is_digit_separator(r->bytes, i))
            end = skip_literal(r->bytes, i, r->length);
        reader_blank(r->clean, i, end);
        i = end > i ? end : i + 1;
    }
}

struct own_token token_next(const struct own_source *r, size_t i, size_t end) {
    while (i < end && isspace((unsigned char)r->clean[i]))
        i++;
    struct own_token t = {i, i};
    if (i == end) return t;
    t.to++;
    if (is_of_name(r->clean[i]))
        while (t.to < end && is_of_name(r->clean[t.to]))
            t.to++;
    return t;
}

bool token_is(const struct own_source *r, struct own_token t, const char *word) {
    return strlen(word) == t.to - t.from && memcmp(r->clean + t.from, word, t.to - t.from) == 0;
}

bool token_is_one_of(const struct own_source *r, struct own_token t, const char *const *words) {
    for (; *words; words++)
        if (token_is(r, t, *words)) return true;
    return false;
}

struct own_token token_find(const struct own_source *r, size_t from, size_t end, const char *word) {
    struct own_token t = token_next(r, from, end);
    while (t.from < end && !token_is(r, t, word))
        t = token_next(r, t.to, end);
    return t;
}

bool token_is_in(const struct own_source *r, size_t from, size_t end, const char *word) {
    return token_find(r, from, end, word).from < end;
}

void token_copy(const struct own_source *r, struct own_token t, char out[OWN_NAME]) {
    const size_t size = t.to - t.from < OWN_NAME ? t.to - t.from : OWN_NAME - 1;
    memcpy(out, r->clean + t.from, size);
    out[size] = '\0';
}

unsigned reader_line(const struct own_source *r, size_t at) {
    unsigned line = 1;
    for (size_t i = 0; i < at; i++)
        line += r->bytes[i] == '\n';
    return line;
}

size_t token_past_closing(const struct own_source *r, size_t open, size_t end) {
    const char opening = r->clean[open];
    const char closing = opening == '(' ? ')' : opening == '{' ? '}' : opening == '<' ? '>' : ']';
    int depth = 0;
    for (size_t i = open; i < end; i++) {
        depth += (r->clean[i] == opening) - (r->clean[i] == closing);
        if (depth == 0) return i + 1;
    }
    return end;
}

void reader_add_type(struct own_source *r, struct own_token t) {
    if (r->type_count < TYPES_MAX && is_of_name(r->clean[t.from]))
        token_copy(r, t, r->types[r->type_count++]);
}

bool reader_has_type(const struct own_source *r, struct own_token t) {
    for (size_t i = 0; i < r->type_count; i++)
        if (token_is(r, t, r->types[i])) return true;
    return false;
}

void reader_edit(struct own_source *r, unsigned whom, size_t from, size_t to, const char *format,
                 const char *text) {
    if (r->edit_count == EDITS_MAX) return;
    struct own_edit *e = &r->edits[r->edit_count++];
    *e = (struct own_edit){.from = from, .to = to, .whom = whom};
    snprintf(e->text, sizeof e->text, format, text);
}
