/*
 * rows - reductions of rows, and segments, whose elements lie side by side (parts.h), compiled for one type and one
 * kind of state: sums and means; with LIFT_MAGNITUDE, LIFT_SQUARE or LIFT_MOMENTS sums of magnitudes, of squares, or of
 * elements and of squares, of which norms and variances are made; the least and the greatest element, or with INDEXED
 * the index of one of them.
 *
 * Pieces. A block has a piece of the work: so many elements and ends of rows. It goes through its elements in tiles,
 * from a multiple of 16 bytes on, and takes with it what it knows of the row that a tile leaves open. Of a row that
 * pieces cut, each leaves its state on an edge; `join` merges these.
 *
 * Tiles within one row: each thread adds up what it loads, the second half of a tile while the first is on its way, until
 * the row, or the piece, ends.
 *
 * Any other tile goes through shared memory, where each thread has a run of neighbouring cells. A word of bits says
 * which of them begin a row; where rows have equal lengths each thread works its own out, else the offsets are read.
 * A thread knows the results of rows that lie in its run, and puts each into the cell in which the row begins; what it knows
 * of a row that it ends only, its head, goes to the threads before it, by a suffix scan over the block, of as many steps as the
 * longest row of the warp needs. The thread in whose run the row begins has the total then. At last neighbouring
 * threads copy neighbouring rows' results from their cells to where the caller wants them.
 *
 * Sums of floats of up to 32 bits. A thread adds its run's elements as doubles, plainly, and notes the largest and the
 * smallest exponent. If 32 elements' exponents are at most 24 apart, all partial sums are multiples of the smallest
 * one's last bit, and below 2^53 of these: exact. Their squares are added with the errors kept, which are added plainly: they
 * are exact in the same case. If exponents are further apart, the run is added again with the errors of all additions kept, as
 * doubles always are. What two doubles cannot hold is left to `fold`.
 *
 * Indices. An element becomes a rank, a number that grows with it, or falls for argmin; every NaN has the highest one. So
 * the first element of the highest rank is what is looked for.
 */
#if defined(LIFT_MOMENTS) || defined(LIFT_SQUARE)
#define BLOCKS_A_UNIT GPU_PRODUCT_BLOCKS_A_UNIT
#elif defined(OP_SUM) && !defined(FAST)
#define BLOCKS_A_UNIT GPU_SUM_BLOCKS_A_UNIT
#else
#define BLOCKS_A_UNIT GPU_BLOCKS_A_UNIT
#endif

#include "widen.h"

#include "result.h"

#include "plan.h"

#include "parts.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#include "doubles.h"

#if defined(OP_SUM) && defined(FAST)
#define KIND_FAST 1
#elif defined(OP_SUM) && defined(FLOATING)
#define KIND_FLOATS 1
#if !defined(LIFT_SQUARE)
#define HAS_SUM 1
#endif
#if defined(LIFT_SQUARE) || defined(LIFT_MOMENTS)
#define HAS_SQUARES 1
#endif
#elif defined(OP_SUM)
#define KIND_INTEGERS 1
#elif defined(INDEXED)
#define KIND_INDEX 1
#else
#define KIND_ENDS 1
#endif
#if defined(KIND_FLOATS) && !defined(TYPE_F64)
#define KIND_SHORT 1 /* floats that are added plainly first */
#endif

/* ---- Elements and cells ------------------------------------------------------------------------------ */

#if defined(TYPE_I64) || defined(TYPE_U64) || defined(TYPE_F64) || defined(KIND_INTEGERS)
typedef u64 cell;
#define CELL 8u
#elif defined(TYPE_I32) || defined(TYPE_U32) || defined(TYPE_F32)
typedef u32 cell;
#define CELL 4u
#else
typedef u16 cell;
#define CELL 2u
#endif

#define PACK       (16 / (u32)sizeof(element)) /* elements of a load */
#define CELLS      (16 / CELL)                 /* cells of a unit of 16 bytes */
#define RUN        (CELL == 8 ? 16u : 32u)     /* cells of a thread */
#define UNITS      (RUN / CELLS)
#define LOADS      (RUN / PACK)
#define SPREAD     (PACK / CELLS) /* units of a load */
#define TILE       (BLOCK * RUN)
#define WARPS      ((BLOCK + WARP - 1) / WARP)
#define ROWS_AHEAD 4 /* rows whose offsets a thread loads at once */
#define NOWHERE    (~0u)

typedef union pack {
    uint4 all;
    element e[16 / sizeof(element)];
} pack;

typedef union unit {
    uint4 all;
    cell c[CELLS];
} unit;

/* Where a unit lies: so that neither neighbouring units nor the same unit of neighbouring runs are in one bank. */
PURE u32 placed(u32 u) {
    return u ^ (u >> 3 & 7);
}

/* ---- What is known of some elements ----------------------------------------------------------------------- */

#if defined(LIFT_MOMENTS) && defined(KIND_FLOATS)
#define STATE   4 /* high and low of two pairs: the sum of elements, and that of squares */
#define SQUARES 2 /* where the latter is */
#elif defined(KIND_FLOATS)
#define STATE   2 /* high and low of a pair */
#define SQUARES 0
#elif defined(KIND_INDEX)
#define STATE 2 /* the rank, and the element's number */
#elif defined(KIND_ENDS) && CELL == 8
#define STATE 2 /* the greatest rank and the least */
#else
#define STATE 1 /* both in one word; a sum */
#endif

/* Of sums but fast ones the tag says how many elements they are of, where they lie in one tile, and whether something was
 * lost. */
typedef struct state {
    u64 w[STATE];
    u32 tag;
} state;

#define LOST  (1u << 31)
#define EDGED (STATE + 1) /* words of a state on an edge */
#if defined(KIND_FLOATS) || defined(KIND_INTEGERS)
#define TAGGED 1
#else
#define TAGGED 0
#endif

#if TAGGED
PURE u32 merged_tag(u32 a, u32 b) {
    return ((a & ~LOST) + (b & ~LOST)) | ((a | b) & LOST);
}
#endif

#if defined(KIND_INDEX) || defined(KIND_ENDS)

#if CELL == 8
typedef u64 rank_word;
#else
typedef u32 rank_word;
#endif
#define RANK_ALL (~(rank_word)0 >> (8 * sizeof(rank_word) - 8 * sizeof(element)))

#if defined(KIND_INDEX) && defined(OP_MIN)
#define FALLS 1
#else
#define FALLS 0
#endif

#if defined(FLOATING)
#define RANK_SIGN ((rank_word)SIGN)
#define RANK_BASE                                                                                  \
    ((((rank_word)INFINITE | RANK_SIGN) ^ (RANK_SIGN - 1)) & RANK_ALL) /* of -infinity */
