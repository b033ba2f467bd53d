/*
 * names.c - see names.h.
 */
#include "common/names.h"

#include "tally.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LIST_BYTES = 512, WORD_BYTES = 24 };

static void append(char list[LIST_BYTES], const char *name) {
    size_t used = strlen(list);
    snprintf(list + used, LIST_BYTES - used, "%s%s", used ? " " : "", name);
}

const char *names_of_types(void) {
    static char list[LIST_BYTES];
    const char *name;
    if (!*list)
        for (int i = 1; (name = tally_type_name((tally_type)i)); i++)
            append(list, name);
    return list;
}

const char *names_of_ops(void) {
    static char list[LIST_BYTES];
    if (!*list)
        for (int i = 1; i < TALLY_USER; i++)
            append(list, tally_op_name((tally_op)i));
    return list;
}

/* Words that other programs use, and Tally's names for them. */
static const struct {
    const char *word, *name;
} synonyms[] = {
    {"average", "mean"}, {"avg", "mean"},         {"variance", "var"}, {"stddev", "std"},
    {"stdev", "std"},    {"sd", "std"},           {"minimum", "min"},  {"maximum", "max"},
    {"product", "prod"}, {"total", "sum"},        {"add", "sum"},      {"length", "count"},
    {"len", "count"},    {"summary", "describe"}, {"range", "minmax"}, {"l1", "norm1"},
    {"l2", "norm2"},     {"norm", "norm2"},       {"linf", "norminf"}, {"nan", "nans"},
};

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Returns Damerau's distance of a and b: how many letters to leave out, insert, replace, or
 * exchange with a neighbour. */
static size_t distance(const char *a, size_t n, const char *b, size_t m) {
    size_t d[WORD_BYTES + 1][WORD_BYTES + 1];
    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            size_t same = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least(same, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

static const char *synonym(const char *word, const char *list, char between, char *text,
                           size_t size) {
    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++) {
        const char *name = synonyms[i].name, *at = strstr(list, name);
        size_t length = strlen(name);
        if (strcasecmp(word, synonyms[i].word) != 0 || !at) continue;
        if ((at == list || at[-1] == between) && (at[length] == between || !at[length]))
            return snprintf(text, size, "%s", name), text;
    }
    return NULL;
}

const char *names_nearest(const char *word, const char *list, char between, char *text,
                          size_t size) {
    const char parts[] = {between, 0};
    size_t length = strlen(word);
    if (length > WORD_BYTES) return NULL;
    if (synonym(word, list, between, text, size)) return text;
    size_t best = length <= 6 ? 2 : 3; /* one letter may be wrong, two of a long word */
    const char *found = NULL;
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, parts);
        if (n <= WORD_BYTES) {
            size_t far = distance(word, length, at, n);
            if (far < best && far < length) best = far, found = at;
        }
        at += n + (at[n] != 0);
    }
    if (found) snprintf(text, size, "%.*s", (int)strcspn(found, parts), found);
    return found ? text : NULL;
}
