/*
 * adding.h - how the threads of a block add tiles of terms (lift.h) to an exact sum of floats.
 *
 * Each thread extracts its tiles into integer totals (window.h). All threads of a block begin with one window, which
 * the kernel file chooses from a sample of the array or from some of the block's tiles, so that at the end their totals
 * are simply added up. Larger numbers give their thread a larger window. A tile whose exponents span too much for a
 * window goes to the sum of the thread's lane (lane_sums.h), or, where there is none, to the block's superaccumulator
 * (limbs.h), element by element. After UNFIT_TILES tiles in a row that fit no window, a thread tries one only for every
 * UNFIT_TRIES-th tile.
 */
#ifndef TALLY_ADDING_H
#define TALLY_ADDING_H

#include "window.h"

#include "limbs.h"

#include "lane_sums.h"

#define MERGES_AT_ONCE WARP_AT_ONCE
#include "records.h"

#if defined(TYPE_F64) || defined(TYPE_F32)
#define MINUS_ZERO (-(real)0)
#else
#define MINUS_ZERO ((element)SIGN)
#endif

PURE void merge(u64 *a, const u64 *b) {
    UNROLL
    for (u32 k = 0; k < TOTALS; k++)
        a[k] += b[k];
    a[SEEN] |= b[SEEN];
}

#if MERGES_AT_ONCE
PURE void merge_at_once(u64 *record) {
    UNROLL
    for (u32 k = 0; k < TOTALS; k++)
        record[k] = warp_sum(record[k]);
    record[SEEN] = warp_or((u32)record[SEEN]);
}
#endif

/* Adds a thread's totals, of a window with this exponent, to the superaccumulator and clears them. */
INLINED void flush(u64 *record, i32 exponent, SHARED u64 *limbs) {
    for (u32 k = 0; k < TOTALS; k++) {
        add_limbs(limbs, (i64)record[k], total_exponent(exponent, k));
        record[k] = 0;
    }
    record[SEEN] |= SEEN_LIMBS;
}

/* Counts a term that is an infinity or a NaN. A block has fewer than 2^28 elements, so the count
 * fits the low 32 bits of its word. */
INLINED void add_special(u32 nan, u32 negative, SHARED u64 *limbs) {
    SHARED u64 *count = &limbs[nan ? COUNT_NANS : negative ? COUNT_MINUS : COUNT_PLUS];
#if BLOCK == 1
    *count += 1;
#else
    atomicAdd((SHARED u32 *)count, 1u); /* the low half */
#endif
}

#if FLOAT_SQUARES

/* Adds an element's square to the superaccumulator, as an integer; that of an infinity or a NaN is counted. */
INLINED void add_element(real x, real y, u64 *record, SHARED u64 *limbs) {
    u32 position;
    const u64 square = square_of(x, &position);
    record[SEEN] |= SEEN_LIMBS;
    if (magnitude_bits(x) >> MANTISSA == FIELD_MAX)
        add_special(x != x, 0, limbs);
    else
        add_limbs(limbs, (i64)square, (i32)position + SQUARE_LEAST);
}

#elif TWO_PARTS

/* Splits a finite x: returns an integer m, |m| < 2^53, with x = m 2^*exponent. */
PURE i64 split(double x, i32 *exponent) {
    const u64 bits = double_bits(x);
    const i32 field = (i32)(bits >> 52 & 2047);
    const i64 mantissa = (i64)((bits & (((u64)1 << 52) - 1)) | (u64)(field != 0) << 52);
    *exponent = (field > 0 ? field : 1) - 1075;
    return bits >> 63 ? -mantissa : mantissa;
}

PURE u32 is_finite(double x) {
    return (double_bits(x) >> 52 & 2047) != 2047;
}

/* Adds the product of two elements to the superaccumulator: its 106 bits in halves of 53; an infinite or NaN product is
 * counted. */
INLINED void add_element(double x, double y, u64 *record, SHARED u64 *limbs) {
    record[SEEN] |= SEEN_LIMBS;
    if (!is_finite(x) || !is_finite(y)) {
        const double product = x * y; /* infinite or NaN */
        add_special(product != product, product < 0, limbs);
        return;
    }
    i32 ex, ey;
    const i64 mx = split(x, &ex), my = split(y, &ey);
    const u64 ux = mx < 0 ? 0 - (u64)mx : (u64)mx, uy = my < 0 ? 0 - (u64)my : (u64)my;
    const u64 low = ux * uy, high = high_product(ux, uy);
    const i64 sign = (mx < 0) != (my < 0) ? -1 : 1;
    add_limbs(limbs, sign * (i64)(low & (((u64)1 << 53) - 1)), ex + ey);
    add_limbs(limbs, sign * (i64)(high << 11 | low >> 53), ex + ey + 53);
}

