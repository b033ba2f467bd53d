/*
 * rows - reductions of rows, and segments, whose elements lie side by side (parts.h), compiled for one type and one
 * kind of state: sums and means; with LIFT_MAGNITUDE, LIFT_SQUARE or LIFT_MOMENTS sums of magnitudes, of squares, or of
 * elements and of squares, of which norms and variances are made; the least and the greatest element, or with INDEXED
 * the index of one of them.
 *
 * Pieces. A warp has a piece of the work: so many elements and ends of rows. Warps meet at no barrier. Of a row that
 * pieces cut, each leaves its state on an edge; `join_rows` merges these. Offsets of short segments are checked by the
 * warp that uses them: it uses no offset that it has not found to lie inside and not to fall; and every offset is
 * checked by some warp, whatever the others are.
 *
 * Rows in a piece. A team of 1, 2, 4, 8 or 32 neighbouring lanes has a row, as long as the piece's mean row asks for,
 * and its lanes take the row's packs of 16 bytes in turn, LOADS of them on their way at once. Lanes merge what they
 * know by shuffles, in t steps for a team of 2^t. The warp takes WARP rows at a time, one after the other in each team,
 * so that each lane has one row's state in the end: the results of WARP rows are worked out, and written, at once. A
 * row that is far longer than others is for the whole warp.
 *
 * Short rows. Their elements, wherever they begin and end, come as whole packs by copies to the warp's stage in shared
 * memory (copies.h), as many rows as fit there, all on their way at once; a row that does not begin at a multiple of 16
 * bytes costs no more there. Offsets come there, too: those of the next rows while the elements of these are on their
 * way. Each row then has a lane to itself or, if it is longer, a team of lanes; and of rows of one pack a lane takes
 * several at a time. Rows of one length, of few elements, have a kernel of their own, without pieces.
 *
 * Sums of floats of up to 32 bits take precision levels, from cheap to exact:
 *   plain           A lane adds its elements as doubles, and notes the largest and the smallest
 *                   exponent. plain_sum_is_exact() says when that loses nothing.
 *   approximate     Otherwise the plain sum has a bound, and Ziv's rounding test may decide.
 *   compensated     Rows that it does not decide are added again, with a sum of the errors.
 *   double-double   The last level notes the bits that it loses. A row whose sum a double-double does
 *                   not hold is left to `fold` (parts.cu).
 *
 * Sums of f64, and those for norms and variances, are approximate first: a compensated sum of f64, else
 * a plain one. Rows that the bound does not decide, and edges, take the next level: plain sums with
 * their errors for squares of up to 32 bits, else double-doubles. Cut rows of f64 whose sum a
 * double-double does not hold are merged as quad-doubles.
 *
 * Indices. An element has an order-preserving key, or its complement for argmin; all NaNs have the
 * highest key. The result is the first element with the highest key.
 */
#ifndef BLOCK
#define BLOCK GPU_ROWS_BLOCK
#endif

#include "widen.h"

#include "result.h"

#include "plan.h"

#include "parts.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#include "doubles.h"

#include "certain/batch.h"

#include "copies.h"

#include "spots.h"

BEGINS_EARLY

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
#if defined(KIND_INDEX) || defined(KIND_ENDS)
#include "end_keys.h"
#if defined(OP_MAX) || defined(KIND_ENDS)
#define FLIP TURN_NONE
#else
#define FLIP TURN_ALL
#endif
#endif
#if defined(KIND_FLOATS) && defined(TYPE_F64) && !defined(HAS_SQUARES)
#define JOINS_QUAD_DOUBLES                                                                         \
    1 /* cut rows that a double-double cannot hold are merged as quad-doubles */
#endif
#if defined(KIND_FLOATS) && !defined(TYPE_F64)
#define KIND_SHORT 1 /* floats whose first level is plain */
#if !defined(HAS_SQUARES)
#define HAS_COMPENSATED 1 /* and whose second level is compensated */
#endif
#endif
#if defined(HAS_SQUARES) || defined(HAS_COMPENSATED)
#define HAS_APPROXIMATE 1 /* states may be approximate */
#endif
/* Precision levels, from cheap to exact. APPROXIMATE: sums have a bound, and Ziv's rounding test
 * decides. PLAIN: additions without errors, as exponents show. COMPENSATED: errors are added up
 * plainly. DOUBLE_DOUBLE: notes the bits that it loses. */
enum {
#if defined(HAS_SQUARES)
    APPROXIMATE,
#endif
    PLAIN,
#if defined(HAS_COMPENSATED)
    COMPENSATED,
#endif
    DOUBLE_DOUBLE
};

/* ---- Elements --------------------------------------------------------------------------------------- */

#define PACK        (16 / (u32)sizeof(element)) /* elements of a load */
#define LOADS       4u                          /* a lane's loads of packs under way at once */
#define CHUNK       (LOADS * PACK)              /* elements of these loads */
#define CHUNKS      (64 / CHUNK) /* chunks that a lane adds before it tests whether its sum is exact */
#define WARPS       ((BLOCK + WARP - 1) / WARP)
#define WARP_LOG    5
#define TEAM_LOG    3            /* log2 of the largest team below a whole warp */
#define TEAM_MOST   (64 * CHUNK) /* the largest mean length of rows for teams below a warp */
#define TEAM_ROWS   16           /* if a piece has fewer rows, half of TEAM_MOST counts */
#define LATE_CHUNKS 8            /* rows of more chunks a lane go to the whole warp */
#define JOINED      4u           /* edges that a thread of join_rows() loads at once */
#define PART_MOST   (1u << 31)   /* pieces have fewer elements (rows.c) */
#define NOWHERE     (~0u)
#define STRIKES     1u  /* failures of plain sums in a piece after which they are not tried again */
#define ADDED       64u /* elements that a lane adds between two tests for exactness */
#define STAGE_STEPS 12u /* the most rows of a lane at a time */
/* Packs of the warp's stage: 9 KB, 216 KB for the 24 warps of a multiprocessor that has 227; else 6 KB. */
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 900
#define STAGE_PACKS (18 * WARP)
#else
#define STAGE_PACKS (STAGES * LOADS * WARP)
#endif
#define STAGE_BYTES (16 * STAGE_PACKS)
#define OFFSETS     12 /* bytes of the stage for a row's offset: as read and as used */

typedef union pack {
    uint4 all;
    u64 half[2];
    element e[16 / sizeof(element)];
} pack;

/* ---- States and batches --------------------------------------------------------------------------------- */

#if defined(LIFT_MOMENTS) && defined(KIND_FLOATS)
#define STATE   4 /* high and low of two pairs: the sum of elements, and that of squares */
#define SQUARES 2 /* where the latter is */
#elif defined(KIND_FLOATS)
#define STATE   2 /* high and low of a pair */
#define SQUARES 0
#elif defined(KIND_INDEX)
#define STATE 2 /* the key, and the element's number */
#elif defined(KIND_ENDS) && LONG_KEYS
#define STATE 2 /* the greatest key and the least */
#else
#define STATE 1 /* both in one word; a sum */
#endif

/* The tag of an exact sum has the flags TAG_.... Where HAS_COMPENSATED its other bits are those of an
 * f32: the largest magnitude of an element, rounded up. A state's words are those of its batch, or of
 * a double-double for each sum. */
typedef struct state {
    u64 w[STATE];
    u32 tag;
} state;

#define TAG_LOST        1u /* the state has lost bits: it determines no value */
#define TAG_APPROXIMATE 2u /* a sum: approximate_sum_rounds() has its bound */
#define TAG_ROUGH       4u /* sums with squares have lost bits: lower_floats() has their bound */
#define TAG_FLAGS       (TAG_LOST | TAG_APPROXIMATE)
/* The flag that an addition of finite double-doubles sets if it loses a bit. */
#if defined(HAS_SQUARES)
#define TAG_OF_LOSS TAG_ROUGH
#else
#define TAG_OF_LOSS TAG_LOST
#endif
#define EDGED (STATE + 1) /* words of a state on an edge */
#if defined(KIND_FLOATS) || defined(KIND_INTEGERS)
#define TAGGED 1
#else
#define TAGGED 0
#endif

/* Each kind defines: begin(), which makes *k the state of no elements; add(), which adds an element
 * if it is `inside` the row; finish(), which returns the state; merge(), which returns the state of
 * two; neutral_state(), that of no elements. `at` counts elements from a number that finish() gets;
 * begin() gets the first one's. */

#if defined(KIND_FLOATS)

/* Adds double-double b to a; sets a flag in *tag if that loses a bit. The low double of an infinity
 * or a NaN is 0. */
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
    if (is_finite && !(f == 0 && g == 0)) *tag |= TAG_OF_LOSS;
    if (!is_finite || low == 0) {
        a[0] = double_bits(high);
        a[1] = 0;
    } else {
        a[0] = double_bits(sum);
        a[1] = double_bits(low - (sum - high));
    }
}

#if defined(HAS_COMPENSATED)
/* Returns sum + rest, without a rest of 0, which would make +0 of -0. */
PURE double with_rest(double sum, double rest) {
    return rest == 0 ? sum : sum + rest;
}
#endif

