/*
 * parts - reductions in parts: along axes, by segment, by group (parts.h); every monoid but the canonical tree, of
 * every type.
 *
 * fold: each block takes pieces of equal work, however rows lie in it. A row that ends where it began is lowered at
 * once; of a row that is cut, each piece leaves its record on an edge, and `join` merges these and lowers the row. So
 * neither a giant row nor a million empty ones hold up the other blocks, and nothing depends on which block came first.
 *
 * quick: a thread takes short rows or columns, and a warp rows of middle length, if all values are simple.
 * A double-double that loses nothing is the exact sum, and is rounded once without a
 * superaccumulator. A row that this cannot do is left to `fold` and `join`: a long one, a sum that a
 * double-double does not hold, an infinity, a value that does not exist.
 *
 * few: where all elements are few, a block folds a row and tries to lower its sums in two doubles; only where these are
 * not the whole sums it adds them to superaccumulators, and lowers those.
 *
 * A block of `fold` folds one row at a time. Each thread keeps a sum of floats in two doubles, whose additions lose
 * nothing: what the second one cannot hold goes, exactly, to the block's superaccumulator in shared memory (limbs.h).
 *
 * The type and the parts are read from the plan, so that this is one program for all problems.
 *
 * starts: where rows begin of elements that lie in the order of their groups, or have been brought into it (sort.cu).
 */
#define BLOCKS_A_UNIT GPU_PRODUCT_BLOCKS_A_UNIT
#define OP_OR
#define TYPE_U64 /* what the headers call an element; here its type is the plan's */
#include "tuning.h"

#include "operators.h"

#include "half.h"

#include "plan.h"

#define HAS_VECTORS
#include "parts.h"

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
    W_MIXED /* bit p: of the sum of part p, some term is not -0 */
};
#define WORDS PARTS_WORDS

#include "records.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#include "limbs.h"

#include "doubles.h"

#include "spots.h"

BEGINS_EARLY

enum { NEGATIVE = 1, ZERO = 2, OVERFLOW = 4 };

PURE void multiply(u64 *known, u64 magnitude) {
    const u64 mine = known[W_MAGNITUDE] ^ 1;
    if (high_product(mine, magnitude) != 0)
        known[W_FLAGS] |= OVERFLOW;
    else
        known[W_MAGNITUDE] = (mine * magnitude) ^ 1;
}

/* Makes of *a and *at_a the better of two extremes, and its index: of both the greater word wins. */
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

/* ---- What a thread knows -------------------------------------------------------------------------- */

/* Sums of floats as two doubles, those of integers as digits of 32 bits that have not been carried. */
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
        add_term(product, bit, s, c, to, limbs);
        add_double(fused(x, y, -product), c, to, s.lowest, limbs);
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

/* Elements that a thread adds before it flushes its sums. */
#define FLUSH ((u64)1 << 20)

/* Adds elements [from, to) of a row to the threads' cells, no more than FLUSH a thread. */
INLINED void add_range(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask,
                       const GLOBAL u64 *work, const parts_plan *p, row_origin o, u64 from, u64 to,
                       cell *c, SHARED u64 *rec) {
    const u32 width = width_of(p->lower.type);
    for (u64 k = from + threadIdx.x; k < to; k += BLOCK) {
        const u64 nth = number_along(work, p, &o, k);
        const spot at = element_spot(p, o.first, nth);
        if (p->masked && !mask[at.mask]) continue;
        const u64 bits = load_bits(x, width, at.x);
        const u64 beside = HAS(p, PLAN_PRODUCTS) ? load_bits(y, width, at.y) : 0;
        add_bits(bits, p->absolute ? nth : k, p, c);
        if (is_float(p->lower.type))
            add_float(bits, beside, p, c, rec);
        else
            add_whole(bits, beside, p, c);
    }
}

/* Adds elements [from, to) of a row; all sums then are in the block's, and all else in the threads' cells. */
__device__ void fold_range(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask,
                           const GLOBAL u8 *offsets, const GLOBAL u64 *work, const parts_plan *p,
                           u64 row, u64 from, u64 to, cell *c, SHARED u64 *rec) {
    const row_origin o = origin_of_row(offsets, p, row);
    for (u64 begin = from; begin < to; begin += FLUSH * BLOCK) {
        const u64 end = to - begin < FLUSH * BLOCK ? to : begin + FLUSH * BLOCK;
        add_range(x, y, mask, work, p, o, begin, end, c, rec);
        flush_sums(p, c, rec);
    }
}

/* ---- From a record to values ---------------------------------------------------------------------- */

/* Returns a row's index in the results of each value. */
PURE i64 row_result(const parts_plan *p, u64 row) {
    u64 vector;
    if (p->cut == PARTS_AXES) return p->out_first + result_spot(p, row);
    const u64 part = part_of(p, row, &vector);
    return p->out_first + (i64)part * p->reduced[0].out + result_spot(p, vector);
}

