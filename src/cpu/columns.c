/* columns.c - the kernels of columns.h, of one instruction set. */
#include "cpu/columns.h"
#include "cpu/column_arithmetic.h"
#include "exact/round.h"

/* A step's planes, vector by vector so that they stay in registers; of the last step only the columns that
 * are there are stored. */
#define FETCH(into, from, type)                                                                    \
    for (size_t k = 0; k < sizeof into / sizeof into[0]; k++)                                      \
    memcpy(&into[k], (const type *)(from) + k * LANES(type), TALLY_VECTOR)
#define STORE(to, from, type)                                                                      \
    do {                                                                                           \
        type some_[STEP];                                                                          \
        type *into_ = width - c >= STEP ? (type *)(to) : some_;                                    \
        for (size_t k = 0; k < sizeof from / sizeof from[0]; k++)                                  \
            memcpy(into_ + k * LANES(type), &from[k], TALLY_VECTOR);                               \
        if (width - c < STEP) memcpy(to, some_, (width - c) * sizeof(type));                       \
    } while (0)

#define EACH_ROW_BLOCK(element)                                                                    \
    KERNEL_PATH("of columns");                                                                     \
    for (size_t r0 = 0; r0 < in->rows; r0 += ROWS_AT_ONCE)                                         \
        for (size_t c = 0; c < width; c += STEP)

/* Does what comes last for rows [r0, r1) of the step at column c: `p` is the row's elements. Those of a last step that
 * is not whole are copied first and filled up. What is asked for ahead: the same columns of the next rows; where there
 * are none, the next columns. Rows that are far apart have loads of their own each, where registers suffice: a processor
 * tells its streams apart by the instructions that read them. */
