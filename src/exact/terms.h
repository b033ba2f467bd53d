/*
 * terms.h - arrays that are added up over ranks, element by element: the plan of a tally_terms, and its steps in host
 * memory, whose arithmetic is that of kernels/terms.h.
 */
#ifndef TALLY_EXACT_TERMS_H
#define TALLY_EXACT_TERMS_H

#include "exact/kernel_words.h"
#include "tally.h"

#include "kernels/terms.h"

#include <stddef.h>

/* The three steps: tally_terms_bounds(), tally_terms_words(), tally_terms_values(). */
enum terms_step { TERMS_TO_BOUNDS, TERMS_TO_WORDS, TERMS_TO_VALUES };

/* Makes the plan of a tally_terms, and says how much memory its steps need. TALLY_EINVAL and TALLY_ETYPE for one that
 * makes no sense. */
tally_status terms_plan_of(const tally_terms *terms, terms_plan *plan, tally_terms_sizes *sizes);

/* Does a step in host memory, on the calling thread. The caller has checked the arguments.
 * TERMS_TO_VALUES puts errors into *call->outcome. */
void terms_run(enum terms_step step, const terms_plan *plan, const tally_terms_call *call);

#endif