/* Writes the v-th value of a row to its place. */
__device__ void put_value(GLOBAL u8 *out, const parts_plan *p, u32 v, i64 place, u64 bits,
                          u32 status) {
    const u32 to = p->lower.value[v] >> 8;
    out += p->out[v];
    if (p->as_results)
        put_result((GLOBAL u64 *)out, to, bits, status);
    else
        store_bits(out, width_of(to), place, bits);
}

/* Writes all values of a row whose record is rec and known[], by one thread. means[] has the bits of the mean that is given
 * for each result, by its number, and behind it of its imaginary part; NULL: the plan's is for all. */
__device__ void lower_row(const GLOBAL u8 *offsets, const GLOBAL u64 *means, GLOBAL u64 *work,
                          GLOBAL u8 *out, const parts_plan *p, u64 row, const u64 *known,
                          SHARED u64 *rec, lower_scratch *r) {
    lower_plan own = p->lower;
    SHARED u64 *rest = rec + p->sums;
    const u32 type = own.type;
    own.n = known[W_N];
    rest[0] = known[W_NONZERO];
    rest[1] = p->xored ? known[W_XOR] : known[W_OR];
    rest[2] = type == F64 ? known[W_FAST] : (u64)float_bits((float)double_from(known[W_FAST]));
    rest[3] = known[W_MAGNITUDE];
    rest[4] = known[W_FLAGS];
    rest[5] = known[W_GREATEST];
    rest[6] = known[W_LEAST];
    rest[7] = known[W_AT_GREATEST];
    rest[8] = known[W_AT_LEAST];
    rest[9] = known[W_AT_NAN];
    for (u32 k = 0; k < SUMS; k++)
        if (HAS(p, k) && is_float(type))
            rec[own.at[k] + limb_layout_of(type, k).limbs + 3] = known[W_MIXED] >> k & 1;
    if (HAS(p, PLAN_TREE) && own.n > 0) {
        const u32 width = width_of(own.user || type == F64 ? type : F32);
        const GLOBAL u8 *starts = p->tree_starts ? (const GLOBAL u8 *)work : offsets;
        const u64 slot = PARTS_SLOT(row_start(starts, p->tree, row), row);
        rest[10] = load_bits((const GLOBAL u8 *)work + p->values, width, (i64)slot);
        own.at[PLAN_TREE] = (p->sums + 10) * (64 / width);
    }

    const i64 place = row_result(p, row);
    u64 nth = p->number_first, rest_of = row;
    if (p->cut != PARTS_AXES) nth += part_of(p, row, &rest_of) * p->reduced[0].number;
    for (u32 d = p->keeps; d-- > 0;) {
        nth += rest_of % p->kept[d].length * p->kept[d].number;
        rest_of /= p->kept[d].length;
    }
    for (u32 k = 0; k < 1 + own.is_complex && means; k++)
        own.mean[k] = means[(1 + own.is_complex) * nth + k];
    for (u32 v = 0; v < own.values; v++) {
        const u32 op = own.value[v] & 255, to = own.value[v] >> 8;
        u32 status = RESULT_OK;
        u64 bits = lower_value(rec, &own, op, to, &status, r);
        if (status == RESULT_NONE && p->several && !p->as_results)
            bits = ~(u64)0;
        else if (status != RESULT_OK && !p->ignore_errors)
            note_least(&work[PARTS_ABSENT],
                       nth * 64 + (p->first_value + v) * 2 + (status == RESULT_NONE));
        put_value(out, p, v, place, bits, status);
    }
}

/* ---- Short rows, a thread or a warp each ------------------------------------------------------------ */

/* A thread's state of a row in `quick`. */
typedef struct row_sum {
    double high, low; /* the sum of floats, a double-double */
    u64 whole;        /* the sum of integers */
    u32 lost;         /* this is not all of the sum */
    u32 mixed;        /* some term is not -0 */
} row_sum;

/* Adds a double; sets `lost` if the double-double cannot hold the sum. An infinity or a NaN makes the
 * error a NaN, which is not 0. */
INLINED void add_to_row_sum(double x, row_sum *b) {
    double e, f;
    b->high = two_sum(b->high, x, &e);
    b->low = two_sum(b->low, e, &f);
    b->lost |= !(f == 0);
    b->mixed |= double_bits(x) != (u64)1 << 63;
}

/* Every team-th of n floats that lie `step` apart, from number `lane` on. */
#define ADD_ALL(type, VALUE_OF)                                                                    \
    do {                                                                                           \
        const GLOBAL type *from_ = (const GLOBAL type *)x + at;                                    \
        for (u64 k_ = lane; k_ < n; k_ += team) {                                                  \
            const type v_ = from_[(i64)k_ * step];                                                 \
            add_to_row_sum(VALUE_OF, b);                                                           \
        }                                                                                          \
    } while (0)

__device__ void add_floats(const GLOBAL u8 *x, u32 type, i64 at, i64 step, u64 n, u32 lane,
                           u32 team, row_sum *b) {
    if (type == F64)
        ADD_ALL(double, v_);
    else if (type == F32)
        ADD_ALL(float, (double)v_);
    else if (type == BF16)
        ADD_ALL(u16, (double)float_from((u32)v_ << 16));
    else
        ADD_ALL(u16, (double)float_from(half_bits_widened((u32)v_)));
}

