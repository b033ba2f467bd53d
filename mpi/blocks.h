/*
 * blocks.h - states that additions do not combine: saved, and merged by an MPI_Op of ours.
 *
 * A block is a saved state (or the saved states of all groups) behind its size and a status. All blocks of a
 * call have one length, which is an MPI datatype; the operator merges neighbours, lower ranks on the left. Where
 * two cannot be merged, the result is a block that says so, and stays so.
 */
#ifndef TALLY_MPI_BLOCKS_H
#define TALLY_MPI_BLOCKS_H

#include "tally_mpi.h"

struct block {
    int64_t status; /* a tally_status */
    int64_t size;   /* of the bytes that are used */
    unsigned char bytes[];
};

/* The kind of some blocks. MPI's operator gets no context, so their datatype has this as an attribute; it must live as long as
 * the datatype. */
struct block_kind {
    const tally_problem *problem; /* with the user's operator, if there is one; else NULL will do */
    int are_groups;
    size_t room; /* bytes for what is saved; a multiple of 8 */
};

/* Returns the length of a block, in bytes. */
static inline size_t block_bytes(const struct block_kind *kind) {
    return sizeof(struct block) + kind->room;
}

/* Returns the room that any state of the problem needs, however many elements it knows. `none` is
 * one of no elements. */
size_t block_room(const tally_problem *problem, const tally_state *none);
/* Returns whether part of the problem is evaluated over the canonical tree. */
int has_tree(const tally_problem *problem);

void block_save(struct block *block, const struct block_kind *kind, const tally_state *state);
void block_save_groups(struct block *block, const struct block_kind *kind,
                       const tally_groups *groups);

/* Make the datatype of one block, which the caller frees, and get the operator. Both return an MPI error code. */
int block_type(struct block_kind *kind, MPI_Datatype *type);
int block_op(MPI_Op *op);

/* The places of words in a saved state (docs/states.md), in bytes; saved_word() returns the word at one. */
enum { SAVED_PROBLEM = 8, SAVED_N = 32, SAVED_FIRST = 40, SAVED_HEAD = 48 };
uint64_t saved_word(const unsigned char *bytes, size_t at);

#endif
