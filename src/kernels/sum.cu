/*
 * sum - the exact sum of f16, bf16, f32 or f64: of elements, or with a LIFT_... of lift.h of their magnitudes or
 * squares, or of products of elements of two arrays.
 *
 * Each thread adds its tiles to totals, or to its lane's sum (adding.h). All blocks have the same window, found from a
 * sample of the whole array, so that their totals are simply added up, by atomic additions to a few words. Each of
 * these words counts the additions as well: the block that finds all others counted knows the word's total at once, and
 * nothing has to be written, waited for and read again. The last block rounds. A block whose first tiles do not fit
 * that window has one of its own, and its totals go to its superaccumulator. An array of one tile has a kernel of its
 * own, `alone`. Superaccumulators are added up limb by limb in the launch's head. Where no value is asked for
 * (request.h), all totals go there.
 *
 * With IN_FLOATS no operation on squares is one on doubles (lift.h, chains.h).
 *
 * The head: [0] is not used; [1 + i] limb i of the total; behind the limbs how many terms were NaN, +infinity and
 * -infinity; then whether some term was not -0; and then the words that count.
 */
#if defined(LIFT_PRODUCT)
#define PAIRS
#endif
#if defined(LIFT_SQUARE) || (defined(LIFT_PRODUCT) && !defined(TYPE_F16))
#define BLOCKS_A_UNIT GPU_PRODUCT_BLOCKS_A_UNIT
#else
#define BLOCKS_A_UNIT GPU_SUM_BLOCKS_A_UNIT
#endif
#if (defined(LIFT_SQUARE) || defined(LIFT_PRODUCT)) && defined(TYPE_F64)
#define WIDE_LIMBS
#endif

#include "adding.h"

/* ---- A block's total in fields ------------------------------------------------------------------ */

/* A level's total is cut into fields of FIELD_BITS bits, of which the highest has all that is above, with the sign.
 * Behind the fields of all levels there is a word more: how many threads have seen a term that is not -0, and, from
 * bit THREADS_LIMBED on, how many have seen something go to the superaccumulator. In the numbers that blocks add up, a
 * block with such a thread counts 1, or 2^MANY (number_of_word()).
 *
 * Bounds. Lower fields: the block's threads make less than BLOCK * 2^FIELD_BITS <= 2^32. Highest fields: a block has
 * fewer than 2^28 elements of at most 2^22 units each, or 2^51 of doubles. They make less than 2^50 or 2^79, of which
 * the highest field has the bits from 24 or 48 on, at least: less than 2^31 in magnitude. */
#define FIELD_BITS     (BLOCK > 256 ? 22u : 24u)
#define FIELDS_A_LEVEL ((TERM_F64 ? 3u : 2u) + (BLOCK > 256)) /* fields of a level */
#define FIELDS         (FIELDS_A_LEVEL * LEVELS)
#define GRID_WORDS     (FIELDS + 1) /* the counting words: request.h */
#define THREADS_LIMBED 16
#define MANY           24
#if GRID_WORDS > SUM_GRID_WORDS
#error "request.h"
#endif
#define IS_HIGHEST(i) ((i) % FIELDS_A_LEVEL == FIELDS_A_LEVEL - 1)

/* Returns field i of a thread's totals. */
PURE u32 field_of(const u64 *totals, u32 i) {
    const u32 shift = i % FIELDS_A_LEVEL * FIELD_BITS;
#if TERM_F64
    const u64 low = totals[i / FIELDS_A_LEVEL * 2];
    const i64 high = (i64)(totals[i / FIELDS_A_LEVEL * 2 + 1] + (low >> 32));
#else
    const u64 low = totals[i / FIELDS_A_LEVEL];
    const i64 high = (i64)low >> 32;
#endif
    const u32 bits = shift == 0   ? (u32)low
                     : shift < 32 ? (u32)low >> shift | (u32)high << (32 - shift) % 32
                                  : (u32)(high >> (shift - 32));
    return IS_HIGHEST(i) ? bits : bits & ((1u << FIELD_BITS) - 1);
}

/* Returns the exponent of field i's unit. */
PURE i32 field_exponent(i32 exponent, u32 i) {
    return level_exponent(exponent, i / FIELDS_A_LEVEL) + (i32)(i % FIELDS_A_LEVEL) * FIELD_BITS;
}

