/*
 * float_chains.h - batches of several sums at once, as float_batches.h has them, of floats shorter than f64: without an
 * operation on doubles for each element. Sums of elements, or with FOLD_SQUARES of their squares.
 *
 * A chain is a float that begins as sigma = 1.5 * 2^E, and to which term after term is added. As long as it lies in
 * [2^E, 2^(E + 1)) its last bit is worth 2^(E - 23). What the addition moved = a + x has taken of x is moved - a, and what
 * it has left is x - (moved - a), both exact (Dekker's Fast2Sum: a is the larger one). What is left goes to the next chain,
 * and so on; the last chain takes all of what it gets. A square of 16 bits is exact, so that fused multiply-adds give moved
 * and what is left of it. In the end a chain's bits, read as an integer, are those of sigma
 * and its sum in units of its last bit.
 *
 * Bounds, for at most 2^p terms |x| < 2^h, with p = BATCH_LOG:
 * 1. The first chain has E = h + p + 1, so that its sum stays below 2^(E - 1).
 * 2. An addition leaves at most 2^(E - 24), and 2^p of them at most 2^(E - 24 + p). The next chain's sigma is 2^APART times
 *    smaller, with APART = 23 - p, which is the E of step 1 for such terms. The square of an f32 has two floats, of which
 *    the second, below 2^(h - 24), goes to the second chain beside what the first chain leaves: one bit more.
 * 3. The last of K chains takes what it gets without an error if all terms are multiples of its last bit, 2^(E - 23 - (K -
 *    1) APART). Elements that are not 0 and have too small an exponent for that are `below`. For sums a tile with one fits
 *    no batch. For squares the sum is then off: an addition to the last chain, and the square's own rounding where it is
 *    subnormal, lose at most a last bit each, 2^(p + 1) last bits in all.
 *
 * Before including this header, define TYPE_BF16 or another such type, and include halves.h and float_sums.h.
 */
#ifndef TALLY_STATE_FLOAT_CHAINS_H
#define TALLY_STATE_FLOAT_CHAINS_H

#define BIAS ((1 << (ELEMENT_WIDTH - 2 - ELEMENT_MANTISSA)) - 1)
#define TWO_TERMS                                                                                  \
    (HAS_SQUARES && IS_F32) /* an element has two: its square, and the error of that */
#define CHAINS (TWO_TERMS ? 4u : HAS_SQUARES || IS_F32 ? 3u : 2u)
#define APART  (23 - BATCH_LOG - TWO_TERMS)
/* Exponents of the first chain, so that the last one's is a normal float's. */
#define FIRST_LEAST (-126 + (i32)(CHAINS - 1) * APART)
#define FIRST_MOST  127
/* The exponent of the last chain's last bit, given the first chain's. */
#define LAST_BIT(first) ((first)-23 - (i32)(CHAINS - 1) * APART)
#define WINDOW_ROOM                                                                                \
    2 /* bits that later elements may have more than the one that a window is chosen for */

/* The elements that a thread has added since its last batch went to the whole state. */
typedef struct batch {
    float chain[CHAINS][VECTOR];
    u32 signs
        [VECTOR]; /* the bits that all elements of a word's columns have, which tell whether all are negative or -0 */
    i32 exponent; /* of the first chain */
    u32 end,
        least; /* magnitudes that fit are below `end` and at least `least`, or 0; as bits of elements */
    u32 room;   /* rows that it has room for */
    u32 rough;  /* not 0: squares may have lost something */
    u32 used;   /* there is something in it */
    u32 before; /* the whole has been begun: it is in memory, as it is seldom needed */
} batch;

PURE u32 sigma_bits(i32 exponent) {
    return (u32)(exponent + 127) << 23 | 1u << 22;
}

/* Begins the chains with a first one of this exponent. */
INLINED void begin_chains(batch *b, u32 columns, i32 exponent) {
    b->exponent = exponent;
    UNROLL
    for (u32 v = 0; v < columns; v++)
        UNROLL
    for (u32 k = 0; k < CHAINS; k++)
        b->chain[k][v] = float_from(sigma_bits(exponent - (i32)k * APART));
}

INLINED void begin_batch(batch *b, u32 columns) {
    begin_chains(b, columns, FIRST_LEAST);
    UNROLL
    for (u32 v = 0; v < columns; v++)
        b->signs[v] = ~0u;
    b->end = b->least = b->rough = b->used = 0;
    b->room = BATCH_ROWS;
}

/* ---- A batch's states ---- */

/* Makes *high + *low what column v's chains have taken. */
INLINED void chains_sum(const batch *b, u32 v, double *high, double *low) {
    const i32 last_bit = LAST_BIT(b->exponent);
    i64 units[4] = {0, 0, 0, 0}; /* the last chains' */
    UNROLL
    for (u32 k = 0; k < CHAINS; k++)
        units[k + 4 - CHAINS] =
            (i32)(float_bits(b->chain[k][v]) - sigma_bits(b->exponent - (i32)k * APART));
    *high = (double)((i64)((u64)units[2] << APART) + units[3]) * power_of_two(last_bit);
    *low = 0;
    if (CHAINS > 2)
        *high = two_sum((double)((i64)((u64)units[0] << APART) + units[1]) *
                            power_of_two(last_bit + 2 * APART),
                        *high, low);
}

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
    *to = none();
    chains_sum(b, v, &high, &low);
