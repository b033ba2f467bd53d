/*
 * tuning.h - the numbers that the host's part of reductions on GPUs was given by measuring (docs/performance.md says how).
 * Those that kernels share are in kernels/tuning.h. Another choice changes how long a reduction takes, and never its bits.
 */
#ifndef TALLY_GPU_TUNING_H
#define TALLY_GPU_TUNING_H

#include <stddef.h>
#include <stdint.h>

/* A device's doubles are slow if its floats are more than so many times as fast: 2 on data centers' GPUs, 32 or 64 on
 * others. Adding up a short float in floats takes some 3 times as many operations. */
#define SLOW_DOUBLES 4

/* ---- Host memory and queues: ring.h, device.c, whole.c, cache.h ------------------------------ */

/* One core copies some 10 GB/s where the bus carries 50, so cores share each of the ring's RING_CHUNKS chunks of
 * RING_CHUNK bytes. They meet at its end, which costs 10 to 20 us; the bus takes 150 us for 8 MiB. Two chunks would
 * overlap; four also cover a pause of either side. Writes of up to RING_LEAST bytes are faster without the ring. */
enum { RING_CHUNKS = 4, RING_CHUNK = 8 << 20, RING_LEAST = 64 << 10 };
/* Bytes of a chunk that a core takes at a time, and the most cores that help. */
enum { RING_SHARE = 512 << 10, RING_THREADS = 16 };
#define STAGING_MAX    ((size_t)64 << 20) /* bytes of each queue's staging buffer */
#define QUEUE_PATIENCE (1 << 14) /* tests of a result before waiting by the driver: some 300 us */
/* The most programs with users' operators that a struct gpu keeps (cache.h), and the most that a queue also remembers
 * by their source, which saves the look-up by root (embed.h). */
#define GPU_CACHE_USERS 64
#define KNOWN_USERS     8

/* ---- All devices as one: all.c -------------------------------------------------------------- */

/* A device gets ALL_TASKS_EACH tasks or more, so that all devices end at about the same time. A task has at least
 * ALL_TASK_LEAST bytes, to be worth the start of a call, and at most ALL_TASK_MOST, beside which that start costs
 * nothing. An array is folded by k > 1 devices only if it has at least k * ALL_DEVICE_LEAST bytes: below that fewer
 * devices end sooner, as the devices' threads have to meet. */
#define ALL_TASKS_EACH   2
#define ALL_DEVICE_LEAST ((size_t)16 << 20)
#define ALL_TASK_LEAST   ((size_t)1 << 20)
#define ALL_TASK_MOST    ((size_t)256 << 20)
#define GPU_TREE_LEVEL   10 /* subtrees of 2^10 leaves: 2^22 elements a value that the host sees */

/* ---- Reductions in parts: strategy.c, parts_layout.c, sort.c, quick.c, few.c ----------------------- */

#define PARTS_MANY_A_UNIT 128 /* elements for each multiprocessor: see parts_are_many() */
/* Of `fold`: the least weight of a piece, and pieces for each multiprocessor. */
#define FOLD_PIECE_LEAST   ((uint64_t)1 << 14)
#define FOLD_PIECES_A_UNIT 8
#define LOOKS_A_BLOCK      4 /* blocks of `starts` in place of one of most other kernels */
#define SORT_TILES_A_BLOCK 1 /* the least tiles of the sort's blocks */
#define SORT_WORKER_LEAST                                                                          \
    (1 << 12) /* the least elements of a worker that is a thread (kernels/sort.cu) */
/* The kernel `quick`. Where there are QUICK_THREAD_ROWS rows, of no more than QUICK_THREAD_MEAN elements on average, a
 * thread takes each row of up to QUICK_THREAD_MOST elements; else a warp takes each row of up to QUICK_FEW_MOST
 * elements, or of QUICK_WARP_MOST where there are QUICK_WARP_ROWS rows. Columns, which neighbouring threads read side by
 * side, are a thread's up to QUICK_COLUMN elements where there are QUICK_WARP_ROWS of them. */
#define QUICK_THREAD_ROWS (1 << 16)
#define QUICK_THREAD_MEAN 512
#define QUICK_THREAD_MOST 1024
#define QUICK_WARP_ROWS   4096
#define QUICK_WARP_MOST   (1 << 16)
#define QUICK_FEW_MOST    4096
#define QUICK_COLUMN      (1 << 16)
/* The kernel `few`, a block for each row: elements in all, of a row, and rows, at most. */
#define PARTS_FEW_ELEMENTS 16384
#define PARTS_FEW_EACH     2048
#define PARTS_FEW_ROWS     256
/* With at most so many rows, a row that a strategy leaves is marked by a byte, and not by a bit: kernels/parts.h. */
#define MARKED_ROWS ((size_t)1 << 21)

