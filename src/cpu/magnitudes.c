/*
 * magnitudes.c - the exact sums of |x| of one instruction set: the sums of floats without their signs.
 * (Those of integers are made in integers.h.)
 */
#include "cpu/instance.h"

/* A vector without the sign bits. */
#define ABSOLUTE_F64(v) ((vf64)((vi64)(v)&INT64_MAX))
#define ABSOLUTE_F32(v) ((vf32)((vi32)(v)&INT32_MAX))

#define NAME           magnitudes_f64
#define ELEMENT        unaligned_f64
#define PAIRED         0
#define TERM(p, q)     ABSOLUTE_F64(LOAD_F64(p))
#define TERM_ONE(p, q) __builtin_fabs(*(p))
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f64.h"

#define NAME           magnitudes_f32
#define ELEMENT        unaligned_f32
#define PAIRED         0
#define TERM(p, q)     ABSOLUTE_F32(LOAD_F32(p))
#define TERM_ONE(p, q) __builtin_fabsf(*(p))
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f32.h"

#define NAME           magnitudes_f16
#define ELEMENT        unaligned_u16
#define PAIRED         0
#define TERM(p, q)     ABSOLUTE_F32(LOAD_F16(p))
#define TERM_ONE(p, q) __builtin_fabsf(f32_from_f16(p))
#define LEVELS         2
#define MAX_LEVELS     3
#define TERM_HIGHEST   15
#define TERM_LOWEST    (-24)
#include "cpu/in_f32.h"

#define NAME           magnitudes_bf16
#define ELEMENT        unaligned_u16
#define PAIRED         0
#define TERM(p, q)     ABSOLUTE_F32(f32s_from_bf16(p))
#define TERM_ONE(p, q) __builtin_fabsf(f32_from_bf16(p))
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f32.h"
