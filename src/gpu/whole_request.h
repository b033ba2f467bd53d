/*
 * whole_request.h - the request to kernels that reduce whole arrays: for values, or for records only
 * (kernels/request.h).
 */
#ifndef TALLY_GPU_WHOLE_REQUEST_H
#define TALLY_GPU_WHOLE_REQUEST_H

#include "problem/problem.h"

#include <stdbool.h>

/* Returns whether one launch (for a tree, the last of a few) gives the problem's values: a single
 * value, or both extremes, or their indices. */
bool whole_gives_values(const struct problem *p);
/* Returns the request for these values. */
uint32_t whole_request(const struct problem *p);

#endif
