/*
 * order.c - min, max, and both in one pass, of one instruction set.
 *
 * Integers are compared as they are. f16 and bf16 are turned into 16-bit integers that sort like them;
 * tracking both ends of those shows any NaN, which lie beyond the infinities. f32 and f64 are compared
 * as floats, which never takes a NaN for the lesser; NaNs are noted separately. The sign of a result that is
 * zero follows from the signs of all elements: a least element that is zero is -0 if any sign is set, and a
 * greatest one is -0 if all signs are set.
 *
 * For each type there is one loop, of which min, max and extremes leave out what they do not want: `want` is a
 * constant at each call. An array is taken as AT_ONCE streams, each with a best of its own: a comparison takes
 * longer to answer than to start, and so does memory (see read.c).
 */
#include "cpu/vector.h"
#include "problem/monoid.h"

/* v where it is better, else best: lane by lane. */
#define SELECT(vector, v, compare, best)                                                           \
    __extension__({                                                                                \
        vector better_ = (vector)((v)compare(best));                                               \
        ((v)&better_) | ((best) & ~better_);                                                       \
    })

#define BOTH (WANT_LEAST | WANT_GREATEST)

#define ORDERS(name)                                                                               \
    void ISA_NAME(min_##name)(const void *x, size_t n, void *state) {                              \
        KERNEL_PATH("");                                                                           \
        order_##name(x, n, WANT_LEAST, state);                                                     \
    }                                                                                              \
    void ISA_NAME(max_##name)(const void *x, size_t n, void *state) {                              \
        KERNEL_PATH("");                                                                           \
        order_##name(x, n, WANT_GREATEST, state);                                                  \
    }                                                                                              \
    void ISA_NAME(extremes_##name)(const void *x, size_t n, void *state) {                         \
        KERNEL_PATH("");                                                                           \
        order_##name(x, n, BOTH, state);                                                           \
    }

#define AT_ONCE ORDER_AT_ONCE

#define INTEGER_ORDER(name, type)                                                                  \
    ALWAYS_INLINE void order_##name(const void *array, size_t n, int want, struct extremes *e) {   \
        typedef VECTOR_OF(type) vector;                                                            \
        enum { STEP = AT_ONCE * LANES(type) };                                                     \
        const unaligned_##name *x = array;                                                         \
        type least = (type)e->least, most = (type)e->greatest;                                     \
        vector low[AT_ONCE], high[AT_ONCE];                                                        \
        for (int k = 0; k < AT_ONCE; k++) {                                                        \
            low[k] = (vector){0} + least;                                                          \
            high[k] = (vector){0} + most;                                                          \
        }                                                                                          \
        const size_t rows = n / STEP, apart = rows * LANES(type);                                  \
        for (size_t i = 0; i < rows; i++, x += LANES(type))                                        \
            for (int k = 0; k < AT_ONCE; k++) {                                                    \
                const vector v = VECTOR_LOAD(vector, x + k * apart);                               \
                PREFETCH_PLAIN(x + k * apart, TALLY_VECTOR, 2048, 1);                              \
                if (want & WANT_LEAST) low[k] = SELECT(vector, v, <, low[k]);                      \
                if (want & WANT_GREATEST) high[k] = SELECT(vector, v, >, high[k]);                 \
            }                                                                                      \
        x += (AT_ONCE - 1) * apart;                                                                \
        n -= rows * STEP;                                                                          \
        for (int k = 1; k < AT_ONCE; k++) {                                                        \
            low[0] = SELECT(vector, low[k], <, low[0]);                                            \
            high[0] = SELECT(vector, high[k], >, high[0]);                                         \
        }                                                                                          \
        for (size_t i = 0; i < LANES(type); i++) {                                                 \
            least = low[0][i] < least ? low[0][i] : least;                                         \
            most = high[0][i] > most ? high[0][i] : most;                                          \
        }                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            least = x[i] < least ? x[i] : least;                                                   \
            most = x[i] > most ? x[i] : most;                                                      \
        }                                                                                          \
        const uint64_t element = ~UINT64_C(0) >> (64 - 8 * sizeof(type));                          \
        if (want & WANT_LEAST) e->least = (uint64_t)least & element;                               \
        if (want & WANT_GREATEST) e->greatest = (uint64_t)most & element;                          \
    }                                                                                              \
    ORDERS(name)

INTEGER_ORDER(i8, int8_t)
INTEGER_ORDER(i16, int16_t)
INTEGER_ORDER(i32, int32_t)
INTEGER_ORDER(i64, int64_t)
INTEGER_ORDER(u8, uint8_t)
INTEGER_ORDER(u16, uint16_t)
INTEGER_ORDER(u32, uint32_t)
INTEGER_ORDER(u64, uint64_t)

/* Returns bits that sort as the floats do. Negative floats sort by magnitude downwards: all bits
 * but their sign are flipped; a second flip undoes it. */
static inline int16_t sortable(uint16_t bits) {
    return (int16_t)(bits ^ (((int16_t)bits >> 15) & 0x7fff));
}

