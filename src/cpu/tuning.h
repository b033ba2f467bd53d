/*
 * tuning.h - the numbers that were chosen by measuring on CPUs (docs/performance.md says how). Another choice changes how
 * long a reduction takes, and never its bits. Bounds that a choice has to keep are asserted where they are needed.
 */
#ifndef TALLY_CPU_TUNING_H
#define TALLY_CPU_TUNING_H

#include <stddef.h>

/* ---- Whole arrays: device.c ----------------------------------------------------------------- */

/* Below this many bytes one core is done before another has woken up. */
#define ARRAY_ALONE_BYTES ((size_t)1 << 20)
/* Bytes of a task, at least and at most, where threads share an array; and of one where the caller works alone. */
#define ARRAY_TASK_BYTES_MIN   ((size_t)128 << 10)
#define ARRAY_TASK_BYTES_MAX   ((size_t)4 << 20)
#define ARRAY_ALONE_TASK_BYTES ((size_t)4 << 20)
/* Bytes of a block that is searched for an extreme and its index. They stay in the second-level cache, as a block that
 * has a new extreme is searched again for its place. */
#define SEARCH_BYTES ((size_t)512 << 10)
/* Bytes of a block that several monoids fold in turn: it stays in the second-level cache. Problems that a few elements may
 * decide test for that after each such block. */
#define SHARED_BYTES ((size_t)256 << 10)

/* ---- Kernels of whole arrays ---------------------------------------------------------------- */

/* Bytes ahead that a kernel prefetches if it does little with a line and reads one stream (vector.h). */
#define STREAM_AHEAD 16384
/* Bytes ahead that extraction prefetches in each stream: of one array, and of two arrays (extract.h). */
#define EXTRACT_AHEAD        2560
#define EXTRACT_PAIRED_AHEAD 2048
/* Streams that a kernel reads side by side. */
#define EXTRACT_STREAMS 4
#define DIGITS_STREAMS  4
#define INTEGER_STREAMS 4
#define NONZERO_STREAMS 4
/* Vectors of a chunk, which stays in the first-level cache while it is tried (exact_chunks.h). */
#define EXTRACT_CHUNK_VECTORS 256
#define DIGITS_CHUNK_VECTORS  256
/* Back-off: the most chunks that are taken a slower way untried, after failures in a row: by all levels, and by bins
 * (exact_chunks.h). */
#define MAX_DEPTH    64
#define MAX_PATIENCE 256
/* Terms that go to bins at a time (bins.h), and pairs of factors (product_bins.h). */
#define TERMS_AT_ONCE 256
#define BIN_BLOCK     256
/* Exponents whose words are added up in one 128-bit integer before that goes to the superaccumulator (exponents.h). */
#define EXPONENTS_SPAN 40
/* Vectors of doubles that go through levels together; the numbers behind them that integer units take meanwhile; and
 * such turns of a block (levels.h). */
#define LEVELS_AT_ONCE 10
#define LEVELS_WORDED  48
#define LEVELS_TURNS   2
/* Vectors that are compared at a time for an extreme (order.c). */
#define ORDER_AT_ONCE 4

/* ---- Rows: rows.c, shaped.c ----------------------------------------------------------------- */

/* Below this many bytes of all rows one core is done before another has woken up. */
#define ROWS_ALONE_BYTES ((size_t)1 << 19)
/* Fixed cost of a row, in elements that take as long. */
#define ROW_WEIGHT 64
/* Tasks, at most, and the weight of one (row_weight()), at least. */
#define ROWS_TASKS_MOST  512
#define ROWS_TASK_WEIGHT ((size_t)1 << 15)
/* A run of fewer bytes is gathered with others rather than folded where it lies. */
#define DIRECT_BYTES 2048
/* The most bytes of a run that are folded between two tests for a stop. */
#define DIRECT_BYTES_MAX ((size_t)4 << 20)
/* Offsets of a task that checks them. */
#define OFFSETS_TASK ((size_t)1 << 16)

/* ---- Columns and short rows: column_rows.h, across.c -------------------------------------------- */

/* Columns are added in steps of this many; blocks of planes have room for a multiple of it. */
#define COLUMN_STEP 16
/* Least bytes from one row to the next for which each row is read as a stream of its own. */
#define COLUMNS_APART 1024
/* Back-off: steps that are not tried without a bound after one whose sum was rounded (column_sums.c). */
#define COLUMNS_TRY_AGAIN 16
/* Bytes ahead of a short row that are prefetched where rows are transposed. */
#define TRANSPOSE_AHEAD 8192
/* The most columns of a block, and the rows of a tile. */
#define ACROSS_WIDTH     1024
#define ACROSS_TILE_ROWS 16
/* Elements that a thread adds up between two tests for a stop, in pieces of ACROSS_STOP_ROWS rows. */
#define ACROSS_STOP_ELEMENTS ((size_t)1 << 19)
#define ACROSS_STOP_ROWS     64
/* A task has as many neighbouring blocks as these bytes hold, so that a thread prefetches its own. */
#define ACROSS_GROUP_BYTES ((size_t)512 << 10)
/* Least bytes of a block's elements that are worth a cut. */
#define PART_BYTES ((size_t)256 << 10)
/* The most bytes of a task: this bounds the time until a stop is noticed. */
#define ACROSS_TASK_BYTES ((size_t)256 << 20)
/* Results of more bytes are written past the caches, so that their old bytes are not read first. */
#define STREAM_BYTES ((size_t)16 << 20)
/* Results of a few elements: columns of a block, and those that are transposed at a time. */
#define FEW_WIDTH   512
#define FEW_COLUMNS 128
/* Rows of at least FOLD_LEAST elements are folded FOLD_COLS elements at a time; shorter ones are transposed. */
#define FOLD_COLS  64
#define FOLD_LEAST 33
/* Rows of more bytes are left to the kernels for whole arrays. */
#define LONG_BYTES ((size_t)32 << 10)
/* Segments of a block; and the most elements of a segment that is added together with others. */
#define SEGMENTS_BLOCK 256
#define SEGMENTS_SHORT 32
/* Rows and segments of more than TRANSPOSED_BEST elements try running totals first, if they have at most RUN_BYTES;
 * SEGMENTS_PIECE elements, at most, are summed so at a time. */
