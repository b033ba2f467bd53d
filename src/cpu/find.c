/*
 * find.c - searches for the first element with given bits, or the first NaN, of one instruction set.
 */
#include "cpu/vector.h"

/* Tests four vectors at a time until one has a match, then elements one by one. is(v, type) is true for
 * an element that matches; of a vector it sets all bits of the lanes that match. */
#define FIND(name, type, is)                                                                       \
    size_t ISA_NAME(name)(const void *array, size_t n, uint64_t bits) {                            \
        KERNEL_PATH("");                                                                           \
        typedef VECTOR_OF(type) vector;                                                            \
        typedef type UNALIGNED unaligned;                                                          \
        const unaligned *x = array;                                                                \
        size_t i = 0;                                                                              \
        (void)bits;                                                                                \
        for (; i + 4 * LANES(type) <= n; i += 4 * LANES(type)) {                                   \
            vector found = {0};                                                                    \
            for (size_t k = 0; k < 4; k++)                                                         \
                found |= (vector)is(VECTOR_LOAD(vector, x + i + k * LANES(type)), type);           \
            if (any_set((vu64)found)) break;                                                       \
        }                                                                                          \
        while (i < n && !is(x[i], type))                                                           \
            i++;                                                                                   \
        return i;                                                                                  \
    }

#define IS_EQUAL(v, type) ((v) == (type)bits)
FIND(find_8, uint8_t, IS_EQUAL)
FIND(find_16, uint16_t, IS_EQUAL)
FIND(find_32, uint32_t, IS_EQUAL)
FIND(find_64, uint64_t, IS_EQUAL)

/* Without its sign bit a NaN lies above infinity. */
#define IS_NAN_F64(v, type)  (((v)&INT64_MAX) > (type)0x7ff0000000000000)
#define IS_NAN_F32(v, type)  (((v)&INT32_MAX) > (type)0x7f800000)
#define IS_NAN_F16(v, type)  (((v)&0x7fff) > (type)0x7c00)
#define IS_NAN_BF16(v, type) (((v)&0x7fff) > (type)0x7f80)
FIND(find_nan_f64, uint64_t, IS_NAN_F64)
FIND(find_nan_f32, uint32_t, IS_NAN_F32)
FIND(find_nan_f16, uint16_t, IS_NAN_F16)
FIND(find_nan_bf16, uint16_t, IS_NAN_BF16)
