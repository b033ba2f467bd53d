/*
 * window.h - a thread's part of an exact sum: error-free extraction in registers.
 *
 * The method is that of src/cpu/extract.h (Rump, Ogita, Oishi 2008). Choose E so that every
 * |x| <= 2^(E-1), and sigma = 1.5 * 2^E. Then t = x + sigma lies in [2^E, 2^(E+1)], where floats are
 * 2^(E-MANTISSA) apart: q = t - sigma is x rounded to a multiple of that, q and r = x - q are exact, and
 * |r| <= 2^(E-MANTISSA-1). The bits of t, read as an integer, are those of sigma plus q / 2^(E-MANTISSA):
 * so adding the bits of t adds q, exactly. r meets the next sigma, 2^MANTISSA smaller, and so on.
 *
 * Two checks a tile make it exact: no t had another exponent than sigma (no x was too large, infinite or
 * NaN), and after the last level nothing was left. A tile that fails has changed nothing. It gets another window, or
 * goes where any tile fits (adding.h).
 *
 * Where a term has two parts (lift.h), the second one begins at the window's second level: |x y - fl(x y)| <=
 * 2^-53 |fl(x y)| <= 2^(E-54), which the first level would round to 0, and which is less than the second one takes.
 *
 * Bounds. |q| / 2^(E-MANTISSA) <= 2^(MANTISSA-1), and a tile has at most 2^8 elements of at most two parts: its sums
 * stay below 2^30 in 32 bits (where terms have one part), 2^60 in 64. A thread is given fewer than 2^28 elements.
 * Totals of float terms are 64-bit integers below 2^50. Totals of double ones are kept as a low part, the tiles' low
 * 32 bits, below 2^60, and a high part in units of 2^32 of those, below 2^48. A block of 2^10 threads has no more
 * elements than that in all, and so the same bounds.
 *
 * f16 and bf16 are widened to f32, exactly. What f16 holds spans 40 bits and always fits a window of two
 * levels, and so do its squares, which are doubles, or floats in four levels, in chains (ONE_WINDOW).
 */
#ifndef TALLY_WINDOW_H
#define TALLY_WINDOW_H

#include "lift.h"

#include "halves.h"

enum {
    SEEN_MIXED = 1, /* a term that is not -0 */
    SEEN_LIMBS = 2  /* something has gone to the superaccumulator */
};

#if TERM_F64
typedef u64 raw; /* the bits of a term */
typedef i64 signed_raw;
#define MANTISSA     52
#define HIGHEST      1023         /* the largest exponent of a finite number */
#define TOTALS       (2 * LEVELS) /* a low and a high total for each level */
#define REAL_BITS(x) double_bits(x)
#define REAL_FROM(u) double_from(u)
#else
typedef u32 raw;
typedef i32 signed_raw;
#define MANTISSA     23
#define HIGHEST      127
#define TOTALS       LEVELS
#define REAL_BITS(x) float_bits(x)
#define REAL_FROM(u) float_from(u)
#endif

#if defined(TYPE_F16) && (!MULTIPLIES || CHAINED)
#define ONE_WINDOW 1
#else
#define ONE_WINDOW 0
#endif

/* Elements of a window are multiplied by a power of two: chains.h. */
#define SCALED (FLOAT_SQUARES && !ONE_WINDOW)

/* LEVELS_APART: the exponent of a level's sigma less that of the next level's. ONLY_EXPONENT: E of f16's only window,
 * which reaches from 2^-24 up to beyond 2^16; for squares chains.h derives it. */
#if FLOAT_SQUARES
#define CHAIN_BITS      (BLOCK == 1 ? 4 : ELEMENT_MANTISSA == 7 ? 3 : 2) /* log2 of a chain's terms */
#define CHAINS          (TILE >> CHAIN_BITS)
#define CHAIN_LENGTH    (1u << CHAIN_BITS)
#define LEVELS_APART    (MANTISSA - CHAIN_BITS - TWO_PARTS)
#define SCALED_EXPONENT (3 + CHAIN_BITS)
#define ONLY_EXPONENT   (33 + CHAIN_BITS)
#elif CHAINED
#define LEVELS_APART  (TWO_PARTS ? 49 : 47)
#define ONLY_EXPONENT 37
#define CHAINS        (BLOCK > 1 ? 2u : 16u) /* side by side */
#define CHAIN_LENGTH  (TILE / CHAINS)
#else
#define LEVELS_APART  MANTISSA
#define ONLY_EXPONENT (2 * MANTISSA - 24)
#endif

