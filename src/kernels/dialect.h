/*
 * dialect.h - the words that make one kernel text CUDA C, OpenCL C and plain C at once.
 *
 * A kernel is written in CUDA C with one word more: GLOBAL stands before every pointer into global
 * memory. This header gives each of its words a meaning in CUDA C and in OpenCL C. In plain C a machine
 * that runs kernels - a simulation, or a loop on the CPU - brings meanings of its own: it includes them
 * before the kernel's text, and this header only checks that they are there.
 *
 *   in the text            CUDA         OpenCL C 1.2           plain C, where it is simulated
 *   GLOBAL, SHARED         nothing      __global, __local      nothing
 *   __global__             itself       __kernel               a function to be launched
 *   __device__             itself       static inline          always inlined
 *   __shared__             itself       __local                memory that is known as shared
 *   threadIdx.x, ...       itself       get_local_id(0), ...   asks the machine
 *   __syncthreads()        itself       barrier()              a rendezvous of the block's threads
 *   __shfl_down_sync()     itself       through `exchange`     a rendezvous of the warp's lanes
 *   leading_zeros()        of a u32, on all three
 *   atomicAdd(), ...       themselves   atomic_add(), ...      one access that is no race
 *
 * What the text must keep to, for all three to accept it:
 *   - C, not C++. One dimension. A __shared__ array stands at the top of its kernel and has a constant
 *     size: BLOCK_MAX values for one a thread.
 *   - A helper that touches memory is __device__ and names the address space of its pointers; one
 *     that only computes is PURE: a simulation runs it as a single instruction, whatever it branches on.
 *   - A kernel that calls a shuffle declares `__shared__ word exchange[EXCHANGE]`, one place a thread in
 *     OpenCL 1.2, which has no shuffles, and unused elsewhere.
 *   - A condition that guards shuffles or barriers, and so is the same for a whole warp or block, is
 *     written UNIFORM(condition). OpenCL takes such a branch always: shuffles are barriers there,
 *     which all of a block must come to, and PoCL 3.1 gets a barrier inside an `if` wrong. What
 *     stands in the branch must do no harm where the condition is false.
 *   - Atomics work on u32 and u64. atomicLoad() and atomicStore() are a plain read and write that may
 *     meet another block's.
 */
#ifndef TALLY_DIALECT_H
#define TALLY_DIALECT_H

#define WARP 32u        /* threads of a warp, of any machine that kernels run on */
#ifndef BLOCK_MAX       /* a host that compiles for one block size may say so, and reserve less */
#define BLOCK_MAX 1024u /* the most threads of a block */
#endif
#define FULL_WARP 0xffffffffu

#if defined(__CUDACC__) /* ---- CUDA C ------------------------------------------------------- */

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define GLOBAL
#define SHARED
#define PURE               static __forceinline__ __device__
#define EXCHANGE           1
#define UNIFORM(condition) (condition)
#define COUNT_OPERATION()  ((void)0)
#define FLOAT_ATOMIC_ADD   1 /* float and double have atomicAdd() */

/* CUDA's capabilities: the list at the end of this header explains them. */
#define IN_CUDA               1
#define HAS_PTX               1
#define HAS_BALLOT            1
#define HAS_SHUFFLES          1
#define HAS_ATOMIC_MAX        1
#define HAS_UNROLL_COUNTS     1
#define HAS_FUSED_UNIT        1
#define RESERVES_LOCAL_MEMORY 1
#define COMPILES_BY_PROBLEM   1
#if defined(__CUDA_ARCH__)
#define ABILITY __CUDA_ARCH__
#endif

/* Volatile reads and writes of global memory go to the cache that all multiprocessors share. */
#define atomicLoad(p)     (*(volatile const word *)(p))
#define atomicStore(p, v) ((void)(*(volatile word *)(p) = (v)))

#define float_bits(x)  __float_as_uint(x)
#define float_from(u)  __uint_as_float(u)
#define double_bits(x) ((u64)__double_as_longlong(x))
#define double_from(u) __longlong_as_double((i64)(u))

#define leading_zeros(u) ((u32)__clz((i32)(u)))

#elif defined(__OPENCL_VERSION__) /* ---- OpenCL C 1.2 --------------------------------------- */

typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;

#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable

#define GLOBAL             __global
#define SHARED             __local
#define PURE               static inline
#define EXCHANGE           BLOCK_MAX
#define UNIFORM(condition) 1
#define COUNT_OPERATION()  ((void)0)
#define FLOAT_ATOMIC_ADD   0

#define COMPILES_BY_PROBLEM 1

