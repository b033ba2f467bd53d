/*
 * prefetch.h - a switch: kernels prefetch, or leave that to the processor where it is better at it.
 */
#ifndef TALLY_CPU_PREFETCH_H
#define TALLY_CPU_PREFETCH_H

#include <stddef.h>

/* A mask for prefetch distances: all ones, or 0 on AMD's processors. There, kernels with few
 * streams and little arithmetic are faster without prefetch (docs/performance.md). Set before
 * main(), and constant afterwards. */
__attribute__((visibility("hidden"))) extern size_t cpu_prefetches;

#endif
