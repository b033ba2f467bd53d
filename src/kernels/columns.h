/*
 * columns.h - the argument of the kernels that reduce columns (columns.cu). Kernels and the host read it alike.
 *
 * An array is slabs of rows of columns: one result for each slab and column. A unit is the one or few
 * neighbouring columns that a thread loads at a time. A strand is every `strands`-th row, which one
 * thread adds. A block takes a tile of `width` units by `strands` strands by `depth` slabs, with a
 * thread for each. Where there are too few tiles for the device, rows are cut into chunks, whose states
 * are left in the workspace and joined.
 *
 * Before including this header, define u32, i32, u64 and i64.
 */
#ifndef TALLY_COLUMNS_H
#define TALLY_COLUMNS_H

#include "column_values.h"

typedef struct columns_plan {
    u64 slabs, columns, rows; /* fewer than 2^31 rows */
    i64 x, slab_step,
        row_step; /* x: the first element's index; the others are strides, in elements. Columns lie side by side */
    i64 out_first, out_slab, out_column;
    column_values values;
    u64 left;                  /* as in parts_plan */
    u64 states;                /* the word of the workspace where the states of chunks begin */
    u32 width, strands, depth; /* of a tile: units, strands, slabs */
    u32 tiles, chunks, groups; /* tiles across; chunks of rows; groups of `depth` slabs */
    u32 chunk;                 /* rows of a chunk */
    u64 counts;                /* as in parts_plan */
    u32 wide_counts;
    u32 leaves_none; /* as in parts_plan */
} columns_plan;

#endif
