/*
 * record.h - the records that kernels leave in a device's memory when they are not asked for a
 * value (kernels/records.h), and how they become states of monoids.
 */
#ifndef TALLY_GPU_RECORD_H
#define TALLY_GPU_RECORD_H

#include "problem/monoid.h"

/* Returns the words of the record of a monoid; every monoid but MONOID_TREE has one. */
size_t record_words(const struct problem *p, enum monoid_id monoid);

/* Merges the record of a monoid into the state; its indices count from where those of *into do. */
void record_merge(const struct problem *p, enum monoid_id monoid, const uint64_t *word,
                  struct state *into);

#endif
