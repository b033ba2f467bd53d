/*
 * segments.c - exact sums of many short segments at once, however long each of them is, of one instruction set.
 *
 * A piece of some hundred elements is extracted into integers of one unit (extract.h says how), and these are added up
 * lane by lane as they come: running[V + k] is the sum of elements k, k - V, k - 2 V ..., where V is the lanes of a
 * vector, and running[0..V) is 0. So the V words from running[j] on add up to the sum of all elements before j, and a
 * segment's sum is this sum at the segment's end minus this sum at its beginning. Elements cost the same in segments
 * of every length, a segment costs two loads, and nothing is decided by lengths.
 *
 * Bounds. All |x| < 2^E and no segment has more than 2^g elements. The upper unit is 2^(E + g - 50), so that a sum
 * of upper integers, and what is carried into it, is less than 2^51 and is made a double exactly. The lower unit is 51
 * bits below: what is left of an element is at most half the upper unit, 2^50 lower ones, and a sum of these less than
 * 2^61. If an element is still not used up, the piece is not done here. Sums wrap around 2^64 on the way, and
 * differences are right nevertheless.
 */
#include "cpu/column_kernels.h"
#include "cpu/column_loads.h"

#define UPPER 50
#define DROP  51
/* The bits of sigma, 1.5 * 2^52 units of 2^u. */
#define SIGMA_BITS(u) (((int64_t)((u) + 52 + 1023) << 52) | INT64_C(1) << 51)

_Static_assert(SEGMENTS_PIECE <= 1 << 10, "2^50 * 2^10 and a carry fit");

/* Returns in lane i the sum of the V words of d[i]. */
ALWAYS_INLINE vu64 add_across(const vu64 *d) {
#if TALLY_VECTOR == 64
    __m512i pair[4], four[2];
    for (int i = 0; i < 4; i++) {
        const __m512i a = (__m512i)d[2 * i], b = (__m512i)d[2 * i + 1];
        pair[i] = _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    }
    for (int i = 0; i < 2; i++)
        four[i] = _mm512_add_epi64(_mm512_shuffle_i64x2(pair[2 * i], pair[2 * i + 1], 0x88),
                                   _mm512_shuffle_i64x2(pair[2 * i], pair[2 * i + 1], 0xdd));
    return (vu64)_mm512_add_epi64(_mm512_shuffle_i64x2(four[0], four[1], 0x88),
                                  _mm512_shuffle_i64x2(four[0], four[1], 0xdd));
#else
    vu64 sum = {0};
    for (size_t i = 0; i < LANES(double); i++)
        for (size_t k = 0; k < LANES(double); k++)
            sum[i] += d[i][k];
    return sum;
#endif
}

/* Returns a lane for each of segments [i, i + V): the running totals' sum at its end minus that at
 * the end of the one before. It includes sigma's bits, once for each element. *before is the vector
 * at the end of segment i - 1, and becomes that of the last one. */
ALWAYS_INLINE vu64 differences(const uint64_t *running, const size_t *start, size_t i, size_t count,
                               vu64 *before) {
    const size_t first = start[0];
    vu64 d[LANES(double)];
    if (i + LANES(double) <= count)
        for (size_t k = 0; k < LANES(double); k++) {
            const vu64 at = VECTOR_LOAD(vu64, running + (start[i + k + 1] - first));
            d[k] = at - *before;
            *before = at;
        }
    else
        for (size_t k = 0; k < LANES(double); k++) {
            const size_t end = start[i + k < count ? i + k + 1 : count] - first;
            const vu64 at = VECTOR_LOAD(vu64, running + end);
            d[k] = at - *before;
            *before = at;
        }
    return add_across(d);
}

/* Returns signed integers of magnitudes below 2^51 as doubles, exactly. */
ALWAYS_INLINE vf64 double_of(vu64 v) {
    const vu64 magic = (vu64){0} + UINT64_C(0x4338000000000000);
    return (vf64)(v + magic) - (vf64)magic;
}

ALWAYS_INLINE double two_to(int exponent) {
    return __builtin_ldexp(1.0, exponent);
}

/* Makes the segments' sums, s[i] + e[i], from running totals in units of 2^u and, if `levels` is 2,
 * from those in units of 2^(u - DROP), too. */
ALWAYS_INLINE void lower_totals(const uint64_t *running, const size_t *start, size_t count, int u,
                                int levels, double *s, double *e) {
    const double unit = two_to(u), unit2 = two_to(u - DROP);
    const uint64_t sigma = (uint64_t)SIGMA_BITS(u), sigma2 = (uint64_t)SIGMA_BITS(u - DROP);
    vu64 before = {0}, before2 = {0};
    for (size_t i = 0; i < count; i += LANES(double)) {
        const vu64 n = VECTOR_LOAD(vu64, start + i + 1) - VECTOR_LOAD(vu64, start + i);
        vu64 high = differences(running, start, i, count, &before) - n * sigma;
        vf64 low = {0};
        if (levels == 2) {
            const vu64 rest =
                differences(running + SEGMENTS_ROOM / 2, start, i, count, &before2) - n * sigma2;
            const vu64 carry = (vu64)((vi64)(rest + (UINT64_C(1) << (DROP - 1))) >> DROP);
            high += carry;
            low = double_of(rest - (carry << DROP)) * unit2;
        }
        const vf64 sum = double_of(high) * unit;
        memcpy(s + i, &sum, sizeof sum);
        memcpy(e + i, &low, sizeof low);
    }
}

