/*
 * cpu/groups.h - reductions by group: elements are brought into the order of their ids and then are segments,
 * unless they come so.
 */
#ifndef TALLY_CPU_GROUPS_H
#define TALLY_CPU_GROUPS_H

#include "cpu/cpu.h"

tally_status cpu_groups(struct cpu_device *d, const struct shaped *s, struct absence *absence);

#endif
