/*
 * near_squares.h - sums of squares side by side, of floats of up to 32 bits, for norms. A sum is plain, of doubles. The state
 * counts the additions that an element has gone through, at most: that bounds the error, and Ziv's rounding test says whether
 * it matters (certain/variance.h). Hardly any sum of squares has a root half way between two floats.
 *
 * Before including this header, define VALUES, the type of the plan that says which values are wanted, and include widen.h,
 * doubles.h, certain/variance.h and schedule/units.h.
 */
#ifndef TALLY_STATE_NEAR_SQUARES_H
#define TALLY_STATE_NEAR_SQUARES_H

#define STATE_WORDS 2
#define NEVER_LOST  NULL
#define PAD         1
#define ENDS_EARLY  0
/* Tiles of a span. The sums of spans are added up, so that an element of n tiles goes through 64 + n / 64 additions and not
 * n. */
#define SPAN 64u

/* `square` is an infinity or a NaN where the norm is. */
typedef struct state {
    double square;
    u32 depth;
} state;

PURE state none(void) {
    const state a = {0, 0};
    return a;
}
PURE state merge(state a, state b) {
    a.square += b.square;
    a.depth = (a.depth > b.depth ? a.depth : b.depth) + 1;
    return a;
}
PURE u64 state_word(const state *a, u32 k) {
    return k == 0 ? double_bits(a->square) : a->depth;
}
PURE state state_of_words(const u64 *words) {
    const state a = {double_from(words[0]), (u32)words[1]};
    return a;
}

PURE element pad(void) {
    return 0;
}

/* ---- A thread's columns (column_states.h) ---- */

typedef struct adding {
    double square[VECTOR], earlier[VECTOR]; /* of this span; of all before it */
    u32 tiles, spans;                       /* tiles of this span; spans before it */
} adding;

INLINED void begin_columns(adding *k, u32 vector) {
    UNROLL
    for (u32 v = 0; v < vector; v++)
        k->square[v] = k->earlier[v] = 0;
    k->tiles = k->spans = 0;
}
INLINED void end_span(adding *k, u32 vector) {
    UNROLL
    for (u32 v = 0; v < vector; v++) {
        k->earlier[v] += k->square[v];
        k->square[v] = 0;
    }
    k->tiles = 0;
    k->spans++;
}
INLINED void add_columns(adding *to, state *whole, const tile_part *t, u32 vector, u32 rows,
                         u32 there, tile_rows at) {
    UNROLL
    for (u32 v = 0; v < vector; v++) { /* the squares themselves are exact */
        const double one = (double)widen(t->e[v]);
        double sum = one * one;
        UNROLL
        for (u32 k = 1; k < rows; k++) {
            const double x = (double)widen(t->e[k * vector + v]);
            sum = fused(x, x, sum);
        }
        to->square[v] += sum;
    }
    if (++to->tiles == SPAN) end_span(to, vector);
}
INLINED void end_columns(adding *k, state *whole, u32 vector, row_source from, state *a) {
    const u32 tiles = k->spans > 0 ? SPAN : k->tiles; /* of a span at most */
    end_span(k, vector);
    UNROLL
    for (u32 v = 0; v < vector; v++) {
        a[v].square = k->earlier[v];
        /* rows - 1 additions in a tile, one for each of its span's tiles, and one for each span; merge() adds one */
        a[v].depth = (vector > 1 ? TILE_ROWS : NARROW_ROWS) + tiles + k->spans;
    }
}

/* ---- Values ---- */

PURE u64 state_value(const state *a, const VALUES *p, u64 n, u64 first, u32 op, u32 to, u32 *lost) {
    u64 bits = 0;
    if (a->square - a->square == 0) {
        if (near_sums_round(0, a->square, 0, (double)a->depth, 0, NORM2, 0, to, &bits))
            TALLY_PATH("a near norm");
        else
            *lost = 1;
        return bits;
    }
    TALLY_PATH("not finite");
    return a->square == a->square ? float_infinity_bits(format_of(to), 0)
                                  : float_nan_bits(format_of(to));
}
PURE u64 value_of_none(const VALUES *p, u32 op, u32 to, u32 *lost) {
    return 0;
}
PURE u32 may_be_filled(const state *a) {
    return 0;
}

#endif
