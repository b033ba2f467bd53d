/*
 * column_loads.h - elements of each type as the columns' kernels take them: COLUMN_STEP at a time, as doubles, as bits
 * in lanes of 32 or 64 bits, and as keys that sort as signed integers.
 */
#ifndef TALLY_CPU_COLUMN_LOADS_H
#define TALLY_CPU_COLUMN_LOADS_H

#include "cpu/tuning.h"
#include "cpu/vector.h"

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

/* Conversions are spelled out where compilers split __builtin_convertvector() into halves or single lanes. */
#if TALLY_VECTOR == 64
#define INTS_OF_i8(q)  (vi32) _mm512_cvtepi8_epi32((__m128i)(q))
#define INTS_OF_u8(q)  (vi32) _mm512_cvtepu8_epi32((__m128i)(q))
#define INTS_OF_i16(h) (vi32) _mm512_cvtepi16_epi32((__m256i)(h))
#define INTS_OF_u16(h) (vi32) _mm512_cvtepu16_epi32((__m256i)(h))
#elif TALLY_VECTOR == 32
#define INTS_OF_i8(q)  (vi32) _mm256_cvtepi8_epi32(_mm_set_epi64x(0, (int64_t)(q)))
#define INTS_OF_u8(q)  (vi32) _mm256_cvtepu8_epi32(_mm_set_epi64x(0, (int64_t)(q)))
#define INTS_OF_i16(h) (vi32) _mm256_cvtepi16_epi32((__m128i)(h))
#define INTS_OF_u16(h) (vi32) _mm256_cvtepu16_epi32((__m128i)(h))
#else
#define INTS_OF_i8(q)  __builtin_convertvector(q, vi32)
#define INTS_OF_u8(q)  __builtin_convertvector(q, vi32)
#define INTS_OF_i16(h) __builtin_convertvector(h, vi32)
#define INTS_OF_u16(h) __builtin_convertvector(h, vi32)
#endif

/* The k-th vector of the elements' bits at p, in lanes of 32 bits, or of 64 for elements of 8 bytes. */
#define BITS_i8(p, k)   INTS_OF_i8(VECTOR_LOAD(vi8quarter, (p) + (k)*LANES(float)))
#define BITS_u8(p, k)   INTS_OF_u8(VECTOR_LOAD(vu8quarter, (p) + (k)*LANES(float)))
#define BITS_i16(p, k)  INTS_OF_i16(VECTOR_LOAD(vi16half, (p) + (k)*LANES(float)))
#define BITS_u16(p, k)  INTS_OF_u16(VECTOR_LOAD(vu16half, (p) + (k)*LANES(float)))
#define BITS_i32(p, k)  VECTOR_LOAD(vi32, (p) + (k)*LANES(float))
#define BITS_u32(p, k)  BITS_i32(p, k)
#define BITS_f16(p, k)  BITS_i16(p, k)
#define BITS_bf16(p, k) BITS_i16(p, k)
#define BITS_f32(p, k)  BITS_i32(p, k)
#define BITS_i64(p, k)  VECTOR_LOAD(vi64, (p) + (k)*LANES(double))
#define BITS_u64(p, k)  BITS_i64(p, k)
#define BITS_f64(p, k)  BITS_i64(p, k)

/* Keys from bits: signed integers that sort as the elements do. */
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
/* The key of +inf; for integers a key that no key is above. */
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

