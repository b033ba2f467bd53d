/*
 * operators.h - the types and operators of the kernels.
 *
 * To compile a kernel, define one TYPE_x and one OP_x, named as in src/base/table.h, such as
 * TYPE_F32 and OP_SUM. From these two words follow
 *
 *   element       what the array holds. f16 and bf16 are their 16 bits, and where an operator goes
 *                 by bits or by order, so are f32 and f64: no rounding can creep in.
 *   accumulator   what partial results are:
 *                     sum, prod of integers    u64: two's complement, so also the bits of the i64
 *                     sum, prod of f16, bf16   float
 *                     everything else          the element
 *   word          an accumulator's bits as something atomics and shuffles take: u32, or u64 for 8
 *                 bytes. In memory it starts with the accumulator (devices are little-endian).
 *
 *   load(e)       an element as an accumulator
 *   neutral()     what changes nothing when combined. A floating sum's is -0: it leaves -0 alone.
 *                 (So n = 0 gives -0, and the host says +0.)
 *   apply(a,b)    the operator
 *   combine(a,b)  the same, seen by a machine that counts: COUNT_OPERATION() each time
 *   settle(a)     a result as it is handed on: a NaN becomes the canonical one.
 *
 * min and max order -0 below +0 and give NaN if any element is NaN. Integer sums and products wrap.
 *
 * To compile several instances in one text, undefine TALLY_OPERATORS_H and the two words before the
 * next, and keep the typedefs and functions apart (a namespace each).
 */
#ifndef TALLY_OPERATORS_H
#define TALLY_OPERATORS_H

#include "dialect.h"

#include "half.h"

#undef ARITHMETIC
#undef FLOATING
#undef SIGNED_TYPE
#undef UNSIGNED_TYPE
#undef SIGN
#undef INFINITE
#undef NOT_A_NUMBER
#undef ELEMENT_WIDTH
#undef ELEMENT_MANTISSA

#if defined(OP_SUM) || defined(OP_PROD)
#define ARITHMETIC 1
#elif defined(OP_MIN) || defined(OP_MAX) || defined(OP_AND) || defined(OP_OR) || defined(OP_XOR)
#define ARITHMETIC 0
#else
#error "define one of OP_SUM, OP_PROD, OP_MIN, OP_MAX, OP_AND, OP_OR, OP_XOR"
#endif

/* ---- The type: its numbers if it is an integer, its bits if it is floating ------------------ */

#if defined(TYPE_I8)
#define ELEMENT_WIDTH 8
#define SIGNED_TYPE   i8
#define SIGN          0x80
#elif defined(TYPE_I16)
#define ELEMENT_WIDTH 16
#define SIGNED_TYPE   i16
#define SIGN          0x8000
#elif defined(TYPE_I32)
#define ELEMENT_WIDTH 32
#define SIGNED_TYPE   i32
#define SIGN          0x80000000u
#elif defined(TYPE_I64)
#define ELEMENT_WIDTH 64
#define SIGNED_TYPE   i64
#define SIGN          0x8000000000000000ul
#elif defined(TYPE_U8)
#define ELEMENT_WIDTH 8
#define UNSIGNED_TYPE u8
#elif defined(TYPE_U16)
#define ELEMENT_WIDTH 16
#define UNSIGNED_TYPE u16
#elif defined(TYPE_U32)
#define ELEMENT_WIDTH 32
#define UNSIGNED_TYPE u32
#elif defined(TYPE_U64)
#define ELEMENT_WIDTH 64
#define UNSIGNED_TYPE u64
#elif defined(TYPE_F16)
#define ELEMENT_WIDTH    16
#define FLOATING         u16
#define ELEMENT_MANTISSA 10 /* bits behind the implicit one, as TALLY_FLOATS (table.h) has it */
#elif defined(TYPE_BF16)
#define ELEMENT_WIDTH    16
#define FLOATING         u16
#define ELEMENT_MANTISSA 7
#elif defined(TYPE_F32)
#define ELEMENT_WIDTH    32
#define FLOATING         u32
#define ELEMENT_MANTISSA 23
#elif defined(TYPE_F64)
#define ELEMENT_WIDTH    64
#define FLOATING         u64
#define ELEMENT_MANTISSA 52
#else
#error "define one of TYPE_I8 ... TYPE_F64"
#endif
#if defined(FLOATING)
#define SIGN         ((FLOATING)1 << (ELEMENT_WIDTH - 1))
#define INFINITE     (SIGN - ((FLOATING)1 << ELEMENT_MANTISSA))
#define NOT_A_NUMBER (INFINITE | (FLOATING)1 << (ELEMENT_MANTISSA - 1))
#endif

#if ARITHMETIC /* ---- sum and prod -------------------------------------------------------------- */

#if defined(TYPE_F64)

typedef double element;
typedef double accumulator;
typedef u64 word;

PURE accumulator load(element e) {
    return e;
}
PURE word to_word(accumulator a) {
    return double_bits(a);
}
PURE accumulator from_word(word w) {
    return double_from(w);
}

#elif defined(FLOATING)

#if defined(TYPE_F32)
typedef float element;
#else
typedef u16 element;
#endif
typedef float accumulator;
typedef u32 word;

PURE accumulator load(element e) {
#if defined(TYPE_F32)
    return e;
#elif defined(TYPE_BF16) /* the upper half of a float */
    return float_from((u32)e << 16);
#else
    return float_from(half_bits_widened(e));
#endif
}
PURE word to_word(accumulator a) {
    return float_bits(a);
}
PURE accumulator from_word(word w) {
    return float_from(w);
}

