/*
 * own_hints.h - finds the numbers of a student's text that may be the threads of a block.
 */
#ifndef TALLY_CLI_OWN_HINTS_H
#define TALLY_CLI_OWN_HINTS_H

#include "teach/own_tokens.h"

/* Notes the number that a token is, if that may be the threads of a block: a power of two up to 1024. */
void hint_block(struct own_source *r, struct own_token t, size_t end);
/* Notes the lengths of the shared arrays that are declared in [from, end). The product of two dimensions may be the
 * threads, too. Numbers below 32, the lanes of a warp, are left out: they are seldom a block. */
void hint_lengths(struct own_source *r, size_t from, size_t end);
/* Returns whether `blockIdx.x *` stands right before token t, behind `from`. Then t is the threads of a block, or a
 * multiple of them. */
bool hint_follows_block(const struct own_source *r, size_t from, struct own_token t);
/* Notes the numbers by which a kernel's body, [from, end), walks: `blockIdx.x * 256` and `i += 256`. */
void hint_strides(struct own_source *r, size_t from, size_t end);

/* Returns whether a kernel's body, [from, end), compares something with gridDim.x: it counts the blocks, or combines what
 * they have left, so that it is made for several. */
bool hint_counts_blocks(const struct own_source *r, size_t from, size_t end);

#endif
