/*
 * lower.h - from the records of a problem's monoids to its values, on the device: what src/problem/lower.c does on the host,
 * bit for bit (but for fast means, which promise no bits).
 *
 * Numbers (number.h) are long; on CUDA they lie in shared memory, as thread-local memory would be reserved for every
 * thread that the device can have. Before including this header, define RECORD_SPACE: where the records lie, GLOBAL or SHARED;
 * and SETTLED, where a block's threads settle sums together (settle.h) before one of them lowers.
 */
#ifndef TALLY_KERNELS_LOWER_H
#define TALLY_KERNELS_LOWER_H

#include "../base/table.h"

#include "tuning.h"

#include "result.h"

#include "keys.h"

#include "number.h"

#include "plan.h"

/* Types and operators, numbered as in include/tally.h. */
#define NUMBERED(NAME, name, kind, bits) NAME,
enum { NO_TYPE, TALLY_TYPES(NUMBERED) TYPE_ROWS };
#undef NUMBERED
enum {
    SUM = 1,
    PROD,
    MIN,
    MAX,
    AND,
    OR,
    XOR,
    MEAN,
    VAR,
    STD,
    NORM1,
    NORM2,
    NORMINF,
    SUMSQ,
    DOT,
    ARGMIN,
    ARGMAX,
    MINMAX,
    COUNT,
    NANS,
    NONZERO,
    ANY,
    ALL,
    DESCRIBE,
    USER
};

#define SUMS 4 /* the first monoids are sums */

ORDER_KEYS(u64)

/* ---- Types -------------------------------------------------------------------------------------- */

/* The terms of three constants, made from TALLY_TYPES: a bit for each type that is a float; a bit for each that is
 * signed; two bits for each type's width, the log2 of its bytes. */
#define ONE_OF_FLOATING                    2
#define ONE_OF_SIGNED                      1
#define ONE_OF_UNSIGNED                    0
#define FLOAT_BIT(NAME, name, kind, bits)  | (u32)(ONE_OF_##kind == 2) << NAME
#define SIGNED_BIT(NAME, name, kind, bits) | (u32)(ONE_OF_##kind == 1) << NAME
#define WIDTH_BITS(NAME, name, kind, bits)                                                         \
    | (u32)((bits) == 8 ? 0 : (bits) == 16 ? 1 : (bits) == 32 ? 2 : 3) << 2 * NAME

PURE u32 is_float(u32 type) {
    return ((0u TALLY_TYPES(FLOAT_BIT)) >> type) & 1;
}

PURE u32 is_signed(u32 type) {
    return ((0u TALLY_TYPES(SIGNED_BIT)) >> type) & 1;
}

PURE u32 width_of(u32 type) {
    return 8u << (((0u TALLY_TYPES(WIDTH_BITS)) >> 2 * type) & 3);
}

/* Returns the format of a float type, as TALLY_FLOATS has it. Its four rows are written out, as compilers make worse
 * code of a list. */
#define ONE_MORE_FLOAT(NAME, mantissa, bias) +1
typedef char format_of_knows_all_floats[(0 TALLY_FLOATS(ONE_MORE_FLOAT)) == 4 ? 1 : -1];
PURE float_format format_of(u32 type) {
    const float_format f = {type == F64   ? 52
                            : type == F32 ? 23
                            : type == F16 ? 10
                                          : 7,
                            type == F64   ? 1023
                            : type == F16 ? 15
                                          : 127};
    return f;
}

PURE u64 all_bits(u32 width) {
    return ~(u64)0 >> (64 - width);
}

PURE u32 kind_of(u32 type) {
    return is_float(type) ? ORDER_FLOAT : is_signed(type) ? ORDER_SIGNED : ORDER_UNSIGNED;
}

/* ---- Exact sums --------------------------------------------------------------------------------- */