/* Adds one element to all that `quick` keeps of a row. */
INLINED void add_any(u64 bits, u64 index, const parts_plan *p, row_sum *b, cell *c) {
    const u32 type = p->lower.type;
    if (HAS(p, PLAN_SUM) && is_float(type)) {
        add_to_row_sum(double_of(type, bits), b);
    } else if (HAS(p, PLAN_SUM)) {
        const u64 v = extended(bits, width_of(type), is_signed(type)), before = b->whole;
        b->whole += v;
        if (is_signed(type))
            b->lost |= (u32)(((before ^ b->whole) & (v ^ b->whole)) >> 63);
        else
            b->lost |= b->whole < v;
    }
    add_bits(bits, index, p, c);
}

/* Returns the sum's bits, or the mean's; *lost is set where two doubles do not give them. */
PURE u64 row_sum_value(const row_sum *b, u64 n, u32 mean, u32 to, u32 *lost) {
    if (n == 0) *lost |= mean;
    if (n == 0) return 0;
    return doubles_value(b->high, b->low, n, mean, to, b->mixed ? 0 : float_sign(format_of(to)),
                         lost);
}

/* Returns a value's bits; sets *lost if they cannot be determined, or the value does not exist. */
PURE u64 row_value(const parts_plan *p, const row_sum *b, const u64 *known, u32 op, u32 to,
                   u32 *lost) {
    const u32 type = p->lower.type, width = width_of(type), kind = kind_of(type);
    const u64 n = known[W_N], all = all_bits(width);
    switch (op) {
    case SUM:
        if (!is_float(type)) return b->whole;
        return row_sum_value(b, n, 0, to, lost);
    case MEAN:
        return row_sum_value(b, n, 1, to, lost);
    case MIN:
    case MAX:
        *lost |= n == 0;
        if (known[W_AT_NAN]) return float_nan_bits(format_of(type));
        return bits_of_key(op == MAX ? known[W_GREATEST] : all ^ known[W_LEAST], width, kind);
    case ARGMIN:
    case ARGMAX:
        *lost |= n == 0;
        if (known[W_AT_NAN]) return ~known[W_AT_NAN];
        return op == ARGMIN ? ~known[W_AT_LEAST] : ~known[W_AT_GREATEST];
    case AND:
        return ~known[W_OR] & all;
    case OR:
        return known[W_OR];
    case XOR:
        return known[W_XOR];
    case NONZERO:
        return known[W_NONZERO];
    case ANY:
        return known[W_NONZERO] != 0;
    case ALL:
        return known[W_NONZERO] == n;
    default:
        return n; /* count */
    }
}

/* Returns whether the plan has only sums of floats, of elements at even distances, without a mask
 * or an order. */
PURE u32 is_plain(const parts_plan *p) {
    return p->monoids == 1u << PLAN_SUM && is_float(p->lower.type) && !p->masked && !p->order &&
           (p->cut != PARTS_AXES || p->reduces <= 1);
}

#if BLOCK > 1
/* Merges the row states of a warp's lanes into lane 0's, if the warp is a team. Every thread of the
 * block calls this. */
__device__ void reduce_row_sums(const parts_plan *p, row_sum *b, u64 *known, SHARED u64 *exchange) {
    for (u32 delta = WARP / 2; delta > 0; delta /= 2) {
        const double high = double_from(__shfl_down_sync(FULL_WARP, double_bits(b->high), delta));
        const double low = double_from(__shfl_down_sync(FULL_WARP, double_bits(b->low), delta));
        const u64 whole = __shfl_down_sync(FULL_WARP, b->whole, delta);
        const u64 flags = __shfl_down_sync(FULL_WARP, (u64)b->lost << 32 | b->mixed, delta);
        const u32 takes = p->team > 1 && threadIdx.x % WARP + delta < WARP;
        u64 other[WORDS];
        if (takes) {
            const u64 before = b->whole, total = before + whole;
            const u32 mixed = b->mixed | (u32)flags;
            add_to_row_sum(high, b);
            add_to_row_sum(low, b);
            b->mixed = mixed;
            b->whole = total;
            b->lost |= (u32)(flags >> 32);
            b->lost |= is_signed(p->lower.type) ? (u32)(((before ^ total) & (whole ^ total)) >> 63)
                                                : (u32)(total < whole);
        }
        if (!UNIFORM(!is_plain(p))) continue;
        for (u32 k = 0; k < WORDS; k++)
            other[k] = __shfl_down_sync(FULL_WARP, known[k], delta);
        if (takes) merge(known, other);
    }
}
#endif

