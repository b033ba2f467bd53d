/*
 * column_arithmetic.h - arithmetic on vectors of doubles for the kernels of columns: error-free sums, approximate
 * sums and squares, quotients, variances and rounding, each with a bound on its error.
 */
#ifndef TALLY_CPU_COLUMN_ARITHMETIC_H
#define TALLY_CPU_COLUMN_ARITHMETIC_H

#include "cpu/column_loads.h"

/* Rows that are taken together: a column's planes are loaded and stored once for them. */
#define ROWS_AT_ONCE 8

/* a + b and a - b as fused multiply-adds, by the multipliers, which have little else to do here: processors that
 * start two additions a cycle start two multiplications beside them. */
#if TALLY_VECTOR == 64
#define PLUS(a, b)  (vf64) _mm512_fmadd_pd((__m512d)(a), _mm512_set1_pd(1), (__m512d)(b))
#define MINUS(a, b) (vf64) _mm512_fmsub_pd((__m512d)(a), _mm512_set1_pd(1), (__m512d)(b))
#elif TALLY_VECTOR == 32 && defined(__FMA__)
#define PLUS(a, b)  (vf64) _mm256_fmadd_pd((__m256d)(a), _mm256_set1_pd(1), (__m256d)(b))
#define MINUS(a, b) (vf64) _mm256_fmsub_pd((__m256d)(a), _mm256_set1_pd(1), (__m256d)(b))
#else
#define PLUS(a, b)  ((a) + (b))
#define MINUS(a, b) ((a) - (b))
#endif

/* Returns the error of *sum = a + b (TwoSum): a + b = *sum + the result. */
ALWAYS_INLINE vf64 two_sum(vf64 a, vf64 b, vf64 *sum) {
    const vf64 t = a + b, z = t - a, error = PLUS(a - (t - z), MINUS(b, z));
    *sum = t;
    return error;
}

/* HAS_FMA is 1 if the processor computes fused() by one instruction, and not in the C library. */
#if defined(__FMA__) || defined(__aarch64__)
#define HAS_FMA 1
#else
#define HAS_FMA 0
#endif

/* Returns a * b - p, rounded once. */
ALWAYS_INLINE vf64 fused(vf64 a, vf64 b, vf64 p) {
#if TALLY_VECTOR == 64
    return (vf64)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)p);
#elif TALLY_VECTOR == 32 && defined(__FMA__)
    return (vf64)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)p);
#else
    for (size_t i = 0; i < LANES(double); i++)
        p[i] = __builtin_fma(a[i], b[i], -p[i]);
    return p;
#endif
}

/* Approximate sums and sums of squares, for variances. ROWS_AT_ONCE rows are added up in doubles (short) or in pairs
 * of doubles (long); only the sums of such rows are added by two_sum(). Bounds, with u = 2^-53 and m = ROWS_AT_ONCE:
 *   short   for elements whose squares are exact in a double. m additions make a sum off by less than m u times the
 *           sum of magnitudes, and a sum of squares by less than m u times itself.
 *   long    for doubles. The errors that low[] adds up are at most m u times the sum of magnitudes; those of low2[],
 *           with the products' own, are at most (m + 1) u times the sum of squares. Adding up 2 m of them in doubles
 *           makes the pair off by less than 2 m (m + 1) u^2 times these sums. A product that underflows adds 2^-1074.
 * The sum of squares is stored with its bound, the sum without: variance_of() derives that bound from `near`. */
#define MOMENTS_NEAR_short 0x1p-49
#define MOMENTS_NEAR_long  0x1p-97
_Static_assert(ROWS_AT_ONCE <= 8, "8 u < 2^-49, 144 u^2 < 2^-97");

/* Returns a * a + b. */
ALWAYS_INLINE vf64 square_plus(vf64 a, vf64 b) {
#if TALLY_VECTOR == 64
    return (vf64)_mm512_fmadd_pd((__m512d)a, (__m512d)a, (__m512d)b);
#elif TALLY_VECTOR == 32 && defined(__FMA__)
    return (vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)a, (__m256d)b);
