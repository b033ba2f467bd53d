/*
 * kernel.h - what the production kernels add to the dialect: how a kernel is declared, loops that are written out
 * or are not, helpers that are inlined however often they are called (what they point to then stays in registers),
 * words that other blocks or the host write, and a multiplication and addition in one.
 *
 * Whoever includes this has included tuning.h.
 */
#ifndef TALLY_KERNEL_H
#define TALLY_KERNEL_H

#include "dialect.h"

#if defined(__CUDACC__)
#define UNROLL     _Pragma("unroll")
#define UNROLL_NOT _Pragma("unroll 1")
#ifndef BLOCKS_A_UNIT
#define BLOCKS_A_UNIT GPU_BLOCKS_A_UNIT
#endif
#define BOUNDED            __launch_bounds__(BLOCK, BLOCKS_A_UNIT)
#define KERNEL             extern "C" __global__ void BOUNDED
#define INLINED            static __forceinline__ __device__
#define read_word(p)       (*(volatile const u64 *)(p))
#define write_word(p, v)   ((void)(*(volatile u64 *)(p) = (v)))
#define fused(a, b, c)     __fma_rn(a, b, c)
#define high_product(a, b) __umul64hi(a, b)
#elif defined(__OPENCL_VERSION__)
/* PoCL 3.1 loses what a function that is not inlined writes to shared memory. */
#undef __device__
#define __device__ static inline __attribute__((always_inline))
#define UNROLL
#define UNROLL_NOT
#define INLINED            __device__
#define KERNEL             __kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void
#define read_word(p)       atomicLoad(p)
#define write_word(p, v)   atomicStore(p, v)
#define fused(a, b, c)     fma(a, b, c)
#define high_product(a, b) mul_hi((u64)(a), (u64)(b))
OVERLOADED u32 atomicAdd(__local u32 *p, u32 v) {
    return atomic_add(p, v);
}
OVERLOADED u32 atomicExch(__local u32 *p, u32 v) {
    return atomic_xchg(p, v);
}
#else
#define UNROLL
#define UNROLL_NOT
#define INLINED            __device__
#define KERNEL             __global__ void
#define read_word(p)       atomicLoad(p)
#define write_word(p, v)   atomicStore(p, v)
#define fused(a, b, c)     __builtin_fma(a, b, c)
#define high_product(a, b) ((u64)((unsigned __int128)(a) * (b) >> 64))
#endif

/* Returns w, in a way that the compiler cannot see through: it then does not keep what it has worked out from w
 * before in registers that are needed for something else. */
PURE u32 anew(u32 w) {
#if defined(__CUDACC__)
    asm volatile("" : "+r"(w));
#endif
    return w;
}

#endif
