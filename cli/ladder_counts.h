/*
 * ladder_counts.h - what the model counted, for tables and for JSON.
 */
#ifndef TALLY_CLI_LADDER_COUNTS_H
#define TALLY_CLI_LADDER_COUNTS_H

#include "json.h"
#include "tally.h"

/* Operations a slot; 0 where there are no slots. */
double ladder_efficiency(const tally_ladder_counts *c);
struct json_object *json_ladder_counts(const tally_ladder_counts *c);

#endif
