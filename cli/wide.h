/*
 * wide.h - integer sums that do not fit 64 bits.
 */
#ifndef TALLY_CLI_WIDE_H
#define TALLY_CLI_WIDE_H

#include "tally.h"

#include <stdbool.h>

enum { WIDE_TEXT = 48 };

/* Prints the exact sum (or dot) of the integers that the state of this problem knows, whole. False where that
 * is not possible: for other operators, and beyond 120 bits. */
bool wide_print(const tally_problem *problem, const tally_state *state, char text[WIDE_TEXT]);

#endif
