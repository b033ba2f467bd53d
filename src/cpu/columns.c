/* columns.c - the kernels of columns.h, of one instruction set. */
#include "cpu/columns.h"
#include "cpu/vector.h"
#include "exact/round.h"

/* ---- Loads: COLUMN_STEP elements as doubles, as keys, as bits ------------------------------- */

#define STEP    COLUMN_STEP
#define DOUBLES (STEP / LANES(double)) /* vectors of a step */
#define INTS    (STEP / LANES(int32_t))

typedef float vf32half __attribute__((vector_size(TALLY_VECTOR / 2), may_alias));
typedef int32_t vi32half __attribute__((vector_size(TALLY_VECTOR / 2), may_alias));
typedef uint32_t vu32half __attribute__((vector_size(TALLY_VECTOR / 2), may_alias));
typedef int16_t vi16half __attribute__((vector_size(TALLY_VECTOR / 2), may_alias));
typedef int16_t vi16quarter __attribute__((vector_size(TALLY_VECTOR / 4), may_alias));
typedef uint16_t vu16quarter __attribute__((vector_size(TALLY_VECTOR / 4), may_alias));
typedef int8_t vi8quarter __attribute__((vector_size(TALLY_VECTOR / 4), may_alias));
typedef uint8_t vu8quarter __attribute__((vector_size(TALLY_VECTOR / 4), may_alias));

/* The k-th vector of 32-bit lanes. */
#define BITS_i8(p, k)   __builtin_convertvector(VECTOR_LOAD(vi8quarter, (p) + (k)*LANES(float)), vi32)
#define BITS_u8(p, k)   __builtin_convertvector(VECTOR_LOAD(vu8quarter, (p) + (k)*LANES(float)), vi32)
#define BITS_i16(p, k)  __builtin_convertvector(VECTOR_LOAD(vi16half, (p) + (k)*LANES(float)), vi32)
#define BITS_u16(p, k)  __builtin_convertvector(VECTOR_LOAD(vu16half, (p) + (k)*LANES(float)), vi32)
#define BITS_i32(p, k)  VECTOR_LOAD(vi32, (p) + (k)*LANES(float))
#define BITS_u32(p, k)  BITS_i32(p, k)
#define BITS_f16(p, k)  BITS_i16(p, k)
#define BITS_bf16(p, k) BITS_i16(p, k)
#define BITS_f32(p, k)  BITS_i32(p, k)
#define BITS_i64(p, k)  VECTOR_LOAD(vi64, (p) + (k)*LANES(double))
#define BITS_u64(p, k)  BITS_i64(p, k)
#define BITS_f64(p, k)  BITS_i64(p, k)

/* Keys from bits. */
#define KEY_i8(v)   (v)
#define KEY_u8(v)   (v)
#define KEY_i16(v)  (v)
#define KEY_u16(v)  (v)
#define KEY_i32(v)  (v)
#define KEY_i64(v)  (v)
#define KEY_u32(v)  ((v) ^ INT32_MIN)
#define KEY_u64(v)  ((v) ^ INT64_MIN)
#define KEY_f16(v)  ((v) ^ (((v) >> 31) & 0x7fff))
#define KEY_bf16(v) KEY_f16(v)
#define KEY_f32(v)  ((v) ^ (((v) >> 31) & INT32_MAX))
#define KEY_f64(v)  ((v) ^ (((v) >> 63) & INT64_MAX))
/* Of +inf; of integers none is above it. */
#define INF_i8   INT32_MAX
#define INF_u8   INT32_MAX
#define INF_i16  INT32_MAX
#define INF_u16  INT32_MAX
#define INF_i32  INT32_MAX
#define INF_u32  INT32_MAX
#define INF_i64  INT64_MAX
#define INF_u64  INT64_MAX
#define INF_f16  0x7c00
#define INF_bf16 0x7f80
#define INF_f32  0x7f800000
#define INF_f64  INT64_C(0x7ff0000000000000)

/* The k-th vector of doubles. */
ALWAYS_INLINE vf64 half_of(vf32 v, size_t k) {
    vf32half h;
    memcpy(&h, (const char *)&v + k * sizeof h, sizeof h);
    return __builtin_convertvector(h, vf64);
}
ALWAYS_INLINE vf64 half_of_ints(vi32 v, size_t k) {
    vi32half h;
    memcpy(&h, (const char *)&v + k * sizeof h, sizeof h);
    return __builtin_convertvector(h, vf64);
}
#define DOUBLE_f64(p, k) VECTOR_LOAD(vf64, (p) + (k)*LANES(double))
#define DOUBLE_f32(p, k)                                                                           \
    __builtin_convertvector(VECTOR_LOAD(vf32half, (p) + (k)*LANES(double)), vf64)
#define DOUBLE_f16(p, k)  half_of(LOAD_F16((p) + (k) / 2 * LANES(float)), (k) % 2)
#define DOUBLE_bf16(p, k) half_of(LOAD_BF16((p) + (k) / 2 * LANES(float)), (k) % 2)
#define DOUBLE_i8(p, k)   half_of_ints(BITS_i8(p, (k) / 2), (k) % 2)
#define DOUBLE_u8(p, k)   half_of_ints(BITS_u8(p, (k) / 2), (k) % 2)
#define DOUBLE_i16(p, k)  half_of_ints(BITS_i16(p, (k) / 2), (k) % 2)
#define DOUBLE_u16(p, k)  half_of_ints(BITS_u16(p, (k) / 2), (k) % 2)
#define DOUBLE_i32(p, k)                                                                           \
    __builtin_convertvector(VECTOR_LOAD(vi32half, (p) + (k)*LANES(double)), vf64)
