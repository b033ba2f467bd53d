/*
 * column_states.h - the states of neighbouring columns, for schedules that read tiles of rows (columns.cu,
 * vectors.cu). A define chooses the kind of state:
 *
 *   FOLD_SUM      the exact sum (state/float_sums.h, state/integer_sum.h)
 *   FOLD_SQUARES  the exact sum of floats' squares; with NEAR one within a bound, for norms (state/near_squares.h)
 *   FOLD_MOMENTS  the exact sums of floats and of their squares
 *   FOLD_FAST     the sum of floats in any order, as a double
 *   FOLD_END      the greatest key (certain/order.h); where INDEXED is defined also the first row that has it
 *   FOLD_ENDS     both extremes
 *
 * A thread's columns are an `adding` and, where floats need it, `whole`: the states before the last batch. These lie in
 * memory, as they are seldom needed.
 *
 *   begin_columns()  begins with no rows
 *   add_columns()    adds a tile, whose element t->e[k * vector + v] is that of row k and column v
 *   pad_rows()       fills the rows behind the first `there`, which do not exist, with pad(). Where PAD is 0 they are
 *                    copies of rows that do exist. Where ENDS_EARLY is 1, a half of a tile without rows is left out
 *   test_columns()   tests tiles that have been added, at most TILES_A_TEST of them, when they are_to_be_tested().
 *                    Exact sums of f64 without squares need it (TESTS_LATER); tiles of other exact sums of floats are
 *                    tested before they are added (TESTS_EXPONENTS)
 *   end_columns()    gives the states; `from` is the place of the rows that are not tested yet
 *
 * Before including this header, define BLOCKS_A_UNIT and include operators.h, widen.h, copies.h, store.h, lower.h,
 * parts.h and doubles.h. Where rows may come in an order, define GATHERS; where results may be of different numbers
 * of rows, VARIES. Define TILE_ROWS, the rows of a thread's part of a tile; STRANDS(p), the strands of a plan; and
 * FLIP(p), the `flip` of column_values as a key.
 */
#ifndef TALLY_COLUMN_STATES_H
#define TALLY_COLUMN_STATES_H

#include "column_values.h"

#include "certain/batch.h"

#include "schedule/units.h"

#define VALUES column_values

#if defined(NEAR)
#include "state/near_squares.h"
#define TESTS_EXPONENTS 0
#define TESTS_LATER     0

#elif defined(FOLD_MOMENTS) || defined(FOLD_SQUARES) || (defined(FOLD_SUM) && defined(FLOATING))
#include "element_type.h"
#include "state/float_sums.h"

#if TESTS_EXPONENTS
#include "halves.h"

#if defined(IN_FLOATS)
#include "state/float_chain_sums.h"
#else
#include "state/float_batches.h"
#endif
#define TESTS_LATER 0

typedef struct adding {
    batch b;
} adding;

INLINED void begin_columns(adding *k, u32 vector) {
    k->b.before = 0;
    begin_batch(&k->b, vector);
}
INLINED void add_columns(adding *k, state *whole, const tile_part *t, u32 vector, u32 rows,
                         u32 there, tile_rows at) {
    add_tile(&k->b, whole, t, vector, rows, there, at.from);
}
INLINED void end_columns(adding *k, state *whole, u32 vector, row_source from, state *a) {
    end_batch(&k->b, vector, whole, a);
}
#else
#include "state/float_later.h"
#define TESTS_LATER 1
#endif

#else
#define TESTS_EXPONENTS 0
#define TESTS_LATER     0

#if defined(FOLD_SUM)
#include "state/integer_sum.h"
#define PAD                         1
PURE element pad(void) {
    return 0;
}
#define ADD_ELEMENT(a, e, at, flip) add(a, e, 0, 1)
#elif defined(FOLD_FAST)
#define FAST_REAL  double
#define FAST_MEANS 1
#include "state/fast.h"
#define PAD 1
PURE element pad(void) {
#if defined(TYPE_F64) || defined(TYPE_F32)
    return -(element)0;
#else
    return (element)SIGN;
#endif
}
#define ADD_ELEMENT(a, e, at, flip) add(a, e, 0, 1)
#elif defined(INDEXED)
#define PLACE u32
#include "state/first_extreme.h"
#define PAD                         0
/* Adds a key and its row. A thread's row numbers rise, so the first of equal keys stays, even if a tile repeats a row.
 * The thread's first row replaces none(), whose key is 0, even if its own key is 0, too. */
PURE void add_element(state *a, element e, u32 at, u32 is_first, key flip) {
    const key own = first_nan(key_of(e, flip));
    if (own > a->most || (is_first && a->at == NOWHERE)) {
        a->most = own;
        a->at = at;
    }
}
#define ADD_ELEMENT(a, e, at, flip) add_element(a, e, at, k < columns, (key)(flip))
#else
#if defined(FOLD_ENDS)
#define HAS_LEAST 1
#else
#define HAS_LEAST 0
#endif
#include "state/extremes.h"
#define PAD                         0
#define ADD_ELEMENT(a, e, at, flip) add_key(a, key_of(e, (key)(flip)), 1)
#endif

#define ENDS_EARLY 1

typedef struct adding {
    state a[VECTOR];
} adding;

INLINED void begin_columns(adding *k, u32 vector) {
    UNROLL
    for (u32 v = 0; v < vector; v++)
        k->a[v] = none();
}
INLINED void add_columns(adding *to, state *whole, const tile_part *t, u32 columns, u32 rows,
                         u32 there, tile_rows at) {
    UNROLL
    for (u32 k = 0; k < rows * columns; k++) {
        if (k % columns == 0 && NO_ROWS_FROM(k / columns, rows, there)) break;
        ADD_ELEMENT(&to->a[k % columns], t->e[k], at.first + k / columns * at.strands, at.flip);
    }
}
INLINED void end_columns(adding *k, state *whole, u32 vector, row_source from, state *a) {
    UNROLL
    for (u32 v = 0; v < vector; v++)
        a[v] = k->a[v];
}
#endif

#define ADDS_BRIEFLY (!TESTS_EXPONENTS && !TESTS_LATER) /* adding takes few instructions */

#if TESTS_LATER
#define TILES_A_TEST BATCH
#else
#define TILES_A_TEST 1u
PURE u32 untested_rows(const adding *k) {
    return 0;
}
PURE u32 are_to_be_tested(const adding *k) {
    return 0;
}
INLINED void test_columns(adding *k, state *whole, u32 vector, row_source from) {}
#endif

#if PAD
INLINED void pad_rows(tile_part *t, u32 vector, u32 rows, u32 there) {
    UNROLL
    for (u32 k = 1; k < rows; k++) {
        if (NO_ROWS_FROM(k, rows, there)) break;
        UNROLL
        for (u32 v = 0; v < vector; v++)
            if (k >= there) t->e[k * vector + v] = pad();
    }
}
#else
INLINED void pad_rows(tile_part *t, u32 vector, u32 rows, u32 there) {}
#endif

#include "schedule/strands.h"

#endif