#define TRANSPOSED_BEST 8
#define RUN_BYTES       4096
#define SEGMENTS_PIECE  1024
/* Back-off: after k consecutive failures of a fast path - without states, or by running totals - it is skipped for the
 * next k blocks; k <= WAIT_MOST. */
#define WAIT_MOST 64

/* ---- Masks: masked.c ------------------------------------------------------------------------ */

/* Elements and rows of a block, at most, unless MASKED_COLUMNS rows have more elements. */
#define MASKED_BLOCK ((size_t)32 << 10)
#define MASKED_ROWS  ((size_t)8 << 10)
/* Elements of a row, at most; longer rows are left to cpu_rows(). */
#define MASKED_EACH ((size_t)8 << 10)
/* The most and the least rows that are packed together; how many elements ahead each is prefetched; bytes of a
 * task. */
#define MASKED_COLUMNS       ((size_t)64)
#define MASKED_COLUMNS_LEAST ((size_t)8)
#define MASKED_AHEAD         8
#define MASKED_TASK_BYTES    ((size_t)1 << 20)

/* ---- Vectors: vectors.c --------------------------------------------------------------------- */

/* Bytes of rows that are gathered at a time, which stay in the first-level cache; how many rows ahead rows are
 * prefetched; and the most bytes of a row that are prefetched. */
#define VECTORS_TILE        ((size_t)12 << 10)
#define VECTORS_AHEAD       16
#define VECTORS_AHEAD_BYTES ((size_t)1 << 10)
/* Fixed cost of a part: to begin and lower it takes as long as to add this many rows. */
#define VECTORS_PART_WEIGHT 4
/* A part is folded if it has at least this many times the rows that lie side by side in a fold. */
#define VECTORS_FOLDS 4

/* ---- Vectors of groups: scattered.c --------------------------------------------------------- */

/* Conditions for adding rows as they come, measured by bench/shapes.py and over 500 shapes on Zen 5. */
#define SCATTERED_ROW    512  /* most bytes of states that a row touches */
#define SCATTERED_MOST   1024 /* the same where states are at most two elements long */
#define SCATTERED_BYTES  ((size_t)32 << 20)    /* most bytes of states that rows touch: caches */
#define SCATTERED_PLANES (3 * SCATTERED_BYTES) /* most bytes of all planes */
#define SCATTERED_ROWS   16                    /* least rows of a group and share, on average */
#define SCATTERED_STATE  16                    /* most bytes of a column that a row touches ... */
#if defined(TALLY_DEBUG)                       /* so that small tests take these ways, too */
#define SCATTERED_LARGE 1
#define SCATTERED_SHARE 1
#else
#define SCATTERED_LARGE ((size_t)24 << 20) /* ... but for arrays of so many bytes and more */
#define SCATTERED_SHARE ((size_t)1 << 18)  /* least bytes of a worker's share */
#endif
#define SCATTERED_TASKS       64                 /* tasks that lower groups */
#define SCATTERED_BATCH       256                /* most rows that are added at once, ... */
#define SCATTERED_BATCH_BYTES ((size_t)16 << 10) /* ... and most bytes */
#define EACH_AHEAD            8192 /* how far rows are prefetched, in bytes of plane lanes */
#define EACH_STATES_AHEAD     6    /* how far states are prefetched, in rows */

/* ---- Groups: groups.c ----------------------------------------------------------------------- */

/* Ids that are looked at to see whether all may be sorted. */
#define GROUPS_SAMPLES 256

/* The elements of a thread's part, at least. */
#define GROUPS_PART_LEAST ((size_t)1 << 16)
/* Elements between two tests for a stop: a power of two. */
#define GROUPS_STOP_EVERY ((size_t)1 << 18)
/* Ids that are compared at once. */
#define GROUPS_RUN 32
/* Sums of no more groups than FEW_GROUPS stay in the caches: they are added to as the elements come. So are those of
 * more groups, prefetched GROUPS_AHEAD elements ahead, where each thread's sums have GROUPS_MEAN_LEAST elements on
 * average. */
#define FEW_GROUPS        ((size_t)1 << 18)
#define GROUPS_MEAN_LEAST 4
#define GROUPS_AHEAD      16
/* Elements that are tried in a window together; and the most of a task, which bounds the time until a stop is
 * noticed. */
#define GROUPS_CHUNK 1024
#define GROUPS_TASK  ((size_t)1 << 20)

#endif