#define __global__             __kernel
#define __device__             static inline
#define __shared__             __local
#define threadIdx              ((uint3)((uint)get_local_id(0), 0, 0))
#define blockIdx               ((uint3)((uint)get_group_id(0), 0, 0))
#define blockDim               ((uint3)((uint)get_local_size(0), 1, 1))
#define gridDim                ((uint3)((uint)get_num_groups(0), 1, 1))
#define __syncthreads()        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define __threadfence()        mem_fence(CLK_GLOBAL_MEM_FENCE)
#define __threadfence_system() mem_fence(CLK_GLOBAL_MEM_FENCE)

#define float_bits(x)  as_uint(x)
#define float_from(u)  as_float(u)
#define double_bits(x) as_ulong(x)
#define double_from(u) as_double(u)

#define leading_zeros(u) clz((u32)(u))

#define OVERLOADED static inline __attribute__((overloadable))

/* Returns the value of the thread `delta` places on in the warp; the own value where there is none. Two
 * barriers: all values are there before one is taken, all are taken before the next exchange. */
#define SHUFFLE_DOWN(T)                                                                            \
    OVERLOADED T shuffle_down(T value, u32 delta, __local T *exchange) {                           \
        u32 t = (u32)get_local_id(0), from = t + delta;                                            \
        exchange[t] = value;                                                                       \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        if (from / WARP == t / WARP && from < get_local_size(0)) value = exchange[from];           \
        barrier(CLK_LOCAL_MEM_FENCE);                                                              \
        return value;                                                                              \
    }
SHUFFLE_DOWN(u32)
SHUFFLE_DOWN(u64)
#define __shfl_down_sync(mask, value, delta) shuffle_down(value, delta, exchange)

#define ATOMICS(T, add, and_, or_, xor_, exchange_, compare)                                       \
    OVERLOADED T atomicAdd(__global T *p, T v) {                                                   \
        return add(p, v);                                                                          \
    }                                                                                              \
    OVERLOADED T atomicAnd(__global T *p, T v) {                                                   \
        return and_(p, v);                                                                         \
    }                                                                                              \
    OVERLOADED T atomicOr(__global T *p, T v) {                                                    \
        return or_(p, v);                                                                          \
    }                                                                                              \
    OVERLOADED T atomicXor(__global T *p, T v) {                                                   \
        return xor_(p, v);                                                                         \
    }                                                                                              \
    OVERLOADED T atomicCAS(__global T *p, T expected, T v) {                                       \
        return compare(p, expected, v);                                                            \
    }                                                                                              \
    OVERLOADED T atomicLoad(__global T *p) {                                                       \
        return add(p, 0);                                                                          \
    }                                                                                              \
    OVERLOADED void atomicStore(__global T *p, T v) {                                              \
        exchange_(p, v);                                                                           \
    }
ATOMICS(u32, atomic_add, atomic_and, atomic_or, atomic_xor, atomic_xchg, atomic_cmpxchg)
ATOMICS(u64, atom_add, atom_and, atom_or, atom_xor, atom_xchg, atom_cmpxchg)

#elif !defined(                                                                                    \
    GLOBAL) /* ---- plain C ------------------------------------------------------------- */

#error "plain C: include the words' meanings for your machine before a kernel"

#endif

/* Capabilities that texts ask for: 0 where a machine's words above do not say otherwise.
 *   IN_CUDA                the text is CUDA C
 *   ABILITY                the compute capability times 10, such as 900
 *   HAS_PTX                asm() takes PTX
 *   HAS_BALLOT             __ballot_sync()
 *   HAS_SHUFFLES           __shfl_sync() and __shfl_xor_sync()
 *   HAS_ATOMIC_MAX         atomicMax() of u32 and u64
 *   HAS_UNROLL_COUNTS      _Pragma("unroll 4")
 *   HAS_FUSED_UNIT         fused() takes one instruction
 *   RESERVES_LOCAL_MEMORY  a thread's arrays take memory for every thread that the device can have
 *   COMPILES_BY_PROBLEM    programs are compiled for a problem's defines, and not once for all */
#ifndef IN_CUDA
#define IN_CUDA               0
#define HAS_PTX               0
#define HAS_BALLOT            0
#define HAS_ATOMIC_MAX        0
#define HAS_UNROLL_COUNTS     0
#define HAS_FUSED_UNIT        0
#define RESERVES_LOCAL_MEMORY 0
#endif
#ifndef HAS_SHUFFLES
#define HAS_SHUFFLES 0
#endif
#ifndef COMPILES_BY_PROBLEM
#define COMPILES_BY_PROBLEM 0
#endif
#ifndef ABILITY
#define ABILITY 0
#endif

#endif
