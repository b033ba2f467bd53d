/*
 * run.h - turns the model's counts into those of the public header.
 */
#ifndef TALLY_LADDER_RUN_H
#define TALLY_LADDER_RUN_H

#include "model/model.h"
#include "tally.h"

/* Sets *out from what the model has counted of a reduction whose kernels make `left` values of n elements. So
 * n - left of their operations are useful; the CPU then applies left - 1 more, or atomics `left`. */
void counts_take(tally_ladder_counts *out, const model_counts *counts, uint64_t n, uint64_t left);

#endif
