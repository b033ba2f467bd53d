/*
 * multiply.h - exact products of vectors.
 */
#ifndef TALLY_CPU_MULTIPLY_H
#define TALLY_CPU_MULTIPLY_H

#include "cpu/vector.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Returns x * y + z, rounded once; x * y is a double. */
ALWAYS_INLINE vf64 multiply_add(vf64 x, vf64 y, vf64 z) {
#if TALLY_VECTOR == 64
    return (vf64)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)z);
#elif TALLY_VECTOR == 32
    return (vf64)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z);
#elif defined(__aarch64__)
    return (vf64)vfmaq_f64((float64x2_t)z, (float64x2_t)x, (float64x2_t)y);
#else
    return x * y + z;
#endif
}

ALWAYS_INLINE vf64 square_f64(vf64 v) {
    return v * v;
}

ALWAYS_INLINE vf32 square_f32(vf32 v) {
    return v * v;
}

/* Returns the products of the lower halves of 64-bit lanes. */
ALWAYS_INLINE vu64 multiply_low(vu64 a, vu64 b) {
#if TALLY_VECTOR == 64
    return (vu64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif TALLY_VECTOR == 32
    return (vu64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vu64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#elif defined(__aarch64__)
    return (vu64)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#else
    return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}

#if TALLY_VECTOR == 16 && !defined(__aarch64__)
#define NO_FMA 1
/* Returns v rounded to its upper 26 bits; the rest of v has 26 bits and a sign. Infinite if the
 * rounding overflows. */
ALWAYS_INLINE vf64 upper_half(vf64 v) {
    return (vf64)(((vi64)v + ((int64_t)1 << 26)) & -((int64_t)1 << 27));
}
#endif

/* Returns x * y - h, where h is x * y rounded and that difference is a double (in_two_f64.h says
 * when). */
ALWAYS_INLINE vf64 multiply_error(vf64 x, vf64 y, vf64 h) {
#if TALLY_VECTOR == 64
    return (vf64)_mm512_fmsub_pd((__m512d)x, (__m512d)y, (__m512d)h);
#elif TALLY_VECTOR == 32
    return (vf64)_mm256_fmsub_pd((__m256d)x, (__m256d)y, (__m256d)h);
#elif defined(__aarch64__)
    return (vf64)vfmaq_f64((float64x2_t)-h, (float64x2_t)x, (float64x2_t)y);
#else
    /* Products of halves have at most 53 bits, and each sum is a multiple of the least of their last bits
     * and no greater than the error of what has been summed (Dekker 1971). */
    const vf64 a = upper_half(x), b = upper_half(y), c = x - a, d = y - b;
    return c * d - (((h - a * b) - c * b) - a * d);
#endif
}

/* Returns `lost` with more bits set: in lanes whose product of numbers other than 0 was rounded to
 * h = 0. Without FMA also in lanes whose tail is not finite, as a half of a finite number
 * overflowed. */
ALWAYS_INLINE vu64 note_lost(vu64 lost, vf64 x, vf64 y, vf64 h, vf64 tail) {
    const vf64 zero = {0};
#if TALLY_VECTOR == 64
    (void)tail;
    __mmask8 gone = _mm512_cmp_pd_mask((__m512d)h, (__m512d)zero, _CMP_EQ_OQ);
    gone = _mm512_mask_cmp_pd_mask(gone, (__m512d)x, (__m512d)zero, _CMP_NEQ_UQ);
    gone = _mm512_mask_cmp_pd_mask(gone, (__m512d)y, (__m512d)zero, _CMP_NEQ_UQ);
    return (vu64)_mm512_mask_mov_epi64((__m512i)lost, gone, _mm512_set1_epi64(-1));
#elif NO_FMA
    lost |= (vu64)(tail - tail != zero);
#else
    (void)tail;
#endif
    return lost | ((vu64)(h == zero) & (vu64)(x != zero) & (vu64)(y != zero));
}

#endif
