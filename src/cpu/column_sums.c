/*
 * column_sums.c - sums of columns as two doubles and a bound, of elements, magnitudes, squares and products, and the moments
 * that variances are made of; of one instruction set.
 */
#include "cpu/column_kernels.h"
#include "cpu/column_rows.h"

/* ---- Sums ----------------------------------------------------------------------------------- */

static void ISA_NAME(clear_sum)(uint64_t *planes, size_t stride, size_t width, uint64_t first) {
    double *s = (double *)planes;
    (void)first;
    for (size_t c = 0; c < width; c++) {
        s[c] = -0.0; /* adds nothing, not even a sign */
        s[stride + c] = s[2 * stride + c] = 0;
    }
}

/* The error of a product below this may be no double, so that fused() rounds it. */
#define PRODUCT_LEAST 0x1p-960

#define ADD_ONE(v) b[k] += absolute(two_sum(s[k], v, &s[k]))
/* Adds v to s[k], and sets bits of left[k] if the sum was rounded. A sum is exact if and only if each of the two
 * terms is the sum minus the other term. */
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

/* Loads the planes of a step; if `starts`, makes them those of no elements. -0 adds nothing, not even a sign. */
#define FETCH_SUM(s, e, b, at)                                                                     \
    for (size_t k = 0; k < DOUBLES; k++)                                                           \
        if (starts) {                                                                              \
            s[k] = -(vf64){0};                                                                     \
            e[k] = b[k] = (vf64){0};                                                               \
        } else {                                                                                   \
            s[k] = VECTOR_LOAD(vf64, (at) + k * LANES(double));                                    \
            e[k] = VECTOR_LOAD(vf64, (at) + stride + k * LANES(double));                           \
            b[k] = VECTOR_LOAD(vf64, (at) + 2 * stride + k * LANES(double));                       \
        }

/* Runs the last arguments with the planes of the step at column c in s, e and b, and stores these. If is_single,
 * stores e only if `pair`, and b only if this row adds to it. */
#define WITH_SUMS(pair, ...)                                                                       \
    const int starts = in->starts && r0 == 0;                                                      \
    double *at = (double *)planes + c;                                                             \
    vf64 s[DOUBLES], e[DOUBLES], b[DOUBLES];                                                       \
    FETCH_SUM(s, e, b, at)                                                                         \
    if (is_single)                                                                                 \
        for (size_t k = 0; k < DOUBLES; k++)                                                       \
            b[k] = (vf64){0};                                                                      \
    __VA_ARGS__                                                                                    \
    STORE(at, s, double);                                                                          \
    if (!is_single || (pair)) STORE(at + stride, e, double);                                       \
    if (!is_single || has_bound(b)) {                                                              \
        for (size_t k = 0; k < DOUBLES && is_single; k++)                                          \
            b[k] += VECTOR_LOAD(vf64, at + 2 * stride + k * LANES(double));                        \
        STORE(at + 2 * stride, b, double);                                                         \
    }

/* Returns whether bounds, which are not negative, are not all 0. */
ALWAYS_INLINE int has_bound(const vf64 *b) {
    vi64 all = {0};
    for (size_t k = 0; k < DOUBLES; k++)
        all |= (vi64)b[k];
    return any_set((vu64)all);
}

/* Adds the values of row r, of which `value` is the k-th vector. */
#define EACH_VALUE(value, ADD, FIRST)                                                              \
    for (size_t k = 0; k < DOUBLES; k++) {                                                         \
        const vf64 v = value;                                                                      \
        if (starts && r == 0)                                                                      \
            FIRST(v);                                                                              \
        else                                                                                       \
            ADD(v);                                                                                \
    }
#define EACH_PAIR(value, other, ADD)                                                               \
    for (size_t k = 0; k < DOUBLES; k++) {                                                         \
        const vf64 v = value, w = other;                                                           \
        ADD(v, w);                                                                                 \
    }

