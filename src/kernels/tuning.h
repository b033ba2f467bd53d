/*
 * tuning.h - the numbers that suit a machine, apart from what is done with them. Kernels and the host
 * read them alike.
 *
 * Kernels have one of two shapes, told apart by BLOCK, the threads of a block, which the host defines; it
 * picks the one that suits the device (struct gpu_facts, is_cpu) unless a caller asks for a block:
 *
 *   BLOCK > 1   a GPU. A thread has a few packs of 16 bytes in registers, and hides the memory's
 *               latency by their number and by the other warps.
 *   BLOCK == 1  a CPU behind OpenCL. A thread is a core's worth of work: its tile is a piece of the
 *               first-level cache, and its loops are what the compiler makes vectors of.
 *
 * Little's law for an H200: 4.8 TB/s times 0.7 us of latency is 3.4 MB under way, 25 KB for each of 132
 * multiprocessors. 3 blocks of 256 threads, as for exact sums, with 4 packs of 16 bytes each ask for 48 KB, and each
 * tile is on its way while the one before it is worked on. docs/performance.md has what else was tried.
 */
#ifndef TALLY_TUNING_H
#define TALLY_TUNING_H

#define GPU_BLOCK         256 /* threads */
#define GPU_BLOCKS_A_UNIT 4   /* blocks that a multiprocessor has at once, and so the grid's size */
/* The same for exact sums, for both sums of 8-bit integers, and for rows (rows.cu), which need 80 registers a thread. */
#define GPU_SUM_BLOCKS_A_UNIT 3
/* The same for exact sums of products, most of which go through levels of doubles, and for two sums at once: 128
 * registers. */
#define GPU_PRODUCT_BLOCKS_A_UNIT 2
/* Threads of a block for rows (rows.cu), fewer than GPU_BLOCK so that the warps can share a
 * multiprocessor's shared memory; and the blocks that a multiprocessor has at once. */
#define GPU_ROWS_BLOCK                 128
#define GPU_ROWS_BLOCKS_A_UNIT         6
#define GPU_ROWS_PRODUCT_BLOCKS_A_UNIT 4
/* The same for columns (columns.cu): 80 registers, and 48 KB of shared memory for tiles that are on their way. */
#define GPU_COLUMN_BLOCKS_A_UNIT 3
/* Threads of a block for vectors (vectors.cu), and threads that a multiprocessor has at once: sums take 128 registers, some
 * of which would lie in memory if there were more. 512 threads with 16 rows of 16 bytes under way each are 128 KB, more than
 * Little's law asks for, as a warp that ends a part asks for no rows meanwhile. */
#define GPU_VECTORS_BLOCK          128
#define GPU_VECTORS_THREADS_A_UNIT 512
/* The same for the kernel that joins parts that were cut: 80 registers. */
#define GPU_VECTORS_JOINERS_A_UNIT 768
/* The same for arrays that are added up over ranks, element by element (terms.cu). */
#define GPU_TERMS_BLOCKS_A_UNIT 8
/* The same where they lie in each other's memory (shared_terms.cu): 80 registers. */
#define GPU_SHARED_TERMS_BLOCKS_A_UNIT 3
#define GPU_TILE                       4u /* packs of 16 bytes that a thread takes at a time */
/* The most tiles of a block of an exact sum. Larger arrays have further rounds of smaller blocks,
 * since multiprocessors do not keep step: the first ones to finish take these. */
#define GPU_TILES_A_BLOCK 64
/* The same for two sums at once, whose blocks take longer to begin and to end. */
#define GPU_MOMENTS_TILES_A_BLOCK 512

#define CPU_BLOCKS_A_UNIT 128 /* PoCL hands them to its threads by 32 and more */
#define CPU_TILES_A_BLOCK 8   /* at least */
#define CPU_TILE          256 /* elements that a thread takes at a time; window.h allows no more */

/* 1 if kernels for blocks of so many threads have the shape for a CPU. */
#define CPU_SHAPED(block) ((block) == 1)

#ifndef BLOCK
#define BLOCK GPU_BLOCK
#endif
#define BLOCK_MAX BLOCK
#if CPU_SHAPED(BLOCK)
#define IN_FLIGHT (CPU_TILE * (u32)sizeof(element) / 16)
#define WAYS      16u /* sums that a fast sum keeps side by side */
#elif defined(LIFT_PRODUCT)
#define IN_FLIGHT (GPU_TILE / 2) /* of each array */
#else
#define IN_FLIGHT GPU_TILE
#define WAYS      2u
#endif

#define ROOM 3 /* the least bits of a window above its largest number: window.h */

/* After UNFIT_TILES tiles in a row that fit no window, a thread tries one for every UNFIT_TRIES-th tile only. */
#define UNFIT_TILES 3
#define UNFIT_TRIES 16

#define TERMS_MOST     40 /* a launch has fewer than 2^40 elements: sum.cu */
#define PER_BLOCK_BITS 28 /* a block has fewer than 2^28 elements: limbs.h, window.h */

#endif
