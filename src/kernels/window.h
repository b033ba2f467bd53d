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
 * NaN), and after the last level nothing was left. A tile that fails has changed nothing. What is left of
 * it may fit the window right below, with totals of its own; or the tile gets another window, or goes
 * element by element to the superaccumulator (sum.cu).
 *
 * Bounds. |q| / 2^(E-MANTISSA) <= 2^(MANTISSA-1), and a tile has at most 2^8 elements: its sums stay
 * below 2^30 in 32 bits, 2^59 in 64. A thread is given fewer than 2^28 elements. Totals of f32 are
 * 64-bit integers below 2^50. Totals of f64 are kept as a low part, the tiles' low 32 bits, below
 * 2^60, and a high part in units of 2^32 of those, below 2^47. A block of 2^10 threads has no more
 * elements than that in all, and so the same bounds.
 *
 * f16 and bf16 are widened to f32, exactly. What f16 holds spans 40 bits and always fits a window of two
 * levels; bf16 has so few bits that two are enough, too.
 */
#ifndef TALLY_WINDOW_H
#define TALLY_WINDOW_H

#include "widen.h"

#include "grid.h"

enum {
    SEEN_NAN = 1,
    SEEN_PLUS_INF = 2,
    SEEN_MINUS_INF = 4,
    SEEN_MIXED = 8, /* something that is not -0 */
    SEEN_LIMBS = 16 /* something has gone to the superaccumulator */
};

#if defined(TYPE_F64)
typedef u64 raw; /* the bits of a real */
typedef i64 signed_raw;
#define MANTISSA     52
#define HIGHEST      1023 /* the largest exponent of a finite number */
#define LEVELS       2
#define TOTALS       (2 * LEVELS) /* low and high parts in turn */
#define REAL_BITS(x) double_bits(x)
#define REAL_FROM(u) double_from(u)
#else
typedef u32 raw;
typedef i32 signed_raw;
#define MANTISSA 23
#define HIGHEST  127
#if defined(TYPE_F32)
#define LEVELS 3
#else
#define LEVELS 2
#endif
#define TOTALS       LEVELS
#define REAL_BITS(x) float_bits(x)
#define REAL_FROM(u) float_from(u)
#endif

#define REAL_SIGN  (((raw)1) << (8 * sizeof(raw) - 1))
#define FIELD_MAX  (2 * HIGHEST + 1)                /* of infinities and NaNs */
#define UNIT_LEAST (1 - HIGHEST - MANTISSA)         /* exponent of the smallest subnormal */
#define E_LEAST    (UNIT_LEAST + LEVELS * MANTISSA) /* the last level's unit is that */

#define WORDS (TOTALS + 1) /* of a record: the totals, and what was seen */
#define SEEN  TOTALS

typedef struct window {
    i32 exponent; /* E */
    raw sigma;    /* of the first level, its bits */
} window;

/* The bits of 1.5 * 2^exponent. */
PURE raw sigma_bits(i32 exponent) {
    return (raw)(exponent + HIGHEST) << MANTISSA | (raw)1 << (MANTISSA - 1);
}

/* The window for numbers of which the largest has a magnitude of these bits; exponent 0 and sigma 0 where
 * there is none: that number is too large, infinite or NaN. */
PURE window choose_window(raw magnitude) {
    window w = {0, 0};
    i32 exponent = (i32)(magnitude >> MANTISSA) - HIGHEST + 2; /* |x| < 2^(field - HIGHEST + 1) */
    if (exponent > HIGHEST) return w;
#if defined(TYPE_F16)
    w.exponent = 2 * MANTISSA - 24; /* from 2^-24 up to beyond 2^16: all there is */
#else
    exponent = exponent + ROOM < HIGHEST ? exponent + ROOM : HIGHEST;
    w.exponent = exponent < E_LEAST ? E_LEAST : exponent;
#endif
    w.sigma = sigma_bits(w.exponent);
    return w;
}

/* What the k-th total counts: multiples of 2 to this. */
PURE i32 total_exponent(i32 exponent, u32 k) {
#if defined(TYPE_F64)
    return exponent - (i32)(k / 2 + 1) * MANTISSA + (k % 2 ? 32 : 0);
#else
    return exponent - (i32)(k + 1) * MANTISSA;
#endif
}

/* One level: q is the part of rest that it takes, and is added to its sum. */
#define LEVEL(k)                                                                                   \
    moved = rest + sigma##k;                                                                       \
    q = moved - sigma##k;                                                                          \
    sum##k += REAL_BITS(moved)

/* A level's sum over a tile, as a multiple of its unit. */
#define UNITS(k) ((signed_raw)(sum##k - TILE * REAL_BITS(sigma##k)))

