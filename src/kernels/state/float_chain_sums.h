/*
 * float_chain_sums.h - batches of several sums at once, as float_batches.h has them, in chains of floats (float_chains.h):
 * sums of elements, or with FOLD_SQUARES of their squares. A batch has 2^BATCH_LOG rows, as many as a chain.
 *
 * For sums of elements, a tile with an element too small for the window does not fit the batch. Squares of such
 * elements are added, but make the sum inexact: an addition to the last chain, and the square's own rounding where it
 * is subnormal, lose at most a last bit each, 2^(BATCH_LOG + 1) last bits in all.
 *
 * Before including this header, include float_sums.h and halves.h.
 */
#ifndef TALLY_STATE_FLOAT_CHAIN_SUMS_H
#define TALLY_STATE_FLOAT_CHAIN_SUMS_H

#define CHAIN_LOG         BATCH_LOG
#define CHAINS_OF_SQUARES HAS_SQUARES
#define ABREAST           VECTOR
#include "float_chains.h"

/* The elements that a thread has added since its last batch went to the whole state. */
typedef struct batch {
    chains c;
    u32 signs
        [VECTOR]; /* the AND of all elements' words: a sign bit stays set if a column's elements all have it */
    u32 room;   /* rows that the batch has room for */
    u32 rough;  /* not 0: squares may have lost something */
    u32 used;   /* the batch has elements */
    u32 before; /* the whole has been begun: it is in memory, as it is seldom needed */
} batch;

INLINED void begin_batch(batch *b, u32 columns) {
    begin_shut(&b->c, columns);
    UNROLL
    for (u32 v = 0; v < columns; v++)
        b->signs[v] = ~0u;
    b->rough = b->used = 0;
    b->room = BATCH_ROWS;
}

/* ---- A batch's states ---- */

/* Returns whether all elements of column v of a batch of so many columns are negative, or -0. */
PURE u32 all_have_signs(const batch *b, u32 columns, u32 v) {
#if defined(TYPE_F32)
    return b->signs[v] >> 31;
#else
    const u32 signs = b->signs[v / 2];
    return columns == 1 ? signs >> 31 & signs >> 15 & 1 : signs >> (16 * (v % 2) + 15) & 1;
#endif
}

/* Makes *to the state of column v's elements in this batch alone. */
INLINED void batch_state(const batch *b, u32 columns, u32 v, state *to) {
    double high, low;
    i64 units[CHAINS];
    UNROLL
    for (u32 k = 0; k < CHAINS; k++)
        units[k] = chain_units(&b->c, k, v);
    *to = none();
    sum_of_units(units, b->c.exponent, &high, &low);
#if HAS_SQUARES
    to->square = high;
    to->rest = low;
    if (b->rough != 0) to->off = power_of_two(LAST_BIT(b->c.exponent) + BATCH_LOG + 1);
#else
    to->sum.s = high == 0 && all_have_signs(b, columns, v) ? -0.0 : high;
    to->sum.e = low;
#endif
}

#include "batches.h"

#define ENDS_EARLY 0

/* ---- Tiles ---- */

/* Notes the signs of a tile's elements. */
#if defined(TYPE_F32)
INLINED void note_signs(batch *b, const tile_part *t, u32 columns, u32 count) {
    UNROLL
    for (u32 k = 0; k < count; k++)
        b->signs[k % columns] &= float_bits(t->e[k]);
}
#else
INLINED void note_signs(batch *b, const tile_part *t, u32 columns, u32 count) {
    const u32 words = columns > 1 ? columns / 2 : 1;
    UNROLL
    for (u32 i = 0; i < count / 2; i++)
        b->signs[i % words] &= t->pair[i];
}
#endif

/* Adds a tile to the batch, or to the whole states if it fits no batch. `from` is where its `count` rows lie. */
INLINED void add_tile(batch *b, state *whole, const tile_part *t, u32 columns, u32 rows, u32 count,
                      row_source from) {
    magnitudes m = nothing_noted();
    note_elements(&m, t->e, t->pair, rows * columns);
    m = noted_magnitudes(m);
    if (!FITS(&b->c, m) || b->room < rows) {
        if (b->used) flush_batch(b, columns, whole);
        if (!open_chains(&b->c, columns, m)) {
            add_all_slowly(b, whole, columns, count, from);
            return;
        }
    }
    count_tile(b, rows);
    if (HAS_SQUARES)
        b->rough |= m.least < b->c.least;
    else
        note_signs(b, t, columns, rows * columns);
    UNROLL
    for (u32 k = 0; k < rows; k++)
        UNROLL
    for (u32 v = 0; v < columns; v++) {
        const float x = widen(t->e[k * columns + v]);
        if (HAS_SQUARES)
            add_square_to_chains(&b->c, v, x);
        else
            add_to_chains(&b->c, 0, v, x);
    }
}

#endif
