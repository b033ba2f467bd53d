/*
 * column_states.h - what is known after some elements of neighbouring columns, for schedules that read tiles of rows
 * (columns.cu, vectors.cu). Which states these are, a define says:
 *
 *   FOLD_SUM    the exact sum: of floats as two doubles (pair.h), of integers as one of 64 bits, or of 128 for those
 *               of 64
 *   FOLD_MOMENTS  that of floats, and that of their squares, as two doubles each
 *   FOLD_FAST   the sum of floats in any order, as a double
 *   FOLD_END    the greatest key (end_keys.h), or that of the complements of keys, which is the least; where INDEXED is
 *               defined also the first row that has it. A NaN has a key above all others
 *   FOLD_ENDS   both
 *
 * Sums of f64 are two doubles. After BATCH tiles the thread looks whether something was lost; if so, it adds these tiles
 * once more, to the state before them, element by element, and looks for infinities and NaNs.
 *
 * Sums of shorter floats, and all sums with squares, are made in batches of tiles, each of which is looked at before it
 * is added. Sums without squares: while a batch's exponents are few enough apart, plain additions are exact; while they
 * are not too far apart for that, so are additions whose errors are added up plainly. Squares: a batch's sum begins at a
 * power of two that its squares do not double, so that one subtraction tells what an addition has lost; with f64 the
 * sum of elements begins so, too. Of shorter floats nothing is lost then; of f64 so little that most variances and
 * norms are certain all the same (doubles.h).
 *
 * Before including this header, define BLOCKS_A_UNIT and include copies.h and what it needs, lower.h, parts.h and
 * doubles.h. Where rows may come in an order, define GATHERS; where results may be of different numbers of rows, VARIES.
 */
#ifndef TALLY_COLUMN_STATES_H
#define TALLY_COLUMN_STATES_H

#include "column_values.h"

#include "certain/batch.h"

#if defined(TYPE_F64) || defined(TYPE_I64) || defined(TYPE_U64)
#define LONG   1
#define VECTOR 2u
#else
#define LONG   0
#define VECTOR 4u
#endif
/* Rows that are on their way before one is added. */
#define WIDE_ROWS 4u
#if defined(FOLD_MOMENTS)
#define NARROW_ROWS 8u
#else
#define NARROW_ROWS (LONG ? 8u : 16u)
#endif
#define BATCH     32u /* tiles between two tests for lost bits */
#define ROWS_MOST 4u  /* rows that add_slowly() loads at once */
#define JOINED    4u  /* states of chunks that `join` loads at once */
#define ELEMENTS  (WIDE_ROWS * VECTOR > NARROW_ROWS ? WIDE_ROWS * VECTOR : NARROW_ROWS)

/* Where rows lie that are read again: row k at at[k * step]; with an order, at at[order[k] * step]. */
typedef struct row_source {
    const GLOBAL element *at;
    i64 step;
#if defined(GATHERS)
    const GLOBAL u32 *order; /* or NULL */
#endif
} row_source;

/* Returns where row k lies. */
__device__ const GLOBAL element *row_at(row_source from, u32 k) {
#if defined(GATHERS)
    if (from.order) return from.at + (i64)from.order[k] * from.step;
#endif
    return from.at + (i64)k * from.step;
}

/* Returns the same rows of the column `v` further on. */
__device__ row_source column_of(row_source from, u32 v) {
    from.at += v;
    return from;
}

/* ---- States ------------------------------------------------------------------------------------------- */

/* What each kind of state defines: clear_state(); merge_states(); add_tile(), which adds elements e[k * columns + v] of
 * rows `row` + k * strands to column v's state - rows that are not there are pad()s or, where PAD is 0, the first of
 * these again; state_word() and state_of_words(), which turn a state into STATE_WORDS words and back; state_value(),
 * which returns the bits of a value and sets *lost where it cannot. */

/* A value's bits; `lost` is not 0 if the state does not determine them. */
typedef struct lowered {
    u64 bits;
    u32 lost;
} lowered;

#if defined(FOLD_MOMENTS) || (defined(FOLD_SUM) && defined(FLOATING))

#if defined(FOLD_MOMENTS)
#define HAS_SQUARES 1
#define STATE_WORDS 5
#else
#define HAS_SQUARES 0
#define STATE_WORDS 3
#endif
#define PAD 1
#define TESTS_EXPONENTS                                                                            \
    (HAS_SQUARES || !LONG) /* tiles' exponents are tested before they are added */
#if !HAS_SQUARES
#define BATCH_ROWS 256u
#elif LONG
#define BATCH_ROWS 32u
#else
#define BATCH_ROWS 64u
#endif
#if !LONG
/* A batch has at most 2^BATCH_LOG rows (certain/batch.h). */
#define BATCH_LOG (HAS_SQUARES ? 6 : 8)
/* Fails to compile unless that is so. */
typedef char batches_are_short_enough[BATCH_ROWS <= 1u << BATCH_LOG ? 1 : -1];
#endif

/* The sum of elements, and that of squares. sum.s is -0 as long as all elements are, as additions
 * of doubles keep that. So `seen` needs no PAIR_MIXED. */