/* Returns word i of a thread's words, which blocks add up: its fields, and then its notes. */
PURE u32 word_of(const u64 *record, u32 i) {
    if (i < FIELDS) return field_of(record, i);
    return (u32)(record[SEEN] & SEEN_MIXED) |
           (record[SEEN] & SEEN_LIMBS ? 1u << THREADS_LIMBED : 0);
}

/* A block's words in shared memory: a row of them for each warp where a warp's lanes can be added up at once, else one
 * row for all threads. */
#define BY_WARPS (WARP_AT_ONCE && BLOCK >= WARP)
#define ROWS     (BY_WARPS ? WARPS : 1)

/* Adds a thread's words to the block's, which are 0 at first. All threads of the block call this. */
INLINED void add_words(const u64 *record, SHARED u32 *words) {
#if BY_WARPS
    u32 sum[GRID_WORDS];
    UNROLL
    for (u32 i = 0; i < GRID_WORDS; i++)
        sum[i] = __reduce_add_sync(FULL_WARP, word_of(record, i));
    if (threadIdx.x % WARP == 0) {
        UNROLL
        for (u32 i = 0; i < GRID_WORDS; i++)
            words[threadIdx.x / WARP * GRID_WORDS + i] = sum[i];
    }
#else
    for (u32 i = 0; i < GRID_WORDS; i++)
        atomicAdd(&words[i], word_of(record, i));
#endif
}

/* Returns word i of the block: the sum of its rows. */
INLINED u32 block_word(const SHARED u32 *words, u32 i) {
    u32 sum = 0;
    UNROLL
    for (u32 k = 0; k < ROWS; k++)
        sum += words[k * GRID_WORDS + i];
    return sum;
}

/* Returns word i of the block as a number. A highest field has a sign. The last word becomes 1 if
 * some term is not -0, and 2^MANY more if the superaccumulator has terms. */
PURE i64 number_of_word(u32 w, u32 i) {
    if (i == FIELDS)
        return (i64)((w & ((1u << THREADS_LIMBED) - 1)) != 0) +
               (i64)(w >> THREADS_LIMBED ? 1u << MANY : 0);
    return IS_HIGHEST(i) ? (i64)(i32)w : (i64)w;
}

/* ---- From fields to the value ------------------------------------------------------------------- */

/* The total of all elements as an integer of TOTAL_WORDS words, in units of the last level.
 *
 * Bounds. Each field's total is below 2^47 in magnitude, so that it fits beside a count (COUNT_BITS): a lower field of
 * a thread is below 2^24, and a grid has at most SUM_THREADS_MOST = 2^23 threads (request.h); highest fields of fewer
 * than 2^TERMS_MOST elements add up to less than 2^(TERMS_MOST + 3), and one more for each thread. A level of floats
 * has a total below 2^62, and with what the level below it carries below 2^63. */
#define TOTAL_BITS                                                                                 \
    (LEVELS * LEVELS_APART) /* bits of a total: LEVELS_APART for the digit of each level */
/* The most bits that a total has above TOTAL_BITS, with the sign: MANY_BITS for any grid, FEW_BITS for a single
 * block. */
#define MANY_BITS   (TERMS_MOST + 1 + MANTISSA - LEVELS_APART)
#define FEW_BITS    (17 + MANTISSA - LEVELS_APART)
#define TOTAL_WORDS ((TOTAL_BITS + MANY_BITS + 63) / 64)
#define FIELD_MASK  (((u64)1 << FIELD_BITS) - 1)
#define LEVEL_MASK  (((u64)1 << LEVELS_APART) - 1)

/* Adds the carry to the total of level k. Returns its lowest LEVELS_APART bits; *carry becomes the
 * bits above them. */
