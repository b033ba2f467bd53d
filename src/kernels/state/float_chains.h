/*
 * float_chains.h - exact sums of floats shorter than f64 without an operation on doubles for each element: of elements, or
 * where CHAINS_OF_SQUARES of their squares.
 *
 * A chain is a float that begins as sigma = 1.5 * 2^E, and to which term after term is added. As long as it lies in
 * [2^E, 2^(E + 1)) its last bit is worth 2^(E - 23). What the addition moved = a + x has taken of x is moved - a, and what
 * it has left is x - (moved - a), both exact (Dekker's FastTwoSum: a is the larger one). What is left goes to the next chain,
 * and so on; the last chain takes all of what it gets. A square of 16 bits is exact, so that fused multiply-adds give moved
 * and what is left of it. In the end a chain's bits, read as an integer, are those of sigma and its sum in units of its last
 * bit.
 *
 * Elements are looked at before they are added: a window says which magnitudes the chains take without a loss, and is chosen
 * for the first elements, with room for larger ones. Chains abreast have the same window. They are those of different sums,
 * or share one.
 *
 * Bounds, for at most 2^p terms |x| < 2^h of a chain, with p = CHAIN_LOG:
 * 1. The first chain has E = h + p + 1, so that its sum stays below 2^(E - 1).
 * 2. An addition leaves at most 2^(E - 24), and 2^p of them at most 2^(E - 24 + p). The next chain's sigma is 2^APART times
 *    smaller, with APART = 23 - p, which is the E of step 1 for such terms. The square of an f32 has two floats, of which
 *    the second, below 2^(h - 24), goes to the second chain beside what the first chain leaves: one bit more.
 * 3. The last of K chains takes what it gets without an error if all terms are multiples of its last bit, 2^(E - 23 - (K -
 *    1) APART). Elements that are not 0 and have too small an exponent for that are below `least`.
 *
 * Before including this header, define TYPE_BF16 or another such type, IS_F32, CHAIN_LOG, CHAINS_OF_SQUARES and ABREAST,
 * the number of chains abreast, and include halves.h, widen.h, doubles.h and certain/batch.h.
 */
#ifndef TALLY_STATE_FLOAT_CHAINS_H
#define TALLY_STATE_FLOAT_CHAINS_H

#define BIAS ((1 << (ELEMENT_WIDTH - 2 - ELEMENT_MANTISSA)) - 1)
#define TWO_TERMS                                                                                  \
    (CHAINS_OF_SQUARES && IS_F32) /* an element has two: its square, and the error of that */
#define CHAINS (TWO_TERMS ? 4u : CHAINS_OF_SQUARES || IS_F32 ? 3u : 2u)
#define APART  (23 - CHAIN_LOG - TWO_TERMS)
/* Exponents of the first chain, so that the last one's is a normal float's. */
#define FIRST_LEAST (-126 + (i32)(CHAINS - 1) * APART)
#define FIRST_MOST  127
/* The exponent of the last chain's last bit, given the first chain's. */
#define LAST_BIT(first) ((first)-23 - (i32)(CHAINS - 1) * APART)
#define CHAIN_ROOM                                                                                 \
    2 /* bits that later elements may have more than the one that a window is chosen for */

typedef struct chains {
    float chain[CHAINS][ABREAST];
    i32 exponent; /* of the first chain */
    u32 end,
        least; /* magnitudes that fit are below `end` and at least `least`, or 0; as bits of elements */
} chains;

PURE u32 chain_sigma(i32 exponent) {
    return (u32)(exponent + 127) << 23 | 1u << 22;
}

/* Begins so many chains abreast with a first one of this exponent. */
INLINED void begin_chains(chains *c, u32 abreast, i32 exponent) {
    c->exponent = exponent;
    UNROLL
    for (u32 v = 0; v < abreast; v++)
        UNROLL
    for (u32 k = 0; k < CHAINS; k++)
        c->chain[k][v] = float_from(chain_sigma(exponent - (i32)k * APART));
}

/* Begins chains that nothing fits. */
INLINED void begin_shut(chains *c, u32 abreast) {
    begin_chains(c, abreast, FIRST_LEAST);
    c->end = c->least = 0;
}

/* Returns what the k-th of the chains at v has taken, in units of its last bit. */
PURE i32 chain_units(const chains *c, u32 k, u32 v) {
    return (i32)(float_bits(c->chain[k][v]) - chain_sigma(c->exponent - (i32)k * APART));
}

