/* own_indexes.c - see own_indexes.h. */
#include "teach/own_indexes.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { CHAIN_MOST = 90 }; /* the most bytes of `a.v`, the array, in an edit */

static const char *const qualifiers[] = {
    "const",        "volatile",     "static",      "constexpr",
    "register",     "extern",       "mutable",     "__shared__",
    "__device__",   "__constant__", "__managed__", "typename",
    "__restrict__", "alignas",      "__align__",   NULL};
/* Words in front of a name that do not make a declaration of it. */
static const char *const statements[] = {"return", "else",  "case", "do",    "goto",     "throw",
                                         "delete", "new",   "if",   "for",   "while",    "switch",
                                         "sizeof", "using", "and",  "or",    "not",      "typedef",
                                         "struct", "class", "enum", "union", "template", NULL};

static bool is_name(const struct own_source *r, struct own_token t, size_t end) {
    return t.from < end && is_of_name(r->clean[t.from]) &&
           !isdigit((unsigned char)r->clean[t.from]);
}

static bool is_noted(const struct own_source *r, struct own_token t) {
    for (size_t i = 0; i < r->array_count; i++)
        if (token_is(r, t, r->arrays[i])) return true;
    return false;
}

static void note_array(struct own_source *r, struct own_token t) {
    if (!is_noted(r, t) && r->array_count < ARRAYS_MAX)
        token_copy(r, t, r->arrays[r->array_count++]);
}

/* Returns the token behind the brackets `[..][..]` that t opens, or t. */
static struct own_token past_brackets(const struct own_source *r, struct own_token t, size_t end) {
    while (t.from < end && token_is(r, t, "["))
        t = token_next(r, token_past_closing(r, t.from, end), end);
    return t;
}

/* Returns the name that a declaration which begins at t declares first; its from is `end` if t begins none. */
static struct own_token first_declared(const struct own_source *r, struct own_token t, size_t end) {
    const struct own_token none = {end, end};
    bool has_type = false;
    for (; is_name(r, t, end); t = token_next(r, t.to, end)) {
        if (token_is_one_of(r, t, statements)) return none;
        const struct own_token after = token_next(r, t.to, end);
        if (token_is_one_of(r, t, qualifiers)) {
            if (after.from < end && token_is(r, after, "("))
                t.to = token_past_closing(r, after.from, end);
            continue;
        }
        const bool is_word =
            token_is_one_of(r, t, own_integer_words) || token_is_one_of(r, t, own_real_words);
        if (has_type && !is_word) return t;
        has_type = true;
        if (after.from < end && token_is(r, after, "<"))
            t.to = token_past_closing(r, after.from, end);
        for (struct own_token m = token_next(r, t.to, end);
             m.from < end && (token_is(r, m, "*") || token_is(r, m, "&") || token_is(r, m, ":"));
             m = token_next(r, t.to, end)) {
            has_type = !token_is(r, m, ":");
            t.to = m.to;
        }
    }
    return none;
}

/* Notes the arrays of the declaration whose first name is `name`, and returns the place of its first initializer, or
 * of its end. What stands in brackets there is a length and no index. */
static size_t note_declared(struct own_source *r, struct own_token name, size_t end) {
    const struct own_token open = token_next(r, name.to, end);
    if (open.from >= end || !token_is(r, open, "[")) return name.to;
    note_array(r, name);
    return past_brackets(r, open, end).from;
}

/* Returns the place where `a.b[i].` before a name begins, or the name's own; 0: it is not that simple. */
static size_t chain_start(const struct own_source *r, size_t at) {
    for (;;) {
        size_t p = at;
        while (p > 0 && isspace((unsigned char)r->clean[p - 1]))
            p--;
        if (p > 0 && r->clean[p - 1] == '.')
            p--;
        else if (p > 1 && r->clean[p - 1] == '>' && r->clean[p - 2] == '-')
            p -= 2;
        else
            return p > 0 && r->clean[p - 1] == ':' && r->clean[p - 2] == ':' ? 0 : at;
        while (p > 0 && r->clean[p - 1] == ']') {
            int depth = 0;
            do {
                p--;
                depth += (r->clean[p] == ']') - (r->clean[p] == '[');
            } while (p > 0 && depth > 0);
        }
        if (p == 0 || !is_of_name(r->clean[p - 1])) return 0;
        while (p > 0 && is_of_name(r->clean[p - 1]))
            p--;
        at = p;
    }
}

