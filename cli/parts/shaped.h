/*
 * shaped.h - `tally OP` in parts: along axes, by segment, by group, and of what a mask leaves.
 */
#ifndef TALLY_CLI_SHAPED_H
#define TALLY_CLI_SHAPED_H

#include "reduce/reduction.h"

#include <stdbool.h>

/* Returns whether a reduction in parts is asked for. */
bool shaped_is_asked(const struct shaping *shaping);
/* Checks that its options go together, and with the other options. Returns an exit status. */
int shaped_check(const struct reduction *r);
/* Reduces the inputs and writes or prints the results. Returns an exit status. */
int shaped_run(struct reduction *r, char **names, int count);

#endif
