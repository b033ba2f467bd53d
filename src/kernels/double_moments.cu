/*
 * double_moments - the exact sums of f64, and of their squares, in one reading of memory where they are tame.
 *
 * All tiles of a block go to chains with one window (chains.h), which is chosen for its first and its last tile.
 * Squares go to one level less than there are, unless more than an eighth of the block's threads find that their
 * first tile then does not fit. Shared memory has no room for lanes' sums (lane_sums.h) of elements and of squares at
 * once. So a tile that does not fit the window is only noted. Noted tiles are read again, twice: for the sum of
 * elements, and for that of squares. Where most of a block's threads find that their first tile does not fit, nothing
 * is tried, and all tiles count as noted. Only the tile, the window and the number of levels decide whether a tile
 * fits. So each thread finds out again which of its tiles in a noted group did not fit.
 *
 * The launch's words: [0] is not used; then the record of the elements' sum as sum.cu leaves it, and behind it that of
 * the squares. No value is ever asked for.
 */
#define LIFT_MOMENTS
#define WIDE_LIMBS
#define BLOCKS_A_UNIT GPU_PRODUCT_BLOCKS_A_UNIT

#include "adding.h"

/* The elements' sum needs a part of the wide limbs only, and its record has no others. */
#define ELEMENT_LIMBS 68
#define FIRST_LIMB    ((LIMBS - ELEMENT_LIMBS) / 2)
#define RECORD        (ELEMENT_LIMBS + 4) /* words of the elements' record */

/* The most groups into which a block's tiles are divided. A group is noted as a whole. */
#define NOTES 512u

/* Adds a tile's elements to the sum of the thread's lane, and counts infinities and NaNs. *tiles: how many the thread
 * has added since it last emptied that sum. */
INLINED void add_elements(const tile *t, u32 *tiles, SHARED u64 *limbs, SHARED u32 *lane_sums) {
    if (*tiles == 0) atomicAdd(&lane_sums[USED], 1u);
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const double x = t->e[i];
        if (is_finite(x))
            add_to_lane(x, 53, lane_sums + threadIdx.x % WARP);
        else
            add_special(x != x, x < 0, limbs);
    }
    if (++*tiles == LANE_TILES) {
        *tiles = 0;
        empty_lane(lane_sums, limbs);
    }
}

/* Adds the block's limbs to the elements' record. Limbs outside it are 0; its top one gets nothing but a carry. */
INLINED void deliver_elements(const SHARED u64 *limbs, GLOBAL u64 *total) {
    for (u32 i = threadIdx.x; i < LIMB_WORDS; i += BLOCK) {
        const u64 w = i < LIMBS ? carried(limbs[i], i > 0 ? limbs[i - 1] : 0, i) : limbs[i];
        if (i < LIMBS && (i < FIRST_LIMB || i >= FIRST_LIMB + ELEMENT_LIMBS)) continue;
        if (w != 0) atomicAdd(&total[i < LIMBS ? i - FIRST_LIMB : i - LIMBS + ELEMENT_LIMBS], w);
    }
}

/* Adds up the totals of all threads, and adds that to the block's limbs. */
INLINED void finish(u64 *record, i32 exponent, SHARED u64 *limbs, SHARED u64 *warps,
                    SHARED u64 *exchange) {
    merge_block(record, warps, exchange);
    if (threadIdx.x == 0) flush(record, exponent, limbs);
}

/* Adds all tiles of the block, of which the first one is in `next`, to chains; notes the group of
 * each that does not fit. A loop for each number of levels has its registers to itself. */
#define ADD_ALL_CHAINS(deep)                                                                       \
    UNROLL_NOT                                                                                     \
    for (u32 i = 0; i < tiles; i++) {                                                              \
        t = next;                                                                                  \
        if (i + 1 < tiles) load_any(&next, x, y, s, i + 1);                                        \
        if (!mixed) mixed = any_not_minus_zero(&t);                                                \
        if (!extract_chains(&t.x, w, squares, elements, deep)) atomicExch(&notes[i / each], 1u);   \
    }

