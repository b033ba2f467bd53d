/* own_rewrite.c - see own_rewrite.h. */
#include "teach/own_rewrite.h"

#include "teach/own_hints.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- Arms ---- */

/* Returns the end of the arm of a `?` that begins at `from`: its `:`, or what ends the expression. */
static size_t end_of_arm(const struct own_source *r, size_t from, size_t end, bool is_first) {
    int depth = 0, inner = 0;
    for (size_t i = from; i < end; i++) {
        const char c = r->clean[i];
        const bool is_mark = c == ':' && r->clean[i + 1] != ':' && r->clean[i - 1] != ':';
        depth += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
        if (depth < 0) return i;
        if (depth > 0) continue;
        if (c == ';' || (c == ',' && !is_first)) return i;
        if (is_mark && inner == 0) return i;
        inner += (c == '?') - is_mark;
    }
    return end;
}

/* Puts OWN_ARM() around an arm, unless that is a single number: a number has its type without it, and 0 may be a
 * pointer. */
static void wrap_arm(struct own_source *r, size_t from, size_t end) {
    const struct own_token first = token_next(r, from, end);
    if (first.from == end || token_next(r, first.to, end).from < end ||
        !isdigit((unsigned char)r->clean[first.from])) {
        reader_edit(r, FOR_MODEL, from, from, "%s", " OWN_ARM(");
        reader_edit(r, FOR_MODEL, end, end, "%s", ")");
    }
}

/* Returns the name that ends before `end`, without blanks and closing brackets behind it. It is empty if there is
 * none. */
static struct own_token name_before(const struct own_source *r, size_t from, size_t end) {
    while (end > from && (isspace((unsigned char)r->clean[end - 1]) || r->clean[end - 1] == ')'))
        end--;
    struct own_token t = {end, end};
    while (t.from > from && is_of_name(r->clean[t.from - 1]))
        t.from--;
    return t;
}

static bool is_same(const struct own_source *r, struct own_token a, struct own_token b) {
    return a.to > a.from && a.to - a.from == b.to - b.from &&
           memcmp(r->clean + a.from, r->clean + b.from, a.to - a.from) == 0;
}

/* Returns whether the `?` at `mark` is that of `a > b ? a : b`, with the same two names. These have one type, or are
 * plain numbers. Without OWN_ARM(), C++ then chooses one of two places without a branch. */
static bool is_extreme(const struct own_source *r, size_t from, struct own_token mark, size_t colon,
                       size_t end) {
    const struct own_token first = token_next(r, mark.to, colon),
                           second = token_next(r, colon + 1, end);
    const struct own_token right = name_before(r, from, mark.from);
    size_t compares = right.from;
    while (compares > from && strchr(" <>=", r->clean[compares - 1]))
        compares--;
    const struct own_token left = name_before(r, from, compares);
    return compares < right.from && token_next(r, first.to, colon).from == colon &&
           token_next(r, second.to, end).from == end &&
           ((is_same(r, left, first) && is_same(r, right, second)) ||
            (is_same(r, left, second) && is_same(r, right, first)));
}

void rewrite_arms(struct own_source *r, size_t from, size_t end, bool is_macro) {
    for (struct own_token t = token_find(r, from, end, "?"); t.from < end;
         t = token_find(r, t.to, end, "?")) {
        const size_t mark = end_of_arm(r, t.to, end, true);
        if (mark == end || r->clean[mark] != ':' || token_next(r, t.to, end).from == mark) continue;
        const size_t last = end_of_arm(r, mark + 1, end, false);
        if (!is_macro && is_extreme(r, from, t, mark, last)) continue;
        wrap_arm(r, t.to, mark);
        wrap_arm(r, mark + 1, last);
    }
}

/* ---- Types ---- */

/* Returns the end of the type that begins at token t: `unsigned int`, or a name that the text defines; t.from if none
 * does. */
static size_t end_of_type(const struct own_source *r, struct own_token t, size_t end) {
    if (reader_has_type(r, t)) return t.to;
    size_t last = t.from;
    while (t.from < end && token_is_one_of(r, t, own_integer_words)) {
        last = t.to;
        t = token_next(r, t.to, end);
    }
    return last;
}

