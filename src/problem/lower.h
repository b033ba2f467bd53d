/*
 * lower.h - from a state to the problem's values.
 */
#ifndef TALLY_LOWER_H
#define TALLY_LOWER_H

#include "problem/monoid.h"

/* Writes all values of the state to out[]; *tree is the canonical tree's value, where the problem has MONOID_TREE. If a
 * problem's only value does not exist, returns TALLY_ERANGE or TALLY_EINVAL, as lower_absence() does. Of several
 * values, one that does not exist gets type 0. */
tally_status lower_values(const struct problem *p, const struct state *s, const tally_value *tree,
                          tally_value *out);

/* Stores the line that says why the problem's only value does not exist, and returns s: TALLY_ERANGE where it does not
 * fit its type, TALLY_EINVAL where there are no elements. */
tally_status lower_absence(const struct problem *p, tally_status s);

#endif
