/*
 * bench_loops.h - the loops that `tally bench` runs beside the library: what a programmer would
 * write. And the words they are written in: for each element type its C types and how one is loaded.
 */
#ifndef TALLY_CLI_BENCH_LOOPS_H
#define TALLY_CLI_BENCH_LOOPS_H

#include "tally.h"

#include <string.h>

/* Reduces x[0..n), n >= 1, with so many threads. The result is only kept so that a compiler cannot
 * leave the loop out. */
typedef double bench_loop(const void *x, size_t n, int threads);

/* Scalar, one thread, one addition after another. */
bench_loop *bench_sequential(tally_op op, tally_type type);

/* `omp parallel for simd`, and plain reads of the memory as 64-bit words (which: 0 or 1); one
 * compilation for each instruction set. The first few of BENCH_READS are there. */
enum { BENCH_READS = 2 };
#define BENCH_DECLARE(isa)                                                                         \
    bench_loop *bench_openmp_##isa(tally_op op, tally_type type);                                  \
    bench_loop *bench_read_##isa(int which);
BENCH_DECLARE(baseline)
BENCH_DECLARE(avx2)
BENCH_DECLARE(avx512)
BENCH_DECLARE(neon)

/* An element as it lies in memory. */
typedef int8_t element_i8;
typedef int16_t element_i16;
typedef int32_t element_i32;
typedef int64_t element_i64;
typedef uint8_t element_u8;
typedef uint16_t element_u16;
typedef uint32_t element_u32;
typedef uint64_t element_u64;
typedef uint16_t element_f16;
typedef uint16_t element_bf16;
typedef float element_f32;
typedef double element_f64;

/* What one computes with: the two short floats in f32, all others as they are. */
typedef float number_f16;
typedef float number_bf16;
#define BENCH_NUMBER(name) typedef element_##name number_##name;
BENCH_NUMBER(i8)
BENCH_NUMBER(i16)
BENCH_NUMBER(i32)
BENCH_NUMBER(i64)
BENCH_NUMBER(u8)
BENCH_NUMBER(u16)
BENCH_NUMBER(u32)
BENCH_NUMBER(u64)
BENCH_NUMBER(f32)
BENCH_NUMBER(f64)

/* What sums and products are collected in. */
#define BENCH_TOTAL_SIGNED(name)   int64_t
#define BENCH_TOTAL_UNSIGNED(name) uint64_t
#define BENCH_TOTAL_FLOATING(name) number_##name

#define LOAD_i8(x)   (x)
#define LOAD_i16(x)  (x)
#define LOAD_i32(x)  (x)
#define LOAD_i64(x)  (x)
#define LOAD_u8(x)   (x)
#define LOAD_u16(x)  (x)
#define LOAD_u32(x)  (x)
#define LOAD_u64(x)  (x)
#define LOAD_f16(x)  bench_widen_f16(x)
#define LOAD_bf16(x) bench_widen_bf16(x)
#define LOAD_f32(x)  (x)
#define LOAD_f64(x)  (x)

static inline float bench_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float bench_widen_bf16(uint16_t h) {
    return bench_float((uint32_t)h << 16);
}

/* The exponent moves by a multiplication, which also gets subnormals right. */
static inline float bench_widen_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    float x = bench_float(sign | (uint32_t)(h & 0x7fff) << 13) * 0x1p112f;
    return (h & 0x7c00) == 0x7c00 ? x * 0x1p127f * 2 : x;
}

#endif
