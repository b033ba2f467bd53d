/*
 * sum - the exact sum of f16, bf16, f32 or f64: of elements, or with a LIFT_... of lift.h of their magnitudes or
 * squares, or of products of elements of two arrays.
 *
 * Each thread adds its tiles to totals, or to its lane's sum (adding.h). Blocks meet on a board: each
 * writes its threads' totals there, with the window that they are for. The last block adds them up and rounds. What has
 * gone to superaccumulators meets limb by limb in the launch's head; so does everything where no value is asked for
 * (request.h).
 *
 * The head: [0] is the counter; [1 + i] limb i of the total; behind the limbs how many terms were NaN, +infinity and
 * -infinity; and then whether some term was not -0.
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

/* ---- From totals to the value ------------------------------------------------------------------- */

/* The total of all elements as digits that are worth 32 bits each, of the last level's unit, and signed until they are
 * carried.
 *
 * Bounds. A term has less than 2^(LEVELS * MANTISSA) units, and there are fewer than 2^TERMS_MOST of them (tuning.h):
 * the number fits with its sign. Totals of blocks whose windows differ are brought to the least window by a shift of at
 * most APART bits; they then stay below 2^63, as each element has at most 2^(MANTISSA - 1) units of its level (of
 * doubles' levels: at most 2^20 of the high part, and a block less than 2^32 of the low one). */
#define APART            12u
#define DIGITS           ((LEVELS * MANTISSA + TERMS_MOST + (i32)APART + 1 + 31) / 32)
#define NEARBY(n, apart) ((apart) <= APART && (n) >> (TERMS_MOST - (apart)) == 0)

/* Adds totals to digits. */
PURE void add_totals(u64 *digit, const u64 *totals) {
    UNROLL
    for (u32 k = 0; k < TOTALS; k++) {
        const u32 at = (u32)(total_exponent(LEVELS * MANTISSA, k)), i = at / 32, shift = at % 32;
        const i64 total = (i64)totals[k], above = total >> (32 - shift); /* floor */
        digit[i] += (u64)total << shift & 0xffffffffu;
        digit[i + 1] += (u64)above & 0xffffffffu;
        digit[i + 2] += (u64)(above >> 32);
    }
}

/* The totals for a window as the nearest float. */
PURE u64 round_totals(const u64 *totals, i32 window_exponent, float_format f) {
    i32 exponent = window_exponent - LEVELS * MANTISSA;
    u64 digit[DIGITS];
    UNROLL
    for (u32 k = 0; k < DIGITS; k++)
        digit[k] = 0;
    add_totals(digit, totals);
    UNROLL
    for (u32 k = 0; k + 1 < DIGITS; k++) {
        digit[k + 1] += (u64)((i64)digit[k] >> 32); /* floor */
        digit[k] &= 0xffffffffu;
    }
    const u32 negative = (i64)digit[DIGITS - 1] < 0;
    u64 one = negative;
    UNROLL
    for (u32 k = 0; k < DIGITS; k++) { /* the magnitude */
        const u64 d = (u64)(negative ? ~(u32)digit[k] : (u32)digit[k]) + one;
        digit[k] = d & 0xffffffffu;
        one = d >> 32;
    }
    UNROLL
    for (u32 i = 1; i < DIGITS; i++) /* the leading digit comes to the top */
        if (digit[DIGITS - 1] == 0) {
            UNROLL
            for (u32 k = DIGITS - 1; k > 0; k--)
                digit[k] = digit[k - 1];
            digit[0] = 0;
            exponent -= 32;
        }
    if (digit[DIGITS - 1] == 0) return 0;
    const u32 shift = leading_zeros((u32)digit[DIGITS - 1]);
    const u64 two = digit[DIGITS - 1] << 32 | digit[DIGITS - 2], rest = digit[DIGITS - 3] << shift;
    u32 sticky = (u32)rest != 0;
    UNROLL
    for (u32 k = 0; k + 3 < DIGITS; k++)
        sticky |= digit[k] != 0;
    return round_bits(f, negative, two << shift | rest >> 32,
                      exponent + 32 * (DIGITS - 2) - (i32)shift, sticky);
}

/* ---- How blocks meet ---------------------------------------------------------------------------- */

/* A record on the board: the totals, and behind them what was seen, with the window's exponent above it; that is
 * 0 where the totals are. */
#if WORDS > SUM_BOARD_WORDS
#error "request.h"
#endif
#define EXPONENT_BIAS  4096u
#define TOGETHER       (BLOCK > 1 ? 2u : 1u) /* records that a thread has under way at once */
#define EXPONENT_OF(w) ((u32)((w) >> 32))

PURE u32 is_any(const u64 *totals) {
    u64 any = 0;
    UNROLL
    for (u32 k = 0; k < TOTALS; k++)
        any |= totals[k];
    return any != 0;
}

/* Writes the record of the block, which thread 0 has. */
INLINED void put_record(GLOBAL u64 *board, u64 *record, i32 exponent) {
    const u64 above = is_any(record) ? (u64)((u32)exponent + EXPONENT_BIAS) << 32 : 0;
    UNROLL
    for (u32 k = 0; k < TOTALS; k++) {
#if TERM_F64
        if (k % 2 == 0) { /* the low part keeps 32 bits */
            record[k + 1] += record[k] >> 32;
            record[k] &= 0xffffffffu;
        }
#endif
        write_word(&board[(u64)blockIdx.x * WORDS + k], record[k]);
    }
    write_word(&board[(u64)blockIdx.x * WORDS + SEEN], above | record[SEEN]);
}

