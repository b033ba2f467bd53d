/*
 * choice.h - which strategy (strategy.h) does a reduction in parts.
 */
#ifndef TALLY_GPU_CHOICE_H
#define TALLY_GPU_CHOICE_H

#include "gpu/strategy.h"

/* Returns the strategy for the problem, or NULL. If a sort carries the elements, it is the one for the sorted groups,
 * unless a strategy takes groups unordered. */
const struct strategy *choice_for(const struct queue *queue, const struct shaped *s);
/* Returns the strategy for the problem on a filled copy of the array (filled.h), or NULL. The copy has the shape *copy:
 * its axes are in the order of memory or, if *in_order, of rows. */
const struct strategy *choice_for_filled(const struct queue *queue, const struct shaped *s,
                                         struct shaped *copy, bool *in_order);
/* Returns whether a filled copy may be better than the strategy for the array itself: there is none, or only `quick`. */
bool choice_is_poor(const struct strategy *strategy);

#endif