INLINED u64 level_digit(const SHARED u64 *total, u32 k, i64 *carry) {
    const SHARED u64 *fields = total + k * FIELDS_A_LEVEL;
#if TERM_F64
    const i64 a = (i64)fields[0] + *carry;
    const i64 b = (i64)fields[1] + (a >> FIELD_BITS), c = (i64)fields[2] + (b >> FIELD_BITS);
    const u64 low = ((u64)a & FIELD_MASK) | ((u64)b & FIELD_MASK) << FIELD_BITS;
#if LEVELS_APART >= 2 * FIELD_BITS
    *carry = c >> (LEVELS_APART - 2 * FIELD_BITS);
#else
    *carry = (i64)((u64)c << (2 * FIELD_BITS - LEVELS_APART) | low >> LEVELS_APART);
#endif
    if (FIELDS_A_LEVEL > 3)
        *carry += (i64)(fields[FIELDS_A_LEVEL - 1] << (3 * FIELD_BITS - LEVELS_APART));
    return (low | (u64)c << (2 * FIELD_BITS)) & LEVEL_MASK;
#else
    u64 sum = (u64)*carry;
    UNROLL
    for (u32 i = 0; i < FIELDS_A_LEVEL; i++)
        sum += fields[i] << (i * FIELD_BITS);
    *carry = (i64)sum >> LEVELS_APART;
    return sum & LEVEL_MASK;
#endif
}

/* Returns the bits of the float nearest to the fields' total. `bits_above`: how many bits, with the sign, the total may
 * have above the first level's. */
INLINED u64 round_fields(const SHARED u64 *total, i32 window_exponent, u32 bits_above,
                         float_format f) {
    const u32 words = (TOTAL_BITS + bits_above + 63) / 64;
    i32 exponent = level_exponent(window_exponent, LEVELS - 1);
    u64 part[TOTAL_WORDS], digit[LEVELS];
    i64 carry = 0;
#if !TERM_F64 && !CHAINED && LEVELS > 1 && BLOCK <= 256
    /* Where the total is an integer of 63 bits in units of the second level, and the result a normal f32, the hardware
     * rounds it. */
    const i64 first = (i64)(total[0] + (total[1] << FIELD_BITS));
    u32 below = 0;
    UNROLL
    for (u32 i = 2 * FIELDS_A_LEVEL; i < FIELDS; i++)
        below |= total[i] != 0;
    if (f.mantissa == 23 && !below && (first + ((i64)1 << 38)) >> 39 == 0) {
        const i64 units = (i64)((u64)first << MANTISSA) +
                          (i64)(total[FIELDS_A_LEVEL] + (total[FIELDS_A_LEVEL + 1] << FIELD_BITS));
        const i32 unit = level_exponent(window_exponent, 1);
        const u32 rounded = float_bits((float)units);
        const i32 field = (i32)(rounded >> 23 & 255) + unit;
        if (units == 0) return 0;
        if (field > 0 && field < 255) return rounded + ((u32)unit << 23);
    }
#endif
    UNROLL
    for (u32 k = LEVELS; k-- > 0;)
        digit[k] = level_digit(total, k, &carry);
#if defined(TYPE_F64) && LEVELS == 2
    /* The total is first * 2^LEVELS_APART + digit[1] units. If `first` has 61 bits at most, and the result is a
     * normal f64, the hardware rounds it. If `first` is a double, one fused operation adds both terms. Else `first`
     * is rounded with one more bit, which says whether digit[1] is 0. */
    const i64 first = (i64)((u64)carry << LEVELS_APART | digit[0]);
    if (f.mantissa == 52 && (carry + 256) >> 9 == 0) {
        const double rounded = (first + ((i64)1 << 53)) >> 54 == 0
                                   ? fused((double)first, 0x1p52, (double)(i64)digit[1])
                                   : (double)(i64)((u64)first << 1 | (digit[1] != 0)) * 0x1p51;
        const i32 field = (i32)(double_bits(rounded) >> 52 & 2047) + exponent;
        if (rounded == 0) return 0;
        if (field > 0 && field < 2047) return double_bits(rounded) + ((u64)(i64)exponent << 52);
    }
#endif
    UNROLL
    for (u32 w = 0; w < words; w++)
        part[w] = 0;
    UNROLL
    for (u32 k = LEVELS; k-- > 0;) {
        const u32 at = (LEVELS - 1 - k) * LEVELS_APART, w = at / 64, shift = at % 64;
        part[w] |= digit[k] << shift;
        if (shift + LEVELS_APART > 64) part[w + 1] |= digit[k] >> (64 - shift) % 64;
    }
    part[TOTAL_BITS / 64] |= (u64)carry << TOTAL_BITS % 64;
    UNROLL
    for (u32 w = TOTAL_BITS / 64 + 1; w < words; w++) {
        part[w] = (u64)(carry >> (64 - TOTAL_BITS % 64));
        carry >>= 63; /* the sign */
    }
    const u64 negative = part[words - 1] >> 63;
    u64 one = negative;
    UNROLL
    for (u32 w = 0; w < words; w++) { /* the magnitude */
        part[w] = (part[w] ^ (0 - negative)) + one;
        one = one && part[w] == 0;
    }
    UNROLL
    for (u32 i = 1; i < words; i++) /* the leading word comes to the top */
        if (part[words - 1] == 0) {
            UNROLL
            for (u32 w = words - 1; w > 0; w--)
                part[w] = part[w - 1];
            part[0] = 0;
            exponent -= 64;
        }
    const u64 top = part[words - 1], next = words > 1 ? part[words - 2] : 0;
    if (top == 0) return 0;
    const u32 high = (u32)(top >> 32);
    const u32 shift = high ? leading_zeros(high) : 32 + leading_zeros((u32)top);
    u32 sticky = next << shift != 0;
    UNROLL
    for (u32 w = 0; w + 2 < words; w++)
        sticky |= part[w] != 0;
    return round_bits(f, (u32)negative, top << shift | next >> 1 >> (63 - shift),
                      exponent + 64 * ((i32)words - 1) - (i32)shift, sticky);
}