#define DOUBLE_u32(p, k)                                                                           \
    __builtin_convertvector(VECTOR_LOAD(vu32half, (p) + (k)*LANES(double)), vf64)

/* Rows that are taken together: a column's planes are loaded and stored once for them. */
#define ROWS_AT_ONCE 8
/* A row of fewer bytes leaves the cache so late that it is better to keep its planes in registers. */
#define NARROW_BYTES 1024
#define ROWS_NARROW  256

/* Stores a step's planes: of the last one only the columns that are there. */
#define STORE(to, from, type)                                                                      \
    do {                                                                                           \
        if (width - c >= STEP)                                                                     \
            memcpy(to, from, sizeof from);                                                         \
        else                                                                                       \
            memcpy(to, from, (width - c) * sizeof(type));                                          \
    } while (0)

#define EACH_ROW_BLOCK(element)                                                                    \
    const size_t block = width * sizeof(element) <= NARROW_BYTES ? ROWS_NARROW : ROWS_AT_ONCE;     \
    for (size_t r0 = 0; r0 < in->rows; r0 += block)                                                \
        for (size_t c = 0; c < width; c += STEP)

/* Of the step at column c, rows [r0, r0 + block): `p` is the row's elements, of which the last may be a
 * copy that is filled up. */
#define EACH_ROW(element, base, pitch, ...)                                                        \
    do {                                                                                           \
        const size_t r1 = in->rows - r0 < block ? in->rows : r0 + block;                           \
        const size_t ahead = (size_t)(r1 - r0) * (size_t)(pitch);                                  \
        const int whole = width - c >= STEP;                                                       \
        for (size_t r = r0; r < r1; r++) {                                                         \
            const element *p = (const element *)(base + (ptrdiff_t)r * (pitch)) + c;               \
            element some[STEP];                                                                    \
            if (whole)                                                                             \
                __builtin_prefetch((const char *)p + (block == ROWS_AT_ONCE ? 512 : ahead));       \
            else {                                                                                 \
                memset(some, 0, sizeof some);                                                      \
                memcpy(some, p, (width - c) * sizeof *p);                                          \
                p = some;                                                                          \
            }                                                                                      \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    } while (0)

/* ---- Sums ----------------------------------------------------------------------------------- */

static void ISA_NAME(clear_sum)(uint64_t *planes, size_t stride, size_t width, uint64_t first) {
    double *s = (double *)planes;
    (void)first;
    for (size_t c = 0; c < width; c++) {
        s[c] = -0.0; /* adds nothing, not even a sign */
        s[stride + c] = s[2 * stride + c] = 0;
    }
}

ALWAYS_INLINE vf64 absolute(vf64 v) {
    return (vf64)((vi64)v & INT64_MAX);
}

/* a + b = *sum + the result. */
ALWAYS_INLINE vf64 two_sum(vf64 a, vf64 b, vf64 *sum) {
    const vf64 t = a + b, z = t - a, error = (a - (t - z)) + (b - z);
    *sum = t;
    return error;
}

/* a * b - p, rounded once. */
ALWAYS_INLINE vf64 fused(vf64 a, vf64 b, vf64 p) {
#if defined(__AVX512F__)
    return (vf64)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)p);
#elif defined(__FMA__)
    return (vf64)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)p);
#else
    for (size_t i = 0; i < LANES(double); i++)
        p[i] = __builtin_fma(a[i], b[i], -p[i]);
    return p;
#endif
}

/* Below this the error of a product may have been rounded. */
#define PRODUCT_LEAST 0x1p-960

#define ADD_ONE(v) b[k] += absolute(two_sum(s[k], v, &s[k]))
#define ADD_TWO(v)                                                                                 \
    do {                                                                                           \
        const vf64 error = two_sum(s[k], v, &s[k]);                                                \
        b[k] += absolute(two_sum(e[k], error, &e[k]));                                             \
    } while (0)
#define ADD_MAGNITUDE(v) ADD_TWO(absolute(v))
/* The product of floats with 26 bits or fewer is exact; else its error is one more term. */
#define ADD_SHORT_PRODUCT(v, w) ADD_TWO((v) * (w))
#define ADD_PRODUCT(v, w)                                                                          \
    do {                                                                                           \
        const vf64 product = (v) * (w), rest = fused(v, w, product);                               \
        const vi64 small =                                                                         \
            (vi64)(absolute(product) < PRODUCT_LEAST) & (vi64)((v) != 0) & (vi64)((w) != 0);       \
        const vf64 error = two_sum(s[k], product, &s[k]);                                          \
        b[k] += absolute(two_sum(e[k], error, &e[k]));                                             \
        b[k] += absolute(two_sum(e[k], rest, &e[k]));                                              \
        b[k] = (vf64)((vi64)b[k] | (small & INT64_C(0x7ff0000000000000)));                         \
    } while (0)
