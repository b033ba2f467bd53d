/*
 * row_starts.h - where the rows of a reduction in parts begin, and which elements they have.
 */
#ifndef TALLY_GPU_ROW_STARTS_H
#define TALLY_GPU_ROW_STARTS_H

#include "gpu/reduction.h"

/* Enqueues the launches that find where rows begin: the check of offsets; the sort of groups and the search for their
 * starts; and both for the tree's elements. Notes in the reduction where the offsets are. After a sort that carries the
 * elements the reduction is one of sorted groups. */
tally_status row_starts_find(struct reduction *r);

#endif
