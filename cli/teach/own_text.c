/*
 * own_text.c - see own_text.h.
 *
 * The text is never understood as a compiler would: it is cut into declarations at top level, and of these
 * the device's are kept. Within them four things are written otherwise: an array `extern __shared__`
 * loses that word, as it is defined elsewhere; a variable of the device's gets a section; a type that a
 * pointer or a shared array holds becomes own::element_t<type>, whose operators the model sees; and around both arms of
 * `c ? a : b` stands OWN_ARM(), which chooses the type of a number and an element.
 */
#include "teach/own_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EDITS_MAX = 4096, TYPES_MAX = 32 };

/* For whom an edit is: bits. */
enum { FOR_MODEL = 1 << OWN_MODEL, FOR_CUDA = 1 << OWN_CUDA, FOR_OPENCL = 1 << OWN_OPENCL };
enum { FOR_DEVICES = FOR_CUDA | FOR_OPENCL };

struct edit {
    size_t from, to; /* of the file */
    unsigned whom;
    char text[160];
};

struct reader {
    char *clean; /* the file without comments, strings and directives: blanks in their place */
    size_t length;
    char *bytes; /* the file; what is the host's becomes blanks */
    struct edit *edits;
    size_t edit_count;
    char types[TYPES_MAX][OWN_NAME]; /* names of types that the text defines */
    size_t type_count;
    bool helps_to_number; /* a macro, or a function that is no kernel, asks which thread it is */
    struct own_text *out;
};

/* ---- Comments, strings, directives ---- */

static void blank(char *text, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (text[i] != '\n') text[i] = ' ';
}

/* Whether the line goes on after its end at i: a backslash, and perhaps blanks, stand before it. */
static bool goes_on_after(const char *s, size_t i) {
    while (i > 0 && (s[i - 1] == ' ' || s[i - 1] == '\t' || s[i - 1] == '\r'))
        i--;
    return i > 0 && s[i - 1] == '\\';
}

/* The end of the comment that begins at i; i where none does. */
static size_t skip_comment(const char *s, size_t i, size_t length) {
    if (s[i] != '/' || i + 1 >= length) return i;
    if (s[i + 1] == '/') {
        while (i < length && (s[i] != '\n' || goes_on_after(s, i)))
            i++;
        return i;
    }
    if (s[i + 1] != '*') return i;
    for (i += 2; i + 1 < length && !(s[i] == '*' && s[i + 1] == '/');)
        i++;
    return i + 2 < length ? i + 2 : length;
}

/* The same of a string or character. It ends with its line, at the latest. */
static size_t skip_literal(const char *s, size_t i, size_t length) {
    const char quote = s[i];
    if (quote != '"' && quote != '\'') return i;
    for (i++; i < length && s[i] != quote && s[i] != '\n'; i++)
        if (s[i] == '\\') i++;
    return i + 1 < length ? i + 1 : length;
}

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* `1'000` is a number, and not the start of a character. */
static bool is_digit_separator(const char *s, size_t i) {
    return s[i] == '\'' && i > 0 && isalnum((unsigned char)s[i - 1]);
}

/* Comments become blanks in the text, too: what is none to the compiler must not hide in one. */
static void make_clean(struct reader *r) {
    if (r->length >= 3 && memcmp(r->bytes, "\xef\xbb\xbf", 3) == 0) { /* a mark of UTF-8 */
        blank(r->bytes, 0, 3);
        blank(r->clean, 0, 3);
    }
    for (size_t i = 0; i < r->length;) {
        size_t end = skip_comment(r->bytes, i, r->length);
        if (end > i)
            blank(r->bytes, i, end);
        else if (!is_digit_separator(r->bytes, i))
            end = skip_literal(r->bytes, i, r->length);
        blank(r->clean, i, end);
        i = end > i ? end : i + 1;
    }
}

/* ---- Tokens ---- */

struct token {
    size_t from, to;
};

/* The next token at or after i, within [i, end); its from is `end` where there is none. */
static struct token next(const struct reader *r, size_t i, size_t end) {
    while (i < end && isspace((unsigned char)r->clean[i]))
        i++;
    struct token t = {i, i};
    if (i == end) return t;
    t.to++;
    if (is_name(r->clean[i]))
        while (t.to < end && is_name(r->clean[t.to]))
            t.to++;
    return t;
}

static bool is(const struct reader *r, struct token t, const char *word) {
    return strlen(word) == t.to - t.from && memcmp(r->clean + t.from, word, t.to - t.from) == 0;
}

static bool is_one_of(const struct reader *r, struct token t, const char *const *words) {
    for (; *words; words++)
        if (is(r, t, *words)) return true;
    return false;
}

/* The first token of that spelling in [from, end). */
static struct token find(const struct reader *r, size_t from, size_t end, const char *word) {
    struct token t = next(r, from, end);
    while (t.from < end && !is(r, t, word))
        t = next(r, t.to, end);
    return t;
}

static bool has(const struct reader *r, size_t from, size_t end, const char *word) {
    return find(r, from, end, word).from < end;
}

static void copy_name(const struct reader *r, struct token t, char out[OWN_NAME]) {
    const size_t size = t.to - t.from < OWN_NAME ? t.to - t.from : OWN_NAME - 1;
    memcpy(out, r->clean + t.from, size);
    out[size] = '\0';
}

static unsigned line_at(const struct reader *r, size_t at) {
    unsigned line = 1;
    for (size_t i = 0; i < at; i++)
        line += r->bytes[i] == '\n';
    return line;
}

static void add_type(struct reader *r, struct token t) {
    if (r->type_count < TYPES_MAX && is_name(r->clean[t.from]))
        copy_name(r, t, r->types[r->type_count++]);
}

static bool is_defined_type(const struct reader *r, struct token t) {
    for (size_t i = 0; i < r->type_count; i++)
        if (is(r, t, r->types[i])) return true;
    return false;
}

/* ---- Edits ---- */

static void edit(struct reader *r, unsigned whom, size_t from, size_t to, const char *format,
                 const char *text) {
    if (r->edit_count == EDITS_MAX) return;
    struct edit *e = &r->edits[r->edit_count++];
    *e = (struct edit){.from = from, .to = to, .whom = whom};
    snprintf(e->text, sizeof e->text, format, text);
}

