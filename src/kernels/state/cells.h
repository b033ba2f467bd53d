/*
 * cells.h - a thread's state of all monoids at once, for elements of the type that the plan says: words, and sums in
 * two doubles or four digits. Bits that these do not hold go, exactly, to the block's superaccumulators (limbs.h).
 *
 * Before including this header, define TYPE_U64 and OP_OR, which stand for any type, and include
 * operators.h, parts.h, records.h, lower.h, limbs.h, doubles.h and spots.h.
 */
#ifndef TALLY_STATE_CELLS_H
#define TALLY_STATE_CELLS_H

/* The words of a cell. */
enum {
    W_N,         /* elements */
    W_NONZERO,   /* of them not zero */
    W_OR,        /* their bits, or the complements of these */
    W_XOR,       /* their bits */
    W_FAST,      /* a double: their sum in any order */
    W_MAGNITUDE, /* the product of integers: integer_product.cu */
    W_FLAGS,
    W_GREATEST, /* extremes and their indices: order.cu */
    W_LEAST,
    W_AT_GREATEST,
    W_AT_LEAST,
    W_AT_NAN,
    W_MIXED /* bit k: some term of monoid k's sum is not -0 */
};

enum { NEGATIVE = 1, ZERO = 2, OVERFLOW = 4 };

PURE void multiply(u64 *known, u64 magnitude) {
    const u64 mine = known[W_MAGNITUDE] ^ 1;
    if (high_product(mine, magnitude) != 0)
        known[W_FLAGS] |= OVERFLOW;
    else
        known[W_MAGNITUDE] = (mine * magnitude) ^ 1;
}

/* Makes *a the greater of two extremes, and *at_a its index. Indices are complemented, so of equal extremes the one
 * with the greater word is the first. */
PURE void merge_extreme(u64 *a, u64 *at_a, u64 b, u64 at_b) {
    if (b > *a || (b == *a && at_b > *at_a)) {
        *a = b;
        *at_a = at_b;
    }
}

PURE void merge(u64 *a, const u64 *b) {
    a[W_N] += b[W_N];
    a[W_NONZERO] += b[W_NONZERO];
    a[W_OR] |= b[W_OR];
    a[W_XOR] ^= b[W_XOR];
    a[W_FAST] = double_bits(double_from(a[W_FAST]) + double_from(b[W_FAST]));
    a[W_FLAGS] = (a[W_FLAGS] ^ (b[W_FLAGS] & NEGATIVE)) | (b[W_FLAGS] & (ZERO | OVERFLOW));
    multiply(a, b[W_MAGNITUDE] ^ 1);
    merge_extreme(&a[W_GREATEST], &a[W_AT_GREATEST], b[W_GREATEST], b[W_AT_GREATEST]);
    merge_extreme(&a[W_LEAST], &a[W_AT_LEAST], b[W_LEAST], b[W_AT_LEAST]);
    if (b[W_AT_NAN] > a[W_AT_NAN]) a[W_AT_NAN] = b[W_AT_NAN];
    a[W_MIXED] |= b[W_MIXED];
}

/* Sums of floats as two doubles, those of integers as digits worth 32 bits whose carries have not been settled. */
typedef struct sum {
    double high, low;
    u64 digit[4];
} sum;

typedef struct cell {
    u64 word[WORDS];
    sum sums[SUMS];
    u32 beyond; /* something is in the block's superaccumulators that the sums do not have */
} cell;

PURE double double_of(u32 type, u64 bits) {
    if (type == F64) return double_from(bits);
    if (type == F32) return (double)float_from((u32)bits);
    if (type == BF16) return (double)float_from((u32)bits << 16);
    return (double)float_from(half_bits_widened((u32)bits));
}

/* Splits a finite double: returns an integer m, |m| < 2^53, with x = m 2^*exponent. */
PURE i64 split(double x, i32 *exponent) {
    const u64 bits = double_bits(x);
    const i32 field = (i32)(bits >> 52 & 2047);
    const i64 mantissa = (i64)((bits & (((u64)1 << 52) - 1)) | (u64)(field != 0) << 52);
    *exponent = (field > 0 ? field : 1) - 1075;
    return bits >> 63 ? -mantissa : mantissa;
}

__device__ void add_exact(double x, i32 lowest, SHARED u64 *limbs) {
    i32 exponent;
    const i64 m = split(x, &exponent);
    add_limbs(limbs, m, exponent - lowest + LIMB_LOWEST);
}

