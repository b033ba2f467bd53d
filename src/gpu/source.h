/*
 * source.h - a user's operator as text for a GPU's compiler.
 */
#ifndef TALLY_GPU_SOURCE_H
#define TALLY_GPU_SOURCE_H

#include "problem.h"

/* Whether a GPU can do the reduction, if it is a user's: TALLY_EUNSUPPORTED with the reason. */
tally_status source_check(const struct problem *p);

/* The text that goes before the kernel: the function user_combine(a, b). To be freed. */
tally_status source_prelude(const struct problem *p, char **out);

#endif
