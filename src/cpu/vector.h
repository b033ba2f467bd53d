/*
 * vector.h - the vectors the CPU kernels are written in.
 *
 * Each kernel source is compiled once per instruction set, with TALLY_VECTOR the bytes of a vector
 * there: 16 (SSE2, NEON), 32 (AVX2) or 64 (AVX-512). Kernels use the compiler's vector extension -
 * +, -, &, << and so on work lane by lane - and the few operations it lacks are spelled out here, by the
 * vector's width: the compiler's flags may allow wider instructions than those that this object is for.
 */
#ifndef TALLY_CPU_VECTOR_H
#define TALLY_CPU_VECTOR_H

#include "base/unaligned.h"
#include "cpu/kernel_path.h"
#include "cpu/prefetch.h"
#include "cpu/tuning.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define VECTOR_OF(type) __attribute__((vector_size(TALLY_VECTOR), may_alias)) type

typedef VECTOR_OF(float) vf32;
typedef VECTOR_OF(double) vf64;
typedef VECTOR_OF(int16_t) vi16;
typedef VECTOR_OF(int32_t) vi32;
typedef VECTOR_OF(int64_t) vi64;
typedef VECTOR_OF(uint16_t) vu16;
typedef VECTOR_OF(uint32_t) vu32;
typedef VECTOR_OF(uint64_t) vu64;
/* Half a vector: as many 16-bit words as a whole vector has floats. */
typedef uint16_t vu16half __attribute__((vector_size(TALLY_VECTOR / 2), may_alias));

#define LANES(type)   (TALLY_VECTOR / sizeof(type))
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Marks a function that compilers must not inline, nor clone for constant arguments. */
#ifdef __clang__
#define ONE_COPY __attribute__((noinline))
#else
#define ONE_COPY __attribute__((noinline, noclone))
#endif

/* CONCAT(sum_f64, avx512) is sum_f64_avx512: one name per instruction set. */
#define CONCAT2(a, b)  a##_##b
#define CONCAT(a, b)   CONCAT2(a, b)
#define ISA_NAME(name) CONCAT(name, TALLY_ISA)

/* Loads one vector from memory of any alignment. */
#define VECTOR_LOAD(vector, pointer)                                                               \
    __extension__({                                                                                \
        vector loaded_;                                                                            \
        memcpy(&loaded_, (pointer), sizeof loaded_);                                               \
        loaded_;                                                                                   \
    })

/* Prefetches the lines `distance` bytes ahead of `bytes` bytes at p, into cache level `level`. A kernel with
 * much arithmetic a line fills the processor's reorder buffer with it before the next misses enter there;
 * asking ahead keeps as many lines under way as a plain read does (docs/performance.md). */
#define PREFETCH(p, bytes, distance, level)                                                        \
    do {                                                                                           \
        for (size_t line_ = 0; line_ < (bytes); line_ += 64)                                       \
            __builtin_prefetch((const char *)(p) + (distance) + line_, 0, 4 - (level));            \
    } while (0)
/* Does PREFETCH() for a kernel that does little with a line, and reads up to four streams. Where the
 * processor prefetches better by itself (prefetch.h), the distance is 0: only the lines at p are asked
 * for, which are read next. */
#define PREFETCH_PLAIN(p, bytes, distance, level)                                                  \
    PREFETCH(p, bytes, (distance)&cpu_prefetches, level)
#define PREFETCH_AHEAD(p, bytes) PREFETCH_PLAIN(p, bytes, STREAM_AHEAD, 2)

#ifdef __clang__ /* Clang unrolls unasked, and warns at -O1 that it cannot */
#define UNROLL(n)
#else
#define UNROLL_(text) _Pragma(#text)
#define UNROLL(n)     UNROLL_(GCC unroll n)
#endif

/* Return a < b ? a : b and a > b ? a : b lane by lane: so b if either is a NaN. */
ALWAYS_INLINE vf32 lower_f32(vf32 a, vf32 b) {
#if TALLY_VECTOR == 64
    return (vf32)_mm512_min_ps((__m512)a, (__m512)b);
#elif TALLY_VECTOR == 32
    return (vf32)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vf32)_mm_min_ps((__m128)a, (__m128)b);
#else
    vi32 less = a < b;
    return (vf32)(((vi32)a & less) | ((vi32)b & ~less));
#endif
}

ALWAYS_INLINE vf32 higher_f32(vf32 a, vf32 b) {
#if TALLY_VECTOR == 64
    return (vf32)_mm512_max_ps((__m512)a, (__m512)b);
#elif TALLY_VECTOR == 32
    return (vf32)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (vf32)_mm_max_ps((__m128)a, (__m128)b);
#else
    vi32 more = a > b;
    return (vf32)(((vi32)a & more) | ((vi32)b & ~more));
#endif
}

