/*
 * rungs.h - the one table of the ladder's kernels, which every host reads.
 *
 *   LADDER_RUNGS(X)   X(ID, name, kernel, file, INPUT, EXTRA, pairs, shared, idea, waste, mends)
 *       name    as the command line and the reports call it
 *       kernel  the function; not `shuffle` but `shuffled`, since OpenCL has a shuffle() of its own
 *       INPUT   COPY      reduces its input in place: accumulators that load_elements() has made
 *               ELEMENTS  reads elements and never writes them
 *       EXTRA   NOTHING   (input, n, partials, total)
 *               FACTOR    ... and a u32, the coarsening factor
 *               BOARD     ... and 1 + grid words of scratch, 0 at the start and 0 again at the end
 *       pairs   a block's segment is 2 * blockDim * pairs elements; PAIRS_FACTOR: `pairs` is the
 *               coarsening factor; PAIRS_GRID: the grid is the host's choice, whatever the length
 *       shared  accumulators in shared memory that a block uses, as an expression of B = blockDim
 *               (a kernel reserves as many as for B = BLOCK_MAX)
 *       idea    what is new against the rung before
 *       waste   what it still wastes
 *       mends   the rung that mends that; "tally" on the last, which is no kernel of this table
 *
 * Every kernel takes
 *       input     the elements, or the working copy; starts at a multiple of 16 bytes
 *       n         the number of elements, a u64; may be 0
 *       partials  room for an accumulator of each block
 *       total     NULL: block b writes partials[b]. Otherwise one word that holds to_word(neutral())
 *                 at the start; every block combines its result into it and writes no partial.
 *       blockDim  a power of two, 1 to 1024. The grid is at least 1, also for n = 0.
 * A single-pass grid behaves as if it were one block: partials[0] or the total is the result.
 *
 * To finish by relaunch, run the kernel again over the partials: the instance whose element type is
 * the accumulators' type. It reduces in place if the rung does.
 */
#ifndef TALLY_LADDER_RUNGS_H
#define TALLY_LADDER_RUNGS_H

#define PAIRS_FACTOR 0
#define PAIRS_GRID   (-1)

#define LADDER_RUNGS(X)                                                                            \
    X(INTERLEAVED_MODULO, "interleaved-modulo", interleaved_modulo, "interleaved_modulo.cu", COPY, \
      NOTHING, 1, 0, "a tree in global memory, in place; every stride-th thread is at work",       \
      "threads at work are spread thin: every warp is paid for until the stride passes 32",        \
      "interleaved-index")                                                                         \
    X(INTERLEAVED_MASK, "interleaved-mask", interleaved_mask, "interleaved_mask.cu", COPY,         \
      NOTHING, 1, 0, "the same threads are at work; a mask finds them in place of a division",     \
      "threads at work are spread thin, as before", "interleaved-index")                           \
    X(INTERLEAVED_INDEX, "interleaved-index", interleaved_index, "interleaved_index.cu", COPY,     \
      NOTHING, 1, 0, "the same tree, its pairs taken by the first threads",                        \
      "a warp's elements lie ever further apart, so that each costs a memory line of its own",     \
      "contiguous")                                                                                \
    X(CONTIGUOUS, "contiguous", contiguous, "contiguous.cu", COPY, NOTHING, 1, 0,                  \
      "strides that shrink: a warp's elements are neighbours",                                     \
      "every step reads and writes global memory", "shared-contiguous")                            \
    X(SHARED_MODULO, "shared-modulo", shared_modulo, "shared_modulo.cu", ELEMENTS, NOTHING, 1,     \
      2 * B, "elements are copied to shared memory and the tree runs there",                       \
      "idle threads in every warp, and several threads queue for one bank of shared memory",       \
      "shared-contiguous")                                                                         \
    X(SHARED_CONTIGUOUS, "shared-contiguous", shared_contiguous, "shared_contiguous.cu", ELEMENTS, \
      NOTHING, 1, 2 * B, "shared memory, with strides that shrink",                                \
      "both values of a pair go through shared memory only to be added", "shared")                 \
    X(SHARED, "shared", shared, "shared.cu", ELEMENTS, NOTHING, 1, B,                              \
      "the first addition happens while loading",                                                  \
      "a whole tree, with a barrier a step and most threads idle, for two elements a thread",      \
      "coarsened")                                                                                 \
    X(COARSENED, "coarsened", coarsened, "coarsened.cu", ELEMENTS, FACTOR, PAIRS_FACTOR, B,        \
      "each thread first adds 2 * factor elements by itself",                                      \
      "the number of blocks still grows with the array, and each has its tree and its partial",    \
      "grid-stride")                                                                               \
    X(GRID_STRIDE, "grid-stride", grid_stride, "grid_stride.cu", ELEMENTS, NOTHING, PAIRS_GRID, B, \
      "a grid sized to the device walks the array together",                                       \
      "each thread waits for one small load before it asks for the next", "vectorized")            \
    X(VECTORIZED, "vectorized", vectorized, "vectorized.cu", ELEMENTS, NOTHING, PAIRS_GRID, B,     \
      "16-byte loads, four of them under way",                                                     \
      "the tree goes through shared memory, with a barrier a step", "shuffle")                     \
    X(SHUFFLE, "shuffle", shuffled, "shuffle.cu", ELEMENTS, NOTHING, PAIRS_GRID, (B + 31) / 32,    \
      "the tree runs in registers, warp by warp; one barrier a block",                             \
      "the partials need a second launch, an atomic or the host", "single-pass")                   \
    X(SINGLE_PASS, "single-pass", single_pass, "single_pass.cu", ELEMENTS, BOARD, PAIRS_GRID,      \
      (B + 31) / 32, "the last block to finish combines the partials: one launch",                 \
      "its floating sums still depend on the order of the additions", "tally")

#endif