/* Adds the fields' totals to the superaccumulator; by one thread. */
INLINED void flush_fields(const SHARED u64 *total, i32 exponent, SHARED u64 *limbs) {
    UNROLL_NOT
    for (u32 i = 0; i < FIELDS; i++)
        if (total[i] != 0) add_limbs(limbs, (i64)total[i], field_exponent(exponent, i));
}

/* Returns the sum's bits, by the rules for infinities, NaNs and zeros. `total` holds the fields'
 * totals, and then the notes. */
INLINED u64 sum_bits(const SHARED u64 *total, i32 exponent, u32 bits_above, SHARED u64 *limbs,
                     u64 n, float_format f) {
    const u64 seen = total[FIELDS];
    if (n != 0 && (seen & ((1u << MANY) - 1)) == 0) return float_sign(f); /* -0 and nothing else */
    if (seen >> MANY == 0) return round_fields(total, exponent, bits_above, f);

    const u64 plus = limbs[COUNT_PLUS], minus = limbs[COUNT_MINUS];
    if (limbs[COUNT_NANS] || (plus && minus)) return float_nan_bits(f);
    if (plus || minus) return float_infinity_bits(f, minus != 0);
    flush_fields(total, exponent, limbs);
    return round_limbs(limbs, f);
}

/* ---- The grid's sum ------------------------------------------------------------------------------ */

/* A counting word has the number of blocks that have added to it in its COUNT_BITS low bits, and their sum above. */
#define COUNT_BITS 16
#define COUNT_MASK (((u64)1 << COUNT_BITS) - 1)

/* Adds the block's words to the counting words, a thread a word, if the block `joins` the others;
 * its fields count as 0 if they went `elsewhere`. All threads of the block call this. Returns
 * whether this is the last block. Then, after a barrier, the sums are in `total`, and the counting
 * words are 0 again. */
INLINED u32 add_to_grid(const SHARED u32 *words, u32 joins, u32 elsewhere, GLOBAL u64 *grid_words,
                        SHARED u64 *total, SHARED u32 *last) {
    if (!joins && threadIdx.x == 0) *last = 0;
    for (u32 i = threadIdx.x; joins && i < GRID_WORDS; i += BLOCK) {
        const i64 number = elsewhere && i < FIELDS ? 0 : number_of_word(block_word(words, i), i);
        const u64 mine = (u64)number << COUNT_BITS | 1;
        total[i] = atomicAdd(&grid_words[i], mine) + mine;
        if (i == FIELDS) *last = (total[i] & COUNT_MASK) == gridDim.x;
    }
    __syncthreads();
    if (*last)
        for (u32 i = threadIdx.x; i < GRID_WORDS; i += BLOCK) {
            u64 w = total[i];
            while ((w & COUNT_MASK) != gridDim.x) /* other blocks' additions are on their way */
                w = read_word(&grid_words[i]);
            total[i] = (u64)((i64)w >> COUNT_BITS);
            write_word(&grid_words[i], (u64)0);
        }
    return *last;
}

