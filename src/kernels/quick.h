/*
 * quick.h - means, variances and norms from settled sums (settle.h) by arithmetic of doubles, in a fraction of the time
 * that exact quotients and roots of all digits take (number.h).
 *
 * A sum becomes s + e, off by at most b, from its five highest digits: 129 bits or more. From there on doubles.h says
 * what the value is, or that it is lost: then it has to be worked out from all digits.
 *
 * Before including this header, define SETTLED and include lower.h and doubles.h.
 */
#ifndef TALLY_QUICK_H
#define TALLY_QUICK_H

#define QUICK_DIGITS   5
#define QUICK_EXPONENT 600      /* a sum's highest digit weighs from 2^-this to 2^this */
#define QUICK_ROUGH    0x1p-100 /* the relative bound of a rounded sum */

/* A sum of settled digits: its magnitude, and its sign. */
typedef struct quick_sum {
    ball magnitude;
    u32 negative;
} quick_sum;

/* Returns the sum of a range of digits, rounded; sets *lost if this way does not give it. s + e takes digit after
 * digit, the highest first. An addition to s has an error of at most 2^-53 s, so |e| <= 2^-50 s.
 * Additions to e have errors of at most 2^-103 s each. The digits left out are below 2^-128 s. */
__device__ quick_sum quick_sum_of(digit_range sum, u32 *lost) {
    quick_sum q = {{0, 0, 0}, 0};
    if (sum.count == 0) { /* 0, or -1 above no digits */
        *lost |= sum.above != 0;
        return q;
    }
    const i64 last = (i64)sum.digit[sum.count - 1]; /* may have more than 32 bits, and a sign */
    const i32 exponent = sum.exponent + 32 * ((i32)sum.count - 1);
    u32 rounded = sum.count > QUICK_DIGITS;
    q.negative = sum.above < 0 || last < 0;
    *lost |= exponent < -QUICK_EXPONENT || exponent > QUICK_EXPONENT || last >> 32 < -1 ||
             last >> 32 > 0;
    if (*lost) return q;
    double weight = double_from((u64)(1023 + exponent) << 52);
    for (u32 k = 0; k < QUICK_DIGITS && k < sum.count; k++) {
        const u32 i = sum.count - 1 - k, digit = (u32)sum.digit[i];
        /* Two's complement: the magnitude's digits are inverted, and the lowest, which is not 0, gains 1. */
        const double mine = q.negative ? (double)~digit + (i == 0) : (double)digit;
        double left, more;
        q.magnitude.s = two_sum(q.magnitude.s, weight * mine, &left);
        q.magnitude.e = two_sum(q.magnitude.e, left, &more);
        rounded |= more != 0;
        weight *= 0x1p-32;
    }
    if (rounded) q.magnitude.b = q.magnitude.s * QUICK_ROUGH;
    return q;
}

/* Returns a mean, variance, deviation or norm of floats or integers. Sets *lost if this way does
 * not determine it, or the operator is another. */
__device__ u64 quick_value(const RECORD_SPACE u64 *work, const lower_plan *p, u32 op, u32 type,
                           const lower_scratch *r, u32 *lost) {
    const u32 monoid = op == MEAN ? PLAN_SUM : PLAN_SQUARES;
    *lost |= op != MEAN && op != VAR && op != STD && op != NORM2;
    *lost |= (p->about || p->is_complex) && (op == VAR || op == STD);
    *lost |= p->n == 0 || p->n >> 53 != 0 || p->at[monoid] == PLAN_NONE;
    if (*lost) return 0;
    const notes k = notes_of(work, p, monoid);
    *lost |= (k.nans | k.plus | k.minus) != 0;
    const quick_sum q = quick_sum_of(r->digit_ranges[monoid], lost);
    *lost |= q.magnitude.s == 0; /* which may be -0 */
    if (*lost) return 0;
    if (op == MEAN)
        return ball_value(ball_quotient(q.magnitude, (double)p->n), type, lost) |
               (q.negative ? float_sign(format_of(type)) : 0);
    if (op == NORM2) return ball_value(ball_root(q.magnitude), type, lost);
    const quick_sum sum = quick_sum_of(r->digit_ranges[PLAN_SUM], lost);
    const double ddof = ddof_of(p->ddof, p->exponent, lost);
    if (*lost) return 0;
    const double rough = sum.magnitude.b != 0 || q.magnitude.b != 0 ? QUICK_ROUGH : 0;
    return variance_value(sum.magnitude.s, sum.magnitude.e, q.magnitude.s, q.magnitude.e, p->n,
                          ddof, op == STD, type, rough, lost);
}

#endif