#define RANK_MOST (((rank_word)INFINITE - RANK_BASE) & RANK_ALL)       /* of +infinity */
/* -infinity has rank 0, and NaNs have those above +infinity's. */
PURE rank_word rank_of(element e) {
    const rank_word b = (rank_word)e ^ (FALLS ? RANK_SIGN : 0);
    return ((b & RANK_SIGN ? b ^ (RANK_SIGN - 1) : b) - RANK_BASE) & RANK_ALL;
}
ORDER_UNUSED PURE u64 ranked(rank_word r) {
    const rank_word b = (r + RANK_BASE) & RANK_ALL;
    return b & RANK_SIGN ? b ^ (RANK_SIGN - 1) : b;
}
#define LOWEST ((element)((INFINITE | SIGN) ^ (FALLS ? SIGN : 0)))
#else
#if defined(SIGNED_TYPE)
#define RANK_FLIP (((rank_word)SIGN & RANK_ALL) ^ (FALLS ? RANK_ALL : 0))
#else
#define RANK_FLIP (FALLS ? RANK_ALL : (rank_word)0)
#endif
PURE rank_word rank_of(element e) {
    return ((rank_word)e & RANK_ALL) ^ RANK_FLIP;
}
ORDER_UNUSED PURE u64 ranked(rank_word r) {
    return r ^ RANK_FLIP;
}
#define LOWEST ((element)RANK_FLIP)
#endif

#endif

/* `add` adds the element in a cell of the tile; `finish` makes a state of what has been added; `merge` one of two, of
 * which the first comes before the second. */

#if defined(KIND_FLOATS)

/* Adds a pair to another. An infinity or a NaN has no low. */
PURE void merge_pair(u64 *a, const u64 *b, u32 *tag) {
    double e, f, g;
    const double high = two_sum(double_from(a[0]), double_from(b[0]), &e);
    if (e == 0 && (a[1] | b[1]) == 0) {
        a[0] = double_bits(high);
        return;
    }
    const u32 is_finite = high - high == 0;
    const double both = two_sum(double_from(a[1]), double_from(b[1]), &f);
    const double low = two_sum(both, e, &g), sum = high + low;
    if (is_finite && !(f == 0 && g == 0)) *tag |= LOST;
    if (!is_finite || low == 0) {
        a[0] = double_bits(high);
        a[1] = 0;
    } else {
        a[0] = double_bits(sum);
        a[1] = double_bits(low - (sum - high));
    }
}

PURE state merge(state a, state b) {
    a.tag = merged_tag(a.tag, b.tag);
    for (u32 k = 0; k < STATE; k += 2)
        merge_pair(a.w + k, b.w + k, &a.tag);
    return a;
}

PURE state neutral_state(void) {
    state s;
    for (u32 k = 0; k < STATE; k += 2) {
        s.w[k] = double_bits(-0.0);
        s.w[k + 1] = 0;
    }
    s.tag = 0;
    return s;
}

/* Adds to a pair, or notes that this has lost something. */
PURE void add_to_pair(u64 *a, double x, u32 *tag) {
    double e, f;
    const double high = two_sum(double_from(a[0]), x, &e);
    const double low = two_sum(double_from(a[1]), e, &f);
    a[0] = double_bits(high);
    a[1] = double_bits(low);
    if (!(f == 0)) *tag |= LOST;
}

/* Adds an element with all errors. The square of an f64 is two doubles, if it is not too small (lift.h). */
PURE void add_wide(double x, state *s) {
#if defined(LIFT_MAGNITUDE)
    x = magnitude_of(x);
#endif
#if defined(HAS_SUM)
    add_to_pair(s->w, x, &s->tag);
#endif
#if defined(HAS_SQUARES)
    const double square = x * x;
    add_to_pair(s->w + SQUARES, square, &s->tag);
#if defined(TYPE_F64)
    add_to_pair(s->w + SQUARES, fused(x, x, -square), &s->tag);
    if (x != 0 && exponent_field(square) < 1023 - 960) s->tag |= LOST;
#endif
#endif
}

#define PADDING (-(real)0)
#if defined(TYPE_F64)
PURE element element_of(cell c) {
    return double_from(c);
}
#define cell_of(e) double_bits(e)
typedef state known;
PURE void begin(known *k, u32 at) {
    *k = neutral_state();
}
INLINED void add(known *k, element e, u32 at) {
    add_wide(e, k);
}
#else
#if defined(TYPE_F32)
#define element_of(c) float_from(c)
#define cell_of(e)    float_bits(e)
#undef PADDING
#define PADDING float_from(0x80000000u)
#else
#define element_of(c) (c)
#define cell_of(e)    (e)
#undef PADDING
#define PADDING SIGN
#endif
typedef struct known {
    double sum, square, rest; /* of elements; of squares, and the errors of that */
    u32 least, most;          /* 2 |x| - 1 of those that are not 0, and |x|, both as bits */
} known;
PURE void begin(known *k, u32 at) {
    k->sum = k->square = -0.0;
    k->rest = 0;
    k->least = ~0u;
    k->most = 0;
}
INLINED void add(known *k, element e, u32 at) {
    const real x = widen(e);
    const u32 bits = float_bits(x), magnitude = bits & 0x7fffffffu, twice = 2 * bits - 1;
#if defined(LIFT_MAGNITUDE)
    k->sum += (double)float_from(magnitude);
#elif defined(HAS_SUM)
    k->sum += (double)x;
#endif
#if defined(HAS_SQUARES)
    double error;
    k->square = two_sum(k->square, (double)x * (double)x, &error);
    k->rest += error;
#endif
    k->least = twice < k->least ? twice : k->least;
    k->most = magnitude > k->most ? magnitude : k->most;
}
/* Whether the sum of at most 32 elements is exact: |x| < 2^(24 + their largest field) units, 32 of them less than
 * 2^(29 + that), and all are multiples of 2^(the smallest field) of these. And so that of their squares: with fields
 * most and least, in units of 2^(2 least) of the square of the smallest unit, 32 squares are less than 2^(2 (most - least) + 53),
 * an error of their sum is at most half of that times 2^-52, 32 of them less than 2^(2 (most - least) + 5), and all are
 * integers. Infinities and NaNs give what they should. */
PURE u32 is_sure(const known *k) {
    const u32 high = k->most >> 23, low = (k->least + 1) >> 24;
    return high <= low + 24 || high == 255;
}
#endif

#elif defined(KIND_FAST)

#define PADDING 0
#if defined(TYPE_F64)
#define element_of(c) double_from(c)
#define cell_of(e)    double_bits(e)
#define SUM_BITS(x)   double_bits(x)
#define SUM_FROM(w)   double_from(w)
#elif defined(TYPE_F32)
#define element_of(c) float_from(c)
#define cell_of(e)    float_bits(e)
#define SUM_BITS(x)   ((u64)float_bits(x))
#define SUM_FROM(w)   float_from((u32)(w))
#else
#define element_of(c) (c)
#define cell_of(e)    (e)
#define SUM_BITS(x)   ((u64)float_bits(x))
#define SUM_FROM(w)   float_from((u32)(w))
#endif
typedef real known;
PURE void begin(known *k, u32 at) {
    *k = 0;
}
INLINED void add(known *k, element e, u32 at) {
    *k += widen(e);
}
PURE state merge(state a, state b) {
    const state s = {{SUM_BITS(SUM_FROM(a.w[0]) + SUM_FROM(b.w[0]))}, 0};
    return s;
}
PURE state neutral_state(void) {
    const state s = {{0}, 0};
    return s;
}

