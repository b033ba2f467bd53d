/*
 * bench_loops.c - the loops a programmer writes who knows OpenMP, and plain reads of memory.
 *
 * Compiled once per instruction set. The compilers at hand do not vectorise the widening of f16, so
 * those loops widen a block at a time, with the machine's instruction where there is one: the rival
 * is to be a strong one.
 */
#include "bench/bench_loops.h"
#include "common/types.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

#define PRAGMA_TEXT(...) _Pragma(#__VA_ARGS__)
#define PRAGMA(...)      PRAGMA_TEXT(__VA_ARGS__)
#define PASTE_TEXT(a, b) a##b
#define PASTE(a, b)      PASTE_TEXT(a, b)

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

#define LOOP(what, name, declarations, clauses, step, result)                                      \
    static double what##_##name(const void *data, const void *other, size_t n, int threads) {      \
        (void)other, (void)threads;                                                                \
        const element_##name *x = data;                                                            \
        const number_##name first = LOAD_##name(x[0]);                                             \
        (void)first;                                                                               \
        declarations PRAGMA(omp parallel for simd num_threads(threads) clauses)                    \
        for (size_t i = 0; i < n; i++) {                                                           \
            const number_##name v = LOAD_##name(x[i]);                                             \
            step;                                                                                  \
        }                                                                                          \
        return (double)(result);                                                                   \
    }

#define BLOCK_LOOP(what, name, declarations, clauses, step, result)                                \
    static double what##_##name(const void *data, const void *other, size_t n, int threads) {      \
        (void)other, (void)threads;                                                                \
        const uint16_t *half = data;                                                               \
        const float first = bench_widen_f16(half[0]);                                              \
        (void)first;                                                                               \
        declarations PRAGMA(omp parallel for num_threads(threads) clauses)                         \
        for (size_t b = 0; b < n; b += BLOCK) {                                                    \
            float x[BLOCK];                                                                        \
            size_t count = n - b < BLOCK ? n - b : BLOCK;                                          \
            widen(half + b, x, count);                                                             \
            PRAGMA(omp simd clauses)                                                               \
            for (size_t i = 0; i < count; i++) {                                                   \
                const float v = x[i];                                                              \
                step;                                                                              \
            }                                                                                      \
        }                                                                                          \
        return (double)(result);                                                                   \
    }

/* Loops over the elements' bits: and, or, xor, and the first plain read. */
#define BITS_LOOP(what, name, bits, start, operation, step)                                        \
    static double what##_##name(const void *data, const void *other, size_t n, int threads) {      \
        (void)other, (void)threads;                                                                \
        const uint##bits##_t *x = data;                                                            \
        uint##bits##_t t = start;                                                                  \
        PRAGMA(omp parallel for simd num_threads(threads) reduction(operation : t))                \
        for (size_t i = 0; i < n; i++)                                                             \
            step;                                                                                  \
        return (double)t;                                                                          \
    }

#define DOT(name, total)                                                                           \
    static double dot_##name(const void *data, const void *other, size_t n, int threads) {         \
        (void)threads;                                                                             \
        const element_##name *x = data, *y = other;                                                \
        total t = 0;                                                                               \
        PRAGMA(omp parallel for simd num_threads(threads) reduction(+ : t))                        \
        for (size_t i = 0; i < n; i++)                                                             \
            t += (total)LOAD_##name(x[i]) * (total)LOAD_##name(y[i]);                              \
        return (double)t;                                                                          \
    }

#define DOT_BLOCKS(name, total)                                                                    \
    static double dot_##name(const void *data, const void *other, size_t n, int threads) {         \
        (void)threads;                                                                             \
        const uint16_t *half = data, *other_half = other;                                          \
        float t = 0;                                                                               \
        PRAGMA(omp parallel for num_threads(threads) reduction(+ : t))                             \
        for (size_t b = 0; b < n; b += BLOCK) {                                                    \
            float x[BLOCK], y[BLOCK];                                                              \
            size_t count = n - b < BLOCK ? n - b : BLOCK;                                          \
            widen(half + b, x, count);                                                             \
            widen(other_half + b, y, count);                                                       \
            PRAGMA(omp simd reduction(+ : t))                                                      \
            for (size_t i = 0; i < count; i++)                                                     \
                t += x[i] * y[i];                                                                  \
        }                                                                                          \
        return (double)t;                                                                          \
    }

/* argmin and argmax in two passes: the least or greatest value, then the first element that equals
 * it. */
#define FIND(what, of, name)                                                                       \
    static double what##_##name(const void *data, const void *other, size_t n, int threads) {      \
        const element_##name *x = data;                                                            \
        const double wanted = of##_##name(data, other, n, threads);                                \
        size_t found = n;                                                                          \
        PRAGMA(omp parallel for simd num_threads(threads) reduction(min : found))                  \
        for (size_t i = 0; i < n; i++)                                                             \
            found = (double)LOAD_##name(x[i]) == wanted && i < found ? i : found;                  \
        return (double)found;                                                                      \
    }

#define LOOPS_plain(name, total) BENCH_LOOPS(LOOP, name, total) DOT(name, total)
#define LOOPS_i8                 LOOPS_plain
#define LOOPS_i16                LOOPS_plain
#define LOOPS_i32                LOOPS_plain
#define LOOPS_i64                LOOPS_plain
#define LOOPS_u8                 LOOPS_plain
#define LOOPS_u16                LOOPS_plain
#define LOOPS_u32                LOOPS_plain
#define LOOPS_u64                LOOPS_plain
#define LOOPS_bf16               LOOPS_plain
#define LOOPS_f32                LOOPS_plain
#define LOOPS_f64                LOOPS_plain
#define LOOPS_f16(name, total)   BENCH_LOOPS(BLOCK_LOOP, name, total) DOT_BLOCKS(name, total)

#define LOOPS(NAME, name, kind, bits)                                                              \
    LOOPS_##name(name, BENCH_TOTAL_##kind(name)) FIND(argmin, min, name) FIND(argmax, max, name)   \
        BITS_LOOP(and, name, bits, x[0], &, t &= x[i])                                             \
            BITS_LOOP(or, name, bits, x[0], |, t |= x[i])                                          \
                BITS_LOOP(xor, name, bits, 0, ^, t ^= x[i])
CLI_TYPES(LOOPS)

#define ROW(NAME, name, kind, bits) [TALLY_##NAME] = BENCH_ROW(name),

bench_loop *PASTE(bench_openmp_, TALLY_ISA)(tally_op op, tally_type type) {
    static bench_loop *const loops[][TALLY_USER] = {CLI_TYPES(ROW)};
    return loops[type][op];
}

/* ---- Plain reads ---- */

/* Each thread reads its part from front to back. */
BITS_LOOP(read, once, 64, 0, |, t |= x[i])

/* Each thread reads four parts of its part side by side: more streams to prefetch. */
static double read_streams(const void *data, const void *other, size_t n, int threads) {
    (void)other, (void)threads;
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