/* ---- Rows: rows.c ---------------------------------------------------------------------------- */

#define ROWS_PIECE_LEAST 1024 /* elements and ends of rows */
#define ROWS_ROUNDS      2 /* pieces of rows of one length for each warp that the device runs at once */
/* Largest mean row length in bytes for the kernel `short_rows`: SHORT_BYTES, or ASKEW_BYTES if rows do not all begin at
 * a multiple of 16 bytes. */
#define SHORT_BYTES 512
#define ASKEW_BYTES 1100
/* Rows are not many if there are at most so many for each warp that the device runs at once. A launch of block_rows
 * has at most so many times the blocks that the device runs at once; one time fewer where states take long to merge. */
#define BLOCK_ROWS_ROUNDS 3
/* Bytes of a row for block_rows: at least LEAST; FEWEST if there are no more rows than warps; MANY if rows are many, and
 * SQUARES if their squares are summed. A few rows have at most MOST: longer ones are cut. */
#define BLOCK_ROWS_LEAST   2048
#define BLOCK_ROWS_FEWEST  32
#define BLOCK_ROWS_MOST    65536
#define BLOCK_ROWS_MANY    4096
#define BLOCK_ROWS_SQUARES 8192
/* Minimum row length in bytes for rows separated by gaps. Shorter rows are copied together first (filled.h). */
#define APART_BYTES 64
/* The most elements of a row for `few_rows`, by the bytes of an element. */
#define FEW_ROWS_ELEMENTS(size) ((size) == 8 ? 4u : 7u)
/* Keep rows whole if that costs at most 1/WHOLE_ROWS more time than cutting them. */
#define WHOLE_ROWS 14
/* Joining rows that were cut takes the time in which the device reads this many bytes. */
#define ROWS_JOIN_BYTES ((uint64_t)32 << 20)

/* ---- Filled copies: filled.c ------------------------------------------------------------------ */

#define FILLED_MEMORY_PART                                                                         \
    4 /* the copy takes at most 1/FILLED_MEMORY_PART of the device's memory */
#define FILLED_CHUNK_LEAST 1024 /* the least elements of a row's chunk that is counted */

/* ---- Columns: columns.c ----------------------------------------------------------------------- */

#define COLUMNS_ROUNDS 6 /* the most rounds of tasks */
/* The part of a round by which the last tasks end late, as multiprocessors do not keep step. */
#define COLUMNS_UNEVEN 0.08
/* The least units of a tile, where there are as many, so that neighbouring threads read enough bytes side by side. */
#define COLUMNS_WIDTH_LEAST 32
#define COLUMNS_CHUNK_TILES 2 /* a chunk has at least the rows of so many tiles */
#define JOIN_CHUNKS         8 /* the most chunks that a thread of `join` should have */
#define JOIN_WIDTH_LEAST    4 /* the least results side by side in a tile of `join` */
/* The cost of a step of reduce_strands(), in rows that a thread adds. */
#define COLUMNS_MEETING 2.5
#define KNOWN_COLUMNS   64 /* layouts of tiles that a queue keeps */

/* ---- Vectors: vectors.c ----------------------------------------------------------------------- */

/* Rows of a piece: the least, and the least where there is enough work for all teams (piece_of()). */
#define VECTORS_PIECE_LEAST 64
#define VECTORS_PIECE_GOOD  256
#define VECTORS_WHOLE_MOST  96 /* rows of a part that is not cut, at most */
#define VECTORS_SHARES      64 /* warps that join the columns of a part of few edges, at most */
#define VECTORS_SLICES      16 /* blocks that join the columns of a part of many edges, at most */
#define VECTORS_GRID_MOST   (1u << 20) /* blocks of a launch */

/* ---- Groups: groups.c ------------------------------------------------------------------------- */

/* More groups than this are taken only with GROUPS_MEAN_LEAST elements on average. */
#define GROUPS_FREE       ((size_t)1 << 16)
#define GROUPS_MEAN_LEAST 8
#define GROUPS_COPIES     32 /* the most copies of a group's cells */
#define GROUPS_SLICES     4  /* the most blocks that share out groups; each reads all elements */
/* The most blocks for each multiprocessor: of kernels with cells in shared memory, as many as run at once; and of other
 * kernels. */
#define GROUPS_FEW_A_UNIT  3
#define GROUPS_MANY_A_UNIT 32

#endif
