/*
 * keys.h - values as 64-bit integers whose order is the elements' own, so that MPI_MIN finds the least.
 *
 * -0 lies below +0, and a NaN wins over all numbers. For the greatest the order is turned round.
 */
#ifndef TALLY_MPI_KEYS_H
#define TALLY_MPI_KEYS_H

#include "tally.h"

#define NAN_KEY INT64_MIN /* below the key of any float: that of -inf has more bits set */

int64_t order_key(const tally_value *value, int greatest);
/* The reverse: sets the number of a value whose type is known. */
void from_order_key(tally_value *value, int64_t key, int greatest);

/* Sets the value's bits, as tally_value_bits() shows them. */
void set_bits(tally_value *value, uint64_t bits);

#endif