/* Adds every team-th of a row's n elements, from number `lane` on. */
__device__ void add_row(const GLOBAL u8 *x, const GLOBAL u8 *mask, const GLOBAL u64 *work,
                        const parts_plan *p, row_origin o, u64 n, u32 lane, u32 team, row_sum *b,
                        cell *c) {
    const u32 type = p->lower.type, width = width_of(type);
    if (is_plain(p)) {
        const i64 step = p->reduces ? p->reduced[0].x : 0;
        add_floats(x, type, o.first.x + (i64)o.start * step, step, n, lane, team, b);
        if (lane == 0) c->word[W_N] = n;
        return;
    }
    for (u64 k = lane; k < n; k += team) {
        const u64 nth = number_along(work, p, &o, k);
        const spot at = element_spot(p, o.first, nth);
        if (p->masked && !mask[at.mask]) continue;
        add_any(load_bits(x, width, at.x), p->absolute ? nth : k, p, b, c);
    }
}

/* Writes a row's values; returns whether its sums determine all of them. */
__device__ u32 put_row(GLOBAL u8 *out, const parts_plan *p, u64 row, const row_sum *b,
                       const u64 *known) {
    u32 lost = b->lost;
    const i64 place = row_result(p, row);
    for (u32 v = 0; v < p->lower.values; v++) {
        const u32 to = p->lower.value[v] >> 8;
        const u64 bits = row_value(p, b, known, p->lower.value[v] & 255, to, &lost);
        if (!lost) store_bits(out + p->out[v], width_of(to), place, bits);
    }
    return !lost;
}

KERNEL quick(const GLOBAL u8 *x, const GLOBAL u8 *mask, const GLOBAL u8 *offsets, GLOBAL u64 *work,
             GLOBAL u8 *out, const parts_plan plan) {
    __shared__ u64 exchange[EXCHANGE];
    wait_for_earlier();
    const u32 is_good = plan.ignore_errors || read_word(&work[PARTS_BAD]) == ~(u64)0;
    const u32 team = BLOCK == 1 ? 1 : plan.team, teams = BLOCK / team;
    const u32 lane = threadIdx.x % team;
    for (u64 group = (u64)blockIdx.x * teams; group < plan.rows.count;
         group += (u64)gridDim.x * teams) {
        const u64 row = group + threadIdx.x / team;
        const u32 is_there = row < plan.rows.count && is_good;
        u64 n = 0;
        row_sum b = {0, 0, 0, 0, 0};
        cell c;
        for (u32 k = 0; k < WORDS; k++)
            c.word[k] = 0;
        if (is_there) {
            n = row_start(offsets, plan.rows, row + 1) - row_start(offsets, plan.rows, row);
            if (n <= plan.quick_most)
                add_row(x, mask, work, &plan, origin_of_row(offsets, &plan, row), n, lane, team, &b,
                        &c);
        }
#if BLOCK > 1
        if (UNIFORM(team > 1)) reduce_row_sums(&plan, &b, c.word, exchange);
#endif
        if (is_there && lane == 0) {
            const u32 done = n <= plan.quick_most && put_row(out, &plan, row, &b, c.word);
            if (!done) {
                TALLY_PATH("left to fold");
                leave_row(work, plan.left, row);
            } else
                TALLY_PATH("put");
        }
    }
}

/* Returns whether a row is left for `fold` and `join`. */
__device__ u32 has_work(GLOBAL u64 *work, const parts_plan *p) {
    if (!p->ignore_errors && read_word(&work[PARTS_BAD]) != ~(u64)0) return 0;
    return p->left == 0 || read_word(&work[PARTS_LEFT_AT(p->left)]) == p->left;
}

/* Returns the highest bit of each byte that is `mark`, of eight. */
PURE u64 bytes_like(u64 eight, u64 mark) {
    const u64 low = ~(u64)0 / 255 * 127, other = eight ^ (~(u64)0 / 255 * mark);
    return ~(((other & low) + low) | other | low);
}

/* Returns the part of a word behind the first that marks its rows; 0 if no row of the word is
 * left. */
PURE u64 left_of(u64 rows, u64 mark) {
    return mark ? bytes_like(rows, mark) : rows;
}

#define LEFT_WORDS 8u /* next_left()'s loads under way at once */

/* Returns the first row from `row` on that is left for `fold`, or a number >= `end` if none before
 * `end` is. */
__device__ u64 next_left(const GLOBAL u64 *work, const parts_plan *p, u64 row, u64 end) {
    const GLOBAL u64 *left = work + PARTS_LEFT_AT(p->left) + 1;
    const u64 mark = PARTS_MARK(p->left);
    const u32 bits = mark ? 8 : 1, rows = 64 / bits; /* of a row; of a word */
    while (p->left != 0 && row < end) {
        const u64 rest = left_of(left[row / rows], mark) >> (row % rows * bits);
        if (rest & (mark ? 0x80 : 1)) break;
        row = rest ? row + 1 : (row / rows + 1) * rows;
        for (u64 any = rest; any == 0 && row + rows * LEFT_WORDS <= end;) {
            for (u32 k = 0; k < LEFT_WORDS; k++)
                any |= left_of(left[row / rows + k], mark);
            if (any == 0) row += rows * LEFT_WORDS;
        }
    }
    return row;
}