/* TRIES_FIRST is 1 if a block tries its first tiles with the common window, and takes a window of its own where these
 * do not fit. For bf16 and in chains, where tiles have the most elements, the registers do not suffice for that.
 * There each thread changes its window by itself, as it does for later tiles. */
#if defined(TYPE_BF16) || CHAINED
#define TRIES_FIRST 0
#else
#define TRIES_FIRST 1
#endif

BEGINS_EARLY

/* Begins a thread's record of no terms; n is the length of the array. */
INLINED void begin_record(u64 *record, u64 n) {
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;
#if defined(LIFT_MAGNITUDE) || defined(LIFT_SQUARE)
    if (n > 0) record[SEEN] = SEEN_MIXED; /* no term is -0 */
#endif
}

/* Returns the window that all blocks have in common: that for `most`, the largest of a thread's samples. All threads of the
 * block call this. */
INLINED window common_window(u32 most, SHARED u64 *warps, SHARED u64 *exchange) {
#if BY_WARPS
    if (threadIdx.x < WARP) {
        most = warp_most(most);
        if (threadIdx.x == 0) warps[0] = most;
    }
    __syncthreads();
    most = (u32)warps[0];
#else
    most = block_most(most, warps, exchange);
#endif
    return choose_window((raw)most << (8 * (u32)sizeof(raw) - 32));
}

#if TRIES_FIRST
/* Tries the threads' first tiles with the common window, *mine. If it fits all of them, adds them and returns 0.
 * Otherwise adds nothing, makes *mine the block's own window, and returns not 0. *unfit is 0 before. All threads of
 * the block call this. */
INLINED u32 try_first_tile(const input *t, window *mine, adder *a, u64 *record, SHARED u32 *unfit,
                           SHARED u64 *warps, SHARED u64 *exchange) {
    const window common = *mine;
    if (!(record[SEEN] & SEEN_MIXED) && any_not_minus_zero(t)) record[SEEN] |= SEEN_MIXED;
#if HAS_TOP_LEVELS
    if (common.sigma == 0 || !extract_top(t, common, record)) a->deep = DEEP_TILES;
    if (a->deep > 0 && (common.sigma == 0 || !extract(t, common, record))) atomicAdd(unfit, 1u);
#else
    if (common.sigma == 0 || !extract(t, common, record)) atomicAdd(unfit, 1u);
#endif
    __syncthreads();
    const u32 own = *unfit;
    if (UNIFORM(own)) {
        const window w = block_window(wanted(t), warps, exchange);
        if (own) {
            UNROLL
            for (u32 k = 0; k < TOTALS; k++)
                record[k] = 0;
            *mine = w;
            *a = adder_with(w);
        }
    }
    return own;
}
#else
INLINED u32 try_first_tile(const input *t, window *mine, adder *a, u64 *record, SHARED u32 *unfit,
                           SHARED u64 *warps, SHARED u64 *exchange) {
    return 0;
}
#endif

/* Adds the block's superaccumulator to the array's, which is in the head; and the block's fields, too, where these go
 * `elsewhere` than to the counting words. `used`: the block's superaccumulator or its lanes' sums have terms. All
 * threads call this. */
INLINED void deliver_block(u32 used, u32 elsewhere, u32 request, i32 exponent,
                           SHARED u32 *lane_sums, SHARED u64 *limbs, const SHARED u32 *words,
                           GLOBAL u64 *head) {
    if (used) collect_lane_sums(lane_sums, limbs);
    if (threadIdx.x == 0 && elsewhere) {
        UNROLL_NOT
        for (u32 i = 0; i < FIELDS; i++)
            add_limbs(limbs, number_of_word(block_word(words, i), i), field_exponent(exponent, i));
        if (!request && number_of_word(block_word(words, FIELDS), FIELDS) & 1)
            atomicOr(&head[1 + MIXED], (u64)1);
    }
    __syncthreads();
    if (used || !request) deliver_limbs(limbs, head + 1);
}

/* Writes the sum that is asked for, by the last block. All its threads call this. */
INLINED void put_sum(const SHARED u64 *total, i32 exponent, SHARED u64 *limbs, GLOBAL u64 *head,
                     u64 n, u32 last, u32 request, GLOBAL u64 *result) {
    const u32 limbs_there = last && total[FIELDS] >> MANY != 0;
    if (UNIFORM(limbs_there)) {
        __threadfence();
        if (limbs_there) clear_limbs(limbs);
        __syncthreads();
        if (limbs_there) collect_limbs(limbs, head + 1);
        __syncthreads();
    }
    if (last && request && threadIdx.x == 0)
        put_result(result, request,
                   sum_bits(total, exponent, MANY_BITS, limbs, n, requested_format(request)),
                   RESULT_OK);
}

