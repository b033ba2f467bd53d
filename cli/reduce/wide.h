/*
 * wide.h - sums of integers that do not fit 64 bits.
 */
#ifndef TALLY_CLI_WIDE_H
#define TALLY_CLI_WIDE_H

#include "tally.h"

#include <stdbool.h>
#include <stddef.h>

enum { WIDE_TEXT = 64 }; /* 6 limbs of 32 bits have 58 digits */

/* Prints the problem's value of this index whole, where it is the sum, dot, norm1 or sumsq of the integers that the state
 * knows. False for others. */
bool wide_print(const tally_problem *problem, const tally_state *state, size_t value,
                char text[WIDE_TEXT]);

#endif
