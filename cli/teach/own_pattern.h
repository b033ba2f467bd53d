/*
 * own_pattern.h - the rule of the lengths that a kernel is right for: all, powers of two, multiples of a segment ...
 */
#ifndef TALLY_CLI_OWN_PATTERN_H
#define TALLY_CLI_OWN_PATTERN_H

#include "teach/own_findings.h"

enum own_rule {
    RIGHT_UNKNOWN, /* no rule is known */
    RIGHT_ANY,
    RIGHT_POWERS, /* of two */
    RIGHT_EVEN,
    RIGHT_MULTIPLES,
    RIGHT_UP_TO,
    RIGHT_POWERS_UP_TO,
    RIGHT_ONE
};

/* A rule, and the number that it is about. */
struct own_pattern {
    enum own_rule is;
    uint64_t s;
    bool but_one; /* n = 1 is an exception */
    char words[200];
};

/* Finds the first rule that all lengths tried follow. */
struct own_pattern own_pattern_find(const struct own_judgement *j);

#endif
