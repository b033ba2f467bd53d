/*
 * moments.c - the exact sums of x and of x^2 at once, of one instruction set: what mean and variance are made of.
 * f32 and bf16 are widened to doubles, exactly. (For f16 and integers two passes are as fast.)
 */
#include "cpu/instance.h"
#include "cpu/kernels.h"
#include "cpu/multiply.h"

#define NAME           moments_f64
#define ELEMENT        unaligned_f64
#define TERM(p, q)     LOAD_F64(p)
#define TERM_ONE(p, q) *(p)
#define LEVELS         3
#define MAX_LEVELS     5
#define SUMS           1
#include "cpu/in_digits.h"

#define NAME           moments_f32
#define ELEMENT        unaligned_f32
#define TERM(p, q)     f64_from_f32(p)
#define TERM_ONE(p, q) *(p)
#define LEVELS         2
#define MAX_LEVELS     4
#define SUMS           1
#include "cpu/in_digits.h"

#define NAME           moments_bf16
#define ELEMENT        unaligned_u16
#define TERM(p, q)     f64_from_bf16(p)
#define TERM_ONE(p, q) f32_from_bf16(p)
#define LEVELS         2
#define MAX_LEVELS     4
#define SUMS           1
#include "cpu/in_digits.h"
