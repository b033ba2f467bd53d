/*
 * host_dialect.h - the kernels' dialect (kernels/dialect.h) in plain C, for a loop on the CPU.
 *
 * With it operators.h can be compiled a fourth time: not for CUDA, OpenCL or the model, but as the
 * ordinary functions that a sequential loop calls. Include it before operators.h.
 */
#ifndef TALLY_LADDER_HOST_DIALECT_H
#define TALLY_LADDER_HOST_DIALECT_H

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
#define PURE              static inline
#define __device__        static inline
#define COUNT_OPERATION() ((void)0)
#define FLOAT_ATOMIC_ADD  1

/* One thread runs this code, so that plain operations do for atomics. */
#define atomicAdd(p, v)      ((void)(*(p) += (v)))
#define atomicAnd(p, v)      ((void)(*(p) &= (v)))
#define atomicOr(p, v)       ((void)(*(p) |= (v)))
#define atomicXor(p, v)      ((void)(*(p) ^= (v)))
#define atomicCAS(p, old, v) (*(p) == (old) ? (*(p) = (v), (old)) : *(p))

#define float_bits(x)                                                                              \
    (((union {                                                                                     \
         float f;                                                                                  \
         u32 u;                                                                                    \
     }){.f = (x)})                                                                                 \
         .u)
#define float_from(b)                                                                              \
    (((union {                                                                                     \
         u32 u;                                                                                    \
         float f;                                                                                  \
     }){.u = (b)})                                                                                 \
         .f)
#define double_bits(x)                                                                             \
    (((union {                                                                                     \
         double f;                                                                                 \
         u64 u;                                                                                    \
     }){.f = (x)})                                                                                 \
         .u)
#define double_from(b)                                                                             \
    (((union {                                                                                     \
         u64 u;                                                                                    \
         double f;                                                                                 \
     }){.u = (b)})                                                                                 \
         .f)

#endif
