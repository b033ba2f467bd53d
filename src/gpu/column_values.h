/*
 * column_values.h - the plan by which kernels of columns and vectors lower their states (kernels/column_values.h).
 */
#ifndef TALLY_GPU_COLUMN_VALUES_H
#define TALLY_GPU_COLUMN_VALUES_H

#include "exact/kernel_words.h"
#include "gpu/strategy.h"

#include "kernels/column_values.h"

/* Plans the values of results of n elements each; n = 0: of any number. */
void plan_column_values(const struct parts_run *run, uint64_t n, struct column_values *plan);

#endif
