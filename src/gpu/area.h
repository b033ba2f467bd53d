/*
 * area.h - the layout of a buffer of the device's memory that holds several arrays.
 *
 * A layout is one function that takes its arrays from a struct area, one after another, in words of 8 bytes. Its end is
 * the size of the buffer, so sizes and places come from the same text.
 *
 * On a machine that checks each access (struct gpu_api, guard()), AREA_GUARD words that no kernel may touch stand behind
 * each array: a kernel that leaves an array is stopped there, though it stays within the buffer. Other machines have no
 * guards.
 */
#ifndef TALLY_GPU_AREA_H
#define TALLY_GPU_AREA_H

#include "base/invariant.h"
#include "gpu/gpu.h"

/* Words of a guard: a line of 128 bytes, so that guards do not change how arrays are aligned to lines. */
#define AREA_GUARD 16
/* Most guards of an area: parts_layout.c has up to 17, whole.c one for each of its launches and of a tree's levels. */
#define AREA_GUARDS 32

struct area {
    const struct gpu_api *api;
    uint64_t end; /* words that were taken so far */
    unsigned guards;
    struct gpu_guard guard[AREA_GUARDS];
};

/* Begins a layout for this machine; a->guard[] needs no value. */
static inline void area_begin(struct area *a, const struct gpu_api *api) {
    a->api = api;
    a->end = 0;
    a->guards = 0;
}

/* Lets no kernel touch bytes [from, to), on a machine with guards. */
static inline void area_forbid(struct area *a, uint64_t from, uint64_t to) {
    if (!a->api->guard || from == to) return;
    TALLY_ASSERT(a->guards < AREA_GUARDS);
    a->guard[a->guards++] = (struct gpu_guard){(size_t)from, (size_t)to};
}

/* Takes an array of `bytes` bytes, and a guard behind it unless there are none. Returns its first
 * word. */
static inline uint64_t area_take_bytes(struct area *a, uint64_t bytes) {
    const uint64_t at = a->end;
    a->end += (bytes + 7) / 8;
    if (bytes > 0 && a->api->guard) {
        a->end += AREA_GUARD;
        area_forbid(a, 8 * at + bytes, 8 * a->end);
    }
    return at;
}

static inline uint64_t area_take(struct area *a, uint64_t words) {
    return area_take_bytes(a, 8 * words);
}

/* Does the same for an array that begins at a multiple of 16 bytes. */
static inline uint64_t area_take_pairs(struct area *a, uint64_t words) {
    a->end += a->end % 2;
    return area_take(a, words);
}

/* Makes the guards of this layout those of a buffer, in place of any others. */
static inline void area_guard(const struct area *a, struct gpu *gpu, struct gpu_memory *buffer) {
    if (a->api->guard) a->api->guard(gpu, buffer, a->guard, a->guards);
}

#endif