#elif defined(KIND_INTEGERS)

#define PADDING       0
#define element_of(c) ((element)(c))
#define cell_of(e)    ((u64)(e))
typedef state known; /* all but the count */
PURE state neutral_state(void) {
    const state s = {{0}, 0};
    return s;
}
PURE void begin(known *k, u32 at) {
    *k = neutral_state();
}
/* a + b; LOST where that is no 64-bit number of the type. */
PURE u64 add_checked(u64 a, u64 b, u32 *tag) {
    const u64 sum = a + b;
#if defined(TYPE_U64)
    if (sum < a) *tag |= LOST;
#elif defined(TYPE_I64)
    if (((a ^ sum) & (b ^ sum)) >> 63) *tag |= LOST;
#endif
    return sum;
}
INLINED void add(known *k, element e, u32 at) {
    k->w[0] = add_checked(k->w[0], (u64)e, &k->tag);
}
PURE state merge(state a, state b) {
    state s;
    s.tag = merged_tag(a.tag, b.tag);
    s.w[0] = add_checked(a.w[0], b.w[0], &s.tag);
    return s;
}

#elif defined(KIND_ENDS)

#define element_of(c) ((element)(c))
#define cell_of(e)    ((cell)(e))
typedef struct known {
    rank_word most, least;
} known;
PURE void begin(known *k, u32 at) {
    k->most = 0;
    k->least = ~(rank_word)0;
}
INLINED void add(known *k, element e, u32 at) {
    const rank_word r = rank_of(e);
    k->most = r > k->most ? r : k->most;
    k->least = r < k->least ? r : k->least;
}
PURE known known_of(state s) {
    known k;
#if CELL == 8
    k.most = s.w[0];
    k.least = s.w[1];
#else
    k.most = (u32)(s.w[0] >> 32);
    k.least = (u32)s.w[0];
#endif
    return k;
}
PURE state state_of(known k) {
    state s;
    s.tag = 0;
#if CELL == 8
    s.w[0] = k.most;
    s.w[1] = k.least;
#else
    s.w[0] = (u64)k.most << 32 | k.least;
#endif
    return s;
}
PURE state merge(state a, state b) {
    known k = known_of(a);
    const known l = known_of(b);
    k.most = l.most > k.most ? l.most : k.most;
    k.least = l.least < k.least ? l.least : k.least;
    return state_of(k);
}
PURE state neutral_state(void) {
    known k;
    begin(&k, 0);
    return state_of(k);
}

#else /* KIND_INDEX */

#define PADDING       LOWEST
#define element_of(c) ((element)(c))
#define cell_of(e)    ((cell)(e))
typedef struct known {
    rank_word best;
    u32 at;
} known;
PURE void begin(known *k, u32 at) {
    k->best = 0;
    k->at = at;
}
INLINED void add(known *k, element e, u32 at) {
    rank_word r = rank_of(e);
#if defined(FLOATING)
    r = r > RANK_MOST ? RANK_MOST + 1 : r; /* the first NaN is as good as any */
#endif
    k->at = r > k->best ? at : k->at;
    k->best = r > k->best ? r : k->best;
}
PURE state merge(state a, state b) {
    return b.w[0] > a.w[0] || (b.w[0] == a.w[0] && b.w[1] < a.w[1]) ? b : a;
}
PURE state neutral_state(void) {
    const state s = {{0, ~(u64)0}, 0};
    return s;
}

#endif
/* The state of n elements that a thread knows; `start` is the number of the tile's first one. Sums of floats may have to
 * be added again (again()). */
PURE state finish(const known *k, u32 n, u64 start) {
#if defined(KIND_SHORT)
    state s;
#if defined(HAS_SUM)
    s.w[0] = double_bits(k->sum);
    s.w[1] = 0;
#endif
#if defined(HAS_SQUARES)
    s.w[SQUARES] = double_bits(k->square);
    s.w[SQUARES + 1] = double_bits(k->rest);
#endif
    s.tag = n;
#elif TAGGED
    state s = *k;
    s.tag += n;
#elif defined(KIND_FAST)
    const state s = {{SUM_BITS(*k)}, 0};
#elif defined(KIND_ENDS)
    const state s = state_of(*k);
#else
    const state s = {{k->best, start + k->at}, 0};
#endif
    return s;
}

/* ---- From states to values -------------------------------------------------------------------------------- */

/* The type of values: that of the elements, but for integers' sums and means, and indices. */
#if defined(TYPE_F64)
#define VALUE_TYPE(p, v) F64
#elif defined(TYPE_F32)
#define VALUE_TYPE(p, v) F32
#elif defined(TYPE_BF16)
#define VALUE_TYPE(p, v) BF16
#elif defined(TYPE_F16)
#define VALUE_TYPE(p, v) F16
#else
#define VALUE_TYPE(p, v) ((p)->lower.value[v] >> 8)
#endif
#define VALUE_OP(p, v) ((p)->lower.value[v] & 255)
#if defined(KIND_INDEX) || defined(KIND_INTEGERS)
#define VALUE_WIDTH(p, v) width_of((p)->lower.value[v] >> 8)
#else
#define VALUE_WIDTH(p, v) (8 * (u32)sizeof(element))
#endif

/* A value's bits as they fit a cell, and whether they could not be had. */
typedef struct lowered {
    u64 bits;
    u32 lost;
} lowered;

#if defined(KIND_FLOATS)
/* The value of n > 0 elements. `correction` and `exponent` are the plan's: the variance's ddof. */
SELDOM lowered lower_floats(state s, u64 n, u32 op, u64 correction, i32 exponent) {
    const u32 to = VALUE_TYPE(p, v);
    const double high = double_from(s.w[0]), low = double_from(s.w[1]);
    const float_format f = format_of(to);
    lowered r = {0, (s.tag & LOST) != 0};
    if (high - high != 0) { /* an infinity, a NaN, or an f64 too many */
#if defined(TYPE_F64)
        r.lost = 1;
#else
        r.bits = high == high && op != VAR && op != STD ? float_infinity_bits(f, high < 0)
                                                        : float_nan_bits(f);
#endif
        return r;
    }
#if defined(HAS_SQUARES)
    const double square = double_from(s.w[SQUARES]), rest = double_from(s.w[SQUARES + 1]);
    if (op == SUMSQ) {
        r.bits = doubles_value(square, rest, n, 0, to, 0, &r.lost);
    } else if (op == NORM2) {
        r.bits = norm_value(square, rest, to, &r.lost);
    } else if (op == VAR || op == STD) {
        const u32 is_far = exponent > 64 || exponent < -64 || correction >> 53 != 0;
        const double ddof =
            (double)correction * double_from((u64)(is_far ? 1023 : 1023 + exponent) << 52);
        if (is_far && correction != 0) r.lost = 1;
        r.bits = variance_value(high, low, square, rest, n, ddof, op == STD, to, &r.lost);
    } else
#endif
        r.bits = doubles_value(high, low, n, op == MEAN, to,
                               s.w[0] == double_bits(-0.0) ? float_sign(f) : 0, &r.lost);
    return r;
}
#endif

