/*
 * vectors.h - the strategy for segments and groups of vectors: which problems it takes, in which pieces, and its launches
 * (kernels/vectors.cu).
 */
#ifndef TALLY_GPU_VECTORS_H
#define TALLY_GPU_VECTORS_H

#include "exact/kernel_words.h"
#include "gpu/strategy.h"

extern const struct strategy vectors_strategy;

#endif