/* Finds the least and the greatest, as only both together show NaNs. After a NaN neither matters. */
ALWAYS_INLINE void order_half(const void *array, size_t n, int16_t infinity, struct extremes *e) {
    enum { STEP = AT_ONCE * LANES(int16_t) };
    const unaligned_u16 *x = array;
    int16_t least = sortable((uint16_t)e->least), most = sortable((uint16_t)e->greatest);
    vi16 low[AT_ONCE], high[AT_ONCE];
    for (int k = 0; k < AT_ONCE; k++) {
        low[k] = (vi16){0} + least;
        high[k] = (vi16){0} + most;
    }
    const size_t rows = n / STEP, apart = rows * LANES(int16_t);
    for (size_t i = 0; i < rows; i++, x += LANES(int16_t))
        for (int k = 0; k < AT_ONCE; k++) {
            const vi16 bits = VECTOR_LOAD(vi16, x + k * apart);
            const vi16 key = bits ^ ((bits >> 15) & 0x7fff);
            PREFETCH_PLAIN(x + k * apart, TALLY_VECTOR, 2048, 1);
            low[k] = lower_i16(key, low[k]);
            high[k] = higher_i16(key, high[k]);
        }
    x += (AT_ONCE - 1) * apart;
    n -= rows * STEP;
    for (int k = 1; k < AT_ONCE; k++) {
        low[0] = SELECT(vi16, low[k], <, low[0]);
        high[0] = SELECT(vi16, high[k], >, high[0]);
    }
    for (size_t i = 0; i < LANES(int16_t); i++) {
        least = low[0][i] < least ? low[0][i] : least;
        most = high[0][i] > most ? high[0][i] : most;
    }
    for (size_t i = 0; i < n; i++) {
        const int16_t key = sortable(x[i]);
        least = key < least ? key : least;
        most = key > most ? key : most;
    }
    e->nan |= most > infinity || least < ~infinity;
    e->least = (uint16_t)sortable((uint16_t)least);
    e->greatest = (uint16_t)sortable((uint16_t)most);
}

#define HALF_ORDER(name, infinity)                                                                 \
    ALWAYS_INLINE void order_##name(const void *x, size_t n, int want, struct extremes *e) {       \
        (void)want;                                                                                \
        order_half(x, n, infinity, e);                                                             \
    }                                                                                              \
    ORDERS(name)
HALF_ORDER(f16, 0x7c00)
HALF_ORDER(bf16, 0x7f80)

#define FLOAT_ORDER(name, type, word, vector, vword)                                               \
    ALWAYS_INLINE void order_##name(const void *array, size_t n, int want, struct extremes *e) {   \
        enum { STEP = AT_ONCE * LANES(type) };                                                     \
        const unaligned_##name *x = array;                                                         \
        const word start[2] = {(word)e->least, (word)e->greatest};                                 \
        type least, most;                                                                          \
        memcpy(&least, &start[0], sizeof least);                                                   \
        memcpy(&most, &start[1], sizeof most);                                                     \
        vector low[AT_ONCE], high[AT_ONCE];                                                        \
        for (int k = 0; k < AT_ONCE; k++) {                                                        \
            low[k] = (vector){0} + least;                                                          \
            high[k] = (vector){0} + most;                                                          \
        }                                                                                          \
        vword some = (vword){0} + start[0], every = (vword){0} + start[1], nan = {0};              \
        const size_t rows = n / STEP, apart = rows * LANES(type);                                  \
        for (size_t i = 0; i < rows; i++, x += LANES(type))                                        \
            for (int k = 0; k < AT_ONCE; k++) {                                                    \
                const vector v = VECTOR_LOAD(vector, x + k * apart);                               \
                PREFETCH_PLAIN(x + k * apart, TALLY_VECTOR, 2048, 1);                              \
                if (want & WANT_LEAST) {                                                           \
                    low[k] = lower_##name(v, low[k]);                                              \
                    some |= (vword)v;                                                              \
                }                                                                                  \
                if (want & WANT_GREATEST) {                                                        \
                    high[k] = higher_##name(v, high[k]);                                           \
                    every &= (vword)v;                                                             \
                }                                                                                  \
                nan |= (vword)(v != v);                                                            \
            }                                                                                      \
        int any_nan = any_set((vu64)nan);                                                          \
        word some_sign = 0, every_sign = (word)-1;                                                 \
        x += (AT_ONCE - 1) * apart;                                                                \
        n -= rows * STEP;                                                                          \
        for (int k = 1; k < AT_ONCE; k++) {                                                        \
            low[0] = lower_##name(low[k], low[0]);                                                 \
            high[0] = higher_##name(high[k], high[0]);                                             \
        }                                                                                          \
        for (size_t j = 0; j < LANES(type); j++) {                                                 \
            some_sign |= some[j];                                                                  \
            every_sign &= every[j];                                                                \
            least = low[0][j] < least ? low[0][j] : least;                                         \
            most = high[0][j] > most ? high[0][j] : most;                                          \
        }                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            const type v = x[i];                                                                   \
            word bits;                                                                             \
            memcpy(&bits, &v, sizeof bits);                                                        \
            some_sign |= bits;                                                                     \
            every_sign &= bits;                                                                    \
            any_nan |= v != v;                                                                     \
            least = v < least ? v : least;                                                         \
            most = v > most ? v : most;                                                            \
        }                                                                                          \
        const word top = (word)1 << (8 * sizeof(word) - 1);                                        \
        word bits[2];                                                                              \
        memcpy(&bits[0], &least, sizeof least);                                                    \
        memcpy(&bits[1], &most, sizeof most);                                                      \
        if (least == 0) bits[0] = some_sign & top;                                                 \
        if (most == 0) bits[1] = every_sign & top;                                                 \
        e->nan |= any_nan != 0;                                                                    \
        if (want & WANT_LEAST) e->least = bits[0];                                                 \
        if (want & WANT_GREATEST) e->greatest = bits[1];                                           \
    }                                                                                              \
    ORDERS(name)

FLOAT_ORDER(f32, float, uint32_t, vf32, vu32)
FLOAT_ORDER(f64, double, uint64_t, vf64, vu64)