#if defined(SETTLED)
/* A sum's significant digits: digit[0..count), the first of which weighs 2^exponent, and `above`
 * them 0 or -1. */
typedef struct digit_range {
    const SHARED u64 *digit;
    u32 count;
    i32 exponent, above;
} digit_range;
#endif

typedef struct lower_scratch {
    number sum, squares, imaginary,
        more; /* of imaginary parts: their sum, and that of their squares */
    number_scratch scratch;
#if defined(SETTLED)
    digit_range digit_ranges[SUMS];
#endif
} lower_scratch;

/* Declares a kernel's scratch for lowering. One thread of a block uses it, so it may be the block's.
 * On CUDA it is in shared memory, which is faster than the local memory of a thread's arrays. */
#if RESERVES_LOCAL_MEMORY
#define SHARED_LOWER_SCRATCH __shared__ lower_scratch
#else
#define SHARED_LOWER_SCRATCH lower_scratch
#endif

/* The layout of a monoid's sum: its number of limbs, where limb i weighs 2^(32 i + lowest). */
typedef struct limb_layout {
    u32 limbs;
    i32 lowest;
} limb_layout;

PURE limb_layout limb_layout_of(u32 type, u32 monoid) {
    const u32 two = monoid == PLAN_SQUARES || monoid == PLAN_PRODUCTS;
    limb_layout s = {FLOAT_LIMBS, -1088};
    if (type == F64 && two) {
        s.limbs = WIDE_FLOAT_LIMBS;
        s.lowest = -2176;
    } else if (!is_float(type)) {
        s.limbs = !two ? 3 : width_of(type) == 64 ? 6 : 4;
        s.lowest = 0;
    }
    return s;
}

/* The non-finite side of a sum of floats: the numbers of NaNs and infinities, and whether a term is
 * not -0. */
typedef struct notes {
    u64 nans, plus, minus, mixed;
} notes;

__device__ notes notes_of(const RECORD_SPACE u64 *work, const lower_plan *p, u32 monoid) {
    notes k = {0, 0, 0, 1};
    if (is_float(p->type)) {
        const RECORD_SPACE u64 *counts =
            work + p->at[monoid] + limb_layout_of(p->type, monoid).limbs;
        k.nans = counts[0];
        k.plus = counts[1];
        k.minus = counts[2];
        k.mixed = counts[3];
    }
    return k;
}

OUTLINED void load_sum(const RECORD_SPACE u64 *work, const lower_plan *p, u32 monoid,
                       lower_scratch *r, number *out) {
#if defined(SETTLED)
    const digit_range s = r->digit_ranges[monoid];
    (void)work;
    (void)p;
#define LIMB_AT(i) s.digit[i]
    NUMBER_OF_LIMBS(LIMB_AT, s.count, s.exponent, s.above, out);
#else
    const RECORD_SPACE u64 *limb = work + p->at[monoid];
    const limb_layout s = limb_layout_of(p->type, monoid);
    (void)r;
#define LIMB_AT(i) limb[i]
    NUMBER_OF_LIMBS(LIMB_AT, s.limbs, s.lowest, 0, out);
#endif
#undef LIMB_AT
}

/* Returns whether infinities or NaNs decide a sum; then *bits is the value's. */
PURE u32 is_special(notes k, float_format f, u64 *bits) {
    if (k.nans || (k.plus && k.minus))
        *bits = float_nan_bits(f);
    else if (k.plus || k.minus)
        *bits = float_infinity_bits(f, k.minus != 0);
    else
        return 0;
    return 1;
}

/* Returns an integer's bits. If it does not fit the type, returns 0 and sets *status to
 * RESULT_RANGE. */
SELDOM u64 integer_bits(const number *a, u32 type, u32 *status) {
    const u64 magnitude = (u64)number_digit(a, 32) << 32 | number_digit(a, 0);
    const u64 most = is_signed(type) ? (~(u64)0 >> 1) + a->negative : a->negative ? 0 : ~(u64)0;
    if ((a->count > 0 && a->exponent + 32 * a->count > 64) || magnitude > most) {
        *status = RESULT_RANGE;
        return 0;
    }
    return a->negative ? 0 - magnitude : magnitude;
}

