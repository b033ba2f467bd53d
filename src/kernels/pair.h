/*
 * pair.h - an exact sum of floats as two doubles: how terms are added, and how the sum is rounded, once.
 *
 * The sum is s + e, exactly: TwoSum splits s + x into the nearest double and its error without any loss, the error goes
 * to e, and where that addition has an error of its own, the sum is `lost`. Neither an error nor e is ever -0, so that
 * equal ones have equal bits. NaNs and infinities are noted in `seen`. Whether some term is not -0 is for the caller to
 * note there, or to tell from s, which stays -0 where it began as that and all terms are.
 *
 * Before including this header, include lower.h.
 */
#ifndef TALLY_PAIR_H
#define TALLY_PAIR_H

#include "two_sum.h"

enum { PAIR_LOST = 1, PAIR_NAN = 2, PAIR_PLUS = 4, PAIR_MINUS = 8, PAIR_MIXED = 16 };

typedef struct pair {
    double s, e;
    u32 seen; /* PAIR_...s; PAIR_MIXED: some term is not -0 */
} pair;

/* Returns the exponent field of a double: 2047 for infinities and NaNs. */
PURE i32 exponent_field(double x) {
    return (i32)(double_bits(x) >> 52 & 2047);
}

#define NOT_FINITE 2047
#define HUGE_FIELD 2023 /* of 2^1000: fewer than 2^23 smaller numbers cannot overflow a double */

/* Adds any element, and notes everything of it but PAIR_MIXED. */
PURE void pair_add_any(pair *a, double x) {
    if (exponent_field(x) == NOT_FINITE)
        a->seen |= x != x ? PAIR_NAN : x > 0 ? PAIR_PLUS : PAIR_MINUS;
    else if (pair_add(x, &a->s, &a->e) != 0)
        a->seen |= PAIR_LOST;
}

PURE void pair_merge(pair *a, const pair *b) {
    a->seen |= b->seen;
    pair_add_any(a, b->s);
    if (b->e != 0) pair_add_any(a, b->e); /* adding 0 would make +0 of -0 */
}

/* Returns the bits of a double that was rounded to odd, as a float of the type `to`. */
PURE u64 pair_shorter(double odd, u32 to) {
    const float_format wide = {52, 1023};
    if (to == F64) return double_bits(odd);
    if (to == F32) return (u64)float_bits((float)odd);
    return round_float(format_of(to), wide, double_bits(odd));
}

/* Ziv's rounding test: returns 1 if `low` and `high`, which are finite, round to the same value of
 * the type `to`, so that every number between them does. *bits are that value's. -0 and +0 are
 * different values. If an end is an infinity or a NaN, the result is 0, and the fallback decides.
 * */
PURE u32 rounds_the_same(double low, double high, u32 to, u64 *bits) {
    *bits = pair_shorter(low, to);
    return low - low == 0 && high - high == 0 && pair_shorter(high, to) == *bits;
}

/* Returns the bits of the double nearest to q + (rest + more) / n. q is that double or a neighbour
 * of it, |more| is less than half of rest's last bit, and n < 2^50 is an integer. */
PURE u64 pair_nearest(double q, double rest, double more, double n) {
    const u64 sign = double_bits(q) & (u64)1 << 63, bits = double_bits(q) ^ sign;
    const double left = sign ? -rest : rest, next = sign ? -more : more;
    const u64 other =
        left > 0 ? bits + 1 : bits - 1; /* q's neighbour in the direction of the rest */
    const double gap = double_from(other) - double_from(bits), middle = 0.5 * gap * n; /* exact */
    const double beyond =
        (left - middle) + next; /* its sign is right: near 0 the difference is exact */
    const u32 outwards = left > 0 ? beyond > 0 : beyond < 0;
    return sign | (left != 0 && (outwards || (beyond == 0 && bits & 1)) ? other : bits);
}

/* Returns the bits of (a + r) / n in the type `to`, where |r| is at most half of a's last bit. Sets
 * *lost if this way does not give them. a / n, corrected by d, is a double q: the nearest to the
 * quotient, or a neighbour of that. The remainder a - q n + r has at most 53 bits before r. */
PURE u64 pair_quotient(double a, double r, u64 n, u32 to, u32 *lost) {
    const double count = (double)n;
    if ((n & (n - 1)) ==
        0) { /* a power of two: the sum's double, or what is odd about it, says all */
        const double q = a / count;
        if (exponent_field(q) < 200) *lost = 1;
        return to == F64 ? double_bits(q) : pair_shorter(pair_to_odd(q, r), to);
    }
    if (r == 0 && to == F64 && n >> 53 == 0) return double_bits(a / count);
    const double first = a / count, d = (fused(-first, count, a) + r) / count, q = first + d;
    double more;
    const double rest = two_sum(fused(-q, count, a), r, &more);
    if (exponent_field(q) < 200 || n >> 50 != 0)
        *lost = 1; /* what is left over might not be a double */
    if (to == F64) return pair_nearest(q, rest, more, count);
    return pair_shorter(pair_to_odd(q, rest), to);
}

/* Returns the bits of the sum of n elements, or of their mean, as a float of the type `to`; sets
 * *lost if p does not determine them. */
PURE u64 pair_value(const pair *p, u64 n, u32 mean, u32 to, u32 *lost) {
    const float_format f = format_of(to);
    if (p->seen == PAIR_MIXED && p->e == 0 && p->s != 0 && !mean && to >= F32 &&
        exponent_field(p->s) < HUGE_FIELD) /* most sums */
        return to == F64 ? double_bits(p->s) : (u64)float_bits((float)p->s);
    if (p->seen & PAIR_NAN || (p->seen & PAIR_PLUS && p->seen & PAIR_MINUS))
        return float_nan_bits(f);
    if (p->seen & (PAIR_PLUS | PAIR_MINUS)) return float_infinity_bits(f, p->seen & PAIR_MINUS);
    if (n == 0) return mean ? float_nan_bits(f) : 0;
    double r;
    const double a = two_sum(p->s, p->e, &r);
    if (p->seen & PAIR_LOST || exponent_field(a) >= HUGE_FIELD) *lost = 1;
    if (a == 0) return p->seen & PAIR_MIXED ? 0 : float_sign(f);
    if (mean) return pair_quotient(a, r, n, to, lost);
    return to == F64 ? double_bits(a) : pair_shorter(pair_to_odd(a, r), to);
}

#endif
