/*
 * sequential.h - the lowest rung: one CPU thread combines one element after another.
 */
#ifndef TALLY_LADDER_SEQUENTIAL_H
#define TALLY_LADDER_SEQUENTIAL_H

#include "tally.h"

#include <stdint.h>

/* Combines the neutral element with x[0], x[1], ... in order, and sets *out. The accumulator is the kernels' own:
 * 64-bit integers, f32 for sums and products of f16 and bf16, else the element type. */
void sequential_reduce(tally_op op, tally_type type, const void *x, uint64_t n, tally_value *out);

/* Returns |x[0]| + |x[1]| + ... in f64, for a floating type. */
double sequential_magnitude(tally_type type, const void *x, uint64_t n);

#endif
