/*
 * adding.h - how the threads of a block add tiles of terms (lift.h) to an exact sum of floats.
 *
 * Each thread extracts its tiles into integer totals (window.h). All threads of a block begin with one
 * window, chosen from their first tiles, so that at the end their totals are simply added up. What a tile
 * leaves goes to a second window right below; larger numbers give their thread a larger window. A tile
 * whose exponents span too much for that goes element by element to the block's superaccumulator
 * (limbs.h): slow, and as exact.
 */
#ifndef TALLY_ADDING_H
#define TALLY_ADDING_H

#include "window.h"

#include "limbs.h"

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

/* The totals go to the superaccumulator. */
INLINED void flush(u64 *record, i32 exponent, SHARED u64 *limbs) {
    for (u32 k = 0; k < TOTALS; k++) {
        add_limbs(limbs, (i64)record[k], total_exponent(exponent, k));
        record[k] = 0;
    }
    record[SEEN] |= SEEN_LIMBS;
}

/* Counts a term that is an infinity or a NaN. A block has fewer than 2^28 of them: 32 bits do. */
INLINED void add_special(u32 nan, u32 negative, SHARED u64 *limbs) {
    SHARED u64 *count = &limbs[nan ? COUNT_NANS : negative ? COUNT_MINUS : COUNT_PLUS];
#if BLOCK == 1
    *count += 1;
#else
    atomicAdd((SHARED u32 *)count, 1u); /* the low half */
#endif
}

#if TWO_PARTS

/* A finite element as an integer below 2^53 in magnitude, times 2^*exponent. */
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

/* The product of two elements to the superaccumulator: two mantissas' 106 bits, in halves of 53. */
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

/* One term, as mantissa and exponent, to the superaccumulator; an infinity or NaN is counted. */
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

/* A window and the totals of the one below it. */
typedef struct windows {
    window top;
    u64 low[TOTALS];
#if defined(LIFT_MOMENTS)
    u32 squares; /* it is for these: lift.h */
#endif
} windows;

PURE u32 is_any(const u64 *totals) {
    u64 any = 0;
    UNROLL
    for (u32 k = 0; k < TOTALS; k++)
        any |= totals[k];
    return any != 0;
}

/* What is in the lower totals goes to the superaccumulator. */
INLINED void flush_low(windows *w, u64 *record, SHARED u64 *limbs) {
    if (!is_any(w->low)) return;
    const i32 exponent = window_below(w->top, LEVELS_OF(w)).exponent;
    UNROLL
    for (u32 k = 0; k < TOTALS; k++) {
        add_limbs(limbs, (i64)w->low[k], total_exponent(exponent, k));
        w->low[k] = 0;
    }
    record[SEEN] |= SEEN_LIMBS;
}

/* The window for larger numbers than it was for. */
INLINED void change_window(windows *w, window to, u64 *record, SHARED u64 *limbs) {
    flush(record, w->top.exponent, limbs);
    flush_low(w, record, limbs);
    w->top = to;
}

/* A tile that the window does not fit: with the one below, and a larger one if that is what it needs; else
 * one by one. */
INLINED void add_unfitting(const input *t, windows *w, u64 *record, SHARED u64 *limbs) {
    input again;
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++) {
        again.x.word[i] = anew(t->x.word[i]);
#if defined(PAIRS)
        again.y.word[i] = anew(t->y.word[i]);
#endif
    }
#if defined(LIFT_MOMENTS)
    again.squares = t->squares;
#endif
    const window own = choose_window(largest(&again));
    if (own.sigma != 0) {
        if (w->top.sigma == 0 || own.exponent > w->top.exponent)
            change_window(w, own, record, limbs);
        if (extract_twice(&again, w->top, record, w->low)) return;
    }
    UNROLL /* registers have no index */
        for (u32 i = 0; i < TILE; i++)
            add_element(FIRST(&again, i), SECOND(&again, i), record, limbs);
}

INLINED void add_tile(const input *t, windows *w, u64 *record, SHARED u64 *limbs) {
    if (!(record[SEEN] & SEEN_MIXED) && any_not_minus_zero(t)) record[SEEN] |= SEEN_MIXED;
    if (w->top.sigma == 0 || !extract(t, w->top, record)) add_unfitting(t, w, record, limbs);
}

/* What a thread's tile has to say on the window: its largest magnitude. Infinities and NaNs are for the
 * slow path, and count as nothing. */
PURE raw wanted(const input *t) {
#if ONE_WINDOW
    return 0; /* there is but one window */
#else
    const raw most = largest(t);
    return most >> MANTISSA != FIELD_MAX ? most : 0;
#endif
}

/* The block's window: for the largest of what its threads want. `warps`: a word a warp. */
INLINED window block_window(raw most, SHARED u64 *warps, SHARED u64 *exchange) {
    u64 seen = most;
#if BLOCK > 1
    for (u32 delta = (BLOCK < WARP ? BLOCK : WARP) / 2; delta > 0; delta /= 2) {
        const u64 other = __shfl_down_sync(FULL_WARP, seen, delta);
        seen = other > seen ? other : seen;
    }
    if (threadIdx.x % WARP == 0) warps[threadIdx.x / WARP] = seen;
    __syncthreads();
    for (u32 k = 0; k < WARPS; k++)
        seen = k == 0 || warps[k] > seen ? warps[k] : seen;
#endif
    return choose_window((raw)seen);
}

/* This thread's part of the block's i-th tile; of its loose elements, where it has no other. Those are filled up
 * with -0, or with pairs whose product is that. */
INLINED void load_any(input *t, const GLOBAL element *x, const GLOBAL element *y, share s, u32 i) {
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
