/*
 * memory.c - what memory is free, as the kernel estimates it, and within what a container is allowed.
 */
#include "common/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

static uint64_t kernel_estimate(void) {
    uint64_t kib = UINT64_MAX >> 10;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "r");
    if (!f) return UINT64_MAX;
    while (fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %" SCNu64, &kib) != 1)
        ;
    fclose(f);
    return kib << 10;
}

static uint64_t container_limit(void) {
    uint64_t bytes = UINT64_MAX;
    FILE *f = fopen("/sys/fs/cgroup/memory.max", "r");
    if (!f) return bytes;
    if (fscanf(f, "%" SCNu64, &bytes) != 1) bytes = UINT64_MAX; /* "max" */
    fclose(f);
    return bytes;
}

uint64_t memory_available(void) {
    uint64_t free = kernel_estimate(), limit = container_limit();
    return free < limit ? free : limit;
}

void *memory_get(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

void memory_release(void *memory, size_t bytes) {
    if (memory) munmap(memory, bytes);
}