#if TALLY_VECTOR == 64
#define DOUBLES_OF_FLOATS(h) (vf64) _mm512_cvtps_pd((__m256)(h))
#define DOUBLES_OF_INTS(h)   (vf64) _mm512_cvtepi32_pd((__m256i)(h))
#define DOUBLES_OF_WORDS(h)  (vf64) _mm512_cvtepu32_pd((__m256i)(h))
#define FLOATS_OF_DOUBLES(v) (vf32half) _mm512_cvtpd_ps((__m512d)(v))
#define WIDE_OF_WORDS(h)     (vu64) _mm512_cvtepu32_epi64((__m256i)(h))
#define LONGS_OF_INTS(h)     (vi64) _mm512_cvtepi32_epi64((__m256i)(h))
#elif TALLY_VECTOR == 32
#define DOUBLES_OF_FLOATS(h) (vf64) _mm256_cvtps_pd((__m128)(h))
#define DOUBLES_OF_INTS(h)   (vf64) _mm256_cvtepi32_pd((__m128i)(h))
#define DOUBLES_OF_WORDS(h)  __builtin_convertvector(h, vf64)
#define FLOATS_OF_DOUBLES(v) (vf32half) _mm256_cvtpd_ps((__m256d)(v))
#define WIDE_OF_WORDS(h)     (vu64) _mm256_cvtepu32_epi64((__m128i)(h))
#define LONGS_OF_INTS(h)     (vi64) _mm256_cvtepi32_epi64((__m128i)(h))
#else
#define DOUBLES_OF_FLOATS(h) __builtin_convertvector(h, vf64)
#define DOUBLES_OF_INTS(h)   __builtin_convertvector(h, vf64)
#define DOUBLES_OF_WORDS(h)  __builtin_convertvector(h, vf64)
#define FLOATS_OF_DOUBLES(v) __builtin_convertvector(v, vf32half)
#define WIDE_OF_WORDS(h)     __builtin_convertvector(h, vu64)
#define LONGS_OF_INTS(h)     __builtin_convertvector(h, vi64)
#endif

/* Return the k-th half of a vector, as doubles; and the k-th vector of doubles of a step at p. */
ALWAYS_INLINE vf64 half_of(vf32 v, size_t k) {
    vf32half h;
    memcpy(&h, (const char *)&v + k * sizeof h, sizeof h);
    return DOUBLES_OF_FLOATS(h);
}
ALWAYS_INLINE vf64 half_of_ints(vi32 v, size_t k) {
    vi32half h;
    memcpy(&h, (const char *)&v + k * sizeof h, sizeof h);
    return DOUBLES_OF_INTS(h);
}
#define DOUBLE_f64(p, k)  VECTOR_LOAD(vf64, (p) + (k)*LANES(double))
#define DOUBLE_f32(p, k)  DOUBLES_OF_FLOATS(VECTOR_LOAD(vf32half, (p) + (k)*LANES(double)))
#define DOUBLE_f16(p, k)  half_of(LOAD_F16((p) + (k) / 2 * LANES(float)), (k) % 2)
#define DOUBLE_bf16(p, k) half_of(LOAD_BF16((p) + (k) / 2 * LANES(float)), (k) % 2)
#define DOUBLE_i8(p, k)   half_of_ints(BITS_i8(p, (k) / 2), (k) % 2)
#define DOUBLE_u8(p, k)   half_of_ints(BITS_u8(p, (k) / 2), (k) % 2)
#define DOUBLE_i16(p, k)  half_of_ints(BITS_i16(p, (k) / 2), (k) % 2)
#define DOUBLE_u16(p, k)  half_of_ints(BITS_u16(p, (k) / 2), (k) % 2)
#define DOUBLE_i32(p, k)  DOUBLES_OF_INTS(VECTOR_LOAD(vi32half, (p) + (k)*LANES(double)))
#define DOUBLE_u32(p, k)  DOUBLES_OF_WORDS(VECTOR_LOAD(vu32half, (p) + (k)*LANES(double)))

ALWAYS_INLINE vf64 absolute(vf64 v) {
    return (vf64)((vi64)v & INT64_MAX);
}

#define PICK(mask, a, b) (((a) & (mask)) | ((b) & ~(mask)))

/* The lesser and the greater of two keys. */
#if TALLY_VECTOR == 64
#define LOWER_32(a, b)  (vi32) _mm512_min_epi32((__m512i)(a), (__m512i)(b))
#define HIGHER_32(a, b) (vi32) _mm512_max_epi32((__m512i)(a), (__m512i)(b))
#define LOWER_64(a, b)  (vi64) _mm512_min_epi64((__m512i)(a), (__m512i)(b))
#define HIGHER_64(a, b) (vi64) _mm512_max_epi64((__m512i)(a), (__m512i)(b))
#else
#define LOWER_32(a, b)  PICK((vi32)((a) < (b)), a, b)
#define HIGHER_32(a, b) PICK((vi32)((a) > (b)), a, b)
#define LOWER_64(a, b)  PICK((vi64)((a) < (b)), a, b)
#define HIGHER_64(a, b) PICK((vi64)((a) > (b)), a, b)
#endif

#endif
