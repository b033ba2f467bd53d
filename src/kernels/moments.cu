/*
 * moments - the exact sums of f16, bf16 or f32, and of their squares, in one reading of memory.
 *
 * A thread has one window, for the squares, from which that of the elements follows (chains.h). All threads of a
 * block begin with the same one. A tile that does not fit gets a larger window, or goes to the sums of the thread's
 * lane. There are two sums of each lane and two superaccumulators (adding.h): for elements and for squares. Elements
 * and squares are terms of one type, doubles.
 *
 * The launch's words: [0] is not used; then the record of the elements' sum as sum.cu leaves it, and behind it that of
 * the squares. No value is ever asked for: values that need both sums are computed from records.
 */
#define LIFT_MOMENTS
#define BLOCKS_A_UNIT GPU_PRODUCT_BLOCKS_A_UNIT

#include "adding.h"

#define RECORD (MIXED + 1) /* words of a sum's record */

/* A thread's totals of one of the two sums. */
typedef struct moment {
    adder a; /* its window is not used */
    u64 record[WORDS];
} moment;

typedef struct both {
    window window; /* of the squares; `window`, `unfit` and `next` as in struct adder */
    u32 unfit, next;
    moment elements, squares;
} both;

INLINED void begin(moment *m, u32 squares) {
    const window none = {0, 0};
    m->a = adder_with(none);
    m->a.squares = squares;
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        m->record[k] = 0;
}

/* Adds the totals of both sums to their superaccumulators; `exponent` is that of the squares' window. */
INLINED void flush_both(both *m, i32 exponent, SHARED u64 *limbs, SHARED u64 *square_limbs) {
    flush(m->elements.record, elements_exponent(exponent), limbs);
    flush(m->squares.record, exponent, square_limbs);
}

/* Adds a tile that did not fit the window, or was not tried, as add_again() does: with a larger window, or to the
 * lane's sums. */
INLINED void add_both_again(const input *given, u32 number, both *m, SHARED u64 *limbs,
                            SHARED u64 *square_limbs, SHARED u32 *lane_sums,
                            SHARED u32 *square_lane_sums) {
    input t;
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++)
        t.x.word[i] = anew(given->x.word[i]);
    t.squares = 1;
#if !ONE_WINDOW
    m->unfit = number == m->next ? m->unfit + 1 : 1;
    m->next = number + 1;
    if (m->unfit <= UNFIT_TILES || m->unfit % UNFIT_TRIES == 0) {
        const window own = choose_window(largest(&t));
        if (own.sigma != 0 && (m->window.sigma == 0 || own.exponent > m->window.exponent)) {
            flush_both(m, m->window.exponent, limbs, square_limbs);
            m->window = own;
            if (extract_chains(&t.x, own, m->squares.record, m->elements.record, 1)) {
                m->unfit = 0;
                return;
            }
        }
    }
    if (m->unfit >= UNFIT_TILES) m->window.sigma = 0;
#endif
    add_unfitting(&t, &m->squares.a, m->squares.record, square_limbs, square_lane_sums);
    t.squares = 0;
    add_unfitting(&t, &m->elements.a, m->elements.record, limbs, lane_sums);
}

/* Adds a tile to both sums; `number` as add_tile() takes it. */
INLINED void add_both(const input *t, u32 number, both *m, SHARED u64 *limbs,
                      SHARED u64 *square_limbs, SHARED u32 *lane_sums,
                      SHARED u32 *square_lane_sums) {
    u64 *seen = &m->elements.record[SEEN];
    if (!(*seen & SEEN_MIXED) && any_not_minus_zero(t)) *seen |= SEEN_MIXED;
    if (m->window.sigma == 0 ||
        !extract_chains(&t->x, m->window, m->squares.record, m->elements.record, 1))
        add_both_again(t, number, m, limbs, square_limbs, lane_sums, square_lane_sums);
}

/* Adds the totals of the block's threads and lanes for one sum to its limbs. */
INLINED void finish(moment *m, i32 exponent, SHARED u64 *limbs, SHARED u32 *lane_sums,
                    SHARED u64 *warps, SHARED u64 *exchange) {
    merge_block(m->record, warps, exchange);
    collect_lane_sums(lane_sums, limbs);
    if (threadIdx.x == 0) flush(m->record, exponent, limbs);
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
    const even_share s = find_even_share(x, n);
    const u32 tiles = s.tiles + (s.loose + BLOCK * TILE - 1) / (BLOCK * TILE);
    both m;
    begin(&m.elements, 0);
    begin(&m.squares, 1);
    m.unfit = m.next = 0;
    clear_limbs(limbs);
    clear_limbs(square_limbs);
    clear_lane_sums(lane_sums);
    clear_lane_sums(square_lane_sums);

    input next; /* on its way while another is added */
    load_any(&next, x, y, s, 0);
    next.squares = 1;
    const window common = block_window(wanted(&next), warps, exchange);
    m.window = common;
#if BLOCK > 1
    UNROLL_NOT
    for (u32 i = 0; i < tiles; i++) {
        const input t = next;
        if (i + 1 < tiles) load_any(&next, x, y, s, i + 1);
        add_both(&t, i, &m, limbs, square_limbs, lane_sums, square_lane_sums);
    }
#else
    for (u32 i = 0; i < tiles; i++) {
        input t;
        load_any(&t, x, y, s, i);
        add_both(&t, i, &m, limbs, square_limbs, lane_sums, square_lane_sums);
    }
#endif

    if (m.window.exponent != common.exponent)
        flush_both(&m, m.window.exponent, limbs, square_limbs);
    finish(&m.elements, elements_exponent(common.exponent), limbs, lane_sums, warps, exchange);
    finish(&m.squares, common.exponent, square_limbs, square_lane_sums, warps, exchange);
    __syncthreads();
    deliver_limbs(limbs, work);
    deliver_limbs(square_limbs, work + RECORD);
    if (threadIdx.x == 0 && n > 0) {
        if (m.elements.record[SEEN] & SEEN_MIXED) atomicOr(&work[MIXED], (u64)1);
        atomicOr(&work[RECORD + MIXED], (u64)1);
    }
}
