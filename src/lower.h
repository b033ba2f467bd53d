/*
 * lower.h - from a state to the problem's values.
 */
#ifndef TALLY_LOWER_H
#define TALLY_LOWER_H

#include "monoid.h"

/* All values of the state, to out[]; `tree` is that of PART_TREE, where the problem has it. Where the problem
 * has one value and there is none, TALLY_ERANGE or TALLY_EINVAL with the reason; where it has several, that
 * one gets type 0. */
tally_status lower_values(const struct problem *p, const struct state *s, const tally_value *tree,
                          tally_value *out);

/* What the absence of the only value is: TALLY_ERANGE, or TALLY_EINVAL. Sets tally_error(). */
tally_status lower_absence(const struct problem *p, tally_status s);

#endif