#else

/* Adds one term to the superaccumulator, as mantissa and exponent; an infinity or NaN is counted. */
INLINED void add_element(real first, real second, u64 *record, SHARED u64 *limbs) {
    const term x = lift(first, second);
    const raw bits = REAL_BITS(x);
    const i32 field = (i32)(bits >> MANTISSA) & FIELD_MAX;
    const raw fraction = bits & (((raw)1 << MANTISSA) - 1);
    const i64 mantissa = (i64)(fraction | (raw)(field != 0) << MANTISSA);
    record[SEEN] |= SEEN_LIMBS;
    if (field == FIELD_MAX)
        add_special(fraction != 0, (bits & REAL_SIGN) != 0, limbs);
    else
        add_limbs(limbs, bits & REAL_SIGN ? -mantissa : mantissa,
                  UNIT_LEAST + (field > 0 ? field - 1 : 0));
}

#endif

/* The tiles of a thread that may need all levels of a window before it stops trying fewer levels
 * first. It also stops if its first tile needs all of them (sum.cu). The limit is more than 1,
 * since a lane that uses all levels holds up its warp, and one rare element should not cause that. */
#define DEEP_TILES 4u

/* A thread's window and totals. Tiles that fit the window change nothing but the totals. */
typedef struct adder {
    window
        window; /* sigma is 0 while no window is worth trying; `exponent` is still that of the totals */
    u32 unfit; /* consecutive tiles that did not fit a window */
    u32 next;  /* the number of the tile after the last unfit one */
    u32 deep;  /* how many tiles have needed all of a window's levels; at most DEEP_TILES */
#if HAS_LANE_SUMS
    u32 tiles; /* tiles that the thread has added to its lane's sum since it last emptied the sum */
#endif
#if defined(LIFT_MOMENTS)
    u32 squares; /* not 0: the terms are squares, not elements (lift.h) */
#endif
} adder;

PURE adder adder_with(window w) {
    adder a;
    a.window = w;
    a.unfit = 0;
    a.next = 0;
    a.deep = 0;
#if HAS_LANE_SUMS
    a.tiles = 0;
#endif
    return a;
}

#if !defined(LIFT_MOMENTS)
/* Opens the window that the tile *t needs, if it is larger than the thread's window or the thread
 * has given its window up (sigma is 0). Moves the totals so far to the superaccumulator. Returns 1
 * if it opened a window; 0 otherwise, as where no window fits. */
INLINED u32 change_window(const input *t, adder *a, u64 *record, SHARED u64 *limbs) {
    const window own = choose_window(largest(t));
    if (own.sigma == 0 || (a->window.sigma != 0 && own.exponent <= a->window.exponent)) return 0;
    flush(record, a->window.exponent, limbs);
    a->window = own;
    return 1;
}
#endif

/* A tile of 16-bit elements has too many elements for the registers of a fully unrolled loop. So the
 * loop is unrolled by 4 only, and the tile lies in local memory, where an index picks elements. */
#if HAS_UNROLL_COUNTS && CHAINED && !defined(TYPE_F32) && !defined(TYPE_F64)
#define UNROLL_UNFITTING _Pragma("unroll 4")
#else
#define UNROLL_UNFITTING UNROLL
#endif

#if HAS_LANE_SUMS

#if TWO_PARTS && !FLOAT_SQUARES
/* Returns whether the product of x and y is a sum of two finite parts (lift.h). */
PURE u32 has_parts(real x, real y) {
    return is_finite(x * y) && !is_vague(x * y, x, y);
}
#else
/* Returns whether a tile has infinities or NaNs. They have the largest exponent field, so an
 * addition of 1 to that field carries into the sign bit. */
PURE u32 has_specials(const tile *t) {
    u32 over = 0;
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++)
#if defined(TYPE_F64)
        over |= i % 2 ? (t->word[i] & 0x7fffffffu) + 0x00100000u : 0;
#elif defined(TYPE_F32)
        over |= (t->word[i] & 0x7fffffffu) + 0x00800000u;
#elif defined(TYPE_F16) /* squares and products */
        over |= (t->word[i] & 0x7fff7fffu) + 0x04000400u;
#else
        over |= (t->word[i] & 0x7fff7fffu) + 0x00800080u;
#endif
    return (over & (sizeof(element) == 2 ? 0x80008000u : 0x80000000u)) != 0;
}
#endif

/* Adds a tile that fits no window to the sum of the thread's lane, term by term. Vague products
 * (lift.h), infinities and NaNs go to the superaccumulator. So does the whole tile if terms have
 * one part, or are squares as integers, and some are not finite. */
