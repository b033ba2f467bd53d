/*
 * groups.h - the strategy for groups whose ids come in any order: which problems it takes, and its launches
 * (kernels/groups.cu).
 */
#ifndef TALLY_GPU_GROUPS_H
#define TALLY_GPU_GROUPS_H

#include "exact/kernel_words.h"
#include "gpu/strategy.h"

extern const struct strategy groups_strategy;

#endif
