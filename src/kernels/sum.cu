/*
 * sum - the exact sum of f16, bf16, f32 or f64.
 *
 * Each thread extracts its tiles into integer totals (window.h). All threads of a block begin with one
 * window, chosen from their first tiles, so that at the end their totals are simply added up. What a tile
 * leaves goes to a second window right below; larger numbers give their thread a larger window. A tile
 * whose exponents span too much for that goes element by element to the block's superaccumulator
 * (limbs.h): slow, and as exact. There everything meets in the end, and from there limb by limb in global
 * memory. The last block rounds, if a value is asked for (request.h).
 *
 * work[0] is the counter, work[1 + i] limb i of the total, work[1 + LIMBS] what was seen.
 */
#define BLOCKS_A_UNIT GPU_SUM_BLOCKS_A_UNIT

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

/* One element, as mantissa and exponent, to the superaccumulator; an infinity or NaN is only noted. */
__device__ void add_element(real x, u64 *record, SHARED u64 *limbs) {
    const raw bits = REAL_BITS(x);
    const i32 field = (i32)(bits >> MANTISSA) & FIELD_MAX;
    const raw fraction = bits & (((raw)1 << MANTISSA) - 1);
    const i64 mantissa = (i64)(fraction | (raw)(field != 0) << MANTISSA);
    record[SEEN] |= SEEN_LIMBS;
    if (field == FIELD_MAX)
        record[SEEN] |= fraction != 0      ? SEEN_NAN
                        : bits & REAL_SIGN ? SEEN_MINUS_INF
                                           : SEEN_PLUS_INF;
    else
        add_limbs(limbs, bits & REAL_SIGN ? -mantissa : mantissa,
                  UNIT_LEAST + (field > 0 ? field - 1 : 0));
}

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
__device__ void add_unfitting(const tile *t, windows *w, u64 *record, SHARED u64 *limbs) {
    tile again;
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++)
        again.word[i] = anew(t->word[i]);
    const window own = choose_window(largest(&again));
    if (own.sigma != 0) {
        if (w->top.sigma == 0 || own.exponent > w->top.exponent)
            change_window(w, own, record, limbs);
        if (extract_twice(&again, w->top, record, w->low)) return;
    }
    UNROLL /* registers have no index */
        for (u32 i = 0; i < TILE; i++) add_element(widen(again.e[i]), record, limbs);
}

__device__ void add_tile(const tile *t, windows *w, u64 *record, SHARED u64 *limbs) {
    if (!(record[SEEN] & SEEN_MIXED) && any_not_minus_zero(t)) record[SEEN] |= SEEN_MIXED;
    if (w->top.sigma == 0 || !extract(t, w->top, record)) add_unfitting(t, w, record, limbs);
}

/* What a thread's tile has to say on the window: its largest magnitude. Infinities and NaNs are for the
 * slow path, and count as nothing. */
PURE raw wanted(const tile *t) {
#if defined(TYPE_F16)
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

/* This thread's part of the block's i-th tile; of its loose elements, where it has no other. */
__device__ void load_any(tile *t, const GLOBAL element *x, share s, u32 i) {
    if (i < s.tiles)
        load_tile(t, s.packs + (u64)i * (BLOCK * IN_FLIGHT));
    else
        load_loose(t, x, s, (i - s.tiles) * (BLOCK * TILE), MINUS_ZERO);
}

/* All that has been seen goes from the limbs of one block to `work`; from there, where the last block is
 * asked for a value, back to its limbs. Whether this is that block. */
__device__ u32 meet_limbs(SHARED u64 *limbs, u64 *seen, GLOBAL u64 *work, u32 request,
                          SHARED u32 *number) {
    if (!UNIFORM(!(request & REQUEST_ALONE))) return 1;
    deliver_limbs(limbs, work + 1);
    if (threadIdx.x == 0 && *seen != 0) atomicOr(&work[1 + LIMBS], *seen);
    const u32 last = is_last_block(work, number);
    if (last && threadIdx.x == 0) write_word(&work[0], (u64)0);
    if (!UNIFORM(last && request)) return 0;
    if (last && request) {
        collect_limbs(limbs, work + 1);
        if (threadIdx.x == 0) {
            *seen = read_word(&work[1 + LIMBS]);
            write_word(&work[1 + LIMBS], (u64)0);
        }
    }
    __syncthreads();
    return last && request;
}

/* The sum's bits, by the rules for infinities, NaNs and zeros; `finite` are those of its finite part. */
PURE u64 sum_bits(u64 finite, u64 seen, u64 n, float_format f) {
    const u64 both = SEEN_PLUS_INF | SEEN_MINUS_INF;
    if ((seen & SEEN_NAN) || (seen & both) == both) return float_nan_bits(f);
    if (seen & both) return float_infinity_bits(f, (seen & SEEN_MINUS_INF) != 0);
    if (n != 0 && !(seen & SEEN_MIXED)) return float_sign(f); /* -0 and nothing else */
    return finite;
}

/* The totals as the nearest float. They add up to less than 2^127 of the last level's units: a block that
 * is ALONE has fewer than 2^15 elements, each less than 2^51 units of its level (2^22 for f32), and the
 * levels below the first add less than 2^52. */
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

KERNEL reduce(const GLOBAL element *x, u64 n, GLOBAL u64 *work, u32 request, GLOBAL u64 *result) {
    __shared__ u64 limbs[LIMBS];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    __shared__ u32 number;

    const share s = find_share(x, n);
    const u32 tiles = s.tiles + (s.loose + BLOCK * TILE - 1) / (BLOCK * TILE);
    u64 record[WORDS];
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;
    clear_limbs(limbs);

    tile next; /* on its way while another is added */
    load_any(&next, x, s, 0);
    const window first = block_window(wanted(&next), warps, exchange);
    windows w;
    w.top = first;
    UNROLL
    for (u32 k = 0; k < TOTALS; k++)
        w.low[k] = 0;
#if BLOCK > 1
    UNROLL_NOT
    for (u32 i = 0; i < tiles; i++) {
        const tile t = next;
        if (i + 1 < tiles) load_any(&next, x, s, i + 1);
        add_tile(&t, &w, record, limbs);
    }
#else
    for (u32 i = 0; i < tiles; i++) {
        tile t;
        load_any(&t, x, s, i);
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
        finished = request & REQUEST_ALONE && !(record[SEEN] & SEEN_LIMBS);
        if (finished)
            finite = round_totals(record, first.exponent, format);
        else
            flush(record, first.exponent, limbs);
    }
    __syncthreads();
    const u32 last = meet_limbs(limbs, &record[SEEN], work, request, &number);
    if (last && threadIdx.x == 0) {
        if (!finished) finite = round_limbs(limbs, format);
        put_result(result, request, sum_bits(finite, record[SEEN], n, format), RESULT_OK);
    }
}