/* ---- Kernels ---------------------------------------------------------------------------------------- */

/* Writes the sums of a block's record to an edge; limbs hand on their carries first, so that edges can be added up. */
__device__ void leave_sums(const parts_plan *p, const SHARED u64 *rec, GLOBAL u64 *edge) {
    for (u32 k = 0; k < SUMS; k++) {
        if (!HAS(p, k)) continue;
        const limb_layout s = limb_layout_of(p->lower.type, k);
        const u32 words = s.limbs + (is_float(p->lower.type) ? FLOAT_COUNTS : 0);
        const u32 at = p->lower.at[k];
        for (u32 i = threadIdx.x; i < words; i += BLOCK) {
            u64 own = rec[at + i];
            if (i + 1 < s.limbs) own &= 0xffffffffu;
            if (i > 0 && i < s.limbs) own += (u64)((i64)rec[at + i - 1] >> 32); /* floor */
            edge[WORDS + at + i] = own;
        }
    }
}

KERNEL fold(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask, const GLOBAL u8 *offsets,
            const GLOBAL u64 *means, GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan plan) {
    __shared__ u64 rec[PARTS_SUMS + PARTS_REST];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    SHARED_LOWER_SCRATCH numbers;
    wait_for_earlier();
    const u32 works = has_work(work, &plan);
    const u64 origin = works ? row_start(offsets, plan.rows, 0) : 0;
    for (u64 piece = blockIdx.x; piece < plan.pieces && works; piece += gridDim.x) {
        const u64 begin = piece * plan.piece, end = begin + plan.piece;
        u64 row = row_of(offsets, plan.rows, 1, PARTS_ROW_WEIGHT, begin);
        const u64 last = row_of(offsets, plan.rows, 1, PARTS_ROW_WEIGHT, end - 1) + 1;
        for (; row < last; row++) {
            row = next_left(work, &plan, row, last);
            if (row >= last) break;
            const u64 start = row_start(offsets, plan.rows, row);
            const u64 at = start - origin + row * PARTS_ROW_WEIGHT;
            const u64 length = row_start(offsets, plan.rows, row + 1) - start;
            if (at >= end) break;
            const u64 from = at < begin ? begin - at : 0,
                      to = end - at < length ? end - at : length;
            if (at < begin && from >= length) continue;
            cell c;
            clear_cell(&c);
            for (u32 k = threadIdx.x; k < plan.sums; k += BLOCK)
                rec[k] = 0;
            __syncthreads();
            fold_range(x, y, mask, offsets, work, &plan, row, from, to, &c, rec);
            merge_block(c.word, warps, exchange);
            __syncthreads();
            if (from == 0 && to == length) {
                if (threadIdx.x == 0) {
                    TALLY_PATH("a whole row");
                    lower_row(offsets, means, work, out, &plan, row, c.word, rec, &numbers);
                }
            } else {
                GLOBAL u64 *edge =
                    work + plan.edges + (2 * piece + (from == 0)) * (WORDS + plan.sums);
                if (threadIdx.x == 0)
                    for (u32 k = 0; k < WORDS; k++)
                        edge[k] = c.word[k];
                leave_sums(&plan, rec, edge);
            }
            __syncthreads();
        }
    }
}

/* ---- Few elements, a block a row -------------------------------------------------------------------- */

/* Adds two doubles to a double-double; sets *lost if it cannot hold them. */
PURE void add_pair(sum *s, double high, double low, u32 *lost) {
    double e, f, g, h;
    s->high = two_sum(s->high, high, &e);
    s->low = two_sum(s->low, e, &f);
    s->high = two_sum(s->high, low, &g);
    s->low = two_sum(s->low, g, &h);
    *lost |= f != 0 || h != 0;
}

#if BLOCK > 1
/* Adds up the sums of `lanes` lanes of each warp into lane 0's. */
INLINED void reduce_lanes(sum *s, u32 lanes, u32 *lost, SHARED u64 *exchange) {
    UNROLL_NOT
    for (u32 delta = lanes / 2; delta > 0; delta /= 2) {
        const double high = double_from(__shfl_down_sync(FULL_WARP, double_bits(s->high), delta));
        const double low = double_from(__shfl_down_sync(FULL_WARP, double_bits(s->low), delta));
        const u32 theirs = (u32)__shfl_down_sync(FULL_WARP, (u64)*lost, delta);
        if (threadIdx.x % WARP >= delta) continue;
        *lost |= theirs;
        add_pair(s, high, low, lost);
    }
}
#endif

/* Adds up all threads' sums into thread 0's double-double, if *lost stays 0. `warps` has three
 * words a warp. */
