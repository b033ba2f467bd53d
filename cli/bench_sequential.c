/*
 * bench_sequential.c - the textbook loop: one accumulator, one element after another.
 *
 * Compiled without vectorisation, so that it is what it says.
 */
#include "bench_loops.h"
#include "table.h"

#define LOOP(function, element, total, start, step)                                                \
    static double function(const void *data, size_t n, int threads) {                              \
        (void)threads;                                                                             \
        const element *x = data;                                                                   \
        total t = start;                                                                           \
        for (size_t i = 0; i < n; i++)                                                             \
            step;                                                                                  \
        return (double)t;                                                                          \
    }

#define LOOPS(NAME, name, kind, bits)                                                              \
    LOOP(sum_##name, element_##name, BENCH_TOTAL_##kind(name), 0, t += LOAD_##name(x[i]))          \
    LOOP(prod_##name, element_##name, BENCH_TOTAL_##kind(name), 1, t *= LOAD_##name(x[i]))         \
    LOOP(min_##name, element_##name, number_##name, LOAD_##name(x[0]),                             \
         t = LOAD_##name(x[i]) < t ? LOAD_##name(x[i]) : t)                                        \
    LOOP(max_##name, element_##name, number_##name, LOAD_##name(x[0]),                             \
         t = LOAD_##name(x[i]) > t ? LOAD_##name(x[i]) : t)                                        \
    LOOP(and_##name, uint##bits##_t, uint##bits##_t, x[0], t &= x[i])                              \
    LOOP(or_##name, uint##bits##_t, uint##bits##_t, x[0], t |= x[i])                               \
    LOOP(xor_##name, uint##bits##_t, uint##bits##_t, 0, t ^= x[i])
TALLY_TYPES(LOOPS)

#define ROW(NAME, name, kind, bits)                                                                \
    [TALLY_##                                                                                      \
        NAME] = {[TALLY_SUM] = sum_##name, [TALLY_PROD] = prod_##name, [TALLY_MIN] = min_##name,   \
                 [TALLY_MAX] = max_##name, [TALLY_AND] = and_##name,   [TALLY_OR] = or_##name,     \
                 [TALLY_XOR] = xor_##name},

bench_loop *bench_sequential(tally_op op, tally_type type) {
    static bench_loop *const loops[][TALLY_XOR + 1] = {TALLY_TYPES(ROW)};
    return loops[type][op];
}
