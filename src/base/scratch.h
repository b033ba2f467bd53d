/*
 * scratch.h - scratch memory: several arrays in one allocation, each of which knows its extent.
 *
 * A layout is one function that takes its arrays from a struct scratch, one after another. It runs twice: before
 * scratch_create() it measures, afterwards it places. So the size of the allocation and the addresses in it come from
 * the same text:
 *
 *     struct scratch scratch = {0};
 *     lay_out(&arrays, &scratch);              measures
 *     if (!scratch_create(&scratch, 0)) ...    allocates
 *     lay_out(&arrays, &scratch);              places
 *     ...
 *     scratch_destroy(&scratch);
 *
 * Builds that define TALLY_DEBUG put a guard before the first array and behind each one. AddressSanitizer reports an
 * access to a guard at once; without it scratch_destroy() ends the program if a guard has changed. A kernel that
 * writes an array as a whole asks room_for() for it, which asserts that the kernel's extent fits.
 */
#ifndef TALLY_SCRATCH_H
#define TALLY_SCRATCH_H

#include "base/invariant.h"

#include <stddef.h>

/* Arrays begin at multiples of this many bytes, a line of the caches and the widest vector. */
#define SCRATCH_LINE 64
/* The most arrays of one layout. That of masked.c has the most: one for each value of a problem, and a few more. */
#define SCRATCH_ROOMS 48

/* One array. */
struct room {
    char *at;
    size_t bytes;
};

/* A layout. If all members are 0, it measures. */
struct scratch {
    char *memory; /* NULL before scratch_create() */
    size_t used;  /* bytes of the arrays, and of their guards, that were taken so far */
    size_t size;  /* bytes of the allocation */
#if defined(TALLY_DEBUG)
    struct {
        size_t from, to; /* bytes of memory */
    } guard[SCRATCH_ROOMS + 1];
    unsigned guards;
#endif
};

/* Takes an array of `count` elements of `size` bytes each. Its address is NULL while the layout measures. */
struct room scratch_take(struct scratch *s, size_t count, size_t size);

/* Takes an array as scratch_take() does, but returns its address only. */
static inline void *scratch_array(struct scratch *s, size_t count, size_t size) {
    return scratch_take(s, count, size).at;
}

/* Allocates what the layout measured, cleared to 0 if `clear` is not 0, and starts the layout anew. Returns 0 if there is
 * no memory. */
int scratch_create(struct scratch *s, int clear);

/* Checks the guards and frees the memory. Scratch that was never created is allowed. */
void scratch_destroy(struct scratch *s);

/* Returns the address of an array whose first `bytes` bytes the caller uses. Needs bytes <= r.bytes. */
static inline void *room_for(struct room r, size_t bytes) {
    TALLY_ASSERT(bytes <= r.bytes);
    return r.at;
}

#endif