/* The v-th value of n elements. An index is that of the element's cell, or within the row. */
PURE u64 lower_state(const parts_plan *p, state s, u64 n, u32 v, u32 *lost) {
#if defined(KIND_FLOATS)
#if defined(TYPE_F32) && !defined(HAS_SQUARES)
    const double sum = double_from(s.w[0]);
    if (s.w[1] == 0 && VALUE_OP(p, v) != MEAN && !(s.tag & LOST))
        return float_bits(sum == sum ? (float)sum : float_from(0x7fc00000u));
#elif !defined(HAS_SQUARES) && defined(TYPE_F64)
    const double sum = double_from(s.w[0]) + double_from(s.w[1]);
    if (VALUE_OP(p, v) != MEAN && !(s.tag & LOST) && sum != 0 && exponent_field(sum) < HUGE_FIELD)
        return double_bits(sum);
#endif
    const lowered r = lower_floats(s, n, VALUE_OP(p, v), p->lower.ddof, p->lower.exponent);
    *lost |= r.lost;
    return r.bits;
#elif defined(KIND_FAST)
#if defined(TYPE_F64)
    const float_format mine = {52, 1023};
#else
    const float_format mine = {23, 127};
#endif
    return round_float(format_of(VALUE_TYPE(p, v)), mine, s.w[0]);
#elif defined(KIND_INTEGERS)
    *lost |= (s.tag & LOST) != 0;
    if (VALUE_OP(p, v) == SUM) return s.w[0];
#if defined(SIGNED_TYPE)
    const double sum = (double)(i64)s.w[0];
#else
    const double sum = (double)s.w[0];
#endif
    *lost |= n >> 53 != 0 || sum > 0x1p53 || sum < -0x1p53;
    return double_bits(sum / (double)n);
#elif defined(KIND_ENDS)
    const known k = known_of(s);
#if defined(FLOATING)
    if (k.most > RANK_MOST) return float_nan_bits(format_of(VALUE_TYPE(p, v)));
#endif
    return ranked(VALUE_OP(p, v) == MAX ? k.most : k.least);
#else
    return s.w[1];
#endif
}

/* The result of a row without elements. */
PURE u64 lower_nothing(const parts_plan *p, u32 v, u32 *lost) {
#if defined(KIND_INDEX)
    *lost = 1;
    return 0;
#elif defined(KIND_ENDS) && defined(FLOATING)
    return float_infinity_bits(format_of(VALUE_TYPE(p, v)), VALUE_OP(p, v) == MAX);
#elif defined(KIND_ENDS)
    return ranked(VALUE_OP(p, v) == MAX ? 0 : RANK_ALL);
#else
    return VALUE_OP(p, v) == MEAN || VALUE_OP(p, v) == VAR || VALUE_OP(p, v) == STD
               ? float_nan_bits(format_of(VALUE_TYPE(p, v)))
               : 0;
#endif
}

/* ---- Results ---------------------------------------------------------------------------------------------- */

__device__ void put(GLOBAL u8 *out, const parts_plan *p, u32 v, u64 row, u64 bits) {
    const u32 width = VALUE_WIDTH(p, v);
    const i64 at = p->out_first + (i64)row * (p->keeps ? p->kept[0].out : 1);
    out += p->out[v];
    if (width == 64)
        ((GLOBAL u64 *)out)[at] = bits;
    else if (width == 32)
        ((GLOBAL u32 *)out)[at] = (u32)bits;
    else
        ((GLOBAL u16 *)out)[at] = (u16)bits;
}

#if defined(KIND_INDEX)
/* An element's number as an index. */
PURE u64 index_of(const parts_plan *p, u64 at, u64 start) {
    return p->absolute ? at : at - start;
}
#endif

/* Writes the results of a row from its state. */
__device__ void put_state(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row, u64 start,
                          u64 n, state s) {
    u32 lost = 0;
    UNROLL_NOT
    for (u32 v = 0; v < p->lower.values; v++) {
        u64 bits = lower_state(p, s, n, v, &lost);
#if defined(KIND_INDEX)
        bits = index_of(p, bits, start);
#endif
        if (!lost) put(out, p, v, row, bits);
    }
    if (lost) leave_row(work, p->left, row);
}

/* ---- A block -------------------------------------------------------------------------------------------------- */

/* What the threads of a block share. */
typedef struct block {
    unit tile[BLOCK * UNITS];
    u32 starts[BLOCK]; /* bit i: a row begins in cell i of the thread's run */
    u32 lost[BLOCK];   /* bit i: the result of the row that begins there could not be had */
    state carry
        [2]; /* what is known of the row that is open where the tile begins, and where it ends */
    state warp[WARPS]; /* the heads of each warp's runs up to the first in which a row begins ... */
    u32 begins[WARPS]; /* ... and whether there is one */
    u64 row;           /* the first row that begins behind the tile, ... */
    u64 next;          /* ... and the number of the element where it does */
    u32 last;          /* the cell in which the last row of the tile begins; NOWHERE: none does */
    u32 open;          /* it goes on behind the tile */
    u32 crosses[2]; /* a row goes on from one run to the next; in this tile, and in the one after */
    u32 any_lost[2];
    u32 count[2];
} block;

PURE cell get_cell(const SHARED block *b, u32 c) {
    return b->tile[placed(c / CELLS)].c[c % CELLS];
}

__device__ void set_cell(SHARED block *b, u32 c, cell value) {
    b->tile[placed(c / CELLS)].c[c % CELLS] = value;
}

#if defined(KIND_SHORT)
/* The sum of cells [from, to) of the tile, with errors kept. */
__device__ state again(const SHARED block *b, u32 from, u32 to) {
    state s = neutral_state();
    UNROLL_NOT
    for (u32 c = from; c < to; c++)
        add_wide((double)widen(element_of(b->tile[placed(c / CELLS)].c[c % CELLS])), &s);
    s.tag += to - from;
    return s;
}
#endif

/* Puts the results of a row that begins in cell `from` and has n elements there. A row has room for as many values as
 * elements, and for both ends of one element. */
