/*
 * grid.h - what all production reductions have in common: who reads what.
 *
 * Thread. The array is cut into packs of 16 bytes, from its first multiple of 16 on. A thread's tile is
 * IN_FLIGHT packs, loaded before the first is looked at.
 *
 * Block. A block's tile is BLOCK thread tiles, interleaved so that neighbouring threads read neighbouring
 * packs. Each block has a run of these; the runs differ by at most one. The elements that belong to no
 * tile - before the first pack, and after the last whole tile - are loose; the last block takes them, one
 * element a load.
 */
#ifndef TALLY_GRID_H
#define TALLY_GRID_H

#include "tuning.h"

#include "dialect.h"

#if defined(__CUDACC__)
#define UNROLL     _Pragma("unroll")
#define UNROLL_NOT _Pragma("unroll 1")
#ifndef BLOCKS_A_UNIT
#define BLOCKS_A_UNIT GPU_BLOCKS_A_UNIT
#endif
#define BOUNDED          __launch_bounds__(BLOCK, BLOCKS_A_UNIT)
#define KERNEL           extern "C" __global__ void BOUNDED
#define read_word(p)     (*(volatile const u64 *)(p))
#define write_word(p, v) ((void)(*(volatile u64 *)(p) = (v)))
#elif defined(__OPENCL_VERSION__)
/* PoCL 3.1 loses what a function that is not inlined writes to shared memory. */
#undef __device__
#define __device__ static inline __attribute__((always_inline))
#define UNROLL
#define UNROLL_NOT
#define KERNEL           __kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void
#define read_word(p)     atomicLoad(p)
#define write_word(p, v) atomicStore(p, v)
OVERLOADED u32 atomicAdd(__local u32 *p, u32 v) {
    return atomic_add(p, v);
}
#else
#define UNROLL
#define UNROLL_NOT
#define KERNEL           __global__ void
#define read_word(p)     atomicLoad(p)
#define write_word(p, v) atomicStore(p, v)
#endif

/* A word that the compiler cannot know to be the same: it is not to keep, in registers that are not there,
 * what it has worked out from it before. */
PURE u32 anew(u32 w) {
#if defined(__CUDACC__)
    asm volatile("" : "+r"(w));
#endif
    return w;
}

/* As many loads of a byte each, with an address each, would not fit into registers. */
#if defined(__CUDACC__) && (defined(TYPE_I8) || defined(TYPE_U8))
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

typedef struct share {
    const GLOBAL uint4 *packs; /* where this block's tiles begin */
    u32 tiles;                 /* how many they are */
    u64 head, end;             /* loose are the elements [0, head) and [end, n) ... */
    u32 loose;                 /* ... so many of them, where they are this block's; else 0 */
} share;

__device__ share find_share(const GLOBAL element *x, u64 n) {
    share s;
    u64 head = (16 - (u64)(size_t)x % 16) % 16 / sizeof(element);
    s.head = head < n ? head : n;

    const u32 tiles = (u32)((n - s.head) / (BLOCK * TILE)); /* of a kilobyte or more: 2^32 do */
    const u32 each = tiles / gridDim.x, more = tiles % gridDim.x, b = blockIdx.x;
    s.end = s.head + (u64)tiles * (BLOCK * TILE);
    s.packs = (const GLOBAL uint4 *)(x + s.head) +
              (u64)(each * b + (b < more ? b : more)) * (BLOCK * IN_FLIGHT);
    s.tiles = each + (b < more);
    s.loose = b == gridDim.x - 1 ? (u32)(s.head + (n - s.end)) : 0;
    return s;
}

/* This thread's part of the block's tile that begins at `packs`. */
__device__ void load_tile(tile *t, const GLOBAL uint4 *packs) {
    UNROLL
    for (u32 k = 0; k < IN_FLIGHT; k++)
        t->pack[k] = packs[k * BLOCK + threadIdx.x];
}

/* This thread's part of the loose elements from number `first` on, filled up with `pad`. */
__device__ void load_loose(tile *t, const GLOBAL element *x, share s, u32 first, element pad) {
    UNROLL_LOOSE
    for (u32 k = 0; k < TILE; k++) {
        const u32 i = first + k * BLOCK + threadIdx.x;
        t->e[k] = i >= s.loose ? pad : i < s.head ? x[i] : x[s.end + (i - (u32)s.head)];
    }
}

#endif
