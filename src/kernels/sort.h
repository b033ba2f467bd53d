/*
 * sort.h - the argument of the kernels that bring elements into the order of their groups (sort.cu). Kernels and the
 * host read it alike.
 *
 * Before including this header, define u32 and u64, and include tuning.h.
 */
#ifndef TALLY_SORT_H
#define TALLY_SORT_H

/* Bits of the widest digit of a pass, if blocks sort tiles. A wider digit makes runs of equal digits in a tile shorter, and
 * memory is then written in parts of sectors, which costs more than a pass saves (H200, 2^27 pairs: 1.06 ms at 5 bits,
 * 1.27 at 7, 1.76 at 8). The last bit pays while a cache holds all that is written. */
#define SORT_TILE_BITS   8u
#define SORT_MEMORY_BITS 7u /* the same beyond that cache */
#define SORT_CACHED_MOST                                                                           \
    ((u64)1 << 22) /* elements: they, their ids and both copies fit an L2 cache of 64 MB */
/* The same if threads sort stretches: each has a counter in global memory for each digit. */
#define SORT_THREAD_BITS(block) (CPU_SHAPED(block) ? 8u : 4u)
/* Elements of a thread in a tile. */
#define SORT_EACH(block) ((block) <= 256 ? 16u : (block) <= 512 ? 8u : 4u)

#define SORT_BLOCKS_A_UNIT 2 /* blocks that a multiprocessor has at once */

typedef struct sort_plan {
    u64 counts; /* the word of the workspace where counts begin: those of a digit side by side */
    u64 totals; /* the word of the workspace where the digits' totals begin */
    u64 keys,
        keys_to; /* the words where ids lie before and after this pass; 0: the caller's; not written */
    u64 from[2], to[2]; /* the words where carried arrays lie; the caller's before pass 0 */
    u64 starts;         /* the word that gets where groups begin, where one pass is all; 0: none */
    u32 pass, shift, bits;
    u32 most;     /* ids from this on are of no group, or masked */
    u32 wide_ids; /* ids before this pass are the caller's, and have 64 bits, not 32 */
    u32 compacts; /* there are no ids: elements that a mask shows are brought side by side */
    u32 arrays;   /* how many arrays of elements are carried along; 0: the elements' numbers are */
    u32 width;    /* bits of what is carried */
} sort_plan;

#endif