typedef struct state {
    pair sum;
#if HAS_SQUARES
    double square, rest;
#elif LONG
    float off; /* how far the sum may be off, at most */
#endif
} state;

/* Flags of `seen` besides PAIR_...s.
 *
 * ROUGH, with squares only: the sums may have errors within rough_bound() (certain/variance.h). Batches of 64 shorter
 * floats that are too far apart to be exact begin at 0, and lose less than f64. */
#define ROUGH    32u
#define SIGNLESS 64u /* a batch's zeros may all have been -0 */

PURE void clear_state(state *a) {
    a->sum.s = -0.0;
    a->sum.e = 0;
    a->sum.seen = 0;
#if HAS_SQUARES
    a->square = a->rest = 0;
#elif LONG
    a->off = 0;
#endif
}

#if LONG && !HAS_SQUARES
/* Returns a bound that is at least as large as both together. */
PURE float increased_bound(float off, double by) {
    return by == 0 ? off : (off + (float)by) * 1.000001f + 0x1p-100f;
}
#endif

PURE element pad(void) {
#if defined(TYPE_F64) || defined(TYPE_F32)
    return -(element)0;
#else
    return (element)SIGN;
#endif
}

/* Adds the square of a finite number. Returns not 0 if that loses a bit, as pair_add() does. The
 * square of an f64 is a double-double, if it is not too small (lift.h). */
PURE u64 add_square(double x, state *a) {
#if HAS_SQUARES
    const double square = x * x;
    u64 wrong = pair_add(square, &a->square, &a->rest);
#if LONG
    wrong |= pair_add(fused(x, x, -square), &a->square, &a->rest);
    wrong |= x != 0 && exponent_field(square) < 1023 - 960;
#endif
    return wrong;
#else
    return 0;
#endif
}

/* Adds any element, and notes infinities, NaNs and lost bits in `seen`. */
PURE void add_any(state *a, double x) {
#if HAS_SQUARES
    if (exponent_field(x) == NOT_FINITE)
        pair_add_any(&a->sum, x);
    else if (exponent_field(x) >= 1023 + 450)
        a->sum.seen |= PAIR_LOST; /* its square might be infinite */
    else if ((pair_add(x, &a->sum.s, &a->sum.e) | add_square(x, a)) != 0)
        a->sum.seen |= ROUGH;
#else
    pair_add_any(&a->sum, x);
#endif
}

/* Makes the second doubles less than half of the first ones' last bits. */
PURE void settle_pairs(state *a) {
#if HAS_SQUARES
    a->square = two_sum(a->square, a->rest, &a->rest);
    if (a->sum.seen & ROUGH) a->sum.s = two_sum(a->sum.s, a->sum.e, &a->sum.e);
#endif
}

/* Adds the first `count` rows of one column to a double-double, ROWS_MOST at a time. Elements at which it loses a bit
 * are added once more by add_any(). */
SELDOM void add_slowly(row_source from, u32 count, state *a) {
    for (u32 first = 0; first < count; first += ROWS_MOST) {
        double x[ROWS_MOST];
        state sum = *a;
        u64 wrong = 0;
        UNROLL
        for (u32 k = 0; k < ROWS_MOST; k++)
            x[k] = first + k < count ? (double)widen(*row_at(from, first + k)) : -0.0;
        UNROLL
        for (u32 k = 0; k < ROWS_MOST; k++)
            wrong |= pair_add(x[k], &sum.sum.s, &sum.sum.e) | add_square(x[k], &sum);
        if (wrong == 0)
            *a = sum;
        else
            UNROLL
        for (u32 k = 0; k < ROWS_MOST; k++)
            add_any(a, x[k]);
    }
    settle_pairs(a);
}

PURE void merge_states(state *a, const state *b) {
#if HAS_SQUARES
    a->sum.seen |= b->sum.seen;
    u64 rough = pair_add(b->sum.s, &a->sum.s, &a->sum.e);
    if (b->sum.e != 0) rough |= pair_add(b->sum.e, &a->sum.s, &a->sum.e); /* 0 would make 0 of -0 */
    rough |= pair_add(b->square, &a->square, &a->rest) | pair_add(b->rest, &a->square, &a->rest);
    if (rough != 0) a->sum.seen |= ROUGH;
    settle_pairs(a);
#elif LONG
    double error, f, g;
    a->sum.seen |= b->sum.seen;
    a->sum.s = two_sum(a->sum.s, b->sum.s, &error);
    a->sum.e = two_sum(two_sum(a->sum.e, b->sum.e, &f), error, &g);
    if (!(a->sum.e - a->sum.e == 0)) a->sum.seen |= PAIR_LOST; /* it has overflowed */
    a->off =
        increased_bound(increased_bound(a->off, (double)b->off), magnitude_of(f) + magnitude_of(g));
#else
    pair_merge(&a->sum, &b->sum);
#endif
}

#if TESTS_EXPONENTS
/* ---- Tiles that are looked at before they are added ---- */