/* Adds the product of two finite doubles to the superaccumulator, as an integer of 106 bits. */
__device__ void add_exact_product(double x, double y, i32 lowest, SHARED u64 *limbs) {
    i32 ex, ey;
    const i64 mx = split(x, &ex), my = split(y, &ey);
    const u64 ux = mx < 0 ? 0 - (u64)mx : (u64)mx, uy = my < 0 ? 0 - (u64)my : (u64)my;
    const u64 low = ux * uy, high = high_product(ux, uy);
    const i64 sign = (mx < 0) != (my < 0) ? -1 : 1;
    const i32 e = ex + ey - lowest + LIMB_LOWEST;
    add_limbs(limbs, sign * (i64)(low & (((u64)1 << 53) - 1)), e);
    add_limbs(limbs, sign * (i64)(high << 11 | low >> 53), e + 53);
}

/* Adds a finite double to the thread's sum. A huge one, and the bits that a double-double cannot
 * hold, go to the superaccumulator. */
INLINED void add_double(double x, cell *c, sum *s, i32 lowest, SHARED u64 *limbs) {
    if (exponent_field(x) >= HUGE_FIELD) {
        c->beyond = 1;
        add_exact(x, lowest, limbs);
        return;
    }
    double e, f;
    s->high = two_sum(s->high, x, &e);
    s->low = two_sum(s->low, e, &f);
    if (f != 0) {
        c->beyond = 1;
        add_exact(f, lowest, limbs);
    }
}

/* Counts an infinity or a NaN. */
__device__ void add_special(double x, u32 count, SHARED u64 *limbs) {
    SHARED u64 *known = &limbs[count + (x != x ? 0 : x > 0 ? 1 : 2)];
#if BLOCK == 1
    *known += 1;
#else
    atomicAdd((SHARED u32 *)known, 1u); /* a block has fewer than 2^32 of them before it delivers */
#endif
}

INLINED void add_term(double x, u32 bit, limb_layout s, cell *c, sum *to, SHARED u64 *limbs) {
    if (double_bits(x) != (u64)1 << 63) c->word[W_MIXED] |= bit;
    if (exponent_field(x) == NOT_FINITE) {
        c->beyond = 1;
        add_special(x, s.limbs, limbs);
    } else {
        add_double(x, c, to, s.lowest, limbs);
    }
}

/* Adds the product of two elements: the nearest double and its error, if both are doubles (lift.h),
 * else the whole product to the superaccumulator. */
INLINED void add_wide(double x, double y, u32 bit, limb_layout s, cell *c, sum *to,
                      SHARED u64 *limbs) {
    const double product = x * y;
    const i32 field = exponent_field(product);
    const u32 finite = exponent_field(x) != NOT_FINITE && exponent_field(y) != NOT_FINITE;
    if (!finite || x == 0 || y == 0) {
        add_term(product, bit, s, c, to, limbs);
    } else if (field >= HUGE_FIELD || field < 1023 - 960) {
        c->word[W_MIXED] |= bit;
        c->beyond = 1;
        add_exact_product(x, y, s.lowest, limbs);
    } else {
        const double rest = fused(x, y, -product); /* 0 for floats of up to 32 bits */
        add_term(product, bit, s, c, to, limbs);
        if (rest != 0) add_double(rest, c, to, s.lowest, limbs);
    }
}

PURE void add_digits(sum *to, u64 low, u64 high) {
    to->digit[0] += low & 0xffffffffu;
    to->digit[1] += low >> 32;
    to->digit[2] += high & 0xffffffffu;
    to->digit[3] += high >> 32;
}

/* Adds a number of 64 bits, the highest of them a sign where it may be negative (`is_negative`). */
PURE void add_integer(sum *to, u64 w, u32 is_negative) {
    to->digit[0] += w & 0xffffffffu;
    to->digit[1] += is_negative ? (u64)((i64)w >> 32) : w >> 32;
}

#define HAS(p, monoid) ((p)->monoids >> (monoid)&1u)

INLINED void add_float(u64 bits, u64 beside, const parts_plan *p, cell *c, SHARED u64 *rec) {
    const u32 type = p->lower.type, is_complex = p->lower.is_complex;
    const double x = double_of(type, bits), y = double_of(type, beside);
    const double first = is_complex ? y : x; /* the first factor of a product */
    const double magnitude = double_from(double_bits(x) & ~((u64)1 << 63));
    if (HAS(p, PLAN_SUM))
        add_term(x, 1u << PLAN_SUM, limb_layout_of(type, PLAN_SUM), c, &c->sums[PLAN_SUM],
                 rec + p->lower.at[PLAN_SUM]);
    if (HAS(p, PLAN_MAGNITUDES))
        add_term(is_complex ? y : magnitude, 1u << PLAN_MAGNITUDES,
                 limb_layout_of(type, PLAN_MAGNITUDES), c, &c->sums[PLAN_MAGNITUDES],
                 rec + p->lower.at[PLAN_MAGNITUDES]);
    if (HAS(p, PLAN_SQUARES))
        add_wide(x, x, 1u << PLAN_SQUARES, limb_layout_of(type, PLAN_SQUARES), c,
                 &c->sums[PLAN_SQUARES], rec + p->lower.at[PLAN_SQUARES]);
    if (HAS(p, PLAN_PRODUCTS))
        add_wide(first, y, 1u << PLAN_PRODUCTS, limb_layout_of(type, PLAN_PRODUCTS), c,
                 &c->sums[PLAN_PRODUCTS], rec + p->lower.at[PLAN_PRODUCTS]);
    if (HAS(p, PLAN_FAST)) c->word[W_FAST] = double_bits(double_from(c->word[W_FAST]) + x);
}

