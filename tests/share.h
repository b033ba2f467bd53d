/*
 * share.h - the share of a test's cases that a run has, as share.py has it for tests in Python.
 *
 * With TALLY_PART=first, which is `make check`, a run has one case in `of`, drawn by TALLY_SEED: another run has others. Every
 * other run has all cases. A test that asks this has the label `cases`, so that `make check-all` runs it again.
 */
#ifndef TALLY_TESTS_SHARE_H
#define TALLY_TESTS_SHARE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether this run has the case of that number. */
static inline bool is_in_share(unsigned long number, unsigned long of) {
    const char *part = getenv("TALLY_PART"), *seed = getenv("TALLY_SEED");
    if (!part || strcmp(part, "first") != 0) return true;
    return (number + strtoul(seed ? seed : "0", NULL, 10)) % of == 0;
}

#endif