/* Puts own::element_t<> around the type at t if it is an element's. Returns the place behind the type. */
static size_t wrap_type(struct own_source *r, struct own_token t, size_t end, bool is_shared) {
    char type[OWN_NAME] = "";
    const size_t last = end_of_type(r, t, end);
    if (last == t.from) return t.to;
    struct own_token after = token_next(r, last, end);
    if (after.from < end && (token_is(r, after, "<") || token_is(r, after, ":")))
        return last; /* a class's */
    while (after.from < end && (token_is(r, after, "const") || token_is(r, after, "volatile")))
        after = token_next(r, after.to, end);
    if (!is_shared && !(after.from < end && token_is(r, after, "*"))) return last;
    if (last - t.from < sizeof type) memcpy(type, r->clean + t.from, last - t.from);
    for (char *c = type; *c; c++)
        if (*c == '\n') *c = ' ';
    reader_edit(r, FOR_MODEL, t.from, last, "own::element_t<%s>", type);
    return last;
}

static void note_dynamic(struct own_source *r, struct own_token name) {
    size_t i = 0;
    while (i < OWN_DYNAMIC_MAX && *r->out->dynamic[i] && !token_is(r, name, r->out->dynamic[i]))
        i++;
    if (i < OWN_DYNAMIC_MAX) token_copy(r, name, r->out->dynamic[i]);
}

/* Edits `extern __shared__ T name[]`. The model's array is defined elsewhere (own.c). A device's array gets the size
 * that the launch would give, OWN_DYNAMIC bytes. */
static void edit_dynamic(struct own_source *r, struct own_token word, struct own_token shared,
                         size_t end) {
    const struct own_token open = token_find(r, shared.to, end, "[");
    struct own_token name = token_next(r, shared.to, end), then = name;
    char type[OWN_NAME] = "";
    reader_edit(r, FOR_MODEL, shared.from, shared.to, "%s", "");
    reader_edit(r, FOR_DEVICES, word.from, word.to, "%s", "");
    while (then.to <= open.from && then.from < end && !token_is(r, then, "[")) {
        name = then;
        then = token_next(r, then.to, end);
    }
    note_dynamic(r, name);
    for (struct own_token t = token_next(r, shared.to, end); t.from < name.from;
         t = token_next(r, t.to, end)) {
        if (token_is(r, t, "__align__") || token_is(r, t, "alignas"))
            t.to = token_next(r, t.to, end).from;
        if (r->clean[t.to] == '(') t.to = token_past_closing(r, t.to, end);
        if (!is_of_name(r->clean[t.from]) || r->clean[t.to - 1] == ')' ||
            token_is(r, t, "volatile"))
            continue;
        const size_t used = strlen(type);
        snprintf(type + used, sizeof type - used, "%s%.*s", used ? " " : "", (int)(t.to - t.from),
                 r->clean + t.from);
    }
    if (open.from < end)
        reader_edit(r, FOR_DEVICES, open.from, token_past_closing(r, open.from, end),
                    "[OWN_DYNAMIC / sizeof(%s)]", type);
}

void rewrite_for_opencl(struct own_source *r, size_t from, size_t end) {
    struct own_token before = {from, from};
    for (struct own_token t = token_next(r, from, end); t.from < end;
         before = t, t = token_next(r, t.to, end)) {
        if (token_is(r, t, "long") && token_is(r, before, "long"))
            reader_edit(r, FOR_OPENCL, t.from, t.to, "%s", "");
        if (!token_is(r, t, "static_cast")) continue;
        const struct own_token open = token_next(r, t.to, end);
        const size_t close = open.from < end ? token_past_closing(r, open.from, end) : end;
        if (close >= end || !token_is(r, open, "<")) continue;
        reader_edit(r, FOR_OPENCL, t.from, open.to, "%s", "(");
        reader_edit(r, FOR_OPENCL, close - 1, close, "%s", ")");
    }
}

/* Puts a call behind the declaration of shared arrays that begins at `from`, within a function: it tells the model how
 * large their elements are, so that it can number them. */
