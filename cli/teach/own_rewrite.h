/*
 * own_rewrite.h - edits by which what is kept of a student's text becomes C++ for the model, or text for a device.
 */
#ifndef TALLY_CLI_OWN_REWRITE_H
#define TALLY_CLI_OWN_REWRITE_H

#include "teach/own_tokens.h"

/* Has OWN_ARM() stand around both arms of each `c ? a : b` in [from, end). The names in a macro may stand for anything. */
void rewrite_arms(struct own_source *r, size_t from, size_t end, bool is_macro);
/* Edits what a kept declaration, [from, end), needs. */
void rewrite_declaration(struct own_source *r, size_t from, size_t end);
/* Edits what OpenCL C writes otherwise: it has no `long long` and no static_cast<T>(x). */
void rewrite_for_opencl(struct own_source *r, size_t from, size_t end);

#endif