__device__ void put_cells(SHARED block *b, const parts_plan *p, state s, u32 from, u64 n, u64 start,
                          u32 *lost) {
    u32 bad = 0;
    UNROLL_NOT
    for (u32 v = 0; v < p->lower.values; v++) {
        const u64 bits = lower_state(p, s, n, v, &bad);
#if defined(KIND_INDEX)
        set_cell(b, from, (cell)(bits - start));
#elif defined(KIND_ENDS)
        if (v == 0 || n > 1) set_cell(b, from + v, (cell)bits);
#else
        bad |= v >= n;
        if (v < n) set_cell(b, from + v, (cell)bits);
#endif
    }
    if (bad) *lost |= 1u << (from % RUN);
}

/* Which tile a thread is in. Its first cell's element has the number `start`, which lies at a multiple of 16 bytes, and
 * before number 0 perhaps; there are those of cells [lead, cells). */
typedef struct place {
    const GLOBAL element *x; /* number 0 */
    u64 start;
    u32 lead, cells;
} place;

PURE const GLOBAL element *tile_of(place at) {
    return at.x + (i64)at.start;
}

PURE u32 is_full(place at) {
    return at.lead == 0 && at.cells == TILE;
}

/* The thread's k-th load of the tile, of which not all is there. */
__device__ pack load_some(place at, u32 k) {
    const GLOBAL element *tile = tile_of(at);
    const u32 c = (k * BLOCK + threadIdx.x) * PACK;
    pack t;
    if (c >= at.lead && c + PACK <= at.cells) {
        t.all = ((const GLOBAL uint4 *)tile)[c / PACK];
    } else {
        UNROLL
        for (u32 i = 0; i < PACK; i++) {
            const u32 j = c + i;
#if defined(KIND_ENDS)
            t.e[i] = tile[j < at.lead ? at.lead : j >= at.cells ? at.cells - 1 : j];
#else
            t.e[i] = j >= at.lead && j < at.cells ? tile[j] : (element)PADDING;
#endif
        }
    }
    return t;
}

/* Adds loads [first, first + LOADS / 2) of a tile. */
INLINED void add_half(known *k, const pack *t, u32 first) {
    UNROLL
    for (u32 i = 0; i < LOADS / 2; i++)
        UNROLL
    for (u32 e = 0; e < PACK; e++)
        add(k, t[i].e[e], ((first + i) * BLOCK + threadIdx.x) * PACK + e);
}

/* A thread's first or second half of the loads of a tile that is all there. */
INLINED void load_half(pack *t, const GLOBAL element *tile, u32 first) {
    const GLOBAL uint4 *packs = (const GLOBAL uint4 *)tile + threadIdx.x;
    UNROLL
    for (u32 i = 0; i < LOADS / 2; i++)
        t[i].all = packs[(first + i) * BLOCK];
}

#if defined(KIND_SHORT)
/* The thread's part of a tile, with errors kept. */
INLINED state add_loads_wide(const GLOBAL element *tile) {
    state s = neutral_state();
    pack t[LOADS / 2];
    UNROLL_NOT
    for (u32 first = 0; first < LOADS; first += LOADS / 2) {
        load_half(t, tile, first);
        UNROLL
        for (u32 i = 0; i < LOADS / 2; i++)
            UNROLL
        for (u32 e = 0; e < PACK; e++)
            add_wide((double)widen(t[i].e[e]), &s);
    }
    return s;
}
#endif

/* The thread's part of `count` tiles within one row, of which the first begins at `at`. */
INLINED state add_tiles(place at, u64 count) {
    const GLOBAL element *tile = tile_of(at);
    state mine = neutral_state();
    u32 wide = 0; /* do not even try to add without errors, as this has failed before */
    pack one[LOADS / 2], two[LOADS / 2];
    load_half(one, tile, 0);
    for (; count > 0; count--) {
        const GLOBAL element *now = tile;
        state s;
        tile += TILE;
        if (!wide) {
            known k;
            begin(&k, threadIdx.x * PACK);
            load_half(two, now, LOADS / 2);
            add_half(&k, one, 0);
            if (count > 1) load_half(one, tile, 0);
            add_half(&k, two, LOADS / 2);
            s = finish(&k, 0, at.start);
#if defined(KIND_SHORT)
            wide = !is_sure(&k);
#endif
        }
#if defined(KIND_SHORT)
        if (wide) s = add_loads_wide(now);
#endif
        mine = merge(mine, s);
        at.start += TILE;
    }
    return mine;
}

/* Puts the i-th load of a tile into shared memory. */
INLINED void put_load(SHARED block *b, pack t, u32 i) {
    UNROLL
    for (u32 q = 0; q < SPREAD; q++) {
        unit u;
        UNROLL
        for (u32 c = 0; c < CELLS; c++)
            u.c[c] = (cell)cell_of(t.e[q * CELLS + c]);
        b->tile[placed((i * BLOCK + threadIdx.x) * SPREAD + q)].all = u.all;
    }
}

/* Brings the tile there. */
INLINED void load_cells(SHARED block *b, place at) {
    if (is_full(at)) {
        pack t[LOADS];
        load_half(t, tile_of(at), 0);
        load_half(t + LOADS / 2, tile_of(at), LOADS / 2);
        UNROLL
        for (u32 i = 0; i < LOADS; i++)
            put_load(b, t[i], i);
    } else if (at.lead < at.cells) {
        UNROLL_NOT
        for (u32 i = 0; i < LOADS; i++)
            put_load(b, load_some(at, i), i);
    }
}

/* What a thread finds in its run. */
typedef struct found {
    state head; /* of the cells before the first in which a row begins */
    state tail; /* of those from the last such one on, ... */
    u32 last;   /* ... which this is */
} found;

/* Goes through the thread's run, and puts the results of the rows that lie in it. `starts`: where rows begin; the tile has
 * cells [lead, cells), and others before and behind that change nothing. */
INLINED void walk(SHARED block *b, const parts_plan *p, u64 start, u32 lead, u32 cells, u32 starts,
                  found *f, u32 *lost) {
    const u32 base = threadIdx.x * RUN, end = base + RUN < cells ? base + RUN : cells;
    const u32 others = (1u << (CELLS - 1)) - 1; /* the cells of a unit but for the first */
    u32 from = base, own = 0, c = base;
    known k;
    begin(&k, base < lead ? lead : base);
    UNROLL_NOT
    for (;;) {
        const u32 is_done = c >= end, ahead = is_done ? 0 : starts >> (c - base);
        if (is_done || ahead & 1) {
            const u32 to = is_done ? end : c;
            state s = finish(&k, to - from, start);
#if defined(KIND_SHORT)
            if (!is_sure(&k)) s = again(b, from, to);
#endif
            if (!own)
                f->head = s;
            else if (is_done)
                f->tail = s;
            else
                put_cells(b, p, s, from, to - from, start, lost);
            if (is_done) break;
            from = c;
            own = 1;
            begin(&k, c);
        }
        if (c % CELLS == 0 && !(ahead >> 1 & others)) {
            const unit t = b->tile[placed(c / CELLS)];
            UNROLL
            for (u32 e = 0; e < CELLS; e++)
                add(&k, element_of(t.c[e]), c + e);
            c += CELLS;
        } else {
            add(&k, element_of(get_cell(b, c)), c);
            c++;
        }
    }
    f->last = own ? from : NOWHERE;
}