#define EACH_ROW(element, base, pitch, ...)                                                        \
    do {                                                                                           \
        const size_t r1 = in->rows - r0 < ROWS_AT_ONCE ? in->rows : r0 + ROWS_AT_ONCE;             \
        const int dense = (pitch) == (ptrdiff_t)(width * sizeof(element));                         \
        const int apart = (pitch) >= COLUMNS_APART || (pitch) <= -COLUMNS_APART;                   \
        const ptrdiff_t next = (pitch)*ROWS_AT_ONCE;                                               \
        const ptrdiff_t ahead = dense ? (next > 8192 ? next : 8192) : r1 < in->rows ? next : 4096; \
        element some[ROWS_AT_ONCE][STEP];                                                          \
        ptrdiff_t step;                                                                            \
        const char *at_row = WHOLE_ROWS(element, base, pitch, some, &step);                        \
        if (TALLY_VECTOR == 64 && apart && r1 - r0 == ROWS_AT_ONCE) UNROLL(8)                      \
        for (size_t i_ = 0; i_ < ROWS_AT_ONCE; i_++) {                                             \
            const size_t r = r0 + i_;                                                              \
            (void)r;                                                                               \
            const element *p = (const element *)(at_row + (ptrdiff_t)i_ * step);                   \
            PREFETCH(p, STEP * sizeof(element), ahead, 2);                                         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
        else for (size_t r = r0; r < r1; r++, at_row += step) {                                    \
            const element *p = (const element *)at_row;                                            \
            PREFETCH(p, STEP * sizeof(element), ahead, 2);                                         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    } while (0)
_Static_assert(ROWS_AT_ONCE == 8, "rows are unrolled");
#define WHOLE_ROWS(element, base, pitch, some, step)                                               \
    whole_rows((base) + (ptrdiff_t)r0 * (pitch) + c * sizeof(element), pitch, r1 - r0,             \
               (width - c) * sizeof(element), STEP * sizeof(element), (char *)(some), step)

/* Returns where rows lie, and in *step how far apart; a step takes `whole` bytes of each, and
 * `bytes` are left. If they are shorter than a step, it is a copy filled up with zeros. */
ALWAYS_INLINE const char *whole_rows(const char *x, ptrdiff_t pitch, size_t rows, size_t bytes,
                                     size_t whole, char *copy, ptrdiff_t *step) {
    *step = pitch;
    if (bytes >= whole) return x;
    *step = (ptrdiff_t)whole;
    memset(copy, 0, rows * whole);
    for (size_t r = 0; r < rows; r++)
        memcpy(copy + r * whole, x + (ptrdiff_t)r * pitch, bytes);
    return copy;
}

/* ---- Sums ----------------------------------------------------------------------------------- */

static void ISA_NAME(clear_sum)(uint64_t *planes, size_t stride, size_t width, uint64_t first) {
    double *s = (double *)planes;
    (void)first;
    for (size_t c = 0; c < width; c++) {
        s[c] = -0.0; /* adds nothing, not even a sign */
        s[stride + c] = s[2 * stride + c] = 0;
    }
}

/* Below this the error of a product may have been rounded. */
#define PRODUCT_LEAST 0x1p-960

#define ADD_ONE(v) b[k] += absolute(two_sum(s[k], v, &s[k]))
/* The same if nothing is left over: that is so if and only if the sum less either of the two is the other one. Else
 * left[k] has bits set. */
#define TRY_ONE(v)                                                                                 \
    do {                                                                                           \
        const vf64 before = s[k], t = before + (v);                                                \
        left[k] = note_difference(left[k], (vi64)(t - before), (vi64)(v));                         \
        left[k] = note_difference(left[k], (vi64)MINUS(t, v), (vi64)before);                       \
        s[k] = t;                                                                                  \
    } while (0)
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

/* Takes the first number of a column: one that is not finite makes the bound a NaN. */
#define FIRST(v)                                                                                   \
    do {                                                                                           \
        s[k] = (v);                                                                                \
        b[k] = (v) - (v);                                                                          \
    } while (0)

/* The planes of a step: as they are in memory, or of nothing. -0 adds nothing, not even a sign. */
#define FETCH_SUM(s, e, b, at)                                                                     \
    const int starts = in->starts && r0 == 0;                                                      \
    FETCH_AGAIN(s, e, b, at)
#define FETCH_AGAIN(s, e, b, at)                                                                   \
    for (size_t k = 0; k < DOUBLES; k++)                                                           \
        if (starts) {                                                                              \
            s[k] = -(vf64){0};                                                                     \
            e[k] = b[k] = (vf64){0};                                                               \
        } else {                                                                                   \
            s[k] = VECTOR_LOAD(vf64, (at) + k * LANES(double));                                    \
            e[k] = VECTOR_LOAD(vf64, (at) + stride + k * LANES(double));                           \
            b[k] = VECTOR_LOAD(vf64, (at) + 2 * stride + k * LANES(double));                       \
        }

#define SUM_KERNEL(op, name, element, ADD, FIRST)                                                  \
    static void CONCAT(op##_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                   \
                                               const struct column_rows *in, size_t width) {       \
        EACH_ROW_BLOCK(element) {                                                                  \
            double *at = (double *)planes + c;                                                     \
            vf64 s[DOUBLES], e[DOUBLES], b[DOUBLES];                                               \
            FETCH_SUM(s, e, b, at)                                                                 \
            EACH_ROW(                                                                              \
                element, in->x, in->x_row, for (size_t k = 0; k < DOUBLES; k++) {                  \
                    const vf64 v = DOUBLE_##name(p, k);                                            \
                    if (starts && r == 0)                                                          \
                        FIRST(v);                                                                  \
                    else                                                                           \
                        ADD(v);                                                                    \
                });                                                                                \
            STORE(at, s, double);                                                                  \
            STORE(at + stride, e, double);                                                         \
            STORE(at + 2 * stride, b, double);                                                     \
        }                                                                                          \
    }

/* Rows of a step, widened to the elements of a kernel: those that are not there are 0. */
#define WIDEN(name, element, wide, LOADED)                                                         \
    static void CONCAT(widen_##name, TALLY_ISA)(const char *x, ptrdiff_t pitch, size_t rows,       \
                                                size_t columns, void *to) {                        \
        KERNEL_PATH("");                                                                           \
        element some[STEP] = {0};                                                                  \
        for (size_t r = 0; r < rows; r++, x += pitch) {                                            \
            const element *p = (const element *)x;                                                 \
            PREFETCH(p, sizeof some, pitch *ROWS_AT_ONCE, 2);                                      \
            if (columns < STEP) p = memcpy(some, x, columns * sizeof *p);                          \
            wide *out = (wide *)to + r * STEP;                                                     \
            for (size_t k = 0; k < STEP / LANES(wide); k++) {                                      \
                const VECTOR_OF(wide) v = LOADED;                                                  \
                memcpy(out + k * LANES(wide), &v, sizeof v);                                       \
            }                                                                                      \
        }                                                                                          \
    }
WIDEN(i8, unaligned_i8, float, __builtin_convertvector(BITS_i8(p, k), vf32))
WIDEN(i16, unaligned_i16, float, __builtin_convertvector(BITS_i16(p, k), vf32))
WIDEN(u8, unaligned_u8, float, __builtin_convertvector(BITS_u8(p, k), vf32))
WIDEN(u16, unaligned_u16, float, __builtin_convertvector(BITS_u16(p, k), vf32))
WIDEN(f16, unaligned_u16, float, LOAD_F16(p + k * LANES(float)))
WIDEN(bf16, unaligned_u16, float, LOAD_BF16(p + k * LANES(float)))
WIDEN(i32, unaligned_i32, double, DOUBLE_i32(p, k))
WIDEN(u32, unaligned_u32, double, DOUBLE_u32(p, k))
typedef void widen_rows(const char *x, ptrdiff_t pitch, size_t rows, size_t columns, void *to);

/* The kernels of elements that are widened first, `bytes` of them each: code of its own for every type would run no
 * faster, and take long to compile. */
#define WIDE_SUM_KERNEL(op, name, element, ADD, FIRST)                                             \
    static ONE_COPY void CONCAT(op##_wide_##name, TALLY_ISA)(                                      \
        uint64_t * planes, size_t stride, const struct column_rows *in, size_t width,              \
        widen_rows *widen, size_t bytes) {                                                         \
        EACH_ROW_BLOCK(element) {                                                                  \
            double *at = (double *)planes + c;                                                     \
            const size_t rows = in->rows - r0 < ROWS_AT_ONCE ? in->rows - r0 : ROWS_AT_ONCE;       \
            element tile[ROWS_AT_ONCE][STEP];                                                      \
            vf64 s[DOUBLES], e[DOUBLES], b[DOUBLES];                                               \
            widen(in->x + (ptrdiff_t)r0 * in->x_row + c * bytes, in->x_row, rows, width - c,       \
                  tile);                                                                           \
            FETCH_SUM(s, e, b, at)                                                                 \
            for (size_t r = 0; r < rows; r++)                                                      \
                for (size_t k = 0; k < DOUBLES; k++) {                                             \
                    const vf64 v = DOUBLE_##name(tile[r], k);                                      \
                    if (starts && r == 0)                                                          \
                        FIRST(v);                                                                  \
                    else                                                                           \
                        ADD(v);                                                                    \
                }                                                                                  \
            STORE(at, s, double);                                                                  \
            STORE(at + stride, e, double);                                                         \
            STORE(at + 2 * stride, b, double);                                                     \
        }                                                                                          \
    }
#define WIDE_PAIR_KERNEL(name, element, ADD)                                                       \
    static ONE_COPY void CONCAT(products_wide_##name, TALLY_ISA)(                                  \
        uint64_t * planes, size_t stride, const struct column_rows *in, size_t width,              \
        widen_rows *widen, size_t bytes) {                                                         \
        EACH_ROW_BLOCK(element) {                                                                  \
            double *at = (double *)planes + c;                                                     \
            const size_t rows = in->rows - r0 < ROWS_AT_ONCE ? in->rows - r0 : ROWS_AT_ONCE;       \
            element tile[ROWS_AT_ONCE][STEP], other[ROWS_AT_ONCE][STEP];                           \
            vf64 s[DOUBLES], e[DOUBLES], b[DOUBLES];                                               \
            widen(in->x + (ptrdiff_t)r0 * in->x_row + c * bytes, in->x_row, rows, width - c,       \
                  tile);                                                                           \
            widen(in->y + (ptrdiff_t)r0 * in->y_row + c * bytes, in->y_row, rows, width - c,       \
                  other);                                                                          \
            FETCH_SUM(s, e, b, at)                                                                 \
            for (size_t r = 0; r < rows; r++)                                                      \
                for (size_t k = 0; k < DOUBLES; k++) {                                             \
                    const vf64 v = DOUBLE_##name(tile[r], k), w = DOUBLE_##name(other[r], k);      \
                    ADD(v, w);                                                                     \
                }                                                                                  \
            STORE(at, s, double);                                                                  \
            STORE(at + stride, e, double);                                                         \
            STORE(at + 2 * stride, b, double);                                                     \
        }                                                                                          \
    }

/* Sums in one double. Rows are added as if nothing were left over; where something is, they are added once more, with
 * a bound, and the next COLUMNS_TRY_AGAIN steps are not tried without one. */
#define ONE_KERNEL(name, element, AGAIN)                                                           \
    static void CONCAT(one_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                    \
                                              const struct column_rows *in, size_t width) {        \
        unsigned wait = 0;                                                                         \
        EACH_ROW_BLOCK(element) {                                                                  \
            double *at = (double *)planes + c;                                                     \
            vf64 s[DOUBLES], e[DOUBLES], b[DOUBLES];                                               \
            vi64 left[DOUBLES];                                                                    \
            FETCH_SUM(s, e, b, at)                                                                 \
            if (wait == 0) {                                                                       \
                for (size_t k = 0; k < DOUBLES; k++)                                               \
                    left[k] = (vi64){0};                                                           \
                EACH_ROW(                                                                          \
                    element, in->x, in->x_row, for (size_t k = 0; k < DOUBLES; k++) {              \
                        const vf64 v = DOUBLE_##name(p, k);                                        \
                        if (starts && r == 0)                                                      \
                            FIRST(v);                                                              \
                        else                                                                       \
                            TRY_ONE(v);                                                            \
                    });                                                                            \
                for (size_t k = 1; k < DOUBLES; k++)                                               \
                    left[0] |= left[k];                                                            \
            }                                                                                      \
            if (wait > 0 || any_set((vu64)left[0])) {                                              \
                if (wait > 0)                                                                      \
                    KERNEL_PATH("with a bound, untried");                                          \
                else                                                                               \
                    KERNEL_PATH("again with a bound");                                             \
                wait = wait > 0 ? wait - 1 : COLUMNS_TRY_AGAIN;                                    \
                FETCH_AGAIN(s, e, b, at)                                                           \
                AGAIN(element, name)                                                               \
            }                                                                                      \
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
            FETCH_SUM(s, e, b, at)                                                                 \
            const size_t rows = in->rows - r0 < ROWS_AT_ONCE ? in->rows - r0 : ROWS_AT_ONCE;       \
            element others[ROWS_AT_ONCE][STEP];                                                    \
            ptrdiff_t y_step;                                                                      \
            const char *y = whole_rows(in->y + (ptrdiff_t)r0 * in->y_row + c * sizeof(element),    \
                                       in->y_row, rows, (width - c) * sizeof(element),             \
                                       STEP * sizeof(element), (char *)others, &y_step);           \
            EACH_ROW(element, in->x, in->x_row, {                                                  \
                const element *q = (const element *)y;                                             \
                y += y_step;                                                                       \
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

#define AGAIN(element, name)                                                                       \
    EACH_ROW(                                                                                      \
        element, in->x, in->x_row, for (size_t k = 0; k < DOUBLES; k++) {                          \
            const vf64 v = DOUBLE_##name(p, k);                                                    \
            if (starts && r == 0)                                                                  \
                FIRST(v);                                                                          \
            else                                                                                   \
                ADD_ONE(v);                                                                        \
        });
#define AGAIN_WIDE(element, name)                                                                  \
    const size_t rows = in->rows - r0 < ROWS_AT_ONCE ? in->rows - r0 : ROWS_AT_ONCE;               \
    float tile[ROWS_AT_ONCE][STEP];                                                                \
    CONCAT(widen_##name, TALLY_ISA)                                                                \
    (in->x + (ptrdiff_t)r0 * in->x_row + c * sizeof(element), in->x_row, rows, width - c, tile);   \
    for (size_t r = 0; r < rows; r++)                                                              \
        for (size_t k = 0; k < DOUBLES; k++) {                                                     \
            const vf64 v = DOUBLE_f32(tile[r], k);                                                 \
            if (starts && r == 0)                                                                  \
                FIRST(v);                                                                          \
            else                                                                                   \
                ADD_ONE(v);                                                                        \
        }

#define SUM_KERNELS(name, element, length)                                                         \
    SUM_KERNEL(two, name, element, ADD_TWO, FIRST)                                                 \
    SUM_KERNEL(magnitudes, name, element, ADD_MAGNITUDE, ADD_MAGNITUDE)                            \
    SUM_KERNEL(squares, name, element, SQUARE_##length, SQUARE_##length)                           \
    PAIR_KERNEL(name, element, PRODUCT_##length)                                                   \
    WIDE_SUM_KERNEL(squares, name, element, SQUARE_##length, SQUARE_##length)                      \
    WIDE_PAIR_KERNEL(name, element, PRODUCT_##length)

#define WIDENED(op, name, element, wide)                                                           \
    static void CONCAT(op##_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                   \
                                               const struct column_rows *in, size_t width) {       \
        KERNEL_PATH("of columns");                                                                 \
        CONCAT(op##_wide_##wide, TALLY_ISA)                                                        \
        (planes, stride, in, width, CONCAT(widen_##name, TALLY_ISA), sizeof(element));             \
    }
#define WIDENED_KERNELS(name, element, wide)                                                       \
    WIDENED(squares, name, element, wide)                                                          \
    WIDENED(products, name, element, wide)

/* Sums of integers: those of a block's rows in lanes that hold them, and these as doubles. SUM(p, k) is the k-th vector of
 * elements, or of their magnitudes. */
#define INTEGER_KERNEL(op, name, element, vector, SUM, DOUBLE, ADD)                                \
    static void CONCAT(op##_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                   \
                                               const struct column_rows *in, size_t width) {       \
        EACH_ROW_BLOCK(element) {                                                                  \
            double *at = (double *)planes + c;                                                     \
            vf64 s[DOUBLES], e[DOUBLES], b[DOUBLES];                                               \
            vector total[STEP / (sizeof(vector) / sizeof((vector){0}[0]))];                        \
            for (size_t k = 0; k < sizeof total / sizeof total[0]; k++)                            \
                total[k] = (vector){0};                                                            \
            EACH_ROW(element, in->x, in->x_row,                                                    \
                     for (size_t k = 0; k < sizeof total / sizeof total[0]; k++) total[k] +=       \
                     SUM(p, k););                                                                  \
            FETCH_SUM(s, e, b, at)                                                                 \
            for (size_t k = 0; k < DOUBLES; k++)                                                   \
                ADD(DOUBLE(total, k));                                                             \
            STORE(at, s, double);                                                                  \
            STORE(at + stride, e, double);                                                         \
            STORE(at + 2 * stride, b, double);                                                     \
        }                                                                                          \
    }
#define HALF_OF(total, k)   half_of_ints(total[(k) / 2], (k) % 2)
#define WHOLE_OF(total, k)  double_of(total[k])
#define LONG_i32(p, k)      LONGS_OF_INTS(VECTOR_LOAD(vi32half, (p) + (k)*LANES(double)))
#define LONG_u32(p, k)      (vi64) WIDE_OF_WORDS(VECTOR_LOAD(vu32half, (p) + (k)*LANES(double)))
#define MAGNITUDE_i8(p, k)  magnitude_32(BITS_i8(p, k))
#define MAGNITUDE_i16(p, k) magnitude_32(BITS_i16(p, k))
#define MAGNITUDE_i32(p, k) magnitude_64(LONG_i32(p, k))

ALWAYS_INLINE vi32 magnitude_32(vi32 v) {
    return (v ^ (v >> 31)) - (v >> 31);
}
ALWAYS_INLINE vi64 magnitude_64(vi64 v) {
    const vi64 negative = (vi64)(v < 0);
    return (v ^ negative) - negative;
}
/* Integers of magnitudes below 2^51, exactly. */
ALWAYS_INLINE vf64 double_of(vi64 v) {
    const vi64 magic = (vi64){0} + INT64_C(0x4338000000000000);
    return (vf64)(v + magic) - (vf64)magic;
}

INTEGER_KERNEL(one, i8, unaligned_i8, vi32, BITS_i8, HALF_OF, ADD_ONE)
INTEGER_KERNEL(one, i16, unaligned_i16, vi32, BITS_i16, HALF_OF, ADD_ONE)
INTEGER_KERNEL(one, u8, unaligned_u8, vi32, BITS_u8, HALF_OF, ADD_ONE)
INTEGER_KERNEL(one, u16, unaligned_u16, vi32, BITS_u16, HALF_OF, ADD_ONE)
INTEGER_KERNEL(two, i32, unaligned_i32, vi64, LONG_i32, WHOLE_OF, ADD_TWO)
INTEGER_KERNEL(two, u32, unaligned_u32, vi64, LONG_u32, WHOLE_OF, ADD_TWO)
INTEGER_KERNEL(magnitudes, i8, unaligned_i8, vi32, MAGNITUDE_i8, HALF_OF, ADD_TWO)
INTEGER_KERNEL(magnitudes, i16, unaligned_i16, vi32, MAGNITUDE_i16, HALF_OF, ADD_TWO)
INTEGER_KERNEL(magnitudes, i32, unaligned_i32, vi64, MAGNITUDE_i32, WHOLE_OF, ADD_TWO)
INTEGER_KERNEL(magnitudes, u8, unaligned_u8, vi32, BITS_u8, HALF_OF, ADD_TWO)
INTEGER_KERNEL(magnitudes, u16, unaligned_u16, vi32, BITS_u16, HALF_OF, ADD_TWO)
INTEGER_KERNEL(magnitudes, u32, unaligned_u32, vi64, LONG_u32, WHOLE_OF, ADD_TWO)

SUM_KERNELS(f32, unaligned_f32, short)
SUM_KERNELS(f64, unaligned_f64, long)
WIDE_SUM_KERNEL(two, f32, unaligned_f32, ADD_TWO, FIRST)
WIDE_SUM_KERNEL(magnitudes, f32, unaligned_f32, ADD_MAGNITUDE, ADD_MAGNITUDE)
WIDENED_KERNELS(i8, unaligned_i8, f32)
WIDENED_KERNELS(i16, unaligned_i16, f32)
WIDENED_KERNELS(i32, unaligned_i32, f64)
WIDENED_KERNELS(u8, unaligned_u8, f32)
WIDENED_KERNELS(u16, unaligned_u16, f32)
WIDENED_KERNELS(u32, unaligned_u32, f64)
WIDENED_KERNELS(f16, unaligned_u16, f32)
WIDENED_KERNELS(bf16, unaligned_u16, f32)
WIDENED(two, i8, unaligned_i8, f32)
WIDENED(two, i16, unaligned_i16, f32)
WIDENED(two, u8, unaligned_u8, f32)
WIDENED(two, u16, unaligned_u16, f32)
WIDENED(two, f16, unaligned_u16, f32)
WIDENED(two, bf16, unaligned_u16, f32)
WIDENED(magnitudes, f16, unaligned_u16, f32)
WIDENED(magnitudes, bf16, unaligned_u16, f32)
ONE_KERNEL(f16, unaligned_u16, AGAIN_WIDE)
ONE_KERNEL(bf16, unaligned_u16, AGAIN_WIDE)
ONE_KERNEL(f32, unaligned_f32, AGAIN)

/* ---- Moments -------------------------------------------------------------------------------- */

/* Adds a pair and a bound to a vector of columns' planes from `at` on; or stores them where they are the first. */
ALWAYS_INLINE void add_pair(double *at, size_t stride, vf64 high, vf64 low, vf64 bound, int first) {
    vf64 s = high, e = low, b = bound;
    if (!first) {
        s = VECTOR_LOAD(vf64, at);
        e = VECTOR_LOAD(vf64, at + stride);
        const vf64 error = two_sum(s, high, &s);
        b = VECTOR_LOAD(vf64, at + 2 * stride) + bound + absolute(two_sum(e, error, &e));
        b += absolute(two_sum(e, low, &e));
    }
    memcpy(at, &s, sizeof s);
    memcpy(at + stride, &e, sizeof e);
    memcpy(at + 2 * stride, &b, sizeof b);
}

/* Whole vectors of the planes are written, also behind the last column. */
#define MOMENTS_KERNEL(name, element, length)                                                      \
    static void CONCAT(moments_of_##name, TALLY_ISA)(uint64_t * planes, size_t stride,             \
                                                     const struct column_rows *in, size_t width) { \
        EACH_ROW_BLOCK(element) {                                                                  \
            const int first = in->starts && r0 == 0;                                               \
            double *at = (double *)planes + c;                                                     \
            vf64 sum[DOUBLES], square[DOUBLES], low[DOUBLES], low2[DOUBLES];                       \
            for (size_t k = 0; k < DOUBLES; k++)                                                   \
                sum[k] = square[k] = low[k] = low2[k] = (vf64){0};                                 \
            EACH_ROW(                                                                              \
                element, in->x, in->x_row, for (size_t k = 0; k < DOUBLES; k++) {                  \
                    const vf64 v = DOUBLE_##name(p, k);                                            \
                    MOMENTS_##length(v);                                                           \
                });                                                                                \
            for (size_t k = 0; k < DOUBLES && c + k * LANES(double) < width; k++) {                \
                const vf64 bound = square[k] * MOMENTS_NEAR_##length + 0x1p-1070;                  \
                add_pair(at + k * LANES(double), stride, sum[k], low[k], (vf64){0}, first);        \
                add_pair(at + 3 * stride + k * LANES(double), stride, square[k], low2[k], bound,   \
                         first);                                                                   \
            }                                                                                      \
        }                                                                                          \
    }
MOMENTS_KERNEL(f16, unaligned_u16, short)
MOMENTS_KERNEL(bf16, unaligned_u16, short)
MOMENTS_KERNEL(f32, unaligned_f32, short)
MOMENTS_KERNEL(f64, unaligned_f64, long)

static void ISA_NAME(clear_moments)(uint64_t *planes, size_t stride, size_t width, uint64_t first) {
    ISA_NAME(clear_sum)(planes, stride, width, first);
    ISA_NAME(clear_sum)(planes + 3 * stride, stride, width, first);
}

/* Merges whole vectors, also behind the last column: no code reads those. */
static void ISA_NAME(merge_sum)(uint64_t *into, size_t to, const uint64_t *other, size_t from,
                                size_t stride, size_t width) {
    KERNEL_PATH("");
    double *at = (double *)into + to;
    const double *at2 = (const double *)other + from;
    for (size_t c = 0; c < width; c += LANES(double), at += LANES(double), at2 += LANES(double)) {
        vf64 s = VECTOR_LOAD(vf64, at), e = VECTOR_LOAD(vf64, at + stride);
        const vf64 error = two_sum(s, VECTOR_LOAD(vf64, at2), &s);
        const vf64 rest = two_sum(e, VECTOR_LOAD(vf64, at2 + stride), &e);
        const vf64 rest2 = two_sum(e, error, &e);
        const vf64 b = VECTOR_LOAD(vf64, at + 2 * stride) + VECTOR_LOAD(vf64, at2 + 2 * stride) +
                       absolute(rest) + absolute(rest2);
        memcpy(at, &s, sizeof s);
        memcpy(at + stride, &e, sizeof e);
        memcpy(at + 2 * stride, &b, sizeof b);
    }
}

/* Does the same if e is 0: FORM_SUM1. */
static void ISA_NAME(merge_one)(uint64_t *into, size_t to, const uint64_t *other, size_t from,
                                size_t stride, size_t width) {
    KERNEL_PATH("");
    double *at = (double *)into + to;
    const double *at2 = (const double *)other + from;
    for (size_t c = 0; c < width; c += LANES(double), at += LANES(double), at2 += LANES(double)) {
        vf64 s = VECTOR_LOAD(vf64, at), b = VECTOR_LOAD(vf64, at + 2 * stride);
        const vf64 error = two_sum(s, VECTOR_LOAD(vf64, at2), &s);
        b += VECTOR_LOAD(vf64, at2 + 2 * stride) + absolute(error);
        memcpy(at, &s, sizeof s);
        memcpy(at + 2 * stride, &b, sizeof b);
    }
}

static void ISA_NAME(merge_moments)(uint64_t *into, size_t to, const uint64_t *other, size_t from,
                                    size_t stride, size_t width) {
    KERNEL_PATH("");
    ISA_NAME(merge_sum)(into, to, other, from, stride, width);
    ISA_NAME(merge_sum)(into + 3 * stride, to, other + 3 * stride, from, stride, width);
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
        }                                                                                          \
    }
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
    static void CONCAT(order_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                  \
                                                const struct column_rows *in, size_t width) {      \
        EACH_ROW_BLOCK(element) {                                                                  \
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
        }                                                                                          \
    }

#define INDEX_KERNEL(op, name, element, type, vector, VECTORS, FLOATING, FLIP)                     \
    static void CONCAT(op##_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                   \
                                               const struct column_rows *in, size_t width) {       \
        EACH_ROW_BLOCK(element) {                                                                  \
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
        }                                                                                          \
    }
#define INF_MOST(type) (sizeof(type) == 4 ? (type)INT32_MAX : (type)INT64_MAX)

#define WORD_KERNEL(op, name, element, type, vector, VECTORS, TAKE)                                \
    static void CONCAT(op##_##name, TALLY_ISA)(uint64_t * planes, size_t stride,                   \
                                               const struct column_rows *in, size_t width) {       \
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
    }

#define KEY_KERNELS(name, element, type, vector, VECTORS, FLOATING, bits)                          \
    ORDER_KERNEL(name, element, type, vector, VECTORS, LOWER_##bits, HIGHER_##bits)                \
    INDEX_KERNEL(least, name, element, type, vector, VECTORS, FLOATING, 0)                         \
    INDEX_KERNEL(greatest, name, element, type, vector, VECTORS, FLOATING, -1)

/* Of elements that are bits alone: lanes are as wide as those of keys, what is above an element's bits is nobody's. */
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

#define UNKEY(lane)                                                                                \
    for (size_t i = 0; i < width; i++) {                                                           \
        const lane l = ((const lane *)low)[i], g = ((const lane *)high)[i];                        \
        const int64_t key = how.greatest ? g : l;                                                  \
        const uint64_t value = (uint64_t)(key ^ ((key >> 63) & how.flip) ^ how.turn) & how.all;    \
        bits[i] = ((g > (lane)how.infinity) | (l < (lane)~how.infinity)) ? how.nan : value;        \
    }

static void ISA_NAME(unkey)(const uint64_t *low, const uint64_t *high, unsigned lane, size_t width,
                            const struct key_bits *form, uint64_t *restrict bits) {
    struct key_bits how = *form;
    if (lane == 4) {
        KERNEL_PATH("of 32 bits");
        if (how.infinity > INT32_MAX) how.infinity = INT32_MAX; /* none is above it */
        UNKEY(int32_t)
    } else {
        KERNEL_PATH("of 64 bits");
        UNKEY(int64_t)
    }
}

/* ---- Rows as columns ------------------------------------------------------------------------ */

#define TRANSPOSE(bytes, element, vector)                                                          \
    static void CONCAT(transpose_##bytes, TALLY_ISA)(const char *x, ptrdiff_t row, size_t rows,    \
                                                     size_t columns, size_t width, char *to) {     \
        KERNEL_PATH("");                                                                           \
        element *out = (element *)to;                                                              \
        for (size_t r = 0; r < rows; r++) {                                                        \
            const element *from = (const element *)(x + (ptrdiff_t)r * row);                       \
            for (size_t c = 0; c < columns; c++)                                                   \
                out[c * width + r] = from[c];                                                      \
        }                                                                                          \
    }
TRANSPOSE(1, unaligned_u8, vu8)
TRANSPOSE(2, unaligned_u16, vu16)

#if TALLY_VECTOR == 64
/* Blocks of 8 x 8 by three rounds of exchanges. */
ALWAYS_INLINE void turn_64(__m512i *a, size_t columns, size_t width, uint64_t *out) {
    __m512i b[8];
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

ALWAYS_INLINE void block_64(const char *x, ptrdiff_t row, __mmask8 there, size_t columns,
                            size_t width, uint64_t *out) {
    __m512i a[8];
    for (int i = 0; i < 8; i++)
        a[i] = _mm512_maskz_loadu_epi64(there, x + i * row);
    turn_64(a, columns, width, out);
}

/* Rows of four elements that lie side by side: vectors of whole rows. */
ALWAYS_INLINE void rows_of_four_64(const char *x, size_t width, uint64_t *out) {
    const __m512i first = _mm512_setr_epi64(0, 4, 8, 12, 1, 5, 9, 13),
                  second = _mm512_setr_epi64(2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i a = _mm512_loadu_si512(x), b = _mm512_loadu_si512(x + 64),
                  c = _mm512_loadu_si512(x + 128), d = _mm512_loadu_si512(x + 192);
    for (size_t k = 0; k < 2; k++) { /* columns 2 k and 2 k + 1, of four rows each */
        const __m512i p = _mm512_permutex2var_epi64(a, k ? second : first, b),
                      q = _mm512_permutex2var_epi64(c, k ? second : first, d);
        _mm512_storeu_si512(out + 2 * k * width, _mm512_shuffle_i64x2(p, q, 0x44));
        _mm512_storeu_si512(out + (2 * k + 1) * width, _mm512_shuffle_i64x2(p, q, 0xee));
    }
}

ALWAYS_INLINE void rows_of_four_32(const char *x, size_t width, uint32_t *out) {
    const __m512i first =
                      _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29),
                  second = _mm512_add_epi32(first, _mm512_set1_epi32(2));
    const __m512i a = _mm512_loadu_si512(x), b = _mm512_loadu_si512(x + 64),
                  c = _mm512_loadu_si512(x + 128), d = _mm512_loadu_si512(x + 192);
    for (size_t k = 0; k < 2; k++) {
        const __m512i p = _mm512_permutex2var_epi32(a, k ? second : first, b),
                      q = _mm512_permutex2var_epi32(c, k ? second : first, d);
        _mm512_storeu_si512(out + 2 * k * width, _mm512_shuffle_i64x2(p, q, 0x44));
        _mm512_storeu_si512(out + (2 * k + 1) * width, _mm512_shuffle_i64x2(p, q, 0xee));
    }
}

static void ISA_NAME(transpose_8)(const char *x, ptrdiff_t row, size_t rows, size_t columns,
                                  size_t width, char *to) {
    uint64_t *out = (uint64_t *)(void *)to;
    size_t r = 0;
    const ptrdiff_t ahead = row >= 128 ? 8 * row : TRANSPOSE_AHEAD;
    for (; columns == 4 && row == 32 && r + 8 <= rows; r += 8) {
        PREFETCH(x + (ptrdiff_t)r * 32, 256, TRANSPOSE_AHEAD, 2);
        KERNEL_PATH("rows of four");
        rows_of_four_64(x + (ptrdiff_t)r * 32, width, out + r);
    }
    for (; r + 8 <= rows; r += 8) {
        KERNEL_PATH("blocks");
        for (ptrdiff_t i = 0; i < 8; i++)
            PREFETCH(x + ((ptrdiff_t)r + i) * row, columns * 8, ahead, 2);
        for (size_t c = 0; c < columns; c += 8) {
            const size_t m = columns - c < 8 ? columns - c : 8;
            block_64(x + (ptrdiff_t)r * row + c * 8, row, (__mmask8)((1u << m) - 1), m, width,
                     out + c * width + r);
        }
    }
    if (r < rows) KERNEL_PATH("rows that are no block");
    for (; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            memcpy(out + c * width + r, x + (ptrdiff_t)r * row + c * 8, 8);
}

/* Blocks of 16 rows and 16 columns. */
ALWAYS_INLINE void turn_32(__m512i *a, size_t columns, size_t width, uint32_t *out) {
    __m512i b[16];
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
            const size_t c = 4 * (size_t)j + (size_t)q;
            if (c < columns) _mm512_storeu_si512(out + c * width, column[j]);
        }
    }
}

ALWAYS_INLINE void block_32(const char *x, ptrdiff_t row, __mmask16 there, size_t columns,
                            size_t width, uint32_t *out) {
    __m512i a[16];
    for (int i = 0; i < 16; i++)
        a[i] = _mm512_maskz_loadu_epi32(there, x + i * row);
    turn_32(a, columns, width, out);
}

static void ISA_NAME(transpose_4)(const char *x, ptrdiff_t row, size_t rows, size_t columns,
                                  size_t width, char *to) {
    uint32_t *out = (uint32_t *)(void *)to;
    size_t r = 0;
    const ptrdiff_t ahead = row >= 128 ? 16 * row : TRANSPOSE_AHEAD;
    for (; columns == 4 && row == 16 && r + 16 <= rows; r += 16) {
        PREFETCH(x + (ptrdiff_t)r * 16, 256, TRANSPOSE_AHEAD, 2);
        KERNEL_PATH("rows of four");
        rows_of_four_32(x + (ptrdiff_t)r * 16, width, out + r);
    }
    for (; r + 16 <= rows; r += 16) {
        KERNEL_PATH("blocks");
        for (ptrdiff_t i = 0; i < 16; i += row >= 64 ? 1 : 4)
            PREFETCH(x + ((ptrdiff_t)r + i) * row, columns * 4, ahead, 2);
        for (size_t c = 0; c < columns; c += 16) {
            const size_t m = columns - c < 16 ? columns - c : 16;
            block_32(x + (ptrdiff_t)r * row + c * 4, row, (__mmask16)((1u << m) - 1), m, width,
                     out + c * width + r);
        }
    }
    if (r < rows) KERNEL_PATH("rows that are no block");
    for (; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            memcpy(out + c * width + r, x + (ptrdiff_t)r * row + c * 4, 4);
}
#else
TRANSPOSE(4, unaligned_u32, vu32)
TRANSPOSE(8, unaligned_u64, vu64)
#endif

/* ---- Segments as columns -------------------------------------------------------------------- */

#define GATHER(bytes, element)                                                                     \
    static void CONCAT(gather_##bytes, TALLY_ISA)(                                                 \
        const char *x, const size_t *start, const size_t *length, size_t count, size_t longest,    \
        int again, uint64_t fill, char *to) {                                                      \
        KERNEL_PATH("");                                                                           \
        element *out = (element *)to;                                                              \
        for (size_t c = 0; c < STEP; c++) {                                                        \
            const element *from = (const element *)x + (c < count ? start[c] : 0);                 \
            const size_t n = c < count ? length[c] : 0;                                            \
            for (size_t r = 0; r < n; r++)                                                         \
                out[r * STEP + c] = from[r];                                                       \
            for (size_t r = n; r < longest; r++)                                                   \
                out[r * STEP + c] = again && n ? from[0] : (element)fill;                          \
        }                                                                                          \
    }
GATHER(1, unaligned_u8)
GATHER(2, unaligned_u16)
#if TALLY_VECTOR == 64
/* Transposes segments: loads eight elements of each at a time, those within it by a mask. */
static void ISA_NAME(gather_8)(const char *x, const size_t *start, const size_t *length,
                               size_t count, size_t longest, int again, uint64_t fill, char *to) {
    KERNEL_PATH("");
    uint64_t *out = (uint64_t *)(void *)to;
    const unaligned_u64 *from = (const unaligned_u64 *)x;
    for (size_t r = 0; r < longest; r += 8)
        for (size_t c = 0; c < STEP; c += 8) {
            __m512i a[8];
            for (size_t i = 0; i < 8; i++) {
                const size_t n = c + i < count ? length[c + i] : 0, at = n ? start[c + i] : 0;
                const uint64_t other = again && n ? from[at] : fill;
                const size_t here = n > r ? (n - r < 8 ? n - r : 8) : 0;
                a[i] = _mm512_mask_loadu_epi64(_mm512_set1_epi64((int64_t)other),
                                               (__mmask8)((1u << here) - 1), from + at + r);
            }
            turn_64(a, 8, STEP, out + r * STEP + c);
        }
}

/* Does the same for sixteen elements at a time. */
static void ISA_NAME(gather_4)(const char *x, const size_t *start, const size_t *length,
                               size_t count, size_t longest, int again, uint64_t fill, char *to) {
    KERNEL_PATH("");
    uint32_t *out = (uint32_t *)(void *)to;
    const unaligned_u32 *from = (const unaligned_u32 *)x;
    for (size_t r = 0; r < longest; r += 16) {
        __m512i a[16];
        for (size_t i = 0; i < 16; i++) {
            const size_t n = i < count ? length[i] : 0, at = n ? start[i] : 0;
            const uint32_t other = again && n ? from[at] : (uint32_t)fill;
            const size_t here = n > r ? (n - r < 16 ? n - r : 16) : 0;
            a[i] = _mm512_mask_loadu_epi32(_mm512_set1_epi32((int32_t)other),
                                           (__mmask16)((1u << here) - 1), from + at + r);
        }
        turn_32(a, 16, STEP, out + r * STEP);
    }
}
#else
GATHER(4, unaligned_u32)
GATHER(8, unaligned_u64)
#endif

#define FALLS(bytes, type)                                                                         \
    static int CONCAT(falls_##bytes, TALLY_ISA)(const void *offsets, size_t n) {                   \
        const type *o = offsets;                                                                   \
        type wrong = 0;                                                                            \
        for (size_t i = 1; i < n; i++)                                                             \
            wrong |= o[i] < o[i - 1];                                                              \
        if (wrong)                                                                                 \
            KERNEL_PATH("yes");                                                                    \
        else                                                                                       \
            KERNEL_PATH("no");                                                                     \
        return wrong != 0;                                                                         \
    }
FALLS(4, unaligned_i32)
FALLS(8, unaligned_i64)

#define EVEN(bytes, type)                                                                          \
    static int CONCAT(even_##bytes, TALLY_ISA)(const void *offsets, size_t n, size_t each) {       \
        const type *o = offsets;                                                                   \
        type wrong = 0;                                                                            \
        for (size_t i = 0; i < n; i++)                                                             \
            wrong |= (o[i + 1] - o[i]) ^ (type)each;                                               \
        if (wrong)                                                                                 \
            KERNEL_PATH("no");                                                                     \
        else                                                                                       \
            KERNEL_PATH("yes");                                                                    \
        return wrong == 0;                                                                         \
    }
EVEN(4, unaligned_u32)
EVEN(8, unaligned_u64)

/* ---- Rounding ------------------------------------------------------------------------------- */

/* Rounds whole vectors, also behind the last column: there is room for them. */
static int ISA_NAME(round)(const double *s, const double *e, const double *b, size_t count,
                           tally_type type, uint64_t *bits, unsigned char *ok) {
    vi64 all = (vi64){0} - 1;
    for (size_t i = 0; i < count; i += LANES(double)) {
        const vf64 high = VECTOR_LOAD(vf64, s + i), low = VECTOR_LOAD(vf64, e + i);
        const vf64 bound = VECTOR_LOAD(vf64, b + i), d = reach(low, bound);
        vi64 certain;
        if (!any_set((vu64)(bound != 0)) && (type == TALLY_F64 || type == TALLY_F32)) { /* exact */
            const vi64 plain = (vi64)(low == 0);
            if (type == TALLY_F64) {
                KERNEL_PATH("exact, to f64");
                const vi64 value = PICK(plain, (vi64)high, (vi64)(high + low));
                memcpy(bits + i, &value, sizeof value);
            } else {
                KERNEL_PATH("exact, to f32");
                const vf64 odd = any_set((vu64)~plain) ? to_odd(high, low) : high;
                const vf32half f = FLOATS_OF_DOUBLES(odd);
                const vu64 value = WIDE_OF_WORDS((vu32half)f);
                memcpy(bits + i, &value, sizeof value);
            }
            memset(ok + i, 1, LANES(double));
            continue;
        }
        if (type == TALLY_F64) {
            KERNEL_PATH("within a bound, to f64");
            const vi64 value = round_to_f64(high, low, d, &certain);
            memcpy(bits + i, &value, sizeof value);
        } else if (type == TALLY_F32) {
            KERNEL_PATH("within a bound, to f32");
            const vf32half f = round_to_f32(high, low, d, &certain);
            const vu64 value = WIDE_OF_WORDS((vu32half)f);
            memcpy(bits + i, &value, sizeof value);
        } else {
            KERNEL_PATH("by way of odd, to 16 bits");
            const vf64 x = to_odd(high, low - d), y = to_odd(high, low + d);
            double from[2][LANES(double)];
            int64_t same[LANES(double)];
            memcpy(from[0], &x, sizeof x);
            memcpy(from[1], &y, sizeof y);
            for (size_t k = 0; k < LANES(double); k++) {
                const tally_value v = round_double(type, from[0][k]),
                                  w = round_double(type, from[1][k]);
                bits[i + k] = v.as.f16;
                same[k] = 0 - (int64_t)(w.as.f16 == v.as.f16 && from[0][k] - from[0][k] == 0);
            }
            certain = VECTOR_LOAD(vi64, same);
        }
        if (i + LANES(double) > count || any_set((vu64)~certain)) {
            int64_t lanes[LANES(double)];
            memcpy(lanes, &certain, sizeof lanes);
            for (size_t k = 0; k < LANES(double); k++) {
                if (i + k >= count) lanes[k] = -1;
                ok[i + k] = (unsigned char)lanes[k];
            }
            all &= VECTOR_LOAD(vi64, lanes);
        } else
            memset(ok + i, 1, LANES(double));
    }
    return !any_set((vu64)~all);
}

static void ISA_NAME(mean)(double *s, double *e, double *b, size_t count, const double *n) {
    KERNEL_PATH("");
    for (size_t i = 0; i < count; i += LANES(double)) {
        vf64 high = VECTOR_LOAD(vf64, s + i), low = VECTOR_LOAD(vf64, e + i),
             bound = VECTOR_LOAD(vf64, b + i);
        const vf64 by = VECTOR_LOAD(vf64, n + i);
        /* A power of two divides exactly, far enough from underflow. */
        const vi64 power = (vi64)(((vi64)by & ((INT64_C(1) << 52) - 1)) == 0) &
                           (vi64)(absolute(high) > 0x1p-800) &
                           ((vi64)(low == 0) | (vi64)(absolute(low) > 0x1p-900));
        const vf64 x = high / by, y = low / by;
        const vf64 z = (vf64)((vi64)(bound != 0) & (vi64)(bound / by + 0x1p-1000));
        divide(&high, &low, &bound, by);
        high = (vf64)PICK(power, (vi64)x, (vi64)high);
        low = (vf64)PICK(power, (vi64)y, (vi64)low);
        bound = (vf64)PICK(power, (vi64)z, (vi64)bound);
        memcpy(s + i, &high, sizeof high);
        memcpy(e + i, &low, sizeof low);
        memcpy(b + i, &bound, sizeof bound);
    }
}

static void ISA_NAME(root)(double *s, double *e, double *b, size_t count) {
    KERNEL_PATH("");
    for (size_t i = 0; i < count; i += LANES(double)) {
        vf64 high = VECTOR_LOAD(vf64, s + i), low = VECTOR_LOAD(vf64, e + i),
             bound = VECTOR_LOAD(vf64, b + i);
        take_root(&high, &low, &bound);
        memcpy(s + i, &high, sizeof high);
        memcpy(e + i, &low, sizeof low);
        memcpy(b + i, &bound, sizeof bound);
    }
}

static void ISA_NAME(variance)(double *s, double *e, double *b, const double *q, const double *qe,
                               const double *qb, size_t count, const double *n, double ddof,
                               int root, double near) {
    KERNEL_PATH("");
    for (size_t i = 0; i < count; i += LANES(double)) {
        vf64 high, rest, bound;
        variance_of(VECTOR_LOAD(vf64, s + i), VECTOR_LOAD(vf64, e + i), VECTOR_LOAD(vf64, b + i),
                    VECTOR_LOAD(vf64, q + i), VECTOR_LOAD(vf64, qe + i), VECTOR_LOAD(vf64, qb + i),
                    VECTOR_LOAD(vf64, n + i), ddof, root, near, &high, &rest, &bound);
        memcpy(s + i, &high, sizeof high);
        memcpy(e + i, &rest, sizeof rest);
        memcpy(b + i, &bound, sizeof bound);
    }
}

/* ---- Writing -------------------------------------------------------------------------------- */

/* Return a vector of elements of each size from words. */
ALWAYS_INLINE vu64 words_8(const uint64_t *bits) {
    return VECTOR_LOAD(vu64, bits);
}
ALWAYS_INLINE vu64 words_4(const uint64_t *bits) {
    vu32 v;
    for (size_t i = 0; i < LANES(uint32_t); i++)
        v[i] = (uint32_t)bits[i];
    return (vu64)v;
}
ALWAYS_INLINE vu64 words_2(const uint64_t *bits) {
    vu16 v;
    for (size_t i = 0; i < LANES(uint16_t); i++)
        v[i] = (uint16_t)bits[i];
    return (vu64)v;
}

#define PUT(bytes, element)                                                                        \
    static void CONCAT(put_##bytes, TALLY_ISA)(char *to, const uint64_t *restrict bits,            \
                                               size_t count, int past) {                           \
        element *restrict out = (element *)to;                                                     \
        size_t i = 0;                                                                              \
        for (; past && i < count && (uintptr_t)(out + i) % TALLY_VECTOR != 0; i++)                 \
            out[i] = (element)bits[i];                                                             \
        for (; past && i + LANES(element) <= count; i += LANES(element)) {                         \
            const vu64 v = words_##bytes(bits + i);                                                \
            KERNEL_PATH("past the caches");                                                        \
            WRITE_PAST(out + i, v);                                                                \
        }                                                                                          \
        for (; i < count; i++)                                                                     \
            out[i] = (element)bits[i];                                                             \
    }
PUT(2, unaligned_u16)
PUT(4, unaligned_u32)
PUT(8, unaligned_u64)

static void ISA_NAME(put_1)(char *to, const uint64_t *restrict bits, size_t count, int past) {
    (void)past;
    KERNEL_PATH("");
    for (size_t i = 0; i < count; i++)
        to[i] = (char)bits[i];
}

static void ISA_NAME(copy)(char *to, const char *from, size_t bytes, int past) {
    const size_t head = (0 - (uintptr_t)to) % TALLY_VECTOR, first = head < bytes ? head : bytes;
    if (!past) {
        KERNEL_PATH("");
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, first);
    size_t i = first;
    KERNEL_PATH("past the caches");
    for (; i + TALLY_VECTOR <= bytes; i += TALLY_VECTOR) {
        const vu64 v = VECTOR_LOAD(vu64, from + i);
        WRITE_PAST(to + i, v);
    }
    memcpy(to + i, from + i, bytes - i);
}

/* ---- Windows of integers -------------------------------------------------------------------- */

static void ISA_NAME(narrow)(const void *ids, size_t n, uint32_t *restrict out) {
    KERNEL_PATH("");
    const unaligned_u64 *from = ids;
    for (size_t i = 0; i < n; i += 8)
        __builtin_prefetch((const char *)(from + i + n), 0, 2);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint32_t)from[i] | (0 - (uint32_t)(from[i] >> 31 != 0));
}

/* Splits numbers by extraction (extract.h): added to 1.5 * 2^(52 + u), a number becomes one whose
 * last bit weighs 2^u. */
static int ISA_NAME(split)(const double *x, size_t n, int exponent, int64_t *high, int64_t *low) {
    const int64_t word = ((int64_t)(exponent - 40 + 52 + 1023) << 52) | INT64_C(1) << 51;
    const int64_t word2 = word - (INT64_C(40) << 52);
    const vi64 bits = (vi64){0} + word, bits2 = (vi64){0} + word2;
    const vf64 sigma = (vf64)bits, sigma2 = (vf64)bits2;
    const vf64 limit = (vf64)((vi64){0} + ((int64_t)(exponent - 1 + 1023) << 52));
    vi64 wrong = {0};
    for (size_t i = 0; i < n; i += LANES(double)) {
        PREFETCH(x + i, TALLY_VECTOR, 8192, 2);
        const vf64 v = VECTOR_LOAD(vf64, x + i), t = v + sigma, rest = v - (t - sigma),
                   t2 = rest + sigma2;
        const vi64 up = (vi64)t - bits, down = (vi64)t2 - bits2;
        wrong |= ~(vi64)(absolute(v) < limit) | (vi64)(rest != t2 - sigma2) |
                 (vi64)((vi64)v == INT64_MIN);
        memcpy(high + i, &up, sizeof up);
        memcpy(low + i, &down, sizeof down);
    }
    if (any_set((vu64)wrong))
        KERNEL_PATH("not exact");
    else
        KERNEL_PATH("exact");
    return !any_set((vu64)wrong);
}

/* ---- The table ------------------------------------------------------------------------------ */

#define SUM_FORM(kernel, name)                                                                     \
    { 3, 8, 1, ISA_NAME(clear_sum), CONCAT(kernel##_##name, TALLY_ISA), ISA_NAME(merge_sum) }
#define KEY_FORM(planes, lane, starts, clear, kernel, name, merge)                                 \
    {                                                                                              \
        planes, lane / 8, starts, CONCAT(clear##_##lane, TALLY_ISA),                               \
            CONCAT(kernel##_##name, TALLY_ISA), CONCAT(merge##_##lane, TALLY_ISA)                  \
    }

#define FLOATS(X)                                                                                  \
    X(I8, i8)                                                                                      \
    X(I16, i16)                                                                                    \
    X(I32, i32)                                                                                    \
    X(U8, u8)                                                                                      \
    X(U16, u16) X(U32, u32) X(F16, f16) X(BF16, bf16) X(F32, f32) X(F64, f64)
/* What is summed in one double. */
#define NARROW(X)                                                                                  \
    X(I8, i8)                                                                                      \
    X(I16, i16) X(U8, u8) X(U16, u16) X(F16, f16) X(BF16, bf16) X(F32, f32)
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

#define DECLARE_SEGMENTS(NAME, name)                                                               \
    int CONCAT(segments_##name, TALLY_ISA)(const char *, const size_t *, size_t, uint64_t *,       \
                                           double *, double *);
FLOATS(DECLARE_SEGMENTS)

#define DECLARE_FEW(op, name) few_kernel CONCAT(few_##op##_##name, TALLY_ISA);
#define DECLARE_FEW_REAL(NAME, name)                                                               \
    DECLARE_FEW(sum, name)                                                                         \
    DECLARE_FEW(mean, name)                                                                        \
    DECLARE_FEW(var, name)                                                                         \
    DECLARE_FEW(std, name)
#define DECLARE_FEW_KEYS(NAME, name)                                                               \
    DECLARE_FEW(min, name)                                                                         \
    DECLARE_FEW(max, name)                                                                         \
    DECLARE_FEW(argmin, name)                                                                      \
    DECLARE_FEW(argmax, name)
#define REAL(X)  X(F32, f32) X(F64, f64)
#define KEYED(X) REAL(X) X(I32, i32) X(U32, u32) X(I64, i64) X(U64, u64)
REAL(DECLARE_FEW_REAL)
KEYED(DECLARE_FEW_KEYS)

#define ONE(NAME, name)                                                                            \
    [TALLY_##NAME] = {                                                                             \
        3, 8, 1, ISA_NAME(clear_sum), CONCAT(one_##name, TALLY_ISA), ISA_NAME(merge_one)},
#define SEGMENTS(NAME, name)   [TALLY_##NAME] = CONCAT(segments_##name, TALLY_ISA),
#define FEW_SUM(NAME, name)    [TALLY_##NAME] = CONCAT(few_sum_##name, TALLY_ISA),
#define FEW_MEAN(NAME, name)   [TALLY_##NAME] = CONCAT(few_mean_##name, TALLY_ISA),
#define FEW_VAR(NAME, name)    [TALLY_##NAME] = CONCAT(few_var_##name, TALLY_ISA),
#define FEW_STD(NAME, name)    [TALLY_##NAME] = CONCAT(few_std_##name, TALLY_ISA),
#define FEW_MIN(NAME, name)    [TALLY_##NAME] = CONCAT(few_min_##name, TALLY_ISA),
#define FEW_MAX(NAME, name)    [TALLY_##NAME] = CONCAT(few_max_##name, TALLY_ISA),
#define FEW_ARGMIN(NAME, name) [TALLY_##NAME] = CONCAT(few_argmin_##name, TALLY_ISA),
#define FEW_ARGMAX(NAME, name) [TALLY_##NAME] = CONCAT(few_argmax_##name, TALLY_ISA),
#define TWO(NAME, name)        [TALLY_##NAME] = SUM_FORM(two, name),
#define MAGNITUDES(NAME, name) [TALLY_##NAME] = SUM_FORM(magnitudes, name),
#define SQUARES(NAME, name)    [TALLY_##NAME] = SUM_FORM(squares, name),
#define PRODUCTS(NAME, name)   [TALLY_##NAME] = SUM_FORM(products, name),
#define MOMENTS(NAME, name)                                                                        \
    [TALLY_##NAME] = {6,                                                                           \
                      8,                                                                           \
                      1,                                                                           \
                      ISA_NAME(clear_moments),                                                     \
                      CONCAT(moments_of_##name, TALLY_ISA),                                        \
                      ISA_NAME(merge_moments)},
#define ORDER(NAME, name, lane)                                                                    \
    [TALLY_##NAME] = KEY_FORM(2, lane, 1, clear_order, order, name, merge_order),
#define LEAST(NAME, name, lane)                                                                    \
    [TALLY_##NAME] = KEY_FORM(2, lane, 1, clear_index, least, name, merge_index),
#define GREATEST(NAME, name, lane)                                                                 \
    [TALLY_##NAME] = KEY_FORM(2, lane, 1, clear_index, greatest, name, merge_index),
/* By the type, that whose bits are taken alike, and the one that counts. */
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
                      CONCAT(clear_zero_##lane, TALLY_ISA),                                        \
                      ISA_NAME(no_nans),                                                           \
                      CONCAT(merge_count_##lane, TALLY_ISA)},

const struct column_kernels ISA_NAME(column_kernels) = {
    .form = {[FORM_SUM1] = {NARROW(ONE)},
             [FORM_SUM2] = {FLOATS(TWO)},
             [FORM_MAGNITUDES] = {FLOATS(MAGNITUDES)},
             [FORM_SQUARES] = {FLOATS(SQUARES)},
             [FORM_PRODUCTS] = {FLOATS(PRODUCTS)},
             [FORM_MOMENTS] = {MOMENTS(F16, f16) MOMENTS(BF16, bf16) MOMENTS(F32, f32)
                                   MOMENTS(F64, f64)},
             [FORM_WIDE] = {[TALLY_I64] = {2, 8, 0, ISA_NAME(clear_words), ISA_NAME(wide_i64),
                                           ISA_NAME(merge_wide)},
                            [TALLY_U64] = {2, 8, 0, ISA_NAME(clear_words), ISA_NAME(wide_u64),
                                           ISA_NAME(merge_wide)}},
             [FORM_ORDER] = {ALL(ORDER)},
             [FORM_LEAST] = {ALL(LEAST)},
             [FORM_GREATEST] = {ALL(GREATEST)},
             [FORM_AND] = {WORDS(AND)},
             [FORM_OR] = {WORDS(OR)},
             [FORM_XOR] = {WORDS(XOR)},
             [FORM_NONZERO] = {WORDS(NONZERO)},
             [FORM_NANS] = {NANS(F16, f16, 32) NANS(BF16, bf16, 32) NANS(F32, f32, 32)
                                NANS(F64, f64, 64) INTEGERS(NO_NANS)}},
    .gather = {[1] = ISA_NAME(gather_1),
               [2] = ISA_NAME(gather_2),
               [4] = ISA_NAME(gather_4),
               [8] = ISA_NAME(gather_8)},
    .segments = {FLOATS(SEGMENTS)},
    .few = {[TALLY_SUM] = {REAL(FEW_SUM)},
            [TALLY_MEAN] = {REAL(FEW_MEAN)},
            [TALLY_VAR] = {REAL(FEW_VAR)},
            [TALLY_STD] = {REAL(FEW_STD)},
            [TALLY_MIN] = {KEYED(FEW_MIN)},
            [TALLY_MAX] = {KEYED(FEW_MAX)},
            [TALLY_ARGMIN] = {KEYED(FEW_ARGMIN)},
            [TALLY_ARGMAX] = {KEYED(FEW_ARGMAX)}},
    .copy = ISA_NAME(copy),
    .unkey = ISA_NAME(unkey),
    .falls = {[4] = ISA_NAME(falls_4), [8] = ISA_NAME(falls_8)},
    .even = {[4] = ISA_NAME(even_4), [8] = ISA_NAME(even_8)},
    .transpose = {[1] = ISA_NAME(transpose_1),
                  [2] = ISA_NAME(transpose_2),
                  [4] = ISA_NAME(transpose_4),
                  [8] = ISA_NAME(transpose_8)},
    .put = {[1] = ISA_NAME(put_1),
            [2] = ISA_NAME(put_2),
            [4] = ISA_NAME(put_4),
            [8] = ISA_NAME(put_8)},
    .narrow = ISA_NAME(narrow),
    .split = ISA_NAME(split),
    .round = ISA_NAME(round),
    .mean = ISA_NAME(mean),
    .root = ISA_NAME(root),
    .variance = ISA_NAME(variance),
    .near = {[TALLY_F16] = MOMENTS_NEAR_short,
             [TALLY_BF16] = MOMENTS_NEAR_short,
             [TALLY_F32] = MOMENTS_NEAR_short,
             [TALLY_F64] = MOMENTS_NEAR_long},
};
