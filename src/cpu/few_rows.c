/*
 * few_rows.c - columns of a few elements each, of one instruction set: a step of columns is loaded, reduced, rounded and
 * written without leaving the registers. A state in memory would cost more than the elements.
 *
 * Every kernel notes in `wrong` what it cannot be sure of. The caller then does these columns in the way for any number
 * of rows; so what is rare (NaNs and infinities in sums, sums that are not exact) is not done here.
 */
#include "cpu/column_arithmetic.h"
#include "cpu/column_kernels.h"

_Static_assert(FEW_ROWS <= ROWS_AT_ONCE, "so MOMENTS_NEAR holds");

/* A loop over steps of columns, each from c on. The last one ends with the last column, so that some columns may be
 * done twice. */
#define EACH_STEP                                                                                  \
    KERNEL_PATH("");                                                                               \
    for (size_t c = 0, last = width - STEP, more = 1; more;                                        \
         more = c < last, c = c + STEP < last ? c + STEP : last)

/* p: the step's elements of row r. */
#define ROW(element, r)                                                                            \
    const element *p = (const element *)(in->x + (ptrdiff_t)(r)*in->row) + c;                      \
    if (in->ahead) PREFETCH(p, STEP * sizeof(element), in->ahead, 2)

#define FEW(op, name)                                                                              \
    static int CONCAT(few_##op##_##name, TALLY_ISA)(const struct few_rows *in, size_t width,       \
                                                    char *to)

/* Returns a mask of the lanes where v is a NaN or infinite. */
ALWAYS_INLINE vi64 not_finite(vf64 v) {
    return (vi64)(v - v);
}

/* ---- Sums and means ------------------------------------------------------------------------- */

/* Adds up floats in one double each, and sets bits of `wrong` if a sum is not exact: see TRY_ONE in column_sums.c. */
#define SUM_f32(element)                                                                           \
    vf64 s[DOUBLES];                                                                               \
    {                                                                                              \
        ROW(element, 0);                                                                           \
        for (size_t k = 0; k < DOUBLES; k++)                                                       \
            s[k] = DOUBLE_f32(p, k);                                                               \
    }                                                                                              \
    for (size_t r = 1; r < in->rows; r++) {                                                        \
        ROW(element, r);                                                                           \
        for (size_t k = 0; k < DOUBLES; k++) {                                                     \
            const vf64 v = DOUBLE_f32(p, k), before = s[k], t = before + v;                        \
            wrong = note_difference(wrong, (vi64)(t - before), (vi64)v);                           \
            wrong = note_difference(wrong, (vi64)MINUS(t, v), (vi64)before);                       \
            s[k] = t;                                                                              \
        }                                                                                          \
    }

/* Adds up doubles as s + e, and sets bits of `wrong` if a sum is not exact. */
#define SUM_f64(element)                                                                           \
    vf64 s[DOUBLES], e[DOUBLES], lost[DOUBLES];                                                    \
    {                                                                                              \
        ROW(element, 0);                                                                           \
        for (size_t k = 0; k < DOUBLES; k++)                                                       \
            s[k] = DOUBLE_f64(p, k);                                                               \
    }                                                                                              \
    {                                                                                              \
        ROW(element, 1);                                                                           \
        for (size_t k = 0; k < DOUBLES; k++) {                                                     \
            e[k] = two_sum(s[k], DOUBLE_f64(p, k), &s[k]);                                         \
            lost[k] = (vf64){0};                                                                   \
        }                                                                                          \
    }                                                                                              \
    for (size_t r = 2; r < in->rows; r++) {                                                        \
        ROW(element, r);                                                                           \
        for (size_t k = 0; k < DOUBLES; k++) {                                                     \
            const vf64 error = two_sum(s[k], DOUBLE_f64(p, k), &s[k]);                             \
            lost[k] = (vf64)((vi64)lost[k] | (vi64)absolute(two_sum(e[k], error, &e[k])));         \
        }                                                                                          \
    }                                                                                              \
    for (size_t k = 0; k < DOUBLES; k++)                                                           \
        wrong |= (vi64)lost[k] | not_finite(s[k]);