KERNEL reduce(const GLOBAL element *x, const GLOBAL element *y, u64 n, u64 first_index,
              GLOBAL u64 *heads, GLOBAL u64 *boards, u64 place, u32 request, GLOBAL u64 *result) {
    __shared__ u64 limbs[LIMB_WORDS];
    __shared__ u32 lane_sums[LANE_SUMS];
    __shared__ u64 warps[WARPS];
    __shared__ u64 total[GRID_WORDS];
    __shared__ u32 words[ROWS * GRID_WORDS];
    __shared__ u64 exchange[EXCHANGE];
    __shared__ u32 unfit;
    __shared__ u32 limbed;
    __shared__ u32 number;

    wait_for_end_of_earlier();
    GLOBAL u64 *head = heads + (u32)place;
    const even_share s = find_even_share(x, n);
    const u32 tiles = s.tiles + (s.loose + BLOCK * TILE - 1) / (BLOCK * TILE);
    u64 record[WORDS];
    begin_record(record, n);
    input t, next; /* the next one is on its way while another is added */
    load_any(&next, x, y, s, 0);
    const u32 most = sampled(x, y, n);
    clear_limbs(limbs);
    clear_lane_sums(lane_sums);
    for (u32 i = threadIdx.x; i < ROWS * GRID_WORDS; i += BLOCK)
        words[i] = 0;
    if (threadIdx.x == 0) limbed = unfit = 0;
    const window common = common_window(most, warps, exchange); /* of all blocks */
    window mine = common;                                       /* of this block */
    adder a = adder_with(common);
    u32 own = 0; /* the block has another window */
    if (TRIES_FIRST) {
        t = next;
        if (tiles > 1) load_any(&next, x, y, s, 1);
        own = try_first_tile(&t, &mine, &a, record, &unfit, warps, exchange);
    }
    UNROLL_NOT
    for (u32 i = TRIES_FIRST && !own ? 1 : 0; i < tiles; i++) {
#if BLOCK > 1
        if (!TRIES_FIRST || i > 0) {
            t = next;
            if (i + 1 < tiles) load_any(&next, x, y, s, i + 1);
        }
#else
        load_any(&t, x, y, s, i);
#endif
        add_tile(&t, &a, i, record, limbs, lane_sums);
    }

    let_next_begin(); /* not earlier: the next launch's blocks would compete with this one's reads */
    if (a.window.exponent != mine.exponent) flush(record, a.window.exponent, limbs);
    if (own) record[SEEN] |= SEEN_LIMBS;
    if (record[SEEN] & SEEN_LIMBS) atomicAdd(&limbed, 1u);
    add_words(record, words);
    __syncthreads();
    const u32 used = limbed; /* something is in the limbs, or will be */
    if (UNIFORM(used || !request)) {
        deliver_block(used, own || !request, request, mine.exponent, lane_sums, limbs, words, head);
        if (!UNIFORM(request)) return;
        if (used) __threadfence();
        __syncthreads();
    }
    const u32 last = add_to_grid(words, request != 0, own, head + 1 + MIXED + 1, total, &number);
    if (!UNIFORM(last)) return;
    __syncthreads();
    put_sum(total, common.exponent, limbs, head, n, last, request, result);
}

/* ---- One block ---------------------------------------------------------------------------------- */

#if BLOCK > 1 && !defined(__OPENCL_VERSION__)

/* Returns the upper 32 bits of the largest magnitude of a tile's first `packs` packs. */
INLINED u32 largest_alone(const input *t, u32 packs) {
    raw most = 0;
#if TOP_CHAINED
    UNROLL
    for (u32 k = 0; k < IN_FLIGHT; k++)
        if (k < packs) {
            UNROLL
            for (u32 i = k * 4; i < (k + 1) * 4; i++) {
                UNROLL
                for (u32 up = 0; up < NUMBER_BITS; up += 16)
                    most = greatest_unsigned(most, (t->x.word[i] & 0x7fff7fffu) << up);
            }
        }
    most = UPPER_HALF(greatest_unsigned, most) << 16;
#else
    UNROLL
    for (u32 k = 0; k < IN_FLIGHT; k++)
        if (k < packs) {
            UNROLL
            for (u32 i = k * PACK; i < (k + 1) * PACK; i++) {
                const raw m = magnitude_bits(SIZE_OF(t, i));
                most = m > most ? m : most;
            }
        }
#endif
    return (u32)(most >> (8 * (u32)sizeof(raw) - 32));
}