INLINED state shuffle_down_state(state s, u32 delta, SHARED u64 *exchange) {
    state t;
    UNROLL
    for (u32 i = 0; i < STATE; i++)
        t.w[i] = __shfl_down_sync(FULL_WARP, s.w[i], delta);
    t.tag = TAGGED ? __shfl_down_sync(FULL_WARP, s.tag, delta) : 0;
    return t;
}

/* Bit i: lane i says yes. */
INLINED u32 warp_votes(u32 yes) {
#if defined(__CUDACC__)
    return __ballot_sync(FULL_WARP, yes);
#else
    u32 votes = (u32)(yes != 0) << (threadIdx.x % WARP);
    for (u32 lanes = 1; lanes < WARP; lanes *= 2)
        votes |= __shfl_xor_sync(FULL_WARP, votes, lanes);
    return votes;
#endif
}

/* The number of the lowest bit that is set; 32: none is. */
PURE u32 lowest_bit(u32 w) {
    return w == 0 ? 32 : 31 - leading_zeros(w & (0 - w));
}

/* Behind each thread: of the runs that follow, up to and with the first in which a row begins, the heads. *first, of
 * thread 0: the same with its own. */
INLINED state heads_behind(SHARED block *b, state head, u32 begins, state *first,
                           SHARED u64 *exchange) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const u32 votes = warp_votes(begins);
    const u32 mine = lowest_bit(votes >> lane); /* how many lanes on a row begins */
    state s = head;
    u32 open = ~votes; /* lanes that have not met one yet */
    UNROLL_NOT
    for (u32 delta = 1; delta < WARP && open; delta *= 2) {
        const state other = shuffle_down_state(s, delta, exchange);
        if (lane + delta < WARP && delta <= mine) s = merge(s, other);
        open &= open >> delta;
    }
    if (lane == 0) {
        b->warp[warp] = s;
        b->begins[warp] = votes != 0;
    }
    __syncthreads();
    state behind = shuffle_down_state(s, 1, exchange);
    if (lane == WARP - 1) behind = neutral_state();
    u32 is_met = votes >> lane >> 1 != 0;
    UNROLL_NOT
    for (u32 w = warp + 1; w < WARPS && !is_met; w++) {
        behind = merge(behind, b->warp[w]);
        is_met = b->begins[w];
    }
    *first = s;
    is_met = votes != 0;
    UNROLL_NOT
    for (u32 w = 1; w < WARPS && threadIdx.x == 0 && !is_met; w++) {
        *first = merge(*first, b->warp[w]);
        is_met = b->begins[w];
    }
    return behind;
}

/* Thread 0 learns what all threads of the block know. */
INLINED state merge_all(SHARED block *b, state s, SHARED u64 *exchange) {
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    UNROLL_NOT
    for (u32 delta = 1; delta < WARP; delta *= 2) {
        const state other = shuffle_down_state(s, delta, exchange);
        if (lane + delta < WARP) s = merge(s, other);
    }
    __syncthreads();
    if (lane == 0) b->warp[warp] = s;
    __syncthreads();
    UNROLL_NOT
    for (u32 w = 1; w < WARPS && threadIdx.x == 0; w++)
        s = merge(s, b->warp[w]);
    return s;
}

/* ---- Rows of a tile --------------------------------------------------------------------------------------------- */

/* The rows that begin in a tile, as all threads know them. */
typedef struct opened {
    u64 until, next; /* the first row that begins behind it, and where it does */
    u32 count;       /* how many there are, where rows have equal lengths */
    u32 each, cell;  /* their length, or more than a tile; the cell in which the first begins */
    u32 last,
        open; /* the cell in which the last begins, or NOWHERE; whether it goes on behind the tile */
} opened;

/* Rows of equal lengths, of which the next begins at element `next`. */
PURE opened equal_rows(const parts_plan *p, u64 row, u64 end, u64 next, place at) {
    const u64 each = p->rows.each;
    opened o = {row, next, 0, each > TILE ? 2 * TILE : (u32)each, 0, NOWHERE, 0};
    if (row >= end || next - at.start >= at.cells) return o;
    o.cell = (u32)(next - at.start);
    o.count = 1 + (at.cells - 1 - o.cell) / o.each;
    if (o.count > end - row) o.count = (u32)(end - row);
    o.until = row + o.count;
    o.next = next + o.count * each;
    o.last = o.cell + (o.count - 1) * o.each;
    o.open = o.next - at.start > at.cells;
    return o;
}

/* Which cells of the thread's run begin one of them. */
PURE u32 equal_starts(const opened *o) {
    const u32 base = threadIdx.x * RUN;
    if (o->count == 0 || base > o->last || base + RUN <= o->cell) return 0;
    u32 bits = 0, c = o->cell;
    if (base > c) c += (base - c + o->each - 1) / o->each * o->each;
    UNROLL_NOT
    for (; c < base + RUN && c <= o->last; c += o->each)
        bits |= 1u << (c - base);
    return bits;
}

/* Finds the rows from `row` on that begin in the tile: sets their bits, and what the block shares of the last. */
__device__ void find_starts(SHARED block *b, const GLOBAL u8 *offsets, const parts_plan *p, u64 row,
                            u64 end, place at, u32 window) {
    for (u64 first = row;; first += window) {
        u64 s[ROWS_AHEAD], e[ROWS_AHEAD];
        UNROLL
        for (u32 i = 0; i < ROWS_AHEAD; i++) {
            const u32 k = i * BLOCK + threadIdx.x;
            const u32 is_there = k < window && first + k < end;
            s[i] = e[i] = ~(u64)0;
            if (!is_there) continue;
            s[i] = row_start(offsets, p->rows, first + k) - at.start;
            e[i] = row_start(offsets, p->rows, first + k + 1) - at.start;
        }
        const u64 behind =
            first + window < end ? row_start(offsets, p->rows, first + window) - at.start : ~(u64)0;
        UNROLL
        for (u32 i = 0; i < ROWS_AHEAD; i++) {
            if (s[i] >= at.cells) continue;
            const u32 c = (u32)s[i];
            const u64 r = first + i * BLOCK + threadIdx.x;
            atomicOr(&b->starts[c / RUN], 1u << (c % RUN));
            if (e[i] < at.cells && r + 1 < end) continue;
            b->last = c;
            b->open = e[i] > at.cells;
            b->row = r + 1;
            b->next = e[i] + at.start;
        }
        if (behind >= at.cells) break;
    }
}