/* Edits the indexes behind an array's name. */
static void edit_indexes(struct own_source *r, struct own_token name, size_t end) {
    const size_t start = chain_start(r, name.from);
    char array[CHAIN_MOST + 16], ends[CHAIN_MOST + 16];
    bool is_row = false;
    if (start == 0 || name.to - start > CHAIN_MOST) return;
    size_t used =
        (size_t)snprintf(array, sizeof array, "%.*s", (int)(name.to - start), r->clean + start);
    if (strpbrk(array, "\n\\")) return;
    for (struct own_token t = token_next(r, name.to, end); t.from < end && token_is(r, t, "[");) {
        const size_t close = token_past_closing(r, t.from, end);
        if (token_next(r, t.to, end).from + 1 >= close) return;
        reader_edit(r, FOR_MODEL, t.to, t.to, "own::at<decltype((%s))>(", array);
        snprintf(ends, sizeof ends, ", \"%.*s%s\")", (int)(name.to - name.from),
                 r->clean + name.from, is_row ? "[...]" : "");
        reader_edit(r, FOR_MODEL, close - 1, close - 1, "%s", ends);
        is_row = true;
        if (used + 4 > sizeof array) return;
        used += (size_t)snprintf(array + used, sizeof array - used, "[0]");
        t = token_next(r, close, end);
    }
}

void rewrite_indexes(struct own_source *r, size_t from, size_t end) {
    struct own_token before = {from, from};
    bool begins = true, declares = false;
    int depth = 0; /* of brackets within a declaration */
    for (struct own_token t = token_next(r, from, end); t.from < end;
         before = t, t = token_next(r, t.to, end)) {
        if (begins) {
            const struct own_token name = first_declared(r, t, end);
            declares = name.from < end;
            depth = 0;
            if (declares) {
                t.to = note_declared(r, name, end);
                begins = false;
                continue;
            }
        }
        const char c = r->clean[t.from];
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        begins = c == ';' || (c == '{' && !declares) || (c == '}' && depth <= 0 && !declares);
        if (begins) continue;
        if (!is_name(r, t, end) || !token_is(r, token_next(r, t.to, end), "[")) continue;
        if (declares && depth == 0 && token_is(r, before, ","))
            t.to = note_declared(r, t, end);
        else if (is_noted(r, t) &&
                 (!is_name(r, before, end) || token_is_one_of(r, before, statements)))
            edit_indexes(r, t, end);
    }
}

void note_variables(struct own_source *r, size_t from, size_t end) {
    struct own_text *out = r->out;
    struct own_token name = {end, end};
    bool has_value = false;
    for (struct own_token t = token_next(r, from, end); t.from < end;
         t = token_next(r, t.to, end)) {
        const char c = r->clean[t.from];
        const bool ends = c == ',' || c == ';';
        if (c == '(' && !has_value && !token_is_one_of(r, name, qualifiers))
            return; /* a function's address */
        if (token_is(r, t, "template") || token_is(r, t, "extern") || token_is(r, t, "operator"))
            return;
        if ((ends || c == '[' || c == '=' || c == '{') && !has_value) {
            if (is_name(r, name, end) && out->variable_count < OWN_VARIABLES_MAX)
                token_copy(r, name, out->variables[out->variable_count++]);
            has_value = true;
        }
        if (c == '(' || c == '[' || c == '{' || (c == '<' && !has_value))
            t.to = token_past_closing(r, t.from, end);
        if (ends) has_value = false;
        name = t;
    }
}
