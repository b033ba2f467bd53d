/*
 * grid.h - what the kernels `reduce` have in common: which thread reads which elements.
 *
 * Thread. The array is cut into packs of 16 bytes, from its first multiple of 16 on. A thread's tile is
 * IN_FLIGHT packs, all loaded before the first is looked at.
 *
 * Block. A block's tile is BLOCK thread tiles, interleaved so that neighbouring threads read neighbouring
 * packs. Each block has a run of these; the runs differ by at most one. The elements that belong to no
 * tile - before the first pack, and after the last whole tile - are loose; the last block takes them, one
 * element a load.
 *
 * A reduction of two arrays cuts both at the same indices. The packs of the second one then need not lie at
 * multiples of 16 bytes; its elements are loaded one by one where they do not.
 *
 * Before including this header, include operators.h.
 */
#ifndef TALLY_GRID_H
#define TALLY_GRID_H

#include "tuning.h"

#include "kernel.h"

/* A thread loads loose elements one by one, as many as a tile has, with an address each. Of elements of one byte these
 * addresses do not fit into registers, and the loop stays a loop. */
#if HAS_UNROLL_COUNTS && ELEMENT_WIDTH == 8
#define UNROLL_LOOSE _Pragma("unroll 1")
#else
#define UNROLL_LOOSE UNROLL
#endif

#define PACK  (16 / (u32)sizeof(element)) /* elements of a pack */
#define TILE  (IN_FLIGHT * PACK)          /* elements of a thread's tile */
#define WARPS ((BLOCK + WARP - 1) / WARP)

#define TILE_WORDS (IN_FLIGHT * 4)

typedef union tile {
    uint4 pack[IN_FLIGHT];
    element e[IN_FLIGHT * 16 / sizeof(element)];
    u32 word[IN_FLIGHT * 4];
} tile;

/* ---- Who reads what ----------------------------------------------------------------------------- */

typedef struct even_share {
    const GLOBAL uint4 *packs; /* where this block's tiles begin */
    u64 start;                 /* the index of the first element of these tiles */
    u32 tiles;                 /* how many tiles this block has */
    u64 head, end;             /* elements [0, head) and [end, n) are loose */
    u32 loose;                 /* how many loose elements are this block's */
} even_share;

__device__ even_share find_even_share(const GLOBAL element *x, u64 n) {
    even_share s;
    u64 head = (16 - (u64)(size_t)x % 16) % 16 / sizeof(element);
    s.head = head < n ? head : n;

    const u32 tiles = (u32)((n - s.head) / (BLOCK * TILE)); /* 32 bits suffice for n <= 2^39 */
    const u32 each = tiles / gridDim.x, more = tiles % gridDim.x, b = blockIdx.x;
    const u64 before = (u64)(each * b + (b < more ? b : more));
    s.end = s.head + (u64)tiles * (BLOCK * TILE);
    s.packs = (const GLOBAL uint4 *)(x + s.head) + before * (BLOCK * IN_FLIGHT);
    s.start = s.head + before * (BLOCK * TILE);
    s.tiles = each + (b < more);
    s.loose = b == gridDim.x - 1 ? (u32)(s.head + (n - s.end)) : 0;
    return s;
}

/* Loads this thread's part of the block's tile that begins at `packs`. */
__device__ void load_tile(tile *t, const GLOBAL uint4 *packs) {
    UNROLL
    for (u32 k = 0; k < IN_FLIGHT; k++)
        t->pack[k] = packs[k * BLOCK + threadIdx.x];
}

/* The index, within the block's tile, of the thread's element k; it rises with k. */
#define INDEX_IN_TILE(k) (((k) / PACK * BLOCK + threadIdx.x) * PACK + (k) % PACK)

/* Loads this thread's part of the block's tile that begins at y, which need not be a multiple of 16 bytes. */
__device__ void load_anywhere(tile *t, const GLOBAL element *y) {
    if ((size_t)y % 16 == 0) {
        load_tile(t, (const GLOBAL uint4 *)y);
    } else {
        UNROLL_LOOSE
        for (u32 k = 0; k < TILE; k++)
            t->e[k] = y[INDEX_IN_TILE(k)];
    }
}

#if BLOCK > 1 && !defined(__OPENCL_VERSION__)
/* Loads the thread's part of an array of n <= threads * TILE elements: by packs, where the array is `packed` (whole
 * packs at a multiple of 16 bytes), else one element a load. What lies behind the array is `pad`. */
INLINED void load_alone(tile *t, const GLOBAL element *x, u32 n, u32 threads, u32 packed,
                        element pad) {
    if (packed) {
        UNROLL
        for (u32 k = 0; k < IN_FLIGHT; k++) {
            UNROLL
            for (u32 j = 0; j < PACK; j++)
                t->e[k * PACK + j] = pad;
            if (k * threads + threadIdx.x < n / PACK)
                t->pack[k] = ((const GLOBAL uint4 *)x)[k * threads + threadIdx.x];
        }
    } else {
        UNROLL_LOOSE
        for (u32 k = 0; k < TILE; k++)
            t->e[k] = k * threads + threadIdx.x < n ? x[k * threads + threadIdx.x] : pad;
    }
}
#endif

/* Returns the index of the i-th loose element. */
PURE u64 loose_index(even_share s, u32 i) {
    return i < s.head ? i : s.end + (i - (u32)s.head);
}

/* Loads this thread's part of the loose elements from number `first` on, filled up with `pad`. */
__device__ void load_loose(tile *t, const GLOBAL element *x, even_share s, u32 first, element pad) {
    UNROLL_LOOSE
    for (u32 k = 0; k < TILE; k++) {
        const u32 i = first + k * BLOCK + threadIdx.x;
        t->e[k] = i >= s.loose ? pad : i < s.head ? x[i] : x[s.end + (i - (u32)s.head)];
    }
}

#endif
