/*
 * own_hints.h - what a student's text says of the threads of a block.
 */
#ifndef TALLY_CLI_OWN_HINTS_H
#define TALLY_CLI_OWN_HINTS_H

#include "teach/own_tokens.h"

/* Notes the number that a token is, if that may be the threads of a block: a power of two up to 1024. */
void hint_block(struct own_source *r, struct own_token t, size_t end);
/* Notes the lengths of shared arrays, [from, end). Of two dimensions the product may be the threads, too. A number below a
 * warp's lanes is seldom a block. */
void hint_lengths(struct own_source *r, size_t from, size_t end);
/* Returns whether blockIdx.x stands before token t, times it: then t is the threads of a block, or a multiple of them. */
bool hint_follows_block(const struct own_source *r, size_t from, struct own_token t);
/* Notes the numbers by which a kernel's body, [from, end), walks: `blockIdx.x * 256` and `i += 256`. */
void hint_strides(struct own_source *r, size_t from, size_t end);

#endif
