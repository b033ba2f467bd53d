/*
 * chains.h - sums of squares, and with LIFT_MOMENTS of the elements beside them, in chains of doubles, or squares in chains
 * of floats (FLOAT_SQUARES).
 *
 * Extraction (window.h) takes every term apart by itself. Here a level is a chain: a double that begins as
 * sigma = 1.5 * 2^E and to which term after term is added. While it stays below 2^(E+1) its last bit is worth 2^(E-52),
 * so that what an addition t = a + p has taken of p is q = t - a, and what it has left is r = p - q, both exact. The r
 * go to the next level's chain. What chains have in the end is read from their bits, once for a tile.
 *
 * First level. A square is one double, or for f64 two (lift.h), the first of which goes here. Squares are not negative,
 * so this chain only grows: if it is below 2^(E+1) at the end, it has been all along, and no element was too large,
 * infinite or NaN. The squares of a chain, L of them, then add up to no more than 2^(E-1), and its elements, by
 * Cauchy's inequality, to no more than sqrt(L) 2^((E-1)/2), at most 2^(F-1) for L <= 16, where their chain has
 * F = floor(E/2) + 3 for E.
 *
 * Further levels. |r| <= 2^(E-53), and a square's second part is at most half of that. A level is handed what the one
 * before has left of each part of L squares: at most 2^(E - LEVELS_APART - 1) in all. So its sigma is 2^LEVELS_APART
 * smaller: LEVELS_APART is 47 for L = 16 and one part, 49 for L = 4 and two. The last level loses nothing if all
 * squares are multiples of its last bit, and likewise all elements in their own chain. They are if no element but 0
 * has an exponent field below least_field(), which has_too_small() tests. With two parts the level before the last
 * one takes all that is left of first parts: a square other than 0 is at least 2^(E + 52 - D), where
 * D = (levels - 1) LEVELS_APART. So its first part, and r, are multiples of 2^(E - D), 8 times that level's last bit.
 *
 * A tile that fails either check has changed nothing.
 *
 * Chains of floats. All the above holds with 23 for 52 bits of mantissa. Bounds, for L = 2^CHAIN_BITS squares a chain and
 * P = 1 + TWO_PARTS parts of a square:
 * 1. Scale. A window with the exponent SCALED_EXPONENT + 2 s multiplies elements by 2^-s, and its first chain has E =
 *    SCALED_EXPONENT = 3 + CHAIN_BITS. s is the exponent of the largest element seen, within [-126, 126], so that 2^-s is a
 *    normal float. An element that is not larger has |x 2^-s| < 2 (4 if it is above 2^127), and L squares of those below 2
 *    stay below 2^(E - 1). No square overflows where the first chain's check holds. Below, x is scaled.
 * 2. Let 2^u be the worth of the last bit of the scaled element x. If x is not too small, 2^(2 u) is worth the last level's
 *    last bit or more, so that x is a multiple of 2^-62 (scaled_levels_are_normal), and scaling has lost nothing. x^2 is a
 *    multiple of 2^(2 u), and so are its parts.
 * 3. One part: x^2 < 2^(2 u + 22). It leaves r = x^2 - q, a multiple of 2^(2 u). Where q is 0, r = x^2; else |r| <= 2^(E -
 *    24) <= x^2. So r has 22 bits at most and is a float.
 * 4. A level is handed at most L P 2^(E - 24) <= 2^(E - LEVELS_APART - 1), with LEVELS_APART = 23 - CHAIN_BITS - TWO_PARTS.
 * 5. Two parts, and a normal element: x^2 >= 2^(2 u + 46), and the last bit of its first part is worth 2^(2 u + 23) or
 *    more. The level before the last one has a last bit worth 2^LEVELS_APART of the last one's, and takes what is left of
 *    that part without a rest. A subnormal element has fewer bits. It is too small unless 2^(2 u) is worth the last bit
 *    of the level before the last one (least_field).
 *
 * f16 has but one window, with E = 37: 16 of its squares stay below 2^36, and their last bits are worth 2^-48 or more,
 * where the second level's is worth 2^-62; its elements' chain has F = 21, and a last bit worth 2^-31. In floats it has E =
 * 33 + CHAIN_BITS, and is not scaled.
 *
 * Before including this header, define LIFT_SQUARE or LIFT_MOMENTS, and include operators.h and window.h, which
 * includes it and says how many chains of which length a thread has.
 */
