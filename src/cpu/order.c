/*
 * order.c - min, max, and both in one pass, of one instruction set.
 *
 * Integers are compared as they are. f16 and bf16 are turned into 16-bit integers that sort like them;
 * tracking both ends of those shows any NaN, which lie beyond the infinities. f32 and f64 are compared
 * as floats, which never takes a NaN for the lesser; NaNs are noticed apart, and which zero a result of
 * zero is follows from the signs of all elements: if the least is a zero, a sign among them is -0's.
 */
#include "cpu/vector.h"
#include "monoid.h"

/* v where it is better, else best: lane by lane. */
#define SELECT(vector, v, compare, best)                                                           \
    __extension__({                                                                                \
        vector better_ = (vector)((v)compare(best));                                               \
        ((v)&better_) | ((best) & ~better_);                                                       \
    })

#define FIELD_min least
#define FIELD_max greatest

/* Two vectors at a time, then what is left one by one. */
#define INTEGER_ORDER(name, type, op, compare)                                                     \
    void ISA_NAME(op##_##name)(const void *array, size_t n, void *state) {                         \
        struct extremes *e = state;                                                                \
        typedef VECTOR_OF(type) vector;                                                            \
        const loose_##name *x = array;                                                             \
        type best = (type)e->FIELD_##op;                                                           \
        vector first = (vector){0} + best, second = first;                                         \
        for (; n >= 2 * LANES(type); n -= 2 * LANES(type), x += 2 * LANES(type)) {                 \
            vector v = VECTOR_LOAD(vector, x), w = VECTOR_LOAD(vector, x + LANES(type));           \
            PREFETCH_AHEAD(x, 2 * TALLY_VECTOR);                                                   \
            first = SELECT(vector, v, compare, first);                                             \
            second = SELECT(vector, w, compare, second);                                           \
        }                                                                                          \
        first = SELECT(vector, second, compare, first);                                            \
        for (size_t i = 0; i < LANES(type); i++)                                                   \
            best = first[i] compare best ? first[i] : best;                                        \
        for (size_t i = 0; i < n; i++)                                                             \
            best = x[i] compare best ? x[i] : best;                                                \
        e->FIELD_##op = (uint64_t)best & (~UINT64_C(0) >> (64 - 8 * sizeof best));                 \
    }

/* Both at once. */
#define INTEGER_EXTREMES(name, type)                                                               \
    void ISA_NAME(extremes_##name)(const void *array, size_t n, void *state) {                     \
        struct extremes *e = state;                                                                \
        typedef VECTOR_OF(type) vector;                                                            \
        const loose_##name *x = array;                                                             \
        type least = (type)e->least, most = (type)e->greatest;                                     \
        vector low = (vector){0} + least, high = (vector){0} + most;                               \
        for (; n >= LANES(type); n -= LANES(type), x += LANES(type)) {                             \
            const vector v = VECTOR_LOAD(vector, x);                                               \
            PREFETCH_AHEAD(x, TALLY_VECTOR);                                                       \
            low = SELECT(vector, v, <, low);                                                       \
            high = SELECT(vector, v, >, high);                                                     \
        }                                                                                          \
        for (size_t i = 0; i < LANES(type) + n; i++) {                                             \
            const type down = i < n ? x[i] : low[i - n], up = i < n ? down : high[i - n];          \
            least = down < least ? down : least;                                                   \
            most = up > most ? up : most;                                                          \
        }                                                                                          \
        e->least = (uint64_t)least & (~UINT64_C(0) >> (64 - 8 * sizeof least));                    \
        e->greatest = (uint64_t)most & (~UINT64_C(0) >> (64 - 8 * sizeof most));                   \
    }

#define INTEGER_ORDERS(name, type)                                                                 \
    INTEGER_ORDER(name, type, min, <)                                                              \
    INTEGER_ORDER(name, type, max, >)                                                              \
    INTEGER_EXTREMES(name, type)

INTEGER_ORDERS(i8, int8_t)
INTEGER_ORDERS(i16, int16_t)
INTEGER_ORDERS(i32, int32_t)
INTEGER_ORDERS(i64, int64_t)
INTEGER_ORDERS(u8, uint8_t)
INTEGER_ORDERS(u16, uint16_t)
INTEGER_ORDERS(u32, uint32_t)
INTEGER_ORDERS(u64, uint64_t)

/* Negative floats sort by magnitude downwards: flipping all but their sign bit mends that, and flipping
 * again undoes it. */
static inline int16_t sortable(uint16_t bits) {
    return (int16_t)(bits ^ (((int16_t)bits >> 15) & 0x7fff));
}

/* Both ends are tracked in any case. What either is after a NaN does not matter. */
ALWAYS_INLINE void order_half(const void *array, size_t n, int16_t infinity, struct extremes *e) {
    const loose_u16 *x = array;
    int16_t least = sortable((uint16_t)e->least), most = sortable((uint16_t)e->greatest);
    vi16 low = (vi16){0} + least, high = (vi16){0} + most;
    for (; n >= LANES(int16_t); n -= LANES(int16_t), x += LANES(int16_t)) {
        vi16 bits = VECTOR_LOAD(vi16, x), key = bits ^ ((bits >> 15) & 0x7fff);
        PREFETCH_AHEAD(x, TALLY_VECTOR);
        low = SELECT(vi16, key, <, low);
        high = SELECT(vi16, key, >, high);
    }
    for (size_t i = 0; i < LANES(int16_t) + n; i++) {
        int16_t down = i < n ? sortable(x[i]) : low[i - n], up = i < n ? down : high[i - n];
        least = down < least ? down : least;
        most = up > most ? up : most;
    }
    e->nan |= most > infinity || least < ~infinity;
    e->least = (uint16_t)sortable((uint16_t)least);
    e->greatest = (uint16_t)sortable((uint16_t)most);
}