/* Reads a block's record; all 0 where there is no such block. */
INLINED void get_record(GLOBAL u64 *board, u64 *record, u32 block) {
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = block < gridDim.x ? read_word(&board[(u64)block * WORDS + k]) : 0;
}

/* Adds a block's totals to a thread's, which are for the window of exponent `least`; where the blocks' windows are
 * too far apart (`limbed`), to the limbs. */
INLINED void add_record(u64 *totals, u64 *record, u32 least, u32 limbed, SHARED u64 *limbs) {
    const u32 exponent = EXPONENT_OF(record[SEEN]);
    totals[SEEN] |= (u32)record[SEEN];
    if (exponent == 0) return;
    if (limbed) {
        flush(record, (i32)(exponent - EXPONENT_BIAS), limbs);
        totals[SEEN] |= SEEN_LIMBS;
    } else {
        UNROLL
        for (u32 k = 0; k < TOTALS; k++)
            totals[k] += record[k] << (exponent - least);
    }
}

/* The last block's: thread 0 learns what is on the board, as totals for a window of the exponent returned. What did
 * not fit, and what blocks have left in the head, is in the limbs afterwards. `last`: this is that block. */
INLINED i32 meet(u64 *totals, u64 n, GLOBAL u64 *board, GLOBAL u64 *head, u32 last,
                 SHARED u64 *limbs, SHARED u64 *warps, SHARED u64 *exchange, SHARED u32 *number) {
    const u32 step = TOGETHER * BLOCK, blocks = last ? gridDim.x : 0;
    u64 record[TOGETHER][WORDS];
    u32 most = 0,
        over =
            0; /* over: of what the exponents leave to 2^16, which is greatest for the least of them */
    UNROLL_NOT
    for (u32 first = 0; first < blocks; first += step) {
        UNROLL
        for (u32 j = 0; j < TOGETHER; j++)
            get_record(board, record[j], first + j * BLOCK + threadIdx.x);
        UNROLL
        for (u32 j = 0; j < TOGETHER; j++) {
            const u32 exponent = EXPONENT_OF(record[j][SEEN]);
            const u32 left = exponent ? 65536u - exponent : 0;
            most = exponent > most ? exponent : most;
            over = left > over ? left : over;
        }
    }
    if (last) clear_limbs(limbs);
    most = block_most(most, warps, exchange);
    over = block_most(over, warps + WARPS, exchange);
    const u32 least = most ? 65536u - over : 0, limbed = !NEARBY(n, most - least);

    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        totals[k] = 0;
    UNROLL_NOT
    for (u32 first = 0; first < blocks; first += step) {
        UNROLL
        for (u32 j = 0; j < TOGETHER; j++) {
            if (blocks > step) /* else it is there */
                get_record(board, record[j], first + j * BLOCK + threadIdx.x);
            add_record(totals, record[j], least, limbed, limbs);
        }
    }
    merge_block(totals, warps, exchange);
    if (threadIdx.x == 0) *number = last && totals[SEEN] & SEEN_LIMBS;
    __syncthreads();
    if (*number) collect_limbs(limbs, head + 1);
    __syncthreads();
    return (i32)(least - EXPONENT_BIAS);
}

/* The sum's bits, by the rules for infinities, NaNs and zeros. */
INLINED u64 sum_bits(u64 *record, i32 exponent, SHARED u64 *limbs, u64 n, float_format f) {
    if (n != 0 && !(record[SEEN] & SEEN_MIXED)) return float_sign(f); /* -0 and nothing else */
    if (!(record[SEEN] & SEEN_LIMBS)) return round_totals(record, exponent, f);

    const u64 plus = limbs[COUNT_PLUS], minus = limbs[COUNT_MINUS];
    if (limbs[COUNT_NANS] || (plus && minus)) return float_nan_bits(f);
    if (plus || minus) return float_infinity_bits(f, minus != 0);
    if (is_any(record)) flush(record, exponent, limbs);
    return round_limbs(limbs, f);
}

KERNEL reduce(const GLOBAL element *x, const GLOBAL element *y, u64 n, u64 first_index,
              GLOBAL u64 *heads, GLOBAL u64 *boards, u64 place, u32 request, GLOBAL u64 *result) {
    __shared__ u64 limbs[LIMB_WORDS];
    __shared__ u32 lane_sums[LANE_SUMS];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    __shared__ u32 number;

    GLOBAL u64 *head = heads + (u32)place;
    GLOBAL u64 *board = boards + (place >> 32);
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
    if (threadIdx.x == 0) {
        if (!request) flush(record, first.exponent, limbs);
        if (request && !(request & REQUEST_ALONE)) put_record(board, record, first.exponent);
        number = (record[SEEN] & SEEN_LIMBS) != 0;
        if (!request && record[SEEN] & SEEN_MIXED) atomicOr(&head[1 + MIXED], (u64)1);
    }

    u32 last = 1;
    i32 exponent = first.exponent;
    __syncthreads();
    if (UNIFORM(!(request & REQUEST_ALONE))) {
        if (number) deliver_limbs(limbs, head + 1);
        if (!UNIFORM(request)) return;
        __syncthreads();
        last = is_last_block(head, &number) && request;
        if (!UNIFORM(last)) return;
        exponent = meet(record, n, board, head, last, limbs, warps, exchange, &number);
    }
    if (last && threadIdx.x == 0)
        put_result(result, request, sum_bits(record, exponent, limbs, n, requested_format(request)),
                   RESULT_OK);
}
