/*
 * row_trees.h - the canonical trees of rows (docs/canonical-tree.md): their roots are values that `fold` then lowers.
 */
#ifndef TALLY_GPU_ROW_TREES_H
#define TALLY_GPU_ROW_TREES_H

#include "gpu/reduction.h"

/* Enqueues the launches that evaluate the trees of all rows, whose starts have been found (row_starts.h). */
tally_status row_trees_evaluate(struct reduction *r);

#endif
