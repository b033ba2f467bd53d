/*
 * column_states.h - what is known after some elements of neighbouring columns, for schedules that read tiles of rows
 * (columns.cu, vectors.cu). Which states these are, a define says:
 *
 *   FOLD_SUM      the exact sum (state/float_sums.h, state/integer_sum.h)
 *   FOLD_MOMENTS  that of floats, and that of their squares
 *   FOLD_FAST     the sum of floats in any order, as a double
 *   FOLD_END      the greatest key, or that of turned elements; where INDEXED is defined also the first row that has it
 *   FOLD_ENDS     both extremes
 *
 * add_tile() adds elements e[k * columns + v] of rows `row` + k * strands to column v's state. Rows that are not there are
 * pad()s or, where PAD is 0, the first of these again. Tiles of floats are tested before they are added (TESTS_EXPONENTS),
 * those of f64 without squares later (TESTS_LATER).
 *
 * Before including this header, define BLOCKS_A_UNIT and include operators.h, widen.h, copies.h, store.h, lower.h,
 * parts.h and doubles.h. Where rows may come in an order, define GATHERS; where results may be of different numbers of rows, VARIES.
 * Define STRANDS(p) and FLIP(p), of a plan's strands and of column_values.
 */
#ifndef TALLY_COLUMN_STATES_H
#define TALLY_COLUMN_STATES_H

#include "column_values.h"

#include "certain/batch.h"

#include "schedule/units.h"

#define VALUES column_values

#if defined(FOLD_MOMENTS) || (defined(FOLD_SUM) && defined(FLOATING))
#include "state/float_sums.h"

#if TESTS_EXPONENTS
#include "state/float_batches.h"
#define TESTS_LATER 0
#else
#include "state/float_later.h"
#define TESTS_LATER      1
#define ADD_TILE(e, row) add_tile(a, e, vector, rows, large)
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
/* A thread's rows rise, so that the first of equals stays, whatever row is loaded again after the last. The first of all
 * comes in the place of none. */
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

INLINED void add_tile(state *a, const element *e, u32 columns, u32 rows, u32 row, u32 strands,
                      u64 flip) {
    UNROLL
    for (u32 k = 0; k < rows * columns; k++)
        ADD_ELEMENT(&a[k % columns], e[k], row + k / columns * strands, flip);
}
#define ADD_TILE(e, row) add_tile(a, e, vector, rows, row, STRANDS(p), (p)->values.flip)
#endif

#include "schedule/strands.h"

#endif