/* TOP_CHAINED is 1 where tiles of plain bf16 elements are first tried in chains of floats (extract_top()). */
#if defined(TYPE_BF16) && !MULTIPLIES && !defined(LIFT_MAGNITUDE) && BLOCK > 1
#define TOP_CHAINED 1
#define CHAIN_ROOM                                                                                 \
    3 /* log2 of a chain's terms; WINDOW_ROOM has one bit more, for elements larger than all seen */
#define WINDOW_ROOM (CHAIN_ROOM + 1)
#else
#define TOP_CHAINED 0
#define WINDOW_ROOM ROOM
#endif

#define REAL_SIGN  (((raw)1) << (8 * sizeof(raw) - 1))
#define FIELD_MAX  (2 * HIGHEST + 1)                /* of infinities and NaNs */
#define UNIT_LEAST (1 - HIGHEST - MANTISSA)         /* exponent of the smallest subnormal */
#define E_LEAST    (UNIT_LEAST + LEVELS * MANTISSA) /* E whose last level has that unit */

#define WORDS (TOTALS + 1) /* of a record: the totals, and the notes */
#define SEEN  TOTALS

typedef struct window {
    i32 exponent; /* E */
    raw sigma;    /* bits of the first level's sigma; where SCALED, for scaled squares */
} window;

/* Returns the bits of 1.5 * 2^exponent. */
PURE raw sigma_bits(i32 exponent) {
    return (raw)(exponent + HIGHEST) << MANTISSA | (raw)1 << (MANTISSA - 1);
}

/* Returns the window for numbers whose largest magnitude has these bits (SIZE_OF). exponent and sigma are 0
 * if there is none: the number is too large, infinite or NaN. */
PURE window choose_window(raw magnitude) {
    window w = {0, 0};
#if SCALED
    const i32 field = (i32)(magnitude >> MANTISSA), most = 2 * HIGHEST - 1;
    if (field == FIELD_MAX) return w;
    w.exponent = SCALED_EXPONENT + 2 * ((field < 1 ? 1 : field < most ? field : most) - HIGHEST);
    w.sigma = sigma_bits(SCALED_EXPONENT);
#else
    i32 exponent = (i32)(magnitude >> MANTISSA) - HIGHEST + 2; /* |x| < 2^(field - HIGHEST + 1) */
    if (exponent > HIGHEST) return w;
#if ONE_WINDOW
    w.exponent = ONLY_EXPONENT;
#else
    exponent = exponent + WINDOW_ROOM < HIGHEST ? exponent + WINDOW_ROOM : HIGHEST;
    w.exponent = exponent < E_LEAST ? E_LEAST : exponent;
#endif
    w.sigma = sigma_bits(w.exponent);
#endif
    return w;
}

/* Returns the exponent of a level's unit, which is also that of the k-th total's. */
PURE i32 level_exponent(i32 exponent, u32 level) {
    return exponent - MANTISSA - (i32)level * LEVELS_APART;
}
PURE i32 total_exponent(i32 exponent, u32 k) {
#if TERM_F64
    return level_exponent(exponent, k / 2) + (k % 2 ? 32 : 0);
#else
    return level_exponent(exponent, k);
#endif
}

/* One level: q is the part of rest that it takes, and is added to its sum. */
#define LEVEL(k)                                                                                   \
    moved = rest + sigma##k;                                                                       \
    q = moved - sigma##k;                                                                          \
    sum##k += REAL_BITS(moved)

/* The amount that the k-th level has taken of so many terms, in its units. */
#define UNITS(k, terms) ((signed_raw)(sum##k - (raw)(terms)*REAL_BITS(sigma##k)))

/* Adds `units` units to the k-th level's total. */
PURE void add_units(u64 *totals, u32 k, signed_raw units) {
#if TERM_F64
    totals[2 * k] += (u64)units & 0xffffffffu;
    totals[2 * k + 1] += (u64)(units >> 32);
#else
    totals[k] += (u64)(i64)units;
#endif
}

/* ALL_LEVELS extracts `rest` into the levels of a window. It leaves the last level's q in q, and the number that q
 * was taken from in `rest`. KEEP_LEVELS adds the levels' sums of n terms to the totals; levels below the first met
 * all PARTS of these terms. */
#define SIGMA(w, level) REAL_FROM((w).sigma - ((raw)((level)*MANTISSA) << MANTISSA))
#if LEVELS == 3
#define ALL_LEVELS                                                                                 \
    LEVEL(0);                                                                                      \
    rest -= q;                                                                                     \
    LEVEL(1);                                                                                      \
    rest -= q;                                                                                     \
    LEVEL(2)
#define DECLARE_LEVELS(w)                                                                          \
    const term sigma0 = REAL_FROM((w).sigma);                                                      \
    const term sigma1 = SIGMA(w, 1), sigma2 = SIGMA(w, 2);                                         \
    raw sum0 = 0, sum1 = 0, sum2 = 0
