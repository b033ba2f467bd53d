/*
 * types.h - what the engine asks of element types and of values.
 */
#ifndef TALLY_TYPES_H
#define TALLY_TYPES_H

#include "tally.h"

int type_is_float(tally_type type);
int type_is_signed(tally_type type);
/* Bits of an element. */
unsigned type_bits(tally_type type);
/* The type that exact integers come back in: i64 or u64. */
tally_type type_wide(tally_type type);

/* A value of any type from its bits. */
tally_value value_of_bits(tally_type type, uint64_t bits);
/* The lowest so many bits; `bits` is 1 to 64. */
uint64_t low_bits(unsigned bits);

#endif