static void note_elements(struct own_source *r, size_t from, size_t end) {
    char calls[sizeof r->edits->text] = "";
    struct own_token name = {from, from};
    for (struct own_token t = token_next(r, from, end); t.from < end;
         t = token_next(r, t.to, end)) {
        const bool ends = token_is(r, t, ",") || token_is(r, t, ";");
        const size_t used = strlen(calls);
        if ((ends || token_is(r, t, "[") || token_is(r, t, "=")) && name.to > name.from &&
            used + (name.to - name.from) + 20 < sizeof calls) {
            sprintf(calls + used, " own::note_array(%.*s);", (int)(name.to - name.from),
                    r->clean + name.from);
            name = (struct own_token){from, from};
        } else if (is_of_name(r->clean[t.from]) && !isdigit((unsigned char)r->clean[t.from])) {
            name = t;
        }
        if (token_is(r, t, ";")) {
            reader_edit(r, FOR_MODEL, t.to, t.to, "%s", calls);
            return;
        }
        if (token_is(r, t, "[") || token_is(r, t, "(") || token_is(r, t, "<") ||
            token_is(r, t, "{"))
            t.to = token_past_closing(r, t.from, end);
        if (ends) name = (struct own_token){from, from};
    }
}

/* Edits `__shared__ S a[8], b;`. The model's arrays get an initializer, so that C++ sets them before the program runs,
 * and not at a thread's first call, whatever S is. */
static void edit_shared(struct own_source *r, size_t from, size_t end) {
    for (struct own_token t = token_next(r, from, end); t.from < end;
         t = token_next(r, t.to, end)) {
        if (token_is(r, t, "[") || token_is(r, t, "(") || token_is(r, t, "<"))
            t.to = token_past_closing(r, t.from, end);
        if (token_is(r, t, ",") || token_is(r, t, ";"))
            reader_edit(r, FOR_MODEL, t.from, t.from, "%s", " {}");
        if (token_is(r, t, ";") || token_is(r, t, "=")) return;
    }
}

/* Makes the lambda whose `[` is at `open` a part of the kernel (always_inline), where the model sees each of its
 * accesses. */
static void inline_lambda(struct own_source *r, size_t open, size_t end) {
    struct own_token t = token_next(r, token_past_closing(r, open, end), end);
    while (t.from < end && (token_is(r, t, "__device__") || token_is(r, t, "__host__")))
        t = token_next(r, t.to, end);
    if (t.from == end || !token_is(r, t, "(")) return;
    size_t at = token_past_closing(r, t.from, end);
    for (t = token_next(r, at, end);
         token_is(r, t, "mutable") || token_is(r, t, "constexpr") || token_is(r, t, "noexcept");
         t = token_next(r, at, end))
        at = t.to;
    reader_edit(r, FOR_MODEL, at, at, "%s", " __attribute__((always_inline))");
}

void rewrite_declaration(struct own_source *r, size_t from, size_t end) {
    static const char *const passed[] = {"volatile", "const", "static", "__align__", NULL};
    struct own_token before = {from, from};
    bool is_shared = false;
    for (struct own_token t = token_next(r, from, end); t.from < end;) {
        size_t on = t.to;
        if (token_is(r, before, "]") &&
            (token_is(r, t, "__device__") || token_is(r, t, "__host__"))) {
            reader_edit(r, FOR_MODEL, t.from, t.to, "%s", ""); /* of a lambda */
            t = before;
        } else if (token_is(r, t, "[") && !is_of_name(r->clean[before.from]) &&
                   !token_is(r, before, ")") && !token_is(r, before, "]") &&
                   !token_is(r, before, "[")) {
            inline_lambda(r, t.from, end);
        } else if (token_is(r, t, "__shared__")) {
            is_shared = true;
            hint_lengths(r, t.to, token_find(r, t.to, end, ";").from);
            if (token_is(r, before, "extern"))
                edit_dynamic(r, before, t, end);
            else
                edit_shared(r, t.to, end);
            if (r->clean[end - 1] == '}') note_elements(r, t.to, end);
            if (token_is(r, before, "static"))
                reader_edit(r, FOR_MODEL | FOR_OPENCL, before.from, before.to, "%s", "");
        } else if (token_is_one_of(r, t, passed) || token_is(r, t, "(") || token_is(r, t, ")") ||
                   isdigit((unsigned char)r->clean[t.from])) {
            ; /* __align__(16) leaves the declaration what it is */
        } else {
            on = wrap_type(r, t, end, is_shared);
            is_shared = false;
        }
        before = t;
        t = token_next(r, on, end);
    }
}