#define KEEP_LEVELS(totals, n)                                                                     \
    add_units(totals, 0, UNITS(0, n));                                                             \
    add_units(totals, 1, UNITS(1, (n)*PARTS));                                                     \
    add_units(totals, 2, UNITS(2, (n)*PARTS))
#elif LEVELS == 2
#define ALL_LEVELS                                                                                 \
    LEVEL(0);                                                                                      \
    rest -= q;                                                                                     \
    LEVEL(1)
#define DECLARE_LEVELS(w)                                                                          \
    const term sigma0 = REAL_FROM((w).sigma);                                                      \
    const term sigma1 = SIGMA(w, 1);                                                               \
    raw sum0 = 0, sum1 = 0
#define KEEP_LEVELS(totals, n)                                                                     \
    add_units(totals, 0, UNITS(0, n));                                                             \
    add_units(totals, 1, UNITS(1, (n)*PARTS))
#else
#define ALL_LEVELS LEVEL(0)
#define DECLARE_LEVELS(w)                                                                          \
    const term sigma0 = REAL_FROM((w).sigma);                                                      \
    raw sum0 = 0
#define KEEP_LEVELS(totals, n) add_units(totals, 0, UNITS(0, n))
#endif
#define PARTS (1 + TWO_PARTS) /* of a term */
#define TERMS (TILE * PARTS)

/* Takes term i of *t apart; notes in `outside` and `left` whether the window fits it. */
#if TWO_PARTS
#define EXTRACT_LOW(i, x)                                                                          \
    rest = LOW_PART(t, i, x);                                                                      \
    LEVEL(1);                                                                                      \
    rest -= q;                                                                                     \
    LEVEL(2);                                                                                      \
    left |= q != rest;                                                                             \
    left |= is_vague(x, FIRST(t, i), SECOND(t, i))
#else
#define EXTRACT_LOW(i, x)
#endif
#define EXTRACT(i)                                                                                 \
    do {                                                                                           \
        const term given = TERM(t, i);                                                             \
        term rest = given, moved, q;                                                               \
        ALL_LEVELS;                                                                                \
        outside |= REAL_BITS(given + sigma0) ^ w.sigma;                                            \
        left |= q != rest;                                                                         \
        EXTRACT_LOW(i, given);                                                                     \
    } while (0)

PURE raw magnitude_bits(term x) {
    return REAL_BITS(x) & ~REAL_SIGN;
}

#if CHAINED
#include "chains.h"
#else
/* Adds a tile to the totals and returns 1; or returns 0 and changes nothing where the window does not fit it. The
 * levels are written out, as some compilers do not unroll loops. */
PURE u32 extract(const input *t, window w, u64 *totals) {
    DECLARE_LEVELS(w);
    raw outside = 0;
    u32 left = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++)
        EXTRACT(i);
    if (outside >> MANTISSA != 0 || left) return 0;
    KEEP_LEVELS(totals, TILE);
    return 1;
}
#endif

/* HAS_TOP_LEVELS is 1 where a tile is first tried with something quicker that fits fewer tiles: two of three levels,
 * chains, or fewer chains. */
#if (SCALED && BLOCK > 1) ||                                                                       \
    (BLOCK > 1 && defined(TYPE_F32) && LEVELS == 3 && !defined(LIFT_MAGNITUDE)) || TOP_CHAINED
#define HAS_TOP_LEVELS 1
#else
#define HAS_TOP_LEVELS 0
#endif

#if HAS_TOP_LEVELS && SCALED
/* Does what extract() does, with all levels but the last one. */
PURE u32 extract_top(const input *t, window w, u64 *totals) {
    return extract_chains(&t->x, w, totals, 0, 0);
}
#elif HAS_TOP_LEVELS && TOP_CHAINED
/* Does what extract() does by chains, several side by side. A chain is a float that begins as sigma,
 * and to which term after term is added. It takes of each term what an extraction takes, and the rest goes
 * to a second chain. Nothing is checked on the way. Instead the elements are tested before, two at
 * a time: the result is 0 if one is too large or, if it is not 0, too small.
 * Bounds, for L = 2^CHAIN_ROOM terms a chain:
 * 1. With |x| < 2^(E - 1) / L the first chain stays between 2^E and 2^(E + 1). It leaves at most
 *    2^(E - MANTISSA - 1) of a term.
 * 2. L of these stay below half of the second chain's sigma, which is 2^(MANTISSA - CHAIN_ROOM)
 *    times smaller.
 * 3. The second chain loses nothing if the last bits of all elements, which have 8 bits, are worth
 *    at least its last bit, 2^(E - 2 MANTISSA + CHAIN_ROOM). */