#define SUM_KERNEL(op, name, element, ADD, FIRST)                                                  \
    COLUMN_KERNEL(                                                                                 \
        op, name, double, 2, EACH_ROW_BLOCK(element) {                                             \
            WITH_SUMS(1, EACH_ROW(element, in->x, in->x_row,                                       \
                                  EACH_VALUE(DOUBLE_##name(p, k), ADD, FIRST)););                  \
        })

/* Widens the rows of a step to the elements of a kernel, of type `wide`. Columns that do not exist become 0. */
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

/* Kernels of elements that are widened first; an element has `bytes` bytes. Separate code for every type would run no
 * faster, and take long to compile. */
#define WIDE_TILE(tile, element, base, pitch)                                                      \
    element tile[ROWS_AT_ONCE][STEP];                                                              \
    widen((base) + (ptrdiff_t)r0 * (pitch) + c * bytes, pitch, rows, LEFT, tile)
#define ROWS_HERE (in->rows - r0 < ROWS_AT_ONCE ? in->rows - r0 : ROWS_AT_ONCE)
#define WIDE_SUM_KERNEL(op, name, element, ADD, FIRST)                                             \
    static ONE_COPY void CONCAT(op##_wide_##name, TALLY_ISA)(                                      \
        uint64_t * planes, size_t stride, const struct column_rows *in, size_t width,              \
        widen_rows *widen, size_t bytes) {                                                         \
        const int is_single = 0;                                                                   \
        EACH_ROW_BLOCK(element) {                                                                  \
            const size_t rows = ROWS_HERE;                                                         \
            WIDE_TILE(tile, element, in->x, in->x_row);                                            \
            WITH_SUMS(1, for (size_t r = 0; r < rows; r++)                                         \
                             EACH_VALUE(DOUBLE_##name(tile[r], k), ADD, FIRST));                   \
        }                                                                                          \
    }
#define WIDE_PAIR_KERNEL(name, element, ADD)                                                       \
    static ONE_COPY void CONCAT(products_wide_##name, TALLY_ISA)(                                  \
        uint64_t * planes, size_t stride, const struct column_rows *in, size_t width,              \
        widen_rows *widen, size_t bytes) {                                                         \
        const int is_single = 0;                                                                   \
        EACH_ROW_BLOCK(element) {                                                                  \
            const size_t rows = ROWS_HERE;                                                         \
            WIDE_TILE(tile, element, in->x, in->x_row);                                            \
            WIDE_TILE(other, element, in->y, in->y_row);                                           \
            WITH_SUMS(1, for (size_t r = 0; r < rows; r++) EACH_PAIR(                              \
                             DOUBLE_##name(tile[r], k), DOUBLE_##name(other[r], k), ADD));         \
        }                                                                                          \
    }

/* Sums in one double. Rows are first added without a bound. If a sum was rounded, they are added once more with a
 * bound, and the next COLUMNS_TRY_AGAIN steps are not tried without one. Planes that do not change, e and mostly b,
 * are not touched: the first rows, or clear(), have stored them. */
#define ONE_KERNEL(name, element, AGAIN)                                                           \
    COLUMN_KERNEL(one, name, double, 1, {                                                          \
        unsigned wait = 0;                                                                         \
        EACH_ROW_BLOCK(element) {                                                                  \
            double *at = (double *)planes + c;                                                     \
            vf64 s[DOUBLES], e[DOUBLES], b[DOUBLES];                                               \
            vi64 left[DOUBLES];                                                                    \
            const int starts = in->starts && r0 == 0;                                              \
            int whole = starts;                                                                    \
            for (size_t k = 0; k < DOUBLES; k++) {                                                 \
                s[k] = starts ? -(vf64){0} : VECTOR_LOAD(vf64, at + k * LANES(double));            \
                e[k] = b[k] = (vf64){0};                                                           \
                left[k] = (vi64){0};                                                               \
            }                                                                                      \
            if (wait == 0) {                                                                       \
                EACH_ROW(element, in->x, in->x_row,                                                \
                         EACH_VALUE(DOUBLE_##name(p, k), TRY_ONE, FIRST));                         \
                for (size_t k = 1; k < DOUBLES; k++)                                               \
                    left[0] |= left[k];                                                            \
            }                                                                                      \
            if (wait > 0 || any_set((vu64)left[0])) {                                              \
                if (wait > 0)                                                                      \
                    KERNEL_PATH("with a bound, untried");                                          \
                else                                                                               \
                    KERNEL_PATH("again with a bound");                                             \
                wait = wait > 0 ? wait - 1 : COLUMNS_TRY_AGAIN;                                    \
                whole = 1;                                                                         \
                FETCH_SUM(s, e, b, at)                                                             \
                AGAIN(element, name)                                                               \
            }                                                                                      \
            STORE(at, s, double);                                                                  \
            if (!whole) continue;                                                                  \
            STORE(at + stride, e, double);                                                         \
            STORE(at + 2 * stride, b, double);                                                     \
        }                                                                                          \
    })
#define AGAIN(element, name)                                                                       \
    EACH_ROW(element, in->x, in->x_row, EACH_VALUE(DOUBLE_##name(p, k), ADD_ONE, FIRST));
#define AGAIN_WIDE(element, name)                                                                  \
    const size_t rows = ROWS_HERE;                                                                 \
    float tile[ROWS_AT_ONCE][STEP];                                                                \
    CONCAT(widen_##name, TALLY_ISA)                                                                \
    (in->x + (ptrdiff_t)r0 * in->x_row + c * sizeof(element), in->x_row, rows, LEFT, tile);        \
    for (size_t r = 0; r < rows; r++)                                                              \
    EACH_VALUE(DOUBLE_f32(tile[r], k), ADD_ONE, FIRST)

#define PAIR_KERNEL(name, element, ADD)                                                            \
    COLUMN_KERNEL(                                                                                 \
        products, name, double, 2, EACH_ROW_BLOCK(element) {                                       \
            WITH_SUMS(1, element others[ROWS_AT_ONCE][STEP]; ptrdiff_t y_step;                     \
                      const char *y =                                                              \
                          whole_rows(in->y + (ptrdiff_t)r0 * in->y_row + c * sizeof(element),      \
                                     in->y_row, ROWS_HERE, LEFT * sizeof(element),                 \
                                     STEP * sizeof(element), (char *)others, &y_step);             \
                      EACH_ROW(element, in->x, in->x_row, {                                        \
                          const element *q = (const element *)y;                                   \
                          y += y_step;                                                             \
                          if (is_single) PREFETCH(q, STEP * sizeof(element), row_ahead, 1);        \
                          EACH_PAIR(DOUBLE_##name(p, k), DOUBLE_##name(q, k), ADD)                 \
                      }););                                                                        \
        })

#define SUM_KERNELS(name, element, length)                                                         \
    SUM_KERNEL(two, name, element, ADD_TWO, FIRST)                                                 \
    SUM_KERNEL(magnitudes, name, element, ADD_MAGNITUDE, ADD_MAGNITUDE)                            \
    SUM_KERNEL(squares, name, element, SQUARE_##length, SQUARE_##length)                           \
    PAIR_KERNEL(name, element, PRODUCT_##length)                                                   \
    WIDE_SUM_KERNEL(squares, name, element, SQUARE_##length, SQUARE_##length)                      \
    WIDE_PAIR_KERNEL(name, element, PRODUCT_##length)

#define WIDENED(op, name, element, wide)                                                           \
    COLUMN_KERNEL(op, name, double, 3, {                                                           \
        (void)is_single, (void)row_ahead;                                                          \
        KERNEL_PATH("of columns");                                                                 \
        CONCAT(op##_wide_##wide, TALLY_ISA)                                                        \
        (planes, stride, in, width, CONCAT(widen_##name, TALLY_ISA), sizeof(element));             \
    })
#define WIDENED_KERNELS(name, element, wide)                                                       \
    WIDENED(squares, name, element, wide)                                                          \
    WIDENED(products, name, element, wide)

/* Sums of integers. Up to ROWS_AT_ONCE rows are summed in integer lanes, which hold these sums; the sums are then
 * added as doubles. SUM(p, k) is the k-th vector of elements, or of their magnitudes. */
#define INTEGER_KERNEL(op, name, element, vector, SUM, DOUBLE, ADD)                                \
    COLUMN_KERNEL(                                                                                 \
        op, name, double, 1 + PAIR_##op, EACH_ROW_BLOCK(element) {                                 \
            vector total[STEP / (sizeof(vector) / sizeof((vector){0}[0]))];                        \
            for (size_t k = 0; k < sizeof total / sizeof total[0]; k++)                            \
                total[k] = (vector){0};                                                            \
            EACH_ROW(element, in->x, in->x_row,                                                    \
                     for (size_t k = 0; k < sizeof total / sizeof total[0]; k++) total[k] +=       \
                     SUM(p, k););                                                                  \
            WITH_SUMS(PAIR_##op, for (size_t k = 0; k < DOUBLES; k++) ADD(DOUBLE(total, k)););     \
        })
#define PAIR_one            0
#define PAIR_two            1
#define PAIR_magnitudes     1
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
/* Returns integers of magnitudes below 2^51 as doubles, exactly. */
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

/* Adds a pair and a bound to a vector of columns' planes from `at` on; if `first`, stores them there instead. */
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
        const int is_single = 0;                                                                   \
        const ptrdiff_t row_ahead = 0;                                                             \
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

/* Merges as merge_sum() does, where e is 0: FORM_SUM1. */
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

/* ---- The tables ----------------------------------------------------------------------------- */

/* The types of FLOATS whose values one double adds up; the others take two. */
#define NARROW(X)                                                                                  \
    X(I8, i8)                                                                                      \
    X(I16, i16) X(U8, u8) X(U16, u16) X(F16, f16) X(BF16, bf16) X(F32, f32)

#define FORM(NAME, planes, changed, clear, kernel, each, merge)                                    \
    [TALLY_##NAME] = {                                                                             \
        planes, 8, 1, changed, ISA_NAME(clear), CONCAT(kernel, TALLY_ISA), each, ISA_NAME(merge)},
#define SUM_FORM(NAME, kernel, merge)                                                              \
    FORM(NAME, 3, CONCAT(changed_##kernel, TALLY_ISA), clear_sum, kernel,                          \
         CONCAT(each_##kernel, TALLY_ISA), merge)
#define ONE(NAME, name)        SUM_FORM(NAME, one_##name, merge_one)
#define TWO(NAME, name)        SUM_FORM(NAME, two_##name, merge_sum)
#define MAGNITUDES(NAME, name) SUM_FORM(NAME, magnitudes_##name, merge_sum)
#define SQUARES(NAME, name)    SUM_FORM(NAME, squares_##name, merge_sum)
#define PRODUCTS(NAME, name)   SUM_FORM(NAME, products_##name, merge_sum)
#define MOMENTS(NAME, name)    FORM(NAME, 6, 0, clear_moments, moments_of_##name, NULL, merge_moments)

column_forms ISA_NAME(forms_one) = {NARROW(ONE)};
column_forms ISA_NAME(forms_two) = {FLOATS(TWO)};
column_forms ISA_NAME(forms_magnitudes) = {FLOATS(MAGNITUDES)};
column_forms ISA_NAME(forms_squares) = {FLOATS(SQUARES)};
column_forms ISA_NAME(forms_products) = {FLOATS(PRODUCTS)};
column_forms ISA_NAME(forms_moments) = {MOMENTS(F16, f16) MOMENTS(BF16, bf16) MOMENTS(F32, f32)
                                            MOMENTS(F64, f64)};
