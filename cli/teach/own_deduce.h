/*
 * own_deduce.h - writes out the types that C++ would deduce from a pointer.
 *
 * A text's `T *s` is own::element_t<T> *s for the model (own_read.c), from which C++ deduces no T. So a call `tree(s, t)`
 * of a template whose T stands in pointers only becomes `tree<own::text_t<decltype((s))>>(s, t)`.
 */
#ifndef TALLY_CLI_OWN_DEDUCE_H
#define TALLY_CLI_OWN_DEDUCE_H

#include "teach/own_tokens.h"

/* Notes the function whose head is [from, head), if that is a template with such types. */
void deduce_note(struct own_source *r, size_t from, size_t head);
/* Edits the calls of such functions in [from, end). */
void deduce_calls(struct own_source *r, size_t from, size_t end);

#endif
