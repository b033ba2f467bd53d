/*
 * packs.h - how a warp reads a range of elements that lie side by side: in packs of 16 bytes, which the lanes of a team take
 * in turn, LOADS of them on their way at once.
 *
 * Before including this header, include parts.h, pack.h and a state (state/README.md).
 */
#ifndef TALLY_SCHEDULE_PACKS_H
#define TALLY_SCHEDULE_PACKS_H

#include "warps.h"

#define LOADS  4u             /* a lane's loads of packs under way at once */
#define CHUNK  (LOADS * PACK) /* elements of these loads */
#define CHUNKS (64 / CHUNK)   /* chunks that a lane adds before it tests whether its sum is exact */
#define LONG_LOADS                                                                                 \
    (CHUNKS * LOADS <= 8 ? CHUNKS * LOADS                                                          \
                         : LOADS) /* loads of long rows: all chunks', if they fit registers */
#define NEAR_LOADS 8u             /* loads of near sums with squares */
#define WARPS      ((BLOCK + WARP - 1) / WARP)
#define WARP_LOG   5
#define PART_MOST  (1u << 31) /* pieces have fewer elements (rows.c) */

/* LOOKS_FIRST is 1 for batches that look at elements before they add them (state/float_chain_sum.h). */
#ifndef LOOKS_FIRST
#define LOOKS_FIRST 0
#endif

/* HAS_ADD_PACK is 1 for batches that add a pack in another way than element by element. */
#ifndef HAS_ADD_PACK
#define HAS_ADD_PACK 0
#endif

#ifndef NOWHERE
#define NOWHERE (~0u)
#endif

/* An array as loads of packs see it. Position 0 is at a multiple of 16 bytes, and element i is at
 * position i + skew. Positions [skew, end) are the array's. */
typedef struct aligned_elements {
    const GLOBAL element *x; /* position 0 */
    u64 end;
    u32 skew;
} aligned_elements;

PURE aligned_elements aligned_elements_of(const GLOBAL u8 *x, const parts_plan *p) {
    const GLOBAL element *first = (const GLOBAL element *)x + p->x;
    const u32 skew = (u32)((size_t)first % 16 / sizeof(element));
    const aligned_elements at = {first - skew, skew + p->n, skew};
    return at;
}

/* Elements [from, to) of those from x on, a multiple of 16 bytes. Only packs within [low, high) lie
 * entirely in the array. */
typedef struct pack_range {
    const GLOBAL element *x;
    u32 from, to, low, high;
} pack_range;

/* Returns the range of the n elements from position s on; one of none is empty wherever it begins. */
PURE pack_range pack_range_of(aligned_elements at, u64 s, u32 n) {
    const u32 from = n > 0 ? (u32)s % PACK : 0;
    const u64 left = at.end - (s - from);
    const pack_range r = {at.x + (s - from), from, from + n, s < PACK && at.skew > 0 ? PACK : 0,
                          left < PART_MOST ? (u32)left : PART_MOST};
    return r;
}

/* Returns the pack at c, some elements of which may lie outside the range and the array. */
SELDOM pack load_edge(const GLOBAL element *x, u32 from, u32 to, u32 c) {
    pack t;
    UNROLL
    for (u32 i = 0; i < PACK; i++)
        t.e[i] = c + i >= from && c + i < to ? x[c + i] : (element)0;
    return t;
}

/* Loads `count` packs at c, c + step, ..., those of them that begin in the range. All lanes of the
 * warp call this. */
INLINED void load_packs_in_range(pack *t, u32 count, u32 step, const pack_range *r, u32 c) {
    u32 sticks_out = 0;
    UNROLL
    for (u32 i = 0; i < count; i++) {
        const u32 o = c + i * step, is_there = o < r->to;
        const u32 is_inside = o >= r->low && o + PACK <= r->high;
        t[i].half[0] = t[i].half[1] = 0;
        if (is_there && is_inside) t[i].all = *(const GLOBAL uint4 *)(r->x + o);
        sticks_out |= is_there && !is_inside;
    }
    if (warp_votes(sticks_out) == 0) return;
    UNROLL
    for (u32 i = 0; i < count; i++) {
        const u32 o = c + i * step;
        if (o < r->to && (o < r->low || o + PACK > r->high))
            t[i] = load_edge(r->x, r->from, r->to, o);
    }
}

