/*
 * cpu/vectors.h - segments and groups of vectors: results side by side, whose elements lie side by side, too.
 */
#ifndef TALLY_CPU_VECTORS_H
#define TALLY_CPU_VECTORS_H

#include "cpu/cpu.h"

/* Returns whether cpu_vectors() suits a shape of segments or groups: neighbouring vectors lie nearer in memory than
 * neighbouring elements of one. */
int cpu_takes_vectors(const struct shaped *s);

/* Reduces a shape for which cpu_takes_vectors(); its offsets have been checked, and it has vectors. Notes in *absence
 * the first result that does not exist. TALLY_EINVAL: an id is wrong. */
tally_status cpu_vectors(struct cpu_device *d, const struct shaped *s, struct absence *absence);

#endif
