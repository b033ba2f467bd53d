/*
 * ladder.h - the ladder's kernels for the model, and their arithmetic for the host.
 *
 * All rungs are compiled for every type and operator. The host's side of the same arithmetic - what
 * to start an atomic's total with, how to combine partials - is compiled from the very same
 * operators.h, so that it serves the OpenCL and CUDA hosts as well.
 */
#ifndef TALLY_MODEL_LADDER_H
#define TALLY_MODEL_LADDER_H

#include "kernels/ladder/rungs.h"
#include "model/model.h"
#include "tally.h"

#define LADDER_ID(ID, ...) LADDER_##ID,
typedef enum ladder_rung { LADDER_RUNGS(LADDER_ID) LADDER_RUNG_COUNT } ladder_rung;
#undef LADDER_ID

typedef enum ladder_input { LADDER_COPY, LADDER_ELEMENTS } ladder_input;
typedef enum ladder_extra { LADDER_NOTHING, LADDER_FACTOR, LADDER_BOARD } ladder_extra;

/* A line of LADDER_RUNGS. */
typedef struct ladder_rung_info {
    const char *name, *kernel; /* "shared-modulo", "shared_modulo" */
    const char *file;          /* "shared_modulo.cu" */
    ladder_input input;
    ladder_extra extra;
    int pairs; /* or PAIRS_FACTOR, PAIRS_GRID */
    const char *idea, *waste, *mends;
} ladder_rung_info;

const ladder_rung_info *ladder_rung_of(ladder_rung rung); /* NULL where there is none */
const ladder_rung_info *ladder_rung_named(const char *name, ladder_rung *out); /* out may be NULL */
/* Accumulators in shared memory that a block of so many threads uses. */
unsigned ladder_shared(ladder_rung rung, unsigned block);
/* How many blocks cover n elements, at least 1. `factor` is the coarsening factor, `processors` the
 * device's multiprocessors, for each of which grid-sized rungs get at most 4 blocks. At least two
 * elements a thread, so that relaunching comes to an end. 0: too many for a grid. */
unsigned ladder_grid(ladder_rung rung, uint64_t n, unsigned block, unsigned factor,
                     unsigned processors);

/* The kernels for one element type and operator, and the same arithmetic on the host. Accumulators
 * and words are passed by their address, which must be aligned. */
typedef struct ladder_instance {
    tally_type type;
    tally_op op;
    tally_type accumulator_type; /* the instance for this type goes on with partials */
    unsigned element_size, accumulator_size, word_size;
    const model_kernel *rungs[LADDER_RUNG_COUNT];
    const model_kernel *load; /* load_elements(x, n, copy) */
    void (*neutral)(void *accumulator);
    void (*fetch)(void *accumulator, const void *element);
    void (*combine)(void *accumulator, const void *more); /* accumulator = accumulator op more */
    void (*to_word)(void *word, const void *accumulator);
    void (*from_word)(void *accumulator, const void *word);
} ladder_instance;

/* NULL where there is no such type or operator. */
const ladder_instance *ladder_instance_of(tally_type type, tally_op op);
/* A kernel of any instance by rung; NULL where there is none. */
const model_kernel *model_kernel_of(ladder_rung rung, tally_type type, tally_op op);

/* What an accumulator over n elements says in the type that tally_reduce() returns: a f16 or bf16 sum
 * is rounded here, a NaN is the canonical one, and nothing is +0. */
void ladder_result(const ladder_instance *instance, const void *accumulator, uint64_t n,
                   tally_value *out);

#endif
