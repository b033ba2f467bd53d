/*
 * column_words.c - the forms of columns that are integers: sums of 64-bit integers, keys whose extremes are wanted, bits, and
 * counts; of one instruction set.
 */
#include "cpu/column_kernels.h"
#include "cpu/column_rows.h"

/* ---- 64-bit integers ------------------------------------------------------------------------ */

static void ISA_NAME(clear_words)(uint64_t *planes, size_t stride, size_t width, uint64_t first) {
    (void)first;
    for (size_t c = 0; c < width; c++)
        planes[c] = planes[stride + c] = 0;
}

#define WIDE_KERNEL(name, element, vector)                                                         \
    COLUMN_KERNEL(                                                                                 \
        wide, name, uint64_t, 2, EACH_ROW_BLOCK(element) {                                         \
            vi64 low[DOUBLES], high[DOUBLES];                                                      \
            FETCH(low, planes + c, uint64_t);                                                      \
            FETCH(high, planes + stride + c, uint64_t);                                            \
            EACH_ROW(                                                                              \
                element, in->x, in->x_row, for (size_t k = 0; k < DOUBLES; k++) {                  \
                    const vector v = (vector)BITS_i64(p, k);                                       \
                    low[k] += (vi64)(v & 0xffffffff);                                              \
                    high[k] += (vi64)(v >> 32);                                                    \
                });                                                                                \
            STORE(planes + c, low, uint64_t);                                                      \
            STORE(planes + stride + c, high, uint64_t);                                            \
        })
WIDE_KERNEL(i64, unaligned_i64, vi64)
WIDE_KERNEL(u64, unaligned_u64, vu64)

static void ISA_NAME(merge_wide)(uint64_t *into, size_t to, const uint64_t *other, size_t from,
                                 size_t stride, size_t width) {
    KERNEL_PATH("");
    for (size_t c = 0; c < width; c++) {
        into[to + c] += other[from + c];
        into[stride + to + c] += other[stride + from + c];
    }
}

/* ---- Keys ----------------------------------------------------------------------------------- */