__device__ u64 lower_sum(const RECORD_SPACE u64 *work, const lower_plan *p, u32 monoid, u32 type,
                         u32 *status, lower_scratch *r) {
    u64 bits;
    load_sum(work, p, monoid, r, &r->sum);
    if (!is_float(type)) return integer_bits(&r->sum, type, status);
    const float_format f = format_of(type);
    const notes k = notes_of(work, p, monoid);
    if (is_special(k, f, &bits)) return bits;
    if (p->n != 0 && !k.mixed) return float_sign(f);
    return round_number(f, &r->sum);
}

/* Returns the bits of a fast sum or mean. Its record is the bits of a float, or of a double for
 * f64. */
OUTLINED u64 lower_fast(const RECORD_SPACE u64 *work, const lower_plan *p, u32 mean, u32 type,
                        lower_scratch *r) {
    const u64 bits = work[p->at[PLAN_FAST]];
    const float_format f = format_of(type), mine = format_of(p->type == F64 ? F64 : F32);
    const u64 magnitude = bits & (float_sign(mine) - 1);
    if (!mean || magnitude >= float_infinity_bits(mine, 0) || magnitude == 0)
        return round_float(f, mine, bits);
    const u64 field = magnitude >> mine.mantissa;
    const u64 fraction = magnitude & (((u64)1 << mine.mantissa) - 1);
    number_of(fraction | (u64)(field != 0) << mine.mantissa,
              (i32)(field ? field : 1) - mine.bias - mine.mantissa, &r->sum);
    number_of(p->n, 0, &r->squares);
    r->sum.negative = bits != magnitude;
    return round_quotient(f, &r->sum, &r->squares, 0, &r->scratch);
}

__device__ u64 lower_mean(const RECORD_SPACE u64 *work, const lower_plan *p, u32 type,
                          lower_scratch *r) {
    const float_format f = format_of(type);
    u64 bits;
    if (p->n == 0) return float_nan_bits(f);
    if (p->at[PLAN_FAST] != PLAN_NONE) return lower_fast(work, p, 1, type, r);
    const notes k = notes_of(work, p, PLAN_SUM);
    if (is_special(k, f, &bits)) return bits;
    load_sum(work, p, PLAN_SUM, r, &r->sum);
    if (r->sum.count == 0) return k.mixed ? 0 : float_sign(f);
    number_of(p->n, 0, &r->squares);
    return round_quotient(f, &r->sum, &r->squares, 0, &r->scratch);
}

/* Loads the sum and the sum of squares of real or imaginary parts; if the plan gives a mean, those of their distances
 * from it. */
OUTLINED void load_moments(const RECORD_SPACE u64 *work, const lower_plan *p, u32 monoid_sum,
                           u32 monoid_squares, u64 mean, lower_scratch *r, number *sum,
                           number *squares) {
    load_sum(work, p, monoid_sum, r, sum);
    load_sum(work, p, monoid_squares, r, squares);
    if (p->about) number_about(mean, p->n, sum, squares, &r->scratch);
}

/* Returns whether NaNs or infinities make a variance NaN: among the terms of its sum, `monoid`, or as the given
 * mean. */
__device__ u32 has_no_variance(const RECORD_SPACE u64 *work, const lower_plan *p, u32 monoid,
                               u64 mean) {
    const notes k = notes_of(work, p, monoid);
    return k.nans || k.plus || k.minus || (p->about && (mean >> 52 & 2047) == 2047);
}

