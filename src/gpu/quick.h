/*
 * quick.h - the strategy for short rows of almost any problem: a thread or a warp for each row (`quick` of kernels/parts.cu).
 */
#ifndef TALLY_GPU_QUICK_H
#define TALLY_GPU_QUICK_H

#include "gpu/strategy.h"

/* Returns whether a thread or a warp alone can work out all values of the problem. */
bool quick_gives_values(const struct problem *p);

extern const struct strategy quick_strategy;

#endif
