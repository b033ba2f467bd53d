/*
 * digits.h - an exact sum in decimal digits, to the last one.
 */
#ifndef TALLY_EXACT_DIGITS_H
#define TALLY_EXACT_DIGITS_H

#include "exact/sum.h"

#include <stddef.h>

/* Bytes that always suffice, with the final NUL. 2176 bits before the point are at most 656 digits, and 2176 bits behind
 * it are at most 2176. */
#define EXACT_DIGITS_ROOM 2900

/* Writes the sum in decimal digits, with a point where it is no integer, and without zeros at its end; "nan", "inf" or
 * "-inf" for those. Returns the length. */
size_t exact_digits(const struct exact_sum *s, char text[EXACT_DIGITS_ROOM]);

#endif