PURE state merge(state a, state b) {
#if defined(HAS_COMPENSATED)
    a.tag = ((a.tag > b.tag ? a.tag : b.tag) & ~TAG_FLAGS) | ((a.tag | b.tag) & TAG_FLAGS);
    if (a.tag & TAG_APPROXIMATE) {
        const double sum = double_from(a.w[0]) + double_from(b.w[0]);
        a.w[0] = double_bits(with_rest(sum, double_from(a.w[1]) + double_from(b.w[1])));
        a.w[1] = 0;
        return a;
    }
#else
    a.tag |= b.tag;
#endif
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

/* Adds x to a double-double; sets a flag in *tag if that loses a bit. */
PURE void add_to_pair(u64 *a, double x, u32 *tag) {
    double e, f;
    const double high = two_sum(double_from(a[0]), x, &e);
    const double low = two_sum(double_from(a[1]), e, &f);
    a[0] = double_bits(high);
    a[1] = double_bits(low);
#if defined(HAS_SQUARES)
    if (!(f == 0)) *tag |= f - f == 0 ? TAG_ROUGH : TAG_LOST;
#else
    if (!(f == 0)) *tag |= TAG_LOST;
#endif
}

/* Adds an element to the double-doubles of a state. The square of an f64 is a double-double, if it is
 * not too small (lift.h). */
PURE void add_double_double(double x, state *s) {
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
    if (x != 0 && exponent_field(square) < 1023 - 960) s->tag |= TAG_LOST;
#endif
#endif
}

#if defined(TYPE_F64)
#define PADDING (-0.0)
typedef state batch;
PURE void begin(batch *k, u32 at) {
    *k = neutral_state();
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    add_double_double(inside ? e : PADDING, k);
}
#else
#if defined(TYPE_F32)
#define PADDING float_from(0x80000000u)
#else
#define PADDING ((element)SIGN)
#endif
#if defined(HAS_SUM)
/* Returns what an element adds to the sum. */
PURE double lifted(real x) {
#if defined(LIFT_MAGNITUDE)
    return (double)float_from(float_bits(x) & 0x7fffffffu);
#else
    return (double)x;
#endif
}
#endif
typedef struct batch {
    double sum, square, rest; /* of elements; of squares, and the errors of either */
    u32 least, most;          /* the bounds of certain/batch.h */
} batch;
PURE void begin(batch *k, u32 at) {
    k->sum = k->square = -0.0;
    k->rest = 0;
    k->least = NO_LEAST;
    k->most = NO_MOST;
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    const real x = widen(inside ? e : PADDING);
#if defined(HAS_SUM)
    k->sum += lifted(x);
#endif
#if defined(HAS_SQUARES)
    double error;
    k->square = two_sum(k->square, (double)x * (double)x, &error);
    k->rest += error;
#endif
    note_magnitude(float_bits(x), &k->most, &k->least);
}
/* Returns the least p with n <= 2^p, but at least 6. */
PURE u32 power_for(u32 n) {
    return n <= ADDED ? 6 : 32 - leading_zeros(n - 1);
}
/* Returns whether plain additions of at most 2^power elements, and of their squares, give the right
 * sums. */
PURE u32 plain_sum_is_exact(const batch *k, u32 power) {
    return plain_sums_are_exact(spread_of(k->most, k->least, OF_ONE_SUM), (i32)power);
}
#if defined(HAS_COMPENSATED)
/* Adds an element, and the error of that to the other errors, plainly. */
INLINED void add_compensated(batch *k, element e, u32 inside) {
    double error;
    const real x = widen(inside ? e : PADDING);
    k->sum = two_sum(k->sum, lifted(x), &error);
    k->rest += error;
    note_magnitude(float_bits(x), &k->most, &k->least);
}
/* Returns the same of compensated additions of elements. */
PURE u32 compensated_sum_is_exact(const batch *k, u32 power) {
    return compensated_sums_are_exact(spread_of(k->most, k->least, OF_ONE_SUM), (i32)power);
}
#endif
#endif

#elif defined(KIND_FAST)

#define PADDING 0
#if defined(TYPE_F64)
#define SUM_BITS(x) double_bits(x)
#define SUM_FROM(w) double_from(w)
#else
#define SUM_BITS(x) ((u64)float_bits(x))
#define SUM_FROM(w) float_from((u32)(w))
#endif
typedef real batch;
PURE void begin(batch *k, u32 at) {
    *k = 0;
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    *k += widen(inside ? e : (element)PADDING);
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

typedef state batch;
PURE state neutral_state(void) {
    const state s = {{0}, 0};
    return s;
}
PURE void begin(batch *k, u32 at) {
    *k = neutral_state();
}
/* Returns a + b; sets TAG_LOST in *tag if that is no 64-bit number of the type. */
PURE u64 add_checked(u64 a, u64 b, u32 *tag) {
    const u64 sum = a + b;
#if defined(TYPE_U64)
    if (sum < a) *tag |= TAG_LOST;
#elif defined(TYPE_I64)
    if (((a ^ sum) & (b ^ sum)) >> 63) *tag |= TAG_LOST;
#endif
    return sum;
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    k->w[0] = add_checked(k->w[0], inside ? (u64)e : 0, &k->tag);
}
PURE state merge(state a, state b) {
    state s;
    s.tag = a.tag | b.tag;
    s.w[0] = add_checked(a.w[0], b.w[0], &s.tag);
    return s;
}

#elif defined(KIND_ENDS)

typedef struct batch {
    key most, least;
} batch;
PURE void begin(batch *k, u32 at) {
    k->most = 0;
    k->least = ~(key)0;
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    const key r = key_of(e, FLIP), high = inside ? r : 0, low = inside ? r : ~(key)0;
    k->most = high > k->most ? high : k->most;
    k->least = low < k->least ? low : k->least;
}
PURE batch batch_of(state s) {
    batch k;
#if LONG_KEYS
    k.most = s.w[0];
    k.least = s.w[1];
#else
    k.most = (u32)(s.w[0] >> 32);
    k.least = (u32)s.w[0];
#endif
    return k;
}
PURE state state_of(batch k) {
    state s;
    s.tag = 0;
#if LONG_KEYS
    s.w[0] = k.most;
    s.w[1] = k.least;
#else
    s.w[0] = (u64)k.most << 32 | k.least;
#endif
    return s;
}
PURE state merge(state a, state b) {
    batch k = batch_of(a);
    const batch l = batch_of(b);
    k.most = l.most > k.most ? l.most : k.most;
    k.least = l.least < k.least ? l.least : k.least;
    return state_of(k);
}
PURE state neutral_state(void) {
    batch k;
    begin(&k, 0);
    return state_of(k);
}

#else /* KIND_INDEX */

typedef struct batch {
    key best;
    u32 at;
} batch;
PURE void begin(batch *k, u32 at) {
    k->best = 0;
    k->at = at;
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    const key r = inside ? first_nan(key_of(e, FLIP)) : 0;
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

/* ---- Approximate sums ---------------------------------------------------------------------------------- */

#define APPROXIMATE_MOST (1u << 20) /* approximate sums have fewer elements */

#if defined(HAS_COMPENSATED)
/* Returns whether an approximate sum of n elements determines the sum or the mean; *bits are its
 * bits. Each element goes through at most 4 n + 16 additions, which round numbers of at most n
 * times the greatest element. */
PURE u32 approximate_sum_rounds(u64 sum, u32 tag, u32 n, u32 op, u32 to, u64 *bits) {
    const double count = (double)n, most = (double)float_from(tag & ~TAG_FLAGS);
    return n < APPROXIMATE_MOST &&
           near_sum_rounds(double_from(sum), (4 * count + 16) * count * 0x1p-53 * most, n,
                           op == MEAN, to, bits);
}
#endif

#if defined(HAS_SQUARES)
/* Adds an element to approximate sums. `tells`: for f64, the tag becomes other than 0 if they are
 * not exact.
 * Floats of up to 32 bits have one double for each sum. The error of the sum of n squares is at
 * most n 2^-53 of itself, that of the sum n 2^-53 of the sum of magnitudes.
 * f64 has two doubles for each, the second of which is the plain sum of all errors. Their errors
 * are at most 2 n (n + 1) 2^-106 and n^2 2^-106 of the same. */
INLINED void add_approximate(state *s, element e, u32 inside, u32 tells) {
    const double x = (double)widen(inside ? e : PADDING);
#if defined(TYPE_F64)
    double error;
    u64 lost = 0;
#if defined(HAS_SUM)
    s->w[0] = double_bits(two_sum(double_from(s->w[0]), x, &error));
    s->w[1] = double_bits(double_from(s->w[1]) + error);
    lost = double_bits(error);
#endif
    const double square = x * x, rest = fused(x, x, -square);
    s->w[SQUARES] = double_bits(two_sum(double_from(s->w[SQUARES]), square, &error));
    lost |= double_bits(error) | double_bits(rest);
    if (exponent_field(square) < 1023 - 960)
        lost |= double_bits(x) << 1; /* as in add_double_double() */
    if (tells) s->tag |= (u32)lost | (u32)(lost >> 32);
    s->w[SQUARES + 1] = double_bits(double_from(s->w[SQUARES + 1]) + (error + rest));
#else
#if defined(HAS_SUM)
    s->w[0] = double_bits(double_from(s->w[0]) + x);
#endif
    s->w[SQUARES] = double_bits(fused(x, x, double_from(s->w[SQUARES])));
#endif
}

/* Returns to every lane the merged sums of all lanes of its team of 2^t. */
INLINED state merge_approximate(state s, u32 t) {
    UNROLL_NOT
    for (u32 lanes = 1u << t >> 1; lanes > 0; lanes /= 2) {
        UNROLL
        for (u32 k = 0; k < STATE; k += 2) {
            const u64 other = __shfl_xor_sync(FULL_WARP, s.w[k], lanes);
#if defined(TYPE_F64)
            const u64 low = __shfl_xor_sync(FULL_WARP, s.w[k + 1], lanes);
            double error;
            const double high = two_sum(double_from(s.w[k]), double_from(other), &error);
            s.w[k] = double_bits(high);
            s.w[k + 1] = double_bits((double_from(s.w[k + 1]) + double_from(low)) + error);
#else
            s.w[k] = double_bits(double_from(s.w[k]) + double_from(other));
#endif
        }
    }
    return s;
}

/* Returns whether approximate sums can give all values of the plan. */
PURE u32 can_approximate(const parts_plan *p) {
    const u32 op = p->lower.value[0] & 255;
    u32 is_far = 0;
    ddof_of(p->lower.ddof, p->lower.exponent, &is_far);
    return p->lower.values == 1 && op != SUM && op != MEAN && !is_far;
}

/* Returns whether approximate sums determine the value; *bits are its bits. An element goes through
 * the additions of a lane of the team of 2^t, for a row of `length` places, and at most 5 merges. */
PURE u32 approximate_value_rounds(const parts_plan *p, u32 to, const state *s, u32 n, u32 length,
                                  u32 t, u64 *bits) {
    const u32 op = p->lower.value[0] & 255;
    const double square = double_from(s->w[SQUARES]);
    u32 is_far = 0; /* it is not: can_approximate() */
    const double ddof = ddof_of(p->lower.ddof, p->lower.exponent, &is_far);
    if (n >= APPROXIMATE_MOST) return 0;
#if defined(TYPE_F64)
    return near_doubles_round(double_from(s->w[0]), double_from(s->w[1]), square,
                              double_from(s->w[SQUARES + 1]), n, SQUARES != 0, op, ddof, to, bits);
#else
    return near_sums_round(double_from(s->w[0]), square, n, (double)((length >> t) + 2 * PACK),
                           SQUARES != 0, op, ddof, to, bits);
#endif
}
#endif

#if defined(HAS_SQUARES)
#define FINISHED_REST 0 /* a sum without squares has no error word */
#else
#define FINISHED_REST double_bits(k->rest)
#endif

/* Returns the state of the elements added so far; `start` is the number of the element that `at`
 * counts from. For floats of up to 32 bits it is right if plain_sum_is_exact() or compensated_sum_is_exact(). */
PURE state finish(const batch *k, u64 start) {
#if defined(KIND_SHORT)
    state s;
#if defined(HAS_SUM)
    s.w[0] = double_bits(k->sum);
    s.w[1] = FINISHED_REST;
#endif
#if defined(HAS_SQUARES)
    s.w[SQUARES] = double_bits(k->square);
    s.w[SQUARES + 1] = double_bits(k->rest);
#endif
#if defined(HAS_COMPENSATED)
    s.tag = (k->most + TAG_FLAGS) & ~TAG_FLAGS;
#else
    s.tag = 0;
#endif
#elif TAGGED
    const state s = *k;
#elif defined(KIND_FAST)
    const state s = {{SUM_BITS(*k)}, 0};
#elif defined(KIND_ENDS)
    const state s = state_of(*k);
#else
    const state s = {{k->best, k->at == NOWHERE ? ~(u64)0 : start + k->at}, 0};
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

/* A value's bits; `lost` is not 0 if the state does not determine them. */
typedef struct lowered {
    u64 bits;
    u32 lost;
} lowered;

#if defined(HAS_COMPENSATED)
/* Returns the value of an approximate sum. */
SELDOM lowered lower_approximate(u64 sum, u32 tag, u32 n, u32 op, u32 to) {
    lowered r;
    r.lost = !approximate_sum_rounds(sum, tag, n, op, to, &r.bits);
    return r;
}
#endif

#if defined(KIND_FLOATS)
/* Returns the value of n > 0 elements. A variance's ddof is correction * 2^exponent, as in the
 * plan. */
SELDOM lowered lower_floats(state s, u64 n, u32 op, u64 correction, i32 exponent) {
    const u32 to = VALUE_TYPE(p, v);
    const double high = double_from(s.w[0]), low = double_from(s.w[1]);
    const float_format f = format_of(to);
    lowered r = {0, (s.tag & TAG_LOST) != 0};
    if (high - high != 0) { /* an infinity or a NaN; of f64 perhaps only on the way */
        TALLY_PATH("not finite");
#if defined(TYPE_F64)
        r.lost = 1;
#else
#if defined(HAS_SQUARES)
        const double v = op == SUMSQ || op == NORM2 ? double_from(s.w[SQUARES]) : high;
#else
        const double v = high;
#endif
        r.bits =
            v == v && op != VAR && op != STD ? float_infinity_bits(f, v < 0) : float_nan_bits(f);
#endif
        return r;
    }
#if defined(HAS_SQUARES)
    const double square = double_from(s.w[SQUARES]), rest = double_from(s.w[SQUARES + 1]);
    const double rough = s.tag & TAG_ROUGH ? rough_bound(n) : 0;
    if (rough != 0 && (square == 0 || op == SUM || op == MEAN)) r.lost = 1;
    if (rough != 0)
        TALLY_PATH("rough sums");
    else
        TALLY_PATH("exact sums");
    if (op == SUMSQ && rough != 0) {
        const ball sum = {square, rest, rough * square};
        r.bits = ball_value(sum, to, &r.lost);
    } else if (op == SUMSQ) {
        r.bits = doubles_value(square, rest, n, 0, to, 0, &r.lost);
    } else if (op == NORM2) {
        r.bits = norm_value(square, rest, to, rough * square, &r.lost);
    } else if (op == VAR || op == STD) {
        const double ddof = ddof_of(correction, exponent, &r.lost);
        r.bits = variance_value(high, low, square, rest, n, ddof, op == STD, to, rough, &r.lost);
    } else
#endif
        r.bits = doubles_value(high, low, n, op == MEAN, to,
                               s.w[0] == double_bits(-0.0) ? float_sign(f) : 0, &r.lost);
    return r;
}
#endif

/* Returns the bits of the v-th value of n > 0 elements; of an index, the element's number. Sets *lost if the
 * state does not determine it. */
PURE u64 lower_state(const parts_plan *p, state s, u64 n, u32 v, u32 *lost) {
#if defined(KIND_FLOATS)
#if defined(TYPE_F32) && !defined(HAS_SQUARES)
    const double sum = double_from(s.w[0]);
    if (s.w[1] == 0 && !(s.tag & TAG_LOST)) {
        if (VALUE_OP(p, v) != MEAN)
            return float_bits(sum == sum ? (float)sum : float_from(0x7fc00000u));
        /* The mean lies on the same side of a point half way between two floats as the double nearest to it, if that is
         * not the point itself. */
        const double mean = sum / (double)n;
        const i32 field = exponent_field(mean);
        if (field > 1023 - 126 && field < 1023 + 127 && (u32)double_bits(mean) << 3 != 0x80000000u)
            return float_bits((float)mean);
    }
#elif !defined(HAS_SQUARES) && defined(TYPE_F64)
    const double sum = double_from(s.w[0]) + double_from(s.w[1]);
    if (VALUE_OP(p, v) != MEAN && !(s.tag & TAG_LOST) && sum != 0 &&
        exponent_field(sum) < HUGE_FIELD)
        return double_bits(sum);
#endif
    const lowered r = lower_floats(s, n, VALUE_OP(p, v), p->lower.ddof, p->lower.exponent);
    *lost |= r.lost;
    return r.bits;
#elif defined(KIND_FAST)
    const real sum = SUM_FROM(s.w[0]);
    const float_format mine = {23, 127};
    if (sum != sum) return float_nan_bits(format_of(VALUE_TYPE(p, v)));
    return VALUE_TYPE(p, v) < F32 ? round_float(format_of(VALUE_TYPE(p, v)), mine, s.w[0]) : s.w[0];
#elif defined(KIND_INTEGERS)
    *lost |= (s.tag & TAG_LOST) != 0;
    if (VALUE_OP(p, v) == SUM) return s.w[0];
#if defined(SIGNED_TYPE)
    const double sum = (double)(i64)s.w[0];
#else
    const double sum = (double)s.w[0];
#endif
    *lost |= n >> 53 != 0 || sum > 0x1p53 || sum < -0x1p53;
    return double_bits(sum / (double)n);
#elif defined(KIND_ENDS)
    const batch k = batch_of(s);
    if (HAS_NANS && k.most > KEY_MOST) return float_nan_bits(format_of(VALUE_TYPE(p, v)));
    return element_of_key(VALUE_OP(p, v) == MAX ? k.most : k.least, FLIP);
#else
    return s.w[1];
#endif
}

/* Returns the result of a row without elements. */
PURE u64 lower_nothing(const parts_plan *p, u32 v, u32 *lost) {
#if defined(KIND_INDEX)
    *lost = 1;
    return 0;
#elif defined(KIND_ENDS) && defined(FLOATING)
    return float_infinity_bits(format_of(VALUE_TYPE(p, v)), VALUE_OP(p, v) == MAX);
#elif defined(KIND_ENDS)
    return element_of_key(VALUE_OP(p, v) == MAX ? 0 : KEY_MASK, FLIP);
#else
    return VALUE_OP(p, v) == MEAN || VALUE_OP(p, v) == VAR || VALUE_OP(p, v) == STD
               ? float_nan_bits(format_of(VALUE_TYPE(p, v)))
               : 0;
#endif
}

/* ---- Results ---------------------------------------------------------------------------------------------- */

__device__ void put(GLOBAL u8 *out, const parts_plan *p, u32 v, u64 row, u64 bits) {
    const u32 width = VALUE_WIDTH(p, v);
    const i64 at = p->out_first +
                   (IS_APART(p) ? result_spot(p, row) : (i64)row * (p->keeps ? p->kept[0].out : 1));
    out += p->out[v];
    if (width == 64)
        ((GLOBAL u64 *)out)[at] = bits;
    else if (width == 32)
        ((GLOBAL u32 *)out)[at] = (u32)bits;
    else
        ((GLOBAL u16 *)out)[at] = (u16)bits;
}

#if defined(KIND_INDEX)
/* Returns the index of the element with this number. */
PURE u64 index_of(const parts_plan *p, u64 at, u64 start) {
    return p->absolute ? at : at - start;
}
#endif

/* Returns how many elements a row of n places has; others may have been filled in. */
__device__ u64 elements_of(const GLOBAL u64 *work, const parts_plan *p, u64 row, u64 n) {
    return IS_FILLED(p) && p->counts != 0 ? count_of_row(work, p->counts, p->wide_counts, row) : n;
}

/* Writes the results of row `row`, which has no elements. */
__device__ void put_nothing(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row) {
    u32 lost = 0;
    UNROLL_NOT
    for (u32 v = 0; v < p->lower.values && !lost; v++) {
        const u64 bits = lower_nothing(p, v, &lost);
        if (!lost) put(out, p, v, row, bits);
    }
    if (lost) leave_row(work, p->left, row);
}

/* Why a state always determines its values, or NULL. */
#if defined(KIND_FAST) || (defined(KIND_ENDS) && !defined(KIND_INDEX))
#define NEVER_LOST "extremes and fast sums lose nothing"
#else
#define NEVER_LOST NULL
#endif

/* Writes the results of a row of n > 0 places from its state, or leaves the row to `fold`. */
__device__ void put_state(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row, u64 start,
                          u64 n, state s) {
    u32 lost = 0;
#if defined(KIND_ENDS) || defined(HAS_SQUARES)
    const u32 values = p->lower.values;
#else
    const u32 values = 1;
#endif
    n = elements_of(work, p, row, n);
    if (IS_FILLED(p) && n == 0) {
        put_nothing(work, out, p, row);
        return;
    }
#if defined(KIND_INDEX)
    if (IS_FILLED(p) && s.w[0] == 0) lost = 1; /* it may be a filled one's */
#endif
    if (values == 1) { /* without a loop */
        u64 bits = lower_state(p, s, n, 0, &lost);
#if defined(KIND_INDEX)
        bits = index_of(p, bits, start);
#endif
        if (!lost) put(out, p, 0, row, bits);
    } else {
        UNROLL_NOT
        for (u32 v = 0; v < values; v++) {
            const u64 bits = lower_state(p, s, n, v, &lost);
            if (!lost) put(out, p, v, row, bits);
        }
    }
    if (lost) {
        TALLY_PATH_UNLESS("left to fold", NULL, NEVER_LOST);
        leave_row(work, p->left, row);
    } else
        TALLY_PATH("put");
}

/* ---- A warp's part of a row --------------------------------------------------------------------------------- */

/* An array as loads of packs see it. Position 0 is at a multiple of 16 bytes, and element i is at
 * position i + skew. Positions [skew, end) are the array's. */
typedef struct aligned_elements {
    const GLOBAL element *x; /* position 0 */
    u64 end;
    u32 skew;
} aligned_elements;

PURE aligned_elements aligned_elements_of(const GLOBAL u8 *x, const parts_plan *p) {
    const GLOBAL element *first = (const GLOBAL element *)x + p->x;
    const u32 skew = (u32)((size_t)first % 16 / sizeof(element));
    const aligned_elements at = {first - skew, skew + p->n, skew};
    return at;
}

/* Elements [from, to) of those from x on, a multiple of 16 bytes. Only packs within [low, high) lie
 * entirely in the array. */
typedef struct pack_range {
    const GLOBAL element *x;
    u32 from, to, low, high;
} pack_range;

/* Returns the range of the n elements from position s on; one of none is empty wherever it begins. */
PURE pack_range pack_range_of(aligned_elements at, u64 s, u32 n) {
    const u32 from = n > 0 ? (u32)s % PACK : 0;
    const u64 left = at.end - (s - from);
    const pack_range r = {at.x + (s - from), from, from + n, s < PACK && at.skew > 0 ? PACK : 0,
                          left < PART_MOST ? (u32)left : PART_MOST};
    return r;
}

/* Returns to all lanes a word with bit i set if lane i's `yes` is not 0. */
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

/* Returns the pack at c, some elements of which may lie outside the range and the array. */
SELDOM pack load_edge(const GLOBAL element *x, u32 from, u32 to, u32 c) {
    pack t;
    UNROLL
    for (u32 i = 0; i < PACK; i++)
        t.e[i] = c + i >= from && c + i < to ? x[c + i] : (element)0;
    return t;
}

/* Loads `count` packs at c, c + step, ..., those of them that begin in the range. All lanes of the
 * warp call this. */
INLINED void load_packs_in_range(pack *t, u32 count, u32 step, const pack_range *r, u32 c) {
    u32 sticks_out = 0;
    UNROLL
    for (u32 i = 0; i < count; i++) {
        const u32 o = c + i * step, is_there = o < r->to;
        const u32 is_inside = o >= r->low && o + PACK <= r->high;
        t[i].half[0] = t[i].half[1] = 0;
        if (is_there && is_inside) t[i].all = *(const GLOBAL uint4 *)(r->x + o);
        sticks_out |= is_there && !is_inside;
    }
    if (warp_votes(sticks_out) == 0) return;
    UNROLL
    for (u32 i = 0; i < count; i++) {
        const u32 o = c + i * step;
        if (o < r->to && (o < r->low || o + PACK > r->high))
            t[i] = load_edge(r->x, r->from, r->to, o);
    }
}

/* Loads packs as load_packs_in_range() does; all lie in the range. */
INLINED void load_packs(pack *t, u32 count, u32 step, const pack_range *r, u32 c) {
    const GLOBAL uint4 *from = (const GLOBAL uint4 *)(r->x + c);
    UNROLL
    for (u32 i = 0; i < count; i++)
        t[i].all = from[i * (step / PACK)];
}

/* Adds packs, loaded from c on, that all lie in the range. */
INLINED void add_packs(batch *k, const pack *t, u32 count, u32 step, u32 c) {
    UNROLL
    for (u32 i = 0; i < count; i++)
        UNROLL
    for (u32 j = 0; j < PACK; j++)
        add(k, t[i].e[j], c + i * step + j, 1);
}

/* Adds the elements of packs that lie in the range; only the very first pack can begin before it. */
INLINED void add_packs_in_range(batch *k, const pack *t, u32 count, u32 step, const pack_range *r,
                                u32 c) {
    UNROLL
    for (u32 i = 0; i < count; i++)
        UNROLL
    for (u32 j = 0; j < PACK; j++) {
        const u32 o = c + i * step + j;
        add(k, t[i].e[j], o, o < r->to && (i > 0 || o >= r->from));
    }
}

/* Begins with the range's elements from c on. */
INLINED void begin_at(batch *k, const pack_range *r, u32 c) {
    begin(k, c >= r->to ? NOWHERE : c < r->from ? r->from : c);
}

#if defined(KIND_SHORT)
/* Adds the elements of packs that lie in the range to a double-double. */
INLINED void add_double_double_packs(state *s, const pack *t, u32 count, u32 step,
                                     const pack_range *r, u32 c) {
    UNROLL
    for (u32 i = 0; i < count; i++)
        UNROLL
    for (u32 j = 0; j < PACK; j++) {
        const u32 o = c + i * step + j;
        add_double_double(
            (double)widen(o < r->to && (i > 0 || o >= r->from) ? t[i].e[j] : (element)PADDING), s);
    }
}

#if defined(HAS_COMPENSATED)
INLINED void add_compensated_packs(batch *k, const pack *t, u32 count, u32 step,
                                   const pack_range *r, u32 c) {
    UNROLL
    for (u32 i = 0; i < count; i++)
        UNROLL
    for (u32 j = 0; j < PACK; j++) {
        const u32 o = c + i * step + j;
        add_compensated(k, t[i].e[j], o < r->to && (i > 0 || o >= r->from));
    }
}

/* Adds CHUNKS * LOADS packs of a lane from that at c on, with plain sums of the errors. Returns the
 * result. */
INLINED batch add_compensated_chunks(const pack_range *r, u32 c, u32 step) {
    batch k;
    begin(&k, 0);
    UNROLL_NOT
    for (u32 n = 0; n < CHUNKS && warp_votes(c < r->to); n++, c += LOADS * step) {
        pack t[LOADS];
        load_packs_in_range(t, LOADS, step, r, c);
        add_compensated_packs(&k, t, LOADS, step, r, c);
    }
    return k;
}
#endif

/* Does the same as add_compensated_chunks() in double-doubles; returns the state. */
INLINED state add_double_double_chunks(const pack_range *r, u32 c, u32 step) {
    state mine = neutral_state();
    UNROLL_NOT
    for (u32 n = 0; n < CHUNKS && warp_votes(c < r->to); n++, c += LOADS * step) {
        pack t[LOADS];
        load_packs_in_range(t, LOADS, step, r, c);
        add_double_double_packs(&mine, t, LOADS, step, r, c);
    }
    return mine;
}
#endif

#if defined(HAS_SQUARES)
/* Returns approximate sums of the lane's part of a range, as add_part() does. */
INLINED state add_approximate_part(const pack_range *r, u32 t, u32 tells) {
    const u32 step = (u32)PACK << t;
    state s = neutral_state();
    u32 c = (threadIdx.x & ((1u << t) - 1)) * PACK;
    UNROLL_NOT
    for (; warp_votes(c < r->to); c += LOADS * step) {
        pack p[LOADS];
        if (warp_votes(c >= r->from && c + ((LOADS - 1) * step + PACK) <= r->to) == FULL_WARP) {
            load_packs(p, LOADS, step, r, c);
            UNROLL
            for (u32 i = 0; i < LOADS; i++)
                UNROLL
            for (u32 j = 0; j < PACK; j++)
                add_approximate(&s, p[i].e[j], 1, tells);
        } else {
            load_packs_in_range(p, LOADS, step, r, c);
            UNROLL
            for (u32 i = 0; i < LOADS; i++)
                UNROLL
            for (u32 j = 0; j < PACK; j++) {
                const u32 o = c + i * step + j;
                add_approximate(&s, p[i].e[j], o < r->to && (i > 0 || o >= r->from), tells);
            }
        }
    }
    return s;
}
#endif

/* Returns the state of the lane's part of a range; the lanes of a team of 2^t take its packs in
 * turn. All lanes of the warp call this, each team with a range of its own. `first` is the number of
 * the element at the range's x. *precision is the precision level, and only rises: a level that failed in
 * a piece more than STRIKES times is not tried again there. `may_approximate`: the sum may be approximate. */
INLINED state add_part(const pack_range *r, u64 first, u32 t, u32 may_approximate, u32 *precision,
                       u32 *strikes) {
    const u32 step = (u32)PACK << t;
    state mine = neutral_state();
    u32 c = (threadIdx.x & ((1u << t) - 1)) * PACK;
    UNROLL_NOT
    while (warp_votes(c < r->to)) {
#if defined(KIND_SHORT)
        const u32 base = c;
#endif
        state got = neutral_state();
#if defined(KIND_SHORT)
        u32 level = *precision;
#endif
        if (*precision == PLAIN) {
            batch k;
            begin_at(&k, r, c);
            UNROLL_NOT
            for (u32 n = 0; n < CHUNKS && warp_votes(c < r->to); n++, c += LOADS * step) {
                pack p[LOADS];
                if (warp_votes(c >= r->from && c + ((LOADS - 1) * step + PACK) <= r->to) ==
                    FULL_WARP) {
                    load_packs(p, LOADS, step, r, c);
                    add_packs(&k, p, LOADS, step, c);
                } else {
                    load_packs_in_range(p, LOADS, step, r, c);
                    add_packs_in_range(&k, p, LOADS, step, r, c);
                }
            }
            got = finish(&k, first);
#if defined(HAS_COMPENSATED)
            if (may_approximate)
                got.tag |= plain_sum_is_exact(&k, 6) ? 0 : TAG_APPROXIMATE;
            else if (warp_votes(!plain_sum_is_exact(&k, 6)) != 0) {
                level = COMPENSATED;
                if ((*strikes)++ >= STRIKES) *precision = COMPENSATED;
            }
#elif defined(KIND_SHORT)
            if (warp_votes(!plain_sum_is_exact(&k, 6)) != 0) *precision = level = DOUBLE_DOUBLE;
#endif
        } else
            c += CHUNKS * LOADS * step;
#if defined(HAS_COMPENSATED)
        if (level == COMPENSATED) {
            const batch k = add_compensated_chunks(r, base, step);
            got = finish(&k, first);
            if (warp_votes(!compensated_sum_is_exact(&k, 6)) != 0)
                *precision = level = DOUBLE_DOUBLE;
        }
#endif
#if defined(KIND_SHORT)
        if (level == DOUBLE_DOUBLE) got = add_double_double_chunks(r, base, step);
#endif
        mine = merge(mine, got);
    }
    return mine;
}

/* ---- Teams ---------------------------------------------------------------------------------------------------- */

INLINED state shuffle_xor_state(state s, u32 lanes) {
    state t;
    UNROLL
    for (u32 i = 0; i < STATE; i++)
        t.w[i] = __shfl_xor_sync(FULL_WARP, s.w[i], lanes);
    t.tag = TAGGED ? __shfl_xor_sync(FULL_WARP, s.tag, lanes) : 0;
    return t;
}

/* Returns to every lane the merged states of all lanes of its team of 2^t. */
INLINED state merge_team(state s, u32 t) {
#if defined(KIND_FLOATS) && !defined(HAS_SQUARES)
#if defined(HAS_COMPENSATED)
    if (warp_votes(s.tag & TAG_APPROXIMATE) != 0) {
        double sum = with_rest(double_from(s.w[0]), double_from(s.w[1]));
        s.tag |= TAG_APPROXIMATE;
        UNROLL_NOT
        for (u32 lanes = 1u << t >> 1; lanes > 0; lanes /= 2) {
            const u32 tag = __shfl_xor_sync(FULL_WARP, s.tag, lanes);
            sum += double_from(__shfl_xor_sync(FULL_WARP, double_bits(sum), lanes));
            s.tag = (s.tag > tag ? s.tag : tag) | ((s.tag | tag) & TAG_FLAGS);
        }
        s.w[0] = double_bits(sum);
        s.w[1] = 0;
        return s;
    }
#endif
    if (warp_votes(s.w[1] != 0 || s.tag & TAG_FLAGS) ==
        0) { /* one double each, perhaps their sum too */
        double sum = double_from(s.w[0]), error;
        u32 fits = 1;
        UNROLL_NOT
        for (u32 lanes = 1u << t >> 1; lanes > 0; lanes /= 2) {
            const u64 other = __shfl_xor_sync(FULL_WARP, double_bits(sum), lanes);
            sum = two_sum(sum, double_from(other), &error);
            fits &= error == 0;
        }
        if (warp_votes(!fits) == 0) {
            s.w[0] = double_bits(sum);
            return s;
        }
    }
#endif
#if defined(KIND_FLOATS) && !defined(HAS_SQUARES)
    /* Finite pairs, without making each sum of two the nearest double and the rest. */
    double high = double_from(s.w[0]), low = double_from(s.w[1]);
    if (warp_votes(!(high - high == 0)) == 0) {
        u32 lost = s.tag & TAG_LOST;
        UNROLL_NOT
        for (u32 lanes = 1u << t >> 1; lanes > 0; lanes /= 2) {
            double e, f, g;
            const u64 other = __shfl_xor_sync(FULL_WARP, double_bits(high), lanes);
            const u64 rest = __shfl_xor_sync(FULL_WARP, double_bits(low), lanes);
            high = two_sum(high, double_from(other), &e);
            low = two_sum(two_sum(low, double_from(rest), &f), e, &g);
            lost |= !(f == 0) || !(g == 0);
        }
        const u32 first = threadIdx.x % WARP & ~((1u << t) - 1);
        const u32 team = t == WARP_LOG ? FULL_WARP : ((1u << (1u << t)) - 1) << first;
        s.tag = warp_votes(lost) & team ? TAG_LOST : 0;
        s.w[0] = double_bits(low == 0 ? high : two_sum(high, low, &low));
        s.w[1] = double_bits(low);
        return s;
    }
#endif
    UNROLL_NOT
    for (u32 lanes = 1u << t >> 1; lanes > 0; lanes /= 2)
        s = merge(s, shuffle_xor_state(s, lanes));
    return s;
}

/* Returns the number of the lowest set bit; 32 if none is. */
PURE u32 lowest_bit(u32 w) {
    return w == 0 ? 32 : 31 - leading_zeros(w & (0 - w));
}

/* Returns the number of the lane's own row among WARP rows that teams of 2^t take: WARP >> t rows
 * at a time, a team each. Lane k of a team keeps the row of turn k. */
PURE u32 row_of_lane(u32 t) {
    const u32 lane = threadIdx.x % WARP;
    return ((lane & ((1u << t) - 1)) << (WARP_LOG - t)) + (lane >> t);
}

/* Returns a word whose bit k says that some lane k of a team is among `lanes`. */
PURE u32 turns_of(u32 lanes, u32 t) {
    for (u32 i = t; i < WARP_LOG; i++)
        lanes |= lanes >> (1u << i);
    return t == WARP_LOG ? lanes : lanes & ((1u << (1u << t)) - 1);
}

/* Writes the results of row `row`, which has n elements; the first has the number `start`. */
__device__ void put_row(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row, u64 start,
                        u64 n, state s) {
    if (n > 0)
        put_state(work, out, p, row, start, n, s);
    else
        put_nothing(work, out, p, row);
}

/* Returns the lanes whose results put() did not write. Where no state is approximate the compiler
 * knows that there are none. */
INLINED u32 votes_of(u32 failed) {
#if defined(HAS_APPROXIMATE)
    return warp_votes(failed);
#else
    return 0;
#endif
}

#if defined(HAS_APPROXIMATE)
PURE u32 popcount_of(u32 w) {
    u32 count = 0;
    for (; w != 0; w &= w - 1)
        count++;
    return count;
}

/* Redoes the rows that `failed` at the next precision level. Later rows return to *back, the level
 * before, unless more than a quarter of the `rows` failed. *back is DOUBLE_DOUBLE while none is redone. */
INLINED void retry(u32 failed, u32 rows, u32 *precision, u32 *back) {
    if (failed != 0) {
        *back = 4 * popcount_of(failed) > rows ? DOUBLE_DOUBLE : *precision;
        *precision += 1;
    } else if (*back != DOUBLE_DOUBLE) {
        *precision = *back;
        *back = DOUBLE_DOUBLE;
    }
}
#else
#define retry(failed, rows, precision, back) ((void)(back))
#endif

/* Writes a row's results, as put_row() does, from a state of a team of 2^t that may be approximate.
 * Returns whether the state determines them. */
__device__ u32 put_approximate(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row,
                               u64 start, u32 n, u32 t, state s, u32 precision) {
#if defined(HAS_APPROXIMATE)
    const u32 there = (u32)elements_of(work, p, row, n);
#if defined(HAS_SQUARES)
    const u32 is_approximate = there > 0 && precision == APPROXIMATE;
#else
    const u32 is_approximate = there > 0 && s.tag & TAG_APPROXIMATE;
#endif
    if (is_approximate) {
        u64 bits;
#if defined(HAS_SQUARES)
        const u32 found = approximate_value_rounds(p, VALUE_TYPE(p, 0), &s, there, n, t, &bits);
#else
        const lowered r = lower_approximate(s.w[0], s.tag, there, VALUE_OP(p, 0), VALUE_TYPE(p, 0));
        const u32 found = !r.lost;
        bits = r.bits;
#endif
        if (!found) {
            TALLY_PATH("approximate sums that do not suffice");
            return 0;
        }
        TALLY_PATH("approximate sums");
        put(out, p, 0, row, bits);
        return 1;
    }
#endif
    put_row(work, out, p, row, start, n, s);
    return 1;
}

/* Returns whether row `row`, which begins at s and ends at e, may be read. If not, notes the wrong
 * offset in work[PARTS_BAD]. */
__device__ u32 is_inside(GLOBAL u64 *work, const parts_plan *p, u64 row, u64 s, u64 e) {
    if (s <= e && e <= p->n) return 1;
    note_least(&work[PARTS_BAD], s > p->n ? row : row + 1);
    return 0;
}

/* ---- Short rows ------------------------------------------------------------------------------------------------- */

/* How short rows are staged: `rows` at a time, none of them longer than `most`, each taken by a team of 2^t lanes. No
 * rows: they are not. The offsets of those from row `ahead` on are under way, or there. `are_packs`: each of the rows
 * that are staged now has as many elements as a pack. */
typedef struct staging {
    u32 rows, t, most, are_packs;
    u64 ahead;
} staging;

PURE staging staging_for(u64 mean, u32 has_offsets) {
    staging how = {0, 0, 0, 0, ~(u64)0};
    const u32 width = sizeof(element), row = (u32)mean * width;
    if (mean * width * 2 > STAGE_BYTES) return how;
    const u32 fit = (STAGE_BYTES - 64) / (has_offsets ? row + OFFSETS : row > 0 ? row : 1);
    while (how.t < WARP_LOG && (WARP >> how.t > fit + fit / 2 || mean > ADDED << how.t))
        how.t++;
    const u32 team = WARP >> how.t, most = (STAGE_STEPS - 1) * WARP;
    how.rows = fit < team ? fit : fit / team * team;
    if (how.rows > most) how.rows = most;
    how.most = 4 * (u32)mean > ADDED << how.t ? 4 * (u32)mean : ADDED << how.t;
    return how;
}

/* Begins to copy the offsets of rows [row, row + count] to the stage, 8 bytes for each. */
INLINED void stage_offsets(SHARED u64 *raw, const GLOBAL u8 *offsets, const parts_plan *p, u64 row,
                           u32 count) {
    const u32 width = (u32)p->rows.kind;
    const GLOBAL u8 *from = offsets + p->rows.offsets + row * width;
    for (u32 i = threadIdx.x % WARP; i <= count; i += WARP) {
        if (width == 8)
            begin_copy((SHARED u8 *)(raw + i), from + i * 8, 8);
        else
            begin_copy((SHARED u8 *)(raw + i), from + i * 4, 4);
    }
    end_copies();
}

/* Begins to copy elements at positions [from, from + n) to the stage. The stage's first pack is the
 * one with the first element. All lanes of the warp call this. */
INLINED void stage_elements(SHARED uint4 *stage, aligned_elements at, u64 from, u32 n) {
    const u32 lane = threadIdx.x % WARP, skew = (u32)(from % PACK);
    const u64 first = from - skew;
    const u32 packs = (skew + n + PACK - 1) / PACK;
    const GLOBAL uint4 *x = (const GLOBAL uint4 *)(at.x + first);
    if (first >= at.skew && first + (u64)packs * PACK <= at.end) {
        for (u32 i = lane; i < packs; i += WARP)
            begin_copy((SHARED u8 *)(stage + i), x + i, 16);
    } else {
        UNROLL_NOT
        for (u32 i = lane; i < packs; i += WARP) {
            const u64 o = first + (u64)i * PACK;
            if (o >= at.skew && o + PACK <= at.end)
                begin_copy((SHARED u8 *)(stage + i), x + i, 16);
            else
                stage[i] = load_edge(at.x + o, o < at.skew ? at.skew : 0,
                                     at.end - o < PACK ? (u32)(at.end - o) : PACK, 0)
                               .all;
        }
    }
    end_copies();
}

/* Lanes of neighbouring rows begin with different packs, which lie in different banks of shared memory.
 * Not where the first of equal elements counts. */
#if defined(KIND_INDEX)
#define LANES_TURN(packs, lane) 0u
#define LANES_ROUND(packs)      (~0u)
#else
#define IS_ROUND(packs) ((packs) > 1 && ((packs) & ((packs)-1)) == 0)
#define LANES_TURN(packs, lane)                                                                    \
    (IS_ROUND(packs) ? PACK * ((packs) >= 8 ? (lane) : (packs) == 4 ? (lane) / 2 : (lane) / 4) : 0u)
#define LANES_ROUND(packs) (IS_ROUND(packs) ? PACK * (packs)-1 : ~0u)
#endif

/* Returns the state of the lane's part of a row of n elements in the stage, from x on; a team of
 * 2^t lanes takes the row. `start` is the number of the first element. All lanes of the warp call
 * this; `in_packs`: all their rows consist of whole packs. *precision is that of add_part(). */
INLINED state add_staged(const SHARED element *x, u32 n, u32 t, u32 in_packs, u64 start,
                         u32 *precision) {
    const u32 lane = threadIdx.x % WARP, of_team = lane & ((1u << t) - 1), packs = n / PACK;
#if defined(KIND_SHORT)
    const u32 power = power_for(t > 0 ? (n >> t) + PACK : n);
#endif
    const u32 turn = t == 0 || packs >= 8 ? LANES_TURN(packs, lane - of_team) : 0;
    const u32 round = LANES_ROUND(packs);
    state got = neutral_state();
/* Does something with each element of the lane, `e`, whose number in the row is `o`. */
#define STAGED_ELEMENTS(SOMETHING)                                                                 \
    do {                                                                                           \
        if (in_packs) {                                                                            \
            UNROLL_NOT                                                                             \
            for (u32 i = of_team * PACK; i < n; i += (u32)PACK << t) {                             \
                const u32 first = (i + turn) & round;                                              \
                pack w;                                                                            \
                w.all = *(const SHARED uint4 *)(x + first);                                        \
                UNROLL                                                                             \
                for (u32 j = 0; j < PACK; j++) {                                                   \
                    const element e = w.e[j];                                                      \
                    const u32 o = first + j;                                                       \
                    SOMETHING;                                                                     \
                }                                                                                  \
            }                                                                                      \
        } else {                                                                                   \
            for (u32 o = of_team; o < n; o += 1u << t) {                                           \
                const element e = x[o];                                                            \
                SOMETHING;                                                                         \
            }                                                                                      \
        }                                                                                          \
    } while (0)
#if defined(HAS_SQUARES)
    if (*precision == APPROXIMATE) {
        STAGED_ELEMENTS(((void)o, add_approximate(&got, e, 1, 0)));
        return got;
    }
#endif
    if (*precision == PLAIN) {
        const u32 own = in_packs ? of_team * PACK : of_team;
        batch k;
        begin(&k, own < n ? own : NOWHERE);
        STAGED_ELEMENTS(add(&k, e, o, 1));
        got = finish(&k, start);
#if defined(HAS_COMPENSATED)
        if (!plain_sum_is_exact(&k, power)) got.tag |= TAG_APPROXIMATE;
#elif defined(KIND_SHORT)
        if (warp_votes(!plain_sum_is_exact(&k, power)) != 0) *precision = PLAIN + 1;
#endif
    }
#if defined(HAS_COMPENSATED)
    if (*precision == COMPENSATED) {
        batch k;
        begin(&k, 0);
        STAGED_ELEMENTS(((void)o, add_compensated(&k, e, 1)));
        got = finish(&k, start);
        if (warp_votes(!compensated_sum_is_exact(&k, power)) != 0) *precision = DOUBLE_DOUBLE;
    }
#endif
#if defined(KIND_SHORT)
    if (*precision == DOUBLE_DOUBLE) {
        got = neutral_state();
        UNROLL_NOT
        for (u32 i = of_team; i < n; i += 1u << t)
            add_double_double((double)widen(x[i]), &got);
    }
#endif
    return got;
}

/* Whether short rows of one length may be taken several at once: not where sums have squares. */
#if defined(HAS_SQUARES)
#define HAS_ONE_WAY 0
#else
#define HAS_ONE_WAY 1
#endif

#if HAS_ONE_WAY
#if defined(HAS_COMPENSATED)
/* Returns the state of n elements of the stage, a double-double. */
SELDOM state double_double_row(const SHARED element *x, u32 n) {
    state s = neutral_state();
    UNROLL_NOT
    for (u32 j = 0; j < n; j++)
        add_double_double((double)widen(x[j]), &s);
    return s;
}
#endif

/* Reduces rows [row, row + count) of n <= ADDED elements each, which lie in the stage from x on: a lane takes LOADS of
 * them at once. `in_packs`: they are made of whole packs. */
INLINED void put_few(const SHARED element *x, GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p,
                     u64 row, u32 count, u32 n, u32 in_packs, u64 base) {
    const u32 lane = threadIdx.x % WARP;
    UNROLL_NOT
    for (u32 from = 0; from < count; from += LOADS * WARP) {
        batch k[LOADS];
        u32 at[LOADS];
        UNROLL
        for (u32 i = 0; i < LOADS; i++) {
            const u32 r = from + i * WARP + lane;
            at[i] = r < count ? r * n : 0;
            begin(&k[i], 0);
        }
        if (in_packs) {
            const u32 turn = LANES_TURN(n / PACK, lane), round = LANES_ROUND(n / PACK);
            UNROLL_NOT
            for (u32 q = 0; q < n; q += PACK) {
                const u32 o = (q + turn) & round;
                UNROLL
                for (u32 i = 0; i < LOADS; i++) {
                    pack w;
                    w.all = *(const SHARED uint4 *)(x + (at[i] + o));
                    UNROLL
                    for (u32 j = 0; j < PACK; j++)
                        add(&k[i], w.e[j], o + j, 1);
                }
            }
        } else {
            UNROLL_NOT
            for (u32 j = 0; j < n; j++)
                UNROLL
            for (u32 i = 0; i < LOADS; i++)
                add(&k[i], x[at[i] + j], j, 1);
        }
        UNROLL
        for (u32 i = 0; i < LOADS; i++) {
            const u32 r = from + i * WARP + lane;
            state now = finish(&k[i], base + at[i]);
            if (r >= count) continue;
#if defined(HAS_COMPENSATED)
            if (!plain_sum_is_exact(&k[i], 6)) {
                u64 bits;
                if (approximate_sum_rounds(now.w[0], now.tag, (u32)elements_of(work, p, row + r, n),
                                           VALUE_OP(p, 0), VALUE_TYPE(p, 0), &bits)) {
                    put(out, p, 0, row + r, bits);
                    continue;
                }
                now = double_double_row(x + at[i], n);
            }
#endif
            put_state(work, out, p, row + r, base + at[i], n, now);
        }
    }
}
#endif

/* Reduces rows [row, end) through the warp's stage, as many as fit there, and returns their number.
 * All lanes of the warp call this. *precision is that of add_part(). */
INLINED u32 put_staged_rows(SHARED uint4 *stage, staging *how, aligned_elements at,
                            const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                            const parts_plan *p, u64 row, u64 end, u32 *precision) {
    const u32 lane = threadIdx.x % WARP, t = how->t, team = WARP >> t;
    const u32 of_team = lane & ((1u << t) - 1);
    const u32 each = p->rows.kind == 0 ? (u32)p->rows.each : 0;
    SHARED u32 *starts = (SHARED u32 *)stage;
    u32 count = end - row < how->rows ? (u32)(end - row) : how->rows, n = 0;
    u64 base;
    how->are_packs = each == PACK;
    if (p->rows.kind == 0) {
        base = row * p->rows.each;
        n = count * each;
    } else {
        /* Numbers of elements from `base` on; the offsets as they come; the elements. */
        const u32 packs = (how->rows + 1 + 3) / 4, raws = (how->rows + 1 + 1) / 2, all = count;
        const u32 most = (STAGE_PACKS - packs - raws - 1) * PACK, width = (u32)p->rows.kind;
        SHARED u64 *raw = (SHARED u64 *)(stage + packs);
        wait_for_copies(0);
        if (how->ahead != row) {
            stage_offsets(raw, offsets, p, row, count);
            wait_for_copies(0);
        }
        sync_warp();
        base = width == 8 ? raw[0] : (u64)(i64) * (const SHARED i32 *)raw;
        if (base > p->n) {
            sync_warp();
            return 0;
        }
        for (u32 i = lane; i <= all; i += WARP) {
            const u64 into =
                (width == 8 ? raw[i] : (u64)(i64) * (const SHARED i32 *)(raw + i)) - base;
            starts[i] = into < PART_MOST ? (u32)into : PART_MOST;
        }
        sync_warp();
        const u32 last = p->n - base < most ? (u32)(p->n - base) : most;
        u32 is_wrong = 0, is_other = 0;
        for (u32 i = lane; i < all; i += WARP) {
            const u32 to = starts[i + 1], length = to - starts[i];
            is_wrong |= to > last || length > how->most;
            is_other |= length != PACK;
        }
        how->are_packs = warp_votes(is_other) == 0;
        if (warp_votes(is_wrong) != 0) {
            UNROLL_NOT
            for (u32 i = 0; i < all && count == all; i += WARP) {
                const u32 own = i + lane < all ? i + lane : all - 1;
                const u32 to = starts[own + 1];
                const u32 votes = warp_votes(to > last || to - starts[own] > how->most);
                if (votes != 0) count = i + lowest_bit(votes);
            }
        }
        if (count == 0) {
            sync_warp();
            return 0;
        }
        n = starts[count];
        stage_elements(stage + packs + raws, at, base + at.skew, n);
        const u64 next = row + count;
        if (next < end) {
            stage_offsets(raw, offsets, p, next,
                          end - next < how->rows ? (u32)(end - next) : how->rows);
            how->ahead = next;
            wait_for_copies(1);
        } else
            wait_for_copies(0);
        stage += packs + raws;
    }
    if (p->rows.kind == 0) {
        stage_elements(stage, at, base + at.skew, n);
        wait_for_copies(0);
    }
    sync_warp();
    const u32 skew = (u32)((base + at.skew) % PACK);
    const SHARED element *x = (const SHARED element *)stage + skew;
#if HAS_ONE_WAY
    if (how->are_packs && skew == 0) {
        put_few(x, work, out, p, row, count, PACK, 1, base);
        sync_warp();
        return count;
    }
#endif
    state kept = neutral_state();
    u32 kept_at = 0, kept_n = 0, failed = 0, back = DOUBLE_DOUBLE;
    UNROLL_NOT
    for (u32 g = 0; g * team < count; g++) {
        const u32 r = g * team + (lane >> t), is_there = r < count;
        u32 s = 0, length = 0, in_packs = each % PACK == 0 && skew == 0;
        if (is_there) {
            s = each > 0 ? r * each : starts[r];
            length = each > 0 ? each : starts[r + 1] - s;
        }
        if (each == 0) in_packs = warp_votes(((skew + s) | length) % PACK) == 0;
        if (t == 0) { /* known to the compiler here */
            const state now = add_staged(x + s, length, 0, in_packs, base + s, precision);
            failed = votes_of(is_there && !put_approximate(work, out, p, row + r, base + s, length,
                                                           t, now, *precision));
            retry(failed, team / 2, precision, &back);
            if (failed != 0) g--; /* the same rows again */
            continue;
        }
        state now = add_staged(x + s, length, t, in_packs, base + s, precision);
#if defined(HAS_SQUARES)
        if (*precision == APPROXIMATE)
            now = merge_approximate(now, t);
        else
#endif
            now = merge_team(now, t);
        if (of_team == (g & ((1u << t) - 1))) {
            kept = now;
            kept_at = s;
            kept_n = length;
        }
        if ((~g & ((1u << t) - 1)) != 0 && (g + 1) * team < count) continue;
        const u32 own = ((g & ~((1u << t) - 1)) + of_team) * team + (lane >> t);
        const u32 has_own = own < count && of_team <= (g & ((1u << t) - 1));
        failed = votes_of(has_own && !put_approximate(work, out, p, row + own, base + kept_at,
                                                      kept_n, t, kept, *precision));
        retry(failed, WARP / 2, precision, &back);
        if (failed != 0) g = (g & ~((1u << t) - 1)) - 1;
    }
    sync_warp();
    return count;
}

/* ---- Pieces ------------------------------------------------------------------------------------------------- */

/* The beginning of a piece: element `at` of row `row`; `whole` if that row begins in the piece. */
typedef struct bound {
    u64 row, at;
    u32 whole;
} bound;

/* A search for the last row whose elements and ends of rows before it are at most u. */
typedef struct search {
    u64 u, low, high, step;
} search;

/* Returns the lane's vote: whether a row `step` * (lane + 1) behind s->low has at most s->u before
 * it. */
__device__ u32 probe(const search *s, const GLOBAL u8 *offsets, part_rows r, u64 origin) {
    const u64 row = s->low + s->step * (threadIdx.x % WARP + 1);
    return row < s->high && row_start(offsets, r, row) - origin + row * PARTS_ROW_END <= s->u;
}

/* Narrows the search by the lanes' votes: those of the first lanes, up to the first no, are bits that are set. */
PURE void narrow(search *s, u32 votes) {
    s->low += s->step * lowest_bit(~votes);
    s->high = s->low + s->step < s->high ? s->low + s->step : s->high;
}

/* Finds the first row of the piece and that of the next one, at the same time; all lanes of the warp call it. Where
 * offsets are wrong it finds some row, the same for both warps that look for it. */
__device__ void find_both(const GLOBAL u8 *offsets, part_rows r, search *a, search *b) {
    const u64 origin = row_start(offsets, r, 0);
    UNROLL_NOT
    while (a->high - a->low > 1 || b->high - b->low > 1) {
        a->step = (a->high - a->low + WARP - 1) / WARP;
        b->step = (b->high - b->low + WARP - 1) / WARP;
        const u32 in_a = probe(a, offsets, r, origin), in_b = probe(b, offsets, r, origin);
        narrow(a, warp_votes(in_a));
        narrow(b, warp_votes(in_b));
    }
}

__device__ bound bound_of(const search *s, const GLOBAL u8 *offsets, part_rows r) {
    const u64 origin = row_start(offsets, r, 0), start = row_start(offsets, r, s->low);
    const u64 end = row_start(offsets, r, s->low + 1);
    const u64 into = s->u - (start - origin + s->low * PARTS_ROW_END);
    const bound b = {s->low, into < end - start ? start + into : end, into == 0};
    return b;
}

/* Finds where a piece begins, and where the next one does; `checks`: offsets may be wrong. */
INLINED void find_bounds(const GLOBAL u8 *offsets, const parts_plan *p, u64 piece, u32 checks,
                         bound *from, bound *until) {
    const u64 rows = p->rows.count, weight = p->rows.each + PARTS_ROW_END;
    search a = {piece * p->piece, 0, rows, 0}, b = {(piece + 1) * p->piece, 0, rows, 0};
    if (p->rows.kind == 0) {
        a.low = a.u / weight;
        b.low = b.u / weight < rows ? b.u / weight : rows - 1;
    } else {
        if (checks && piece == 0) a.high = 1;
        find_both(offsets, p->rows, &a, &b);
    }
    *from = bound_of(&a, offsets, p->rows);
    *until = bound_of(&b, offsets, p->rows);
    if (piece + 1 == p->pieces) {
        until->row = rows;
        until->at = row_start(offsets, p->rows, rows);
        until->whole = 1;
    }
}

/* Words of a piece's edges: the state of a row that began before it, that of one that ends behind
 * it, and the latter's number plus 1, or 0 if there is none. */
#define EDGE (2 * EDGED + 1)

__device__ u32 may_begin(const GLOBAL u64 *work, const parts_plan *p) {
    return p->ignore_errors || read_word(&work[PARTS_BAD]) == ~(u64)0;
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

/* Returns t such that a team of 2^t lanes suits `rows` rows of `mean` elements. */
PURE u32 team_for(u64 mean, u64 rows) {
    u32 t = 0;
    if (mean > (rows < TEAM_ROWS ? TEAM_MOST / 2 : TEAM_MOST)) return WARP_LOG;
    while (t < TEAM_LOG && mean > (u64)CHUNK << t)
        t++;
    return t;
}

#if defined(HAS_SQUARES) && defined(TYPE_F64)
/* The most elements on an edge whose sums may be approximate: a lane has 2^11 of these. So a second
 * double, the plain sum of errors, is off by at most 2^-84 sqrt(n Q), or 2^-83 Q. */
#define EDGE_APPROXIMATE_MOST (1u << 16)
/* Makes *all the state of n elements from s on, approximate or exact as its tag says. Returns 0 if
 * their squares may be too small, or too large. */
INLINED u32 add_edge(state *all, aligned_elements at, u64 s, u32 n) {
    state sum = neutral_state();
    u32 fits = 1;
    UNROLL_NOT
    for (u32 o = 0; o < n && fits; o += EDGE_APPROXIMATE_MOST) {
        const pack_range part = pack_range_of(
            at, s + o + at.skew, n - o < EDGE_APPROXIMATE_MOST ? n - o : EDGE_APPROXIMATE_MOST);
        state more = add_approximate_part(&part, WARP_LOG, 1);
        const u32 has_lost = warp_votes(more.tag != 0);
        more.tag = 0;
        if (has_lost) {
            more = merge_approximate(more, WARP_LOG);
            more.tag = TAG_ROUGH;
        } else
            more = merge_team(more, WARP_LOG);
        const double square = double_from(more.w[SQUARES]);
        fits = more.tag == 0 || (square > 0x1p-800 && square < 0x1p800);
        sum = merge(sum, more);
    }
    *all = sum;
    return fits;
}
#endif

/* Returns how far row `row` lies behind its place in an array without gaps. */
PURE u64 apart_of(const parts_plan *p, u64 row) {
    return IS_APART(p) ? (u64)(row_spot(p, row).x - p->x) - row * p->rows.each : 0;
}

/* A warp's next work: the row that began before its piece; the one that ends behind it; the next
 * short or WARP rows; one row for each team; one far longer row for all lanes; none. */
enum { HEAD, TAIL, SHORT, GROUP, LATE, NOTHING };

/* Reduces a warp's piece; `shorts`: its rows are mostly short. */
INLINED void reduce_piece(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work,
                          GLOBAL u8 *out, const parts_plan *p, SHARED uint4 *stage, u32 shorts) {
    const u32 lane = threadIdx.x % WARP;
    const u64 piece = (u64)blockIdx.x * WARPS + threadIdx.x / WARP;
    const u32 checks = shorts && p->cut == PARTS_SEGMENTS;
    if ((!checks && !may_begin(work, p)) || piece >= p->pieces) return;
    bound from, until;
    find_bounds(offsets, p, piece, checks, &from, &until);
    if (checks) {
        const u64 last = until.row < p->rows.count ? until.row : until.row - 1;
        const u64 own = lane == 0 ? from.row : last;
        const u64 s = row_start(offsets, p->rows, own), e = row_start(offsets, p->rows, own + 1);
        if (warp_votes(!(s <= e && e <= p->n)) != 0) {
            for (u64 r = from.row + lane; r <= last; r += WARP)
                is_inside(work, p, r, row_start(offsets, p->rows, r),
                          row_start(offsets, p->rows, r + 1));
            is_inside(work, p, own, s, e);
            return;
        }
        if (from.row > last) return;
    }

    const aligned_elements at = aligned_elements_of(x, p);
#define OWN_EDGE (work + p->edges + piece * EDGE)
    /* Rows [row, end) lie in the piece. A row before them may end in it, and one behind them begin. */
    u64 row = from.row + !from.whole, end = until.row;
    const u64 next = row_start(offsets, p->rows, row);
    u32 is_cut = 0;
    if (!until.whole && until.row >= row) {
        is_cut = until.at < row_start(offsets, p->rows, until.row + 1);
        end += !is_cut;
    }
    if (lane == 0) OWN_EDGE[2 * EDGED] = is_cut ? until.row + 1 : 0;
    u32 mean_team = 0;
    staging how = {0, 0, 0, 0, 0};
    if (row < end) {
        const u64 mean = (row_start(offsets, p->rows, end) - next + (end - row) - 1) / (end - row);
        mean_team = team_for(mean, end - row);
        if (shorts) how = staging_for(mean, p->rows.kind != 0);
    }

    u32 job = !from.whole && from.at < next ? HEAD : is_cut ? TAIL : row < end ? SHORT : NOTHING;
    u32 precision = PLAIN, back = DOUBLE_DOUBLE, g = 0, late = 0, late_lane = 0, strikes = 0;
#if defined(HAS_SQUARES)
    if (can_approximate(p)) precision = APPROXIMATE;
#endif
#if defined(HAS_SQUARES)
    u64 stop = 0;   /* the row that the next ones begin with */
    u32 trials = 1; /* turns: few first, to see whether approximate sums decide */
#else
    const u64 stop = end;
#endif
    u64 mine = 0;  /* where the lane's own row begins; it has `length` elements */
    u64 apart = 0; /* what that is off in memory */
    u32 length = 0, owners = FULL_WARP; /* lanes whose own rows have no result yet */
    state kept = neutral_state();
    UNROLL_NOT
    while (job != NOTHING) {
        u64 s, off;
        u32 n, t = WARP_LOG;
        if (job == SHORT) {
            u32 count = 0;
            if (shorts && how.rows > 0)
                count =
                    put_staged_rows(stage, &how, at, offsets, work, out, p, row, end, &precision);
            if (count > 0) {
                row += count;
                job = row < end ? SHORT : NOTHING;
                continue;
            }
            const u64 own = row + row_of_lane(mean_team);
#if defined(HAS_SQUARES)
            const u32 most = trials >> mean_team ? WARP : trials << (WARP_LOG - mean_team);
            stop = end - row < most ? end : row + most;
            if (trials >> mean_team == 0) trials *= 8;
#endif
            mine = row_start(offsets, p->rows, own < end ? own : end);
            const u64 behind = row_start(offsets, p->rows, own < end ? own + 1 : end);
            if (own < end) apart = apart_of(p, own);
            length = (u32)(behind - mine);
            if (checks && warp_votes(own < end && !is_inside(work, p, own, mine, behind)) != 0)
                return;
            kept = neutral_state();
            job = GROUP;
            g = 0;
            owners = FULL_WARP;
        }
        if (job == GROUP || job == LATE) {
            u32 source;
            if (job == GROUP) {
                t = mean_team;
                source = (lane & ~((1u << t) - 1)) + g;
            } else {
                source = late_lane = lowest_bit(late) + g;
                late &= late - 1;
            }
            s = __shfl_sync(FULL_WARP, mine, source);
            n = __shfl_sync(FULL_WARP, length, source);
            off = IS_APART(p) ? __shfl_sync(FULL_WARP, apart, source) : 0;
            if (job == GROUP && t < WARP_LOG) {
                const u32 is_late = n > LATE_CHUNKS * CHUNK << t;
                late = warp_votes(is_late && (lane & ((1u << t) - 1)) == 0);
                if (is_late) n = 0;
            }
        } else if (job == HEAD) {
            s = from.at;
            n = (u32)((next < until.at ? next : until.at) - s);
            if (checks && until.at < s) n = 0;
            off = apart_of(p, from.row);
        } else {
            s = row_start(offsets, p->rows, until.row);
            n = (u32)(until.at - s);
            off = apart_of(p, until.row);
        }
        const pack_range part = pack_range_of(at, s + off + at.skew, n);
        const u32 is_edge = job == HEAD || job == TAIL;
        state all;
        /* Sums on an edge are not approximate. */
#if defined(HAS_SQUARES)
        u32 level = is_edge && precision == APPROXIMATE ? PLAIN : precision;
        u32 is_done = 0;
#if defined(TYPE_F64)
        if (is_edge && precision == APPROXIMATE) is_done = add_edge(&all, at, s + off, n);
#endif
        if (is_done)
            ;
        else if (level == APPROXIMATE)
            all = merge_approximate(add_approximate_part(&part, t, 0), t);
        else
            all = merge_team(add_part(&part, s - part.from, t, 0, &level, &strikes), t);
        if (!is_edge) precision = level;
#else
        u32 level = precision;
        all =
            merge_team(add_part(&part, s - part.from, t, shorts && !is_edge, &level, &strikes), t);
        if (!shorts || !is_edge) precision = level;
#endif
        if (job == HEAD || job == TAIL) {
            if (lane == 0) put_edge(OWN_EDGE + (job == HEAD ? 0 : EDGED), all);
            job = job == HEAD && is_cut ? TAIL : row < end ? SHORT : NOTHING;
            continue;
        }
        if (job == GROUP ? (lane & ((1u << t) - 1)) == g : lane == late_lane) kept = all;
        if (late) {
            job = LATE;
            continue;
        }
        job = GROUP;
        g++;
        while (g >> mean_team == 0 && !(turns_of(owners, mean_team) >> g & 1))
            g++;
        if (g >> mean_team == 0 && row + (g << (WARP_LOG - mean_team)) < stop) continue;
        const u64 own = row + row_of_lane(mean_team);
        /* Sums without squares of long rows are never approximate: that code would slow down all others. */
#if defined(HAS_SQUARES)
        const u32 failed =
            votes_of(own < stop && owners >> lane & 1 &&
                     !put_approximate(work, out, p, own, mine, length, mean_team, kept, precision));
        retry(failed, (u32)(stop - row), &precision, &back);
#else
        u32 failed = 0;
        if (shorts)
            failed = votes_of(
                own < stop && owners >> lane & 1 &&
                !put_approximate(work, out, p, own, mine, length, mean_team, kept, precision));
        else if (own < stop)
            put_row(work, out, p, own, mine, length, kept);
        retry(failed, WARP / 2, &precision, &back);
#endif
        if (failed != 0) { /* the same rows again */
            owners = failed;
            kept = neutral_state();
            g = lowest_bit(turns_of(owners, mean_team));
            continue;
        }
#if defined(HAS_SQUARES)
        row = stop;
#else
        row += WARP;
#endif
        job = row < end ? SHORT : NOTHING;
    }
}

#undef BLOCKS_A_UNIT
#if defined(HAS_SQUARES)
#define BLOCKS_A_UNIT GPU_ROWS_PRODUCT_BLOCKS_A_UNIT
#else
#define BLOCKS_A_UNIT GPU_ROWS_BLOCKS_A_UNIT
#endif
KERNEL rows(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
            const parts_plan plan) {
    wait_for_earlier();
    reduce_piece(x, offsets, work, out, &plan, 0, 0);
}

/* As rows(), where rows are mostly short: the registers that these need would slow down other rows. */
#if defined(LIFT_SQUARE)
#undef BLOCKS_A_UNIT
#define BLOCKS_A_UNIT GPU_ROWS_BLOCKS_A_UNIT
#endif
KERNEL short_rows(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                  const parts_plan plan) {
    __shared__ uint4 stage[WARPS * STAGE_PACKS];
    wait_for_earlier();
    reduce_piece(x, offsets, work, out, &plan, stage + threadIdx.x / WARP * STAGE_PACKS, 1);
}

#if HAS_ONE_WAY
/* Rows of one length, two packs or less: each warp reduces a tile of rows at a time, and has the next tile prefetched
 * meanwhile. */
#undef BLOCKS_A_UNIT
#define BLOCKS_A_UNIT GPU_ROWS_BLOCKS_A_UNIT
KERNEL few_rows(const GLOBAL u8 *x, const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                const parts_plan plan) {
    __shared__ uint4 stages[WARPS * STAGE_PACKS];
    wait_for_earlier();
    SHARED uint4 *stage = stages + threadIdx.x / WARP * STAGE_PACKS,
                 *other = stage + STAGE_PACKS / 2;
    const aligned_elements at = aligned_elements_of(x, &plan);
    const u32 n = (u32)plan.rows.each, fit = (STAGE_PACKS / 2 - 1) * PACK / n;
    const u32 tile = fit < LOADS * WARP ? fit : LOADS * WARP;
    const u64 rows = plan.rows.count, step = (u64)gridDim.x * WARPS * tile;
    u64 row = ((u64)blockIdx.x * WARPS + threadIdx.x / WARP) * tile;
    if (row >= rows) return;
    u32 count = rows - row < tile ? (u32)(rows - row) : tile;
    stage_elements(stage, at, row * n + at.skew, count * n);
    UNROLL_NOT
    while (count > 0) {
        const u64 next = row + step, base = row * n;
        const u32 coming = next >= rows ? 0 : rows - next < tile ? (u32)(rows - next) : tile;
        if (coming > 0) {
            stage_elements(other, at, next * n + at.skew, coming * n);
            wait_for_copies(1);
        } else
            wait_for_copies(0);
        sync_warp();
        const u32 skew = (u32)((base + at.skew) % PACK);
        put_few((const SHARED element *)stage + skew, work, out, &plan, row, count, n,
                skew == 0 && n % PACK == 0, base);
        sync_warp();
        SHARED uint4 *const last = stage;
        stage = other;
        other = last;
        row = next;
        count = coming;
    }
}
#endif

/* Returns a part of the state of the row that begins in piece `piece` and ends in piece `last`: that of every `step`th
 * piece from `at` on. */
__device__ state join_part(const GLOBAL u64 *work, const parts_plan *p, u64 piece, u64 last, u64 at,
                           u32 step) {
    state s = neutral_state();
    UNROLL_NOT
    for (; at <= last; at += JOINED * step) {
        state t[JOINED];
        UNROLL
        for (u32 i = 0; i < JOINED; i++) {
            const u64 from = at + i * step;
            t[i] = from > last
                       ? neutral_state()
                       : get_edge(work + p->edges + from * EDGE + (from == piece ? EDGED : 0));
        }
        UNROLL
        for (u32 i = 0; i < JOINED; i++)
            s = merge(s, t[i]);
    }
    return s;
}

#if defined(JOINS_QUAD_DOUBLES)
/* A quad-double sum; `lost` is not 0 if it cannot hold the sum. */
typedef struct quad_double {
    double d[4];
    u32 lost;
} quad_double;

PURE void add_to_quad_double(quad_double *a, double x) {
    for (u32 i = 0; i < 4; i++)
        a->d[i] = two_sum(a->d[i], x, &x);
    a->lost |= !(x == 0);
}

/* Merges the states of the row that begins in piece `piece` and ends in piece `last`, all lanes of the warp together.
 * The sum is in lane 0's four doubles. */
__device__ quad_double join_quad_double(const GLOBAL u64 *work, const parts_plan *p, u64 piece,
                                        u64 last) {
    quad_double a = {{0, 0, 0, 0}, 0};
    UNROLL_NOT
    for (u64 at = piece + threadIdx.x % WARP; at <= last; at += WARP) {
        const state s = get_edge(work + p->edges + at * EDGE + (at == piece ? EDGED : 0));
        a.lost |= s.tag & TAG_LOST;
        add_to_quad_double(&a, double_from(s.w[0]));
        add_to_quad_double(&a, double_from(s.w[1]));
    }
    UNROLL_NOT
    for (u32 lanes = WARP / 2; lanes > 0; lanes /= 2) {
        u64 other[4];
        UNROLL
        for (u32 i = 0; i < 4; i++)
            other[i] = __shfl_down_sync(FULL_WARP, double_bits(a.d[i]), lanes);
        a.lost |= __shfl_down_sync(FULL_WARP, a.lost, lanes);
        UNROLL
        for (u32 i = 0; i < 4; i++)
            add_to_quad_double(&a, double_from(other[i]));
    }
    return a;
}

/* Writes the result of a row from a quad-double, or leaves the row to `fold`. The last two doubles
 * are at most `off` together: if the value is the same that much above and below, it is certain. */
__device__ void put_quad_double(GLOBAL u64 *work, GLOBAL u8 *out, const parts_plan *p, u64 row,
                                u64 n, quad_double a) {
    for (u32 turn = 0; turn < 3; turn++)
        for (u32 i = 3; i-- > 0;)
            a.d[i] = two_sum(a.d[i], a.d[i + 1], &a.d[i + 1]);
    double off = magnitude_of(a.d[2]) + magnitude_of(a.d[3]);
    if (off != 0) off = 2 * off + magnitude_of(a.d[1]) * 0x1p-51;
    u32 lost = a.lost;
    n = elements_of(work, p, row, n);
    state s = {{double_bits(a.d[0]), double_bits(a.d[1] - off)}, 0};
    const u64 bits = lower_state(p, s, n, 0, &lost);
    s.w[1] = double_bits(a.d[1] + off);
    if (lower_state(p, s, n, 0, &lost) != bits) lost = 1;
    if (lost) {
        TALLY_PATH("left to fold");
        leave_row(work, p->left, row);
    } else {
        TALLY_PATH("put");
        put(out, p, 0, row, bits);
    }
}
#endif

/* A row that was cut: it begins in piece `piece` and ends in piece `last`. */
typedef struct cut_row {
    u64 piece, last, row, start, n;
} cut_row;

/* Returns the row that begins in a piece and is cut; n is 0 if there is none. */
__device__ cut_row get_cut_row(const GLOBAL u8 *offsets, const GLOBAL u64 *work,
                               const parts_plan *p, u64 piece) {
    cut_row r = {piece, 0, 0, 0, 0};
    if (piece >= p->pieces) return r;
    r.row = (work + p->edges + piece * EDGE)[2 * EDGED];
    if (r.row == 0) return r;
    r.row--;
    r.start = row_start(offsets, p->rows, r.row);
    r.n = row_start(offsets, p->rows, r.row + 1) - r.start;
    r.last =
        (r.start - row_start(offsets, p->rows, 0) + r.row * PARTS_ROW_END + r.n - 1) / p->piece;
    return r;
}

/* A thread looks at a piece, and merges the states of a row that begins in it and ends in a later one. A row of more
 * than ALONE pieces is left to a warp, and one of more than a warp's to all threads of the block. */
#define ALONE     (2 * JOINED)
#define OF_A_WARP (2 * JOINED * WARP)
#if defined(JOINS_QUAD_DOUBLES)
#define JOINED_STATE(r, s)                                                                         \
    do {                                                                                           \
        const state joined = s;                                                                    \
        if (joined.tag & TAG_LOST)                                                                 \
            lossy[atomicAdd(&lossy_count, 1u)] = (r).piece;                                        \
        else                                                                                       \
            put_state(work, out, &plan, (r).row, (r).start, (r).n, joined);                        \
    } while (0)
#else
#define JOINED_STATE(r, s) put_state(work, out, &plan, (r).row, (r).start, (r).n, s)
#endif
KERNEL join_rows(const GLOBAL u8 *offsets, GLOBAL u64 *work, GLOBAL u8 *out,
                 const parts_plan plan) {
    __shared__ state of_warp[WARPS];
    __shared__ u64 left[BLOCK];
    __shared__ u32 count;
#if defined(JOINS_QUAD_DOUBLES)
    __shared__ u64 lossy[BLOCK];
    __shared__ u32 lossy_count;
#endif
    wait_for_earlier();
    if (!may_begin(work, &plan)) return;
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    if (threadIdx.x == 0) count = 0;
#if defined(JOINS_QUAD_DOUBLES)
    if (threadIdx.x == 0) lossy_count = 0;
#endif
    __syncthreads();
    const cut_row own = get_cut_row(offsets, work, &plan, (u64)blockIdx.x * BLOCK + threadIdx.x);
    if (own.n > 0) {
        if (own.last - own.piece < ALONE)
            JOINED_STATE(own, join_part(work, &plan, own.piece, own.last, own.piece, 1));
        else
            left[atomicAdd(&count, 1u)] = own.piece;
    }
    __syncthreads();
    for (u32 i = warp; i < count; i += WARPS) {
        const cut_row r = get_cut_row(offsets, work, &plan, left[i]);
        if (r.last - r.piece >= OF_A_WARP) continue;
        const state s =
            merge_team(join_part(work, &plan, r.piece, r.last, r.piece + lane, WARP), WARP_LOG);
        if (lane == 0) JOINED_STATE(r, s);
    }
    for (u32 i = 0; i < count; i++) {
        const cut_row r = get_cut_row(offsets, work, &plan, left[i]);
        if (r.last - r.piece < OF_A_WARP) continue;
        state s = merge_team(join_part(work, &plan, r.piece, r.last, r.piece + threadIdx.x, BLOCK),
                             WARP_LOG);
        if (lane == 0) of_warp[warp] = s;
        __syncthreads();
        for (u32 w = 1; w < WARPS && threadIdx.x == 0; w++)
            s = merge(s, of_warp[w]);
        if (threadIdx.x == 0) JOINED_STATE(r, s);
        __syncthreads();
    }
#if defined(JOINS_QUAD_DOUBLES)
    __syncthreads();
    for (u32 i = warp; i < lossy_count; i += WARPS) {
        const cut_row r = get_cut_row(offsets, work, &plan, lossy[i]);
        const quad_double a = join_quad_double(work, &plan, r.piece, r.last);
        if (lane == 0) put_quad_double(work, out, &plan, r.row, r.n, a);
    }
#endif
}