INLINED void reduce_block_sum(sum *s, u32 *lost, SHARED u64 *warps, SHARED u64 *exchange) {
#if BLOCK > 1
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    reduce_lanes(s, BLOCK < WARP ? BLOCK : WARP, lost, exchange);
    __syncthreads();
    if (lane == 0) {
        warps[3 * warp] = double_bits(s->high);
        warps[3 * warp + 1] = double_bits(s->low);
        warps[3 * warp + 2] = *lost;
    }
    __syncthreads();
    if (UNIFORM(warp == 0)) {
        const u32 is_there = lane < WARPS;
        s->high = is_there ? double_from(warps[3 * lane]) : 0;
        s->low = is_there ? double_from(warps[3 * lane + 1]) : 0;
        *lost = is_there ? (u32)warps[3 * lane + 2] : 0;
        reduce_lanes(s, WARPS, lost, exchange);
    }
#endif
}

/* Writes all values of a row of floats from double-doubles; returns whether these determine them. */
__device__ u32 put_sums(GLOBAL u8 *out, const parts_plan *p, u64 row, const u64 *known,
                        const sum *sums, u32 lost) {
    const u64 n = known[W_N];
    u32 is_far = 0;
    const double ddof = ddof_of(p->lower.ddof, p->lower.exponent, &is_far);
    const i64 place = row_result(p, row);
    if (n == 0) return 0;
    for (u32 v = 0; v < p->lower.values && !lost; v++) {
        const u32 op = p->lower.value[v] & 255, to = p->lower.value[v] >> 8;
        const u32 monoid = op == SUM || op == MEAN ? PLAN_SUM
                           : op == NORM1           ? PLAN_MAGNITUDES
                           : op == DOT             ? PLAN_PRODUCTS
                                                   : PLAN_SQUARES;
        const sum s = sums[monoid], total = sums[PLAN_SUM];
        const u64 zero = known[W_MIXED] >> monoid & 1 ? 0 : float_sign(format_of(to));
        u64 bits = 0;
        if (op == VAR || op == STD) {
            lost |= is_far || p->lower.about || p->lower.is_complex;
            bits = variance_value(total.high, total.low, s.high, s.low, n, ddof, op == STD, to, 0,
                                  &lost);
        } else if (op == NORM2) {
            bits = norm_value(s.high, s.low, to, 0, &lost);
        } else if (op == SUM || op == MEAN || op == NORM1 || op == DOT || op == SUMSQ) {
            bits = doubles_value(s.high, s.low, n, op == MEAN, to, zero, &lost);
        } else {
            lost = 1;
        }
        if (!lost) put_value(out, p, v, place, bits, RESULT_OK);
    }
    return !lost;
}

/* Reduces all rows of an array of few elements in a single launch. The problem has no canonical
 * tree, and the caller wants no outcome (`ignore_errors`). */
KERNEL few(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *mask, const GLOBAL u64 *means,
           GLOBAL u8 *out, const parts_plan plan) {
    __shared__ u64 rec[PARTS_SUMS + PARTS_REST];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    __shared__ u32 is_left;
    SHARED_LOWER_SCRATCH numbers;
    wait_for_earlier();
    const GLOBAL u8 *nowhere = x; /* what of the functions below is not looked at */
    const u32 of_floats = is_float(plan.lower.type) && (plan.monoids & ((1u << SUMS) - 1)) != 0;
    for (u64 row = blockIdx.x; row < plan.rows.count; row += gridDim.x) {
        cell c;
        sum whole[SUMS];
        clear_cell(&c);
        for (u32 k = threadIdx.x; k < plan.sums; k += BLOCK)
            rec[k] = 0;
        __syncthreads();
        add_range(x, y, mask, (const GLOBAL u64 *)nowhere, &plan,
                  origin_of_row(nowhere, &plan, row), 0, plan.rows.each, &c, rec);
        merge_block(c.word, warps, exchange);
        u32 lost = c.beyond;
        for (u32 k = 0; k < SUMS; k++) {
            whole[k] = c.sums[k];
            if (UNIFORM(of_floats && HAS(&plan, k)))
                reduce_block_sum(&whole[k], &lost, warps, exchange);
        }
        if (threadIdx.x == 0)
            is_left = !of_floats || !put_sums(out, &plan, row, c.word, whole, lost);
        __syncthreads();
        if (UNIFORM(is_left)) {
            if (is_left) flush_sums(&plan, &c, rec);
            __syncthreads();
            if (threadIdx.x == 0) TALLY_PATH("by digits");
            if (is_left && threadIdx.x == 0)
                lower_row(nowhere, means, (GLOBAL u64 *)out, out, &plan, row, c.word, rec,
                          &numbers);
        }
        __syncthreads();
    }
}

/* Merges the edges of each row that was cut, and lowers it: for piece p the row that begins in it and ends in a later
 * one, if there is one. */