#else
    return a * a + b;
#endif
}

#define MOMENTS_short(v)                                                                           \
    do {                                                                                           \
        sum[k] += (v);                                                                             \
        square[k] = square_plus(v, square[k]);                                                     \
    } while (0)
#define MOMENTS_long(v)                                                                            \
    do {                                                                                           \
        const vf64 product = (v) * (v), own = fused(v, v, product);                                \
        low[k] += two_sum(sum[k], v, &sum[k]);                                                     \
        low2[k] += two_sum(square[k], product, &square[k]) + own;                                  \
    } while (0)

/* Returns s + e rounded to odd: if the sum is not exact, the one of its two neighbours whose last
 * bit is set. A second rounding, to a mantissa at least two bits shorter, gives the rounded s +
 * e. */
ALWAYS_INLINE vf64 to_odd(vf64 s, vf64 e) {
    vf64 t;
    const vf64 rest = two_sum(s, e, &t);
    const vi64 inexact = (vi64)(rest != 0) & (((vi64)t & 1) - 1);
    const vi64 away = ((vi64)(rest > 0) ^ (vi64)(t > 0)) | 1;
    const vi64 odd = (vi64)t + (inexact & away), exact = (vi64)(e == 0);
    return (vf64)PICK(exact, (vi64)s, odd);
}

/* Returns the bound b of s + e with room for the rounding of e +- b; 0 if b is 0. */
ALWAYS_INLINE vf64 reach(vf64 e, vf64 b) {
    return (vf64)((vi64)(b != 0) & (vi64)(2 * b + absolute(e) * 0x1p-51));
}

/* Ziv's rounding test: all bits set in the lanes where both ends of an interval round to the same value, so that every
 * number between them does. Equal values differ in their bits if one is -0 and the other +0; a NaN is never certain. */
ALWAYS_INLINE vi64 rounds_the_same_f64(vf64 low, vf64 high) {
    return (vi64)((vi64)low == (vi64)high) & (vi64)(low == low);
}
ALWAYS_INLINE vi64 rounds_the_same_f32(vf32half low, vf32half high) {
#if TALLY_VECTOR == 64
    const __m256i same = _mm256_cmpeq_epi32((__m256i)low, (__m256i)high);
    const __m256 number = _mm256_cmp_ps((__m256)low, (__m256)low, _CMP_ORD_Q);
    return (vi64)_mm512_cvtepi32_epi64(_mm256_and_si256(same, _mm256_castps_si256(number)));
#else
    const vi32half same = (vi32half)((vi32half)low == (vi32half)high) & (vi32half)(low == low);
    return __builtin_convertvector(same, vi64);
#endif
}

/* Divides s + e +- b by n < 2^52, in place. b is infinite if some step may have underflowed. The first
 * quotient q may be off by two units of its last place. So the remainder is at most 2 n of these, and exact. */
ALWAYS_INLINE void divide(vf64 *s, vf64 *e, vf64 *b, vf64 n) {
    const vi64 plain = (vi64)(*e == 0);
    vf64 t;
    vf64 rest = two_sum(*s, *e, &t);
    t = (vf64)PICK(plain, (vi64)*s, (vi64)t);
    rest = (vf64)((vi64)rest & ~plain);
    const vf64 inverse = 1 / n, q = t * inverse, r = rest - fused(q, n, t);
    vf64 more = r * inverse;
    if (HAS_FMA) more -= fused(more, n, r) * inverse;
    /* A t that has cancelled to 0 is exact only without a bound, as the bound below may underflow. */
    const vi64 small = (vi64)(absolute(t) < 0x1p-900) & ((vi64)(t != 0) | (vi64)(*b != 0));
    /* The quotient of the remainder r may underflow. It is exact if it leaves no remainder itself, as that of a mean half way
     * between two floats: |t| > 2^-700 keeps all products normal. (Without FMA the test takes too long.) */
    const vf64 off = absolute(more) * 0x1p-51 + 0x1p-1000;
    vi64 exact = {0};
    if (HAS_FMA)
        exact = (vi64)(fused(more, n, r) == 0) & (vi64)(rest == 0) & (vi64)(absolute(t) > 0x1p-700);
    const vf64 own = 2 * (*b * inverse) + 0x1p-1000;
    const vf64 bound =
        (vf64)((vi64)(r != 0) & ~exact & (vi64)off) + (vf64)((vi64)(*b != 0) & (vi64)own);
    *s = q;
    *e = more;
    *b = (vf64)((vi64)bound | (small & INT64_C(0x7ff0000000000000)));
}

