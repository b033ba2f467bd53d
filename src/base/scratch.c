/* scratch.c - see scratch.h. */
#include "base/scratch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#if defined(HAS_ASAN)
#include <sanitizer/asan_interface.h>
#endif

#if defined(TALLY_DEBUG)

#define GUARD       SCRATCH_LINE /* the least bytes between two arrays */
#define GUARD_VALUE 0xa5

/* Takes a guard from the layout, from byte `from` of the memory on, and poisons it once there is memory. */
static void take_guard(struct scratch *s, size_t from) {
    s->used = (from + GUARD + SCRATCH_LINE - 1) / SCRATCH_LINE * SCRATCH_LINE;
    if (!s->memory) return;
    TALLY_ASSERT(s->guards <= SCRATCH_ROOMS);
    s->guard[s->guards].from = from;
    s->guard[s->guards].to = s->used;
    s->guards++;
#if defined(HAS_ASAN)
    __asan_poison_memory_region(s->memory + from, s->used - from);
#else
    memset(s->memory + from, GUARD_VALUE, s->used - from);
#endif
}

/* Asserts that no byte of a guard has changed. */
static void check_guards(const struct scratch *s) {
    for (unsigned k = 0; k < s->guards; k++) {
        const size_t bytes = s->guard[k].to - s->guard[k].from;
        const unsigned char *at = (const unsigned char *)s->memory + s->guard[k].from;
#if defined(HAS_ASAN)
        __asan_unpoison_memory_region(at, bytes);
#else
        for (size_t i = 0; i < bytes; i++)
            TALLY_ASSERT(at[i] == GUARD_VALUE);
#endif
    }
}

#endif

struct room scratch_take(struct scratch *s, size_t count, size_t size) {
    const struct room none = {NULL, 0};
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2 ||
        s->used > SIZE_MAX / 4) {
        s->used = SIZE_MAX / 2; /* more than there can be: scratch_create() fails */
        return none;
    }
#if defined(TALLY_DEBUG)
    if (s->used == 0) take_guard(s, 0);
#endif
    const struct room r = {s->memory ? s->memory + s->used : NULL, bytes};
    s->used += bytes;
#if defined(TALLY_DEBUG)
    take_guard(s, s->used);
#else
    s->used = (s->used + SCRATCH_LINE - 1) / SCRATCH_LINE * SCRATCH_LINE;
#endif
    TALLY_ASSERT(!s->memory || s->used <= s->size);
    return r;
}

/* The size of Linux's huge pages on x86-64, in bytes. The first access to memory in huge pages takes a tenth of the
 * time. */
#define HUGE_PAGE ((size_t)2 << 20)

/* Returns `bytes` bytes, aligned to a line; of huge pages where two of them or more fit. NULL if there is no memory. */
static char *allocate(size_t bytes) {
#if defined(MADV_HUGEPAGE)
    if (bytes >= 2 * HUGE_PAGE) {
        const size_t pages = (bytes + HUGE_PAGE - 1) / HUGE_PAGE;
        char *memory = aligned_alloc(HUGE_PAGE, pages * HUGE_PAGE);
        if (memory) (void)madvise(memory, bytes, MADV_HUGEPAGE); /* a hint: failure is harmless */
        return memory;
    }
#endif
    return aligned_alloc(SCRATCH_LINE, bytes);
}

int scratch_create(struct scratch *s, int clear) {
    s->size = s->used > 0 ? s->used : SCRATCH_LINE;
    s->used = 0;
    s->memory = s->size < SIZE_MAX / 4 ? allocate(s->size) : NULL;
    if (!s->memory) return 0;
    if (clear) memset(s->memory, 0, s->size);
    return 1;
}

void scratch_destroy(struct scratch *s) {
#if defined(TALLY_DEBUG)
    if (s->memory) check_guards(s);
#endif
    free(s->memory);
    s->memory = NULL;
}
