/*
 * bench_loops.h - the loops that `tally bench` runs beside the library: such as a programmer would
 * write.
 *
 * It also has their building blocks: the C types of each element type, and the macros that load an
 * element.
 */
#ifndef TALLY_CLI_BENCH_LOOPS_H
#define TALLY_CLI_BENCH_LOOPS_H

#include "common/types.h"
#include "tally.h"

#include <string.h>

/* Reduces x[0..n), and for dot y[0..n) with it, n >= 1, with so many threads. The result is only kept so
 * that a compiler cannot leave the loop out. */
typedef double bench_loop(const void *x, const void *y, size_t n, int threads);

/* Returns the textbook loop: scalar, one thread, one addition after another. */
bench_loop *bench_sequential(tally_op op, tally_type type);

/* The loops with `omp parallel for simd`, and plain reads of the memory as 64-bit words, of which
 * BENCH_READS exist (which: 0 or 1). Each instruction set has its own, of those for which they are
 * compiled. */
enum { BENCH_READS = 2 };
#define BENCH_DECLARE(isa)                                                                         \
    bench_loop *bench_openmp_##isa(tally_op op, tally_type type);                                  \
    bench_loop *bench_read_##isa(int which);
BENCH_DECLARE(baseline)
BENCH_DECLARE(avx2)
BENCH_DECLARE(avx512)
BENCH_DECLARE(neon)

/* The loops that are one pass over the values: LOOP(what, name, declarations, clauses, step, result). The
 * step sees an element's value as v, and the first element's as `first`. */
#define BENCH_LOOPS(LOOP, name, total)                                                               \
    LOOP(sum, name, total t = 0;, reduction(+ : t), t += v, t)                                       \
    LOOP(prod, name, total t = 1;, reduction(* : t), t *= v, t)                                      \
    LOOP(min, name, number_##name t = first;, reduction(min : t), t = v < t ? v : t, t)              \
    LOOP(max, name, number_##name t = first;, reduction(max : t), t = v > t ? v : t, t)              \
    LOOP(squares, name, total t = 0;, reduction(+ : t), t += (total)v * (total)v, t)                 \
    LOOP(moments, name, total t = 0; total q = 0;, reduction(+ : t, q),                            \
         (t += v, q += (total)v * (total)v), t + q) \
    LOOP(magnitudes, name, total t = 0;, reduction(+ : t), t += (v > 0 ? (total)v : -(total)v), t)   \
    LOOP(greatest, name, total t = 0;                                                                \
         ,                                                                                           \
         reduction(max                                                                               \
                   : t),                                                                             \
         t = (v > 0 ? (total)v : -(total)v) > t ? (v > 0 ? (total)v : -(total)v) : t, t)             \
    LOOP(minmax, name, number_##name t = first; number_##name u = first;                             \
         ,                                                                                           \
         reduction(min                                                                               \
                   : t) reduction(max                                                                \
                                  : u),                                                              \
         (t = v < t ? v : t, u = v > u ? v : u), (double)t + (double)u)                              \
    LOOP(nans, name, uint64_t t = 0;, reduction(+ : t), t += v != v, t)                              \
    LOOP(nonzero, name, uint64_t t = 0;, reduction(+ : t), t += v != 0, t)                           \
    LOOP(any, name, unsigned t = 0;, reduction(| : t), t |= v != 0, t)                               \
    LOOP(all, name, unsigned t = 1;, reduction(& : t), t &= v != 0, t)                               \
    LOOP(describe, name, total t = 0; total q = 0; number_##name lo = first;                       \
         number_##name hi = first;, reduction(+ : t, q) reduction(min : lo) reduction(max : hi),   \
         (t += v, q += (total)v * (total)v, lo = v < lo ? v : lo, hi = v > hi ? v : hi),           \
         (double)t + (double)q + (double)lo + (double)hi)

/* The loop for each operator. */
#define BENCH_ROW(name)                                                                            \
    {                                                                                              \
        [TALLY_SUM] = sum_##name, [TALLY_PROD] = prod_##name, [TALLY_MIN] = min_##name,            \
        [TALLY_MAX] = max_##name, [TALLY_AND] = and_##name, [TALLY_OR] = or_##name,                \
        [TALLY_XOR] = xor_##name, [TALLY_MEAN] = sum_##name, [TALLY_VAR] = moments_##name,         \
        [TALLY_STD] = moments_##name, [TALLY_NORM1] = magnitudes_##name,                           \
        [TALLY_NORM2] = squares_##name, [TALLY_NORMINF] = greatest_##name,                         \
        [TALLY_SUMSQ] = squares_##name, [TALLY_DOT] = dot_##name, [TALLY_ARGMIN] = argmin_##name,  \
        [TALLY_ARGMAX] = argmax_##name, [TALLY_MINMAX] = minmax_##name,                            \
        [TALLY_COUNT] = count_nothing, [TALLY_NANS] = nans_##name,                                 \
        [TALLY_NONZERO] = nonzero_##name, [TALLY_ANY] = any_##name, [TALLY_ALL] = all_##name,      \
        [TALLY_DESCRIBE] = describe_##name                                                         \
    }

static inline double count_nothing(const void *x, const void *y, size_t n, int threads) {
    (void)x, (void)y, (void)threads;
    return (double)n;
}

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

/* The type in which a loop computes: f32 for the two short floats, else the element's own. */
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

/* The type in which sums and products are collected. */
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

/* The exponent moves by a multiplication, which also gets subnormals right. That of infinities and NaNs becomes all ones. */
static inline float bench_widen_f16(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const float x = bench_float(sign | (uint32_t)(h & 0x7fff) << 13) * 0x1p112f;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bench_float(bits | ((h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0));
}

#endif
