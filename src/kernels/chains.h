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
 * Further levels. |r| <= 2^(E-53), and a square's second part is at most half of that. A level is handed what the one
 * before has left of each part of L squares: at most 2^(E - LEVELS_APART - 1) in all. So its sigma is 2^LEVELS_APART
 * smaller: 47 for L = 16 and one part, 49 for
 * L = 4 and two. So it goes on to the last level, where nothing is left over if all bits of all squares, and of
 * elements in theirs, are worth its last bit or more. They are, if none but 0 has a magnitude below the one whose last
 * bit is. This is looked for in the elements' bits. (Of a square of two parts, r of the first one is a multiple of that
 * part's last bit, and the square is above 2^(E + 52 - (levels - 1) LEVELS_APART), if it is not 0: so the level before
 * the last one takes r without a rest.)
 *
 * A tile that fails either check has changed nothing.
 *
 * f16 has but one window, with E = 37: 16 of its squares stay below 2^36, and their last bits are worth 2^-48 or more,
 * where the second level's is worth 2^-62; its elements' chain has F = 21, and a last bit worth 2^-31.
 *
 * Before including this header, define LIFT_SQUARE or LIFT_MOMENTS, and include operators.h and window.h, which
 * includes it and says how many chains of which length a thread has.
 */
#ifndef TALLY_CHAINS_H
#define TALLY_CHAINS_H

/* Fails to compile unless CHAIN_LENGTH is within the bounds above. */
typedef char chains_are_short_enough[CHAIN_LENGTH <= (TWO_PARTS ? 4 : 16) ? 1 : -1];

/* Levels that squares go to: where `deep` all there are, else of f64 one less. Elements go to ELEMENT_LEVELS. */
#define SQUARE_LEVELS(deep) (LEVELS - (TWO_PARTS && !(deep)))
#define ELEMENT_LEVELS      (LEVELS >= 3 ? 2u : 1u)

#define ELEMENT_BIAS ((1 << (ELEMENT_WIDTH - 2 - ELEMENT_MANTISSA)) - 1)

/* x * x + c, where x * x is exact. */
#if HAS_FUSED_UNIT
#define SQUARE_PLUS(x, c) fused(x, x, c)
#else
#define SQUARE_PLUS(x, c) ((x) * (x) + (c))
#endif

/* Returns F for E = exponent. */
PURE i32 elements_exponent(i32 exponent) {
    return (exponent >> 1) + 3;
}

/* Returns the least exponent field that an element other than 0 may have. */
PURE u32 least_field(i32 exponent, u32 deep) {
    /* The exponent of an element's last bit: half that of the squares' last level, rounded up, or that of the elements'
     * last level, whichever is greater. */
    i32 last = (level_exponent(exponent, SQUARE_LEVELS(deep) - 1) + 1) >> 1;
#if defined(LIFT_MOMENTS)
    const i32 other = level_exponent(elements_exponent(exponent), ELEMENT_LEVELS - 1);
    if (other > last) last = other;
#endif
    const i32 field = last + ELEMENT_BIAS + ELEMENT_MANTISSA, most = 2 * ELEMENT_BIAS + 1;
    return field <= 1 ? 0 : (u32)(field < most ? field : most);
}

/* Returns whether some element other than 0 has an exponent field below `field`. Bits without the
 * sign are below the sign bit, so no sum of two carries into the next element. */