#ifndef TALLY_CHAINS_H
#define TALLY_CHAINS_H

/* Fail to compile unless these are within the bounds above. */
#if !FLOAT_SQUARES
typedef char chains_are_short_enough[CHAIN_LENGTH <= (TWO_PARTS ? 4 : 16) ? 1 : -1];
#elif SCALED
typedef char
    scaled_levels_are_normal[SCALED_EXPONENT - MANTISSA - (LEVELS - 1) * LEVELS_APART >= -124 ? 1
                                                                                              : -1];
#elif ONE_WINDOW
typedef char
    levels_are_enough[ONLY_EXPONENT - MANTISSA - (LEVELS - 1) * LEVELS_APART <= 2 * -24 ? 1 : -1];
#endif

/* The number of levels that squares go to: LEVELS if `deep`; else one less, if squares have two parts or are scaled.
 * Elements go to ELEMENT_LEVELS. */
#define SQUARE_LEVELS(deep) (LEVELS - ((TWO_PARTS || SCALED) && !(deep)))
#define ELEMENT_LEVELS      (LEVELS >= 3 ? 2u : 1u)

#define ELEMENT_BIAS ((1 << (ELEMENT_WIDTH - 2 - ELEMENT_MANTISSA)) - 1)

/* x * x + c, where x * x is exact. */
#if HAS_FUSED_UNIT
#define SQUARE_PLUS(x, c) FUSED(x, x, c)
#else
#define SQUARE_PLUS(x, c) ((x) * (x) + (c))
#endif

/* Returns the exponent F of the elements' first chain, for the exponent E of the squares'. */
PURE i32 elements_exponent(i32 exponent) {
    return (exponent >> 1) + 3;
}

/* Returns the least exponent field of elements whose last bit is worth 2^exponent or more; 0 if all elements have
 * such a last bit. */
