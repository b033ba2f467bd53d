/*
 * lift.h - the term that an element adds to an exact sum of floats. It is the element itself or, if one of these is
 * defined: with LIFT_MAGNITUDE its magnitude, with LIFT_SQUARE its square, with LIFT_PRODUCT (and then PAIRS) the
 * product of an element of x and one of y.
 *
 * A term is a float or a double and exact. Products of f16 have 22 bits between 2^-48 and 2^32, which are floats;
 * those of bf16 and f32 are doubles. A product of f64 is two doubles (TWO_PARTS): fl(x y), and its error,
 * x y - fl(x y). The error is a double if |x y| >= 2^VAGUE and x y does not overflow: the product of two mantissas
 * has 106 bits, so its lowest bit is worth at least 2^(VAGUE - 105), which is above 2^-1074. A product below 2^VAGUE
 * whose factors are not 0 is vague. Vague products, and those that overflow, go to the superaccumulator (adding.h).
 *
 * With IN_FLOATS a square is one float or two, and no double (FLOAT_SQUARES). The square of an f16 has 22 bits, that
 * of a bf16 16 bits, and both are exact floats. That of an f32 is two floats, as a product of f64 is two doubles.
 * bf16 and f32 are multiplied by a power of two first (SCALED: chains.h), so that no square in a window overflows or
 * is vague. A square that fits no window is added as an integer of 48 bits (square_of()).
 *
 * With LIFT_MOMENTS there are two sums of one array, of its squares and of its elements. The constant `squares` of an
 * input says which sum its terms belong to; the terms of both sums are doubles.
 *
 * LEVELS is the number of a window's levels (window.h). Terms with more bits need more of them. A thread that is a
 * block of its own has ONE_MORE, as terms that fit no window are expensive there (lane_sums.h). CHAINED says that a
 * window's levels are chains (chains.h).
 */
#ifndef TALLY_LIFT_H
#define TALLY_LIFT_H

#include "widen.h"

#include "grid.h"

#if defined(LIFT_SQUARE) || defined(LIFT_PRODUCT) || defined(LIFT_MOMENTS)
#define MULTIPLIES 1
#else
#define MULTIPLIES 0
#endif

#if defined(LIFT_SQUARE) && defined(IN_FLOATS)
#define FLOAT_SQUARES 1
#else
#define FLOAT_SQUARES 0
#endif

/* CHAINED is 1 where squares go through chains (chains.h). Devices behind OpenCL may have no doubles, so squares of f16
 * are floats there, without chains. */
#if defined(LIFT_MOMENTS) || FLOAT_SQUARES ||                                                      \
    (defined(LIFT_SQUARE) &&                                                                       \
     (defined(TYPE_BF16) || (defined(TYPE_F16) && !defined(__OPENCL_VERSION__))))
#define CHAINED 1
#else
#define CHAINED 0
#endif

#if !FLOAT_SQUARES && (defined(TYPE_F64) || (MULTIPLIES && !defined(TYPE_F16)) || CHAINED)
typedef double term;
#define TERM_F64       1
#define FUSED(x, y, z) fused(x, y, z)
#else
typedef float term;
#define TERM_F64       0
#define FUSED(x, y, z) fused_float(x, y, z)
#endif

#define ONE_MORE (BLOCK == 1)
#if FLOAT_SQUARES && defined(TYPE_F32)
#define TWO_PARTS 1
#define LEVELS    5
#elif FLOAT_SQUARES
#define TWO_PARTS 0
#define LEVELS    (4 + (ELEMENT_MANTISSA > 7 && ONE_MORE))
#elif defined(TYPE_F64) && MULTIPLIES
#define TWO_PARTS 1
#define LEVELS    (3 + CHAINED)
#elif defined(TYPE_F64)
#define TWO_PARTS 0
#define LEVELS    2
#elif defined(LIFT_MOMENTS)
#define TWO_PARTS 0
#define LEVELS    (2 + ONE_MORE)
#elif CHAINED
#define TWO_PARTS 0
#define LEVELS    2
#elif defined(TYPE_F32)
#define TWO_PARTS 0
#define LEVELS    (MULTIPLIES ? 2 + ONE_MORE : 3)
#elif defined(TYPE_F16)
#define TWO_PARTS 0
#define LEVELS    (MULTIPLIES ? 3 : 2)
#else
#define TWO_PARTS 0
#define LEVELS    ((MULTIPLIES ? 1 : 2) + ONE_MORE)
#endif

/* The bits of a term, or of each of its parts. */
#define ELEMENT_BITS (ELEMENT_MANTISSA + 1)
#if defined(LIFT_MOMENTS)
#define BITS_OF(s) ((s)->squares ? 2 * ELEMENT_BITS : ELEMENT_BITS)
#elif MULTIPLIES && !TWO_PARTS
#define BITS_OF(s) (2 * ELEMENT_BITS)
#else
#define BITS_OF(s) ELEMENT_BITS
#endif

#define VAGUE (-960)

/* A thread's tile of the inputs: FIRST() and SECOND() are the i-th term's factors. */
#if defined(PAIRS)
typedef struct input {
    tile x, y;
} input;
#define FIRST(t, i)  widen((t)->x.e[i])
#define SECOND(t, i) widen((t)->y.e[i])
#elif defined(LIFT_MOMENTS)
typedef struct input {
    tile x;
    u32 squares;
} input;
#define FIRST(t, i)  widen((t)->x.e[i])
#define SECOND(t, i) ((t)->squares ? widen((t)->x.e[i]) : (real)1)
#else
typedef struct input {
    tile x;
} input;
#define FIRST(t, i)  widen((t)->x.e[i])
#define SECOND(t, i) widen((t)->x.e[i])
#endif

PURE term lift(real x, real y) {
#if MULTIPLIES
    return (term)x * (term)y;
#elif defined(LIFT_MAGNITUDE) && TERM_F64
    return double_from(double_bits(x) & ~((u64)1 << 63));
#elif defined(LIFT_MAGNITUDE)
    return float_from(float_bits(x) & 0x7fffffffu);
#else
    return x;
#endif
}
#define TERM(t, i) lift(FIRST(t, i), SECOND(t, i))

/* SIZE_OF() is the number whose largest magnitude a window is chosen by: a term, or with FLOAT_SQUARES an element. */
#if FLOAT_SQUARES
#define SIZE_OF(t, i) FIRST(t, i)

#define SQUARE_LEAST (-298) /* exponent of the least square: that of 2^-149 */

/* Returns an integer m below 2^(2 ELEMENT_BITS), for which the finite x has the square m 2^(*position + SQUARE_LEAST). */
PURE u64 square_of(real x, u32 *position) {
    const u32 bits = float_bits(x), field = bits >> 23 & 255, zeros = 23 - ELEMENT_MANTISSA;
    const u32 root = ((bits & 0x7fffffu) | (u32)(field != 0) << 23) >> zeros;
    *position = 2 * ((field > 0 ? field - 1 : 0) + zeros);
    return (u64)root * root;
}
#else
#define SIZE_OF(t, i) TERM(t, i)
#endif

#if TWO_PARTS && !FLOAT_SQUARES
/* The second part of the i-th product, whose first part is x: what rounding the product to x has left. */
#define LOW_PART(t, i, x) fused(FIRST(t, i), SECOND(t, i), -(x))

PURE u32 is_vague(double product, double x, double y) {
    const u64 least = (u64)(1023 + VAGUE) << 52;
    return (double_bits(product) & ~((u64)1 << 63)) < least && x != 0 && y != 0;
}
#endif

#endif