PURE void add_whole(u64 bits, u64 beside, const parts_plan *p, cell *c) {
    const u32 type = p->lower.type, width = width_of(type), with_sign = is_signed(type);
    const u64 x = extended(bits, width, with_sign), y = extended(beside, width, with_sign);
    const u32 negative = with_sign && x >> 63;
    const u64 magnitude = negative ? 0 - x : x;
    if (HAS(p, PLAN_SUM)) add_integer(&c->sums[PLAN_SUM], x, with_sign);
    if (HAS(p, PLAN_MAGNITUDES)) add_integer(&c->sums[PLAN_MAGNITUDES], magnitude, 0);
    if (HAS(p, PLAN_SQUARES))
        add_digits(&c->sums[PLAN_SQUARES], magnitude * magnitude,
                   width == 64 ? high_product(magnitude, magnitude) : 0);
    if (HAS(p, PLAN_PRODUCTS) && width < 64) add_integer(&c->sums[PLAN_PRODUCTS], x * y, with_sign);
    if (HAS(p, PLAN_PRODUCTS) && width == 64) {
        u64 high = high_product(x, y);
        if (with_sign) high -= (x >> 63 ? y : 0) + (y >> 63 ? x : 0);
        sum *to = &c->sums[PLAN_PRODUCTS];
        add_digits(to, x * y, high & 0xffffffffu);
        to->digit[3] += with_sign ? (u64)((i64)high >> 32) : high >> 32;
    }
    if (HAS(p, PLAN_FACTORS)) {
        c->word[W_FLAGS] ^= negative ? NEGATIVE : 0;
        if (x == 0)
            c->word[W_FLAGS] |= ZERO;
        else
            multiply(c->word, magnitude);
    }
}

/* Adds an element to the counts, bits and extremes. */
PURE void add_bits(u64 bits, u64 index, const parts_plan *p, cell *c) {
    const u32 type = p->lower.type, width = width_of(type);
    const u64 all = all_bits(width), rest = is_float(type) ? all >> 1 : all;
    c->word[W_N]++;
    c->word[W_NONZERO] += (bits & rest) != 0;
    c->word[W_OR] |= p->lower.complemented ? bits ^ all : bits;
    c->word[W_XOR] ^= bits;
    if (!HAS(p, PLAN_EXTREMES)) return;
    if (is_float(type) && (bits & rest) > float_infinity_bits(format_of(type), 0)) {
        if (~index > c->word[W_AT_NAN]) c->word[W_AT_NAN] = ~index;
        return;
    }
    const u64 key = key_of_bits(bits, width, kind_of(type));
    merge_extreme(&c->word[W_GREATEST], &c->word[W_AT_GREATEST], key, ~index);
    merge_extreme(&c->word[W_LEAST], &c->word[W_AT_LEAST], all ^ key, ~index);
}

PURE void clear_cell(cell *c) {
    c->beyond = 0;
    for (u32 k = 0; k < WORDS; k++)
        c->word[k] = 0;
    for (u32 k = 0; k < SUMS; k++) {
        c->sums[k].high = c->sums[k].low = 0;
        for (u32 i = 0; i < 4; i++)
            c->sums[k].digit[i] = 0;
    }
}

/* Adds a thread's sums to the block's, in `rec`; they become 0. */
INLINED void flush_sums(const parts_plan *p, cell *c, SHARED u64 *rec) {
    for (u32 k = 0; k < SUMS; k++) {
        if (!HAS(p, k)) continue;
        const limb_layout s = limb_layout_of(p->lower.type, k);
        SHARED u64 *limbs = rec + p->lower.at[k];
        sum *mine = &c->sums[k];
        if (is_float(p->lower.type)) {
            add_exact(mine->high, s.lowest, limbs);
            add_exact(mine->low, s.lowest, limbs);
            mine->high = mine->low = 0;
            continue;
        }
        i64 carry = 0;
        for (u32 i = 0; i < s.limbs; i++) {
            const i64 w = (i64)(i < 4 ? mine->digit[i] : 0) + carry;
            carry = w >> 32; /* floor */
            add_limb(limbs, i, i + 1 < s.limbs ? (i64)((u64)w & 0xffffffffu) : w);
            if (i < 4) mine->digit[i] = 0;
        }
    }
}

#endif
