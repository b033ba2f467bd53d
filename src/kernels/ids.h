/*
 * ids.h - how the kernels of groups whose ids come in any order read elements and ids: in tiles, every BLOCK-th element
 * to a thread (groups.h).
 *
 * Before including this header, include operators.h, lower.h, parts.h and groups.h.
 */
#ifndef TALLY_IDS_H
#define TALLY_IDS_H

#include "store.h"

#define TILE 8u /* a thread's loads of elements under way at once */

#define NO_GROUP (~0u)

/* A thread's elements of a tile, every BLOCK-th, and their groups. An element of no group has
 * NO_GROUP, or a number not below the count. */
typedef struct tile {
    element e[TILE];
    u32 group[TILE];
} tile;

/* Returns the group's number for an id of 64 bits. */
PURE u32 group_of(i64 id) {
    return (u64)id >> 32 ? NO_GROUP : (u32)id;
}

/* Ids of less than 64 bits are extended by their sign, so that negative ones are beyond all counts. */
#define LOAD_IDS(type, GROUP)                                                                      \
    UNROLL                                                                                         \
    for (u32 k = 0; k < TILE; k++)                                                                 \
    t->group[k] = GROUP(((const GLOBAL type *)ids)[first + k * BLOCK])

__device__ u32 load_group(const GLOBAL u8 *ids, u32 type, u64 i) {
    switch (type) {
    case I8:
        return (u32)(i32)((const GLOBAL i8 *)ids)[i];
    case U8:
        return ids[i];
    case I16:
        return (u32)(i32)((const GLOBAL i16 *)ids)[i];
    case U16:
        return ((const GLOBAL u16 *)ids)[i];
    case I32:
    case U32:
        return ((const GLOBAL u32 *)ids)[i];
    default:
        return group_of(((const GLOBAL i64 *)ids)[i]);
    }
}

/* Loads a tile; the thread's first element is number `first`. If an id that is no group's is an
 * error, PARTS_BAD in the workspace becomes the least number of such an element. */
INLINED void load_tile(const GLOBAL element *x, const GLOBAL u8 *ids, const GLOBAL u8 *mask,
                       GLOBAL u64 *work, const groups_plan *p, u64 first, tile *t) {
    const GLOBAL element *from = x + (p->x + (i64)first);
    const u32 checks = !p->skip_outside;
    u32 outside = NO_GROUP; /* the first of the thread's elements whose id is no group's */
    if (first + (TILE - 1) * BLOCK < p->n && !p->masked) {
        UNROLL
        for (u32 k = 0; k < TILE; k++)
            t->e[k] = from[k * BLOCK];
        if (p->ids == I32 || p->ids == U32)
            LOAD_IDS(u32, (u32));
        else if (p->ids == I64 || p->ids == U64)
            LOAD_IDS(i64, group_of);
        else
            UNROLL
        for (u32 k = 0; k < TILE; k++)
            t->group[k] = load_group(ids, p->ids, first + k * BLOCK);
        UNROLL
        for (u32 k = TILE; k-- > 0;)
            outside = t->group[k] >= (u32)p->count ? k : outside;
    } else {
        UNROLL
        for (u32 k = 0; k < TILE; k++) {
            const u64 i = first + k * BLOCK;
            t->e[k] = 0;
            t->group[k] = NO_GROUP;
            if (i >= p->n || (p->masked && !mask[p->mask + (i64)i])) continue;
            t->e[k] = from[k * BLOCK];
            t->group[k] = load_group(ids, p->ids, i);
            if (t->group[k] >= (u32)p->count && k < outside) outside = k;
        }
    }
    if (outside != NO_GROUP && checks) note_least(&work[PARTS_BAD], first + outside * BLOCK);
}

#endif