ALWAYS_INLINE vf64 root_of(vf64 v) {
#if TALLY_VECTOR == 64
    return (vf64)_mm512_sqrt_pd((__m512d)v);
#elif TALLY_VECTOR == 32
    return (vf64)_mm256_sqrt_pd((__m256d)v);
#else
    for (size_t i = 0; i < LANES(double); i++)
        v[i] = __builtin_sqrt(v[i]);
    return v;
#endif
}

/* Takes the square root of s + e +- b, in place. Let r be the root of s + e, rounded. The remainder
 * s + e - r r, divided by 2 r, is the rest of the root within some 2^-104 of it. b moves the root
 * by at most b / r. b is infinite if nothing is known, and stays 0 if r is the exact root. */
ALWAYS_INLINE void take_root(vf64 *s, vf64 *e, vf64 *b) {
    vf64 t; /* `rest` is at most half of its last bit, so that the remainder of t is a double */
    const vf64 rest = two_sum(*s, *e, &t), first = root_of(t), left = rest - fused(first, first, t);
    const vi64 is_root = (vi64)(*b == 0) & (vi64)(rest == 0) & (vi64)(left == 0);
    const vi64 fits = (vi64)(t > 0x1p-900) & (vi64)(t < 0x1p1000);
    const vf64 bound = (vf64)((vi64)(*b / first + first * 0x1p-98) & ~is_root);
    const vi64 is_zero = is_root & (vi64)(t == 0);
    *e = (vf64)((vi64)(left / (2 * first)) & ~is_zero);
    *b = (vf64)(((vi64)bound | (~fits & INT64_C(0x7ff0000000000000))) & ~is_zero);
    *s = first;
}

/* Computes a variance whose bound is so large that plain doubles suffice. Four roundings, each at
 * most 2^-53 of nv + t2, are less than 2^-50 of it; they add to 3 `near` (see variance_of()). */
ALWAYS_INLINE void rough_variance(vf64 *high, vf64 *bound, vf64 t, vf64 v, vf64 off, vf64 off2,
                                  vf64 by, double ddof, double near) {
    const vf64 t2 = t * t, nv = by * v, inverse = 1 / (by * (by - ddof));
    const vf64 reach = (0x1p-50 + 3 * near) * (nv + t2) + 2 * by * off2 + 4 * absolute(t) * off;
    const vi64 fits =
        (vi64)(nv > 0x1p-600) & (vi64)(nv < 0x1p900) & (vi64)(by < 0x1p26) & (vi64)(by > ddof);
    *high = (nv - t2) * inverse;
    *bound = 2 * (reach * inverse) + absolute(*high) * 0x1p-51;
    *bound = (vf64)((vi64)*bound | (~fits & INT64_C(0x7ff0000000000000)));
}

/* Computes the variance, or if `root` its square root, of `by` elements: *high + *rest +- *bound.
 * *bound is infinite if nothing is known. Given are their sum s + e +- off and their squares' sum q
 * + qe +- off2.
 * Let v be the sum of squares. The error of the sum is at most `near` times the sum of magnitudes,
 * which is at most sqrt(n v). So the square of the sum is off by at most 2 near sqrt(t2) sqrt(nv) +
 * near^2 nv. The first term is at most near (t2 + nv); 3 near (t2 + nv) covers both. (off2 has the
 * error of v.)
 * Each product below is taken with its error. So the rest is some 2^-105 of the two terms nv and
 * t2; 2^-98 covers it. n and the divisor are exact. */
