/*
 * sum - the exact sum of f16, bf16, f32 or f64: of elements, or with a LIFT_... of lift.h of their magnitudes or
 * squares, or of products of elements of two arrays.
 *
 * Each thread extracts its tiles into integer totals (window.h). All threads of a block begin with one
 * window, chosen from their first tiles, so that at the end their totals are simply added up. What a tile
 * leaves goes to a second window right below; larger numbers give their thread a larger window. A tile
 * whose exponents span too much for that goes element by element to the block's superaccumulator
 * (limbs.h): slow, and as exact. There everything meets in the end, and from there limb by limb in global
 * memory. The last block rounds, if a value is asked for (request.h).
 *
 * The launch's words: [0] is the counter; [1 + i] limb i of the total; behind the limbs how many terms were NaN,
 * +infinity and -infinity; and then whether some term was not -0.
 */
#if defined(LIFT_PRODUCT)
#define PAIRS
#endif
#if (defined(LIFT_SQUARE) || defined(LIFT_PRODUCT)) && !defined(TYPE_F16)
#define BLOCKS_A_UNIT GPU_PRODUCT_BLOCKS_A_UNIT
#else
#define BLOCKS_A_UNIT GPU_SUM_BLOCKS_A_UNIT
#endif
#if (defined(LIFT_SQUARE) || defined(LIFT_PRODUCT)) && defined(TYPE_F64)
#define WIDE_LIMBS
#endif

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
__device__ void flush(u64 *record, i32 exponent, SHARED u64 *limbs) {
    for (u32 k = 0; k < TOTALS; k++) {
        add_limbs(limbs, (i64)record[k], total_exponent(exponent, k));
        record[k] = 0;
    }
    record[SEEN] |= SEEN_LIMBS;
}