ALWAYS_INLINE vf64 lower_f64(vf64 a, vf64 b) {
#if TALLY_VECTOR == 64
    return (vf64)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif TALLY_VECTOR == 32
    return (vf64)_mm256_min_pd((__m256d)a, (__m256d)b);
#elif defined(__SSE2__)
    return (vf64)_mm_min_pd((__m128d)a, (__m128d)b);
#else
    vi64 less = a < b;
    return (vf64)(((vi64)a & less) | ((vi64)b & ~less));
#endif
}

ALWAYS_INLINE vf64 higher_f64(vf64 a, vf64 b) {
#if TALLY_VECTOR == 64
    return (vf64)_mm512_max_pd((__m512d)a, (__m512d)b);
#elif TALLY_VECTOR == 32
    return (vf64)_mm256_max_pd((__m256d)a, (__m256d)b);
#elif defined(__SSE2__)
    return (vf64)_mm_max_pd((__m128d)a, (__m128d)b);
#else
    vi64 more = a > b;
    return (vf64)(((vi64)a & more) | ((vi64)b & ~more));
#endif
}

/* Return the lesser and the greater lane by lane, by one instruction each. Compilers make a comparison
 * and a masked move of plain C if both are taken of the same keys. */
ALWAYS_INLINE vi16 lower_i16(vi16 a, vi16 b) {
#if TALLY_VECTOR == 64
    return (vi16)_mm512_min_epi16((__m512i)a, (__m512i)b);
#elif TALLY_VECTOR == 32
    return (vi16)_mm256_min_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vi16)_mm_min_epi16((__m128i)a, (__m128i)b);
#else
    vi16 less = a < b;
    return (a & less) | (b & ~less);
#endif
}

ALWAYS_INLINE vi16 higher_i16(vi16 a, vi16 b) {
#if TALLY_VECTOR == 64
    return (vi16)_mm512_max_epi16((__m512i)a, (__m512i)b);
#elif TALLY_VECTOR == 32
    return (vi16)_mm256_max_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return (vi16)_mm_max_epi16((__m128i)a, (__m128i)b);
#else
    vi16 more = a > b;
    return (a & more) | (b & ~more);
#endif
}

/* Returns seen | (a ^ b): remembers every bit in which a and b ever differed. */
ALWAYS_INLINE vi64 note_difference(vi64 seen, vi64 a, vi64 b) {
#if TALLY_VECTOR == 64
    return (vi64)_mm512_ternarylogic_epi64((__m512i)seen, (__m512i)a, (__m512i)b, 0xf6);
#else
    return seen | (a ^ b);
#endif
}

/* Returns all lanes or'ed into one word. */
ALWAYS_INLINE uint64_t any_bits(vi64 v) {
    int64_t all = 0;
    for (size_t i = 0; i < LANES(int64_t); i++)
        all |= v[i];
    return (uint64_t)all;
}

/* Returns whether any bit is set. */
ALWAYS_INLINE int any_set(vu64 v) {
#if TALLY_VECTOR == 64
    return _mm512_test_epi64_mask((__m512i)v, (__m512i)v) != 0;
#elif TALLY_VECTOR == 32
    return !_mm256_testz_si256((__m256i)v, (__m256i)v);
#else
    return any_bits((vi64)v) != 0;
#endif
}

/* Return half a vector of 16-bit floats, widened exactly to a vector of f32. */
ALWAYS_INLINE vf32 widen_bf16(vu16half h) {
#if TALLY_VECTOR == 64
    return (vf32)_mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)h), 16);
#elif TALLY_VECTOR == 32
    return (vf32)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)h), 16);
#else
    return (vf32)(__builtin_convertvector(h, vu32) << 16);
#endif
}

ALWAYS_INLINE vf32 widen_f16(vu16half h) {
#if TALLY_VECTOR == 64
    return (vf32)_mm512_cvtph_ps((__m256i)h);
#elif TALLY_VECTOR == 32 && defined(__F16C__)
    return (vf32)_mm256_cvtph_ps((__m128i)h);
#else
    /* The exponent and mantissa moved into place are 2^112 too small; scaling mends that, for
     * subnormals too. An all-ones exponent comes out as 2^16 or more and gets f32's own. */
    vu32 word = __builtin_convertvector(h, vu32);
    vf32 scaled = (vf32)((word & 0x7fff) << 13) * 0x1p112f;
    vu32 special = (vu32)(scaled >= 65536.0f) & 0x7f800000;
    return (vf32)((vu32)scaled | special | ((word & 0x8000) << 16));
#endif
}

/* A vector of floats, or for f64 of doubles, from the elements of each floating type at p. */
#define LOAD_F64(p)  VECTOR_LOAD(vf64, p)
#define LOAD_F32(p)  VECTOR_LOAD(vf32, p)
#define LOAD_F16(p)  widen_f16(VECTOR_LOAD(vu16half, p))
#define LOAD_BF16(p) widen_bf16(VECTOR_LOAD(vu16half, p))

#endif
