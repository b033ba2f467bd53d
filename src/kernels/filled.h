/*
 * filled.h - the argument of the kernels that make a filled copy of an array, or a mask of its NaNs (filled.cu). Kernels
 * and the host read it alike.
 *
 * Before including this header, include parts.h.
 */
#ifndef TALLY_FILLED_H
#define TALLY_FILLED_H

#define FILLED_TEAM_ROW 64 /* a warp counts rows of more elements */
#define COUNTED_AT_ONCE 8u /* a thread's loads of mask words under way, for four columns */
#define FILLED_AT_ONCE  4u /* a thread's loads of packs of 16 bytes under way */

typedef struct filled_plan {
    u64 n;  /* elements */
    u64 to; /* the word of the workspace from which on they lie in the copy, or their bytes in the mask; an even one */
    u64 neutral;    /* the bits of the element that stands where one is masked, again and again */
    i64 x, y, mask; /* the index of the first element in each */
    u64 infinity;   /* `show`: the bits of a float's infinity */
    u32 paired;     /* `show`: there is a second array */
    u32 width;      /* bits of an element */
    u32 masked;
    u32 in_packs; /* packs of 16 bytes of the copy lie so in the array and in the mask, if its first element does */
    u32 in_fours; /* rows lie side by side in the mask, by fours if the first one does */
    u64 chunk;    /* elements of a row that a thread or a warp counts */
    u64 chunks;   /* chunks of a row */
    u32 team;     /* threads that count a chunk: 1, or WARP */
    u32 dims;     /* the axes from the innermost of the copy to the outermost; at least one */
    part_extent dim[PARTS_DIMS + 1]; /* segments of equal length have one more than the array */
} filled_plan;

#endif
