/*
 * moments - the exact sums of f16, bf16 or f32, and of their squares, in one reading of memory.
 *
 * Each tile is added to both, one after the other, with windows, totals and a superaccumulator for either (adding.h): a
 * tile that only the squares' window does not fit goes to their lanes' sums only. Elements
 * are terms of the same type as squares, and so mostly doubles (lift.h).
 *
 * The launch's words: [0] is not used; then the record of the elements' sum as sum.cu leaves it, and behind it that of
 * the squares. No value is ever asked for: what needs both sums is worked out from records.
 */
#define LIFT_MOMENTS
#define BLOCKS_A_UNIT GPU_PRODUCT_BLOCKS_A_UNIT

#include "adding.h"

#define RECORD (MIXED + 1) /* words of a sum's record */

/* What a thread has of one of the sums. */
typedef struct moment {
    window first; /* its block's */
    adder a;
    u64 record[WORDS];
} moment;

INLINED void begin(moment *m, input *t, u32 squares, SHARED u64 *warps, SHARED u64 *exchange) {
    t->squares = squares;
    m->first = block_window(wanted(t), warps, exchange);
    m->a = adder_with(m->first);
    m->a.squares = squares;
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        m->record[k] = 0;
}

INLINED void add_both(input *t, u32 number, moment *sum, moment *squares, SHARED u64 *limbs,
                      SHARED u64 *square_limbs, SHARED u32 *lane_sums,
                      SHARED u32 *square_lane_sums) {
    t->squares = 0;
    add_tile(t, &sum->a, number, sum->record, limbs, lane_sums);
    t->squares = 1;
    add_tile(t, &squares->a, number, squares->record, square_limbs, square_lane_sums);
}

/* All that the block's threads have goes to its limbs. */
INLINED void finish(moment *m, SHARED u64 *limbs, SHARED u32 *lane_sums, SHARED u64 *warps,
                    SHARED u64 *exchange) {
    if (m->a.window.exponent != m->first.exponent) flush(m->record, m->a.window.exponent, limbs);
    merge_block(m->record, warps, exchange);
    collect_lane_sums(lane_sums, limbs);
    if (threadIdx.x == 0) flush(m->record, m->first.exponent, limbs);
}

KERNEL reduce(const GLOBAL element *x, const GLOBAL element *y, u64 n, u64 first_index,
              GLOBAL u64 *heads, GLOBAL u64 *boards, u64 place, u32 request, GLOBAL u64 *result) {
    __shared__ u64 limbs[LIMB_WORDS];
    __shared__ u64 square_limbs[LIMB_WORDS];
    __shared__ u32 lane_sums[LANE_SUMS];
    __shared__ u32 square_lane_sums[LANE_SUMS];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];

    GLOBAL u64 *work = heads + (u32)place + 1;
    const share s = find_share(x, n);
    const u32 tiles = s.tiles + (s.loose + BLOCK * TILE - 1) / (BLOCK * TILE);
    moment sum, squares;
    clear_limbs(limbs);
    clear_limbs(square_limbs);
    clear_lane_sums(lane_sums);
    clear_lane_sums(square_lane_sums);

    input next; /* on its way while another is added */
    load_any(&next, x, y, s, 0);
    begin(&sum, &next, 0, warps, exchange);
    begin(&squares, &next, 1, warps + WARPS, exchange);
    squares.record[SEEN] = SEEN_MIXED; /* no square is -0 */
#if BLOCK > 1
    UNROLL_NOT
    for (u32 i = 0; i < tiles; i++) {
        input t = next;
        if (i + 1 < tiles) load_any(&next, x, y, s, i + 1);
        add_both(&t, i, &sum, &squares, limbs, square_limbs, lane_sums, square_lane_sums);
    }
#else
    for (u32 i = 0; i < tiles; i++) {
        input t;
        load_any(&t, x, y, s, i);
        add_both(&t, i, &sum, &squares, limbs, square_limbs, lane_sums, square_lane_sums);
    }
#endif

    finish(&sum, limbs, lane_sums, warps, exchange);
    finish(&squares, square_limbs, square_lane_sums, warps, exchange);
    __syncthreads();
    deliver_limbs(limbs, work);
    deliver_limbs(square_limbs, work + RECORD);
    if (threadIdx.x == 0 && n > 0) {
        if (sum.record[SEEN] & SEEN_MIXED) atomicOr(&work[MIXED], (u64)1);
        atomicOr(&work[RECORD + MIXED], (u64)1);
    }
}