#define SQUARE_short(v) ADD_SHORT_PRODUCT(v, v)
#define SQUARE_long(v)  ADD_PRODUCT(v, v)
#define PRODUCT_short   ADD_SHORT_PRODUCT
#define PRODUCT_long    ADD_PRODUCT

#define SUM_KERNEL(op, name, element, ADD)                                                         \
    static void CONCAT(op##_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                   \
                                               const struct column_rows *in, size_t width) {       \
        EACH_ROW_BLOCK(element) {                                                                  \
            double *at = (double *)planes + c;                                                     \
            vf64 s[DOUBLES], e[DOUBLES], b[DOUBLES];                                               \
            memcpy(s, at, sizeof s);                                                               \
            memcpy(e, at + stride, sizeof e);                                                      \
            memcpy(b, at + 2 * stride, sizeof b);                                                  \
            EACH_ROW(                                                                              \
                element, in->x, in->x_row, for (size_t k = 0; k < DOUBLES; k++) {                  \
                    const vf64 v = DOUBLE_##name(p, k);                                            \
                    ADD(v);                                                                        \
                });                                                                                \
            STORE(at, s, double);                                                                  \
            STORE(at + stride, e, double);                                                         \
            STORE(at + 2 * stride, b, double);                                                     \
        }                                                                                          \
    }

#define PAIR_KERNEL(name, element, ADD)                                                            \
    static void CONCAT(products_##name, TALLY_ISA)(uint64_t * planes, size_t stride,               \
                                                   const struct column_rows *in, size_t width) {   \
        EACH_ROW_BLOCK(element) {                                                                  \
            double *at = (double *)planes + c;                                                     \
            vf64 s[DOUBLES], e[DOUBLES], b[DOUBLES];                                               \
            memcpy(s, at, sizeof s);                                                               \
            memcpy(e, at + stride, sizeof e);                                                      \
            memcpy(b, at + 2 * stride, sizeof b);                                                  \
            EACH_ROW(element, in->x, in->x_row, {                                                  \
                const element *q = (const element *)(in->y + (ptrdiff_t)r * in->y_row) + c;        \
                element others[STEP];                                                              \
                if (!whole) {                                                                      \
                    memset(others, 0, sizeof others);                                              \
                    memcpy(others, q, (width - c) * sizeof *q);                                    \
                    q = others;                                                                    \
                }                                                                                  \
                for (size_t k = 0; k < DOUBLES; k++) {                                             \
                    const vf64 v = DOUBLE_##name(p, k), w = DOUBLE_##name(q, k);                   \
                    ADD(v, w);                                                                     \
                }                                                                                  \
            });                                                                                    \
            STORE(at, s, double);                                                                  \
            STORE(at + stride, e, double);                                                         \
            STORE(at + 2 * stride, b, double);                                                     \
        }                                                                                          \
    }

