/*
 * round.h - from an exact number to the nearest float, for hosts: the arithmetic is that of kernels/rounding.h.
 */
#ifndef TALLY_ROUND_H
#define TALLY_ROUND_H

#include "exact/kernel_words.h"
#include "tally.h"

/* Returns (negative ? -1 : 1) * top * 2^exponent, rounded to nearest even. If `sticky`, the
 * magnitude has a little more, less than 2^exponent. top is 0 (then sticky must be 0 and the result
 * is +0) or has its highest bit set. Too large a value becomes infinity, too small a one a
 * subnormal or zero. */
tally_value round_to_float(tally_type type, int negative, uint64_t top, int exponent, int sticky);

/* Returns value * 2^exponent, rounded once. */
tally_value round_scaled(tally_type type, __int128 value, int exponent);

/* Returns a floating type's format, for rounding. */
float_format format_of(tally_type type);

/* Returns a double, NaN and infinities included, as the nearest value of a floating type. */
tally_value round_double(tally_type type, double d);

/* Returns the f32 that equals an f16, from its bits; a NaN stays one. */
float half_to_float(uint16_t bits);

/* Return the canonical quiet NaN, and an infinity. */
tally_value float_nan(tally_type type);
tally_value float_infinity(tally_type type, int negative);
/* Returns a value of a floating type from its bits. */
tally_value float_from_bits(tally_type type, uint64_t bits);
/* Returns -0. */
tally_value float_negative_zero(tally_type type);

#endif
