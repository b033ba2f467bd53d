/*
 * own.h - the words of a student's CUDA C, for a device: it stands before their text (ladder/own_device.c).
 *
 * dialect.h gives the words that our kernels use; here are those that students use beside them. CUDA has
 * nearly all of them. OpenCL C knows nothing of lanes and so has no shuffles: texts with these are not run there.
 */
#ifndef TALLY_OWN_H
#define TALLY_OWN_H

#include "dialect.h"

/* Names of ours that a student may want. */
#undef WARP
#undef BLOCK_MAX
#undef FULL_WARP
#undef GLOBAL
#undef SHARED
#undef PURE
#undef EXCHANGE
#undef UNIFORM
#undef leading_zeros
#undef float_bits
#undef float_from
#undef double_bits
#undef double_from

#undef NULL
#define NULL 0
#undef assert
#define assert(condition) ((void)0)

#ifdef __OPENCL_VERSION__

#define __restrict__ restrict
#define __forceinline__
#define __noinline__
#define __host__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __constant__          __constant
#define __threadfence_block() mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define warpSize              32
#define printf(...)           0

typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;

#define fminf          fmin
#define fmaxf          fmax
#define fabsf          fabs
#define __popc(x)      popcount((uint)(x))
#define __clz(x)       clz((int)(x))
#define __int_as_float as_float
#define __float_as_int as_int

#define OWN_WORDS(space, T, U)                                                                     \
    OVERLOADED T atomicAdd(volatile space T *p, T v) {                                             \
        return atomic_add(p, v);                                                                   \
    }                                                                                              \
    OVERLOADED T atomicSub(volatile space T *p, T v) {                                             \
        return atomic_sub(p, v);                                                                   \
    }                                                                                              \
    OVERLOADED T atomicMin(volatile space T *p, T v) {                                             \
        return atomic_min(p, v);                                                                   \
    }                                                                                              \
    OVERLOADED T atomicMax(volatile space T *p, T v) {                                             \
        return atomic_max(p, v);                                                                   \
    }                                                                                              \
    OVERLOADED T atomicExch(volatile space T *p, T v) {                                            \
        return atomic_xchg(p, v);                                                                  \
    }
#define OWN_BITS(space, T)                                                                         \
    OVERLOADED T atomicAnd(volatile space T *p, T v) {                                             \
        return atomic_and(p, v);                                                                   \
    }                                                                                              \
    OVERLOADED T atomicOr(volatile space T *p, T v) {                                              \
        return atomic_or(p, v);                                                                    \
    }                                                                                              \
    OVERLOADED T atomicXor(volatile space T *p, T v) {                                             \
        return atomic_xor(p, v);                                                                   \
    }                                                                                              \
    OVERLOADED T atomicCAS(volatile space T *p, T expected, T v) {                                 \
        return atomic_cmpxchg(p, expected, v);                                                     \
    }
/* A float's atomic addition, by guesses at what stands there. */
#define OWN_REAL(space, T, U, read, bits, compare)                                                 \
    OVERLOADED T atomicAdd(volatile space T *p, T v) {                                             \
        U guess = bits(*p), seen;                                                                  \
        while ((seen = compare((volatile space U *)p, guess, bits(read(guess) + v))) != guess)     \
            guess = seen;                                                                          \
        return read(seen);                                                                         \
    }
OWN_WORDS(__global, int, uint)
OWN_WORDS(__local, int, uint)
OWN_WORDS(__local, uint, uint)
OVERLOADED uint atomicSub(volatile __global uint *p, uint v) {
    return atomic_sub(p, v);
}
OVERLOADED uint atomicMin(volatile __global uint *p, uint v) {
    return atomic_min(p, v);
}
OVERLOADED uint atomicMax(volatile __global uint *p, uint v) {
    return atomic_max(p, v);
}
OWN_BITS(__global, int)
OWN_BITS(__local, int)
OWN_BITS(__local, uint)
OWN_REAL(__global, float, uint, as_float, as_uint, atomic_cmpxchg)
OWN_REAL(__local, float, uint, as_float, as_uint, atomic_cmpxchg)
#ifdef cl_khr_fp64
OWN_REAL(__global, double, ulong, as_double, as_ulong, atom_cmpxchg)
#endif

#pragma GCC poison asm __asm __asm__ __attribute __attribute__

#else /* ---- CUDA C ---- */

typedef unsigned char uint8_t;
typedef signed char int8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long uint64_t;
typedef long int64_t;
#define INT_MAX  0x7fffffff
#define INT_MIN  (-INT_MAX - 1)
#define UINT_MAX 0xffffffffu
#define FLT_MAX  3.402823466e+38f
#define FLT_MIN  1.175494351e-38f
#define DBL_MAX  1.7976931348623157e+308
#define INFINITY __int_as_float(0x7f800000)

#endif
#endif
