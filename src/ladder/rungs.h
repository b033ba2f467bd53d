/*
 * rungs.h - the table of the ladder's kernels (kernels/ladder/rungs.h), row by row.
 */
#ifndef TALLY_LADDER_RUNGS_ROWS_H
#define TALLY_LADDER_RUNGS_ROWS_H

#include "kernels/ladder/rungs.h"

#include <stdint.h>

#define LADDER_ID(ID, ...) LADDER_##ID,
typedef enum ladder_rung { LADDER_RUNGS(LADDER_ID) LADDER_RUNG_COUNT } ladder_rung;
#undef LADDER_ID

typedef enum ladder_input { LADDER_COPY, LADDER_ELEMENTS } ladder_input;
typedef enum ladder_extra { LADDER_NOTHING, LADDER_FACTOR, LADDER_BOARD } ladder_extra;

/* A row of LADDER_RUNGS; the comment of kernels/ladder/rungs.h explains its members. */
typedef struct ladder_rung_info {
    const char *name, *kernel; /* "shared-modulo", "shared_modulo" */
    const char *file;          /* "shared_modulo.cu" */
    ladder_input input;
    ladder_extra extra;
    int pairs; /* pairs of elements that a thread takes; or PAIRS_FACTOR, PAIRS_GRID */
    const char *idea, *waste, *mends;
} ladder_rung_info;

const ladder_rung_info *ladder_rung_of(ladder_rung rung); /* NULL where there is none */
const ladder_rung_info *ladder_rung_named(const char *name, ladder_rung *out); /* out may be NULL */
/* Returns how many accumulators a block of `block` threads keeps in shared memory. */
unsigned ladder_shared(ladder_rung rung, unsigned block);
/* Returns how many blocks cover n elements, at least 1; 0 where they are more than a grid may have.
 * `factor` is the coarsening factor. `processors` is the number of the device's multiprocessors, for each
 * of which grid-sized rungs get at most 4 blocks. A thread gets at least two elements, so that relaunching
 * comes to an end. */
unsigned ladder_grid(ladder_rung rung, uint64_t n, unsigned block, unsigned factor,
                     unsigned processors);

#endif