/* Loads packs as load_packs_in_range() does; all lie in the range. */
INLINED void load_packs(pack *t, u32 count, u32 step, const pack_range *r, u32 c) {
    const GLOBAL uint4 *from = (const GLOBAL uint4 *)(r->x + c);
    UNROLL
    for (u32 i = 0; i < count; i++)
        t[i].all = from[i * (step / PACK)];
}

#if LOOKS_FIRST
/* Adds packs that were loaded from c on, with PADDING in the places outside the range. If they do not fit the chains,
 * they are loaded again, one by one, and added compensated. */
INLINED void add_packs(batch *k, const pack *t, u32 count, u32 step, const pack_range *r, u32 c) {
    UNROLL
    for (u32 i = 0; i < count; i++)
        look(k, &t[i]);
    const u32 fit = open_for_noted(k);
    if (fit) {
        UNROLL
        for (u32 i = 0; i < count; i++)
            UNROLL
        for (u32 j = 0; j < PACK; j++)
            add_fitting(k, t[i].e[j], j % ABREAST);
    }
    if (warp_votes(!fit) == 0) return;
    UNROLL_NOT
    for (u32 i = 0; i < count; i++) {
        const u32 first = c + i * step;
        pack w;
        load_packs_in_range(&w, 1, step, r, first);
        UNROLL
        for (u32 j = 0; j < PACK; j++)
            add_compensated(k, w.e[j], !fit && first + j >= r->from && first + j < r->to);
    }
}

/* Adds the elements of packs that lie in the range. */
INLINED void add_packs_in_range(batch *k, const pack *t, u32 count, u32 step, const pack_range *r,
                                u32 c) {
    pack inside[LOADS];
    UNROLL
    for (u32 i = 0; i < count; i++)
        UNROLL
    for (u32 j = 0; j < PACK; j++) {
        const u32 o = c + i * step + j;
        inside[i].e[j] = o >= r->from && o < r->to ? t[i].e[j] : (element)PADDING;
    }
    add_packs(k, inside, count, step, r, c);
}
#else
#if !HAS_ADD_PACK
/* Adds a pack, whose first element has the number `at`. */
INLINED void add_pack(batch *k, const pack *p, u32 at) {
    UNROLL
    for (u32 j = 0; j < PACK; j++)
        add(k, p->e[j], at + j, 1);
}
#endif

/* Adds packs, loaded from c on, that all lie in the range. */
INLINED void add_packs(batch *k, const pack *t, u32 count, u32 step, const pack_range *r, u32 c) {
    UNROLL
    for (u32 i = 0; i < count; i++)
        add_pack(k, &t[i], c + i * step);
}

/* Adds the elements of packs that lie in the range; only the very first pack can begin before it. */
INLINED void add_packs_in_range(batch *k, const pack *t, u32 count, u32 step, const pack_range *r,
                                u32 c) {
    UNROLL
    for (u32 i = 0; i < count; i++)
        UNROLL
    for (u32 j = 0; j < PACK; j++) {
        const u32 o = c + i * step + j;
        add(k, t[i].e[j], o, o < r->to && (i > 0 || o >= r->from));
    }
}
#endif

/* Prefetches the lines that the warp takes after `count` packs of each lane at c; at the end of a row these are those
 * of its next row. All lanes of the warp call this. */
INLINED void prefetch_packs(u32 count, const pack_range *r, u32 c) {
    const u32 lane = threadIdx.x % WARP, line = LINE_BYTES / (u32)sizeof(element);
    const u32 at = c - lane * PACK + count * WARP * PACK + lane * line;
    if (PREFETCHES && lane * line < count * WARP * PACK && at < r->high) prefetch_line(r->x + at);
}

/* Begins a batch of the range's elements from c on. */
INLINED void begin_at(batch *k, const pack_range *r, u32 c) {
    begin(k, c >= r->to ? NOWHERE : c < r->from ? r->from : c);
}

#endif