PURE u32 field_of_last_bit(i32 exponent) {
    const i32 field = exponent + ELEMENT_BIAS + ELEMENT_MANTISSA, most = 2 * ELEMENT_BIAS + 1;
    return field <= 1 ? 0 : (u32)(field < most ? field : most);
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
    const u32 field = field_of_last_bit(last);
#if TWO_PARTS && SCALED
    const i32 before = (level_exponent(exponent, SQUARE_LEVELS(deep) - 2) + 1) >> 1;
    if (field == 0 && field_of_last_bit(before) != 0) return 1; /* subnormal ones are too small */
#endif
    return field;
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

/* Moves the bits of `rest` that the chain can take to the chain; the others stay in `rest`. */
#define TAKE(chain, rest)                                                                          \
    moved = (chain) + (rest);                                                                      \
    (rest) -= moved - (chain);                                                                     \
    (chain) = moved

/* Gives `rest` to level k, below the first. Level `last` takes all of it, and levels behind it nothing. */
#define TAKE_LOWER(k, last, chain, rest)                                                           \
    if ((k) < (last)) {                                                                            \
        TAKE(chain, rest);                                                                         \
    } else if ((k) == (last)) {                                                                    \
        (chain) += (rest);                                                                         \
    }

/* SCALE() multiplies x by 2^-s, where w.exponent = SCALED_EXPONENT + 2 s. FIRST_EXPONENT() is E of the first chain of
 * such squares. */
#if SCALED
#define FIRST_EXPONENT(w) SCALED_EXPONENT
#define SCALE(w, x)                                                                                \
    ((x)*float_from((u32)(HIGHEST - ((w).exponent - SCALED_EXPONENT) / 2) << MANTISSA))
#else
#define SCALE(w, x)       (x)
#define FIRST_EXPONENT(w) ((w).exponent)
#endif

/* The units that a chain has gathered since it was sigma. */
#define UNITS_OF(chain, sigma) REAL_BITS(chain) - REAL_BITS(sigma)

/* Adds a tile's squares to their totals, and its elements to theirs unless `elements` is NULL, and returns 1; or
 * returns 0 and changes nothing where w does not fit the tile. */
PURE u32 extract_chains(const tile *t, window w, u64 *squares, u64 *elements, u32 deep) {
    const i32 first = FIRST_EXPONENT(w), middle = elements_exponent(first);
    const term sigma0 = REAL_FROM(w.sigma);
    const term sigma1 = REAL_FROM(sigma_bits(first - LEVELS_APART));
    const term sigma2 = REAL_FROM(sigma_bits(first - 2 * LEVELS_APART));
    const term sigma3 = REAL_FROM(sigma_bits(first - 3 * LEVELS_APART));
    const term sigma4 = REAL_FROM(sigma_bits(first - 4 * LEVELS_APART));
    const term sigma5 = REAL_FROM(sigma_bits(middle));
    const term sigma6 = REAL_FROM(sigma_bits(middle - LEVELS_APART));
    const u32 levels = SQUARE_LEVELS(deep);
    term a[CHAINS], b[CHAINS], c[CHAINS], d[CHAINS], e[CHAINS], f[CHAINS], g[CHAINS], moved;
    raw outside = 0, sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0, sum4 = 0, sum5 = 0, sum6 = 0;
    UNROLL
    for (u32 k = 0; k < CHAINS; k++) {
        a[k] = sigma0;
        b[k] = sigma1;
        c[k] = sigma2;
        d[k] = sigma3;
        e[k] = sigma4;
        f[k] = sigma5;
        g[k] = sigma6;
    }
    UNROLL
    for (u32 i = 0; i < TILE; i += CHAINS) {
        UNROLL
        for (u32 k = 0; k < CHAINS; k++) {
            const term x = SCALE(w, widen(t->e[i + k]));
#if TWO_PARTS
            term first_part = x * x, rest = FUSED(x, x, -first_part);
            TAKE(a[k], first_part);
            TAKE_LOWER(1, levels - 2, b[k], first_part);
            TAKE_LOWER(2, levels - 2, c[k], first_part);
            TAKE_LOWER(3, levels - 2, d[k], first_part);
#else
            moved = SQUARE_PLUS(x, a[k]);
            term rest = SQUARE_PLUS(x, a[k] - moved);
            a[k] = moved;
#endif
            TAKE_LOWER(1, levels - 1, b[k], rest);
            TAKE_LOWER(2, levels - 1, c[k], rest);
            TAKE_LOWER(3, levels - 1, d[k], rest);
            TAKE_LOWER(4, levels - 1, e[k], rest);
            if (elements) {
                rest = x;
                TAKE(f[k], rest);
                if (ELEMENT_LEVELS > 1) g[k] += rest;
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
        sum6 += UNITS_OF(g[k], sigma6);
    }
    if (outside >> MANTISSA != 0 || has_too_small(t, least_field(w.exponent, deep))) return 0;
    add_units(squares, 0, (signed_raw)sum0);
    add_units(squares, 1, (signed_raw)sum1);
    if (levels > 2) add_units(squares, 2, (signed_raw)sum2);
    if (levels > 3) add_units(squares, 3, (signed_raw)sum3);
    if (levels > 4) add_units(squares, 4, (signed_raw)sum4);
    if (elements) add_units(elements, 0, (signed_raw)sum5);
    if (elements && ELEMENT_LEVELS > 1) add_units(elements, 1, (signed_raw)sum6);
    return 1;
}

#if !FLOAT_SQUARES
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

/* Returns wanted_for() of the tile's chain with the largest sum. Infinities and NaNs count as larger
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
#endif

#if !defined(LIFT_MOMENTS)
PURE u32 extract(const input *t, window w, u64 *totals) {
    return extract_chains(&t->x, w, totals, 0, 1);
}
#endif

#endif
