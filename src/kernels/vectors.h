/*
 * vectors.h - the argument of the kernels that reduce vectors by segment or by id (vectors.cu). Kernels and the host read
 * it alike.
 *
 * An array is slabs of rows of columns. Rows that follow one another, or that an order names one after another, are a
 * part: a segment or a group. There is one result for each part, slab and column. A unit is the one or few neighbouring
 * columns that a thread loads at a time. A team of `width` threads, a unit each, takes a tile of a row's columns.
 *
 * Work. Places are numbers of rows, or of entries in the order. Part i begins at weight start(i) + i * VECTORS_PART, and
 * pieces have equal weights. Parts of up to `whole` rows belong to the piece in which they begin; longer ones are cut
 * where pieces end. Each piece leaves the states of a part that was cut on an edge.
 *
 * Before including this header, define u32, i32, u64 and i64, and include parts.h.
 */
#ifndef TALLY_VECTORS_H
#define TALLY_VECTORS_H

#include "column_values.h"

#define VECTORS_PART 8  /* a part's cost besides its rows, in rows */
#define JOIN_FEW     32 /* edges of a part that a warp joins, at most */
/* The numbers of tasks for blocks of `join_vectors`. A task of the first kind joins the parts of few edges that begin
 * in JOIN_WARPS pieces, a warp each, for one of `shares` shares of the columns. One of the second kind joins the
 * parts of more edges that begin in as many pieces as a block has threads, for one of `slices` slices of the
 * columns. */
#define JOIN_WARPS(block) ((block) < 32 ? 1 : (block) / 32)
#define JOIN_FEW_TASKS(pieces, block, shares)                                                      \
    (((u64)(pieces) + JOIN_WARPS(block) - 1) / JOIN_WARPS(block) * (shares))
#define JOIN_MANY_TASKS(pieces, block, slices) (((u64)(pieces) + (block)-1) / (block) * (slices))

typedef struct vectors_plan {
    column_values values;
    part_rows parts; /* where they begin */
    u64 order; /* the word of the workspace where the order begins, numbers of 32 bits; 0: there is none */
    i64 x,
        slab_step; /* the first element's index; elements from one slab to the next. Columns lie side by side */
    i64 out_first, out_slab, out_part, out_column;
    u64 piece, whole;
    u64 left; /* as in parts_plan */
    u64 is_cut; /* the word that becomes `left` if some part is cut into few edges; the next word: into many */
    u64 heads; /* the word where each piece has two, which say which part begins in it and is cut, or that none does */
    u64 edges; /* the word where the states of parts that were cut begin: two for each piece, of all columns */
    u32 pieces, slabs, columns;
    u32 row_bytes;    /* from one row to the next */
    u32 width, tiles; /* units of a team; tiles across a row */
    u32 readers;      /* threads that copy numbers of rows to one ring: a team's, or one */
    u32 shares,
        slices; /* `join_vectors`: how many tasks share the columns of a part of few edges, and of many */
    u32 absolute; /* an index is the row's number, not that within its part */
} vectors_plan;

#endif
