/*
 * hash.h - the hash that ends saved states and saved groups: it tells damaged bytes from sound ones.
 */
#ifndef TALLY_HASH_H
#define TALLY_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Returns the FNV-1a hash of bytes[0..size): any single changed byte changes it. */
static inline uint64_t hash(const unsigned char *bytes, size_t size) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

#endif