KERNEL join(const GLOBAL u8 *offsets, const GLOBAL u64 *means, GLOBAL u64 *work, GLOBAL u8 *out,
            const parts_plan plan) {
    __shared__ u64 rec[PARTS_SUMS + PARTS_REST];
    __shared__ u64 warps[WARPS * WORDS];
    __shared__ u64 exchange[EXCHANGE];
    SHARED_LOWER_SCRATCH numbers;
    wait_for_earlier();
    const u32 works = has_work(work, &plan);
    const u64 origin = works ? row_start(offsets, plan.rows, 0) : 0, size = WORDS + plan.sums;
    for (u64 piece = blockIdx.x; piece + 1 < plan.pieces && works; piece += gridDim.x) {
        const u64 cut = (piece + 1) * plan.piece;
        const u64 row = row_of(offsets, plan.rows, 1, PARTS_ROW_WEIGHT, cut);
        const u64 start = row_start(offsets, plan.rows, row);
        const u64 at = start - origin + row * PARTS_ROW_WEIGHT;
        const u64 length = row_start(offsets, plan.rows, row + 1) - start;
        if (at >= cut || cut - at >= length || at / plan.piece != piece) continue;
        if (next_left(work, &plan, row, row + 1) != row) continue;
        const u64 parts = (at + length - 1) / plan.piece - piece + 1;
        const GLOBAL u64 *edges = work + plan.edges + 2 * piece * size;
        u64 known[WORDS];
        for (u32 k = 0; k < WORDS; k++)
            known[k] = 0;
        for (u64 i = threadIdx.x; i < parts; i += BLOCK) {
            const GLOBAL u64 *edge = edges + (2 * i + (i == 0)) * size;
            u64 other[WORDS];
            for (u32 k = 0; k < WORDS; k++)
                other[k] = edge[k];
            merge(known, other);
        }
        merge_block(known, warps, exchange);
        for (u32 k = threadIdx.x; k < plan.sums; k += BLOCK) {
            u64 total = 0;
            for (u64 i = 0; i < parts; i++)
                total += edges[(2 * i + (i == 0)) * size + WORDS + k];
            rec[k] = total;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            TALLY_PATH("");
            lower_row(offsets, means, work, out, &plan, row, known, rec, &numbers);
        }
        __syncthreads();
    }
}

/* Notes in work[PARTS_BAD] the first offset that falls, or lies outside. */
KERNEL check(const GLOBAL u8 *offsets, GLOBAL u64 *work, const parts_plan plan) {
    wait_for_earlier();
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i <= plan.rows.count;
         i += (u64)gridDim.x * BLOCK) {
        const i64 at = (i64)row_start(offsets, plan.rows, i);
        const i64 before = i > 0 ? (i64)row_start(offsets, plan.rows, i - 1) : 0;
        if (at < before || at < 0 || (u64)at > plan.n) note_least(&work[PARTS_BAD], i);
    }
}

/* ---- Where rows begin --------------------------------------------------------------------------------- */

#define LOOKS 4u  /* a thread's loads of 16 bytes of ids under way at once */
#define APART 64u /* threads search for every APART-th start */