INLINED void add_unfitting(const input *t, adder *a, u64 *record, SHARED u64 *limbs,
                           SHARED u32 *lane_sums) {
    SHARED u32 *own = lane_sums + threadIdx.x % WARP;
    if (a->tiles == 0) atomicAdd(&lane_sums[USED], 1u);
    record[SEEN] |= SEEN_LIMBS;
#if TWO_PARTS && !FLOAT_SQUARES
    UNROLL_UNFITTING /* registers have no index */
        for (u32 i = 0; i < TILE; i++) {
        const term x = TERM(t, i);
        if (has_parts(FIRST(t, i), SECOND(t, i))) {
            add_to_lane(x, 53, own);
            add_to_lane(LOW_PART(t, i, x), 53, own);
        } else {
            add_element(FIRST(t, i), SECOND(t, i), record, limbs);
        }
    }
#else
#if defined(PAIRS)
    if (has_specials(&t->x) || has_specials(&t->y)) {
#else
    if (has_specials(&t->x)) {
#endif
        UNROLL_UNFITTING
        for (u32 i = 0; i < TILE; i++)
            add_element(FIRST(t, i), SECOND(t, i), record, limbs);
        return;
    }
    UNROLL_UNFITTING
    for (u32 i = 0; i < TILE; i++)
        ADD_TO_LANE(t, i, own);
#endif
    if (++a->tiles == LANE_TILES) {
        a->tiles = 0;
        empty_lane(lane_sums, limbs);
    }
}

#else

/* Adds a tile that fits no window to the superaccumulator, term by term. */
INLINED void add_unfitting(const input *t, adder *a, u64 *record, SHARED u64 *limbs,
                           SHARED u32 *lane_sums) {
    UNROLL_UNFITTING
    for (u32 i = 0; i < TILE; i++)
        add_element(FIRST(t, i), SECOND(t, i), record, limbs);
}

#endif

#if !defined(LIFT_MOMENTS)
/* Adds a tile that does not fit the thread's window, or for which the thread has none. Now and then it opens a window
 * for the tile; otherwise it adds the tile without one. */
INLINED void add_again(const input *given, adder *a, u32 number, u64 *record, SHARED u64 *limbs,
                       SHARED u32 *lane_sums) {
    input t;
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++) {
        t.x.word[i] = anew(given->x.word[i]);
#if defined(PAIRS)
        t.y.word[i] = anew(given->y.word[i]);
#endif
    }
#if !ONE_WINDOW
    a->unfit = number == a->next ? a->unfit + 1 : 1;
    a->next = number + 1;
    if ((a->unfit <= UNFIT_TILES || a->unfit % UNFIT_TRIES == 0) &&
        change_window(&t, a, record, limbs) && extract(&t, a->window, record)) {
        a->unfit = 0;
        return;
    }
    if (a->unfit >= UNFIT_TILES) a->window.sigma = 0;
#endif
    add_unfitting(&t, a, record, limbs, lane_sums);
}

/* Adds the thread's tile of this number; numbers rise by one from tile to tile. Where fewer levels are enough for
 * most tiles, these are tried first, until DEEP_TILES tiles have needed more. */
INLINED void add_tile(const input *t, adder *a, u32 number, u64 *record, SHARED u64 *limbs,
                      SHARED u32 *lane_sums) {
    if (!(record[SEEN] & SEEN_MIXED) && any_not_minus_zero(t)) record[SEEN] |= SEEN_MIXED;
#if HAS_TOP_LEVELS
    if (a->deep < DEEP_TILES && a->window.sigma != 0) {
        if (extract_top(t, a->window, record)) return;
        a->deep++;
    }
#endif
    if (a->window.sigma == 0 || !extract(t, a->window, record))
        add_again(t, a, number, record, limbs, lane_sums);
}
#endif

/* Returns the bits of the tile's largest magnitude, which chooses the window; 0 for an infinity or
 * a NaN, which go to the superaccumulator. */
PURE raw wanted(const input *t) {
#if ONE_WINDOW
    return 0; /* there is but one window */
#else
    const raw most = largest(t);
    return most >> MANTISSA != FIELD_MAX ? most : 0;
#endif
}

/* Returns the largest `most` of the block's threads to all of them, who all call this. `warps` has room for 32 bits a
 * warp. */
