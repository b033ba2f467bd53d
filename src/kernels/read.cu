/*
 * read - kernels that only read: they measure the read roof, with which every reduction is compared.
 *
 * Each thread combines what it reads by exclusive or, and writes one word, so that no compiler can leave the reads
 * out. Exclusive or is the cheapest operation that needs every byte. There are two kernels, as devices differ. In
 * read_all the threads walk the array together, with four loads of 16 bytes under way in each, as suits a GPU. In
 * read_pieces each thread has a piece of its own, as suits a CPU, where a thread is a turn of a loop.
 */
#include "dialect.h"

typedef union pack {
    uint4 bits; /* for the load of 16 bytes */
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