/* Returns the first of n places whose id, or whose number among those that a mask shows, is not below `wanted`. */
__device__ u64 first_not_below(const GLOBAL u8 *ids, const GLOBAL u64 *work, const parts_plan *p,
                               u64 n, u64 wanted) {
    u64 low = 0, high = n;
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        const u64 nth = p->shown ? number_in_order(work, p->shown, p->wide_shown, middle)
                                 : id_of(ids, p, middle);
        if (nth < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Ids a and b are those of elements i - 1 and i; behind the last element b is the number of rows. Rows a + 1 to b then
 * begin at i, from 0 on for i = 0: writes that for those before the first multiple of APART among them. Where b falls,
 * or is outside, notes i in work[PARTS_BAD]. */
__device__ void look_at(GLOBAL u64 *work, u64 to, const parts_plan *p, u64 n, u64 i, u64 a, u64 b) {
    if (i < n && (b >= p->rows.count || (i > 0 && b < a)))
        note_least(&work[PARTS_BAD], i);
    else
        for (u64 row = i > 0 ? a + 1 : 0; row % APART != 0 && row <= b; row++)
            write_word(&work[to + row], i); /* twice, where ids fall */
}

/* Looks at the ids of whole packs, each beside the one before it; sets `looked` to their number. */
#define LOOK_AT_PACKS(type)                                                                        \
    if ((size_t)ids % 16 == 0) {                                                                   \
        typedef union pack_of_ids {                                                                \
            uint4 all;                                                                             \
            type id[16 / sizeof(type)];                                                            \
        } pack_of_ids;                                                                             \
        const u32 each = 16 / sizeof(type);                                                        \
        const u64 packs = n / each, step = (u64)gridDim.x * (BLOCK * LOOKS);                       \
        for (u64 j = (u64)blockIdx.x * (BLOCK * LOOKS) + threadIdx.x; j < packs; j += step) {      \
            pack_of_ids pack[LOOKS];                                                               \
            type before[LOOKS];                                                                    \
            UNROLL                                                                                 \
            for (u32 k = 0; k < LOOKS; k++) {                                                      \
                const u64 at = j + k * BLOCK < packs ? j + k * BLOCK : j;                          \
                pack[k].all = ((const GLOBAL pack_of_ids *)ids)[at].all;                           \
                before[k] = ((const GLOBAL type *)ids)[at > 0 ? at * each - 1 : 0];                \
            }                                                                                      \
            UNROLL                                                                                 \
            for (u32 k = 0; k < LOOKS; k++) {                                                      \
                const u64 at = j + k * BLOCK < packs ? j + k * BLOCK : j;                          \
                type differs = (type)(pack[k].id[0] ^ before[k]);                                  \
                UNROLL                                                                             \
                for (u32 e = 1; e < each; e++)                                                     \
                    differs |= (type)(pack[k].id[e] ^ pack[k].id[e - 1]);                          \
                if (differs == 0 && at > 0) continue; /* most */                                   \
                for (u32 e = 0; e < each; e++)                                                     \
                    look_at(work, to, p, n, at *each + e,                                          \
                            (u64)(i64)(e > 0 ? pack[k].id[e - 1] : before[k]),                     \
                            (u64)(i64)pack[k].id[e]);                                              \
            }                                                                                      \
        }                                                                                          \
        looked = packs * each;                                                                     \
    }

/* Writes where rows begin, or notes the id that falls or lies outside. A thread with neighbouring
 * ids a < b knows where rows a + 1 to b begin. It writes that for the rows before the first
 * multiple of APART. Each multiple has a thread that searches for it, and writes the starts of the
 * rows behind it. So no thread writes more than APART starts, however many rows are empty. */
__device__ void sorted_starts(const GLOBAL u8 *ids, GLOBAL u64 *work, u64 to, u64 n,
                              const parts_plan *p) {
    const u64 count = p->rows.count, thread = (u64)blockIdx.x * BLOCK + threadIdx.x;
    u64 looked = 0;
    for (u64 row = thread * APART; row <= count; row += (u64)gridDim.x * BLOCK * APART) {
        const u64 at = first_not_below(ids, work, p, n, row),
                  id = at < n ? id_of(ids, p, at) : count;
        for (u64 i = row; i < row + APART && i <= id && i <= count; i++)
            write_word(&work[to + i], at);
    }
    if (p->ids == I32) {
        LOOK_AT_PACKS(i32)
    } else if (p->ids == I64 || p->ids == U64) {
        LOOK_AT_PACKS(i64)
    }
    for (u64 i = looked + thread; i <= n; i += (u64)gridDim.x * BLOCK)
        look_at(work, to, p, n, i, i > 0 ? id_of(ids, p, i - 1) : 0,
                i < n ? id_of(ids, p, i) : count);
}

/* Writes where rows begin: work[to + i] is the first place that belongs to row i or a later one. Groups' ids, in order,
 * are at `ids`, from byte `first` on; else places are those of an order of numbers. */
KERNEL starts(const GLOBAL u8 *ids, const GLOBAL u8 *offsets, GLOBAL u64 *work, u64 first, u64 to,
              const parts_plan plan) {
    wait_for_earlier();
    const u64 n = plan.ordered ? work[PARTS_TOTAL] : plan.n;
    if (!plan.shown) {
        sorted_starts(ids + first, work, to, n, &plan);
        return;
    }
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i <= plan.rows.count;
         i += (u64)gridDim.x * BLOCK)
        work[to + i] = first_not_below(ids, work, &plan, n, row_start(offsets, plan.rows, i));
}

/* Copies elements of all rows, or those that a mask shows, side by side to the byte `to` of the workspace: for the
 * canonical tree. */
KERNEL gather(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, u64 to,
              const parts_plan plan) {
    wait_for_earlier();
    const u32 width = width_of(plan.lower.type), is_bad = read_word(&work[PARTS_BAD]) != ~(u64)0;
    const u64 first = plan.shown || is_bad ? 0 : row_start(offsets, plan.rows, 0);
    const u64 end = is_bad       ? 0
                    : plan.shown ? work[PARTS_TOTAL]
                                 : row_start(offsets, plan.rows, plan.rows.count);
    for (u64 j = first + (u64)blockIdx.x * BLOCK + threadIdx.x; j < end;
         j += (u64)gridDim.x * BLOCK) {
        const u64 nth = plan.shown ? number_in_order(work, plan.shown, plan.wide_shown, j) : j;
        const u64 bits = load_bits(x, width, numbered_spot(offsets, work, &plan, nth).x);
        store_bits((GLOBAL u8 *)work + to, width, (i64)j, bits);
    }
}

/* Writes a reduction's tally_outcome to outcome[0] and outcome[1]. */
KERNEL report(const GLOBAL u64 *work, GLOBAL u64 *outcome) {
    wait_for_earlier();
    const u64 absent = work[PARTS_ABSENT], bad = work[PARTS_BAD];
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    const u32 status = bad != ~(u64)0      ? RESULT_NONE
                       : absent == ~(u64)0 ? RESULT_OK
                       : absent & 1        ? RESULT_NONE
                                           : RESULT_RANGE;
    const u32 value = bad != ~(u64)0 || absent == ~(u64)0 ? ~0u : (u32)(absent % 64 / 2);
    outcome[0] = bad != ~(u64)0 ? bad : absent == ~(u64)0 ? 0 : absent / 64;
    outcome[1] = (u64)value << 32 | status;
}
