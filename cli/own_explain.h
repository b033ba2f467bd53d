/*
 * own_explain.h - `tally explain --kernel` and the row of `tally ladder --kernel`.
 */
#ifndef TALLY_CLI_OWN_EXPLAIN_H
#define TALLY_CLI_OWN_EXPLAIN_H

#include "explain.h"
#include "own.h"

/* Explains the kernel as `tally explain` does a rung; returns the exit status. */
int own_explain(struct explanation *e, const struct own_options *own);

#endif
