/*
 * pair.h - an exact sum of floats as two doubles: how terms are added, and how the sum is rounded, once.
 *
 * The sum is s + e, exactly: TwoSum splits s + x into the nearest double and its error without any loss, the error
 * goes to e, and where that addition has an error of its own, the sum is `lost`. Neither an error nor e is ever -0,
 * so that equal numbers have equal bits. NaNs and infinities are noted in `seen`. The caller notes there whether some
 * term is not -0, or sees it from s: a sum that begins at -0 stays -0 as long as all terms are -0.
 *
 * Before including this header, include lower.h.
 */
#ifndef TALLY_PAIR_H
#define TALLY_PAIR_H

#include "certain/rounding.h"

enum { PAIR_LOST = 1, PAIR_NAN = 2, PAIR_PLUS = 4, PAIR_MINUS = 8, PAIR_MIXED = 16 };

typedef struct pair {
    double s, e;
    u32 seen; /* PAIR_...s; PAIR_MIXED: some term is not -0 */
} pair;

/* Adds any element. Notes infinities, NaNs and lost bits in `seen`, but not PAIR_MIXED. */
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

/* Returns the bits of the sum of n elements, or of their mean, as a float of the type `to`; sets
 * *lost if p does not determine them. */
PURE u64 pair_value(const pair *p, u64 n, u32 mean, u32 to, u32 *lost) {
    const float_format f = format_of(to);
    if (p->seen == PAIR_MIXED && p->e == 0 && p->s != 0 && !mean && (to == F32 || to == F64) &&
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
