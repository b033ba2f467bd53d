/*
 * ahead.h - whether this processor's own prefetching leaves kernels anything to ask for.
 */
#ifndef TALLY_CPU_AHEAD_H
#define TALLY_CPU_AHEAD_H

#include <stddef.h>

/* All ones, or 0 on processors that are faster if kernels that read few streams, and do little with them, ask for nothing (AMD's;
 * docs/performance.md). Distances are masked by it. Set before main(), and never again. */
__attribute__((visibility("hidden"))) extern size_t cpu_asks_ahead;

#endif