#define SUM_KERNELS(name, element, length)                                                         \
    SUM_KERNEL(one, name, element, ADD_ONE)                                                        \
    SUM_KERNEL(two, name, element, ADD_TWO)                                                        \
    SUM_KERNEL(magnitudes, name, element, ADD_MAGNITUDE)                                           \
    SUM_KERNEL(squares, name, element, SQUARE_##length)                                            \
    PAIR_KERNEL(name, element, PRODUCT_##length)

SUM_KERNELS(i8, loose_i8, short)
SUM_KERNELS(i16, loose_i16, short)
SUM_KERNELS(i32, loose_i32, long)
SUM_KERNELS(u8, loose_u8, short)
SUM_KERNELS(u16, loose_u16, short)
SUM_KERNELS(u32, loose_u32, long)
SUM_KERNELS(f16, loose_u16, short)
SUM_KERNELS(bf16, loose_u16, short)
SUM_KERNELS(f32, loose_f32, short)
SUM_KERNELS(f64, loose_f64, long)

static void ISA_NAME(merge_sum)(uint64_t *into, size_t to, const uint64_t *other, size_t from,
                                size_t stride, size_t width) {
    double *s = (double *)into + to, *e = s + stride, *b = e + stride;
    const double *s2 = (const double *)other + from, *e2 = s2 + stride, *b2 = e2 + stride;
    for (size_t c = 0; c < width; c++) {
        const double t = s[c] + s2[c], z = t - s[c], error = (s[c] - (t - z)) + (s2[c] - z);
        double u = e[c] + e2[c], y = u - e[c], rest = (e[c] - (u - y)) + (e2[c] - y);
        double bound = b[c] + b2[c] + __builtin_fabs(rest);
        const double w = u + error;
        y = w - u;
        rest = (u - (w - y)) + (error - y);
        s[c] = t;
        e[c] = w;
        b[c] = bound + __builtin_fabs(rest);
    }
}

/* ---- 64-bit integers ------------------------------------------------------------------------ */

static void ISA_NAME(clear_words)(uint64_t *planes, size_t stride, size_t width, uint64_t first) {
    (void)first;
    for (size_t c = 0; c < width; c++)
        planes[c] = planes[stride + c] = 0;
}

#define WIDE_KERNEL(name, element, vector)                                                         \
    static void CONCAT(wide_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                   \
                                               const struct column_rows *in, size_t width) {       \
        EACH_ROW_BLOCK(element) {                                                                  \
            vi64 low[DOUBLES], high[DOUBLES];                                                      \
            memcpy(low, planes + c, sizeof low);                                                   \
            memcpy(high, planes + stride + c, sizeof high);                                        \
            EACH_ROW(                                                                              \
                element, in->x, in->x_row, for (size_t k = 0; k < DOUBLES; k++) {                  \
                    const vector v = (vector)BITS_i64(p, k);                                       \
                    low[k] += (vi64)(v & 0xffffffff);                                              \
                    high[k] += (vi64)(v >> 32);                                                    \
                });                                                                                \
            STORE(planes + c, low, uint64_t);                                                      \
            STORE(planes + stride + c, high, uint64_t);                                            \
        }                                                                                          \
    }
WIDE_KERNEL(i64, loose_i64, vi64)
WIDE_KERNEL(u64, loose_u64, vu64)

static void ISA_NAME(merge_wide)(uint64_t *into, size_t to, const uint64_t *other, size_t from,
                                 size_t stride, size_t width) {
    for (size_t c = 0; c < width; c++) {
        into[to + c] += other[from + c];
        into[stride + to + c] += other[stride + from + c];
    }
}

/* ---- Keys ----------------------------------------------------------------------------------- */

#define PICK(mask, a, b) (((a) & (mask)) | ((b) & ~(mask)))

/* of `lane` bits: int32_t or int64_t lanes. Planes are blocks of 8 bytes a column in any case. */
#define KEY_FORMS(lane, type, vector, VECTORS, MOST)                                               \
    static void CONCAT(clear_order_##lane, TALLY_ISA)(uint64_t * planes, size_t stride,            \
                                                      size_t width, uint64_t first) {              \
        type *low = (type *)planes, *high = (type *)(planes + stride);                             \
        (void)first;                                                                               \
        for (size_t c = 0; c < width; c++) {                                                       \
            low[c] = MOST;                                                                         \
            high[c] = -MOST - 1;                                                                   \
        }                                                                                          \
    }                                                                                              \
    static void CONCAT(merge_order_##lane, TALLY_ISA)(uint64_t * into, size_t to,                  \
                                                      const uint64_t *other, size_t from,          \
                                                      size_t stride, size_t width) {               \
        type *low = (type *)into + to, *high = (type *)(into + stride) + to;                       \
        const type *low2 = (const type *)other + from,                                             \
                   *high2 = (const type *)(other + stride) + from;                                 \
        for (size_t c = 0; c < width; c++) {                                                       \
            low[c] = low2[c] < low[c] ? low2[c] : low[c];                                          \
            high[c] = high2[c] > high[c] ? high2[c] : high[c];                                     \
        }                                                                                          \
    }                                                                                              \
    static void CONCAT(clear_index_##lane, TALLY_ISA)(uint64_t * planes, size_t stride,            \
                                                      size_t width, uint64_t first) {              \
        type *key = (type *)planes, *index = (type *)(planes + stride);                            \
        for (size_t c = 0; c < width; c++) {                                                       \
            key[c] = MOST;                                                                         \
            index[c] = (type)first;                                                                \
        }                                                                                          \
    }                                                                                              \
    static void CONCAT(merge_index_##lane, TALLY_ISA)(uint64_t * into, size_t to,                  \
                                                      const uint64_t *other, size_t from,          \
                                                      size_t stride, size_t width) {               \
        type *key = (type *)into + to, *index = (type *)(into + stride) + to;                      \
        const type *key2 = (const type *)other + from,                                             \
                   *index2 = (const type *)(other + stride) + from;                                \
        for (size_t c = 0; c < width; c++) {                                                       \
            const int better = key2[c] < key[c] || (key2[c] == key[c] && index2[c] < index[c]);    \
            key[c] = better ? key2[c] : key[c];                                                    \
            index[c] = better ? index2[c] : index[c];                                              \
        }                                                                                          \
    }                                                                                              \
    static void CONCAT(clear_zero_##lane, TALLY_ISA)(uint64_t * planes, size_t stride,             \
                                                     size_t width, uint64_t first) {               \
        (void)stride, (void)first;                                                                 \
        memset(planes, 0, width * sizeof(type));                                                   \
    }                                                                                              \
    static void CONCAT(clear_ones_##lane, TALLY_ISA)(uint64_t * planes, size_t stride,             \
                                                     size_t width, uint64_t first) {               \
        (void)stride, (void)first;                                                                 \
        memset(planes, 255, width * sizeof(type));                                                 \
    }                                                                                              \
    MERGE_WORDS(and_##lane, type, &=)                                                              \
    MERGE_WORDS(or_##lane, type, |=)                                                               \
    MERGE_WORDS(xor_##lane, type, ^=)                                                              \
    MERGE_WORDS(count_##lane, type, +=)
#define MERGE_WORDS(op, type, combine)                                                             \
    static void CONCAT(merge_##op, TALLY_ISA)(uint64_t * into, size_t to, const uint64_t *other,   \
                                              size_t from, size_t stride, size_t width) {          \
        (void)stride;                                                                              \
        for (size_t c = 0; c < width; c++)                                                         \
            ((type *)into)[to + c] combine((const type *)other)[from + c];                         \
    }
KEY_FORMS(32, int32_t, vi32, INTS, INT32_MAX)
KEY_FORMS(64, int64_t, vi64, DOUBLES, INT64_MAX)

#define IS_NAN(name, key) (((key) > INF_##name) | ((key) < ~INF_##name))

#define ORDER_KERNEL(name, element, type, vector, VECTORS)                                         \
    static void CONCAT(order_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                  \
                                                const struct column_rows *in, size_t width) {      \
        EACH_ROW_BLOCK(element) {                                                                  \
            vector low[VECTORS], high[VECTORS];                                                    \
            memcpy(low, (type *)planes + c, sizeof low);                                           \
            memcpy(high, (type *)(planes + stride) + c, sizeof high);                              \
            EACH_ROW(                                                                              \
                element, in->x, in->x_row, for (size_t k = 0; k < VECTORS; k++) {                  \
                    const vector v = BITS_##name(p, k), key = KEY_##name(v);                       \
                    low[k] = PICK((vector)(key < low[k]), key, low[k]);                            \
                    high[k] = PICK((vector)(key > high[k]), key, high[k]);                         \
                });                                                                                \
            STORE((type *)planes + c, low, type);                                                  \
            STORE((type *)(planes + stride) + c, high, type);                                      \
        }                                                                                          \
    }

#define INDEX_KERNEL(op, name, element, type, vector, VECTORS, FLOATING, FLIP)                     \
    static void CONCAT(op##_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                   \
                                               const struct column_rows *in, size_t width) {       \
        EACH_ROW_BLOCK(element) {                                                                  \
            vector best[VECTORS], at[VECTORS];                                                     \
            memcpy(best, (type *)planes + c, sizeof best);                                         \
            memcpy(at, (type *)(planes + stride) + c, sizeof at);                                  \
            EACH_ROW(element, in->x, in->x_row, {                                                  \
                const vector index = (vector){0} + (type)(in->first + r * in->step);               \
                for (size_t k = 0; k < VECTORS; k++) {                                             \
                    const vector v = BITS_##name(p, k), plain = KEY_##name(v);                     \
                    vector key = plain ^ FLIP;                                                     \
                    if (FLOATING) {                                                                \
                        const vector nan = (vector)IS_NAN(name, plain);                            \
                        key = PICK(nan, (vector){0} - INF_MOST(type) - 1, key);                    \
                    }                                                                              \
                    const vector better = (vector)(key < best[k]);                                 \
                    best[k] = PICK(better, key, best[k]);                                          \
                    at[k] = PICK(better, index, at[k]);                                            \
                }                                                                                  \
            });                                                                                    \
            STORE((type *)planes + c, best, type);                                                 \
            STORE((type *)(planes + stride) + c, at, type);                                        \
        }                                                                                          \
    }
#define INF_MOST(type) (sizeof(type) == 4 ? (type)INT32_MAX : (type)INT64_MAX)

#define WORD_KERNEL(op, name, element, type, vector, VECTORS, TAKE)                                \
    static void CONCAT(op##_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                   \
                                               const struct column_rows *in, size_t width) {       \
        (void)stride;                                                                              \
        EACH_ROW_BLOCK(element) {                                                                  \
            vector word[VECTORS];                                                                  \
            memcpy(word, (type *)planes + c, sizeof word);                                         \
            EACH_ROW(                                                                              \
                element, in->x, in->x_row, for (size_t k = 0; k < VECTORS; k++) {                  \
                    const vector v = BITS_##name(p, k);                                            \
                    TAKE;                                                                          \
                });                                                                                \
            STORE((type *)planes + c, word, type);                                                 \
        }                                                                                          \
    }

#define KEY_KERNELS(name, element, type, vector, VECTORS, FLOATING)                                \
    ORDER_KERNEL(name, element, type, vector, VECTORS)                                             \
    INDEX_KERNEL(least, name, element, type, vector, VECTORS, FLOATING, 0)                         \
    INDEX_KERNEL(greatest, name, element, type, vector, VECTORS, FLOATING, -1)                     \
    WORD_KERNEL(and, name, element, type, vector, VECTORS, word[k] &= v)                           \
    WORD_KERNEL(or, name, element, type, vector, VECTORS, word[k] |= v)                            \
    WORD_KERNEL(xor, name, element, type, vector, VECTORS, word[k] ^= v)                           \
    WORD_KERNEL(                                                                                   \
        nonzero, name, element, type, vector, VECTORS, if (FLOATING) {                             \
            const vector key = KEY_##name(v);                                                      \
            word[k] -= (key != 0) & (key != -1);                                                   \
        } else word[k] -= v != 0)                                                                  \
    WORD_KERNEL(nans, name, element, type, vector, VECTORS, const vector key = KEY_##name(v);      \
                if (FLOATING) word[k] -= IS_NAN(name, key))

KEY_KERNELS(i8, loose_i8, int32_t, vi32, INTS, 0)
KEY_KERNELS(u8, loose_u8, int32_t, vi32, INTS, 0)
KEY_KERNELS(i16, loose_i16, int32_t, vi32, INTS, 0)
KEY_KERNELS(u16, loose_u16, int32_t, vi32, INTS, 0)
KEY_KERNELS(i32, loose_i32, int32_t, vi32, INTS, 0)
KEY_KERNELS(u32, loose_u32, int32_t, vi32, INTS, 0)
KEY_KERNELS(f16, loose_u16, int32_t, vi32, INTS, 1)
KEY_KERNELS(bf16, loose_u16, int32_t, vi32, INTS, 1)
KEY_KERNELS(f32, loose_f32, int32_t, vi32, INTS, 1)
KEY_KERNELS(i64, loose_i64, int64_t, vi64, DOUBLES, 0)
KEY_KERNELS(u64, loose_u64, int64_t, vi64, DOUBLES, 0)
KEY_KERNELS(f64, loose_f64, int64_t, vi64, DOUBLES, 1)

/* ---- Rows as columns ------------------------------------------------------------------------ */

#define TRANSPOSE(bytes, element, vector)                                                          \
    static void CONCAT(transpose_##bytes, TALLY_ISA)(const char *x, ptrdiff_t row, size_t rows,    \
                                                     size_t columns, size_t width, char *to) {     \
        element *out = (element *)to;                                                              \
        for (size_t r = 0; r < rows; r++) {                                                        \
            const element *from = (const element *)(x + (ptrdiff_t)r * row);                       \
            for (size_t c = 0; c < columns; c++)                                                   \
                out[c * width + r] = from[c];                                                      \
        }                                                                                          \
    }
TRANSPOSE(1, loose_u8, vu8)
TRANSPOSE(2, loose_u16, vu16)

#if defined(__AVX512F__)
/* Blocks of 8 x 8 by three rounds of exchanges. */
ALWAYS_INLINE void block_64(const char *x, ptrdiff_t row, __mmask8 there, size_t columns,
                            size_t width, uint64_t *out) {
    __m512i a[8], b[8];
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_maskz_loadu_epi64(there, x + i * row);
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 1]);
    }
    /* b[i]: lanes of columns 0 2 4 6 (or 1 3 5 7) of two rows */
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            a[i + j] = _mm512_shuffle_i64x2(b[i + j], b[i + j + 2], 0x88); /* columns j, j + 4 */
            a[i + j + 2] = _mm512_shuffle_i64x2(b[i + j], b[i + j + 2], 0xdd); /* j + 2, j + 6 */
        }
    for (size_t j = 0; j < 4; j++) {
        if (j < columns)
            _mm512_storeu_si512(out + j * width, _mm512_shuffle_i64x2(a[j], a[j + 4], 0x88));
        if (j + 4 < columns)
            _mm512_storeu_si512(out + (j + 4) * width, _mm512_shuffle_i64x2(a[j], a[j + 4], 0xdd));
    }
}

static void ISA_NAME(transpose_8)(const char *x, ptrdiff_t row, size_t rows, size_t columns,
                                  size_t width, char *to) {
    uint64_t *out = (uint64_t *)(void *)to;
    size_t r = 0;
    for (; r + 8 <= rows; r += 8)
        for (size_t c = 0; c < columns; c += 8) {
            const size_t m = columns - c < 8 ? columns - c : 8;
            block_64(x + (ptrdiff_t)r * row + c * 8, row, (__mmask8)((1u << m) - 1), m, width,
                     out + c * width + r);
        }
    for (; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            memcpy(out + c * width + r, x + (ptrdiff_t)r * row + c * 8, 8);
}

/* Blocks of 16 rows and 16 columns. */
ALWAYS_INLINE void block_32(const char *x, ptrdiff_t row, __mmask16 there, size_t columns,
                            size_t width, uint32_t *out) {
    __m512i a[16], b[16];
    for (int i = 0; i < 16; i++)
        a[i] = _mm512_maskz_loadu_epi32(there, x + i * row);
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) { /* a[i + q]: column q of each quarter, of four rows */
            a[i + 2 * j] = _mm512_unpacklo_epi64(b[i + j], b[i + j + 2]);
            a[i + 2 * j + 1] = _mm512_unpackhi_epi64(b[i + j], b[i + j + 2]);
        }
    for (int q = 0; q < 4; q++) {
        const __m512i even = _mm512_shuffle_i32x4(a[q], a[4 + q], 0x88),
                      odd = _mm512_shuffle_i32x4(a[q], a[4 + q], 0xdd),
                      even2 = _mm512_shuffle_i32x4(a[8 + q], a[12 + q], 0x88),
                      odd2 = _mm512_shuffle_i32x4(a[8 + q], a[12 + q], 0xdd);
        const __m512i column[4] = {
            _mm512_shuffle_i32x4(even, even2, 0x88), _mm512_shuffle_i32x4(odd, odd2, 0x88),
            _mm512_shuffle_i32x4(even, even2, 0xdd), _mm512_shuffle_i32x4(odd, odd2, 0xdd)};
        for (int j = 0; j < 4; j++) {
            const size_t c = (size_t)(4 * j + q);
            if (c < columns) _mm512_storeu_si512(out + c * width, column[j]);
        }
    }
}

static void ISA_NAME(transpose_4)(const char *x, ptrdiff_t row, size_t rows, size_t columns,
                                  size_t width, char *to) {
    uint32_t *out = (uint32_t *)(void *)to;
    size_t r = 0;
    for (; r + 16 <= rows; r += 16)
        for (size_t c = 0; c < columns; c += 16) {
            const size_t m = columns - c < 16 ? columns - c : 16;
            block_32(x + (ptrdiff_t)r * row + c * 4, row, (__mmask16)((1u << m) - 1), m, width,
                     out + c * width + r);
        }
    for (; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            memcpy(out + c * width + r, x + (ptrdiff_t)r * row + c * 4, 4);
}
#else
TRANSPOSE(4, loose_u32, vu32)
TRANSPOSE(8, loose_u64, vu64)
#endif

/* ---- Rounding ------------------------------------------------------------------------------- */

/* s + e to odd: where it is not exact, the neighbour of the two whose last bit is set. Rounded once more, to
 * a type of two bits less or fewer, it gives what s + e does. */
ALWAYS_INLINE double to_odd(double s, double e) {
    const double t = s + e, z = t - s, rest = (s - (t - z)) + (e - z);
    int64_t bits;
    memcpy(&bits, &t, sizeof bits);
    const int64_t away = (rest > 0) == (t > 0) ? 1 : -1;
    bits += rest != 0 && !(bits & 1) ? away : 0;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return e == 0 ? s : odd;
}

/* How far s + e may be off, and what adding that to e may be off. */
ALWAYS_INLINE double reach(double e, double b) {
    return b == 0 ? 0 : 2 * b + __builtin_fabs(e) * 0x1p-51;
}

static void ISA_NAME(round)(const double *s, const double *e, const double *b, size_t count,
                            tally_type type, uint64_t *bits, unsigned char *ok) {
    if (type == TALLY_F64) {
        for (size_t i = 0; i < count; i++) {
            const double d = reach(e[i], b[i]), low = s[i] + (e[i] - d), high = s[i] + (e[i] + d);
            const double value = e[i] == 0 && d == 0 ? s[i] : low;
            memcpy(&bits[i], &value, sizeof value);
            ok[i] = low == high;
        }
        return;
    }
    if (type == TALLY_F32) {
        for (size_t i = 0; i < count; i++) {
            const double d = reach(e[i], b[i]);
            const float low = (float)to_odd(s[i], e[i] - d), high = (float)to_odd(s[i], e[i] + d);
            uint32_t word;
            memcpy(&word, &low, sizeof word);
            bits[i] = word;
            ok[i] = low == high;
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const double d = reach(e[i], b[i]);
        const tally_value low = round_double(type, to_odd(s[i], e[i] - d));
        bits[i] = low.as.f16;
        ok[i] = s[i] + d < __builtin_inf() && s[i] - d > -__builtin_inf();
        if (d != 0) ok[i] &= round_double(type, to_odd(s[i], e[i] + d)).as.f16 == low.as.f16;
    }
}

/* s + e +- b divided by n, as s + e +- b. Not finite where some step may have underflowed. */
ALWAYS_INLINE void divide(double *s, double *e, double *b, double n) {
    const double t = *e == 0 ? *s : *s + *e, z = t - *s;
    const double rest = *e == 0 ? 0 : (*s - (t - z)) + (*e - z);
    const double q = t / n, r = __builtin_fma(-q, n, t) + rest, more = r / n;
    const int small = __builtin_fabs(t) < 0x1p-900 && t != 0;
    *s = q;
    *e = more;
    *b = small ? __builtin_inf() : (r == 0 ? 0 : __builtin_fabs(more) * 0x1p-51) + 2 * (*b / n);
}

static void ISA_NAME(mean)(double *s, double *e, double *b, size_t count, const double *n) {
    for (size_t i = 0; i < count; i++) {
        int64_t bits;
        memcpy(&bits, &n[i], sizeof bits);
        if ((bits & ((INT64_C(1) << 52) - 1)) == 0 && __builtin_fabs(s[i]) > 0x1p-800 &&
            (e[i] == 0 || __builtin_fabs(e[i]) > 0x1p-900)) { /* a power of two */
            s[i] /= n[i];
            e[i] /= n[i];
            b[i] = b[i] == 0 ? 0 : b[i] / n[i] + 0x1p-1000;
        } else
            divide(&s[i], &e[i], &b[i], n[i]);
    }
}

static void ISA_NAME(variance)(double *s, double *e, double *b, const double *q, const double *qe,
                               const double *qb, size_t count, const double *n, double ddof,
                               int root) {
    for (size_t i = 0; i < count; i++) {
        /* t + u is the sum, v + w that of the squares */
        const double t = s[i] + e[i], z = t - s[i], u = (s[i] - (t - z)) + (e[i] - z);
        const double v = q[i] + qe[i], y = v - q[i], w = (q[i] - (v - y)) + (qe[i] - y);
        const double t2 = t * t, low2 = __builtin_fma(t, t, -t2) + 2 * (t * u);
        const double nv = n[i] * v, low = __builtin_fma(n[i], v, -nv) + n[i] * w;
        const double d = nv - t2, x = d - nv, error = (nv - (d - x)) + (-t2 - x);
        double bound =
            0x1p-98 * (nv + t2) + 2 * n[i] * qb[i] + 4 * __builtin_fabs(t) * b[i] + 2 * b[i] * b[i];
        double high = d, rest = error + (low - low2);
        const double divisor = n[i] * (n[i] - ddof);
        const int fits = t2 > 0x1p-700 && nv < 0x1p900 && n[i] < 0x1p26 && n[i] > ddof;
        divide(&high, &rest, &bound, divisor);
        if (root) {
            const double whole = high + rest, first = __builtin_sqrt(whole);
            const double left = __builtin_fma(-first, first, high) + rest;
            const double more = left / (2 * first);
            bound = bound / first + __builtin_fabs(first) * 0x1p-98;
            high = first;
            rest = more;
        }
        s[i] = high;
        e[i] = rest;
        b[i] = fits && high > 0 ? bound : __builtin_inf();
    }
}

/* ---- The table ------------------------------------------------------------------------------ */

#define SUM_FORM(kernel, name)                                                                     \
    { 3, 8, ISA_NAME(clear_sum), CONCAT(kernel##_##name, TALLY_ISA), ISA_NAME(merge_sum) }
#define KEY_FORM(planes, lane, clear, kernel, name, merge)                                         \
    {                                                                                              \
        planes, lane / 8, CONCAT(clear##_##lane, TALLY_ISA), CONCAT(kernel##_##name, TALLY_ISA),   \
            CONCAT(merge##_##lane, TALLY_ISA)                                                      \
    }

#define FLOATS(X)                                                                                  \
    X(I8, i8)                                                                                      \
    X(I16, i16)                                                                                    \
    X(I32, i32)                                                                                    \
    X(U8, u8)                                                                                      \
    X(U16, u16) X(U32, u32) X(F16, f16) X(BF16, bf16) X(F32, f32) X(F64, f64)
#define SHORT(X)                                                                                   \
    X(I8, i8, 32)                                                                                  \
    X(I16, i16, 32)                                                                                \
    X(I32, i32, 32)                                                                                \
    X(U8, u8, 32) X(U16, u16, 32) X(U32, u32, 32) X(F16, f16, 32) X(BF16, bf16, 32) X(F32, f32, 32)
#define LONG(X)                                                                                    \
    X(I64, i64, 64)                                                                                \
    X(U64, u64, 64)                                                                                \
    X(F64, f64, 64)
#define ALL(X)                                                                                     \
    SHORT(X)                                                                                       \
    LONG(X)

#define ONE(NAME, name)        [TALLY_##NAME] = SUM_FORM(one, name),
#define TWO(NAME, name)        [TALLY_##NAME] = SUM_FORM(two, name),
#define MAGNITUDES(NAME, name) [TALLY_##NAME] = SUM_FORM(magnitudes, name),
#define SQUARES(NAME, name)    [TALLY_##NAME] = SUM_FORM(squares, name),
#define PRODUCTS(NAME, name)   [TALLY_##NAME] = SUM_FORM(products, name),
#define ORDER(NAME, name, lane)                                                                    \
    [TALLY_##NAME] = KEY_FORM(2, lane, clear_order, order, name, merge_order),
#define LEAST(NAME, name, lane)                                                                    \
    [TALLY_##NAME] = KEY_FORM(2, lane, clear_index, least, name, merge_index),
#define GREATEST(NAME, name, lane)                                                                 \
    [TALLY_##NAME] = KEY_FORM(2, lane, clear_index, greatest, name, merge_index),
#define AND(NAME, name, lane) [TALLY_##NAME] = KEY_FORM(1, lane, clear_ones, and, name, merge_and),
#define OR(NAME, name, lane)  [TALLY_##NAME] = KEY_FORM(1, lane, clear_zero, or, name, merge_or),
#define XOR(NAME, name, lane) [TALLY_##NAME] = KEY_FORM(1, lane, clear_zero, xor, name, merge_xor),
#define NONZERO(NAME, name, lane)                                                                  \
    [TALLY_##NAME] = KEY_FORM(1, lane, clear_zero, nonzero, name, merge_count),
#define NANS(NAME, name, lane)                                                                     \
    [TALLY_##NAME] = KEY_FORM(1, lane, clear_zero, nans, name, merge_count),

const struct column_kernels ISA_NAME(column_kernels) = {
    .form = {[FORM_SUM1] = {FLOATS(ONE)},
             [FORM_SUM2] = {FLOATS(TWO)},
             [FORM_MAGNITUDES] = {FLOATS(MAGNITUDES)},
             [FORM_SQUARES] = {FLOATS(SQUARES)},
             [FORM_PRODUCTS] = {FLOATS(PRODUCTS)},
             [FORM_WIDE] = {[TALLY_I64] = {2, 8, ISA_NAME(clear_words), ISA_NAME(wide_i64),
                                           ISA_NAME(merge_wide)},
                            [TALLY_U64] = {2, 8, ISA_NAME(clear_words), ISA_NAME(wide_u64),
                                           ISA_NAME(merge_wide)}},
             [FORM_ORDER] = {ALL(ORDER)},
             [FORM_LEAST] = {ALL(LEAST)},
             [FORM_GREATEST] = {ALL(GREATEST)},
             [FORM_AND] = {ALL(AND)},
             [FORM_OR] = {ALL(OR)},
             [FORM_XOR] = {ALL(XOR)},
             [FORM_NONZERO] = {ALL(NONZERO)},
             [FORM_NANS] = {ALL(NANS)}},
    .transpose = {[1] = ISA_NAME(transpose_1),
                  [2] = ISA_NAME(transpose_2),
                  [4] = ISA_NAME(transpose_4),
                  [8] = ISA_NAME(transpose_8)},
    .round = ISA_NAME(round),
    .mean = ISA_NAME(mean),
    .variance = ISA_NAME(variance),
};