/* Counts a term that is an infinity or a NaN. A block has fewer than 2^28 of them: 32 bits do. */
__device__ void add_special(u32 nan, u32 negative, SHARED u64 *limbs) {
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
__device__ void add_element(double x, double y, u64 *record, SHARED u64 *limbs) {
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
__device__ void add_element(real first, real second, u64 *record, SHARED u64 *limbs) {
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
} windows;

PURE u32 is_any(const u64 *totals) {
    u64 any = 0;
    UNROLL
    for (u32 k = 0; k < TOTALS; k++)
        any |= totals[k];
    return any != 0;
}

/* What is in the lower totals goes to the superaccumulator. */
__device__ void flush_low(windows *w, u64 *record, SHARED u64 *limbs) {
    if (!is_any(w->low)) return;
    const i32 exponent = window_below(w->top).exponent;
    UNROLL
    for (u32 k = 0; k < TOTALS; k++) {
        add_limbs(limbs, (i64)w->low[k], total_exponent(exponent, k));
        w->low[k] = 0;
    }
    record[SEEN] |= SEEN_LIMBS;
}

/* The window for larger numbers than it was for. */
__device__ void change_window(windows *w, window to, u64 *record, SHARED u64 *limbs) {
    flush(record, w->top.exponent, limbs);
    flush_low(w, record, limbs);
    w->top = to;
}

/* A tile that the window does not fit: with the one below, and a larger one if that is what it needs; else
 * one by one. */
__device__ void add_unfitting(const input *t, windows *w, u64 *record, SHARED u64 *limbs) {
    input again;
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++) {
        again.x.word[i] = anew(t->x.word[i]);
#if defined(PAIRS)
        again.y.word[i] = anew(t->y.word[i]);
#endif
    }
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

__device__ void add_tile(const input *t, windows *w, u64 *record, SHARED u64 *limbs) {
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
__device__ window block_window(raw most, SHARED u64 *warps, SHARED u64 *exchange) {
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
__device__ void load_any(input *t, const GLOBAL element *x, const GLOBAL element *y, share s,
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

/* All that has been seen goes from the limbs of one block to its launch's words; from there, where the last block
 * is asked for a value, back to its limbs. Returns whether this is that block. */
__device__ u32 meet_limbs(SHARED u64 *limbs, u64 *seen, GLOBAL u64 *work, u32 request,
                          SHARED u32 *number) {
    if (!UNIFORM(!(request & REQUEST_ALONE))) return 1;
    deliver_limbs(limbs, work + 1);
    if (threadIdx.x == 0 && *seen & SEEN_MIXED) atomicOr(&work[1 + MIXED], (u64)1);
    const u32 last = is_last_block(work, number);
    if (last && threadIdx.x == 0) write_word(&work[0], (u64)0);
    if (!UNIFORM(last && request)) return 0;
    if (last && request) {
        collect_limbs(limbs, work + 1);
        if (threadIdx.x == 0) {
            *seen = read_word(&work[1 + MIXED]) ? SEEN_MIXED : 0;
            write_word(&work[1 + MIXED], (u64)0);
        }
    }
    __syncthreads();
    return last && request;
}

/* The sum's bits, by the rules for infinities, NaNs and zeros; `finite` are those of its finite part, and `counts`
 * those behind the limbs. */
__device__ u64 sum_bits(u64 finite, const SHARED u64 *limbs, u64 seen, u64 n, float_format f) {
    const u64 plus = limbs[COUNT_PLUS], minus = limbs[COUNT_MINUS];
    if (limbs[COUNT_NANS] || (plus && minus)) return float_nan_bits(f);
    if (plus || minus) return float_infinity_bits(f, minus != 0);
    if (n != 0 && !(seen & SEEN_MIXED)) return float_sign(f); /* -0 and nothing else */
    return finite;
}

/* A block that is ALONE has less than two of its tiles and a pack (src/gpu/queue.c). */
#define ALONE_MOST (2 * BLOCK * TILE + PACK)

/* Whether what such a block's totals add up to has less than 127 bits, counted in the last level's units: each
 * element adds less than 2^(MANTISSA-1) units to its first level, and less than that at the others together. */
#define TOTALS_FIT (ALONE_MOST < 1u << 17 && LEVELS * MANTISSA + 17 < 127)

/* The totals as the nearest float, where they fit. */
PURE u64 round_totals(const u64 *totals, i32 exponent, float_format f) {
    const i32 unit = exponent - LEVELS * MANTISSA;
    u64 high = 0, low = 0; /* of 128 bits */
    UNROLL
    for (u32 k = 0; k < TOTALS; k++) {
        const u32 shift = (u32)(total_exponent(exponent, k) - unit);
        const i64 total = (i64)totals[k];
        const u64 part = shift < 64 ? (u64)total << shift : 0;
        const i64 above = shift >= 64  ? (i64)((u64)total << (shift - 64))
                          : shift == 0 ? total >> 63
                                       : total >> (64 - shift);
        low += part;
        high += (u64)above + (low < part);
    }
    const u32 negative = high >> 63 != 0;
    if (negative) {
        low = 0 - low;
        high = ~high + (low == 0);
    }
    if (high == 0) return round_bits(f, negative, shifted_up(low), unit - zeros_above(low), 0);
    const i32 zeros = zeros_above(high);
    const u64 next = zeros ? low >> (64 - zeros) : 0;
    return round_bits(f, negative, high << zeros | next, unit + 64 - zeros, low << zeros != 0);
}

KERNEL reduce(const GLOBAL element *x, const GLOBAL element *y, u64 n, u64 first_index,
              GLOBAL u64 *works, u64 place, u32 request, GLOBAL u64 *result) {
    __shared__ u64 limbs[LIMB_WORDS];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    __shared__ u32 number;

    GLOBAL u64 *work = works + (u32)place;
    const share s = find_share(x, n);
    const u32 tiles = s.tiles + (s.loose + BLOCK * TILE - 1) / (BLOCK * TILE);
    u64 record[WORDS];
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;
#if defined(LIFT_MAGNITUDE) || defined(LIFT_SQUARE)
    if (n > 0) record[SEEN] = SEEN_MIXED; /* no term is -0 */
#endif
    clear_limbs(limbs);

    input next; /* on its way while another is added */
    load_any(&next, x, y, s, 0);
    const window first = block_window(wanted(&next), warps, exchange);
    windows w;
    w.top = first;
    UNROLL
    for (u32 k = 0; k < TOTALS; k++)
        w.low[k] = 0;
#if BLOCK > 1
    UNROLL_NOT
    for (u32 i = 0; i < tiles; i++) {
        const input t = next;
        if (i + 1 < tiles) load_any(&next, x, y, s, i + 1);
        add_tile(&t, &w, record, limbs);
    }
#else
    for (u32 i = 0; i < tiles; i++) {
        input t;
        load_any(&t, x, y, s, i);
        add_tile(&t, &w, record, limbs);
    }
#endif

    flush_low(&w, record, limbs);
    if (w.top.exponent != first.exponent) flush(record, w.top.exponent, limbs);
    merge_block(record, warps, exchange);
    const float_format format = requested_format(request);
    u64 finite = 0;
    u32 finished = 0; /* thread 0 has all there is in its totals */
    if (threadIdx.x == 0) {
        finished = TOTALS_FIT && request & REQUEST_ALONE && !(record[SEEN] & SEEN_LIMBS);
        if (finished)
            finite = round_totals(record, first.exponent, format);
        else
            flush(record, first.exponent, limbs);
    }
    __syncthreads();
    const u32 last = meet_limbs(limbs, &record[SEEN], work, request, &number);
    if (last && threadIdx.x == 0) {
        if (!finished) finite = round_limbs(limbs, format);
        put_result(result, request, sum_bits(finite, limbs, record[SEEN], n, format), RESULT_OK);
    }
}
