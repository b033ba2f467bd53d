/*
 * wide.h - sums of integers that do not fit 64 bits.
 */
#ifndef TALLY_CLI_WIDE_H
#define TALLY_CLI_WIDE_H

#include "tally.h"

#include <stdbool.h>

enum { WIDE_TEXT = 84 }; /* 8 limbs of 32 bits have 78 digits */

/* Prints the exact sum, dot, norm1 or sumsq of the integers that the state of this problem knows, whole. False for
 * other problems. */
bool wide_print(const tally_problem *problem, const tally_state *state, char text[WIDE_TEXT]);

#endif