/* Makes *high + *low the sum of units that chains with this first exponent have taken, each less than 2^31. */
INLINED void sum_of_units(const i64 *units, i32 exponent, double *high, double *low) {
    const i32 last_bit = LAST_BIT(exponent);
    i64 u[4] = {0, 0, 0, 0}; /* the last chains' */
    UNROLL
    for (u32 k = 0; k < CHAINS; k++)
        u[k + 4 - CHAINS] = units[k];
    *high = (double)((i64)((u64)u[2] << APART) + u[3]) * power_of_two(last_bit);
    *low = 0;
    if (CHAINS > 2)
        *high =
            two_sum((double)((i64)((u64)u[0] << APART) + u[1]) * power_of_two(last_bit + 2 * APART),
                    *high, low);
}

/* ---- Windows ---- */

/* The largest magnitude of some elements, and the smallest one that is not 0, or NO_LEAST; as bits of elements. */
typedef struct magnitudes {
    u32 most, least;
} magnitudes;

/* Notes are magnitudes in the form that takes the fewest steps to widen; noted_magnitudes() turns them into bits of
 * elements. Elements of 16 bits are noted two at a time, as they lie in words. */
#if defined(TYPE_F32)
PURE magnitudes nothing_noted(void) {
    const magnitudes m = {NO_MOST, NO_LEAST};
    return m;
}
INLINED void note_elements(magnitudes *noted, const element *e, const u32 *two, u32 count) {
    UNROLL
    for (u32 k = 0; k < count; k++)
        note_magnitude(float_bits(e[k]), &noted->most, &noted->least);
}
PURE magnitudes noted_magnitudes(magnitudes noted) {
    noted.least = noted.least == NO_LEAST ? NO_LEAST : (noted.least + 1) >> 1;
    return noted;
}
#else
PURE magnitudes nothing_noted(void) {
    const magnitudes m = {NO_HALVES, NO_HALVES};
    return m;
}
INLINED void note_elements(magnitudes *noted, const element *e, const u32 *two, u32 count) {
    UNROLL
    for (u32 i = 0; i < count / 2; i++)
        note_halves(two[i], &noted->most, &noted->least);
}
PURE magnitudes noted_magnitudes(magnitudes noted) {
    const u32 least = smallest_half(noted.least);
    const magnitudes m = {greatest_half(noted.most), least == 0 ? NO_LEAST : least};
    return m;
}
#endif

/* FITS() is 1 where elements of these magnitudes fit the window. Sums of squares may be off, so none is too small. */
#define FITS(c, m) ((m).most < (c)->end && (CHAINS_OF_SQUARES || (m).least >= (c)->least))

/* Chooses the window of empty chains for elements of these magnitudes. Returns 0 where they fit none. */
INLINED u32 open_chains(chains *c, u32 abreast, magnitudes m) {
    const u32 field = m.most >> ELEMENT_MANTISSA;
    const i32 special = 2 * BIAS + 1;
    const i32 wanted = (i32)(field > 0 ? field : 1) - BIAS + 1 + CHAIN_ROOM; /* |x| < 2^wanted */
    i32 first = (CHAINS_OF_SQUARES ? 2 * wanted : wanted) + CHAIN_LOG + 1;
    first = first < FIRST_LEAST ? FIRST_LEAST : first > FIRST_MOST ? FIRST_MOST : first;
    const i32 above = first - CHAIN_LOG - 1, last_bit = LAST_BIT(first); /* of terms */
    const i32 end = (CHAINS_OF_SQUARES ? above >> 1 : above) + BIAS;
    const i32 least =
        (CHAINS_OF_SQUARES ? (last_bit + 1) >> 1 : last_bit) + BIAS + ELEMENT_MANTISSA;
    c->end = m.most == 0 ? 1 : (u32)(end < special ? end : special) << ELEMENT_MANTISSA;
    c->least = least <= 1 ? 0 : (u32)(least < special ? least : special) << ELEMENT_MANTISSA;
    if (!FITS(c, m)) return 0;
    begin_chains(c, abreast, first);
    return 1;
}

/* ---- Terms ---- */

/* Adds a term to the chains at v from the k-th on. */
INLINED void add_to_chains(chains *c, u32 first, u32 v, float term) {
    UNROLL
    for (u32 k = first; k + 1 < CHAINS; k++) {
        const float before = c->chain[k][v], moved = before + term;
        c->chain[k][v] = moved;
        term -= moved - before;
    }
    c->chain[CHAINS - 1][v] += term;
}

/* Adds the square of an element that fits to the chains at v. */
INLINED void add_square_to_chains(chains *c, u32 v, float x) {
    if (TWO_TERMS) {
        const float square = x * x;
        add_to_chains(c, 0, v, square);
        add_to_chains(c, 1, v, fused_float(x, x, -square));
    } else { /* the square is exact */
        const float before = c->chain[0][v];
        c->chain[0][v] = fused_float(x, x, before);
        add_to_chains(c, 1, v, fused_float(x, x, before - c->chain[0][v]));
    }
}

#endif