/* Adds one step of elements, from number `at` on, to the running totals of one or of two levels. */
#define TAKE(name, p, at)                                                                          \
    for (size_t k = 0; k < DOUBLES; k++) {                                                         \
        const vf64 v = DOUBLE_##name(p, k), t = v + sigma, taken = t - sigma;                      \
        total += (vu64)t;                                                                          \
        memcpy(running + LANES(double) + (at) + k * LANES(double), &total, sizeof total);          \
        if (levels == 1)                                                                           \
            wrong = note_difference(wrong, (vi64)taken, (vi64)v);                                  \
        else {                                                                                     \
            const vf64 rest = v - taken, t2 = rest + sigma2;                                       \
            total2 += (vu64)t2;                                                                    \
            memcpy(running + SEGMENTS_ROOM / 2 + LANES(double) + (at) + k * LANES(double),         \
                   &total2, sizeof total2);                                                        \
            wrong = note_difference(wrong, (vi64)(t2 - sigma2), (vi64)rest);                       \
        }                                                                                          \
    }

/* Makes the running totals of x[0..n), and returns whether nothing was left. -0 is taken for something that is left:
 * +0 would come of it. */
#define RUN(name, element)                                                                         \
    ALWAYS_INLINE int CONCAT(run_##name, TALLY_ISA)(const element *x, size_t n, int u, int levels, \
                                                    uint64_t *running) {                           \
        const vf64 sigma = (vf64)((vi64){0} + SIGMA_BITS(u)),                                      \
                   sigma2 = (vf64)((vi64){0} + SIGMA_BITS(u - DROP));                              \
        vu64 total = {0}, total2 = {0};                                                            \
        vi64 wrong = {0};                                                                          \
        memcpy(running, &total, sizeof total);                                                     \
        memcpy(running + SEGMENTS_ROOM / 2, &total, sizeof total);                                 \
        size_t i = 0;                                                                              \
        for (; i + STEP <= n; i += STEP) {                                                         \
            PREFETCH(x + i, STEP * sizeof(element), 8192, 2);                                      \
            TAKE(name, x + i, i)                                                                   \
        }                                                                                          \
        if (i < n) {                                                                               \
            element last[STEP] = {0};                                                              \
            memcpy(last, x + i, (n - i) * sizeof(element));                                        \
            TAKE(name, last, i)                                                                    \
        }                                                                                          \
        return !any_set((vu64)wrong);                                                              \
    }

/* Returns the bits of the greatest magnitude of x[0..n), floats: a NaN's are above all others. */
#define GREATEST_FLOAT(name, element, type, vector, all, HIGHER)                                   \
    ALWAYS_INLINE type CONCAT(most_##name, TALLY_ISA)(const element *x, size_t n) {                \
        vector most[STEP / LANES(type)] = {{0}};                                                   \
        size_t i = 0;                                                                              \
        for (; i + STEP <= n; i += STEP)                                                           \
            for (size_t k = 0; k < STEP / LANES(type); k++) {                                      \
                const vector v = BITS_##name(x + i, k) & (all);                                    \
                most[k] = HIGHER(most[k], v);                                                      \
            }                                                                                      \
        if (i < n) {                                                                               \
            element last[STEP] = {0};                                                              \
            memcpy(last, x + i, (n - i) * sizeof(element));                                        \
            for (size_t k = 0; k < STEP / LANES(type); k++) {                                      \
                const vector v = BITS_##name(last, k) & (all);                                     \
                most[k] = HIGHER(most[k], v);                                                      \
            }                                                                                      \
        }                                                                                          \
        for (size_t k = 1; k < STEP / LANES(type); k++)                                            \
            most[0] = HIGHER(most[0], most[k]);                                                    \
        type one = 0;                                                                              \
        for (size_t k = 0; k < LANES(type); k++)                                                   \
            one = most[0][k] > one ? most[0][k] : one;                                             \
        return one;                                                                                \
    }
GREATEST_FLOAT(f64, unaligned_f64, int64_t, vi64, INT64_MAX, HIGHER_64)
GREATEST_FLOAT(f32, unaligned_f32, int32_t, vi32, INT32_MAX, HIGHER_32)
GREATEST_FLOAT(bf16, unaligned_u16, int32_t, vi32, 0x7fff, HIGHER_32)
GREATEST_FLOAT(f16, unaligned_u16, int32_t, vi32, 0x7fff, HIGHER_32)

