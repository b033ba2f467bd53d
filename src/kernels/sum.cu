/*
 * sum - the exact sum of f16, bf16, f32 or f64: of elements, or with a LIFT_... of lift.h of their magnitudes or
 * squares, or of products of elements of two arrays.
 *
 * Each thread adds its tiles to totals, or to its lane's sum (adding.h). In its superaccumulator everything meets in the
 * end, and from there limb by limb in global memory. The last block rounds, if a value is asked for (request.h).
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

#include "adding.h"

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
    __shared__ u32 lane_sums[LANE_SUMS];
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

    input next; /* on its way while another is added */
    load_any(&next, x, y, s, 0);
    clear_limbs(limbs);
    clear_lane_sums(lane_sums);
    const window first = block_window(wanted(&next), warps, exchange);
    adder a = adder_with(first);
#if BLOCK > 1
    UNROLL_NOT
    for (u32 i = 0; i < tiles; i++) {
        const input t = next;
        if (i + 1 < tiles) load_any(&next, x, y, s, i + 1);
        add_tile(&t, &a, i, record, limbs, lane_sums);
    }
#else
    for (u32 i = 0; i < tiles; i++) {
        input t;
        load_any(&t, x, y, s, i);
        add_tile(&t, &a, i, record, limbs, lane_sums);
    }
#endif

    if (a.window.exponent != first.exponent) flush(record, a.window.exponent, limbs);
    merge_block(record, warps, exchange);
    collect_lane_sums(lane_sums, limbs);
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
