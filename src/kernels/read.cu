/*
 * read - nothing but reading: the roof that every reduction is held against.
 *
 * All threads of the grid walk the array together in steps of 16 bytes, four under way at once, and
 * mix what they read by exclusive or, the cheapest way to make sure that every byte has arrived. One
 * word a thread goes back, so that no compiler can leave the reading out.
 */
#include "dialect.h"

typedef union pack {
    uint4 bits; /* what is loaded */
    u32 e[4];
} pack;

__device__ u32 mixed(pack p)
{
    return p.e[0] ^ p.e[1] ^ p.e[2] ^ p.e[3];
}

#ifdef __cplusplus
extern "C" /* kernels are found by their plain names */
#endif
__global__ void read_all(const GLOBAL pack *x, u64 packs, GLOBAL u32 *out)
{
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