#define HALF_ORDERS(name, infinity)                                                                \
    void ISA_NAME(min_##name)(const void *x, size_t n, void *state) {                              \
        order_half(x, n, infinity, state);                                                         \
    }                                                                                              \
    void ISA_NAME(max_##name)(const void *x, size_t n, void *state) {                              \
        order_half(x, n, infinity, state);                                                         \
    }                                                                                              \
    void ISA_NAME(extremes_##name)(const void *x, size_t n, void *state) {                         \
        order_half(x, n, infinity, state);                                                         \
    }
HALF_ORDERS(f16, 0x7c00)
HALF_ORDERS(bf16, 0x7f80)

/* note is |= for min, where one negative sign makes a zero -0, and &= for max, where it takes all. */
#define FLOAT_ORDER(name, type, word, vector, vword, op, select, note)                             \
    void ISA_NAME(op##_##name)(const void *array, size_t n, void *state) {                         \
        struct extremes *e = state;                                                                \
        const char *p = array;                                                                     \
        word start = (word)e->FIELD_##op, signs = start;                                           \
        type best;                                                                                 \
        memcpy(&best, &start, sizeof best);                                                        \
        vector bests[2] = {(vector){0} + best, (vector){0} + best};                                \
        vword sign = (vword){0} + start, nan = {0};                                                \
        size_t vectors = n / LANES(type);                                                          \
        for (size_t i = 0; i < vectors; i++, p += sizeof(vector)) {                                \
            vector v = VECTOR_LOAD(vector, p);                                                     \
            PREFETCH_AHEAD(p, sizeof v);                                                           \
            bests[i % 2] = select(v, bests[i % 2]);                                                \
            sign note(vword) v;                                                                    \
            nan |= (vword)(v != v);                                                                \
        }                                                                                          \
        bests[0] = select(bests[0], bests[1]);                                                     \
        type lanes[LANES(type) + LANES(type)];                                                     \
        memcpy(lanes, &bests[0], sizeof bests[0]);                                                 \
        size_t rest = n % LANES(type), count = LANES(type) + rest;                                 \
        memcpy(lanes + LANES(type), p, rest * sizeof(type));                                       \
        int any_nan = any_bits((vi64)nan) != 0;                                                    \
        for (size_t i = 0; i < count; i++) {                                                       \
            type v = lanes[i];                                                                     \
            word bits;                                                                             \
            memcpy(&bits, &v, sizeof bits);                                                        \
            any_nan |= v != v;                                                                     \
            if (i >= LANES(type))                                                                  \
                signs note bits;                                                                   \
            else                                                                                   \
                signs note sign[i];                                                                \
            if (op##_is_better(v, best)) best = v;                                                 \
        }                                                                                          \
        word bits;                                                                                 \
        memcpy(&bits, &best, sizeof bits);                                                         \
        const word top = (word)1 << (8 * sizeof(word) - 1);                                        \
        if (best == 0) bits = signs & top;                                                         \
        e->nan |= any_nan;                                                                         \
        e->FIELD_##op = bits;                                                                      \
    }

#define min_is_better(a, b) ((a) < (b))
#define max_is_better(a, b) ((a) > (b))

FLOAT_ORDER(f32, float, uint32_t, vf32, vu32, min, lower_f32, |=)
FLOAT_ORDER(f32, float, uint32_t, vf32, vu32, max, higher_f32, &=)
FLOAT_ORDER(f64, double, uint64_t, vf64, vu64, min, lower_f64, |=)
FLOAT_ORDER(f64, double, uint64_t, vf64, vu64, max, higher_f64, &=)

/* Both at once. Which zero the least is, if it is one, says the or of all signs; the greatest, their and. */
#define FLOAT_EXTREMES(name, type, word, vector, vword)                                            \
    void ISA_NAME(extremes_##name)(const void *array, size_t n, void *state) {                     \
        struct extremes *e = state;                                                                \
        const loose_##name *x = array;                                                             \
        const word start[2] = {(word)e->least, (word)e->greatest};                                 \
        type least, most;                                                                          \
        memcpy(&least, &start[0], sizeof least);                                                   \
        memcpy(&most, &start[1], sizeof most);                                                     \
        vector low = (vector){0} + least, high = (vector){0} + most;                               \
        vword some = (vword){0} + start[0], every = (vword){0} + start[1], nan = {0};              \
        for (; n >= LANES(type); n -= LANES(type), x += LANES(type)) {                             \
            const vector v = VECTOR_LOAD(vector, x);                                               \
            PREFETCH_AHEAD(x, TALLY_VECTOR);                                                       \
            low = lower_##name(v, low);                                                            \
            high = higher_##name(v, high);                                                         \
            some |= (vword)v;                                                                      \
            every &= (vword)v;                                                                     \
            nan |= (vword)(v != v);                                                                \
        }                                                                                          \
        int any_nan = any_set((vu64)nan);                                                          \
        word some_sign = 0, every_sign = (word)-1;                                                 \
        for (size_t j = 0; j < LANES(type); j++) {                                                 \
            some_sign |= some[j];                                                                  \
            every_sign &= every[j];                                                                \
            least = low[j] < least ? low[j] : least;                                               \
            most = high[j] > most ? high[j] : most;                                                \
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
        e->least = bits[0];                                                                        \
        e->greatest = bits[1];                                                                     \
    }

FLOAT_EXTREMES(f32, float, uint32_t, vf32, vu32)
FLOAT_EXTREMES(f64, double, uint64_t, vf64, vu64)
