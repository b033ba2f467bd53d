/*
 * arithmetic.h - the arithmetic of the ladder's kernels on the host.
 *
 * The build compiles it from the kernels' operators.h, for every type and operator. So the host starts an atomic's
 * total with the kernels' neutral value, and combines partial results as the kernels do.
 */
#ifndef TALLY_LADDER_ARITHMETIC_H
#define TALLY_LADDER_ARITHMETIC_H

#include "tally.h"

#include <stdint.h>

/* Elements, accumulators and words are passed by their addresses, which must be aligned. */
typedef struct ladder_arithmetic {
    tally_type type;
    tally_op op;
    tally_type accumulator_type; /* of partial results, which a relaunch takes as elements */
    unsigned element_size, accumulator_size, word_size;
    void (*neutral)(void *accumulator);
    void (*fetch)(void *accumulator, const void *element);
    void (*combine)(void *accumulator, const void *more); /* accumulator = accumulator op more */
    void (*to_word)(void *word, const void *accumulator);
    void (*from_word)(void *accumulator, const void *word);
    /* Combines x[0..n) one after another, in a loop. */
    void (*reduce)(const void *x, uint64_t n, void *accumulator);
} ladder_arithmetic;

/* Returns NULL where there is no such type or operator. */
const ladder_arithmetic *ladder_arithmetic_of(tally_type type, tally_op op);

/* Turns the accumulator over n elements into a value of the type that tally_reduce() returns. A sum or
 * product of f16 or bf16 is rounded to its type here; a NaN becomes the canonical one; the sum of nothing
 * is +0. */
void ladder_result(const ladder_arithmetic *arithmetic, const void *accumulator, uint64_t n,
                   tally_value *out);

/* Returns |x[0]| + |x[1]| + ... in f64, for a floating type. */
double ladder_magnitude(tally_type type, const void *x, uint64_t n);

#endif
