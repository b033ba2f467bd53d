/*
 * cpu/cpu.h - what the files of the CPU device share.
 */
#ifndef TALLY_CPU_CPU_H
#define TALLY_CPU_CPU_H

#include "device/device.h"

struct cpu_kernels;
struct pool;
struct slot;

struct cpu_device {
    tally_device base;
    const struct cpu_kernels *kernels;
    unsigned threads;
    struct pool *pool; /* NULL where threads is 1 */
    struct slot *
        slots; /* one a thread, owned by the call that has claimed the pool; NULL where threads is 1 */
};

/* Reductions in parts: shaped() and sort() of struct device_kind (shaped.c, groups.c). */
tally_status cpu_shaped(tally_device *device, const struct shaped *s);
/* Reduces along axes or by segment; offsets have been checked. Notes in *absence the first result
 * that does not exist. */
tally_status cpu_parts(struct cpu_device *d, const struct shaped *s, struct absence *absence);
tally_status cpu_sort(tally_device *device, const struct shaped *s, struct sorted *out);

#endif
