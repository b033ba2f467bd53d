/*
 * float_later.h - tiles of f64 that are added to double-doubles (float_sums.h) and looked at later: after BATCH tiles the
 * thread tests whether something was lost. If so, the sum is within a bound or, where that is not finite, these tiles are
 * added once more, to the state before them, element by element.
 *
 * Before including this header, define TYPE_F64 and include float_sums.h.
 */
#ifndef TALLY_STATE_FLOAT_LATER_H
#define TALLY_STATE_FLOAT_LATER_H

#define ENDS_EARLY 1

/* Copies the fields that add_tile() uses, so that they can stay in registers. */
PURE void copy_sum(const state *from, state *to) {
    to->sum.s = from->sum.s;
    to->sum.e = from->sum.e;
}

/* Adds a tile to the states a[]. Returns not 0 if a double-double lost a bit. large[v] becomes at
 * least the upper half of column v's second double in magnitude. */
INLINED u64 add_tile(state *a, const tile_part *t, u32 columns, u32 rows, u32 there, u32 *large) {
    u64 wrong = 0;
    UNROLL
    for (u32 k = 0; k < rows; k++) {
        if (NO_ROWS_FROM(k, rows, there)) break;
        UNROLL
        for (u32 v = 0; v < columns; v++) {
            wrong |= add_finite((double)widen(t->e[k * columns + v]), &a[v]);
            const u32 rest = (u32)(double_bits(a[v].sum.e) >> 32) & 0x7fffffffu;
            large[v] = rest > large[v] ? rest : large[v];
        }
    }
    return wrong;
}

/* Ends a batch of the `count` rows that lie at `from`; `whole` is the state before it, if there was one, and `a` the
 * state with it. If an addition was `wrong`, the sum is off by at most half of the second
 * double's last bit for each row, which `large` bounds. If that is not finite, the batch is added
 * to `whole` slowly instead. Both then have the same elements. */
INLINED void check_batch(row_source from, u32 count, u32 vector, u64 wrong, u32 before, u32 *large,
                         state *a, state *whole) {
    UNROLL
    for (u32 v = 0; v < vector; v++) {
        if (!before) whole[v] = none();
        if (wrong == 0) {
            copy_sum(&a[v], &whole[v]);
        } else if (large[v] < 0x7fe00000u) {
            copy_sum(&a[v], &whole[v]);
            whole[v].off = increased_bound(whole[v].off, double_from((u64)(large[v] + 1) << 32) *
                                                             ((double)count * 0x1p-52));
        } else {
            add_slowly(column_of(from, v), count, &whole[v]);
            copy_sum(&whole[v], &a[v]);
        }
        large[v] = 0;
    }
}

/* ---- A thread's columns (column_states.h) ---- */

typedef struct adding {
    state a[VECTOR];
    u32 large[VECTOR];
    u64 wrong;        /* what add_tile() says of the batch */
    u32 tiles, count; /* tiles and rows of the batch */
    u32 before;       /* there is a state of earlier batches */
} adding;

INLINED void begin_later(adding *k) {
    k->wrong = 0;
    k->tiles = k->count = 0;
}
INLINED void begin_columns(adding *k, u32 vector) {
    UNROLL
    for (u32 v = 0; v < vector; v++) {
        k->a[v] = none();
        k->large[v] = 0;
    }
    k->before = 0;
    begin_later(k);
}
INLINED void add_columns(adding *k, state *whole, const tile_part *t, u32 vector, u32 rows,
                         u32 there, tile_rows at) {
    k->wrong |= add_tile(k->a, t, vector, rows, there, k->large);
    k->count += there;
    k->tiles++;
}
PURE u32 untested_rows(const adding *k) {
    return k->count;
}
PURE u32 are_to_be_tested(const adding *k) {
    return k->tiles == BATCH;
}
INLINED void test_columns(adding *k, state *whole, u32 vector, row_source from) {
    check_batch(from, k->count, vector, k->wrong, k->before, k->large, k->a, whole);
    k->before = 1;
    begin_later(k);
}
INLINED void end_columns(adding *k, state *whole, u32 vector, row_source from, state *a) {
    const u32 is_tested = k->wrong != 0 || k->before;
    if (is_tested) test_columns(k, whole, vector, from);
    UNROLL
    for (u32 v = 0; v < vector; v++)
        a[v] = is_tested ? whole[v] : k->a[v];
}

#endif
