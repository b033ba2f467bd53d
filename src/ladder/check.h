/*
 * check.h - the reference that a rung's result is compared with: the result of tally_reduce().
 */
#ifndef TALLY_LADDER_CHECK_H
#define TALLY_LADDER_CHECK_H

#include "tally.h"

#include <stdint.h>

struct reference {
    tally_op op;
    tally_type type; /* of the elements */
    tally_value value;
    double magnitude; /* floating sums: the sum of the elements' absolute values */
    size_t n;
};

/* Reduces the array on the CPU and remembers what comes out. */
tally_status reference_make(const tally_ladder_options *options, struct reference *out);

/* Sets the row's value, correct and ulp_error. No element went through more than `depth` roundings; 0: nothing but
 * the reference's own bits is correct. */
void reference_check(const struct reference *r, const tally_value *value, uint64_t depth,
                     tally_ladder_row *row);

#endif
