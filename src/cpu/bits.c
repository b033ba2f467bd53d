/*
 * bits.c - and, or, xor of one instruction set, over the bits of elements of any type.
 *
 * What an element means does not matter here, only its size.
 */
#include "cpu/vector.h"

/* Folds two vectors at a time, then the elements that are left one by one. */
#define BITS_FOLD(width, type, op, update)                                                         \
    void ISA_NAME(op##_##width)(const void *array, size_t n, void *state) {                        \
        KERNEL_PATH("");                                                                           \
        typedef VECTOR_OF(type) vector;                                                            \
        const unaligned_u##width *x = array;                                                       \
        type all = (type) * (uint64_t *)state;                                                     \
        vector first = (vector){0} + (type)IDENTITY_##op, second = first;                          \
        for (; n >= 2 * LANES(type); n -= 2 * LANES(type), x += 2 * LANES(type)) {                 \
            PREFETCH_AHEAD(x, 2 * TALLY_VECTOR);                                                   \
            first update VECTOR_LOAD(vector, x);                                                   \
            second update VECTOR_LOAD(vector, x + LANES(type));                                    \
        }                                                                                          \
        first update second;                                                                       \
        for (size_t i = 0; i < LANES(type); i++)                                                   \
            all update first[i];                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            all update x[i];                                                                       \
        *(uint64_t *)state = all;                                                                  \
    }
#define IDENTITY_and -1
#define IDENTITY_or  0
#define IDENTITY_xor 0

#define BITS_FOLDS(width, type)                                                                    \
    BITS_FOLD(width, type, and, &=)                                                                \
    BITS_FOLD(width, type, or, |=)                                                                 \
    BITS_FOLD(width, type, xor, ^=)

BITS_FOLDS(8, uint8_t)
BITS_FOLDS(16, uint16_t)
BITS_FOLDS(32, uint32_t)
BITS_FOLDS(64, uint64_t)
