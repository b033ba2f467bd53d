/*
 * bench_loops.c - the loops a programmer writes who knows OpenMP, and plain reads of memory.
 *
 * Compiled once per instruction set. The compilers at hand do not vectorise the widening of f16, so
 * those loops widen a block at a time, with the machine's instruction where there is one: the rival
 * is to be a strong one.
 */
#include "bench_loops.h"
#include "table.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

#define PRAGMA_TEXT(text) _Pragma(#text)
#define PRAGMA(text)      PRAGMA_TEXT(text)
#define PASTE_TEXT(a, b)  a##b
#define PASTE(a, b)       PASTE_TEXT(a, b)

enum { BLOCK = 1024 }; /* f16 elements widened at a time: 4 KiB of f32 */

__attribute__((noinline)) static void widen(const uint16_t *x, float *wide, size_t n) {
    size_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(wide + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#elif defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(wide + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
    for (; i < n; i++)
        wide[i] = bench_widen_f16(x[i]);
}

#define LOOP(function, element, total, start, operation, step)                                     \
    static double function(const void *data, size_t n, int threads) {                              \
        (void)threads;                                                                             \
        const element *x = data;                                                                   \
        total t = start;                                                                           \
        PRAGMA(omp parallel for simd num_threads(threads) reduction(operation : t))                \
        for (size_t i = 0; i < n; i++)                                                             \
            step;                                                                                  \
        return (double)t;                                                                          \
    }

#define BLOCK_LOOP(function, start, operation, step)                                               \
    static double function(const void *data, size_t n, int threads) {                              \
        (void)threads;                                                                             \
        const uint16_t *half = data;                                                               \
        float t = start;                                                                           \
        PRAGMA(omp parallel for num_threads(threads) reduction(operation : t))                     \
        for (size_t b = 0; b < n; b += BLOCK) {                                                    \
            float x[BLOCK];                                                                        \
            size_t count = n - b < BLOCK ? n - b : BLOCK;                                          \
            widen(half + b, x, count);                                                             \
            PRAGMA(omp simd reduction(operation : t))                                              \
            for (size_t i = 0; i < count; i++)                                                     \
                step;                                                                              \
        }                                                                                          \
        return (double)t;                                                                          \
    }

#define LOOPS_plain(name, total)                                                                   \
    LOOP(sum_##name, element_##name, total, 0, +, t += LOAD_##name(x[i]))                          \
    LOOP(prod_##name, element_##name, total, 1, *, t *= LOAD_##name(x[i]))                         \
    LOOP(min_##name, element_##name, number_##name, LOAD_##name(x[0]), min,                        \
         t = LOAD_##name(x[i]) < t ? LOAD_##name(x[i]) : t)                                        \
    LOOP(max_##name, element_##name, number_##name, LOAD_##name(x[0]), max,                        \
         t = LOAD_##name(x[i]) > t ? LOAD_##name(x[i]) : t)

#define LOOPS_i8   LOOPS_plain
#define LOOPS_i16  LOOPS_plain
#define LOOPS_i32  LOOPS_plain
#define LOOPS_i64  LOOPS_plain
#define LOOPS_u8   LOOPS_plain
#define LOOPS_u16  LOOPS_plain
#define LOOPS_u32  LOOPS_plain
#define LOOPS_u64  LOOPS_plain
#define LOOPS_bf16 LOOPS_plain
#define LOOPS_f32  LOOPS_plain
#define LOOPS_f64  LOOPS_plain
#define LOOPS_f16(name, total)                                                                     \
    BLOCK_LOOP(sum_f16, 0, +, t += x[i])                                                           \
    BLOCK_LOOP(prod_f16, 1, *, t *= x[i])                                                          \
    BLOCK_LOOP(min_f16, bench_widen_f16(half[0]), min, t = x[i] < t ? x[i] : t)                    \
    BLOCK_LOOP(max_f16, bench_widen_f16(half[0]), max, t = x[i] > t ? x[i] : t)

#define LOOPS(NAME, name, kind, bits)                                                              \
    LOOPS_##name(name, BENCH_TOTAL_##kind(name))                                                   \
        LOOP(and_##name, uint##bits##_t, uint##bits##_t, x[0], &, t &= x[i])                       \
            LOOP(or_##name, uint##bits##_t, uint##bits##_t, x[0], |, t |= x[i])                    \
                LOOP(xor_##name, uint##bits##_t, uint##bits##_t, 0, ^, t ^= x[i])
TALLY_TYPES(LOOPS)

#define ROW(NAME, name, kind, bits)                                                                \
    [TALLY_##                                                                                      \
        NAME] = {[TALLY_SUM] = sum_##name, [TALLY_PROD] = prod_##name, [TALLY_MIN] = min_##name,   \
                 [TALLY_MAX] = max_##name, [TALLY_AND] = and_##name,   [TALLY_OR] = or_##name,     \
                 [TALLY_XOR] = xor_##name},

bench_loop *PASTE(bench_openmp_, TALLY_ISA)(tally_op op, tally_type type) {
    static bench_loop *const loops[][TALLY_XOR + 1] = {TALLY_TYPES(ROW)};
    return loops[type][op];
}

/* ---- Plain reads ---- */

/* Each thread reads its part from front to back. */
LOOP(read_once, uint64_t, uint64_t, 0, |, t |= x[i])

/* Each thread reads four parts of its part side by side: more streams to prefetch. */
static double read_streams(const void *data, size_t n, int threads) {
    (void)threads;
    size_t quarter = n / 4;
    const uint64_t *x0 = data, *x1 = x0 + quarter, *x2 = x1 + quarter, *x3 = x2 + quarter;
    uint64_t t = 0;
    PRAGMA(omp parallel for simd num_threads(threads) reduction(| : t))
    for (size_t i = 0; i < quarter; i++)
        t |= (x0[i] | x1[i]) | (x2[i] | x3[i]);
    return (double)t;
}

bench_loop *PASTE(bench_read_, TALLY_ISA)(int which) {
    return which == 0 ? read_once : read_streams;
}
