/* own_pattern.c - see own_pattern.h. */
#include "teach/own_pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_any(uint64_t n, uint64_t unused) {
    (void)n, (void)unused;
    return true;
}
static bool is_power(uint64_t n, uint64_t unused) {
    (void)unused;
    return (n & (n - 1)) == 0;
}
static bool is_even(uint64_t n, uint64_t unused) {
    (void)unused;
    return n % 2 == 0;
}
static bool is_multiple(uint64_t n, uint64_t segment) {
    return n % segment == 0;
}
static bool is_at_most(uint64_t n, uint64_t segment) {
    return n <= segment;
}
static bool is_power_of_two_at_most(uint64_t n, uint64_t segment) {
    return is_power(n, 0) && n <= segment;
}

static bool is_exactly(uint64_t n, uint64_t right) {
    return n == right;
}

typedef bool is_right(uint64_t n, uint64_t s);

static is_right *const are[] = {
    [RIGHT_ANY] = is_any,       [RIGHT_POWERS] = is_power,
    [RIGHT_EVEN] = is_even,     [RIGHT_MULTIPLES] = is_multiple,
    [RIGHT_UP_TO] = is_at_most, [RIGHT_POWERS_UP_TO] = is_power_of_two_at_most,
    [RIGHT_ONE] = is_exactly};

/* Returns whether the right lengths are those of the rule; n = 1 may be an exception where
 * `but_one` is set. */
static bool follows(const struct own_judgement *j, enum own_rule rule, uint64_t s, bool but_one) {
    for (size_t i = 0; i < j->tried_count; i++)
        if (j->tried[i].right != are[rule](j->tried[i].n, s) && !(but_one && j->tried[i].n == 1))
            return false;
    return true;
}

static uint64_t most_right(const struct own_judgement *j) {
    uint64_t most = 0;
    for (size_t i = 0; i < j->tried_count; i++)
        if (j->tried[i].right) most = j->tried[i].n;
    return most;
}

struct own_pattern own_pattern_find(const struct own_judgement *j) {
    const struct own_host *h = &j->host;
    const uint64_t s = h->segment ? h->segment : 2 * (uint64_t)h->block, most = most_right(j);
    struct own_pattern p = {.s = s};
    const struct {
        enum own_rule is;
        uint64_t s;
    } rules[] = {{RIGHT_ANY, s},
                 {RIGHT_POWERS, s},
                 {h->segment ? RIGHT_MULTIPLES : RIGHT_UNKNOWN, s},
                 {RIGHT_EVEN, s},
                 {RIGHT_MULTIPLES, 4},
                 {RIGHT_MULTIPLES, 8},
                 {RIGHT_MULTIPLES, 16},
                 {RIGHT_MULTIPLES, 32},
                 {RIGHT_UP_TO, s},
                 {RIGHT_POWERS_UP_TO, s},
                 {RIGHT_UP_TO, most},
                 {RIGHT_POWERS_UP_TO, most},
                 {RIGHT_ONE, most}};
    for (int but_one = 0; but_one < 2 && !p.is; but_one++)
        for (size_t i = 0; i < sizeof rules / sizeof *rules && !p.is; i++)
            if (rules[i].is && most > 1 && follows(j, rules[i].is, rules[i].s, but_one)) {
                p.is = rules[i].is;
                p.s = rules[i].s;
                p.but_one = but_one;
            }
    const char *only = j->session->kernel->is.length ? "only " : "";
    if (p.is == RIGHT_ANY && p.but_one)
        snprintf(p.words, sizeof p.words, "right for every length tried");
    if (p.is == RIGHT_POWERS)
        snprintf(p.words, sizeof p.words,
                 "right %swhere n is a power of two, and wrong for every other length tried", only);
    else if (p.is == RIGHT_MULTIPLES && p.s != h->segment)
        snprintf(p.words, sizeof p.words,
                 "right %swhere n is a multiple of %" PRIu64 ", and for no other length tried",
                 only, p.s);
    else if (p.is == RIGHT_MULTIPLES)
        snprintf(p.words, sizeof p.words,
                 "right %swhere n is a multiple of the segment, which is %" PRIu64
                 " for blocks of %u threads, and for no other length tried",
                 only, s, h->block);
    else if (p.is == RIGHT_ONE)
        snprintf(p.words, sizeof p.words,
                 "right for n = %" PRIu64 ", and for no other length tried", p.s);
    else if (p.is == RIGHT_EVEN)
        snprintf(p.words, sizeof p.words, "right only for even n, and wrong for odd n");
    else if (p.is == RIGHT_UP_TO)
        snprintf(p.words, sizeof p.words, "right up to n = %" PRIu64 ", and wrong beyond", p.s);
    else if (p.is == RIGHT_POWERS_UP_TO)
        snprintf(p.words, sizeof p.words,
                 "right %swhere n is a power of two up to %" PRIu64
                 ", and for no other length tried",
                 only, p.s);
    if (p.is && p.but_one && strlen(p.words) < sizeof p.words - 20)
        strcat(p.words, ", n = 1 apart");
    return p;
}
