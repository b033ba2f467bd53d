/* own_conditions.c - see own_conditions.h. */
#include "teach/own_conditions.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Macros ---- */

static struct own_macro *find_macro(struct own_conditions *c, const char *name) {
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->macros[i].name, name) == 0) return &c->macros[i];
    return NULL;
}

static void define(struct own_conditions *c, const char *name, const char *value, size_t length,
                   bool has_value) {
    struct own_macro *m = find_macro(c, name);
    if (!m && c->count < MACROS_MAX) m = &c->macros[c->count++];
    if (!m) return;
    snprintf(m->name, sizeof m->name, "%s", name);
    m->value = value;
    m->length = length;
    m->has_value = has_value;
}

void conditions_begin(struct own_conditions *c, const char *const *defines, size_t count,
                      const char *prelude) {
    *c = (struct own_conditions){.prelude = prelude};
    define(c, "__CUDACC__", "1", 1, true);
    define(c, "__CUDA_ARCH__", "800", 3, true);
    define(c, "__cplusplus", "202002", 6, true);
    for (size_t i = 0; i < count; i++) {
        char name[OWN_NAME];
        const char *equals = strchr(defines[i], '=');
        snprintf(name, sizeof name, "%.*s", (int)strcspn(defines[i], "="), defines[i]);
        define(c, name, equals ? equals + 1 : "1", equals ? strlen(equals + 1) : 1, true);
    }
}

/* Returns whether the text before the student's defines a macro of that name. */
static bool is_of_prelude(const struct own_conditions *c, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = c->prelude; at && (at = strstr(at, "#define ")); at += 8)
        if (strncmp(at + 8, name, length) == 0 && !is_of_name(at[8 + length])) return true;
    return false;
}

/* ---- Expressions ---- */

/* An expression of #if that is being read. */
struct reading {
    struct own_conditions *c;
    const char *at, *end;
    unsigned depth; /* of macros within macros */
    bool is_unknown;
};

static void skip_blanks(struct reading *e) {
    while (e->at < e->end && (isspace((unsigned char)*e->at) || *e->at == '\\'))
        e->at++;
}

/* Reads a sign if it is next. */
static bool takes(struct reading *e, const char *sign) {
    const size_t length = strlen(sign);
    skip_blanks(e);
    if ((size_t)(e->end - e->at) < length || strncmp(e->at, sign, length) != 0) return false;
    e->at += length;
    return true;
}

static void read_name(struct reading *e, char name[OWN_NAME]) {
    const char *from = e->at;
    while (e->at < e->end && is_of_name(*e->at))
        e->at++;
    snprintf(name, OWN_NAME, "%.*s", (int)(e->at - from), from);
}

static long long either(struct reading *e);

static long long whole_expression(struct reading *e) {
    const long long value = either(e);
    skip_blanks(e);
    if (e->at < e->end) e->is_unknown = true;
    return value;
}

static long long value_of(struct reading *e, const char *name) {
    const struct own_macro *m = find_macro(e->c, name);
    if (!m) {
        e->is_unknown |= is_of_prelude(e->c, name) || strncmp(name, "__", 2) == 0;
        return strcmp(name, "true") == 0;
    }
    struct reading of = {e->c, m->value, m->value + m->length, e->depth + 1, false};
    if (!m->has_value || e->depth > 8) return e->is_unknown = true, 0;
    const long long value = whole_expression(&of);
    e->is_unknown |= of.is_unknown;
    return value;
}

static long long is_defined(struct reading *e) {
    char name[OWN_NAME];
    const bool bracket = takes(e, "(");
    skip_blanks(e);
    read_name(e, name);
    if (!*name || (bracket && !takes(e, ")"))) e->is_unknown = true;
    const bool is = find_macro(e->c, name) || is_of_prelude(e->c, name);
    e->is_unknown |= !is && strncmp(name, "__", 2) == 0; /* it may be one of the compiler's */
    return is;
}

static long long primary(struct reading *e) {
    char name[OWN_NAME];
    if (takes(e, "!")) return !primary(e);
    if (takes(e, "-")) return (long long)-(unsigned long long)primary(e);
    if (takes(e, "+")) return primary(e);
    if (takes(e, "(")) {
        const long long value = either(e);
        if (!takes(e, ")")) e->is_unknown = true;
        return value;
    }
    skip_blanks(e);
    if (e->at == e->end || !is_of_name(*e->at)) return e->is_unknown = true, 0;
    const bool is_number = isdigit((unsigned char)*e->at);
    read_name(e, name);
    if (is_number) {
        char *rest;
        const long long value = strtoll(name, &rest, 0);
        e->is_unknown |= rest[strspn(rest, "uUlL")] != '\0';
        return value;
    }
    return strcmp(name, "defined") == 0 ? is_defined(e) : value_of(e, name);
}

