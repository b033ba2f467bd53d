/*
 * own_far.c - see own_far.h.
 *
 * The model checks every access before it happens, so that an array's address need not be backed by memory where no buffer
 * lies. The arrays begin far apart, in a part of the address space that Linux gives to nobody unasked.
 */
#include "ladder/own_far.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

uintptr_t own_far_base(unsigned k) {
    return (uintptr_t)(UINT64_C(0x200000000000) + k * UINT64_C(0x080000000000));
}

/* The pages of a window that no earlier window has: windows ascend. */
static size_t pages_of(uintptr_t base, size_t size, uint64_t start, uint64_t count,
                       uintptr_t *from) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (base + start * size) & ~(page - 1);
    const uintptr_t end = (base + (start + count) * size + page - 1) & ~(page - 1);
    if (*from < first) *from = first;
    return end > *from ? end - *from : 0;
}

static void unmap(uintptr_t base, size_t size, const uint64_t *starts, const uint64_t *counts,
                  size_t windows) {
    uintptr_t from = 0;
    for (size_t i = 0; i < windows; i++) {
        const size_t bytes = pages_of(base, size, starts[i], counts[i], &from);
        if (bytes) munmap((void *)from, bytes);
        from += bytes;
    }
}

bool own_far_map(model_device *d, uintptr_t base, size_t size, const uint64_t *starts,
                 const uint64_t *counts, size_t windows, const void *values) {
    uintptr_t from = 0;
    const char *value = values;
    for (size_t i = 0; i < windows; i++) {
        const uintptr_t at = base + starts[i] * size;
        const size_t bytes = pages_of(base, size, starts[i], counts[i], &from);
        if (bytes &&
            mmap((void *)from, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)from) {
            own_far_unmap(d, base, size, starts, counts, i);
            return false;
        }
        from += bytes;
        memcpy((void *)at, value, counts[i] * size);
        value += counts[i] * size;
        if (model_adopt(d, (void *)at, counts[i] * size) != MODEL_OK) {
            own_far_unmap(d, base, size, starts, counts, i + 1);
            return false;
        }
    }
    return true;
}

void own_far_read(uintptr_t base, size_t size, const uint64_t *starts, const uint64_t *counts,
                  size_t windows, void *values) {
    char *value = values;
    for (size_t i = 0; i < windows; i++) {
        memcpy(value, (const void *)(base + starts[i] * size), counts[i] * size);
        value += counts[i] * size;
    }
}

void own_far_unmap(model_device *d, uintptr_t base, size_t size, const uint64_t *starts,
                   const uint64_t *counts, size_t windows) {
    for (size_t i = 0; i < windows; i++)
        model_free(d, (void *)(base + starts[i] * size));
    unmap(base, size, starts, counts, windows);
}