/* Returns an E such that all magnitudes are below 2^E, from the greatest one's bits; or NOT_FINITE. */
#define NOT_FINITE INT32_MAX
ALWAYS_INLINE int above(int64_t bits, int mantissa, int bias) {
    const int field = (int)(bits >> mantissa);
    if (bits == 0) return 0;
    if (field == 2 * bias + 1) return NOT_FINITE;
    return (field > 0 ? field : 1) - bias + 1;
}
#define ABOVE_f64(x, n)  above(CONCAT(most_f64, TALLY_ISA)(x, n), 52, 1023)
#define ABOVE_f32(x, n)  above(CONCAT(most_f32, TALLY_ISA)(x, n), 23, 127)
#define ABOVE_bf16(x, n) above(CONCAT(most_bf16, TALLY_ISA)(x, n), 7, 127)
#define ABOVE_f16(x, n)  above(CONCAT(most_f16, TALLY_ISA)(x, n), 10, 15)
#define ABOVE_i32(x, n)  33

/* LEAST_LEVELS: the levels that are tried first; f64 seldom fits one. MOST_LEVELS: the most levels that can be
 * needed. An f16 needs one: it is a multiple of 2^-24 below 2^16, and the upper unit is at most 2^(16 + 10 - UPPER) =
 * 2^-24. FITS: 1 if no element can fail, as for integers, which are below 2^33 and never -0. */
#define ALWAYS "such elements fit a level"
#define SEGMENTS_KERNEL(name, element, LEAST_LEVELS, MOST_LEVELS, FITS)                            \
    RUN(name, element)                                                                             \
    static int CONCAT(segments_##name, TALLY_ISA)(const char *bytes, const size_t *start,          \
                                                  size_t count, uint64_t *running, double *s,      \
                                                  double *e) {                                     \
        const size_t n = start[count] - start[0];                                                  \
        const element *x = (const element *)bytes + start[0];                                      \
        const int top = ABOVE_##name(x, n);                                                        \
        size_t most = 0;                                                                           \
        for (size_t i = 0; i < count; i++)                                                         \
            most = start[i + 1] - start[i] > most ? start[i + 1] - start[i] : most;                \
        if (top > 900 || top < -800) {                                                             \
            KERNEL_PATH_IF(!(FITS), "too large or too small", ALWAYS);                             \
            return 0;                                                                              \
        }                                                                                          \
        const int u = top + (most > 1 ? 64 - __builtin_clzll(most - 1) : 0) - UPPER;               \
        if (LEAST_LEVELS == 1 && CONCAT(run_##name, TALLY_ISA)(x, n, u, 1, running)) {             \
            KERNEL_PATH_IF(LEAST_LEVELS == 1, "one level", "two levels are tried first");          \
            lower_totals(running, start, count, u, 1, s, e);                                       \
            return 1;                                                                              \
        }                                                                                          \
        if (!CONCAT(run_##name, TALLY_ISA)(x, n, u, 2, running)) {                                 \
            KERNEL_PATH_IF(!(FITS), "not exact", ALWAYS);                                          \
            return 0;                                                                              \
        }                                                                                          \
        KERNEL_PATH_IF(MOST_LEVELS == 2, "two levels", ALWAYS);                                    \
        lower_totals(running, start, count, u, 2, s, e);                                           \
        return 1;                                                                                  \
    }

#define ABOVE_i8  ABOVE_i32
#define ABOVE_u8  ABOVE_i32
#define ABOVE_i16 ABOVE_i32
#define ABOVE_u16 ABOVE_i32
#define ABOVE_u32 ABOVE_i32
SEGMENTS_KERNEL(i8, unaligned_i8, 1, 1, 1)
SEGMENTS_KERNEL(u8, unaligned_u8, 1, 1, 1)
SEGMENTS_KERNEL(i16, unaligned_i16, 1, 1, 1)
SEGMENTS_KERNEL(u16, unaligned_u16, 1, 1, 1)
SEGMENTS_KERNEL(i32, unaligned_i32, 1, 1, 1)
SEGMENTS_KERNEL(u32, unaligned_u32, 1, 1, 1)
SEGMENTS_KERNEL(f16, unaligned_u16, 1, 1, 0)
SEGMENTS_KERNEL(bf16, unaligned_u16, 1, 2, 0)
SEGMENTS_KERNEL(f32, unaligned_f32, 1, 2, 0)
SEGMENTS_KERNEL(f64, unaligned_f64, 2, 2, 0)

#define SEGMENTS(NAME, name) [TALLY_##NAME] = CONCAT(segments_##name, TALLY_ISA),
segments_kernel *const ISA_NAME(segments_kernels)[COLUMN_TYPES] = {FLOATS(SEGMENTS)};