FEW(sum, f32) {
    float *out = (float *)(void *)to;
    vi64 wrong = {0};
    EACH_STEP {
        SUM_f32(unaligned_f32) for (size_t k = 0; k < DOUBLES; k++) {
            const vf32half value = FLOATS_OF_DOUBLES(s[k]);
            wrong |= not_finite(s[k]);
            memcpy(out + c + k * LANES(double), &value, sizeof value);
        }
    }
    return !any_set((vu64)wrong);
}

FEW(sum, f64) {
    double *out = (double *)(void *)to;
    vi64 wrong = {0};
    EACH_STEP {
        SUM_f64(unaligned_f64) for (size_t k = 0; k < DOUBLES; k++) {
            const vi64 value = PICK((vi64)(e[k] == 0), (vi64)s[k], (vi64)(s[k] + e[k]));
            memcpy(out + c + k * LANES(double), &value, sizeof value);
        }
    }
    return !any_set((vu64)wrong);
}

/* Means. Dividing by a power of two is exact. Otherwise the remainder's sign says how to round the quotient to odd. */
FEW(mean, f32) {
    float *out = (float *)(void *)to;
    const vf64 by = (vf64){0} + (double)in->rows, inverse = 1 / by;
    const int power = (in->rows & (in->rows - 1)) == 0;
    vi64 wrong = {0};
    EACH_STEP {
        SUM_f32(unaligned_f32) for (size_t k = 0; k < DOUBLES; k++) {
            const vf64 mean = s[k] / by;
            const vf64 odd = power ? mean : to_odd(mean, -fused(mean, by, s[k]) * inverse);
            const vf32half value = FLOATS_OF_DOUBLES(odd);
            wrong |= not_finite(s[k]);
            memcpy(out + c + k * LANES(double), &value, sizeof value);
        }
    }
    return !any_set((vu64)wrong);
}

FEW(mean, f64) {
    double *out = (double *)(void *)to;
    const vf64 by = (vf64){0} + (double)in->rows;
    const int power = (in->rows & (in->rows - 1)) == 0;
    vi64 wrong = {0};
    EACH_STEP {
        SUM_f64(unaligned_f64) for (size_t k = 0; k < DOUBLES; k++) {
            vi64 value;
            if (power) { /* exact, far enough from underflow */
                const vf64 sum = (vf64)PICK((vi64)(e[k] == 0), (vi64)s[k], (vi64)(s[k] + e[k]));
                value = (vi64)(sum / by);
                wrong |= ((vi64)(absolute(sum) < 0x1p-1000) & (vi64)(sum != 0)) | not_finite(sum);
            } else {
                vf64 high = s[k], low = e[k], bound = {0};
                vi64 certain;
                divide(&high, &low, &bound, by);
                value = round_to_f64(high, low, reach(low, bound), &certain);
                wrong |= ~certain;
            }
            memcpy(out + c + k * LANES(double), &value, sizeof value);
        }
    }
    return !any_set((vu64)wrong);
}

/* ---- Variances ------------------------------------------------------------------------------ */

#define ROUNDED_f32 vf32half
#define ROUNDED_f64 vi64

