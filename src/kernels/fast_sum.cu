/*
 * fast_sum - the sum of floats with a rounding after each addition, in f64 for f64 and else in f32. It serves
 * problems with `fast` only: its result depends on the grid.
 *
 * A thread adds up a tile in WAYS sums side by side, so that one addition need not wait for another. The record is the
 * sum's bits.
 */
#include "widen.h"

#define WORDS 1
#include "grid.h"

#include "result.h"

#define PAD 0

#if defined(TYPE_F64)
#define RECORD_OF(x) double_bits(x)
#define SUM_OF(w)    double_from(w)
#else
#define RECORD_OF(x) ((u64)float_bits(x))
#define SUM_OF(w)    float_from((u32)(w))
#endif

PURE void merge(u64 *a, const u64 *b) {
    a[0] = RECORD_OF(SUM_OF(a[0]) + SUM_OF(b[0]));
}

PURE void add_tile(const tile *t, u64 *record) {
    real way[WAYS];
    UNROLL
    for (u32 w = 0; w < WAYS; w++)
        way[w] = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i += WAYS)
        UNROLL
    for (u32 w = 0; w < WAYS; w++)
        way[w] += widen(t->e[i + w]);
    UNROLL
    for (u32 w = 1; w < WAYS; w++)
        way[0] += way[w];
    record[0] = RECORD_OF(SUM_OF(record[0]) + way[0]);
}

PURE u64 value_of(const u64 *total, u64 n, u32 request, u32 *status) {
#if defined(TYPE_F64)
    const float_format mine = {52, 1023};
#else
    const float_format mine = {23, 127};
#endif
    const float_format f = requested_format(request);
    if (f.mantissa == mine.mantissa && SUM_OF(total[0]) == SUM_OF(total[0])) return total[0];
    return round_float(f, mine, total[0]);
}

#include "fold.h"
