/*
 * drawn.c - see drawn.h.
 */
#include "input/drawn.h"

#include "common/message.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

enum {
    RULE_LINES = 4, /* first lines, not empty, in which a drawn table has a rule */
    RULE_BYTES = 3  /* least dashes in a row of such a rule */
};

/* Returns true if a line is a rule of a drawn table, as ---+---, +---+---+, |---|---|, or U+2500..U+257F. */
static bool is_rule(const char *at, const char *end) {
    size_t run = 0, longest = 0;
    while (at < end && *at == ' ')
        at++;
    bool has_joint = at < end && *at == '|';
    for (; at < end; at++) {
        const bool is_drawn =
            end - at > 2 && (memcmp(at, "\xe2\x94", 2) == 0 || memcmp(at, "\xe2\x95", 2) == 0);
        if (!is_drawn && !strchr("-=+|: ", *at)) return false;
        run = is_drawn || *at == '-' || *at == '=' ? run + 1 : 0;
        if (run > longest) longest = run;
        has_joint |= is_drawn || *at == '+';
        at += is_drawn ? 2 : 0;
    }
    return has_joint && longest >= RULE_BYTES;
}

bool drawn_check(const char *name, const struct spelling *spelling, const char *text,
                 const char *end, uint64_t line) {
    for (size_t i = 0; i < spelling->na_count; i++)
        if (strstr(spelling->na[i], "---")) return true;
    for (size_t lines = 0; text < end && lines < RULE_LINES; text++) {
        const char *last = text;
        while (last < end && *last != '\n' && *last != '\r')
            last++;
        if (memchr(text, '"', (size_t)(last - text))) return true; /* a field may have such lines */
        if (is_rule(text, last))
            return failed("%s:%" PRIu64 ": this line is drawn for people; psql --csv, mysql -B and "
                          "duckdb -csv write plain tables, and grep '|' FILE | tally ... leaves "
                          "lines such as ---+--- out",
                          name, line),
                   false;
        lines += last > text;
        line += last < end && *last == '\n';
        text = last;
    }
    return true;
}
