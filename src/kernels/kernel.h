/*
 * kernel.h - the words that the production kernels add to the dialect:
 *
 *     KERNEL                       how a kernel is declared
 *     HIDDEN                       takes KERNEL's place before a file's other kernels if one is compiled alone
 *                                  (cuda/program.c)
 *     GRID_CONSTANT                before a struct argument whose address goes to functions that are not inlined. Without
 *                                  it each thread copies the struct to its local memory first
 *     UNROLL, UNROLL_NOT           before a loop that is unrolled, or is not
 *     INLINED                      a helper that is inlined however often it is called, so that what its arguments
 *                                  point to stays in registers
 *     SELDOM                       a helper that is never inlined, where the machine has calls: registers are its own
 *     read_word(), write_word()    for words that other blocks or the host read or write meanwhile
 *     fused(), square_root()       of doubles, rounded once
 *     high_product()               the upper 64 bits of a product
 *     prefetch_line()              brings a line into the second-level cache, where the machine PREFETCHES
 *     wait_for_earlier()           lets the next launch begin, and waits for the end of the one before:
 *                                  let_next_begin() and wait_for_end_of_earlier()
 *
 *     TALLY_PATH(name), TALLY_PATH_UNLESS()   a path (src/paths.h), which the model's debug builds count; nothing elsewhere
 *
 * BEGINS_EARLY stands in a file whose kernels all wait for the end of earlier launches before anything else. So their
 * own launches may begin while earlier ones still run (src/cuda/launch.c). On CUDA from sm_90 on that hides a
 * launch's latency; elsewhere launches begin one after another anyway.
 *
 * Before including this header, include tuning.h.
 */
#ifndef TALLY_KERNEL_H
#define TALLY_KERNEL_H

#include "dialect.h"

#if !defined(TALLY_PATH)
#define TALLY_PATH(name)                   ((void)0)
#define TALLY_PATH_UNLESS(name, rule, why) ((void)0)
#endif

#if IN_CUDA
#define UNROLL     _Pragma("unroll")
#define UNROLL_NOT _Pragma("unroll 1")
#ifndef BLOCKS_A_UNIT
#define BLOCKS_A_UNIT GPU_BLOCKS_A_UNIT
#endif
#define BOUNDED __launch_bounds__(BLOCK, BLOCKS_A_UNIT)
#define KERNEL  extern "C" __global__ void BOUNDED
#define HIDDEN  template <int> __global__ void /* never instantiated, so not compiled */
#if __CUDACC_VER_MAJOR__ > 11 || (__CUDACC_VER_MAJOR__ == 11 && __CUDACC_VER_MINOR__ >= 7)
#define GRID_CONSTANT __grid_constant__
#else
#define GRID_CONSTANT
#endif
#define INLINED              static __forceinline__ __device__
#define SELDOM               static __noinline__ __device__ /* a call, which keeps its registers to itself */
#define OUTLINED             SELDOM /* one copy of long code with many callers */
#define read_word(p)         (*(volatile const u64 *)(p))
#define write_word(p, v)     ((void)(*(volatile u64 *)(p) = (v)))
#define fused(a, b, c)       __fma_rn(a, b, c)
#define fused_float(a, b, c) __fmaf_rn(a, b, c)
#define square_root(x)       __dsqrt_rn(x)
#define high_product(a, b)   __umul64hi(a, b)
#elif defined(__OPENCL_VERSION__)
/* PoCL 3.1 loses what a function that is not inlined writes to shared memory. */
#undef __device__
#define __device__ static inline __attribute__((always_inline))
#define UNROLL
#define UNROLL_NOT
#define INLINED  __device__
#define SELDOM   __device__
#define OUTLINED __device__
#define GRID_CONSTANT
#define KERNEL               __kernel __attribute__((reqd_work_group_size(BLOCK, 1, 1))) void
#define read_word(p)         atomicLoad(p)
#define write_word(p, v)     atomicStore(p, v)
#define fused(a, b, c)       fma(a, b, c)
#define fused_float(a, b, c) fma(a, b, c)
#define square_root(x)       sqrt(x)
#define high_product(a, b)   mul_hi((u64)(a), (u64)(b))
OVERLOADED u32 atomicAdd(__local u32 *p, u32 v) {
    return atomic_add(p, v);
}
OVERLOADED u32 atomicExch(__local u32 *p, u32 v) {
    return atomic_xchg(p, v);
}
#else
#define UNROLL
#define UNROLL_NOT
#define INLINED  __device__
#define SELDOM   PURE
#define OUTLINED __device__
#define GRID_CONSTANT
#define KERNEL               __global__ void
#define read_word(p)         atomicLoad(p)
#define write_word(p, v)     atomicStore(p, v)
#define fused(a, b, c)       __builtin_fma(a, b, c)
#define fused_float(a, b, c) __builtin_fmaf(a, b, c)
#define square_root(x)       __builtin_sqrt(x)
#define high_product(a, b)   ((u64)((unsigned __int128)(a) * (b) >> 64))
#endif

#if ABILITY >= 900
#define BEGINS_EARLY extern "C" __device__ const u32 begins_early = 1;
INLINED void let_next_begin(void) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
INLINED void wait_for_end_of_earlier(void) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
#else
#define BEGINS_EARLY
INLINED void let_next_begin(void) {}
INLINED void wait_for_end_of_earlier(void) {}
#endif

INLINED void wait_for_earlier(void) {
    let_next_begin();
    wait_for_end_of_earlier();
}

/* Adds 1 to a counter, and returns its old value. It releases and acquires: a thread that finds
 * this one counted sees all of this thread's earlier writes, and those of threads it has met at a
 * barrier since. This thread sees the same of the threads that it finds counted. */
INLINED u64 count_one(GLOBAL u64 *counter) {
#if HAS_PTX
    u64 before;
    asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], 1;"
                 : "=l"(before)
                 : "l"(counter)
                 : "memory");
    return before;
#else
    __threadfence();
    const u64 before = atomicAdd(counter, (u64)1);
    __threadfence();
    return before;
#endif
}

#if ABILITY >= 800
/* Return the sum, the OR, or the greatest of a warp's values to all its lanes. A sum of 64 bits is made of fields: 32
 * fields of 27 bits add up to less than 2^32. */
#define WARP_AT_ONCE 1
PURE u64 warp_sum(u64 w) {
    const u32 mask = (1u << 27) - 1;
    const u64 a = __reduce_add_sync(FULL_WARP, (u32)w & mask);
    const u64 b = __reduce_add_sync(FULL_WARP, (u32)(w >> 27) & mask);
    const u64 c = __reduce_add_sync(FULL_WARP, (u32)(w >> 54));
    return a + (b << 27) + (c << 54);
}
PURE u32 warp_or(u32 w) {
    return __reduce_or_sync(FULL_WARP, w);
}
PURE u32 warp_most(u32 w) {
    return __reduce_max_sync(FULL_WARP, w);
}
#else
#define WARP_AT_ONCE 0
#endif

#define PREFETCHES HAS_PTX
#define LINE_BYTES 128u /* of a line of the second-level cache */

/* Has the second-level cache fetch the line that holds an address. */
INLINED void prefetch_line(const GLOBAL void *at) {
#if PREFETCHES
    asm volatile("prefetch.global.L2 [%0];" : : "l"(at));
#else
    (void)at;
#endif
}

/* Returns w, and hides from the compiler that it does. So the compiler computes what depends on w
 * again instead of keeping it in registers that other values need. */
PURE u32 anew(u32 w) {
#if HAS_PTX
    asm volatile("" : "+r"(w));
#endif
    return w;
}

#endif
