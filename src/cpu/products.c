/*
 * products.c - the exact sums of x * y of one instruction set, of floats.
 *
 * A product of two f32 has at most 24 + 24 = 48 bits, the lowest at 2^-298 or above, and lies below 2^256: it is
 * a double. So is one of two bf16. One of two f16 has at most 22 bits, the lowest at 2^-48 or above, and
 * lies below 2^32: it is a float. One of two f64 is two doubles (in_two_f64.h), or an integer in
 * bins (product_bins.h).
 */
#include "cpu/instance.h"
#include "cpu/multiply.h"

#define NAME products_f64
#include "cpu/in_two_f64.h"

#define NAME           products_f32
#define ELEMENT        unaligned_f32
#define PAIRED         1
#define TERM(p, q)     (f64_from_f32(p) * f64_from_f32(q))
#define TERM_ONE(p, q) ((double)*(p) * *(q))
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f64.h"

#define NAME           products_f16
#define ELEMENT        unaligned_u16
#define PAIRED         1
#define TERM(p, q)     (LOAD_F16(p) * LOAD_F16(q))
#define TERM_ONE(p, q) (f32_from_f16(p) * f32_from_f16(q))
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f32.h"

#define NAME           products_bf16
#define ELEMENT        unaligned_u16
#define PAIRED         1
#define TERM(p, q)     (f64_from_bf16(p) * f64_from_bf16(q))
#define TERM_ONE(p, q) ((double)f32_from_bf16(p) * f32_from_bf16(q))
#define LEVELS         2
#define MAX_LEVELS     3
#include "cpu/in_f64.h"