#if HAS_SQUARES
    to->square = high;
    to->rest = low;
    if (b->rough != 0) to->off = power_of_two(LAST_BIT(b->exponent) + BATCH_LOG + 1);
#else
    to->sum.s = high == 0 && all_have_signs(b, columns, v) ? -0.0 : high;
    to->sum.e = low;
#endif
}

#include "batches.h"

/* ---- Tiles ---- */

/* The largest magnitude of a tile's elements, and the smallest one that is not 0, or ~0; as bits of elements. */
typedef struct magnitudes {
    u32 most, least;
} magnitudes;

#if defined(TYPE_F32)
INLINED magnitudes tile_magnitudes(const tile_part *t, u32 count) {
    magnitudes m = {NO_MOST, NO_LEAST};
    UNROLL
    for (u32 k = 0; k < count; k++)
        note_magnitude(float_bits(t->e[k]), &m.most, &m.least);
    m.least = m.least == NO_LEAST ? NO_LEAST : (m.least + 1) >> 1;
    return m;
}
/* Notes the signs of a tile's elements. */
INLINED void note_signs(batch *b, const tile_part *t, u32 columns, u32 count) {
    UNROLL
    for (u32 k = 0; k < count; k++)
        b->signs[k % columns] &= float_bits(t->e[k]);
}
#else
INLINED magnitudes tile_magnitudes(const tile_part *t, u32 count) {
    u32 most = NO_HALVES, least = NO_HALVES;
    UNROLL
    for (u32 i = 0; i < count / 2; i++)
        note_halves(t->pair[i], &most, &least);
    most = UPPER_HALF(greatest_unsigned, most);
    least = UPPER_HALF(least_signed, least);
    const magnitudes m = {most - 0x7fff, least == 0x7fff ? NO_LEAST : least - 0x7fff};
    return m;
}
INLINED void note_signs(batch *b, const tile_part *t, u32 columns, u32 count) {
    const u32 words = columns > 1 ? columns / 2 : 1;
    UNROLL
    for (u32 i = 0; i < count / 2; i++)
        b->signs[i % words] &= t->pair[i];
}
#endif

/* Chooses the window of an empty batch for a tile. Returns 0 where the tile fits none. */
INLINED u32 open_window(batch *b, u32 columns, magnitudes m) {
    const u32 field = m.most >> ELEMENT_MANTISSA;
    const i32 special = 2 * BIAS + 1;
    const i32 wanted = (i32)(field > 0 ? field : 1) - BIAS + 1 + WINDOW_ROOM; /* |x| < 2^wanted */
    i32 first = (HAS_SQUARES ? 2 * wanted : wanted) + BATCH_LOG + 1;
    first = first < FIRST_LEAST ? FIRST_LEAST : first > FIRST_MOST ? FIRST_MOST : first;
    const i32 above = first - BATCH_LOG - 1, last_bit = LAST_BIT(first); /* of terms */
    const i32 end = (HAS_SQUARES ? above >> 1 : above) + BIAS;
    const i32 least = (HAS_SQUARES ? (last_bit + 1) >> 1 : last_bit) + BIAS + ELEMENT_MANTISSA;
    b->end = m.most == 0 ? 1 : (u32)(end < special ? end : special) << ELEMENT_MANTISSA;
    b->least = least <= 1 ? 0 : (u32)(least < special ? least : special) << ELEMENT_MANTISSA;
    if (m.most >= b->end || (!HAS_SQUARES && m.least < b->least)) return 0;
    begin_chains(b, columns, first);
    return 1;
}

/* Adds a term to the chains of column v from the k-th on. */
INLINED void add_to_chains(batch *b, u32 first, u32 v, float term) {
    UNROLL
    for (u32 k = first; k + 1 < CHAINS; k++) {
        const float before = b->chain[k][v], moved = before + term;
        b->chain[k][v] = moved;
        term -= moved - before;
    }
    b->chain[CHAINS - 1][v] += term;
}

/* Adds a tile to the batch, or to the whole states if it fits no batch. `from` is where its `count` rows lie. */
INLINED void add_tile(batch *b, state *whole, const tile_part *t, u32 columns, u32 rows, u32 count,
                      row_source from) {
    const magnitudes m = tile_magnitudes(t, rows * columns);
    if (m.most >= b->end || (!HAS_SQUARES && m.least < b->least) || b->room < rows) {
        if (b->used) flush_batch(b, columns, whole);
        if (!open_window(b, columns, m)) {
            add_all_slowly(b, whole, columns, count, from);
            return;
        }
    }
    count_tile(b, rows);
    if (HAS_SQUARES)
        b->rough |= m.least < b->least;
    else
        note_signs(b, t, columns, rows * columns);
    UNROLL
    for (u32 k = 0; k < rows; k++)
        UNROLL
    for (u32 v = 0; v < columns; v++) {
        const float x = widen(t->e[k * columns + v]), before = b->chain[0][v];
        if (TWO_TERMS) {
            const float square = x * x;
            add_to_chains(b, 0, v, square);
            add_to_chains(b, 1, v, fused_float(x, x, -square));
        } else if (HAS_SQUARES) { /* the square is exact */
            b->chain[0][v] = fused_float(x, x, before);
            add_to_chains(b, 1, v, fused_float(x, x, before - b->chain[0][v]));
        } else
            add_to_chains(b, 0, v, x);
    }
}

#endif
