/*
 * memory.c - available memory: the kernel's estimate, but at most what a container's limit leaves.
 */
#include "common/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

/* Returns the first number that a line of the file has in this format; `other` if none has one. */
static uint64_t number_in(const char *path, const char *format, uint64_t other) {
    uint64_t number = other;
    char line[128];
    FILE *f = fopen(path, "r");
    if (!f) return other;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, format, &number) == 1) break;
    fclose(f);
    return number;
}

/* Returns what the container's limit leaves; without a limit the largest number. The kernel drops cached files that are not in
 * use before it refuses memory. */
static uint64_t container_room(void) {
    const uint64_t limit =
        number_in("/sys/fs/cgroup/memory.max", "%" SCNu64, UINT64_MAX); /* or "max" */
    const uint64_t taken = number_in("/sys/fs/cgroup/memory.current", "%" SCNu64, 0);
    const uint64_t cached = number_in("/sys/fs/cgroup/memory.stat", "inactive_file %" SCNu64, 0);
    const uint64_t used = taken > cached ? taken - cached : 0;
    return limit == UINT64_MAX ? limit : limit > used ? limit - used : 0;
}

uint64_t memory_available(void) {
    const uint64_t kib = number_in("/proc/meminfo", "MemAvailable: %" SCNu64, UINT64_MAX >> 10);
    const uint64_t room = container_room();
    return kib << 10 < room ? kib << 10 : room;
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
