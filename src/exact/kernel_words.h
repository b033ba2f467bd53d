/*
 * kernel_words.h - what the texts that hosts share with kernels (kernels/rounding.h, kernels/number.h,
 * kernels/keys.h) expect to be defined, in C.
 */
#ifndef TALLY_KERNEL_WORDS_H
#define TALLY_KERNEL_WORDS_H

#include <stdint.h>

typedef int32_t i32;
typedef int64_t i64;
typedef uint32_t u32;
typedef uint64_t u64;
#define PURE             static inline
#define leading_zeros(u) ((u32)__builtin_clz(u))

#include "kernels/keys.h"
#include "kernels/rounding.h"

#endif
