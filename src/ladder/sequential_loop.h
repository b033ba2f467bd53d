/*
 * sequential_loop.h - the loop for one type and operator.
 *
 * The build makes sequential_loops.c, which includes this once for each type and operator, with TYPE_x
 * and OP_y defined, and LOOP(word) to make a name of this instance's own.
 */
#undef TALLY_OPERATORS_H
#define element            LOOP(element)
#define accumulator        LOOP(accumulator)
#define word               LOOP(word)
#define load               LOOP(load)
#define to_word            LOOP(to_word)
#define from_word          LOOP(from_word)
#define is_nan             LOOP(is_nan)
#define rank               LOOP(rank)
#define neutral            LOOP(neutral)
#define combine            LOOP(combine)
#define settle             LOOP(settle)
#define fetch              LOOP(fetch)
#define combine_atomically LOOP(combine_atomically)
#define deliver            LOOP(deliver)
#include "kernels/operators.h"

static void LOOP(reduce)(const void *array, u64 n, void *result) {
    const element *x = array;
    accumulator acc = neutral();
    for (u64 i = 0; i < n; i++)
        acc = combine(acc, load(x[i]));
    *(accumulator *)result = acc;
}

#if ARITHMETIC && defined(FLOATING) && defined(OP_SUM)
static double LOOP(magnitude)(const void *array, u64 n) {
    const element *x = array;
    double sum = 0;
    for (u64 i = 0; i < n; i++) {
        const double v = load(x[i]);
        sum += v < 0 ? -v : v;
    }
    return sum;
}
#endif

#undef element
#undef accumulator
#undef word
#undef load
#undef to_word
#undef from_word
#undef is_nan
#undef rank
#undef neutral
#undef combine
#undef settle
#undef fetch
#undef combine_atomically
#undef deliver
