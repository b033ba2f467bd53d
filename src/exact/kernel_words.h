/*
 * kernel_words.h - C definitions of the types and functions that headers shared by hosts and kernels expect
 * (kernels/keys.h, kernels/rounding.h, kernels/number.h and others). It includes kernels/keys.h and kernels/rounding.h.
 */
#ifndef TALLY_KERNEL_WORDS_H
#define TALLY_KERNEL_WORDS_H

#include <stdint.h>
#include <string.h>

typedef int32_t i32;
typedef int64_t i64;
typedef uint32_t u32;
typedef uint64_t u64;
#define PURE   static inline
#define SELDOM PURE
#define UNROLL_NOT
#define leading_zeros(u) ((u32)__builtin_clz(u))

PURE u64 double_bits(double x) {
    u64 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
PURE double double_from(u64 bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
PURE u32 float_bits(float x) {
    u32 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#include "kernels/keys.h"
#include "kernels/rounding.h"

#endif