/* The elements that a thread has added plainly since its last batch went to the whole state. */
typedef struct batch {
    double sum[VECTOR], error[VECTOR]; /* of elements; `error`: what their additions have lost */
#if HAS_SQUARES
    double square[VECTOR], rest[VECTOR]; /* the same of squares */
#endif
#if HAS_SQUARES && LONG
    u32 high
        [VECTOR]; /* each column's window: the exponent field that its elements are at most in, and not 0; or 0 */
#elif HAS_SQUARES
    double base; /* where `square` began */
#endif
    u32 most, least; /* the bounds of certain/batch.h */
    u32 room;        /* rows that it has room for */
    u32 rough;       /* not 0: something may have been lost */
    u32 used;        /* there is something in it */
    u32 before;      /* the whole has been begun: it is in memory, as it is seldom needed */
} batch;

INLINED void begin_batch(batch *b, u32 columns) {
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        b->sum[v] = -0.0;
        b->error[v] = 0;
#if HAS_SQUARES
        b->square[v] = b->rest[v] = 0;
#endif
    }
#if HAS_SQUARES && LONG
    UNROLL
    for (u32 v = 0; v < columns; v++)
        b->high[v] = 0;
#elif HAS_SQUARES
    b->base = 0;
#endif
    b->most = NO_MOST;
    b->least = NO_LEAST;
    b->rough = b->used = 0;
    b->room = HAS_SQUARES && LONG ? 0 : BATCH_ROWS;
}

#if HAS_SQUARES
PURE double power_of_two(i32 exponent) {
    return double_from((u64)(1023 + exponent) << 52);
}

/* Where a batch's sum and its squares began. */
#if LONG
PURE double first_of(const batch *b, u32 v) {
    return b->high[v] ? 1.5 * power_of_two((i32)b->high[v] - 1023 + 7) : -0.0;
}
#endif
PURE double base_of(const batch *b, u32 v) {
#if LONG
    return b->high[v] ? power_of_two(2 * ((i32)b->high[v] - 1022) + 5) : 0;
#else
    return b->base;
#endif
}
#endif

/* Makes *to the state of column v's elements in this batch alone. */
INLINED void batch_state(const batch *b, u32 v, state *to) {
    clear_state(to);
    to->sum.s = b->sum[v];
    to->sum.e = b->error[v];
#if HAS_SQUARES
    to->square = b->square[v] - base_of(b, v);
    to->rest = b->rest[v];
#if LONG
    if (b->high[v]) {
        to->sum.s -= first_of(b, v);
        if (to->sum.s == 0 && to->square == 0) to->sum.seen |= SIGNLESS;
    }
#endif
    if (b->rough != 0) to->sum.seen |= ROUGH;
    settle_pairs(to);
#endif
}

/* Merges the batch's states of all columns into the whole states, and clears the batch. */
INLINED void flush_batch(batch *b, u32 columns, state *whole) {
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        state more;
        batch_state(b, v, &more);
        if (b->before)
            merge_states(&whole[v], &more);
        else
            whole[v] = more;
    }
    b->before = 1;
    begin_batch(b, columns);
}

/* Makes a[] the columns' final states, of the whole and the last batch. */
INLINED void end_batch(batch *b, u32 columns, state *whole, state *a) {
    if (b->before && b->used) flush_batch(b, columns, whole);
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        if (b->before)
            a[v] = whole[v];
        else
            batch_state(b, v, &a[v]);
    }
}

#if !LONG
INLINED void bound_magnitudes(const element *e, u32 count, u32 *most, u32 *least) {
    UNROLL
    for (u32 k = 0; k < count; k++)
        note_magnitude(float_bits(widen(e[k])), most, least);
}
#endif

#if HAS_SQUARES
/* Adds x^2 to *square, which is at least as large, and the error of that to *rest. Returns the
 * error. */
PURE double add_below(double x, double *square, double *rest) {
    const double before = *square;
    *square = fused(x, x, before);
    const double lost = fused(x, x, before - *square);
    *rest += lost;
    return lost;
}
#endif

#if HAS_SQUARES && LONG
#define FAR 450 /* the largest magnitude of elements' exponents */
/* Opens each column's window for elements up to four times as large as its largest one here.
 * Returns 0 where that is too large, or too small. */
INLINED u32 open_window(batch *b, u32 columns, const element *e, u32 count, const u32 *most) {
    u32 fits = 1;
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        u64 bits = 0;
        UNROLL
        for (u32 k = v; k < count; k += columns)
            bits |= double_bits(e[k]);
        const u32 field = bits << 1 == 0 ? 0 : (most[v] >> 20) + 2;
        fits &= field == 0 || (field >= 1023 - FAR && field <= 1023 + FAR);
        b->high[v] = field;
    }
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        if (!fits) b->high[v] = 0;
        b->sum[v] = first_of(b, v);
        b->square[v] = base_of(b, v);
    }
    b->room = BATCH_ROWS;
    return fits;
}
#elif HAS_SQUARES
INLINED u32 open_window(batch *b, u32 columns, u32 most, u32 least) {
    const u32 field = (most >> 23) + 2, high = field < 254 ? field : 254;
    const u32 spread = PLAIN_SPREAD_MOST(BATCH_LOG), lowest = high > spread ? high - spread : 0;
    if (has_special(most)) return 0;
    b->most = high << 23 | 0x7fffffu;
    b->least = lowest > 0 ? (lowest << 24) - 1 : 0;
    if (least < b->least) { /* any finite ones */
        b->most = 0x7f7fffffu;
        b->least = 0;
        b->rough = 1;
        return 1;
    }
    b->base = power_of_two(2 * ((i32)high - 126) + BATCH_LOG);
    UNROLL
    for (u32 v = 0; v < columns; v++)
        b->square[v] = b->base;
    return 1;
}
#endif

