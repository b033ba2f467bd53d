/*
 * rows.h - the strategy for rows whose elements lie side by side (kernels/rows.cu), short, long and mixed: rows of an
 * array, segments, sorted groups.
 */
#ifndef TALLY_GPU_ROWS_H
#define TALLY_GPU_ROWS_H

#include "gpu/strategy.h"

extern const struct strategy rows_strategy;

#endif