KERNEL reduce(const GLOBAL element *x, const GLOBAL element *y, u64 n, u64 first_index,
              GLOBAL u64 *heads, GLOBAL u64 *boards, u64 place, u32 request, GLOBAL u64 *result) {
    __shared__ u64 limbs[LIMB_WORDS];
    __shared__ u64 square_limbs[LIMB_WORDS];
    __shared__ u32 lane_sums[LANE_SUMS];
    __shared__ u32 notes[NOTES]; /* 1: a tile of this group does not fit */
    __shared__ u32 noted[NOTES]; /* the numbers of those groups */
    __shared__ u32 unfit,
        unfit_deep;        /* threads whose first tile does not fit; not even with all levels */
    __shared__ u32 groups; /* groups noted */
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];

    GLOBAL u64 *work = heads + (u32)place + 1;
    const even_share s = find_even_share(x, n);
    const u32 tiles = s.tiles + (s.loose + BLOCK * TILE - 1) / (BLOCK * TILE);
    const u32 each = (tiles + NOTES - 1) / NOTES; /* tiles of a group */
    u64 elements[WORDS], squares[WORDS];
    UNROLL
    for (u32 k = 0; k < WORDS; k++)
        elements[k] = squares[k] = 0;
    clear_limbs(limbs);
    clear_limbs(square_limbs);
    clear_lane_sums(lane_sums);
    for (u32 i = threadIdx.x; i < NOTES; i += BLOCK)
        notes[i] = 0;
    if (threadIdx.x == 0) unfit = unfit_deep = groups = 0;

    input t, next; /* the next one is on its way while another is added */
    t.squares = next.squares = 1;
    load_any(&next, x, y, s, 0);
    load_any(&t, x, y, s, tiles > 0 ? tiles - 1 : 0);
    const raw first = wanted(&next), last = wanted(&t);
    const window w = block_window(first > last ? first : last, warps, exchange);

    if (tiles > 0 && !(w.sigma != 0 && fits_chains(&next.x, w, 0))) {
        atomicAdd(&unfit, 1u);
        if (!(w.sigma != 0 && fits_chains(&next.x, w, 1))) atomicAdd(&unfit_deep, 1u);
    }
    __syncthreads();
    const u32 deep = unfit > BLOCK / 8;
    const u32 tries = (deep ? unfit_deep : unfit) <= BLOCK / 2;
    u32 mixed = 0;
    if (tries && !deep) {
        ADD_ALL_CHAINS(0);
    } else if (tries) {
        ADD_ALL_CHAINS(1);
    }
    finish(elements, elements_exponent(w.exponent), limbs, warps, exchange);
    finish(squares, w.exponent, square_limbs, warps, exchange);

    __syncthreads();
    for (u32 i = threadIdx.x; i < NOTES; i += BLOCK)
        if (!tries || notes[i]) noted[atomicAdd(&groups, 1u)] = i;
    __syncthreads();
    const u32 again = groups * each;
    if (UNIFORM(again > 0)) {
        u64 nothing[WORDS];
        u32 added = 0;
        adder a = adder_with(w);
        UNROLL_NOT
        for (u32 k = 0; k < again; k++) {
            const u32 i = noted[k / each] * each + k % each;
            if (i >= tiles) continue;
            load_any(&t, x, y, s, i);
            if (!mixed) mixed = any_not_minus_zero(&t);
            if (tries && fits_chains(&t.x, w, deep)) continue;
            add_elements(&t.x, &added, limbs, lane_sums);
        }
        __syncthreads();
        collect_lane_sums(lane_sums, limbs);
        __syncthreads();
        clear_lane_sums(lane_sums);
        __syncthreads();
        UNROLL_NOT
        for (u32 k = 0; k < again; k++) {
            const u32 i = noted[k / each] * each + k % each;
            if (i >= tiles) continue;
            load_any(&t, x, y, s, i);
            if (tries && fits_chains(&t.x, w, deep)) continue;
            add_unfitting(&t, &a, nothing, square_limbs, lane_sums);
        }
        __syncthreads();
        collect_lane_sums(lane_sums, square_limbs);
    }
    __syncthreads();
    deliver_elements(limbs, work);
    deliver_limbs(square_limbs, work + RECORD);
    if (mixed) atomicOr(&work[RECORD - 1], (u64)1);
    if (threadIdx.x == 0 && n > 0) atomicOr(&work[RECORD + MIXED], (u64)1);
}
