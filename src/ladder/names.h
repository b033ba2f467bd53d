/*
 * names.h - the rungs by name and number, and the options of a climb.
 */
#ifndef TALLY_LADDER_NAMES_H
#define TALLY_LADDER_NAMES_H

#include "ladder/rungs.h"
#include "tally.h"

/* The numbers that tally_ladder_rung() takes. The kernels stand between the two rungs that are no kernels. */
enum { RUNG_SEQUENTIAL = 0, RUNG_KERNELS = 1, RUNG_TALLY = RUNG_KERNELS + LADDER_RUNG_COUNT };

/* Finds a rung's number. TALLY_EINVAL, with a list of all rungs, where there is none of this name. */
tally_status rung_find(const char *name, size_t *out);

/* Checks the options and copies them to *out with the defaults filled in. */
tally_status options_fill(const tally_ladder_options *options, tally_ladder_options *out);

#endif
