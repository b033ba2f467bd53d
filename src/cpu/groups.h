/*
 * cpu/groups.h - reductions by group: elements are brought into the order of their ids, unless they come so, and then
 * are segments. Sums of few groups are added up without that.
 */
#ifndef TALLY_CPU_GROUPS_H
#define TALLY_CPU_GROUPS_H

#include "cpu/cpu.h"

/* Reduces by group (s->cut is TALLY_GROUPS), to s->out; notes in *absence the first result that does not exist.
 * TALLY_EINVAL: an id is wrong. */
tally_status cpu_groups(struct cpu_device *d, const struct shaped *s, struct absence *absence);

#endif
