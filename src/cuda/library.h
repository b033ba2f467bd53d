/*
 * library.h - a shared library's entry points, by name, into a struct of function pointers.
 */
#ifndef TALLY_CUDA_LIBRARY_H
#define TALLY_CUDA_LIBRARY_H

#include <stddef.h>

struct entry {
    const char *symbol;
    size_t offset; /* of its pointer in the struct */
};

/* Fills the function pointers of the struct at `calls` from an open library. Returns NULL, or the first
 * symbol that the library lacks; what comes before it has been filled. */
const char *library_fill(void *library, const struct entry *entries, size_t count, void *calls);

#endif