#else /* integers, modulo 2^64 */

#if defined(SIGNED_TYPE)
typedef SIGNED_TYPE element;
#else
typedef UNSIGNED_TYPE element;
#endif
typedef u64 accumulator;
typedef u64 word;

PURE accumulator load(element e) {
    return (u64)e; /* a negative one gains 2^64 */
}
PURE word to_word(accumulator a) {
    return a;
}
PURE accumulator from_word(word w) {
    return w;
}

#endif

PURE accumulator apply(accumulator a, accumulator b) {
#if defined(OP_SUM)
    return a + b;
#else
    return a * b;
#endif
}

PURE accumulator neutral(void) {
#if defined(OP_PROD)
    return 1;
#elif defined(FLOATING)
    return -(accumulator)0;
#else
    return 0;
#endif
}

PURE accumulator settle(accumulator a) {
#if defined(TYPE_F64)
    return a == a ? a : from_word(NOT_A_NUMBER);
#elif defined(FLOATING)
    return a == a ? a : from_word(0x7fc00000u);
#else
    return a;
#endif
}

#else /* ---- min, max, and, or, xor: the accumulator is the element ---------------------------- */

#if defined(FLOATING)
typedef FLOATING element;
#elif defined(SIGNED_TYPE)
typedef SIGNED_TYPE element;
#else
typedef UNSIGNED_TYPE element;
#endif
typedef element accumulator;
#if defined(TYPE_I64) || defined(TYPE_U64) || defined(TYPE_F64)
typedef u64 word;
#else
typedef u32 word;
#endif

PURE word to_word(accumulator a) {
    return (word)a;
}
PURE accumulator from_word(word w) {
    return (accumulator)w;
}

#if defined(FLOATING) && (defined(OP_MIN) || defined(OP_MAX))

PURE int is_nan(element e) {
    return (element)(e & (SIGN - 1)) > INFINITE;
}
/* Returns an order-preserving key of a float. The larger a negative number's bits, the smaller the
 * number, so its bits are inverted; positive numbers come after. */
PURE element rank(element e) {
    return (element)(e & SIGN ? ~e : e | SIGN);
}
PURE accumulator load(element e) {
    return is_nan(e) ? (element)NOT_A_NUMBER : e;
}
PURE accumulator neutral(void) {
#if defined(OP_MIN)
    return (element)INFINITE;
#else
    return (element)(INFINITE | SIGN);
#endif
}
PURE accumulator apply(accumulator a, accumulator b) {
    if (is_nan(a) || is_nan(b)) return (element)NOT_A_NUMBER;
#if defined(OP_MIN)
    return rank(a) <= rank(b) ? a : b;
#else
    return rank(a) >= rank(b) ? a : b;
#endif
}

#else

PURE accumulator load(element e) {
    return e;
}
PURE accumulator neutral(void) {
#if defined(OP_AND)
    return (element) ~(element)0;
#elif defined(OP_OR) || defined(OP_XOR)
    return 0;
#elif defined(SIGNED_TYPE) && defined(OP_MIN)
    return (element)(SIGN - 1);
#elif defined(SIGNED_TYPE)
    return (element)SIGN;
#elif defined(OP_MIN)
    return (element) ~(element)0;
#else
    return 0;
#endif
}
PURE accumulator apply(accumulator a, accumulator b) {
#if defined(OP_MIN)
    return a <= b ? a : b;
#elif defined(OP_MAX)
    return a >= b ? a : b;
#elif defined(OP_AND)
    return (accumulator)(a & b);
#elif defined(OP_OR)
    return (accumulator)(a | b);
#else
    return (accumulator)(a ^ b);
#endif
}

#endif

PURE accumulator settle(accumulator a) {
    return a;
}

#endif

/* ---- What the kernels share --------------------------------------------------------------------- */

PURE accumulator combine(accumulator a, accumulator b) {
    COUNT_OPERATION();
    return apply(a, b);
}

/* Returns x[i], or the neutral element if i >= n. */
__device__ accumulator fetch(const GLOBAL element *x, u64 i, u64 n) {
    return i < n ? load(x[i]) : neutral();
}

/* Combines v into *total, as other blocks do at the same time. Hardware without such an operation
 * compares and swaps: it guesses the old value, writes the combination if the guess is right, and
 * else guesses the value found. A machine that counts sees the atomics, but no application of the
 * operator. */
__device__ void combine_atomically(GLOBAL word *total, accumulator v) {
#if defined(OP_SUM) && !defined(FLOATING)
    atomicAdd(total, to_word(v));
#elif defined(OP_SUM) && FLOAT_ATOMIC_ADD
    atomicAdd((GLOBAL accumulator *)total, v);
#elif defined(OP_AND)
    atomicAnd(total, to_word(v));
#elif defined(OP_OR)
    atomicOr(total, to_word(v));
#elif defined(OP_XOR)
    atomicXor(total, to_word(v));
#else
    word guess, found = to_word(neutral());
    do {
        guess = found;
        found = atomicCAS(total, guess, to_word(apply(from_word(guess), v)));
    } while (found != guess);
#endif
}

/* Delivers a block's result, on one thread. Combines it into *total; if total is NULL, writes it as
 * a partial, which the next launch, or the host, combines with the others. */
__device__ void deliver(accumulator v, GLOBAL accumulator *partial, GLOBAL word *total) {
    if (total)
        combine_atomically(total, settle(v));
    else
        *partial = settle(v);
}

#endif