/* Adds a tile that fits no batch to the whole. */
INLINED void add_all_slowly(batch *b, state *whole, u32 columns, u32 count, row_source from) {
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        if (!b->before) clear_state(&whole[v]);
        add_slowly(column_of(from, v), count, &whole[v]);
    }
    b->before = 1;
    begin_batch(b, columns);
}

/* Adds a tile to the batch, or to the whole states if it fits no batch. `from` is where its `count` rows lie. */
INLINED void add_tile(batch *b, state *whole, const element *e, u32 columns, u32 rows, u32 count,
                      row_source from) {
#if HAS_SQUARES
#if LONG
    u32 most[VECTOR], outside = b->room < rows;
    UNROLL
    for (u32 v = 0; v < columns; v++) {
        most[v] = 0;
        UNROLL
        for (u32 k = 0; k < rows; k++) {
            const u32 magnitude = (u32)(double_bits(e[k * columns + v]) >> 32) & 0x7fffffffu;
            most[v] = magnitude > most[v] ? magnitude : most[v];
        }
        outside |= most[v] >> 20 > b->high[v];
    }
    if (outside) {
        if (b->used) flush_batch(b, columns, whole);
        if (!open_window(b, columns, e, rows * columns, most)) {
#else
    u32 most = NO_MOST, least = NO_LEAST;
    bound_magnitudes(e, rows * columns, &most, &least);
    if (most > b->most || least < b->least || b->room < rows) {
        if (b->used) flush_batch(b, columns, whole);
        if (!open_window(b, columns, most, least)) {
#endif
            add_all_slowly(b, whole, columns, count, from);
            return;
        }
    }
    b->room -= rows;
    b->used = 1;
#if LONG
    u64 lost = 0;
    UNROLL
    for (u32 k = 0; k < rows; k++)
        UNROLL
    for (u32 v = 0; v < columns; v++) {
        const double x = e[k * columns + v], before = b->sum[v];
        b->sum[v] += x;
        const double error = x + (before - b->sum[v]);
        b->error[v] += error;
        lost |= double_bits(error);
        lost |= double_bits(add_below(x, &b->square[v], &b->rest[v]));
    }
    UNROLL
    for (u32 v = 0; v < columns; v++)
        if (b->high[v] == 0) /* it takes zeros; squares of subnormal numbers are lost */
            UNROLL
    for (u32 k = 0; k < rows; k++)
        lost |= double_bits(e[k * columns + v]) << 1;
    b->rough |= (u32)(lost | lost >> 32);
#else
    if (b->base != 0) {
        UNROLL
        for (u32 k = 0; k < rows; k++)
            UNROLL
        for (u32 v = 0; v < columns; v++) {
            const double x = (double)widen(e[k * columns + v]);
            b->sum[v] += x;
            add_below(x, &b->square[v], &b->rest[v]);
        }
    } else {
        UNROLL
        for (u32 k = 0; k < rows; k++)
            UNROLL
        for (u32 v = 0; v < columns; v++) {
            const double x = (double)widen(e[k * columns + v]);
            double error;
            b->sum[v] = two_sum(b->sum[v], x, &error);
            b->error[v] += error;
            b->square[v] = two_sum(b->square[v], x * x, &error);
            b->rest[v] += error;
        }
    }
#endif
#else
    u32 most = b->most, least = b->least;
    bound_magnitudes(e, rows * columns, &most, &least);
    const i32 spread = spread_of(most, least, OF_SEVERAL_SUMS);
    const u32 is_exact = compensated_sums_are_exact(spread, BATCH_LOG);
    if (b->room < rows || !is_exact) {
        if (b->used) flush_batch(b, columns, whole);
        if (!is_exact) {
            add_all_slowly(b, whole, columns, count, from);
            return;
        }
    }
    b->room -= rows;
    b->used = 1;
    b->most = most;
    b->least = least;
    if (plain_sums_are_exact(spread, BATCH_LOG)) {
        UNROLL
        for (u32 k = 0; k < rows; k++)
            UNROLL
        for (u32 v = 0; v < columns; v++)
            b->sum[v] += (double)widen(e[k * columns + v]);
    } else {
        UNROLL
        for (u32 k = 0; k < rows; k++)
            UNROLL
        for (u32 v = 0; v < columns; v++) {
            double error;
            b->sum[v] = two_sum(b->sum[v], (double)widen(e[k * columns + v]), &error);
            b->error[v] += error;
        }
    }
#endif
}

#else

/* Copies the fields that add_tile() uses, so that they can stay in registers. */
PURE void copy_sum(const state *from, state *to) {
    to->sum.s = from->sum.s;
#if LONG
    to->sum.e = from->sum.e;
#endif
#if HAS_SQUARES
    to->square = from->square;
    to->rest = from->rest;
#endif
}

/* Adds a tile to the states a[]. Returns not 0 if a double-double lost a bit. large[v] becomes at
 * least the upper half of column v's second double in magnitude. */
INLINED u64 add_tile(state *a, const element *e, u32 columns, u32 rows, u32 *large) {
    u64 wrong = 0;
    UNROLL
    for (u32 k = 0; k < rows; k++)
        UNROLL
    for (u32 v = 0; v < columns; v++) {
        const double x = (double)widen(e[k * columns + v]);
#if LONG
        wrong |= pair_add(x, &a[v].sum.s, &a[v].sum.e);
        const u32 rest = (u32)(double_bits(a[v].sum.e) >> 32) & 0x7fffffffu;
        large[v] = rest > large[v] ? rest : large[v];
#else
        /* t = s + x is exact where t - s is x and t - x is s: the larger of s and x, whichever it is, is then taken
         * from t without an error (Dekker). */
        const double s = a[v].sum.s, t = s + x, back = t - s;
        wrong |= (back != x) | (t - back != s);
        a[v].sum.s = t;
#endif
        wrong |= add_square(x, &a[v]);
    }
    return wrong;
}

#endif

PURE u64 state_word(const state *a, u32 k) {
#if HAS_SQUARES
    if (k > 2) return double_bits(k == 3 ? a->square : a->rest);
#endif
#if LONG && !HAS_SQUARES
    if (k == 2) return (u64)float_bits(a->off) << 32 | a->sum.seen;
#endif
    return k == 0 ? double_bits(a->sum.s) : k == 1 ? double_bits(a->sum.e) : a->sum.seen;
}

PURE state state_of_words(const u64 *words) {
    state a;
    a.sum.s = double_from(words[0]);
    a.sum.e = double_from(words[1]);
    a.sum.seen = (u32)words[2];
#if HAS_SQUARES
    a.square = double_from(words[3]);
    a.rest = double_from(words[4]);
#elif LONG
    a.off = float_from((u32)(words[2] >> 32));
#endif
    return a;
}

/* Returns the value of n > 0 elements. A variance's ddof is correction * 2^exponent, as in the
 * plan. */
SELDOM lowered lower_floats(state a, u64 n, u32 op, u32 to, u64 correction, i32 exponent) {
    lowered r = {0, 0};
#if HAS_SQUARES
    const u32 special = a.sum.seen & (PAIR_NAN | PAIR_PLUS | PAIR_MINUS);
    if (a.sum.seen & ROUGH && a.square == 0) r.lost = 1;
    const double rough = a.sum.seen & ROUGH ? rough_bound(n) : 0;
    r.lost |= (a.sum.seen & PAIR_LOST) != 0;
    if (rough != 0)
        TALLY_PATH("rough sums");
    else
        TALLY_PATH("exact sums");
    if (op == VAR || op == STD) {
        const double ddof = ddof_of(correction, exponent, &r.lost);
        r.bits = special ? float_nan_bits(format_of(to))
                         : variance_value(a.sum.s, a.sum.e, a.square, a.rest, n, ddof, op == STD,
                                          to, rough, &r.lost);
        return r;
    }
    if (op == SUMSQ || op == NORM2) {
        if (special)
            r.bits = special & PAIR_NAN ? float_nan_bits(format_of(to))
                                        : float_infinity_bits(format_of(to), 0);
        else if (op == SUMSQ && rough == 0)
            r.bits = doubles_value(a.square, a.rest, n, 0, to, 0, &r.lost);
        else if (op == SUMSQ) {
            const ball sum = {a.square, a.rest, rough * a.square};
            r.bits = ball_value(sum, to, &r.lost);
        } else
            r.bits = norm_value(a.square, a.rest, to, rough * a.square, &r.lost);
        return r;
    }
    if (rough != 0) r.lost = 1;
    if (a.sum.seen & SIGNLESS && a.square == 0) r.lost = 1;
    a.sum.seen &= ~(ROUGH | SIGNLESS);
#endif
    if (double_bits(a.sum.s) << 1 != 0 || double_bits(a.sum.s) == 0 || a.sum.e != 0)
        a.sum.seen |= PAIR_MIXED;
#if LONG && !HAS_SQUARES
    if (a.off != 0 && (a.sum.seen & (PAIR_NAN | PAIR_PLUS | PAIR_MINUS)) == 0) {
        ball sum;
        TALLY_PATH("a sum within a bound");
        sum.s = two_sum(a.sum.s, a.sum.e, &sum.e);
        sum.b = (double)a.off;
        const u32 is_negative = sum.s < 0;
        if (is_negative) {
            sum.s = -sum.s;
            sum.e = -sum.e;
        }
        r.lost = (a.sum.seen & PAIR_LOST) != 0;
        r.bits = ball_value(op == MEAN ? ball_quotient(sum, (double)n) : sum, to, &r.lost) |
                 (is_negative ? float_sign(format_of(to)) : 0);
        return r;
    }
#endif
    TALLY_PATH("a pair");
    r.bits = pair_value(&a.sum, n, op == MEAN, to, &r.lost);
    return r;
}

#if HAS_SQUARES && defined(TYPE_F32)
/* Whether results may be of different numbers of rows. */
#if defined(VARIES)
#define HAS_OWN_SCALE(p) 1
#else
#define HAS_OWN_SCALE(p) IS_FILLED(p)
#endif

/* Returns 1 / (n (n - ddof)) for a variance of n > 0 elements; 0 if that is unknown. */
PURE double scale_of(const column_values *p, u64 n) {
    if (!HAS_OWN_SCALE(p) || p->scale == 0) return double_from(p->scale);
    const double count = (double)n,
                 left = count - (double)p->ddof * double_from((u64)(1023 + p->exponent) << 52);
    return left > 0 ? 1 / (count * left) : 0;
}
#endif

PURE u64 state_value(const state *a, const column_values *p, u64 n, u32 op, u32 to, u32 *lost) {
#if defined(TYPE_F64)
    const double nearest = a->sum.e == 0 ? a->sum.s : a->sum.s + a->sum.e; /* -0 remains */
    if (a->sum.seen == 0 && op == SUM && to == F64 && exponent_field(nearest) < HUGE_FIELD
#if !HAS_SQUARES
        && a->off == 0
#endif
    ) {
        TALLY_PATH("one rounding");
        return double_bits(nearest); /* most sums */
    }
#elif defined(TYPE_F32)
    if (a->sum.seen == 0 && a->sum.e == 0 && op == SUM && to == F32) {
        TALLY_PATH("one rounding");
        return float_bits((float)a->sum.s);
    }
#if HAS_SQUARES
    u64 bits;
    const double scale = scale_of(p, n);
    if ((op == VAR || op == STD) && (a->sum.seen & ~ROUGH) == 0 && to == F32 && scale != 0 &&
        quick_variance(a->sum.s + a->sum.e, a->square + a->rest, (double)n, scale, op == STD,
                       &bits)) {
        TALLY_PATH("a quick variance");
        return bits;
    }
    if (op == NORM2 && a->sum.seen == 0 && to == F32 &&
        quick_float(square_root(a->square + a->rest), &bits)) {
        TALLY_PATH("a quick norm");
        return bits;
    }
#endif
#endif
    const lowered r = lower_floats(*a, n, op, to, p->ddof, p->exponent);
    *lost |= r.lost;
    return r.bits;
}

#elif defined(FOLD_SUM) /* integers */

typedef struct state {
    u64 low, high;
} state;
#define STATE_WORDS (1 + LONG)
#define PAD         1

PURE void clear_state(state *a) {
    a->low = a->high = 0;
}

PURE element pad(void) {
    return 0;
}

PURE void add_wide(state *a, u64 low, u64 high) {
    a->low += low;
    if (LONG) a->high += high + (a->low < low);
}

INLINED void add_tile(state *a, const element *e, u32 columns, u32 rows, u32 row, u32 strands) {
    UNROLL
    for (u32 k = 0; k < rows * columns; k++) {
        const u64 x = (u64)e[k]; /* a negative one gains 2^64 */
#if defined(TYPE_I64)
        add_wide(&a[k % columns], x, 0 - (x >> 63));
#else
        add_wide(&a[k % columns], x, 0);
#endif
    }
}

PURE void merge_states(state *a, const state *b) {
    add_wide(a, b->low, b->high);
}

PURE u64 state_word(const state *a, u32 k) {
    return k == 0 ? a->low : a->high;
}

PURE state state_of_words(const u64 *words) {
    const state a = {words[0], LONG ? words[STATE_WORDS - 1] : 0};
    return a;
}

/* Returns the bits of the mean of n integers whose sum is w, or w - 2^64 where that is negative.
 * Each half of w is exact as a double. */
SELDOM lowered lower_integers(u64 w, u64 n, u32 to) {
    lowered r = {0, 0};
    double low;
#if defined(SIGNED_TYPE)
    const double upper = (double)(i32)(w >> 32);
#else
    const double upper = (double)(u32)(w >> 32);
#endif
    const double high = two_sum(upper * 0x1p32, (double)(u32)w, &low);
    if (w != 0) r.bits = pair_quotient(high, low, n, to, &r.lost);
    return r;
}

/* Returns a value. Fewer than 2^31 integers of 32 bits always fit 64. */
PURE u64 state_value(const state *a, const column_values *p, u64 n, u32 op, u32 to, u32 *lost) {
#if defined(TYPE_I64)
    *lost |= a->high != 0 - (a->low >> 63);
#elif defined(TYPE_U64)
    *lost |= a->high != 0;
#endif
    if (op == MEAN) {
        const lowered r = lower_integers(a->low, n, to);
        *lost |= r.lost;
        return r.bits;
    }
    return a->low;
}

#elif defined(FOLD_FAST)

typedef struct state {
    double s;
} state;
#define STATE_WORDS 1
#define PAD         1

PURE void clear_state(state *a) {
    a->s = -0.0; /* adds nothing to -0 */
}

PURE element pad(void) {
#if defined(TYPE_F64) || defined(TYPE_F32)
    return -(element)0;
#else
    return (element)SIGN;
#endif
}

INLINED void add_tile(state *a, const element *e, u32 columns, u32 rows, u32 row, u32 strands) {
    UNROLL
    for (u32 k = 0; k < rows * columns; k++)
        a[k % columns].s += (double)widen(e[k]);
}

PURE void merge_states(state *a, const state *b) {
    a->s += b->s;
}

PURE u64 state_word(const state *a, u32 k) {
    return double_bits(a->s);
}

PURE state state_of_words(const u64 *words) {
    const state a = {double_from(words[0])};
    return a;
}

PURE u64 state_value(const state *a, const column_values *p, u64 n, u32 op, u32 to, u32 *lost) {
    const double value = op == MEAN ? a->s / (double)n : a->s;
    return value == value ? pair_shorter(value, to) : float_nan_bits(format_of(to));
}

#else /* extremes */

#include "end_keys.h"

#define PAD 0

typedef struct state {
    key most;
#if defined(FOLD_ENDS)
    key least;
#endif
#if defined(INDEXED)
    u32 at;
#endif
} state;
#if defined(FOLD_ENDS) || defined(INDEXED)
#define STATE_WORDS 2
#else
#define STATE_WORDS 1
#endif

PURE void clear_state(state *a) {
    a->most = 0;
#if defined(FOLD_ENDS)
    a->least = 0;
#endif
#if defined(INDEXED)
    a->at = ~0u;
#endif
}

PURE void merge_states(state *a, const state *b) {
#if defined(INDEXED)
    if (b->most > a->most || (b->most == a->most && b->at < a->at)) *a = *b;
#else
    a->most = b->most > a->most ? b->most : a->most;
#endif
#if defined(FOLD_ENDS)
    a->least = b->least > a->least ? b->least : a->least;
#endif
}

INLINED void add_tile(state *states, const element *e, u32 columns, u32 rows, u32 row, u32 strands,
                      key flip) {
    UNROLL
    for (u32 k = 0; k < rows * columns; k++) {
        state *a = states + k % columns;
#if defined(INDEXED)
        const key own = first_nan(key_of(e[k], flip));
        /* A thread's rows rise, so that the first of equals stays, whatever row is loaded again after the last. The
         * first of all comes in the place of none. */
        const u32 at = row + k / columns * strands;
        if (own > a->most || (k < columns && a->at == ~0u)) {
            a->most = own;
            a->at = at;
        }
#else
        const key own = key_of(e[k], flip);
        a->most = own > a->most ? own : a->most;
#endif
#if defined(FOLD_ENDS)
        const key other = other_key(own);
        a->least = other > a->least ? other : a->least;
#endif
    }
}

PURE u64 state_word(const state *a, u32 k) {
#if defined(FOLD_ENDS)
    if (k == 1) return a->least;
#elif defined(INDEXED)
    if (k == 1) return a->at;
#endif
    return a->most;
}

PURE state state_of_words(const u64 *words) {
    state a;
    a.most = (key)words[0];
#if defined(FOLD_ENDS)
    a.least = (key)words[1];
#elif defined(INDEXED)
    a.at = (u32)words[1];
#endif
    return a;
}

PURE u64 state_value(const state *a, const column_values *p, u64 n, u32 op, u32 to, u32 *lost) {
#if defined(INDEXED)
    /* the index may be a filled element's */
    if (IS_FILLED(p) && a->most == key_of((element)p->neutral, (key)p->flip)) *lost = 1;
    return op == ARGMIN || op == ARGMAX ? a->at : key_bits(a->most, (key)p->flip);
#elif defined(FOLD_ENDS)
    return op == MIN ? key_bits(a->least, (key)p->flip ^ KEY_MASK)
                     : key_bits(a->most, (key)p->flip);
#else
    return key_bits(a->most, (key)p->flip);
#endif
}

#endif

#if defined(TESTS_EXPONENTS) && !TESTS_EXPONENTS
#define ADD_TILE(e, row) add_tile(a, e, vector, rows, large)
#elif PAD
#define ADD_TILE(e, row) add_tile(a, e, vector, rows, row, STRANDS(p))
#else
#define ADD_TILE(e, row) add_tile(a, e, vector, rows, row, STRANDS(p), FLIP(p))
#endif
#ifndef TESTS_EXPONENTS
#define TESTS_EXPONENTS 0
#endif
#if !TESTS_EXPONENTS && defined(FOLD_SUM) && defined(FLOATING)
#define TESTS_LATER 1 /* batches are tested after they are added */
#else
#define TESTS_LATER 0
#endif

/* ---- Units ----------------------------------------------------------------------------------------------- */

/* A thread's load: the elements of `vector` neighbouring columns. */
typedef union unit {
#if LONG || defined(TYPE_F32) || defined(TYPE_U32) || defined(TYPE_I32)
    uint4 bits;
#elif defined(TYPE_U8) || defined(TYPE_I8)
    u32 bits;
#else
    u64 bits;
#endif
    element e[VECTOR];
} unit;

/* Loads a unit; `packed`: units lie at multiples of their size. */
__device__ void load_unit(const GLOBAL element *from, u32 vector, u32 packed, element *to) {
    if (vector > 1 && packed) {
        unit u;
        u.bits = ((const GLOBAL unit *)from)->bits;
        UNROLL
        for (u32 v = 0; v < VECTOR; v++)
            to[v] = u.e[v];
    } else {
        UNROLL
        for (u32 v = 0; v < vector; v++)
            to[v] = from[v];
    }
}

INLINED void read_unit(const SHARED u8 *from, u32 vector, element *to) {
    if (vector > 1) {
        unit u;
        u.bits = ((const SHARED unit *)from)->bits;
        UNROLL
        for (u32 v = 0; v < VECTOR; v++)
            to[v] = u.e[v];
    } else
        to[0] = *(const SHARED element *)from;
}

#if TESTS_LATER
/* Ends a batch of the `count` rows that lie at `from`; `whole` is the state before it, if there was one, and `a` the
 * state with it. If an addition was `wrong`, the sum is off by at most half of the second
 * double's last bit for each row, which `large` bounds. If that is not finite, the batch is added
 * to `whole` slowly instead. Both then have the same elements. */
INLINED void check_batch(row_source from, u32 count, u32 vector, u64 wrong, u32 before, u32 *large,
                         state *a, state *whole) {
    UNROLL
    for (u32 v = 0; v < vector; v++) {
        if (!before) clear_state(&whole[v]);
        if (wrong == 0) {
            copy_sum(&a[v], &whole[v]);
        } else if (large[v] < 0x7fe00000u) {
            copy_sum(&a[v], &whole[v]);
            whole[v].off = increased_bound(whole[v].off, double_from((u64)(large[v] + 1) << 32) *
                                                             ((double)count * 0x1p-52));
        } else {
            add_slowly(column_of(from, v), count, &whole[v]);
            copy_sum(&whole[v], &a[v]);
        }
        large[v] = 0;
    }
}
#endif

/* Columns of a unit that reduce_strands() merges between two barriers: several, if states are short. */
#define REDUCED_AT_ONCE(vector) (STATE_WORDS > 3 ? 1 : (vector))

/* Merges the states of all strands into those of strand 0, unit by unit. Thread t has the states of unit t % width and
 * strand t / width, if it `is_there`. In each step half of the remaining strands write theirs to `scratch`, and the other
 * half merges them. `scratch` has a state for each thread and column. All threads of the block call this. */
INLINED void reduce_strands(u32 width, u32 strands, u32 strand, u32 is_there, u32 vector, state *a,
                            SHARED u64 *scratch) {
    u32 kept;
    for (u32 left = strands; left > 1; left = kept) {
        kept = (left + 1) / 2;
        UNROLL
        for (u32 from = 0; from < vector; from += REDUCED_AT_ONCE(vector)) {
            __syncthreads();
            if (is_there && strand >= kept && strand < left) {
                UNROLL
                for (u32 v = 0; v < REDUCED_AT_ONCE(vector); v++)
                    UNROLL
                for (u32 k = 0; k < STATE_WORDS; k++)
                    scratch[(v * STATE_WORDS + k) * BLOCK + threadIdx.x] =
                        state_word(&a[from + v], k);
            }
            __syncthreads();
            if (is_there && strand + kept < left) {
                UNROLL
                for (u32 v = 0; v < REDUCED_AT_ONCE(vector); v++) {
                    u64 words[STATE_WORDS];
                    UNROLL
                    for (u32 k = 0; k < STATE_WORDS; k++)
                        words[k] =
                            scratch[(v * STATE_WORDS + k) * BLOCK + threadIdx.x + kept * width];
                    const state b = state_of_words(words);
                    merge_states(&a[from + v], &b);
                }
            }
        }
    }
}

/* Why a state always determines its values, or NULL. */
#if defined(FOLD_SUM) || defined(FOLD_MOMENTS) || defined(INDEXED)
#define NEVER_LOST NULL
#else
#define NEVER_LOST "extremes and fast sums lose nothing"
#endif

/* Writes a value's bits of neighbouring columns, by stores of 16 bytes where they lie side by side from a multiple of
 * that on. */
INLINED void store_unit(GLOBAL u8 *to, u32 width, i64 step, u32 vector, const u64 *bits) {
    const u32 bytes = width / 8;
    if (vector > 1 && step == 1 && bytes * vector % 16 == 0 && (size_t)to % 16 == 0) {
        UNROLL
        for (u32 part = 0; part < VECTOR / 2; part++) {
            union {
                uint4 all;
                u32 word[4];
            } u;
            if (part >= bytes * vector / 16) continue;
            UNROLL
            for (u32 k = 0; k < 4; k++)
                u.word[k] = width == 64 ? (u32)(bits[2 * part + k / 2] >> 32 * (k % 2))
                                        : (u32)bits[k % VECTOR];
            ((GLOBAL uint4 *)to)[part] = u.all;
        }
        return;
    }
    UNROLL
    for (u32 v = 0; v < vector; v++)
        store_bits(to + (i64)v * step * bytes, width, bits[v]);
}

/* Returns the value of no elements for a sum, or for a value made of sums. */
PURE u64 value_of_nothing(u32 op, u32 to) {
    return op == MEAN || op == VAR || op == STD ? float_nan_bits(format_of(to)) : 0;
}

#endif
