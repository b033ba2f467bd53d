/*
 * bench_sequential.c - the textbook loop: one accumulator, one element after another.
 *
 * It is compiled without vectorisation, so that it does take one element after another.
 */
#include "bench/bench_loops.h"
#include "common/types.h"

#define LOOP(what, name, declarations, clauses, step, result)                                      \
    static double what##_##name(const void *data, const void *other, size_t n, int threads) {      \
        (void)other, (void)threads;                                                                \
        const element_##name *x = data;                                                            \
        const number_##name first = LOAD_##name(x[0]);                                             \
        (void)first;                                                                               \
        declarations for (size_t i = 0; i < n; i++) {                                              \
            const number_##name v = LOAD_##name(x[i]);                                             \
            step;                                                                                  \
        }                                                                                          \
        return (double)(result);                                                                   \
    }

#define BITS_LOOP(what, name, bits, start, step)                                                   \
    static double what##_##name(const void *data, const void *other, size_t n, int threads) {      \
        (void)other, (void)threads;                                                                \
        const uint##bits##_t *x = data;                                                            \
        uint##bits##_t t = start;                                                                  \
        for (size_t i = 0; i < n; i++)                                                             \
            step;                                                                                  \
        return (double)t;                                                                          \
    }

#define DOT(name, total)                                                                           \
    static double dot_##name(const void *data, const void *other, size_t n, int threads) {         \
        (void)threads;                                                                             \
        const element_##name *x = data, *y = other;                                                \
        total t = 0;                                                                               \
        for (size_t i = 0; i < n; i++)                                                             \
            t += (total)LOAD_##name(x[i]) * (total)LOAD_##name(y[i]);                              \
        return (double)t;                                                                          \
    }

#define FIND(what, name, comparison)                                                               \
    static double what##_##name(const void *data, const void *other, size_t n, int threads) {      \
        (void)other, (void)threads;                                                                \
        const element_##name *x = data;                                                            \
        number_##name best = LOAD_##name(x[0]);                                                    \
        size_t found = 0;                                                                          \
        for (size_t i = 1; i < n; i++)                                                             \
            if (LOAD_##name(x[i]) comparison best) best = LOAD_##name(x[i]), found = i;            \
        return (double)found;                                                                      \
    }

#define LOOPS(NAME, name, kind, bits)                                                              \
    BENCH_LOOPS(LOOP, name, BENCH_TOTAL_##kind(name))                                              \
    DOT(name, BENCH_TOTAL_##kind(name))                                                            \
    FIND(argmin, name, <)                                                                          \
    FIND(argmax, name, >)                                                                          \
    BITS_LOOP(and, name, bits, x[0], t &= x[i])                                                    \
    BITS_LOOP(or, name, bits, x[0], t |= x[i])                                                     \
    BITS_LOOP(xor, name, bits, 0, t ^= x[i])
CLI_TYPES(LOOPS)

#define ROW(NAME, name, kind, bits) [TALLY_##NAME] = BENCH_ROW(name),

bench_loop *bench_sequential(tally_op op, tally_type type) {
    static bench_loop *const loops[][TALLY_USER] = {CLI_TYPES(ROW)};
    return loops[type][op];
}
