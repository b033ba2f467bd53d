/*
 * run.h - what the model counted, as the public header has it.
 */
#ifndef TALLY_LADDER_RUN_H
#define TALLY_LADDER_RUN_H

#include "model/model.h"
#include "tally.h"

/* Copies what the model has counted of a reduction that takes n values to `left`, where left - 1 more are done
 * by the CPU, or `left` by atomics. */
void counts_take(tally_ladder_counts *out, const model_counts *counts, uint64_t n, uint64_t left);

#endif