/* Sums n <= BLOCK * TILE elements in a single block. A launch of one block is mostly latency, code
 * fetches included. So there is only the code of tame data, and one loop for all other data. The
 * window is that of the greatest term. If it does not fit all tiles, all terms go to the
 * superaccumulator one by one. */
KERNEL alone(const GLOBAL element *x, const GLOBAL element *y, u64 n, u64 first_index,
             GLOBAL u64 *heads, GLOBAL u64 *boards, u64 place, u32 request, GLOBAL u64 *result) {
    __shared__ u64 limbs[LIMB_WORDS];
    __shared__ u64 warps[WARPS];
    __shared__ u64 total[GRID_WORDS];
    __shared__ u32 words[ROWS * GRID_WORDS];
    __shared__ u64 exchange[EXCHANGE];
    const u32 count = (u32)n, below = 8 * (u32)sizeof(raw) - 32;
    u64 record[WORDS];
    input t;
    wait_for_earlier();
#if defined(PAIRS)
    const u32 packed = count % PACK == 0 && ((size_t)x | (size_t)y) % 16 == 0;
    load_alone(&t.y, y, count, BLOCK, packed, (element)0);
#else
    const u32 packed = count % PACK == 0 && (size_t)x % 16 == 0;
#endif
    load_alone(&t.x, x, count, BLOCK, packed, MINUS_ZERO);
    const u32 packs = packed ? (count / PACK + BLOCK - 1) / BLOCK : IN_FLIGHT;
#if !BY_WARPS
    for (u32 i = threadIdx.x; i < GRID_WORDS; i += BLOCK)
        words[i] = 0;
#endif
    const u32 highest = block_most(largest_alone(&t, packs), warps, exchange);
    /* A chain adds up a tile's terms before its level is read, so that a window that the largest term chooses needs
     * twice the room. */
    const u32 more = (u32)(CHAINED && !FLOAT_SQUARES) << (MANTISSA - below) % 32;
    const window w = choose_window((raw)(highest + more) << below);
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        record[k] = 0;
#if defined(LIFT_MAGNITUDE) || defined(LIFT_SQUARE)
    if (n > 0) record[SEEN] = SEEN_MIXED; /* no term is -0 */
#else
    if (highest != 0 || any_not_minus_zero(&t)) record[SEEN] = SEEN_MIXED;
#endif
#if CHAINED
    if (w.sigma == 0 || !extract(&t, w, record)) record[SEEN] |= SEEN_LIMBS;
#else
    u32 fits = 0;
#if HAS_TOP_LEVELS
    if (w.sigma != 0 && packs == IN_FLIGHT) fits = extract_top(&t, w, record);
#endif
    if (!fits && (w.sigma == 0 || !extract_packs(&t, packs, w, record))) record[SEEN] |= SEEN_LIMBS;
#endif
    add_words(record, words);
    __syncthreads();
    UNROLL_NOT
    for (u32 i = threadIdx.x; i < GRID_WORDS; i += BLOCK)
        total[i] = (u64)number_of_word(block_word(words, i), i);
    __syncthreads();
    const u32 unfit = total[FIELDS] >> MANY != 0;
    if (UNIFORM(unfit)) {
        clear_limbs(limbs);
        for (u32 i = threadIdx.x; i < FIELDS; i += BLOCK)
            total[i] = 0;
        __syncthreads();
        UNROLL_NOT
        for (u32 i = threadIdx.x; i < count; i += BLOCK)
#if defined(PAIRS)
            add_element(widen(x[i]), widen(y[i]), record, limbs);
#else
            add_element(widen(x[i]), widen(x[i]), record, limbs);
#endif
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        const u64 bits = sum_bits(total, w.exponent, FEW_BITS, limbs, n, requested_format(request));
        put_result(result, request, bits, RESULT_OK);
    }
}
#endif
