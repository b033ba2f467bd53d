/*
 * source.h - a user's operator as text for a GPU's compiler.
 */
#ifndef TALLY_GPU_SOURCE_H
#define TALLY_GPU_SOURCE_H

#include "problem/problem.h"

/* Returns TALLY_EUNSUPPORTED, with the reason, where no GPU can apply the problem's user operator. */
tally_status source_check(const struct problem *p);

/* Makes the text that goes before the kernel, the function user_combine(a, b) of the problem's user operator, which
 * has a source. The caller frees it. */
tally_status source_prelude(const struct problem *p, char **out);

#endif