static long long product(struct reading *e) {
    long long value = primary(e);
    for (;;) {
        if (takes(e, "*")) {
            value = (long long)((unsigned long long)value * (unsigned long long)primary(e));
        } else if (takes(e, "/") || takes(e, "%")) {
            const bool divides = e->at[-1] == '/';
            const long long by = primary(e);
            if (by <= 0) return e->is_unknown = true, 0;
            value = divides ? value / by : value % by;
        } else {
            return value;
        }
    }
}

/* Reads `a op b op c` of the operators of one level: products, sums, order, equality. */
static long long level(struct reading *e, unsigned number) {
    static const char *const signs[][5] = {{""}, {"+", "-"}, {"<=", ">=", "<", ">"}, {"==", "!="}};
    if (number == 0) return product(e);
    long long value = level(e, number - 1);
    for (unsigned i = 0; number < sizeof signs / sizeof *signs && signs[number][i];) {
        if (!takes(e, signs[number][i])) {
            i++;
            continue;
        }
        const char *sign = signs[number][i];
        const long long by = level(e, number - 1);
        const unsigned long long a = (unsigned long long)value, b = (unsigned long long)by;
        value = number == 1   ? (long long)(*sign == '+' ? a + b : a - b)
                : number == 3 ? (value == by) == (*sign == '=')
                : sign[1]     ? (*sign == '<' ? value <= by : value >= by)
                              : (*sign == '<' ? value < by : value > by);
        i = 0;
    }
    return value;
}

static long long both(struct reading *e) {
    long long value = level(e, 3);
    while (takes(e, "&&")) {
        const long long other = level(e, 3);
        value = value && other;
    }
    return value;
}

static long long either(struct reading *e) {
    long long value = both(e);
    while (takes(e, "||")) {
        const long long other = both(e);
        value = value || other;
    }
    return value;
}

/* ---- Directives ---- */

bool conditions_hold(const struct own_conditions *c) {
    return c->depth == 0 || c->depth > CONDITIONS_MAX || c->levels[c->depth - 1].is_in;
}

/* Reads #define NAME VALUE, behind its word. */
static void read_define(struct own_conditions *c, const struct own_source *r, size_t from,
                        size_t end) {
    char name[OWN_NAME];
    const struct own_token t = token_next(r, from, end);
    if (t.from >= end) return;
    token_copy(r, t, name);
    define(c, name, r->bytes + t.to, end - t.to, r->clean[t.to] != '(');
}

/* Returns whether the condition of #if, #elif, #ifdef or #ifndef holds; *is_unknown says that nobody knows. */
static bool holds(struct own_conditions *c, const struct own_source *r, struct own_token word,
                  size_t end, bool *is_unknown) {
    struct reading e = {c, r->clean + word.to, r->clean + end, 0, false};
    skip_blanks(&e);
    const bool asks = token_is(r, word, "ifdef") || token_is(r, word, "ifndef");
    const long long value = asks ? is_defined(&e) : whole_expression(&e);
    *is_unknown = e.is_unknown;
    return (value != 0) != token_is(r, word, "ifndef");
}

void conditions_read(struct own_conditions *c, const struct own_source *r, struct own_token word,
                     size_t end) {
    const bool opens =
        token_is(r, word, "if") || token_is(r, word, "ifdef") || token_is(r, word, "ifndef");
    bool is_unknown = false;
    if (opens) {
        const bool around = conditions_hold(c);
        if (c->depth++ >= CONDITIONS_MAX) return;
        const bool is = around && holds(c, r, word, end, &is_unknown);
        c->levels[c->depth - 1].around = around;
        c->levels[c->depth - 1].is_in = around && (is || is_unknown);
        c->levels[c->depth - 1].was_in = is && !is_unknown;
    } else if (token_is(r, word, "endif")) {
        c->depth -= c->depth > 0;
    } else if (token_is(r, word, "elif") || token_is(r, word, "else")) {
        if (c->depth == 0 || c->depth > CONDITIONS_MAX) return;
        const size_t k = c->depth - 1;
        const bool may = c->levels[k].around && !c->levels[k].was_in;
        const bool is = may && (token_is(r, word, "else") || holds(c, r, word, end, &is_unknown));
        c->levels[k].is_in = may && (is || is_unknown);
        c->levels[k].was_in |= is && !is_unknown;
    } else if (conditions_hold(c)) {
        struct own_macro *m;
        char name[OWN_NAME];
        if (token_is(r, word, "define")) read_define(c, r, word.to, end);
        if (!token_is(r, word, "undef")) return;
        token_copy(r, token_next(r, word.to, end), name);
        if ((m = find_macro(c, name))) *m = c->macros[--c->count];
    }
}
