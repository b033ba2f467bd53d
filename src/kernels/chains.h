/*
 * chains.h - sums of squares, and with LIFT_MOMENTS of the elements beside them, in chains of doubles.
 *
 * Extraction (window.h) takes every term apart by itself. Here a level is a chain: a double that begins as
 * sigma = 1.5 * 2^E and to which term after term is added. While it stays below 2^(E+1) its last bit is worth 2^(E-52),
 * so that what an addition t = a + p has taken of p is q = t - a, and what it has left is r = p - q, both exact. The r
 * go to the next level's chain. What chains have in the end is read from their bits, once for a tile.
 *
 * First level. A square is a double, or, of f64, two (lift.h), of which the first goes here. Squares are not negative,
 * so this chain only grows: if it is below 2^(E+1) at the end, it has been all along, and no element was too large,
 * infinite or NaN. The squares of a chain, L of them, then add up to no more than 2^(E-1), and its elements, by
 * Cauchy's inequality, to no more than sqrt(L) 2^((E-1)/2), at most 2^(F-1) for L <= 16, where their chain has
 * F = floor(E/2) + 3 for E.
 *
 * Further levels. |r| <= 2^(E-53), and a square's second part is at most half of that, so that those of L squares stay
 * below 2^(E - LEVELS_APART - 1), and this level's sigma is 2^LEVELS_APART smaller: 47 for L = 16 and one part, 49 for
 * L = 4 and two. So it goes on to the last level, where nothing is left over if all bits of all squares, and of
 * elements in theirs, are worth its last bit or more. They are, if none but 0 has a magnitude below the one whose last
 * bit is. This is looked for in the elements' bits. (Of a square of two parts, r then goes to the second level without
 * a rest: it is a multiple of the square's last bit, and the square is above 2^(E - 2 LEVELS_APART + 52).)
 *
 * A tile that fails either check has changed nothing.
 */
#ifndef TALLY_CHAINS_H
#define TALLY_CHAINS_H

#if BLOCK > 1
#define CHAINS 2u /* side by side */
#else
#define CHAINS 16u
#endif

#if LEVELS == 3 /* of squares; elements have one less */
#define DEEP 1
#else
#define DEEP 0
#endif

#if defined(TYPE_F16)
#define ELEMENT_BIAS 15
#elif defined(TYPE_F64)
#define ELEMENT_BIAS 1023
#else
#define ELEMENT_BIAS 127
#endif
#define ELEMENT_MANTISSA (ELEMENT_BITS - 1)

/* x * x + c, where x * x is exact. */
#if defined(__CUDACC__)
#define SQUARE_PLUS(x, c) fused(x, x, c)
#else
#define SQUARE_PLUS(x, c) ((x) * (x) + (c))
#endif

/* F, for E = exponent. */
PURE i32 elements_exponent(i32 exponent) {
    return (exponent >> 1) + 3;
}

/* The exponent field of the least magnitude that an element may have which is not 0. */
PURE u32 least_field(i32 exponent) {
    /* The exponent of an element's last bit: half that of the squares' last level, rounded up, where this is no less
     * than the elements' last level's, else the latter. */
#if DEEP || !defined(LIFT_MOMENTS)
    const i32 last = (level_exponent(exponent, LEVELS - 1) + 1) >> 1;
#else
    const i32 last = level_exponent(elements_exponent(exponent), 0);
#endif
    const i32 field = last + ELEMENT_BIAS + ELEMENT_MANTISSA, most = 2 * ELEMENT_BIAS + 1;
    return field <= 1 ? 0 : (u32)(field < most ? field : most);
}

/* Whether an element is not 0 and has an exponent field below `field`. Bits without the sign are below the sign's
 * bit, so no sum of them carries into the next element. */
PURE u32 has_too_small(const tile *t, u32 field) {
#if defined(TYPE_F64)
    u32 small = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++)
        small |= (t->word[2 * i + 1] & 0x7fffffffu) < field << 20 && t->e[i] != 0;
    return small;