ALWAYS_INLINE void variance_of(vf64 s, vf64 e, vf64 off, vf64 q, vf64 qe, vf64 off2, vf64 by,
                               double ddof, int root, double near, vf64 *high, vf64 *rest,
                               vf64 *bound) {
    const vi64 infinite = (vi64){0} + INT64_C(0x7ff0000000000000);
    vf64 t, v; /* t + u is the sum, v + w that of the squares */
    const vf64 u = two_sum(s, e, &t), w = two_sum(q, qe, &v);
    if (near > 0x1p-60) {
        rough_variance(high, bound, t, v, off, off2, by, ddof, near);
        if (root) {
            const vf64 first = root_of(*high);
            *bound = *bound / first + first * 0x1p-51;
            *high = first;
        }
        *rest = (vf64){0};
        *bound = (vf64)((vi64)*bound | (~(vi64)(*high > 0) & infinite));
        return;
    }
    const vf64 t2 = t * t, low2 = fused(t, t, t2) + 2 * (t * u);
    const vf64 nv = by * v, low = fused(by, v, nv) + by * w;
    *rest = two_sum(nv, -t2, high) + (low - low2);
    *bound =
        (0x1p-98 + 3 * near) * (nv + t2) + 2 * by * off2 + 4 * absolute(t) * off + 2 * off * off;
    const vi64 fits =
        (vi64)(t2 > 0x1p-700) & (vi64)(nv < 0x1p900) & (vi64)(by < 0x1p26) & (vi64)(by > ddof);
    divide(high, rest, bound, by * (by - ddof));
    if (root) take_root(high, rest, bound);
    *bound = (vf64)((vi64)*bound | (~(fits & (vi64)(*high > 0)) & infinite));
}

/* Returns s + e +- d rounded to doubles. *certain is set where every value within d rounds to the
 * same; d is a result of reach(). */
ALWAYS_INLINE vi64 round_to_f64(vf64 s, vf64 e, vf64 d, vi64 *certain) {
    const vf64 x = s + (e - d), y = s + (e + d);
    const vi64 exact = (vi64)(e == 0) & (vi64)(d == 0);
    *certain = rounds_the_same_f64(x, y);
    return PICK(exact, (vi64)s, (vi64)x);
}

/* Returns s + e +- d rounded to floats, as round_to_f64() does for doubles. Widens d by the two roundings to
 * doubles. */
ALWAYS_INLINE vf32half round_to_f32(vf64 s, vf64 e, vf64 d, vi64 *certain) {
    const vf64 more = d + (absolute(s) + absolute(e)) * 0x1p-51; /* e may be the larger one */
    const vi64 exact = (vi64)(e == 0) & (vi64)(d == 0);
    const vf64 x = (vf64)PICK(exact, (vi64)s, (vi64)(s + (e - more))),
               y = (vf64)PICK(exact, (vi64)s, (vi64)(s + (e + more)));
    const vf32half f = FLOATS_OF_DOUBLES(x), g = FLOATS_OF_DOUBLES(y);
    *certain = rounds_the_same_f32(f, g);
    return f;
}

/* Does the work of round_to_f32() by rounding to odd, which needs no room beyond d. */
ALWAYS_INLINE vf32half round_to_f32_by_odd(vf64 s, vf64 e, vf64 d, vi64 *certain) {
    const vf64 x = to_odd(s, e - d), y = to_odd(s, e + d);
    const vf32half f = FLOATS_OF_DOUBLES(x), g = FLOATS_OF_DOUBLES(y);
    *certain = rounds_the_same_f32(f, g);
    return f;
}

#if TALLY_VECTOR == 64
#define WRITE_PAST(to, v) _mm512_stream_si512((void *)(to), (__m512i)(v))
#elif TALLY_VECTOR == 32
#define WRITE_PAST(to, v) _mm256_stream_si256((__m256i *)(void *)(to), (__m256i)(v))
#elif defined(__SSE2__)
#define WRITE_PAST(to, v) _mm_stream_si128((__m128i *)(void *)(to), (__m128i)(v))
#else
#define WRITE_PAST(to, v) memcpy(to, &(v), sizeof(v))
#endif

#endif