/* Writes the results of a row whose first is in cell c: n > 0 elements, the first of which is number `start`. */
__device__ void put_row(const SHARED block *b, GLOBAL u64 *work, GLOBAL u8 *out,
                        const parts_plan *p, u64 row, u32 c, u32 is_one, u64 start, place at,
                        u32 any_lost) {
    if (any_lost && b->lost[c / RUN] >> (c % RUN) & 1) {
        leave_row(work, p->left, row);
        return;
    }
    UNROLL_NOT
    for (u32 v = 0; v < p->lower.values; v++) {
        u64 bits = get_cell(b, v > 0 && !is_one ? c + v : c);
#if defined(KIND_INDEX)
        bits = index_of(p, at.start + bits, start);
#endif
        put(out, p, v, row, bits);
    }
}

/* The same of all rows of equal lengths that begin, and end, in the tile. */
__device__ void put_equal_rows(const SHARED block *b, GLOBAL u64 *work, GLOBAL u8 *out,
                               const parts_plan *p, u64 row, const opened *o, place at,
                               u32 any_lost) {
    u32 c = o->cell + threadIdx.x * o->each;
    UNROLL_NOT
    for (u32 k = threadIdx.x; k + o->open < o->count; k += BLOCK, c += BLOCK * o->each)
        put_row(b, work, out, p, row + k, c, o->each == 1, at.start + c, at, any_lost);
}

/* The same of rows [row, until), wherever they begin. */
__device__ void put_rows(const SHARED block *b, const GLOBAL u8 *offsets, GLOBAL u64 *work,
                         GLOBAL u8 *out, const parts_plan *p, u64 row, u64 until, place at,
                         u32 any_lost) {
    UNROLL_NOT
    for (u64 r = row + threadIdx.x; r < until; r += BLOCK) {
        const u64 start = row_start(offsets, p->rows, r),
                  n = row_start(offsets, p->rows, r + 1) - start;
        u32 lost = 0;
        if (start + n - at.start > at.cells) continue;
        if (n > 0) {
            put_row(b, work, out, p, r, (u32)(start - at.start), n == 1, start, at, any_lost);
            continue;
        }
        UNROLL_NOT
        for (u32 v = 0; v < p->lower.values && !lost; v++) {
            const u64 bits = lower_nothing(p, v, &lost);
            if (!lost) put(out, p, v, r, bits);
        }
        if (lost) leave_row(work, p->left, r);
    }
}

/* ---- Pieces --------------------------------------------------------------------------------------------------------- */

/* Where a piece begins: at the element `at` of row `row`; `whole` where that row begins in it. */
typedef struct bound {
    u64 row, at;
    u32 whole;
} bound;

/* A search for the last row whose elements and ends of rows before it are at most u. */
typedef struct search {
    u64 u, low, high, step;
} search;

/* The thread's guess: whether such a row is `step` times so many rows on as its number says. */
__device__ u32 probe(const search *s, const GLOBAL u8 *offsets, part_rows r, u64 origin) {
    const u64 row = s->low + s->step * (threadIdx.x + 1);
    return row < s->high && row_start(offsets, r, row) - origin + row * PARTS_ROW_END <= s->u;
}

PURE void narrow(search *s, u32 count) {
    s->low += s->step * count;
    s->high = s->low + s->step < s->high ? s->low + s->step : s->high;
}

/* Finds the first row of the piece and that of the next one, at the same time; all threads of the block call it. */
__device__ void find_both(SHARED u32 *count, const GLOBAL u8 *offsets, part_rows r, search *a,
                          search *b) {
    const u64 origin = row_start(offsets, r, 0);
    while (a->high - a->low > 1 || b->high - b->low > 1) {
        a->step = (a->high - a->low + BLOCK - 1) / BLOCK;
        b->step = (b->high - b->low + BLOCK - 1) / BLOCK;
        if (threadIdx.x == 0) count[0] = count[1] = 0;
        const u32 in_a = probe(a, offsets, r, origin), in_b = probe(b, offsets, r, origin);
        __syncthreads();
        if (in_a) atomicAdd(&count[0], 1u);
        if (in_b) atomicAdd(&count[1], 1u);
        __syncthreads();
        narrow(a, count[0]);
        narrow(b, count[1]);
        __syncthreads();
    }
}

__device__ bound bound_of(const search *s, const GLOBAL u8 *offsets, part_rows r) {
    const u64 origin = row_start(offsets, r, 0), start = row_start(offsets, r, s->low);
    const u64 end = row_start(offsets, r, s->low + 1);
    const u64 into = s->u - (start - origin + s->low * PARTS_ROW_END);
    const bound b = {s->low, into < end - start ? start + into : end, into == 0};
    return b;
}

/* The bounds of a piece. */
__device__ void find_bounds(SHARED u32 *count, const GLOBAL u8 *offsets, const parts_plan *p,
                            u64 piece, bound *from, bound *until) {
    const u64 rows = p->rows.count, weight = p->rows.each + PARTS_ROW_END;
    search a = {piece * p->piece, 0, rows, 0}, b = {(piece + 1) * p->piece, 0, rows, 0};
    if (p->rows.kind == 0) {
        a.low = a.u / weight;
        b.low = b.u / weight < rows ? b.u / weight : rows - 1;
    } else {
        find_both(count, offsets, p->rows, &a, &b);
    }
    *from = bound_of(&a, offsets, p->rows);
    *until = bound_of(&b, offsets, p->rows);
    if (piece + 1 == p->pieces) {
        until->row = rows;
        until->at = row_start(offsets, p->rows, rows);
        until->whole = 1;
    }
}

/* The edges of a piece: the state of a row that began before it, and of one that ends behind it, with that row's number + 1,
 * or 0. */
#define EDGE (2 * EDGED + 1)

__device__ u32 may_begin(const GLOBAL u64 *work) {
    return read_word(&work[PARTS_BAD]) == ~(u64)0;
}

__device__ void put_edge(GLOBAL u64 *edge, state s) {
    for (u32 i = 0; i < STATE; i++)
        edge[i] = s.w[i];
    edge[STATE] = s.tag;
}

__device__ state get_edge(const GLOBAL u64 *edge) {
    state s;
    for (u32 i = 0; i < STATE; i++)
        s.w[i] = edge[i];
    s.tag = (u32)edge[STATE];
    return s;
}

/* How many elements a row has that begins in cell `c` and ends in the tile; of the ends, whether it has one or more. */
#if defined(KIND_ENDS)
#define COUNT_OF(s, c)                                                                             \
    ((c) + 1 < cells && !(b.starts[((c) + 1) / RUN] >> (((c) + 1) % RUN) & 1) ? 2u : 1u)
#else
#define COUNT_OF(s, c) ((s).tag & ~LOST)
#endif