#else
    const u32 sign = sizeof(element) == 2 ? 0x80008000u : 0x80000000u;
    const u32 ones = sizeof(element) == 2 ? 0x00010001u : 1u;
    const u32 least = field ? field << ELEMENT_MANTISSA : 1;
    u32 small = 0;
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++) {
        const u32 m = t->word[i] & ~sign;
        small |= (m + (sign - ones)) & ~(m + (sign - ones * least));
    }
    return (small & sign) != 0;
#endif
}

/* A level below the first: *chain takes what it can of `rest`, which becomes what it cannot. */
#define TAKE(chain, rest)                                                                          \
    moved = (chain) + (rest);                                                                      \
    (rest) -= moved - (chain);                                                                     \
    (chain) = moved

/* The units that a chain has gathered since it was sigma. */
#define UNITS_OF(chain, sigma) REAL_BITS(chain) - REAL_BITS(sigma)

/* Adds a tile's squares to their totals, and its elements to theirs unless `elements` is NULL, and returns 1; or
 * returns 0 and changes nothing where w does not fit the tile. */
PURE u32 extract_chains(const tile *t, window w, u64 *squares, u64 *elements) {
    const i32 middle = elements_exponent(w.exponent);
    const term sigma0 = REAL_FROM(w.sigma);
    const term sigma1 = REAL_FROM(sigma_bits(w.exponent - LEVELS_APART));
    const term sigma2 = REAL_FROM(sigma_bits(w.exponent - 2 * LEVELS_APART));
    const term sigma3 = REAL_FROM(sigma_bits(middle));
    const term sigma4 = REAL_FROM(sigma_bits(middle - LEVELS_APART));
    term a[CHAINS], b[CHAINS], c[CHAINS], d[CHAINS], e[CHAINS], moved;
    raw outside = 0, sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0, sum4 = 0;
    UNROLL
    for (u32 k = 0; k < CHAINS; k++) {
        a[k] = sigma0;
        b[k] = sigma1;
        c[k] = sigma2;
        d[k] = sigma3;
        e[k] = sigma4;
    }
    UNROLL
    for (u32 i = 0; i < TILE; i += CHAINS) {
        UNROLL
        for (u32 k = 0; k < CHAINS; k++) {
            const term x = widen(t->e[i + k]);
#if TWO_PARTS
            term first = x * x, rest = fused(x, x, -first);
            TAKE(a[k], first);
            b[k] += first;
#else
            moved = SQUARE_PLUS(x, a[k]);
            term rest = SQUARE_PLUS(x, a[k] - moved);
            a[k] = moved;
#endif
#if DEEP
            TAKE(b[k], rest);
            c[k] += rest;
#else
            b[k] += rest;
#endif
            if (elements) {
                rest = x;
                TAKE(d[k], rest);
                if (DEEP) e[k] += rest;
            }
        }
    }
    UNROLL
    for (u32 k = 0; k < CHAINS; k++) {
        outside |= REAL_BITS(a[k]) ^ w.sigma;
        sum0 += UNITS_OF(a[k], sigma0);
        sum1 += UNITS_OF(b[k], sigma1);
        sum2 += UNITS_OF(c[k], sigma2);
        sum3 += UNITS_OF(d[k], sigma3);
        sum4 += UNITS_OF(e[k], sigma4);
    }
    if (outside >> MANTISSA != 0 || has_too_small(t, least_field(w.exponent))) return 0;
    add_units(squares, 0, (signed_raw)sum0);
    add_units(squares, 1, (signed_raw)sum1);
    if (elements) add_units(elements, 0, (signed_raw)sum3);
#if DEEP
    add_units(squares, 2, (signed_raw)sum2);
    if (elements) add_units(elements, 1, (signed_raw)sum4);
#endif
    return 1;
}

#if !defined(LIFT_MOMENTS)
PURE u32 extract(const input *t, window w, u64 *totals) {
    return extract_chains(&t->x, w, totals, 0);
}
#endif

#endif