/* Variances from approximate sums, whose bounds column_arithmetic.h derives. */
#define FEW_VARIANCE(op, name, element, length, root)                                              \
    FEW(op, name) {                                                                                \
        element *out = (element *)to;                                                              \
        const vf64 by = (vf64){0} + (double)in->rows, none = {0};                                  \
        const double ddof = in->ddof;                                                              \
        vi64 wrong = {0};                                                                          \
        EACH_STEP {                                                                                \
            vf64 sum[DOUBLES], square[DOUBLES], low[DOUBLES], low2[DOUBLES];                       \
            for (size_t k = 0; k < DOUBLES; k++)                                                   \
                sum[k] = square[k] = low[k] = low2[k] = none;                                      \
            for (size_t r = 0; r < in->rows; r++) {                                                \
                ROW(element, r);                                                                   \
                for (size_t k = 0; k < DOUBLES; k++) {                                             \
                    const vf64 v = DOUBLE_##name(p, k);                                            \
                    MOMENTS_##length(v);                                                           \
                }                                                                                  \
            }                                                                                      \
            for (size_t k = 0; k < DOUBLES; k++) {                                                 \
                const vf64 off = square[k] * MOMENTS_NEAR_##length + 0x1p-1070;                    \
                vf64 high, rest, bound;                                                            \
                vi64 certain;                                                                      \
                variance_of(sum[k], low[k], none, square[k], low2[k], off, by, ddof, root,         \
                            MOMENTS_NEAR_##length, &high, &rest, &bound);                          \
                const ROUNDED_##name value =                                                       \
                    round_to_##name(high, rest, reach(rest, bound), &certain);                     \
                wrong |= ~certain | not_finite(high);                                              \
                memcpy(out + c + k * LANES(double), &value, sizeof value);                         \
            }                                                                                      \
        }                                                                                          \
        return !any_set((vu64)wrong);                                                              \
    }
FEW_VARIANCE(var, f32, unaligned_f32, short, 0)
FEW_VARIANCE(std, f32, unaligned_f32, short, 1)
FEW_VARIANCE(var, f64, unaligned_f64, long, 0)
FEW_VARIANCE(std, f64, unaligned_f64, long, 1)

/* ---- Extremes ------------------------------------------------------------------------------- */

#define LEAST_KEY(type, vector) ((vector){0} - MOST_KEY(type) - 1)
#define MOST_KEY(type)          (sizeof(type) == 4 ? (type)INT32_MAX : (type)INT64_MAX)
#define IS_NAN(name, key)       (((key) > INF_##name) | ((key) < ~INF_##name))
/* The bits of the NaN that is written. Integers have none. */
#define NAN_f32 0x7fc00000
#define NAN_f64 INT64_C(0x7ff8000000000000)
#define NAN_i32 0
#define NAN_u32 0
#define NAN_i64 0
#define NAN_u64 0

#define FEW_EXTREME(op, name, element, type, vector, VECTORS, wanted, LOWER, HIGHER)               \
    FEW(op, name) {                                                                                \
        type *out = (type *)(void *)to;                                                            \
        EACH_STEP {                                                                                \
            vector low[VECTORS], high[VECTORS];                                                    \
            for (size_t k = 0; k < VECTORS; k++) {                                                 \
                low[k] = (vector){0} + MOST_KEY(type);                                             \
                high[k] = ~low[k];                                                                 \
            }                                                                                      \
            for (size_t r = 0; r < in->rows; r++) {                                                \
                ROW(element, r);                                                                   \
                for (size_t k = 0; k < VECTORS; k++) {                                             \
                    const vector v = BITS_##name(p, k), key = KEY_##name(v);                       \
                    low[k] = LOWER(key, low[k]);                                                   \
                    high[k] = HIGHER(key, high[k]);                                                \
                }                                                                                  \
            }                                                                                      \
            for (size_t k = 0; k < VECTORS; k++) {                                                 \
                const vector nan = (vector)((high[k] > INF_##name) | (low[k] < ~INF_##name));      \
                vector value = KEY_##name(wanted[k]);                                              \
                value = PICK(nan, (vector){0} + NAN_##name, value);                                \
                memcpy(out + c + k * LANES(type), &value, sizeof value);                           \
            }                                                                                      \
        }                                                                                          \
        return 1;                                                                                  \
    }

/* Write indices of 32, or 64, bits as words. */
#define INDICES_32(out, at)                                                                        \
    for (size_t k = 0; k < DOUBLES; k++) {                                                         \
        vu32half h;                                                                                \
        memcpy(&h, (const char *)(at) + k * sizeof h, sizeof h);                                   \
        const vu64 value = WIDE_OF_WORDS(h);                                                       \
        memcpy((out) + k * LANES(double), &value, sizeof value);                                   \
    }
#define INDICES_64(out, at) memcpy(out, at, STEP * sizeof(uint64_t))

#define FEW_INDEX(op, name, element, type, vector, VECTORS, FLOATING, flip, bits)                  \
    FEW(op, name) {                                                                                \
        uint64_t *out = (uint64_t *)(void *)to;                                                    \
        EACH_STEP {                                                                                \
            vector best[VECTORS], at[VECTORS];                                                     \
            for (size_t k = 0; k < VECTORS; k++) {                                                 \
                best[k] = (vector){0} + MOST_KEY(type);                                            \
                at[k] = (vector){0};                                                               \
            }                                                                                      \
            for (size_t r = 0; r < in->rows; r++) {                                                \
                const vector index = (vector){0} + (type)r;                                        \
                ROW(element, r);                                                                   \
                for (size_t k = 0; k < VECTORS; k++) {                                             \
                    const vector v = BITS_##name(p, k), plain = KEY_##name(v);                     \
                    vector key = plain ^ (flip);                                                   \
                    if (FLOATING) {                                                                \
                        const vector nan = (vector)IS_NAN(name, plain);                            \
                        key = PICK(nan, LEAST_KEY(type, vector), key);                             \
                    }                                                                              \
                    const vector better = (vector)(key < best[k]);                                 \
                    best[k] = PICK(better, key, best[k]);                                          \
                    at[k] = PICK(better, index, at[k]);                                            \
                }                                                                                  \
            }                                                                                      \
            INDICES_##bits(out + c, at);                                                           \
        }                                                                                          \
        return 1;                                                                                  \
    }

#define FEW_KEYS(name, element, type, vector, VECTORS, FLOATING, bits)                             \
    FEW_EXTREME(min, name, element, type, vector, VECTORS, low, LOWER_##bits, HIGHER_##bits)       \
    FEW_EXTREME(max, name, element, type, vector, VECTORS, high, LOWER_##bits, HIGHER_##bits)      \
    FEW_INDEX(argmin, name, element, type, vector, VECTORS, FLOATING, 0, bits)                     \
    FEW_INDEX(argmax, name, element, type, vector, VECTORS, FLOATING, -1, bits)
FEW_KEYS(i32, unaligned_i32, int32_t, vi32, INTS, 0, 32)
FEW_KEYS(u32, unaligned_u32, int32_t, vi32, INTS, 0, 32)
FEW_KEYS(f32, unaligned_f32, int32_t, vi32, INTS, 1, 32)
FEW_KEYS(i64, unaligned_i64, int64_t, vi64, DOUBLES, 0, 64)
FEW_KEYS(u64, unaligned_u64, int64_t, vi64, DOUBLES, 0, 64)
FEW_KEYS(f64, unaligned_f64, int64_t, vi64, DOUBLES, 1, 64)

/* ---- The table ------------------------------------------------------------------------------ */

#define REAL(X, op)           X(F32, f32, op) X(F64, f64, op)
#define KEYED(X, op)          REAL(X, op) X(I32, i32, op) X(U32, u32, op) X(I64, i64, op) X(U64, u64, op)
#define ENTRY(NAME, name, op) [TALLY_##NAME] = CONCAT(few_##op##_##name, TALLY_ISA),

few_kernel *const ISA_NAME(few_kernels)[TALLY_ARGMAX + 1][COLUMN_TYPES] = {
    [TALLY_SUM] = {REAL(ENTRY, sum)},        [TALLY_MEAN] = {REAL(ENTRY, mean)},
    [TALLY_VAR] = {REAL(ENTRY, var)},        [TALLY_STD] = {REAL(ENTRY, std)},
    [TALLY_MIN] = {KEYED(ENTRY, min)},       [TALLY_MAX] = {KEYED(ENTRY, max)},
    [TALLY_ARGMIN] = {KEYED(ENTRY, argmin)}, [TALLY_ARGMAX] = {KEYED(ENTRY, argmax)}};
