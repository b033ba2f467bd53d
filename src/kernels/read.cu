/*
 * read - nothing but reading: the roof that every reduction is held against.
 *
 * Each thread mixes what it reads by exclusive or, the cheapest way to make sure that every byte has arrived, and
 * writes one word, so that no compiler can leave the reading out. Two kernels, as devices differ: in read_all the
 * threads walk the array together, 16 bytes each and four such packs under way, as suits a GPU; in read_pieces each has
 * a piece of its own, as suits a CPU, where a thread is a turn of a loop.
 */
#include "dialect.h"

typedef union pack {
    uint4 bits; /* what is loaded */
    u32 e[4];
} pack;

__device__ u32 mixed(pack p) {
    return p.e[0] ^ p.e[1] ^ p.e[2] ^ p.e[3];
}

#ifdef __cplusplus
extern "C" { /* kernels are found by their plain names */
#endif

__global__ void read_all(const GLOBAL pack *x, u64 packs, GLOBAL u32 *out) {
    const u64 threads = (u64)gridDim.x * blockDim.x;
    const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;

    u32 v = 0;
    u64 i = thread;
    for (; i + 3 * threads < packs; i += 4 * threads) {
        pack p[4];
        for (u32 k = 0; k < 4; k++)
            p[k].bits = x[i + k * threads].bits;
        for (u32 k = 0; k < 4; k++)
            v ^= mixed(p[k]);
    }
    for (; i < packs; i += threads) {
        pack p;
        p.bits = x[i].bits;
        v ^= mixed(p);
    }
    out[thread] = v;
}

__global__ void read_pieces(const GLOBAL pack *x, u64 packs, GLOBAL u32 *out) {
    const u64 threads = (u64)gridDim.x * blockDim.x;
    const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const u64 piece = (packs + threads - 1) / threads, start = thread * piece;
    const u64 end = start + piece < packs ? start + piece : packs;

    u32 v = 0;
    for (u64 i = start; i < end; i++) {
        pack p;
        p.bits = x[i].bits;
        v ^= mixed(p);
    }
    out[thread] = v;
}

#ifdef __cplusplus
}
#endif
