/*
 * bits.c - and, or, xor of one instruction set, over the bits of elements of any type.
 *
 * What an element means does not matter here, only its size.
 */
#include "cpu/vector.h"
#include "partial.h"

#define BITS_FOLD(width, type, op, update)                                                         \
    void ISA_NAME(op##_##width)(const void *array, size_t n, struct partial *into) {               \
        const loose_u##width *x = array;                                                           \
        type all = (type)into->u.bits;                                                             \
        for (size_t i = 0; i < n; i++)                                                             \
            all update x[i];                                                                       \
        into->u.bits = all;                                                                        \
    }

#define BITS_FOLDS(width, type)                                                                    \
    BITS_FOLD(width, type, and, &=)                                                                \
    BITS_FOLD(width, type, or, |=)                                                                 \
    BITS_FOLD(width, type, xor, ^=)

BITS_FOLDS(8, uint8_t)
BITS_FOLDS(16, uint16_t)
BITS_FOLDS(32, uint32_t)
BITS_FOLDS(64, uint64_t)