__device__ u64 lower_variance(const RECORD_SPACE u64 *work, const lower_plan *p, u32 root, u32 type,
                              lower_scratch *r) {
    const float_format f = format_of(type);
    number_of(0, 0, &r->imaginary);
    if (p->n == 0 || has_no_variance(work, p, PLAN_SUM, p->mean[0])) return float_nan_bits(f);
    load_moments(work, p, PLAN_SUM, PLAN_SQUARES, p->mean[0], r, &r->sum, &r->squares);
    if (p->is_complex) {
        if (has_no_variance(work, p, PLAN_MAGNITUDES, p->mean[1])) return float_nan_bits(f);
        load_moments(work, p, PLAN_MAGNITUDES, PLAN_PRODUCTS, p->mean[1], r, &r->imaginary,
                     &r->more);
        number_add_squares(&r->squares, &r->more, &r->scratch);
    }
    return round_variance(f, &r->sum, &r->imaginary, &r->squares, p->n, p->ddof, p->exponent, root,
                          &r->scratch);
}

__device__ u64 lower_norm2(const RECORD_SPACE u64 *work, const lower_plan *p, u32 type,
                           lower_scratch *r) {
    const float_format f = format_of(type);
    u64 bits;
    if (is_special(notes_of(work, p, PLAN_SQUARES), f, &bits)) return bits;
    load_sum(work, p, PLAN_SQUARES, r, &r->squares);
    number_of(1, 0, &r->sum);
    return round_quotient(f, &r->squares, &r->sum, 1, &r->scratch);
}

/* ---- Extremes ----------------------------------------------------------------------------------- */

/* The extremes in a record of order.cu, with or without indices. */
typedef struct ends {
    u64 least, greatest; /* keys */
    u64 at_least, at_greatest, at_nan;
    u32 nan;
} ends;

__device__ ends ends_of(const RECORD_SPACE u64 *work, const lower_plan *p) {
    const RECORD_SPACE u64 *record = work + p->at[PLAN_EXTREMES];
    const u64 all = all_bits(width_of(p->type));
    ends e = {all ^ record[1], record[0], 0, 0, 0, 0};
    if (p->indexed) {
        e.at_greatest = ~record[2];
        e.at_least = ~record[3];
        e.at_nan = ~record[4];
        e.nan = record[4] != 0;
    } else if (is_float(p->type) && p->n != 0) {
        const u64 limit =
            float_infinity_bits(format_of(p->type), 0) | float_sign(format_of(p->type));
        e.nan = e.greatest > limit || e.least < (all ^ limit);
    }
    return e;
}

/* Returns the bits of the element with a key; if there are no elements, the identity. */
PURE u64 end_bits(const lower_plan *p, u64 key, u32 greatest) {
    if (p->n == 0 && is_float(p->type)) return float_infinity_bits(format_of(p->type), greatest);
    return bits_of_key(key, width_of(p->type), kind_of(p->type));
}

PURE u64 end_magnitude(const lower_plan *p, u64 key) {
    const u32 width = width_of(p->type);
    const u64 bits = bits_of_key(key, width, kind_of(p->type));
    if (is_float(p->type)) return bits & (all_bits(width) >> 1);
    if (!is_signed(p->type) || !(bits >> (width - 1))) return bits;
    return (0 - bits) & all_bits(width);
}

PURE u64 lower_norminf(const lower_plan *p, ends e, u32 type, u32 *status) {
    if (p->n == 0) return 0;
    if (e.nan) return float_nan_bits(format_of(type));
    const u64 a = end_magnitude(p, e.least), b = end_magnitude(p, e.greatest);
    const u64 most = a > b ? a : b;
    if (type != I64 || most <= ~(u64)0 >> 1) return most;
    *status = RESULT_RANGE;
    return 0;
}

PURE u64 lower_index(const lower_plan *p, ends e, u64 index, u32 *status) {
    if (p->n == 0) *status = RESULT_NONE;
    return p->n == 0 ? 0 : e.nan ? e.at_nan : index;
}

/* ---- Products, and values of every operator ----------------------------------------------------- */

