/*
 * terms.c - the sums of one instruction set whose terms are not the elements themselves: squares, products,
 * magnitudes; how many elements are not zero; both extremes at once; and where an element is.
 */
#include "cpu/vector.h"
#include "exact/sum.h"
#include "monoid.h"

static inline double f64_f64(const loose_f64 *x) {
    return *x;
}
static inline double f64_f32(const loose_f32 *x) {
    return *x;
}
static inline double f64_f16(const loose_u16 *x) {
    return widen_f16((vu16half){0} + *x)[0];
}
static inline double f64_bf16(const loose_u16 *x) {
    return widen_bf16((vu16half){0} + *x)[0];
}

#define FLOAT_TERMS(name, element)                                                                 \
    void ISA_NAME(nonzero_##name)(const void *array, size_t n, void *state) {                      \
        const element *x = array;                                                                  \
        uint64_t count = 0;                                                                        \
        for (size_t i = 0; i < n; i++)                                                             \
            count += f64_##name(x + i) != 0;                                                       \
        *(uint64_t *)state += count;                                                               \
    }                                                                                              \
    size_t ISA_NAME(find_nan_##name)(const void *array, size_t n, uint64_t bits) {                 \
        const element *x = array;                                                                  \
        size_t i = 0;                                                                              \
        (void)bits;                                                                                \
        while (i < n && f64_##name(x + i) == f64_##name(x + i))                                    \
            i++;                                                                                   \
        return i;                                                                                  \
    }

FLOAT_TERMS(f64, loose_f64)
FLOAT_TERMS(f32, loose_f32)
FLOAT_TERMS(f16, loose_u16)
FLOAT_TERMS(bf16, loose_u16)

#define INTEGER_TERMS(name)                                                                        \
    void ISA_NAME(squares_##name)(const void *array, size_t n, void *state) {                      \
        const loose_##name *x = array;                                                             \
        for (size_t i = 0; i < n; i++) {                                                           \
            const __int128 v = x[i];                                                               \
            const unsigned __int128 a = (unsigned __int128)(v < 0 ? -v : v), square = a * a;       \
            exact_sum_add(state, (__int128)(uint64_t)square, 0);                                   \
            exact_sum_add(state, (__int128)(uint64_t)(square >> 64), 64);                          \
        }                                                                                          \
    }                                                                                              \
    void ISA_NAME(products_##name)(const void *first, const void *second, size_t n, void *state) { \
        const loose_##name *x = first, *y = second;                                                \
        for (size_t i = 0; i < n; i++) {                                                           \
            const __int128 v = x[i], w = y[i];                                                     \
            const int negative = (v < 0) != (w < 0);                                               \
            const unsigned __int128 a = (unsigned __int128)(v < 0 ? -v : v),                       \
                                    b = (unsigned __int128)(w < 0 ? -w : w), c = a * b;            \
            const __int128 low = (uint64_t)c, high = (uint64_t)(c >> 64);                          \
            exact_sum_add(state, negative ? -low : low, 0);                                        \
            exact_sum_add(state, negative ? -high : high, 64);                                     \
        }                                                                                          \
    }                                                                                              \
    void ISA_NAME(magnitudes_##name)(const void *array, size_t n, void *state) {                   \
        const loose_##name *x = array;                                                             \
        __int128 sum = 0;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            const __int128 v = x[i];                                                               \
            sum += v < 0 ? -v : v;                                                                 \
        }                                                                                          \
        exact_sum_add(state, sum, 0);                                                              \
    }                                                                                              \
    void ISA_NAME(nonzero_##name)(const void *array, size_t n, void *state) {                      \
        const loose_##name *x = array;                                                             \
        uint64_t count = 0;                                                                        \
        for (size_t i = 0; i < n; i++)                                                             \
            count += x[i] != 0;                                                                    \
        *(uint64_t *)state += count;                                                               \
    }

INTEGER_TERMS(i8)
INTEGER_TERMS(i16)
INTEGER_TERMS(i32)
INTEGER_TERMS(i64)
INTEGER_TERMS(u8)
INTEGER_TERMS(u16)
INTEGER_TERMS(u32)
INTEGER_TERMS(u64)

#define EXTREMES(name)                                                                             \
    void ISA_NAME(min_##name)(const void *, size_t, void *);                                       \
    void ISA_NAME(max_##name)(const void *, size_t, void *);                                       \
    void ISA_NAME(extremes_##name)(const void *x, size_t n, void *state) {                         \
        ISA_NAME(min_##name)(x, n, state);                                                         \
        ISA_NAME(max_##name)(x, n, state);                                                         \
    }

EXTREMES(i8)
EXTREMES(i16)
EXTREMES(i32)
EXTREMES(i64)
EXTREMES(u8)
EXTREMES(u16)
EXTREMES(u32)
EXTREMES(u64)
EXTREMES(f16)
EXTREMES(bf16)
EXTREMES(f32)
EXTREMES(f64)

#define FIND(width)                                                                                \
    size_t ISA_NAME(find_##width)(const void *array, size_t n, uint64_t bits) {                    \
        const loose_u##width *x = array;                                                           \
        size_t i = 0;                                                                              \
        while (i < n && x[i] != (uint##width##_t)bits)                                             \
            i++;                                                                                   \
        return i;                                                                                  \
    }

FIND(8)
FIND(16)
FIND(32)
FIND(64)
