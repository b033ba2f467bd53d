/*
 * instance.h - the names of what the exact sum templates make for the kernel NAME, and how its elements are widened.
 */
#ifndef TALLY_CPU_INSTANCE_H
#define TALLY_CPU_INSTANCE_H

#include "cpu/vector.h"
#include "exact/sum.h"

#define INSTANCE2(kernel, symbol) kernel##_##symbol
#define INSTANCE1(kernel, symbol) INSTANCE2(kernel, symbol)
#define INSTANCE(symbol)          INSTANCE1(NAME, symbol)
#define WINDOW                    INSTANCE(window)
#define BINS                      INSTANCE(bins)
#define PROGRESS                  INSTANCE(progress)

/* As many floats as a vector has doubles. Below, these, or as many 16-bit floats, are widened exactly. */
typedef float vf32half __attribute__((vector_size(TALLY_VECTOR / 2), may_alias));

/* (GCC 12 converts half vectors piece by piece where it is not told the instruction.) */
ALWAYS_INLINE vf64 f64_from_f32(const unaligned_f32 *p) {
    const vf32half v = VECTOR_LOAD(vf32half, p);
#if TALLY_VECTOR == 64
    return (vf64)_mm512_cvtps_pd((__m256)v);
#elif TALLY_VECTOR == 32
    return (vf64)_mm256_cvtps_pd((__m128)v);
#else
    return __builtin_convertvector(v, vf64);
#endif
}

ALWAYS_INLINE vf64 f64_from_bf16(const unaligned_u16 *p) {
#if TALLY_VECTOR == 64
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return (vf64)_mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)));
#elif TALLY_VECTOR == 32
    const __m128i bits = _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)p));
    return (vf64)_mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(bits, 16)));
#else
    typedef uint16_t vu16quarter __attribute__((vector_size(TALLY_VECTOR / 4), may_alias));
    typedef uint32_t vu32half __attribute__((vector_size(TALLY_VECTOR / 2), may_alias));
    const vu32half bits = __builtin_convertvector(VECTOR_LOAD(vu16quarter, p), vu32half) << 16;
    return __builtin_convertvector((vf32half)bits, vf64);
#endif
}

ALWAYS_INLINE vf32 f32s_from_bf16(const unaligned_u16 *p) {
#if TALLY_VECTOR == 64
    const __m512i bits = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return (vf32)_mm512_slli_epi32(bits, 16);
#elif TALLY_VECTOR == 32
    const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return (vf32)_mm256_slli_epi32(bits, 16);
#else
    return LOAD_BF16(p);
#endif
}

/* Returns one 16-bit float as a float, exactly. */
ALWAYS_INLINE float f32_from_f16(const unaligned_u16 *p) {
    return widen_f16((vu16half){0} + *p)[0];
}

ALWAYS_INLINE float f32_from_bf16(const unaligned_u16 *p) {
    const uint32_t bits = (uint32_t)*p << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