/* clear() and merge() of forms whose lanes have `lane` bits: int32_t or int64_t. A plane has 8 bytes a column in either
 * case. */
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
        KERNEL_PATH("");                                                                           \
        type *low = (type *)into + to, *high = (type *)(into + stride) + to;                       \
        const type *low2 = (const type *)other + from,                                             \
                   *high2 = (const type *)(other + stride) + from;                                 \
        for (size_t c = 0; c < width; c += LANES(type)) {                                          \
            vector l = VECTOR_LOAD(vector, low + c), g = VECTOR_LOAD(vector, high + c);            \
            const vector l2 = VECTOR_LOAD(vector, low2 + c), g2 = VECTOR_LOAD(vector, high2 + c);  \
            l = PICK((vector)(l2 < l), l2, l);                                                     \
            g = PICK((vector)(g2 > g), g2, g);                                                     \
            memcpy(low + c, &l, sizeof l);                                                         \
            memcpy(high + c, &g, sizeof g);                                                        \
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
        KERNEL_PATH("");                                                                           \
        type *key = (type *)into + to, *index = (type *)(into + stride) + to;                      \
        const type *key2 = (const type *)other + from,                                             \
                   *index2 = (const type *)(other + stride) + from;                                \
        for (size_t c = 0; c < width; c += LANES(type)) {                                          \
            vector a = VECTOR_LOAD(vector, key + c), i = VECTOR_LOAD(vector, index + c);           \
            const vector b = VECTOR_LOAD(vector, key2 + c), j = VECTOR_LOAD(vector, index2 + c);   \
            const vector better = (vector)(b < a) | ((vector)(b == a) & (vector)(j < i));          \
            a = PICK(better, b, a);                                                                \
            i = PICK(better, j, i);                                                                \
            memcpy(key + c, &a, sizeof a);                                                         \
            memcpy(index + c, &i, sizeof i);                                                       \
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
        KERNEL_PATH("");                                                                           \
        (void)stride;                                                                              \
        for (size_t c = 0; c < width; c++)                                                         \
            ((type *)into)[to + c] combine((const type *)other)[from + c];                         \
    }
KEY_FORMS(32, int32_t, vi32, INTS, INT32_MAX)
KEY_FORMS(64, int64_t, vi64, DOUBLES, INT64_MAX)

#define IS_NAN(name, key) (((key) > INF_##name) | ((key) < ~INF_##name))

#define ORDER_KERNEL(name, element, type, vector, VECTORS, LOWER, HIGHER)                          \
    COLUMN_KERNEL(                                                                                 \
        order, name, type, 2, EACH_ROW_BLOCK(element) {                                            \
            vector low[VECTORS], high[VECTORS];                                                    \
            if (in->starts && r0 == 0)                                                             \
                for (size_t k = 0; k < VECTORS; k++) {                                             \
                    low[k] = (vector){0} + INF_MOST(type);                                         \
                    high[k] = ~low[k];                                                             \
                }                                                                                  \
            else {                                                                                 \
                FETCH(low, (type *)planes + c, type);                                              \
                FETCH(high, (type *)(planes + stride) + c, type);                                  \
            }                                                                                      \
            EACH_ROW(                                                                              \
                element, in->x, in->x_row, for (size_t k = 0; k < VECTORS; k++) {                  \
                    const vector v = BITS_##name(p, k), key = KEY_##name(v);                       \
                    low[k] = LOWER(key, low[k]);                                                   \
                    high[k] = HIGHER(key, high[k]);                                                \
                });                                                                                \
            STORE((type *)planes + c, low, type);                                                  \
            STORE((type *)(planes + stride) + c, high, type);                                      \
        })

#define INDEX_KERNEL(op, name, element, type, vector, VECTORS, FLOATING, FLIP)                     \
    COLUMN_KERNEL(                                                                                 \
        op, name, type, 2, EACH_ROW_BLOCK(element) {                                               \
            vector best[VECTORS], at[VECTORS];                                                     \
            if (in->starts && r0 == 0)                                                             \
                for (size_t k = 0; k < VECTORS; k++) {                                             \
                    best[k] = (vector){0} + INF_MOST(type);                                        \
                    at[k] = (vector){0} + (type)in->first;                                         \
                }                                                                                  \
            else {                                                                                 \
                FETCH(best, (type *)planes + c, type);                                             \
                FETCH(at, (type *)(planes + stride) + c, type);                                    \
            }                                                                                      \
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
        })
#define INF_MOST(type) (sizeof(type) == 4 ? (type)INT32_MAX : (type)INT64_MAX)

#define WORD_KERNEL(op, name, element, type, vector, VECTORS, TAKE)                                \
    COLUMN_KERNEL(op, name, type, 1, {                                                             \
        (void)stride;                                                                              \
        EACH_ROW_BLOCK(element) {                                                                  \
            vector word[VECTORS];                                                                  \
            FETCH(word, (type *)planes + c, type);                                                 \
            EACH_ROW(                                                                              \
                element, in->x, in->x_row, for (size_t k = 0; k < VECTORS; k++) {                  \
                    const vector v = BITS_##name(p, k);                                            \
                    TAKE;                                                                          \
                });                                                                                \
            STORE((type *)planes + c, word, type);                                                 \
        }                                                                                          \
    })

#define KEY_KERNELS(name, element, type, vector, VECTORS, FLOATING, bits)                          \
    ORDER_KERNEL(name, element, type, vector, VECTORS, LOWER_##bits, HIGHER_##bits)                \
    INDEX_KERNEL(least, name, element, type, vector, VECTORS, FLOATING, 0)                         \
    INDEX_KERNEL(greatest, name, element, type, vector, VECTORS, FLOATING, -1)

/* Kernels for which an element is bits alone. Lanes are as wide as those of keys; bits above an element's are
 * ignored. */
#define WORD_KERNELS(name, element, type, vector, VECTORS)                                         \
    WORD_KERNEL(and, name, element, type, vector, VECTORS, word[k] &= v)                           \
    WORD_KERNEL(or, name, element, type, vector, VECTORS, word[k] |= v)                            \
    WORD_KERNEL(xor, name, element, type, vector, VECTORS, word[k] ^= v)                           \
    WORD_KERNEL(nonzero, name, element, type, vector, VECTORS, word[k] -= v != 0)
#define NUMBER_KERNELS(name, element, type, vector, VECTORS)                                       \
    WORD_KERNEL(nonzero, name, element, type, vector, VECTORS, const vector key = KEY_##name(v);   \
                word[k] -= (key != 0) & (key != -1))                                               \
    WORD_KERNEL(nans, name, element, type, vector, VECTORS, const vector key = KEY_##name(v);      \
                word[k] -= IS_NAN(name, key))

KEY_KERNELS(i8, unaligned_i8, int32_t, vi32, INTS, 0, 32)
KEY_KERNELS(u8, unaligned_u8, int32_t, vi32, INTS, 0, 32)
KEY_KERNELS(i16, unaligned_i16, int32_t, vi32, INTS, 0, 32)
KEY_KERNELS(u16, unaligned_u16, int32_t, vi32, INTS, 0, 32)
KEY_KERNELS(i32, unaligned_i32, int32_t, vi32, INTS, 0, 32)
KEY_KERNELS(u32, unaligned_u32, int32_t, vi32, INTS, 0, 32)
KEY_KERNELS(f16, unaligned_u16, int32_t, vi32, INTS, 1, 32)
KEY_KERNELS(bf16, unaligned_u16, int32_t, vi32, INTS, 1, 32)
KEY_KERNELS(f32, unaligned_f32, int32_t, vi32, INTS, 1, 32)
KEY_KERNELS(i64, unaligned_i64, int64_t, vi64, DOUBLES, 0, 64)
KEY_KERNELS(u64, unaligned_u64, int64_t, vi64, DOUBLES, 0, 64)
KEY_KERNELS(f64, unaligned_f64, int64_t, vi64, DOUBLES, 1, 64)
WORD_KERNELS(i8, unaligned_i8, int32_t, vi32, INTS)
WORD_KERNELS(i16, unaligned_i16, int32_t, vi32, INTS)
WORD_KERNELS(i32, unaligned_i32, int32_t, vi32, INTS)
WORD_KERNELS(i64, unaligned_i64, int64_t, vi64, DOUBLES)
NUMBER_KERNELS(f16, unaligned_u16, int32_t, vi32, INTS)
NUMBER_KERNELS(bf16, unaligned_u16, int32_t, vi32, INTS)
NUMBER_KERNELS(f32, unaligned_f32, int32_t, vi32, INTS)
NUMBER_KERNELS(f64, unaligned_f64, int64_t, vi64, DOUBLES)

/* Finds no NaNs: no integer is one. */
static void ISA_NAME(no_nans)(uint64_t *planes, size_t stride, const struct column_rows *in,
                              size_t width) {
    KERNEL_PATH("");
    (void)planes, (void)stride, (void)in, (void)width;
}
static void ISA_NAME(each_no_nans)(uint64_t *planes, size_t stride, const struct column_rows *in,
                                   const uint32_t *group, size_t width) {
    (void)group;
    ISA_NAME(no_nans)(planes, stride, in, width);
}

#define UNKEY(lane)                                                                                \
    for (size_t i = 0; i < width; i++) {                                                           \
        const lane l = ((const lane *)low)[i], g = ((const lane *)high)[i];                        \
        const int64_t key = how.greatest ? g : l;                                                  \
        const uint64_t value = (uint64_t)(key ^ ((key >> 63) & how.flip) ^ how.turn) & how.all;    \
        bits[i] = ((g > (lane)how.infinity) | (l < (lane)~how.infinity)) ? how.nan : value;        \
    }

void ISA_NAME(unkey)(const uint64_t *low, const uint64_t *high, unsigned lane, size_t width,
                     const struct key_bits *form, uint64_t *restrict bits) {
    struct key_bits how = *form;
    if (lane == 4) {
        KERNEL_PATH("of 32 bits");
        if (how.infinity > INT32_MAX) how.infinity = INT32_MAX; /* no key is above it */
        UNKEY(int32_t)
    } else {
        KERNEL_PATH("of 64 bits");
        UNKEY(int64_t)
    }
}

/* ---- The tables ----------------------------------------------------------------------------- */

#define INTEGERS(X)                                                                                \
    X(I8, 32) X(I16, 32) X(I32, 32) X(I64, 64) X(U8, 32) X(U16, 32) X(U32, 32) X(U64, 64)
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
/* X(NAME, bits, name, lane): a type, the type whose kernels of bits it uses, the type whose kernel counts what is not
 * zero, and the bits of a lane. */
#define WORDS(X)                                                                                   \
    X(I8, i8, i8, 32)                                                                              \
    X(I16, i16, i16, 32)                                                                           \
    X(I32, i32, i32, 32)                                                                           \
    X(I64, i64, i64, 64)                                                                           \
    X(U8, i8, i8, 32)                                                                              \
    X(U16, i16, i16, 32)                                                                           \
    X(U32, i32, i32, 32)                                                                           \
    X(U64, i64, i64, 64)                                                                           \
    X(F16, i16, f16, 32) X(BF16, i16, bf16, 32) X(F32, i32, f32, 32) X(F64, i64, f64, 64)

#define KEY_FORM(planes, lane, starts, clear, kernel, name, merge)                                 \
    {                                                                                              \
        planes, lane / 8, starts, CONCAT(changed_##kernel##_##name, TALLY_ISA),                    \
            CONCAT(clear##_##lane, TALLY_ISA), CONCAT(kernel##_##name, TALLY_ISA),                 \
            CONCAT(each_##kernel##_##name, TALLY_ISA), CONCAT(merge##_##lane, TALLY_ISA)           \
    }
#define ORDER(NAME, name, lane)                                                                    \
    [TALLY_##NAME] = KEY_FORM(2, lane, 1, clear_order, order, name, merge_order),
#define LEAST(NAME, name, lane)                                                                    \
    [TALLY_##NAME] = KEY_FORM(2, lane, 1, clear_index, least, name, merge_index),
#define GREATEST(NAME, name, lane)                                                                 \
    [TALLY_##NAME] = KEY_FORM(2, lane, 1, clear_index, greatest, name, merge_index),
#define AND(NAME, bits, name, lane)                                                                \
    [TALLY_##NAME] = KEY_FORM(1, lane, 0, clear_ones, and, bits, merge_and),
#define OR(NAME, bits, name, lane)                                                                 \
    [TALLY_##NAME] = KEY_FORM(1, lane, 0, clear_zero, or, bits, merge_or),
#define XOR(NAME, bits, name, lane)                                                                \
    [TALLY_##NAME] = KEY_FORM(1, lane, 0, clear_zero, xor, bits, merge_xor),
#define NONZERO(NAME, bits, name, lane)                                                            \
    [TALLY_##NAME] = KEY_FORM(1, lane, 0, clear_zero, nonzero, name, merge_count),
#define NANS(NAME, name, lane)                                                                     \
    [TALLY_##NAME] = KEY_FORM(1, lane, 0, clear_zero, nans, name, merge_count),
#define NO_NANS(NAME, lane)                                                                        \
    [TALLY_##NAME] = {1,                                                                           \
                      lane / 8,                                                                    \
                      0,                                                                           \
                      0,                                                                           \
                      CONCAT(clear_zero_##lane, TALLY_ISA),                                        \
                      ISA_NAME(no_nans),                                                           \
                      ISA_NAME(each_no_nans),                                                      \
                      CONCAT(merge_count_##lane, TALLY_ISA)},

column_forms ISA_NAME(forms_wide) = {
    [TALLY_I64] = {2, 8, 0, 2, ISA_NAME(clear_words), ISA_NAME(wide_i64), ISA_NAME(each_wide_i64),
                   ISA_NAME(merge_wide)},
    [TALLY_U64] = {2, 8, 0, 2, ISA_NAME(clear_words), ISA_NAME(wide_u64), ISA_NAME(each_wide_u64),
                   ISA_NAME(merge_wide)}};
column_forms ISA_NAME(forms_order) = {ALL(ORDER)};
column_forms ISA_NAME(forms_least) = {ALL(LEAST)};
column_forms ISA_NAME(forms_greatest) = {ALL(GREATEST)};
column_forms ISA_NAME(forms_and) = {WORDS(AND)};
column_forms ISA_NAME(forms_or) = {WORDS(OR)};
column_forms ISA_NAME(forms_xor) = {WORDS(XOR)};
column_forms ISA_NAME(forms_nonzero) = {WORDS(NONZERO)};
column_forms ISA_NAME(forms_nans) = {NANS(F16, f16, 32) NANS(BF16, bf16, 32) NANS(F32, f32, 32)
                                         NANS(F64, f64, 64) INTEGERS(NO_NANS)};