KERNEL rows(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
            const parts_plan plan) {
    __shared__ block b;
    __shared__ u64 exchange[EXCHANGE];
    if (!may_begin(work)) return;
    bound begin_at, end_at;
    find_bounds(b.count, offsets, &plan, blockIdx.x, &begin_at, &end_at);

    place at;
    const GLOBAL element *first = (const GLOBAL element *)x + plan.x;
    const u32 skew = (u32)((size_t)first % 16 / sizeof(element));
    const u32 is_equal = plan.rows.kind == 0;
    at.x = first;
    u64 row = begin_at.row + !begin_at.whole; /* the next that begins */
    const u64 end_row = end_at.row + !end_at.whole, end = end_at.at;
    u64 p = begin_at.at;
    u64 next = row_start(offsets, plan.rows, row); /* where it does */
    u32 carried = !begin_at.whole && p < next, began = 0, side = 0;
    const u64 mean = plan.n / plan.rows.count;
    const u32 has_long = mean >= TILE;
    const u64 guess = TILE / (mean + 1) + TILE / (4 * mean + 4) + WARP;
    const u32 window = guess < ROWS_AHEAD * BLOCK ? (u32)guess : ROWS_AHEAD * BLOCK;
#define OWN_EDGE (work + plan.edges + blockIdx.x * EDGE)
    b.starts[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
        b.carry[0] = neutral_state();
        b.crosses[0] = b.any_lost[0] = 0;
        OWN_EDGE[2 * EDGED] = 0;
    }

    while (p < end || row < end_row) {
        at.lead = ((u32)p + skew) % PACK;
        at.start = p - at.lead;
        at.cells = end - at.start < TILE ? (u32)(end - at.start) : TILE;

        /* A row that begins here and fills the tile is open as those are that begin before it. */
        if (has_long && !carried && row < end_row) {
            const u64 after = row_start(offsets, plan.rows, row + 1);
            if (after - at.start >= TILE && at.cells == TILE) {
                carried = began = 1;
                row++;
                next = after;
                if (threadIdx.x == 0) b.carry[side] = neutral_state();
            }
        }

        /* Tiles within the row that is open. */
        const u64 within = next < end ? next : end;
        if (carried && at.lead == 0 && within - p >= TILE) {
            const u64 tiles = (within - p) / TILE;
            const state all = merge_all(&b, add_tiles(at, tiles), exchange);
            p += tiles * TILE;
            if (threadIdx.x == 0) {
                const state s = merge(b.carry[side], all);
                b.carry[side] = s;
                if (next <= p) {
                    if (began) {
                        const u64 start = row_start(offsets, plan.rows, row - 1);
                        put_state(work, out, &plan, row - 1, start, next - start, s);
                    } else
                        put_edge(OWN_EDGE, s);
                }
            }
            if (next <= p) carried = 0;
            continue;
        }

        if (threadIdx.x == 0) {
            b.crosses[!side] = b.any_lost[!side] = 0;
            b.row = row;
            b.next = next;
            b.last = NOWHERE;
            b.open = 0;
        }
        const u32 cells = at.cells, mine = threadIdx.x * RUN;
        opened o;
        load_cells(&b, at);
        if (is_equal) {
            o = equal_rows(&plan, row, end_row, next, at);
            b.starts[threadIdx.x] = equal_starts(&o);
        } else {
            __syncthreads();
            find_starts(&b, offsets, &plan, row, end_row, at, window);
        }
        __syncthreads();

        if (!is_equal) {
            o.until = at.start + cells == end ? end_row : b.row;
            o.next = b.next;
            o.last = b.last;
            o.open = b.open;
        }
        const u32 starts = b.starts[threadIdx.x];
        found f;
        f.head = f.tail = neutral_state();
        f.last = NOWHERE;
        u32 lost = 0;
        if (at.lead < cells && mine < cells) {
            walk(&b, &plan, at.start, at.lead, cells, starts, &f, &lost);
            if (mine + RUN < cells && !(b.starts[threadIdx.x + 1] & 1))
                atomicOr(&b.crosses[side], 1u);
        }
        __syncthreads();

        state behind = neutral_state(), whole = f.head;
        if (b.crosses[side]) behind = heads_behind(&b, f.head, starts != 0, &whole, exchange);
        const u32 closes = carried && next - at.start <= cells;
        if (starts != 0) {
            const state s = merge(f.tail, behind);
            if (o.open && f.last == o.last)
                b.carry[!side] = s;
            else
                put_cells(&b, &plan, s, f.last, COUNT_OF(s, f.last), at.start, &lost);
        }
        b.lost[threadIdx.x] = lost;
        if (lost) atomicOr(&b.any_lost[side], 1u);
        if (threadIdx.x == 0 && carried) {
            const state s = merge(b.carry[side], whole);
            if (!closes) {
                b.carry[!side] = s;
            } else if (began) {
                const u64 start = row_start(offsets, plan.rows, row - 1);
                put_state(work, out, &plan, row - 1, start, next - start, s);
            } else
                put_edge(OWN_EDGE, s);
        }
        __syncthreads();

        const u32 any_lost = b.any_lost[side];
        if (is_equal)
            put_equal_rows(&b, work, out, &plan, row, &o, at, any_lost);
        else {
            b.starts[threadIdx.x] = 0;
            put_rows(&b, offsets, work, out, &plan, row, o.until, at, any_lost);
        }
        if (o.open) began = 1;
        carried = o.open || (carried && !closes);
        side = !side;
        row = o.until;
        next = o.next;
        p = at.start + cells;
        __syncthreads();
    }

    if (threadIdx.x == 0 && carried) {
        if (began) OWN_EDGE[2 * EDGED] = row;
        put_edge(OWN_EDGE + (began ? EDGED : 0), b.carry[side]);
    }
}

/* Rows that were cut: block b's begin in pieces b, b + grid ... and end in later ones. */
KERNEL join_rows(const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                 const parts_plan plan) {
    __shared__ block b;
    __shared__ u64 exchange[EXCHANGE];
    if (!may_begin(work)) return;
    const u64 origin = row_start(offsets, plan.rows, 0);
    for (u64 piece = blockIdx.x; piece + 1 < plan.pieces; piece += gridDim.x) {
        const GLOBAL u64 *edge = work + plan.edges + piece * EDGE;
        if (edge[2 * EDGED] == 0) continue;
        const u64 row = edge[2 * EDGED] - 1, start = row_start(offsets, plan.rows, row);
        const u64 n = row_start(offsets, plan.rows, row + 1) - start;
        const u64 last = (start - origin + row * PARTS_ROW_END + n - 1) / plan.piece;
        state s = neutral_state();
        for (u64 i = piece + threadIdx.x; i <= last; i += BLOCK)
            s = merge(s, get_edge(work + plan.edges + i * EDGE + (i == piece ? EDGED : 0)));
        s = merge_all(&b, s, exchange);
        if (threadIdx.x == 0) put_state(work, out, &plan, row, start, n, s);
        __syncthreads();
    }
}
