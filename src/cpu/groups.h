/*
 * cpu/groups.h - reductions by group: elements are brought into the order of their ids, unless they come so, and then
 * are segments. Sums of few groups are added up without that.
 */
#ifndef TALLY_CPU_GROUPS_H
#define TALLY_CPU_GROUPS_H

#include "cpu/columns.h"
#include "cpu/cpu.h"

/* Reduces by group (s->cut is TALLY_GROUPS), to s->out; notes in *absence the first result that does not exist.
 * TALLY_EINVAL: an id is wrong. */
tally_status cpu_groups(struct cpu_device *d, const struct shaped *s, struct absence *absence);

/* Sets out->start[], and out->position[] to the indices of the elements along the axis, in the order of their groups;
 * all vectors share this order. position is NULL if the elements lie in this order already. The caller frees *out
 * with sorted_free(). TALLY_EINVAL: an id is wrong. */
tally_status cpu_sort_positions(struct cpu_device *d, const struct shaped *s, struct sorted *out);

/* Returns whether the first ids, and some that are spread over all, never fall. It guesses: others may. */
int cpu_ids_look_sorted(const struct shaped *s);

/* Writes n ids, from number `first` on, as 32-bit ids. Ids below 0 or from 2^31 on become 2^31 or more. */
void cpu_narrow_ids(const struct shaped *s, const struct column_kernels *k, size_t first, size_t n,
                    uint32_t *out);

#endif
