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

/* Returns how many bytes of window i's pages belong to no earlier window. *from is the end of the earlier windows'
 * pages; it is moved up to the first page of window i if that lies behind it. */
static size_t pages_of(const struct own_windows *w, size_t i, uintptr_t *from) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t at = w->base + w->starts[i] * w->size;
    const uintptr_t first = at & ~(page - 1);
    const uintptr_t end = (at + w->counts[i] * w->size + page - 1) & ~(page - 1);
    if (*from < first) *from = first;
    return end > *from ? end - *from : 0;
}

/* Unmaps the first `windows` windows. */
static void unmap(model_device *d, const struct own_windows *w, size_t windows) {
    uintptr_t from = 0;
    for (size_t i = 0; i < windows; i++)
        model_free(d, (void *)(w->base + w->starts[i] * w->size));
    for (size_t i = 0; i < windows; i++) {
        const size_t bytes = pages_of(w, i, &from);
        if (bytes) munmap((void *)from, bytes);
        from += bytes;
    }
}

bool own_far_map(model_device *d, const struct own_windows *w, const void *values) {
    uintptr_t from = 0;
    const char *value = values;
    for (size_t i = 0; i < w->windows; i++) {
        void *at = (void *)(w->base + w->starts[i] * w->size);
        const size_t bytes = w->counts[i] * w->size, pages = pages_of(w, i, &from);
        if (pages &&
            mmap((void *)from, pages, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)from) {
            unmap(d, w, i);
            return false;
        }
        from += pages;
        memcpy(at, value, bytes);
        value += bytes;
        if (model_adopt(d, at, bytes) != MODEL_OK) {
            unmap(d, w, i + 1);
            return false;
        }
    }
    return true;
}

void own_far_read(const struct own_windows *w, void *values) {
    char *value = values;
    for (size_t i = 0; i < w->windows; i++) {
        memcpy(value, (const void *)(w->base + w->starts[i] * w->size), w->counts[i] * w->size);
        value += w->counts[i] * w->size;
    }
}

void own_far_unmap(model_device *d, const struct own_windows *w) {
    unmap(d, w, w->windows);
}

/* ---- Pages that come as they are touched ---- */

/* The page size, in bytes, that is assumed. Where the system's pages are larger, mmap() refuses an address that is no
 * multiple of its page size, and the trial gives no result. */
enum { PAGE_BYTES = 4096 };

/* Returns the array that an address lies in; OWN_FAR_ARRAYS for none. */
static unsigned array_of(const struct own_pages *p, uintptr_t address) {
    unsigned k = 0;
    while (k < OWN_FAR_ARRAYS &&
           (address < own_far_base(k) || address - own_far_base(k) >= p->bytes[k]))
        k++;
    return k;
}

bool own_pages_touch(void *pages, uintptr_t address) {
    struct own_pages *p = pages;
    const unsigned k = array_of(p, address);
    if (k == OWN_FAR_ARRAYS) return false;
    if (p->count == OWN_FAR_PAGES) return p->is_full = true, false;
    const uintptr_t page = address & ~(uintptr_t)(PAGE_BYTES - 1);
    const uintptr_t end = own_far_base(k) + p->bytes[k];
    const size_t bytes = end - page < PAGE_BYTES ? end - page : PAGE_BYTES;
    if (mmap((void *)page, PAGE_BYTES, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (void *)page)
        return false;
    if (model_adopt(p->device, (void *)page, bytes) != MODEL_OK) {
        munmap((void *)page, PAGE_BYTES);
        return false;
    }
    p->pages[p->count++] = page;
    return true;
}

bool own_pages_are_near(uintptr_t address) {
    const uintptr_t around = (uintptr_t)1 << 42;
    return address >= own_far_base(0) - around && address < own_far_base(OWN_FAR_ARRAYS);
}

uint64_t own_pages_read(const struct own_pages *p, unsigned k) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->count; i++)
        if (array_of(p, p->pages[i]) == k)
            bytes += model_bytes_read(p->device, (void *)p->pages[i]);
    return bytes;
}

void own_pages_forget(struct own_pages *p) {
    for (size_t i = p->count; i-- > 0;) { /* mostly the last buffer, as they come in their order */
        model_free(p->device, (void *)p->pages[i]);
        munmap((void *)p->pages[i], PAGE_BYTES);
    }
    p->count = 0;
}
