/*
 * columns.h - the strategy for columns: which problems it takes, in which tiles, and its launches (kernels/columns.cu).
 */
#ifndef TALLY_GPU_COLUMNS_H
#define TALLY_GPU_COLUMNS_H

#include "exact/kernel_words.h"
#include "gpu/strategy.h"

extern const struct strategy columns_strategy;

#endif