INLINED u32 block_most(u32 most, SHARED u64 *warps, SHARED u64 *exchange) {
    u64 seen = most;
#if BLOCK > 1
#if WARP_AT_ONCE
    seen = warp_most(most);
#else
    for (u32 delta = (BLOCK < WARP ? BLOCK : WARP) / 2; delta > 0; delta /= 2) {
        const u64 other = __shfl_down_sync(FULL_WARP, seen, delta);
        seen = other > seen ? other : seen;
    }
#endif
    SHARED u32 *known = (SHARED u32 *)warps;
    if (threadIdx.x % WARP == 0) known[threadIdx.x / WARP] = (u32)seen;
    __syncthreads();
    most = known[0];
    UNROLL
    for (u32 k = 1; k < WARPS; k++)
        most = known[k] > most ? known[k] : most;
    return most;
#else
    return (u32)seen;
#endif
}

/* Returns the block's window: the one for the largest magnitude of its threads' tiles, of which the
 * upper 32 bits suffice. All threads call this. */
INLINED window block_window(raw most, SHARED u64 *warps, SHARED u64 *exchange) {
    const u32 below = 8 * (u32)sizeof(raw) - 32;
    return choose_window((raw)block_most((u32)(most >> below), warps, exchange) << below);
}

/* Samples SAMPLE terms at equal distances in the whole array, shared out to the threads of the
 * block's first warp. Each gets the upper 32 bits of the largest magnitude among its own; other
 * threads get 0. Infinities and NaNs count as 0.
 * For terms in chains the samples are chains of neighbouring terms. Single terms mislead: of 32
 * normally distributed numbers none is beyond 2 in a fifth of all cases. A window for such a sample
 * is too small for one chain in a hundred, each time in another lane of the warp. */
#define SAMPLE 32u
INLINED u32 sampled(const GLOBAL element *x, const GLOBAL element *y, u64 n) {
    u32 most = 0;
#if !ONE_WINDOW
    const u32 lanes = BLOCK < WARP ? BLOCK : WARP, below = 8 * (u32)sizeof(raw) - 32;
    const u64 apart = n / SAMPLE;
    if (threadIdx.x >= lanes) return 0;
    for (u32 i = threadIdx.x; i < SAMPLE; i += lanes) {
        const u64 at = apart ? i * apart : i;
        if (at >= n) break;
#if CHAINED
        /* Reads whole packs if it can: the lanes' chains lie far apart, so each load is an access of its own. */
        const u64 head = (16 - (u64)(size_t)x % 16) % 16 / sizeof(element);
        const u64 from = head + at / PACK * PACK;
        union {
            uint4 pack[CHAIN_LENGTH / PACK];
            element e[CHAIN_LENGTH];
        } chain;
        if (from + CHAIN_LENGTH <= n) {
            UNROLL
            for (u32 k = 0; k < CHAIN_LENGTH / PACK; k++)
                chain.pack[k] = ((const GLOBAL uint4 *)(x + from))[k];
        } else {
            UNROLL
            for (u32 k = 0; k < CHAIN_LENGTH; k++)
                chain.e[k] = at + k < n ? x[at + k] : (element)0;
        }
#if FLOAT_SQUARES
        raw m = 0;
        UNROLL
        for (u32 k = 0; k < CHAIN_LENGTH; k++) {
            const raw size = magnitude_bits(widen(chain.e[k]));
            if (size >> MANTISSA != FIELD_MAX && size > m) m = size;
        }
#else
        term sums[4] = {0, 0, 0, 0};
        UNROLL
        for (u32 k = 0; k < CHAIN_LENGTH; k++) {
            const real e = widen(chain.e[k]);
            const term square = lift(e, e);
            sums[k % 4] += magnitude_bits(square) >> MANTISSA != FIELD_MAX ? square : 0;
        }
        const term sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        const raw m = wanted_for(sum);
#endif
#elif defined(PAIRS)
        const raw m = magnitude_bits(lift(widen(x[at]), widen(y[at])));
#else
        const raw m = magnitude_bits(lift(widen(x[at]), widen(x[at])));
#endif
        if (m >> MANTISSA != FIELD_MAX && (u32)(m >> below) > most) most = (u32)(m >> below);
    }
#endif
    return most;
}

/* Loads this thread's part of the block's i-th tile; from i = s.tiles on, of its loose elements, filled up with -0,
 * or with pairs whose product is -0. */
INLINED void load_any(input *t, const GLOBAL element *x, const GLOBAL element *y, even_share s,
                      u32 i) {
    if (i < s.tiles) {
        load_tile(&t->x, s.packs + (u64)i * (BLOCK * IN_FLIGHT));
#if defined(PAIRS)
        load_anywhere(&t->y, y + s.start + (u64)i * (BLOCK * TILE));
#endif
    } else {
        load_loose(&t->x, x, s, (i - s.tiles) * (BLOCK * TILE), MINUS_ZERO);
#if defined(PAIRS)
        load_loose(&t->y, y, s, (i - s.tiles) * (BLOCK * TILE), (element)0);
#endif
    }
}

#endif
