/*
 * hash.h - two hash functions: a checksum of saved states and saved groups, and a hash of cache keys.
 */
#ifndef TALLY_HASH_H
#define TALLY_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the FNV-1a hash of bytes[0..size): any single changed byte changes it. */
static inline uint64_t hash(const unsigned char *bytes, size_t size) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Returns the hash of a cache key. `size` is a multiple of 8. Padding bytes are hashed, too, so the caller must clear
 * them. */
static inline uint64_t hash_words(const void *key, size_t size) {
    uint64_t h = 0;
    for (size_t at = 0; at + sizeof h <= size; at += sizeof h) {
        uint64_t word;
        memcpy(&word, (const char *)key + at, sizeof word);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h;
}

#endif
