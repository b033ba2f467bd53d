/*
 * record.h - what kernels leave in a device's memory when they are not asked for a value
 * (kernels/records.h), as the engine knows it: a struct partial.
 */
#ifndef TALLY_GPU_RECORD_H
#define TALLY_GPU_RECORD_H

#include "partial.h"

#define RECORD_MAX (SUPERACC_LIMBS + 1) /* words, of an exact floating sum's */

/* Words of a record; every method but METHOD_TREE. */
size_t record_words(const struct reduction *r);

/* The record of n elements as a partial. */
void record_decode(const struct reduction *r, const uint64_t *word, size_t n, struct partial *p);

#endif