PURE u32 has_too_small(const tile *t, u32 field) {
#if ONE_WINDOW
    return 0;
#elif defined(TYPE_F64)
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

/* A level below the first: *chain takes the bits of `rest` that it can, and `rest` becomes the
 * others. */
#define TAKE(chain, rest)                                                                          \
    moved = (chain) + (rest);                                                                      \
    (rest) -= moved - (chain);                                                                     \
    (chain) = moved

/* The units that a chain has gathered since it was sigma. */
#define UNITS_OF(chain, sigma) REAL_BITS(chain) - REAL_BITS(sigma)

/* Adds a tile's squares to their totals, and its elements to theirs unless `elements` is NULL, and returns 1; or
 * returns 0 and changes nothing where w does not fit the tile. */
PURE u32 extract_chains(const tile *t, window w, u64 *squares, u64 *elements, u32 deep) {
    const i32 middle = elements_exponent(w.exponent);
    const term sigma0 = REAL_FROM(w.sigma);
    const term sigma1 = REAL_FROM(sigma_bits(w.exponent - LEVELS_APART));
    const term sigma2 = REAL_FROM(sigma_bits(w.exponent - 2 * LEVELS_APART));
    const term sigma3 = REAL_FROM(sigma_bits(w.exponent - 3 * LEVELS_APART));
    const term sigma4 = REAL_FROM(sigma_bits(middle));
    const term sigma5 = REAL_FROM(sigma_bits(middle - LEVELS_APART));
    const u32 levels = SQUARE_LEVELS(deep);
    term a[CHAINS], b[CHAINS], c[CHAINS], d[CHAINS], e[CHAINS], f[CHAINS], moved;
    raw outside = 0, sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0, sum4 = 0, sum5 = 0;
    UNROLL
    for (u32 k = 0; k < CHAINS; k++) {
        a[k] = sigma0;
        b[k] = sigma1;
        c[k] = sigma2;
        d[k] = sigma3;
        e[k] = sigma4;
        f[k] = sigma5;
    }
    UNROLL
    for (u32 i = 0; i < TILE; i += CHAINS) {
        UNROLL
        for (u32 k = 0; k < CHAINS; k++) {
            const term x = widen(t->e[i + k]);
#if TWO_PARTS
            term first = x * x, rest = fused(x, x, -first);
            TAKE(a[k], first);
            if (levels > 3) {
                TAKE(b[k], first);
                c[k] += first;
            } else {
                b[k] += first;
            }
#else
            moved = SQUARE_PLUS(x, a[k]);
            term rest = SQUARE_PLUS(x, a[k] - moved);
            a[k] = moved;
#endif
            if (levels > 2) {
                TAKE(b[k], rest);
            } else {
                b[k] += rest;
            }
            if (levels > 3) {
                TAKE(c[k], rest);
                d[k] += rest;
            } else if (levels > 2) {
                c[k] += rest;
            }
            if (elements) {
                rest = x;
                TAKE(e[k], rest);
                if (ELEMENT_LEVELS > 1) f[k] += rest;
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
        sum5 += UNITS_OF(f[k], sigma5);
    }
    if (outside >> MANTISSA != 0 || has_too_small(t, least_field(w.exponent, deep))) return 0;
    add_units(squares, 0, (signed_raw)sum0);
    add_units(squares, 1, (signed_raw)sum1);
    if (levels > 2) add_units(squares, 2, (signed_raw)sum2);
    if (levels > 3) add_units(squares, 3, (signed_raw)sum3);
    if (elements) add_units(elements, 0, (signed_raw)sum4);
    if (elements && ELEMENT_LEVELS > 1) add_units(elements, 1, (signed_raw)sum5);
    return 1;
}

/* Returns whether extract_chains() can add a tile. */
PURE u32 fits_chains(const tile *t, window w, u32 deep) {
    raw outside = 0;
    UNROLL
    for (u32 k = 0; k < CHAINS; k++) {
        term a = REAL_FROM(w.sigma);
        UNROLL
        for (u32 i = k; i < TILE; i += CHAINS)
#if TWO_PARTS
            a += widen(t->e[i]) * widen(t->e[i]);
#else
            a = SQUARE_PLUS(widen(t->e[i]), a);
#endif
        outside |= REAL_BITS(a) ^ w.sigma;
    }
    return outside >> MANTISSA == 0 && !has_too_small(t, least_field(w.exponent, deep));
}

/* Returns the magnitude to choose a window for, if a chain has this sum. choose_window() gives one
 * with room for at least twice such a sum. The chain's sum bounds the window, not its largest
 * square: room for 16 of the largest would leave no bits for small elements. */
PURE raw wanted_for(term sum) {
    return magnitude_bits((term)0.25 * sum);
}

/* Returns the same for the tile's chain with the largest sum. Infinities and NaNs count as larger
 * than all numbers. */
PURE raw largest(const input *t) {
    raw most = 0;
    UNROLL
    for (u32 k = 0; k < CHAINS; k++) {
        term sum = 0;
        UNROLL
        for (u32 i = k; i < TILE; i += CHAINS)
            sum += (term)widen(t->x.e[i]) * (term)widen(t->x.e[i]);
        const raw m = wanted_for(sum);
        most = m > most ? m : most;
    }
    return most;
}

#if !defined(LIFT_MOMENTS)
PURE u32 extract(const input *t, window w, u64 *totals) {
    return extract_chains(&t->x, w, totals, 0, 1);
}
#endif

#endif
