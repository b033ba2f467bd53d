/*
 * filled.h - the argument of the kernels that make a filled copy of an array, or a mask of its NaNs (filled.cu). Kernels
 * and the host read it alike.
 *
 * Before including this header, include parts.h.
 */
#ifndef TALLY_FILLED_H
#define TALLY_FILLED_H

#define FILLED_TEAM_ROW 64 /* a warp, not a thread, counts rows of more elements than this */
#define COUNTED_AT_ONCE 8u /* a thread's loads of mask words under way, for four columns */
#define FILLED_AT_ONCE  4u /* a thread's loads of packs of 16 bytes under way */

typedef struct filled_plan {
    u64 n;  /* elements */
    u64 to; /* the word of the workspace where the copy, or the mask, begins; even, so that it is aligned to 16 bytes */
    u64 neutral;    /* the bits of the element that replaces masked ones, repeated to 64 bits */
    i64 x, y, mask; /* the index of the first element in each */
    u64 infinity;   /* `show`: the bits of a float's infinity */
    u32 paired;     /* `show`: there is a second array */
    u32 width;      /* bits of an element */
    u32 masked;
    /* If the first element is aligned in the array and in the mask, all packs of 16 bytes of the copy are so, too. */
    u32 in_packs;
    /* Rows lie side by side in the mask, and if the first one is at a multiple of 4 bytes, so is every fourth one. */
    u32 in_fours;
    u64 chunk;  /* elements of a row that a thread or a warp counts */
    u64 chunks; /* chunks of a row */
    u32 team;   /* threads that count a chunk: 1, or WARP */
    u32 dims;   /* the axes from the innermost of the copy to the outermost; at least one */
    part_extent dim[PARTS_DIMS + 1]; /* segments of equal length have one more than the array */
} filled_plan;

#endif
