/*
 * own_indexes.h - has the model check each index of an array whose length the text says.
 *
 * The compiler's own check (-fsanitize=bounds) lets the index one past the end go where a reference is bound to the
 * element, as one past the end is an address that C allows. An element that is a class (own_elements.hpp) is always used
 * by reference. So `v[j]` becomes `v[own::at<decltype((v))>(j, "v")]`, which checks j.
 */
#ifndef TALLY_CLI_OWN_INDEXES_H
#define TALLY_CLI_OWN_INDEXES_H

#include "teach/own_tokens.h"

/* Notes the variables in global memory that the declaration [from, end) declares (own_text.h). */
void note_variables(struct own_source *r, size_t from, size_t end);
/* Notes the arrays that [from, end) declares, and edits the indexes of those that have been noted. */
void rewrite_indexes(struct own_source *r, size_t from, size_t end);

#endif