__device__ u64 lower_factors(const RECORD_SPACE u64 *work, const lower_plan *p, u32 type,
                             u32 *status) {
    const RECORD_SPACE u64 *record = work + p->at[PLAN_FACTORS];
    enum { NEGATIVE = 1, ZERO = 2, OVERFLOW = 4 }; /* integer_product.cu */
    const u64 flags = record[1], magnitude = flags & ZERO ? 0 : record[0] ^ 1;
    const u32 negative = (flags & NEGATIVE) && magnitude != 0;
    u32 fits = !(flags & OVERFLOW) || (flags & ZERO);
    if (is_signed(type)) fits = fits && magnitude <= (~(u64)0 >> 1) + negative;
    if (!fits) *status = RESULT_RANGE;
    return !fits ? 0 : negative ? 0 - magnitude : magnitude;
}

__device__ u64 lower_tree(const RECORD_SPACE u64 *work, const lower_plan *p, u32 type) {
    const u64 at = p->at[PLAN_TREE];
    const u32 mine = p->user || p->type == F64 ? p->type : F32, width = width_of(mine);
    if (p->n == 0) return p->identity;
    const u64 node = width == 64   ? work[at]
                     : width == 32 ? ((const RECORD_SPACE u32 *)work)[at]
                     : width == 16 ? ((const RECORD_SPACE u16 *)work)[at]
                                   : ((const RECORD_SPACE u8 *)work)[at];
    return is_float(type) ? round_float(format_of(type), format_of(mine), node) : node;
}

OUTLINED u64 lower_value(const RECORD_SPACE u64 *work, const lower_plan *p, u32 op, u32 type,
                         u32 *status, lower_scratch *r) {
    ends e = {0, 0, 0, 0, 0, 0};
    if (p->at[PLAN_EXTREMES] != PLAN_NONE) e = ends_of(work, p);
    switch (op) {
    case SUM:
        if (p->at[PLAN_FAST] != PLAN_NONE) return lower_fast(work, p, 0, type, r);
        return lower_sum(work, p, PLAN_SUM, type, status, r);
    case MEAN:
        return lower_mean(work, p, type, r);
    case VAR:
    case STD:
        return lower_variance(work, p, op == STD, type, r);
    case NORM1:
        return lower_sum(work, p, PLAN_MAGNITUDES, type, status, r);
    case NORM2:
        return lower_norm2(work, p, type, r);
    case SUMSQ:
        return lower_sum(work, p, PLAN_SQUARES, type, status, r);
    case DOT:
        return lower_sum(work, p, PLAN_PRODUCTS, type, status, r);
    case MIN:
        return e.nan ? float_nan_bits(format_of(type)) : end_bits(p, e.least, 0);
    case MAX:
        return e.nan ? float_nan_bits(format_of(type)) : end_bits(p, e.greatest, 1);
    case NORMINF:
        return lower_norminf(p, e, type, status);
    case ARGMIN:
        return lower_index(p, e, e.at_least, status);
    case ARGMAX:
        return lower_index(p, e, e.at_greatest, status);
    case AND:
    case OR:
    case XOR:
        return (p->complemented ? ~work[p->at[PLAN_BITS]] : work[p->at[PLAN_BITS]]) &
               all_bits(width_of(p->type));
    case COUNT:
        return p->n;
    case NANS:
        return is_float(p->type) ? notes_of(work, p, PLAN_SUM).nans : 0;
    case NONZERO:
        return work[p->at[PLAN_NONZERO]];
    case ANY:
        return work[p->at[PLAN_NONZERO]] != 0;
    case ALL:
        return work[p->at[PLAN_NONZERO]] == p->n;
    case PROD:
        if (!is_float(p->type)) return lower_factors(work, p, type, status);
        return lower_tree(work, p, type);
    default:
        return lower_tree(work, p, type);
    }
}

#endif
