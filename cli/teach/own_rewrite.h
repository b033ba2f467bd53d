/*
 * own_rewrite.h - edits that make C++ for the model, or text for a device, of the kept part of a student's text.
 */
#ifndef TALLY_CLI_OWN_REWRITE_H
#define TALLY_CLI_OWN_REWRITE_H

#include "teach/own_tokens.h"

/* Puts OWN_ARM() around both arms of each `c ? a : b` in [from, end). In a macro also around those of `a > b ? a : b`,
 * as its names may be any expressions. */
void rewrite_arms(struct own_source *r, size_t from, size_t end, bool is_macro);
/* Makes the edits that a kept declaration, [from, end), needs. */
void rewrite_declaration(struct own_source *r, size_t from, size_t end);
/* Makes the edits for OpenCL C, which has no `long long` and no static_cast<T>(x). */
void rewrite_for_opencl(struct own_source *r, size_t from, size_t end);

#endif
