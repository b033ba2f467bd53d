/*
 * ladder_counts.h - the model's counts, for tables and for JSON.
 */
#ifndef TALLY_CLI_LADDER_COUNTS_H
#define TALLY_CLI_LADDER_COUNTS_H

#include "common/json.h"
#include "tally.h"

#include <stdbool.h>

/* Returns whether the row's operations were counted: the production reduction may add integers,
 * which the model does not see as applications of the operator. */
bool ladder_applies(const tally_ladder_row *row);
/* Returns useful operations divided by issued slots, at most 1; 0 if no slot was issued. */
double ladder_efficiency(const tally_ladder_counts *c);
/* Returns the row's counts as an object; a count that was not taken is null. */
struct json_object *json_ladder_counts(const tally_ladder_row *row);

#endif