#define TOP_CHAINS (TILE >> CHAIN_ROOM)
PURE u32 extract_top(const input *t, window w, u64 *totals) {
    const u32 second = w.sigma - ((u32)(MANTISSA - CHAIN_ROOM) << MANTISSA);
    const i32 field = w.exponent + HIGHEST, last = field - 2 * MANTISSA + CHAIN_ROOM + 7;
    /* The tile fits if all magnitudes, as 16 bits, are below `end`, and each is 0 or at least `least`. */
    const u32 end = (u32)(field - 1 - CHAIN_ROOM) << 7, least = last > 1 ? (u32)last << 7 : 1;
    u32 most = NO_HALVES, smallest = NO_HALVES, sum0 = 0, sum1 = 0;
    float a[TOP_CHAINS], b[TOP_CHAINS];
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++)
        note_halves(t->x.word[i], &most, &smallest);
    most = UPPER_HALF(greatest_unsigned, most);
    smallest = UPPER_HALF(least_signed, smallest);
    if (most - 0x7fff >= end || (smallest != 0x7fff && smallest - 0x7fff < least)) return 0;
    UNROLL
    for (u32 k = 0; k < TOP_CHAINS; k++) {
        a[k] = float_from(w.sigma);
        b[k] = float_from(second);
    }
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const float x = TERM(t, i), moved = a[i % TOP_CHAINS] + x;
        b[i % TOP_CHAINS] += x - (moved - a[i % TOP_CHAINS]);
        a[i % TOP_CHAINS] = moved;
    }
    UNROLL
    for (u32 k = 0; k < TOP_CHAINS; k++) {
        sum0 += float_bits(a[k]) - w.sigma;
        sum1 += float_bits(b[k]) - second;
    }
    add_units(totals, 0, (i32)sum0);
    add_units(totals, 1, (i32)(sum1 << CHAIN_ROOM));
    return 1;
}
#elif HAS_TOP_LEVELS
/* Does what extract() does, with the first two of three levels only: returns 0 if these leave a part
 * of a term. */
PURE u32 extract_top(const input *t, window w, u64 *totals) {
    const term sigma0 = REAL_FROM(w.sigma);
    const term sigma1 = SIGMA(w, 1);
    raw sum0 = 0, sum1 = 0, outside = 0;
    u32 left = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const term given = TERM(t, i);
        term rest = given, moved, q;
        LEVEL(0);
        outside |= REAL_BITS(moved) ^ w.sigma;
        rest -= q;
        LEVEL(1);
        left |= q != rest;
    }
    if (outside >> MANTISSA != 0 || left) return 0;
    add_units(totals, 0, UNITS(0, TILE));
    add_units(totals, 1, UNITS(1, TILE));
    return 1;
}
#endif

#if BLOCK > 1 && !CHAINED
/* Does the same as extract() with the tile's first `packs` packs only. All threads of a block have
 * the same number. */
INLINED u32 extract_packs(const input *t, u32 packs, window w, u64 *totals) {
    DECLARE_LEVELS(w);
    raw outside = 0;
    u32 left = 0;
    UNROLL
    for (u32 k = 0; k < IN_FLIGHT; k++)
        if (k < packs) {
            UNROLL
            for (u32 j = 0; j < PACK; j++)
                EXTRACT(k * PACK + j);
        }
    if (outside >> MANTISSA != 0 || left) return 0;
    KEEP_LEVELS(totals, packs * PACK);
    return 1;
}
#endif

#if !CHAINED || FLOAT_SQUARES
/* Returns the bits of the largest magnitude that a window for a tile is chosen by. Bits of magnitudes sort as the
 * magnitudes do, infinities and NaNs on top. */
PURE raw largest(const input *t) {
    raw most = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const raw m = magnitude_bits(SIZE_OF(t, i));
        most = m > most ? m : most;
    }
    return most;
}
#endif

/* Returns whether some term is not -0. Squares and magnitudes never are -0, so they need no test.
 * The test of plain elements goes word by word, whatever their size. */
PURE u32 any_not_minus_zero(const input *t) {
    u32 other = 0;
#if defined(LIFT_PRODUCT)
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const term x = TERM(t, i);
        other |= REAL_BITS(x) != REAL_SIGN;
#if TWO_PARTS
        other |= is_vague(x, FIRST(t, i), SECOND(t, i)); /* which may have become -0 */
#endif
    }
#else
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++)
#if defined(TYPE_F64)
        other |= t->x.word[i] ^ (i % 2 ? 0x80000000u : 0);
#elif defined(TYPE_F32)
        other |= t->x.word[i] ^ 0x80000000u;
#else
        other |= t->x.word[i] ^ 0x80008000u;
#endif
#endif
    return other != 0;
}

#endif
