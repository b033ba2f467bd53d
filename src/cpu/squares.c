/*
 * squares.c - the exact sums of x^2 of one instruction set, of floats: those of f64 by digits (digits.h), the others
 * as products are summed (products.c).
 */
#include "cpu/instance.h"
#include "cpu/multiply.h"

#define NAME           squares_f64
#define ELEMENT        unaligned_f64
#define TERM(p, q)     LOAD_F64(p)
#define TERM_ONE(p, q) *(p)
#define LEVELS         3
#define MAX_LEVELS     5
#define SUMS           0
#include "cpu/in_digits.h"

#define NAME           squares_f32
#define ELEMENT        unaligned_f32
#define PAIRED         0
#define TERM(p, q)     square_f64(f64_from_f32(p))
#define TERM_ONE(p, q) ((double)*(p) * *(p))
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f64.h"

#define NAME           squares_f16
#define ELEMENT        unaligned_u16
#define PAIRED         0
#define TERM(p, q)     square_f32(LOAD_F16(p))
#define TERM_ONE(p, q) (f32_from_f16(p) * f32_from_f16(p))
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f32.h"

#define NAME           squares_bf16
#define ELEMENT        unaligned_u16
#define PAIRED         0
#define TERM(p, q)     square_f64(f64_from_bf16(p))
#define TERM_ONE(p, q) ((double)f32_from_bf16(p) * f32_from_bf16(p))
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f64.h"
