/*
 * exact_sum.c - the exact sums of floats of one instruction set. f16 and bf16 are widened to f32, exactly, as they
 * are loaded.
 */
#include "cpu/instance.h"

#define NAME           sum_f64
#define ELEMENT        unaligned_f64
#define PLAIN          1
#define PAIRED         0
#define TERM(p, q)     LOAD_F64(p)
#define TERM_ONE(p, q) *(p)
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f64.h"

#define NAME           sum_f32
#define ELEMENT        unaligned_f32
#define PLAIN          1
#define PAIRED         0
#define TERM(p, q)     LOAD_F32(p)
#define TERM_ONE(p, q) *(p)
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f32.h"

#define NAME           sum_f16
#define ELEMENT        unaligned_u16
#define PAIRED         0
#define TERM(p, q)     LOAD_F16(p)
#define TERM_ONE(p, q) f32_from_f16(p)
#define LEVELS         2
#define MAX_LEVELS     3
#define TERM_HIGHEST   15
#define TERM_LOWEST    (-24)
#include "cpu/in_f32.h"

#define NAME           sum_bf16
#define ELEMENT        unaligned_u16
#define PAIRED         0
#define TERM(p, q)     f32s_from_bf16(p)
#define TERM_ONE(p, q) f32_from_bf16(p)
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f32.h"
