/*
 * kernel_path.h - paths (paths.h) of kernels: each instruction set has its own, which a machine without it cannot take.
 */
#ifndef TALLY_CPU_KERNEL_PATH_H
#define TALLY_CPU_KERNEL_PATH_H

#include "base/paths.h"

/* Counts the path of this place in a kernel. */
#define KERNEL_PATH(name) TALLY_PATH_UNLESS(name, cpu_isa_is_absent, NULL)
/* Counts the path of this place in a template. If `condition`, a constant, is 0, no call can take the path with these
 * parameters of the template, and `why` is the reason. */
#define KERNEL_PATH_IF(condition, name, why)                                                       \
    TALLY_PATH_UNLESS(name, cpu_isa_is_absent, (condition) ? NULL : (why))

#if defined(TALLY_DEBUG)
/* Returns why no call takes a path of the table's instruction set, or NULL if this machine has the set. */
const char *cpu_isa_is_absent(const struct path_table *t, const unsigned at[PATH_AXES]);
#endif

#endif
