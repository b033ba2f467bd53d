/* own_deduce.c - see own_deduce.h. */
#include "teach/own_deduce.h"

#include <stdio.h>
#include <string.h>

/* Returns the end of the part of a list that begins at `from`: a comma outside of brackets, or `end`. With `angles` the
 * signs < and > are brackets, too. */
static size_t part_end(const struct own_source *r, size_t from, size_t end, bool angles) {
    int depth = 0;
    for (size_t i = from; i < end; i++) {
        const char c = r->clean[i];
        depth += (c == '(' || c == '[' || c == '{' || (angles && c == '<')) -
                 (c == ')' || c == ']' || c == '}' || (angles && c == '>'));
        if (c == ',' && depth == 0) return i;
    }
    return end;
}

/* Notes the types of the parameters that a template's list [from, end) has. A parameter that is no type gets no name. */
static void note_parameters(const struct own_source *r, size_t from, size_t end,
                            struct own_template *out) {
    for (size_t to; from < end; from = to + 1) {
        to = part_end(r, from, end, true);
        const struct own_token kind = token_next(r, from, to);
        struct own_token name = token_next(r, kind.to, to);
        if (out->count == TEMPLATE_PARAMETERS_MAX) return;
        struct own_deduced *p = &out->parameters[out->count++];
        *p = (struct own_deduced){.pointer = -1, .value = -1};
        if (name.from < to && (token_is(r, kind, "typename") || token_is(r, kind, "class")))
            token_copy(r, name, p->name);
    }
}

/* Notes which of the types the function's parameter number `at`, [from, end), is of: `T v`, or `const T *v`, `T v[]`. */
static void note_source(const struct own_source *r, size_t from, size_t end, int at,
                        struct own_template *out) {
    struct own_token type = token_next(r, from, end);
    while (type.from < end && (token_is(r, type, "const") || token_is(r, type, "volatile")))
        type = token_next(r, type.to, end);
    const struct own_token after = token_next(r, type.to, end);
    if (type.from >= end ||
        (after.from < end && (token_is(r, after, "<") || token_is(r, after, ":"))))
        return;
    const bool is_pointer = token_is_in(r, type.to, end, "*") || token_is_in(r, type.to, end, "[");
    for (unsigned i = 0; i < out->count; i++) {
        struct own_deduced *p = &out->parameters[i];
        int *source = is_pointer ? &p->pointer : &p->value;
        if (*p->name && token_is(r, type, p->name) && *source < 0) *source = at;
    }
}

void deduce_note(struct own_source *r, size_t from, size_t head) {
    const struct own_token first = token_next(r, from, head), open = token_next(r, first.to, head);
    if (first.from >= head || !token_is(r, first, "template") || !token_is(r, open, "<")) return;
    const size_t close = token_past_closing(r, open.from, head);
    struct own_template found = {.count = 0};
    struct own_token name = {head, head}, t = token_next(r, close, head);
    for (; t.from < head && !token_is(r, t, "("); t = token_next(r, t.to, head))
        name = t;
    if (t.from >= head || name.from >= head || !is_of_name(r->clean[name.from])) return;
    token_copy(r, name, found.name);
    note_parameters(r, open.to, close - 1, &found);
    const size_t last = token_past_closing(r, t.from, head) - 1;
    size_t at = t.to, to;
    for (int i = 0; at < last; at = to + 1) {
        to = part_end(r, at, last, true);
        note_source(r, at, to, i++, &found);
    }
    for (unsigned i = 0; i < found.count; i++)
        if (found.parameters[i].pointer >= 0 && found.parameters[i].value < 0) found.wanted = i + 1;
    if (found.wanted && r->template_count < TEMPLATES_MAX)
        r->templates[r->template_count++] = found;
}

/* Returns the template of that name that was noted last; NULL: there is none. */
static const struct own_template *find_template(const struct own_source *r, struct own_token name) {
    for (size_t i = r->template_count; i-- > 0;)
        if (token_is(r, name, r->templates[i].name)) return &r->templates[i];
    return NULL;
}

/* Writes the types from number `given` on, as the call with the arguments [from, end) has them. Returns false if one is
 * not known, or if they are too long. */
static bool write_types(const struct own_source *r, const struct own_template *t, unsigned given,
                        size_t from, size_t end, char *out, size_t room) {
    size_t used = 0;
    for (unsigned i = given; i < t->wanted; i++) {
        const struct own_deduced *p = &t->parameters[i];
        const bool is_value = p->value >= 0;
        size_t at = from, to = part_end(r, at, end, false);
        for (int k = is_value ? p->value : p->pointer; k > 0 && to < end; k--) {
            at = to + 1;
            to = part_end(r, at, end, false);
        }
        if (p->value < 0 && p->pointer < 0) return false;
        const int added =
            snprintf(out + used, room - used, "%sown::%s<decltype((%.*s))>", i > given ? ", " : "",
                     is_value ? "bare_t" : "text_t", (int)(to - at), r->clean + at);
        if (added < 0 || (size_t)added >= room - used) return false;
        used += (size_t)added;
    }
    return used > 0 && !strpbrk(out, "\n\\?");
}

/* Edits the call of a template whose name is at `name`. */
static void edit_call(struct own_source *r, const struct own_template *t, struct own_token name,
                      size_t end) {
    char types[sizeof r->edits->text - 4];
    struct own_token open = token_next(r, name.to, end);
    unsigned given = 0;
    size_t close = 0; /* of the types that the call gives */
    if (open.from < end && token_is(r, open, "<")) {
        close = token_past_closing(r, open.from, end) - 1;
        for (size_t at = open.to; at < close; at = part_end(r, at, close, true) + 1)
            given++;
        open = token_next(r, close + 1, end);
    }
    if (open.from >= end || !token_is(r, open, "(")) return;
    const size_t last = token_past_closing(r, open.from, end) - 1;
    if (given >= t->wanted || !write_types(r, t, given, open.to, last, types, sizeof types)) return;
    if (close)
        reader_edit(r, FOR_MODEL, close, close, given ? ", %s" : "%s", types);
    else
        reader_edit(r, FOR_MODEL, name.to, name.to, "<%s>", types);
}

void deduce_calls(struct own_source *r, size_t from, size_t end) {
    struct own_token before = {from, from};
    for (struct own_token t = token_next(r, from, end); t.from < end;
         before = t, t = token_next(r, t.to, end)) {
        const struct own_template *found =
            is_of_name(r->clean[t.from]) ? find_template(r, t) : NULL;
        if (found && !token_is(r, before, ".") && !token_is(r, before, ">"))
            edit_call(r, found, t, end);
    }
}
