/*
 * bench_data.h - arrays to measure with.
 */
#ifndef TALLY_CLI_BENCH_DATA_H
#define TALLY_CLI_BENCH_DATA_H

#include "tally.h"

#include <stdbool.h>
#include <stdint.h>

/* How floating elements are spread. Integers are small, so that their sum and product fit; with
 * BENCH_WILD, and an operator that cannot overflow, they are random bits. For any and all the elements
 * are such that all have to be looked at: zeros for any, none for all. */
enum bench_data {
    BENCH_UNIFORM,    /* [0, 1); for a product -1 and 1, which keep it finite */
    BENCH_NORMAL,     /* mean 0, deviation 1, nearly normal */
    BENCH_LOGUNIFORM, /* +-2^u, u uniform in [-20, 20); in [-10, 10) for f16 */
    BENCH_WILD,       /* random bits that are neither NaN nor infinite */
    BENCH_DIGITS      /* whole numbers from 1 to 9, easy to read; --data does not know it */
};

#define BENCH_DATA_NAMES "uniform normal loguniform wild"

const char *bench_data_name(enum bench_data data);
bool bench_data_parse(const char *name, enum bench_data *out);

/* Returns the i-th of a sequence of random words. */
uint64_t bench_random(uint64_t i);
/* Fills x[0..n): always with the same elements for the same arguments. */
void bench_data_fill(enum bench_data data, tally_op op, tally_type type, void *x, size_t n);

#endif