/* ---- Arms ---- */

/* The end of the arm of a `?` that begins at `from`: its `:`, or what ends the expression. */
static size_t end_of_arm(const struct reader *r, size_t from, size_t end, bool is_first) {
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

/* Puts OWN_ARM() around an arm. A single number of digits has its type anyhow, and may be a pointer's 0. */
static void wrap_arm(struct reader *r, size_t from, size_t end) {
    const struct token first = next(r, from, end);
    if (first.from == end || next(r, first.to, end).from < end ||
        !isdigit((unsigned char)r->clean[first.from])) {
        edit(r, FOR_MODEL, from, from, "%s", " OWN_ARM(");
        edit(r, FOR_MODEL, end, end, "%s", ")");
    }
}

/* The name that ends before `end`, behind blanks and brackets that close; it is empty where there is none. */
static struct token name_before(const struct reader *r, size_t from, size_t end) {
    while (end > from && (isspace((unsigned char)r->clean[end - 1]) || r->clean[end - 1] == ')'))
        end--;
    struct token t = {end, end};
    while (t.from > from && is_name(r->clean[t.from - 1]))
        t.from--;
    return t;
}

static bool is_same(const struct reader *r, struct token a, struct token b) {
    return a.to > a.from && a.to - a.from == b.to - b.from &&
           memcmp(r->clean + a.from, r->clean + b.from, a.to - a.from) == 0;
}

/* Returns whether `a > b ? a : b` stands around the mark: one of two variables, which are of one type or plain. C++ chooses the
 * place of one without a branch. */
static bool is_extreme(const struct reader *r, size_t from, struct token mark, size_t colon,
                       size_t end) {
    const struct token first = next(r, mark.to, colon), second = next(r, colon + 1, end);
    const struct token right = name_before(r, from, mark.from);
    size_t compares = right.from;
    while (compares > from && strchr(" <>=", r->clean[compares - 1]))
        compares--;
    const struct token left = name_before(r, from, compares);
    return compares < right.from && next(r, first.to, colon).from == colon &&
           next(r, second.to, end).from == end &&
           ((is_same(r, left, first) && is_same(r, right, second)) ||
            (is_same(r, left, second) && is_same(r, right, first)));
}

/* The names in a macro may stand for anything. */
static void wrap_arms(struct reader *r, size_t from, size_t end, bool is_macro) {
    for (struct token t = find(r, from, end, "?"); t.from < end; t = find(r, t.to, end, "?")) {
        const size_t mark = end_of_arm(r, t.to, end, true);
        if (mark == end || r->clean[mark] != ':' || next(r, t.to, end).from == mark) continue;
        const size_t last = end_of_arm(r, mark + 1, end, false);
        if (!is_macro && is_extreme(r, from, t, mark, last)) continue;
        wrap_arm(r, t.to, mark);
        wrap_arm(r, mark + 1, last);
    }
}

/* ---- Directives ---- */

static const char *const integer_words[] = {
    "int",     "unsigned", "signed",  "long",    "short",    "char",     "uint",     "int8_t",
    "int16_t", "int32_t",  "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", NULL};
static const char *const real_words[] = {"float", "double", NULL};

/* Returns whether [from, end) asks which thread it is. */
static bool numbers_threads(const struct reader *r, size_t from, size_t end) {
    return has(r, from, end, "threadIdx") || has(r, from, end, "this_thread_block") ||
           has(r, from, end, "coalesced_threads");
}

/* Returns whether a number of that name is about warps or about elements a thread, and no block's. */
static bool names_a_warp(const struct reader *r, struct token t) {
    static const char *const words[] = {"warp", "lane", "factor", "coarse", "per", NULL};
    char name[OWN_NAME];
    copy_name(r, t, name);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (const char *const *word = words; *word; word++)
        if (strstr(name, *word)) return true;
    return false;
}

/* Notes a number that may be the threads of a block: a power of two up to 1024. */
static void note_block_number(struct reader *r, unsigned long n) {
    if (n < 2 || n > 1024 || (n & (n - 1)) || r->out->block_count == OWN_BLOCKS_MAX) return;
    for (size_t i = 0; i < r->out->block_count; i++)
        if (r->out->blocks[i] == n) return;
    r->out->blocks[r->out->block_count++] = (unsigned)n;
}

static void note_block(struct reader *r, struct token t, size_t end) {
    if (t.from < end) note_block_number(r, strtoul(r->clean + t.from, NULL, 10));
}

/* `#define N 256` may be the threads of a block, `#define T int` is a type. */
static void note_define(struct reader *r, size_t from, size_t end) {
    const struct token name = next(r, from, end), value = next(r, name.to, end);
    if (value.from >= end || value.from == name.to) return;
    if (is_one_of(r, value, integer_words) || is_one_of(r, value, real_words)) add_type(r, name);
    if (next(r, value.to, end).from >= end && !names_a_warp(r, name)) note_block(r, value, end);
}

/* Directives that choose or define stay; they are no declarations. All others become blanks. */
static bool read_directives(struct reader *r, char *why, size_t room, unsigned *line) {
    static const char *const kept[] = {"define", "undef", "if",    "ifdef", "ifndef",
                                       "elif",   "else",  "endif", "error", NULL};
    static const char *const left_out[] = {"include", "pragma", "line", "warning", "ident", NULL};
    for (size_t i = 0; i < r->length;) {
        size_t end = i;
        while (end < r->length && (r->clean[end] != '\n' || goes_on_after(r->clean, end)))
            end++;
        const struct token mark = next(r, i, end);
        const bool digraph = mark.from + 1 < end && memcmp(r->clean + mark.from, "%:", 2) == 0;
        if (mark.from < end && (r->clean[mark.from] == '#' || digraph)) {
            const struct token word = next(r, mark.to + digraph, end);
            if (word.from < end && is_one_of(r, word, left_out)) {
                blank(r->bytes, i, end);
            } else if (word.from < end && !is_one_of(r, word, kept)) {
                snprintf(why, room, "#%.*s is not for a kernel here", (int)(word.to - word.from),
                         r->clean + word.from);
                *line = line_at(r, mark.from);
                return false;
            } else if (word.from < end && is(r, word, "define")) {
                note_define(r, word.to, end);
                r->helps_to_number |= numbers_threads(r, word.to, end);
                wrap_arms(r, word.to, end, true);
            }
            blank(r->clean, i, end);
        }
        i = end + 1;
    }
    return true;
}

/* The place past the bracket that closes the one at `open`. */
static size_t past_closing(const struct reader *r, size_t open, size_t end) {
    const char opening = r->clean[open];
    const char closing = opening == '(' ? ')' : opening == '{' ? '}' : opening == '<' ? '>' : ']';
    int depth = 0;
    for (size_t i = open; i < end; i++) {
        depth += (r->clean[i] == opening) - (r->clean[i] == closing);
        if (depth == 0) return i + 1;
    }
    return end;
}

/* ---- Types ---- */

/* The end of the type that begins at token t: `unsigned int`, or a name that the text defines. t.from where
 * none begins. */
static size_t end_of_type(const struct reader *r, struct token t, size_t end) {
    if (is_defined_type(r, t)) return t.to;
    size_t last = t.from;
    while (t.from < end && is_one_of(r, t, integer_words)) {
        last = t.to;
        t = next(r, t.to, end);
    }
    return last;
}

/* Wraps the type at t where it is an element's. Returns where to go on. */
static size_t wrap_type(struct reader *r, struct token t, size_t end, bool is_shared) {
    char type[OWN_NAME] = "";
    const size_t last = end_of_type(r, t, end);
    if (last == t.from) return t.to;
    struct token after = next(r, last, end);
    if (after.from < end && (is(r, after, "<") || is(r, after, ":"))) return last; /* a class's */
    while (after.from < end && (is(r, after, "const") || is(r, after, "volatile")))
        after = next(r, after.to, end);
    if (!is_shared && !(after.from < end && is(r, after, "*"))) return last;
    if (last - t.from < sizeof type) memcpy(type, r->clean + t.from, last - t.from);
    for (char *c = type; *c; c++)
        if (*c == '\n') *c = ' ';
    edit(r, FOR_MODEL, t.from, last, "own::element_t<%s>", type);
    return last;
}

static void note_dynamic(struct reader *r, struct token name) {
    size_t i = 0;
    while (i < OWN_DYNAMIC_MAX && *r->out->dynamic[i] && !is(r, name, r->out->dynamic[i]))
        i++;
    if (i < OWN_DYNAMIC_MAX) copy_name(r, name, r->out->dynamic[i]);
}

/* `extern __shared__ T name[]`: the model's is defined elsewhere; a device's has the size that the launch would
 * give, OWN_DYNAMIC bytes. */
static void edit_dynamic(struct reader *r, struct token word, struct token shared, size_t end) {
    const struct token open = find(r, shared.to, end, "[");
    struct token name = next(r, shared.to, end), then = name;
    char type[OWN_NAME] = "";
    edit(r, FOR_MODEL, shared.from, shared.to, "%s", "");
    edit(r, FOR_DEVICES, word.from, word.to, "%s", "");
    while (then.to <= open.from && then.from < end && !is(r, then, "[")) {
        name = then;
        then = next(r, then.to, end);
    }
    note_dynamic(r, name);
    for (struct token t = next(r, shared.to, end); t.from < name.from; t = next(r, t.to, end)) {
        if (is(r, t, "__align__") || is(r, t, "alignas")) t.to = next(r, t.to, end).from;
        if (r->clean[t.to] == '(') t.to = past_closing(r, t.to, end);
        if (!is_name(r->clean[t.from]) || r->clean[t.to - 1] == ')' || is(r, t, "volatile"))
            continue;
        const size_t used = strlen(type);
        snprintf(type + used, sizeof type - used, "%s%.*s", used ? " " : "", (int)(t.to - t.from),
                 r->clean + t.from);
    }
    if (open.from < end)
        edit(r, FOR_DEVICES, open.from, past_closing(r, open.from, end),
             "[OWN_DYNAMIC / sizeof(%s)]", type);
}

/* What OpenCL C writes otherwise: it has no `long long` and no static_cast<T>(x). */
static void edit_for_opencl(struct reader *r, size_t from, size_t end) {
    struct token before = {from, from};
    for (struct token t = next(r, from, end); t.from < end; before = t, t = next(r, t.to, end)) {
        if (is(r, t, "long") && is(r, before, "long")) edit(r, FOR_OPENCL, t.from, t.to, "%s", "");
        if (!is(r, t, "static_cast")) continue;
        const struct token open = next(r, t.to, end);
        const size_t close = open.from < end ? past_closing(r, open.from, end) : end;
        if (close >= end || !is(r, open, "<")) continue;
        edit(r, FOR_OPENCL, t.from, open.to, "%s", "(");
        edit(r, FOR_OPENCL, close - 1, close, "%s", ")");
    }
}

/* `__shared__ S a[8], b;`: the model's have an initializer, so that C++ sets them before the program runs and not at a
 * thread's first call, whatever S is. */
static void edit_shared(struct reader *r, size_t from, size_t end) {
    for (struct token t = next(r, from, end); t.from < end; t = next(r, t.to, end)) {
        if (is(r, t, "[") || is(r, t, "(") || is(r, t, "<")) t.to = past_closing(r, t.from, end);
        if (is(r, t, ",") || is(r, t, ";")) edit(r, FOR_MODEL, t.from, t.from, "%s", " {}");
        if (is(r, t, ";") || is(r, t, "=")) return;
    }
}

/* Notes the lengths of shared arrays, [from, end). Of two dimensions the product may be the threads, too. A number below a
 * warp's lanes is seldom a block. */
static void note_lengths(struct reader *r, size_t from, size_t end) {
    unsigned long product = 1, lengths[2] = {0, 0};
    size_t count = 0;
    for (struct token open = find(r, from, end, "["); open.from < end;
         open = find(r, open.to, end, "[")) {
        const struct token length = next(r, open.to, end);
        const unsigned long n = strtoul(r->clean + length.from, NULL, 10);
        product = n && product <= 1024 ? product * n : 0;
        if (count < 2) lengths[count] = n;
        count++;
        if (n >= 32) note_block(r, length, end);
    }
    if (product >= 32) note_block_number(r, product);
    if (count == 2 && product && product <= 1024 && !r->out->width) {
        r->out->height = (unsigned)lengths[0];
        r->out->width = (unsigned)lengths[1];
    }
}

/* Returns whether blockIdx.x stands before token t, times it: then t is the threads of a block, or a multiple of them. */
static bool follows_block_index(const struct reader *r, size_t from, struct token t) {
    static const char word[] = "blockIdx.x*";
    size_t left = sizeof word - 1, i = t.from;
    while (i > from && left > 0) {
        const char c = r->clean[--i];
        if (isspace((unsigned char)c) || c == '(') continue;
        if (c != word[--left]) return false;
    }
    return left == 0;
}

/* Notes the numbers by which a kernel's body, [from, end), walks: `blockIdx.x * 256` and `i += 256`. */
static void note_strides(struct reader *r, size_t from, size_t end) {
    struct token before = {from, from}, earlier = before;
    for (struct token t = next(r, from, end); t.from < end; t = next(r, t.to, end)) {
        const bool adds = is(r, before, "=") && is(r, earlier, "+");
        if (isdigit((unsigned char)r->clean[t.from]) && (adds || follows_block_index(r, from, t)) &&
            strtoul(r->clean + t.from, NULL, 10) >= 32)
            note_block(r, t, end);
        earlier = before;
        before = t;
    }
}

/* Edits what a kept declaration, [from, end), needs. */
/* Has the lambda whose `[` is at `open` put into the kernel, where the model sees each of its accesses. */
static void inline_lambda(struct reader *r, size_t open, size_t end) {
    struct token t = next(r, past_closing(r, open, end), end);
    while (t.from < end && (is(r, t, "__device__") || is(r, t, "__host__")))
        t = next(r, t.to, end);
    if (t.from == end || !is(r, t, "(")) return;
    size_t at = past_closing(r, t.from, end);
    for (t = next(r, at, end); is(r, t, "mutable") || is(r, t, "constexpr") || is(r, t, "noexcept");
         t = next(r, at, end))
        at = t.to;
    edit(r, FOR_MODEL, at, at, "%s", " __attribute__((always_inline))");
}

static void edit_declaration(struct reader *r, size_t from, size_t end) {
    static const char *const passed[] = {"volatile", "const", "static", "__align__", NULL};
    struct token before = {from, from};
    bool is_shared = false;
    for (struct token t = next(r, from, end); t.from < end;) {
        size_t on = t.to;
        if (is(r, before, "]") && (is(r, t, "__device__") || is(r, t, "__host__"))) {
            edit(r, FOR_MODEL, t.from, t.to, "%s", ""); /* of a lambda */
            t = before;
        } else if (is(r, t, "[") && !is_name(r->clean[before.from]) && !is(r, before, ")") &&
                   !is(r, before, "]") && !is(r, before, "[")) {
            inline_lambda(r, t.from, end);
        } else if (is(r, t, "__shared__")) {
            is_shared = true;
            note_lengths(r, t.to, find(r, t.to, end, ";").from);
            if (is(r, before, "extern"))
                edit_dynamic(r, before, t, end);
            else
                edit_shared(r, t.to, end);
            if (is(r, before, "static"))
                edit(r, FOR_MODEL | FOR_OPENCL, before.from, before.to, "%s", "");
        } else if (is_one_of(r, t, passed) || is(r, t, "(") || is(r, t, ")") ||
                   isdigit((unsigned char)r->clean[t.from])) {
            ; /* __align__(16) leaves the declaration what it is */
        } else {
            on = wrap_type(r, t, end, is_shared);
            is_shared = false;
        }
        before = t;
        t = next(r, on, end);
    }
}

/* ---- Declarations ---- */

/* The name of each parameter: the last word before a comma, a bracket or `=`. */
static void note_parameters(const struct reader *r, size_t from, size_t end,
                            struct own_function *out) {
    struct token name = {from, from};
    bool done = false;
    for (struct token t = next(r, from, end);; t = next(r, t.to, end)) {
        const bool ends = t.from >= end || is(r, t, ",");
        if (ends && name.to > name.from) {
            const size_t at = strlen(out->parameters);
            snprintf(out->parameters + at, sizeof out->parameters - at, "%s%.*s", at ? "," : "",
                     (int)(name.to - name.from), r->clean + name.from);
        }
        if (t.from >= end) return;
        if (ends) {
            name = (struct token){t.to, t.to};
            done = false;
        }
        done |= is(r, t, "[") || is(r, t, "=");
        if (!done && is_name(r->clean[t.from])) name = t;
    }
}

/* In OpenCL C a kernel's pointers say into which memory. */
static void place_parameters(struct reader *r, size_t from, size_t end) {
    for (size_t start = from; start < end;) {
        const size_t to = find(r, start, end, ",").from;
        const struct token first = next(r, start, to);
        if (has(r, start, to, "*") || has(r, start, to, "["))
            edit(r, FOR_OPENCL, first.from, first.from, "%s", "__global ");
        start = to + 1;
    }
}

/* One parameter of a template, [from, end): its kind, its name, and the value that it has by default. */
struct parameter {
    struct token kind, name, value;
    bool is_type, is_flag;
};

static struct parameter read_parameter(const struct reader *r, size_t from, size_t end) {
    struct parameter p = {.kind = next(r, from, end), .value = {end, end}};
    p.is_type = is(r, p.kind, "typename") || is(r, p.kind, "class");
    p.name = p.kind;
    for (struct token t = p.kind; t.from < end; t = next(r, t.to, end)) {
        p.is_flag |= is(r, t, "bool");
        if (is(r, t, "=")) {
            p.value = next(r, t.to, end);
            p.value.to = end;
            break;
        }
        if (is_name(r->clean[t.from])) p.name = t;
    }
    return p;
}

/* Whether a number of that name is the threads of a block. "itemsPerThread" is not. */
static bool names_a_block(const struct reader *r, struct token t) {
    static const char *const words[] = {"block", "thread", "dim", NULL};
    char name[OWN_NAME];
    copy_name(r, t, name);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    if (strstr(name, "per")) return false;
    for (const char *const *word = words; *word; word++)
        if (strstr(name, *word)) return true;
    return false;
}

/* Returns whether a template's type is called as functors are, and not as elements. */
static bool is_element(const struct reader *r, struct token name) {
    static const char *const words[] = {"op", "fun", "reduc", "combine", "oper", "fn", NULL};
    char text[OWN_NAME];
    copy_name(r, name, text);
    for (char *c = text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (const char *const *word = words; *word; word++)
        if (strncmp(text, *word, strlen(*word)) == 0 || (strstr(text, *word) && strlen(*word) > 2))
            return false;
    return text[0] != 'f' || text[1] != '\0';
}

/* Returns whether the body that opens at `body` uses a template's number as the threads of a block: times blockIdx.x, or as a
 * shared array's length. */
static bool is_used_as_block(const struct reader *r, struct token name, size_t body) {
    const size_t end = past_closing(r, body, r->length);
    bool is_shared = false;
    struct token before = {body, body};
    for (struct token t = next(r, body, end); t.from < end; before = t, t = next(r, t.to, end)) {
        is_shared = is(r, t, "__shared__") || (is_shared && !is(r, t, ";"));
        if (t.to - t.from != name.to - name.from ||
            memcmp(r->clean + t.from, r->clean + name.from, name.to - name.from) != 0)
            continue;
        if (is_shared && is(r, before, "[") && is(r, next(r, t.to, end), "]")) return true;
        if (follows_block_index(r, body, t)) return true;
    }
    return false;
}

/* What a template's parameter is taken to be: a type the elements', a number the block's threads, a flag false, and
 * whatever has a value by default that. False where nobody knows. */
static bool take_parameter(const struct reader *r, const struct parameter *p, size_t body,
                           char text[OWN_NAME]) {
    const bool is_functor = p->is_type && !is_element(r, p->name);
    const char *word = is_functor   ? OWN_FUNCTOR
                       : p->is_type ? "OWN_T"
                       : p->is_flag ? "false"
                       : p->kind.from < p->name.from &&
                               (names_a_block(r, p->name) || is_used_as_block(r, p->name, body))
                           ? OWN_THREADS
                           : NULL;
    if (p->value.from < p->value.to && (!p->is_type || is_functor))
        copy_name(r, p->value, text);
    else if (word)
        snprintf(text, OWN_NAME, "%s", word);
    return word || p->value.from < p->value.to;
}

/* The template whose parameters' bracket opens at `open`. */
static bool note_template(struct reader *r, size_t open, size_t body, struct own_function *k,
                          char *why, size_t room) {
    const size_t close = past_closing(r, open, body) - 1;
    for (size_t from = open + 1, to; from < close; from = to + 1) {
        char text[OWN_NAME] = "";
        to = find(r, from, close, ",").from;
        const struct parameter p = read_parameter(r, from, to);
        const size_t used = strlen(k->arguments);
        if (!take_parameter(r, &p, body, text))
            return snprintf(
                       why, room,
                       "nobody knows what the template's %.*s is to be; give it a value there, "
                       "as in `int %.*s = 4`",
                       (int)(p.name.to - p.name.from), r->clean + p.name.from,
                       (int)(p.name.to - p.name.from), r->clean + p.name.from),
                   false;
        k->takes_block |= strcmp(text, OWN_THREADS) == 0;
        if (strcmp(text, OWN_THREADS) != 0 && !p.is_type && names_a_block(r, p.name))
            note_block(r, p.value, close);
        snprintf(k->arguments + used, sizeof k->arguments - used, "%s%s", used ? ", " : "", text);
    }
    return true;
}

static bool note_kernel(struct reader *r, size_t from, size_t body, char *why, size_t room,
                        unsigned *line) {
    struct own_text *out = r->out;
    struct token t = find(r, from, body, "__global__"), name = {0, 0};
    *line = line_at(r, t.from);
    if (out->kernel_count == OWN_KERNELS_MAX)
        return snprintf(why, room, "more than %d kernels", OWN_KERNELS_MAX), false;
    for (t = next(r, t.to, body); t.from < body; t = next(r, t.to, body)) {
        if (is(r, t, "__launch_bounds__")) {
            const struct token open = next(r, t.to, body);
            if (open.from < body && is(r, open, "(")) t.to = past_closing(r, open.from, body);
            continue;
        }
        if (is(r, t, "(")) break;
        name = t;
    }
    if (t.from >= body || !is_name(r->clean[name.from]))
        return snprintf(why, room, "a __global__ function without a name and parameters"), false;
    struct own_function *k = &out->kernels[out->kernel_count++];
    *k = (struct own_function){.line = line_at(r, name.from)};
    copy_name(r, name, k->name);
    const size_t close = past_closing(r, t.from, body);
    note_parameters(r, t.to, close ? close - 1 : close, k);
    place_parameters(r, t.to, close ? close - 1 : close);
    note_strides(r, body, past_closing(r, body, r->length));
    const struct token first = next(r, from, body);
    return !is(r, first, "template") ||
           note_template(r, next(r, first.to, body).from, body, k, why, room);
}

/* On a device a template is written for what its parameters are taken to be: OpenCL C has no templates, and a kernel
 * of CUDA's has then the name that it is called by. A type gets its name before the text; a number, and a flag,
 * within the kernel. Other functions of CUDA's stay templates. */
static void drop_template(struct reader *r, size_t from, size_t end, bool is_kernel) {
    const struct token first = next(r, from, end), open = next(r, first.to, end);
    char values[sizeof r->edits->text] = "";
    if (is_kernel && !is(r, first, "template") && !is(r, first, "extern"))
        edit(r, FOR_CUDA, first.from, is(r, first, "static") ? first.to : first.from, "%s",
             "extern \"C\" ");
    if (!is(r, first, "template") || !is(r, open, "<")) return;
    const size_t close = past_closing(r, open.from, end);
    for (size_t at = open.to, to; at < close - 1; at = to + 1) {
        to = find(r, at, close - 1, ",").from;
        const struct parameter p = read_parameter(r, at, to);
        const size_t used = p.is_type ? strlen(r->out->types) : strlen(values);
        char text[OWN_NAME] = "";
        if (!p.is_type && !r->out->number_line) r->out->number_line = line_at(r, p.name.from);
        take_parameter(r, &p, end, text);
        if (p.is_type)
            snprintf(r->out->types + used, sizeof r->out->types - used, "%s%.*s ",
                     is_kernel ? "" : "?", (int)(p.name.to - p.name.from), r->clean + p.name.from);
        else
            snprintf(values + used, sizeof values - used, " constexpr %.*s = %s;",
                     (int)(p.name.to - p.kind.from), r->clean + p.kind.from, text);
    }
    if (is_kernel) edit(r, FOR_CUDA, first.from, close, "%s", "extern \"C\"");
    if (is_kernel && *values) edit(r, FOR_CUDA, end + 1, end + 1, "%s", values);
    edit(r, FOR_OPENCL, first.from, close, "%s", "");
}

/* Words that are for the lanes of a warp. */
static void note_warp_words(struct reader *r, size_t from, size_t end) {
    static const char *const words[] = {"__shfl",     "__syncwarp",   "__ballot",  "__any_sync",
                                        "__all_sync", "__activemask", "__reduce_", "__match_"};
    for (struct token t = next(r, from, end); t.from < end && !*r->out->warp_word;
         t = next(r, t.to, end))
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strncmp(r->clean + t.from, words[i], strlen(words[i])) == 0) {
                copy_name(r, t, r->out->warp_word);
                r->out->warp_line = line_at(r, t.from);
            }
}

/* Names of types: typedef int T; using T = int; template <typename T>. */
static void note_types(struct reader *r, size_t from, size_t end) {
    for (struct token t = next(r, from, end); t.from < end; t = next(r, t.to, end))
        if (is(r, t, "typename") || is(r, t, "class")) add_type(r, next(r, t.to, end));
    const struct token first = next(r, from, end);
    if (is(r, first, "using")) add_type(r, next(r, first.to, end));
    if (!is(r, first, "typedef")) return;
    struct token name = first;
    for (struct token t = next(r, first.to, end); t.from < end; t = next(r, t.to, end))
        if (is_name(r->clean[t.from])) name = t;
    add_type(r, name);
}

/* Whether a declaration that names neither __global__ nor __device__ is the host's. */
static bool is_hosts(const struct reader *r, size_t from, size_t head, size_t end, bool has_body) {
    static const char *const kept[] = {"struct",  "union",         "enum",
                                       "typedef", "static_assert", "constexpr",
                                       "class",   "namespace",     NULL};
    const struct token first = next(r, from, end);
    if (has(r, from, end, "std") && !has(r, from, end, "__device__")) return true;
    for (struct token t = next(r, from, end); t.from < end; t = next(r, t.to, end))
        if (t.to - t.from > 4 && memcmp(r->clean + t.from, "cuda", 4) == 0) return true;
    if (is(r, first, "using"))
        return is(r, next(r, first.to, end), "namespace") &&
               !has(r, from, end, "cooperative_groups") && !has(r, from, end, "cg");
    if (is_one_of(r, first, kept)) return false;
    if (has_body) return has(r, from, head, "(");
    const struct token open = find(r, from, head, "("), equals = find(r, from, head, "=");
    return open.from < equals.from && open.from < head;
}

/* Returns whether a function of the device's at the top of the file may be made `static`, so that its shared arrays
 * lie where those of the kernel do. Those of a template are put there by the linker (own.c). */
static bool may_be_static(const struct reader *r, size_t from, size_t head) {
    return !is(r, next(r, from, head), "template") && !has(r, from, head, "static") &&
           !has(r, from, head, "extern") && !has(r, from, find(r, from, head, "(").from, ":");
}

/* Words that a kernel may use on a GPU and not here, each with what to say. A word that ends with * stands for all that
 * begin so. */
static const struct {
    const char *word, *why;
} absent[] = {
    {"__shfl", "is now __shfl_sync(0xffffffff, v, lane): since CUDA 9 a shuffle names its lanes"},
    {"syncthreads", "is __syncthreads() in CUDA C"},
    {"__syncthread", "is __syncthreads() in CUDA C"},
    {"__sync_threads", "is __syncthreads() in CUDA C"},
    {"threadfence", "is __threadfence() in CUDA C"},
    {"cudaDeviceSynchronize",
     "is for the host: a kernel waits by __syncthreads(), and for its block only"},
    {"cudaMalloc", "is for the host: a kernel has its arrays, shared memory and its own variables"},
    {"cudaMemcpy", "is for the host: a kernel reads and writes its arrays itself"},
    {"get_local_id", "is OpenCL C; CUDA C has threadIdx.x"},
    {"get_global_id", "is OpenCL C; CUDA C has blockIdx.x * blockDim.x + threadIdx.x"},
    {"__shfl_down",
     "is now __shfl_down_sync(0xffffffff, v, delta): since CUDA 9 a shuffle names the "
     "lanes that take part"},
    {"__shfl_up",
     "is now __shfl_up_sync(0xffffffff, v, delta): since CUDA 9 a shuffle names the lanes "
     "that take part"},
    {"__shfl_xor", "is now __shfl_xor_sync(0xffffffff, v, lanes): since CUDA 9 a shuffle names the "
                   "lanes that take part"},
    {"__ballot", "is now __ballot_sync(0xffffffff, p): since CUDA 9 it names the lanes that vote"},
    {"__any", "is now __any_sync(0xffffffff, p): since CUDA 9 it names the lanes that vote"},
    {"__all", "is now __all_sync(0xffffffff, p): since CUDA 9 it names the lanes that vote"},
    {"this_grid",
     "is not here: blocks run one after another on the model, so that no barrier can span "
     "the grid; let the last block combine, or launch a second time"},
    {"grid_group", "is not here: blocks run one after another on the model, so that no barrier can "
                   "span the grid; let the last block combine, or launch a second time"},
    {"this_cluster", "is not here: the model has no clusters of blocks"},
    {"cub",
     "is a library, whose code is not here; write the block's reduction out, as the rungs do"},
    {"thrust", "is a library for the host; write the reduction out, as the rungs do"},
    {"wmma", "is for matrix units, which the model has not"},
    {"texture", "is not here: the model has no textures; read the array itself"},
    {"cudaTextureObject_t", "is not here: the model has no textures; read the array itself"},
    {"tex1D*", "is not here: the model has no textures; read the array itself"},
    {"surf1D*", "is not here: the model has no surfaces; write the array itself"},
    {"__half*", "is not here: elements are float, double or integers"},
    {"half", "is not here: elements are float, double or integers"},
    {"half2", "is not here: elements are float, double or integers"},
    {"__nv_bfloat16*", "is not here: elements are float, double or integers"},
    {"malloc", "is not here: a kernel has its arrays, shared memory and its own variables"},
    {"__pipeline_memcpy_async", "is not here: load the element and store it"},
    {"memcpy_async", "is not here: load the element and store it"},
    {"clock", "is not here: the model knows nothing of time"},
    {"clock64", "is not here: the model knows nothing of time"},
    {"__nanosleep", "is not here: the model knows nothing of time"},
    {"atomic_ref", "is of cuda::std, which is not here; atomicAdd() and its like are"},
    {"barrier", "is of cuda::std, which is not here; __syncthreads() is"},
};

/* Looks in a kept declaration for a word that is not here. */
static bool find_absent(const struct reader *r, size_t from, size_t end, char *why, size_t room,
                        unsigned *line) {
    struct token before = {from, from}, earlier = before;
    for (struct token t = next(r, from, end); t.from < end; t = next(r, t.to, end)) {
        const char *said = NULL;
        const size_t size = t.to - t.from;
        for (size_t i = 0; i < sizeof absent / sizeof *absent && !said; i++) {
            const size_t length = strlen(absent[i].word);
            const bool all = absent[i].word[length - 1] == '*';
            if (all ? size >= length - 1 &&
                          memcmp(r->clean + t.from, absent[i].word, length - 1) == 0
                    : is(r, t, absent[i].word))
                said = absent[i].why;
        }
        /* `barrier`, `half`, `texture` and the like may be names of the text's own. */
        const struct token after = next(r, t.to, end);
        const bool is_scoped = is(r, before, ":") || (after.from < end && is(r, after, ":"));
        const bool is_type = after.from < end && (is_name(r->clean[after.from]) ||
                                                  (is(r, t, "texture") && is(r, after, "<")));
        const bool is_plain = r->clean[t.from] != '_' && !is(r, t, "this_grid") &&
                              !is(r, t, "malloc") && !is(r, t, "syncthreads") &&
                              !is(r, t, "threadfence") &&
                              memcmp(r->clean + t.from, "cuda", 4) != 0 &&
                              memcmp(r->clean + t.from, "get_", 4) != 0 &&
                              strncmp(r->clean + t.from, "clock", 5) != 0 &&
                              strncmp(r->clean + t.from, "tex1D", 5) != 0;
        if (said && is_plain && !is_scoped && !(is_type && !is_name(r->clean[before.from])))
            said = NULL;
        const bool launches = is(r, t, "<") && is(r, before, "<") && is(r, earlier, "<") &&
                              t.from == before.to && before.from == earlier.to;
        if (said || launches) {
            *line = line_at(r, t.from);
            if (launches)
                snprintf(why, room,
                         "<<<...>>> in a kernel is not here: a kernel starts no others on the "
                         "model; launch it from the host");
            else
                snprintf(why, room, "%.*s %s", (int)size, r->clean + t.from, said);
            return true;
        }
        earlier = before;
        before = t;
    }
    return false;
}

/* Notes a class that has an operator(). */
static void note_functor(struct reader *r, size_t from, size_t end) {
    const struct token first = next(r, from, end);
    struct token word = first;
    struct own_text *out = r->out;
    const bool is_template = is(r, first, "template");
    if (is_template) {
        const struct token open = next(r, first.to, end);
        if (!is(r, open, "<")) return;
        word = next(r, past_closing(r, open.from, end), end);
    }
    const struct token named = find(r, from, end, "operator");
    if (!(is(r, word, "struct") || is(r, word, "class")) || named.from >= end ||
        !is(r, next(r, named.to, end), "(") || out->functor_count == OWN_FUNCTORS_MAX)
        return;
    copy_name(r, next(r, word.to, end), out->functors[out->functor_count].name);
    out->functors[out->functor_count++].is_template = is_template;
}

/* Notes `const int BLOCK = 256;` and `enum { BLOCK = 256 };`, which may be the threads of a block. */
static void note_constant(struct reader *r, size_t from, size_t end) {
    const struct token equals = find(r, from, end, "=");
    struct token name = next(r, from, end);
    if (is(r, name, "enum")) {
        struct token before = name;
        for (struct token t = name; t.from < end; before = t, t = next(r, t.to, end))
            if (is(r, t, "=") && !names_a_warp(r, before)) note_block(r, next(r, t.to, end), end);
        return;
    }
    if (equals.from >= end ||
        !(has(r, from, equals.from, "const") || has(r, from, equals.from, "constexpr")))
        return;
    for (struct token t = name; t.from < equals.from; t = next(r, t.to, end))
        name = t;
    const struct token value = next(r, equals.to, end);
    if (is(r, next(r, value.to, end), ";") && !names_a_warp(r, name)) note_block(r, value, end);
}

/* Reads the declaration [from, end), whose body, if it has one, begins at `head`. */
static bool read_declaration(struct reader *r, size_t from, size_t head, size_t end, char *why,
                             size_t room, unsigned *line) {
    const bool has_body = r->clean[end - 1] == '}';
    const struct token device = find(r, from, head, "__device__");
    note_types(r, from, head);
    if (!has_body || is(r, next(r, from, end), "enum")) note_constant(r, from, end);
    if (has(r, from, head, "__global__")) {
        const size_t before = r->out->kernel_count;
        if (has_body && !note_kernel(r, from, head, why, room, line)) return false;
        if (r->out->kernel_count > before)
            r->out->kernels[before].is_serial = !numbers_threads(r, head, end);
    } else if (device.from < head) {
        const struct token open = find(r, from, head, "("), equals = find(r, from, head, "=");
        const bool is_function = open.from < equals.from && open.from < head;
        if (!is_function && (!has_body || !(open.from < head)))
            edit(r, FOR_MODEL, device.from, device.to, "%s", "OWN_DEVICE_VARIABLE");
        else if (is_function && may_be_static(r, from, head))
            edit(r, FOR_MODEL, device.from, device.to, "%s", "static __device__");
    } else if (!has(r, from, head, "__constant__") && !has(r, from, head, "__shared__") &&
               !has(r, from, head, "__managed__") && is_hosts(r, from, head, end, has_body)) {
        blank(r->bytes, from, end);
        return true;
    }
    if (!has(r, from, head, "__global__")) r->helps_to_number |= numbers_threads(r, from, end);
    note_functor(r, from, end);
    if (find_absent(r, from, end, why, room, line)) return false;
    edit_declaration(r, from, end);
    wrap_arms(r, from, end, false);
    edit_for_opencl(r, from, end);
    drop_template(r, from, head, has(r, from, head, "__global__"));
    note_warp_words(r, from, end);
    return true;
}

/* Cuts [from, end) into declarations. */
static bool read_declarations(struct reader *r, char *why, size_t room, unsigned *line) {
    size_t from = 0, head = 0;
    for (size_t i = 0; i < r->length; i++) {
        const char c = r->clean[i];
        if (c == '(' || c == '[') i = past_closing(r, i, r->length) - 1;
        if (c == '{') {
            const struct token first = next(r, from, i), second = next(r, first.to, i);
            const bool is_namespace = is(r, first, "namespace") && next(r, second.to, i).from >= i;
            if (is_namespace || (is(r, first, "extern") && second.from >= i)) { /* extern "C" { */
                blank(r->bytes, first.from, i + 1);
                from = i + 1;
                continue;
            }
            const size_t end = past_closing(r, i, r->length);
            if (!head) head = i;
            i = end - 1;
            const struct token after = next(r, end, r->length);
            const bool goes_on = after.from < r->length &&
                                 (is(r, after, ";") || is(r, after, ",") || is(r, after, "="));
            const bool is_type = !has(r, from, head, "(") || has(r, from, head, "=");
            if (goes_on || (is_type && after.from < r->length && is_name(r->clean[after.from]) &&
                            is(r, first, "typedef")))
                continue;
            if (!read_declaration(r, from, head, end, why, room, line)) return false;
            from = end;
            head = 0;
        } else if (c == '}') { /* of an extern "C" or a namespace */
            blank(r->bytes, i, i + 1);
            from = i + 1;
            head = 0;
        } else if (c == ';') {
            if (!read_declaration(r, from, head ? head : i, i + 1, why, room, line)) return false;
            from = i + 1;
            head = 0;
        }
    }
    return true;
}

/* ---- All of it ---- */

static int by_place(const void *a, const void *b) {
    const struct edit *x = a, *y = b;
    if (x->from != y->from) return (x->from > y->from) - (x->from < y->from);
    return (x->to > y->to) -
           (x->to < y->to); /* an insertion stands before what is replaced there */
}

/* The file with the edits that are for one reader. */
static char *write_text(const struct reader *r, unsigned whom) {
    char *text = malloc(r->length + r->edit_count * sizeof r->edits->text + 1);
    size_t at = 0, length = 0;
    if (!text) return NULL;
    for (size_t i = 0; i < r->edit_count; i++) {
        const struct edit *e = &r->edits[i];
        if (e->from < at || !(e->whom & whom)) continue;
        memcpy(text + length, r->bytes + at, e->from - at);
        length += e->from - at;
        length += (size_t)sprintf(text + length, "%s", e->text);
        for (size_t k = e->from; k < e->to; k++) /* an edit keeps its lines */
            if (r->bytes[k] == '\n') text[length++] = '\n';
        at = e->to;
    }
    memcpy(text + length, r->bytes + at, r->length - at);
    text[length + r->length - at] = '\0';
    return text;
}

static bool write_texts(struct reader *r) {
    bool good = true;
    qsort(r->edits, r->edit_count, sizeof *r->edits, by_place);
    for (unsigned i = 0; i < OWN_READERS; i++)
        good &= (r->out->texts[i] = write_text(r, 1u << i)) != NULL;
    return good;
}

static bool read_all(struct reader *r, char *why, size_t room, unsigned *line) {
    make_clean(r);
    if (!read_directives(r, why, room, line)) return false;
    /* T is a type of every text: its own, or the one that is asked for. */
    snprintf(r->types[r->type_count++], OWN_NAME, "T");
    const size_t asked = r->type_count;
    if (!read_declarations(r, why, room, line)) return false;
    bool defines = false;
    for (size_t i = 0; i < r->type_count; i++)
        defines |= i != asked - 1 && strcmp(r->types[i], "T") == 0;
    r->out->needs_t = has(r, 0, r->length, "T") && !defines;
    r->out->is_cut = r->out->kernel_count == 0 && has(r, 0, r->length, "__global__");
    *line = 0;
    for (size_t i = 0; i < r->out->kernel_count; i++)
        r->out->kernels[i].is_serial &= !r->helps_to_number;
    r->out->is_flat = true;
    for (struct token t = find(r, 0, r->length, "threadIdx"); t.from < r->length;
         t = find(r, t.to, r->length, "threadIdx")) {
        const struct token part = next(r, next(r, t.to, r->length).to, r->length);
        if (part.from < r->length && (is(r, part, "y") || is(r, part, "z")))
            r->out->is_flat = false;
    }
    if (r->edit_count == EDITS_MAX) return snprintf(why, room, "the text is too long"), false;
    return write_texts(r) || (snprintf(why, room, "no memory for it"), false);
}

bool own_text_read(const char *bytes, size_t length, struct own_text *out, char *why, size_t room,
                   unsigned *line) {
    struct reader r = {.length = length, .out = out};
    *out = (struct own_text){0};
    *line = 0;
    r.bytes = malloc(length + 1);
    r.clean = malloc(length + 1);
    r.edits = malloc(EDITS_MAX * sizeof *r.edits);
    bool good = r.bytes && r.clean && r.edits;
    if (good) {
        memcpy(r.bytes, bytes, length);
        memcpy(r.clean, bytes, length);
        r.bytes[length] = r.clean[length] = '\0';
        good = read_all(&r, why, room, line);
    } else {
        snprintf(why, room, "no memory for it");
    }
    free(r.bytes);
    free(r.clean);
    free(r.edits);
    return good;
}

void own_text_forget(struct own_text *t) {
    for (unsigned i = 0; i < OWN_READERS; i++) {
        free(t->texts[i]);
        t->texts[i] = NULL;
    }
}