/* Adds so many units to the k-th level's total. */
PURE void add_units(u64 *totals, u32 k, signed_raw units) {
#if defined(TYPE_F64)
    totals[2 * k] += (u64)units & 0xffffffffu;
    totals[2 * k + 1] += (u64)(units >> 32);
#else
    totals[k] += (u64)(i64)units;
#endif
}

/* The window for what a window leaves. */
PURE window window_below(window w) {
    window below;
    below.exponent = w.exponent - LEVELS * MANTISSA;
    below.exponent = below.exponent < E_LEAST ? E_LEAST : below.exponent;
    below.sigma = sigma_bits(below.exponent);
    return below;
}

/* The levels of a window, for x; leaves the last level's q in q, and what that was taken from in rest. */
#if LEVELS == 3
#define ALL_LEVELS(a, b, c)                                                                        \
    LEVEL(a);                                                                                      \
    rest -= q;                                                                                     \
    LEVEL(b);                                                                                      \
    rest -= q;                                                                                     \
    LEVEL(c)
#define DECLARE_LEVELS(a, b, c, w)                                                                 \
    const real sigma##a = REAL_FROM((w).sigma);                                                    \
    const real sigma##b = REAL_FROM((w).sigma - ((raw)MANTISSA << MANTISSA));                      \
    const real sigma##c = REAL_FROM((w).sigma - ((raw)(2 * MANTISSA) << MANTISSA));                \
    raw sum##a = 0, sum##b = 0, sum##c = 0
#define KEEP_LEVELS(a, b, c, totals)                                                               \
    add_units(totals, 0, UNITS(a));                                                                \
    add_units(totals, 1, UNITS(b));                                                                \
    add_units(totals, 2, UNITS(c))
#else
#define ALL_LEVELS(a, b, c)                                                                        \
    LEVEL(a);                                                                                      \
    rest -= q;                                                                                     \
    LEVEL(b)
#define DECLARE_LEVELS(a, b, c, w)                                                                 \
    const real sigma##a = REAL_FROM((w).sigma);                                                    \
    const real sigma##b = REAL_FROM((w).sigma - ((raw)MANTISSA << MANTISSA));                      \
    raw sum##a = 0, sum##b = 0
#define KEEP_LEVELS(a, b, c, totals)                                                               \
    add_units(totals, 0, UNITS(a));                                                                \
    add_units(totals, 1, UNITS(b))
#endif

/* Adds a tile to the totals, and says so; or changes nothing where the window does not fit it. The
 * levels are written out, as some compilers do not unroll loops. */
PURE u32 extract(const tile *t, window w, u64 *totals) {
    DECLARE_LEVELS(0, 1, 2, w);
    raw outside = 0;
    u32 left = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const real x = widen(t->e[i]);
        real rest = x, moved, q;
        ALL_LEVELS(0, 1, 2);
        outside |= REAL_BITS(x + sigma0) ^ w.sigma;
        left |= q != rest;
    }
    if (outside >> MANTISSA != 0 || left) return 0;
    KEEP_LEVELS(0, 1, 2, totals);
    return 1;
}

/* The same with what the window leaves going to the one below, whose totals are `low`. */
PURE u32 extract_twice(const tile *t, window w, u64 *totals, u64 *low) {
    DECLARE_LEVELS(0, 1, 2, w);
    DECLARE_LEVELS(3, 4, 5, window_below(w));
    raw outside = 0;
    u32 left = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const real x = widen(t->e[i]);
        real rest = x, moved, q;
        ALL_LEVELS(0, 1, 2);
        outside |= REAL_BITS(x + sigma0) ^ w.sigma;
        rest -= q;
        ALL_LEVELS(3, 4, 5);
        left |= q != rest;
    }
    if (outside >> MANTISSA != 0 || left) return 0;
    KEEP_LEVELS(0, 1, 2, totals);
    KEEP_LEVELS(3, 4, 5, low);
    return 1;
}

PURE raw magnitude_bits(real x) {
    return REAL_BITS(x) & ~REAL_SIGN;
}

/* The bits of a tile's largest magnitude: they sort like it, infinities and NaNs on top. */
PURE raw largest(const tile *t) {
    raw most = 0;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const raw m = magnitude_bits(widen(t->e[i]));
        most = m > most ? m : most;
    }
    return most;
}

/* Whether some element is anything but -0: word by word, whatever the element's size. */
PURE u32 any_not_minus_zero(const tile *t) {
    u32 other = 0;
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++)
#if defined(TYPE_F64)
        other |= t->word[i] ^ (i % 2 ? 0x80000000u : 0);
#elif defined(TYPE_F32)
        other |= t->word[i] ^ 0x80000000u;
#else
        other |= t->word[i] ^ 0x80008000u;
#endif
    return other != 0;
}

#endif
